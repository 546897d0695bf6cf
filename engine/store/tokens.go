package store

import (
	"context"
	"fmt"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	columnsBeforePersons = `id, name, hash, created_at, expires_at, revoked_at, used_at, suspended_at`

	tokenColumns = columnsBeforePersons + `, person`
)

func tokenFields(t *permissions.Token) []any {
	return []any{
		&t.ID, &t.Name, digest{&t.Hash}, instant{&t.CreatedAt}, instant{&t.ExpiresAt}, instant{&t.RevokedAt},
		lenientTime{&t.UsedAt}, instant{&t.SuspendedAt}, &t.Person,
	}
}

var tokenGate = gate[permissions.Token]{
	table: "tokens", fields: tokenFields,
	sealed: func(t *permissions.Token) []any {
		values := []any{
			&t.ID, &t.Name, digest{&t.Hash}, instant{&t.CreatedAt}, instant{&t.ExpiresAt}, instant{&t.SuspendedAt},
		}
		if t.Person != "" { // old seals lack it
			values = append(values, &t.Person)
		}
		return values
	},
	since: func(t *permissions.Token) *time.Time { return &t.SuspendedAt },
	open:  openTokens(tokenColumns),
	close: revokeToken,
	set:   `UPDATE tokens SET suspended_at = $1, mac = $2 WHERE id = $3`,
	key:   func(t *permissions.Token) []any { return []any{t.ID} },
	name:  func(t permissions.Token) string { return "token " + string(t.ID) },
	made:  func(t permissions.Token) time.Time { return t.CreatedAt },
	agrees: func(t permissions.Token, said *permissions.Entry) bool {
		return said.Type != permissions.TokenCreated || said.Detail["person"] == t.Person
	},
}

const addedTokenColumns = tokenColumns + `, mac`

var insertToken = `INSERT INTO tokens (` + addedTokenColumns + `) VALUES (` + parameters(addedTokenColumns) + `)`

// readLastPerson finds the person of the last token with a name, while its row is kept.
const readLastPerson = `SELECT person FROM tokens WHERE name = $1 ORDER BY created_at DESC, id DESC LIMIT 1`

// AddToken stores a token. The audit has its name and never its hash.
func (s *Store) AddToken(ctx context.Context, token permissions.Token, by, via string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if token.Person == "" {
			last, _, err := firstRow(ctx, t, "the last token of "+token.Name, value[string], readLastPerson, token.Name)
			switch {
			case err != nil:
				return err
			case last != "":
				return permissions.Invalid(fmt.Errorf("the last token of %s was of %s; say --person %s, or write another name",
					token.Name, last, last))
			}
		}
		t.exec(ctx, insertToken, tokenGate.args(s.seals, token)...)
		s.append(ctx, t, tokenRecord(permissions.TokenCreated, token, by, via, token.CreatedAt))
		return nil
	})
}

func tokenRecord(what permissions.Type, token permissions.Token, by, via string, at time.Time) permissions.Record {
	r := permissions.Record{
		Type: what, At: at, Actor: by, Via: via, Detail: map[string]string{"id": string(token.ID), "name": token.Name},
	}
	if token.Person != "" {
		r.Detail["person"] = token.Person
	}
	return r
}

const readTokens = `SELECT ` + tokenColumns + `, mac FROM tokens WHERE revoked_at = 0 ORDER BY name, id`

// Tokens lists every unrevoked token, by name.
func (s *Store) Tokens(ctx context.Context) ([]permissions.Token, error) {
	return reading(ctx, s, func(from source) ([]permissions.Token, error) {
		return readSealedRows(ctx, s, from, tokenGate, readTokens)
	})
}

const (
	readToken = `SELECT ` + tokenColumns + `, mac FROM tokens WHERE hash = $1 AND revoked_at = 0`

	revokeToken = `UPDATE tokens SET revoked_at = $1, mac = '' WHERE id = $2 AND revoked_at = 0`
)

// VerifyToken implements [engine.Store]. Finding a token expired revokes it, so that setting the clock back does not revive it.
func (s *Store) VerifyToken(ctx context.Context, hash permissions.Digest, now time.Time) (permissions.Token, error) {
	var token permissions.Token
	if damage := s.damage.Load(); damage != nil {
		return token, damage
	}
	err := s.read(ctx, func(from source) error {
		found, err := readSealedRows(ctx, s, from, tokenGate, readToken, digest{&hash})
		if err == nil && len(found) == 0 {
			return permissions.UnknownToken()
		}
		for _, token = range found {
			break // the hash is unique
		}
		return err
	})
	if err == nil && !token.Valid(now) {
		if err = s.endToken(ctx, token, now); err == nil {
			err = refusedToken(token, now)
		}
	}
	if err != nil {
		return permissions.Token{}, err
	}
	minute := now.UTC().Truncate(time.Minute)
	if !minute.After(token.UsedAt) {
		return token, nil
	}
	token.UsedAt = minute
	return writing(ctx, s, func(ctx context.Context, t *tx) (permissions.Token, error) {
		const use = `UPDATE tokens SET used_at = $1 WHERE id = $2 AND revoked_at = 0 AND suspended_at = 0`
		if t.affected(ctx, use, micros(minute), token.ID) != 1 {
			return token, permissions.UnknownToken() // revoked a moment ago
		}
		return token, nil
	})
}

// refusedToken is why a known token is refused, or nil.
func refusedToken(token permissions.Token, now time.Time) error {
	suspended := !token.SuspendedAt.IsZero()
	token.SuspendedAt = time.Time{}
	if suspended && token.Valid(now) {
		return permissions.SuspendedToken(token.ID)
	}
	return permissions.UnknownToken()
}

// endToken revokes an expired token.
func (s *Store) endToken(ctx context.Context, token permissions.Token, now time.Time) error {
	if !token.Expired(now) {
		return nil
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if t.affected(ctx, revokeToken, micros(now), token.ID) > 0 {
			record := tokenRecord(permissions.TokenRevoked, token, "", "", now)
			record.Detail["why"] = "expired"
			s.append(ctx, t, record)
		}
		return nil
	})
}

const (
	readTokensOf = `SELECT ` + tokenColumns + ` FROM tokens WHERE revoked_at = 0 AND name = $1 ORDER BY name, id`

	readTokenByID = `SELECT ` + tokenColumns + ` FROM tokens WHERE revoked_at = 0 AND id = $1`
)

// RevokeToken implements [engine.Store].
func (s *Store) RevokeToken(ctx context.Context, name, by, via string, at time.Time) ([]permissions.Token, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (revoked []permissions.Token, err error) {
		for _, text := range []string{readTokenByID, readTokensOf} {
			if len(revoked) == 0 && err == nil {
				revoked, err = collect(ctx, t, "", tokenFields, text, name)
			}
		}
		if len(revoked) == 0 && err == nil {
			revoked, err = tokensByPart(ctx, t, name)
		}
		if len(revoked) == 0 && err == nil {
			err = permissions.NoToken(name)
		}
		if err != nil {
			return nil, err
		}
		for i := range revoked {
			token := &revoked[i]
			token.RevokedAt = moment(micros(at))
			t.change(ctx, revokeToken, micros(at), token.ID)
			s.append(ctx, t, tokenRecord(permissions.TokenRevoked, *token, by, via, at))
		}
		return revoked, nil
	})
}

// tokensByPart returns the token whose id has a part, see [permissions.ResolveID].
func tokensByPart(ctx context.Context, t *tx, part string) ([]permissions.Token, error) {
	ids, err := collect(ctx, t, "", value[permissions.ID], `SELECT id FROM tokens WHERE revoked_at = 0 ORDER BY id`)
	if err != nil {
		return nil, err
	}
	id, err := permissions.ResolveID(part, ids)
	if err != nil {
		return nil, err
	}
	return collect(ctx, t, "", tokenFields, readTokenByID, id)
}

const readLeftOfCaller = `SELECT id FROM requests WHERE caller = $1 AND (state = 'pending' ` +
	`OR state = 'approved' AND used_at = 0 AND void_at = 0 AND lapsed_at = 0 ` +
	`OR state NOT IN ('pending', 'approved') AND collected_at = 0 AND decided_at > $2)`

// LeftRequests implements [engine.Store].
func (s *Store) LeftRequests(ctx context.Context, caller string, since time.Time) ([]permissions.ID, error) {
	return gather(ctx, s, "a request", value[permissions.ID], readLeftOfCaller, caller, micros(since))
}

const readCallers = `SELECT caller FROM requests WHERE state = 'pending' ` +
	`UNION SELECT caller FROM grants WHERE revoked_at = 0 AND ended_at = 0 AND until > $1`

// Callers implements [engine.Store].
func (s *Store) Callers(ctx context.Context, now time.Time) ([]string, error) {
	return gather(ctx, s, "a caller", value[string], readCallers, micros(now))
}

func openTokens(columns string) string {
	return `SELECT ` + columns + `, mac FROM tokens WHERE revoked_at = 0 ORDER BY id`
}
