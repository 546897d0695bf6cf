package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// A row that opens a gate carries a seal: a MAC under the audit key (key.go), written in the commit that creates or changes the
// row. The row is used only while its seal holds, so that neither a damaged disk nor somebody who edits the file without the key
// can open anything. Closing a row for good deletes its seal. A seal covers nothing that pruning deletes.

// sealSize is the length of a seal in bytes.
const sealSize = 16

// sealer makes and checks seals with one key.
type sealer struct {
	id   string // identifies the key without revealing it
	pool sync.Pool
}

func newSealer(key auditKey) *sealer {
	k := &sealer{pool: sync.Pool{New: func() any { return hmac.New(sha256.New, key[:]) }}}
	k.id = hex.EncodeToString(k.seal("key")[:8])
	return k
}

// seal is the MAC of a row's bound values. Type and length precede each value, so that no two rows have the same bytes.
func (k *sealer) seal(table string, values ...any) []byte {
	b := sealText(make([]byte, 0, 512), table)
	for _, bound := range values {
		v, err := driver.DefaultParameterConverter.ConvertValue(bound)
		if err != nil {
			return nil // never holds
		}
		switch v := v.(type) {
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
		case bool:
			b = append(b, 'f')
			if v {
				b[len(b)-1] = 't'
			}
		case string:
			b = sealText(b, v)
		case []byte:
			b = sealText(b, string(v))
		default:
			return nil
		}
	}
	h := k.pool.Get().(hash.Hash) //nolint:errcheck // New makes nothing else
	defer k.pool.Put(h)
	h.Reset()
	_, _ = h.Write(b) // never fails
	return h.Sum(nil)[:sealSize:sealSize]
}

func sealText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(append(b, 's'), uint64(len(text))), text...)
}

// holds reports whether mac is the seal of a row.
func (k *sealer) holds(mac []byte, table string, values ...any) bool {
	return len(mac) == sealSize && hmac.Equal(mac, k.seal(table, values...))
}

// unsealed is the error of a row whose seal does not hold.
func unsealed(row string) error {
	return &Error{
		Row: true, What: row + " does not carry the seal of this store: it was changed behind daycared's back, or is damaged",
		Advice: "see daycared audit verify, and put a backup in its place: daycared restore FILE",
	}
}

// sealedColumns are the request columns that the seal covers, besides the option ids, each call's tool and answer, and the votes.
const sealedColumns = `number, id, kind, mode, caller, caller_uid, session, version, digest, key, hook, created_at, ` +
	`agent, claimed, host, cwd, tool, tags, held, widest, high_risk, quorum, under, revision, state, deadline, decided_at, ` +
	`used_at, collected_at, void_at, lapsed_at, answer, scope, decided_by, decided_via, timed_out, defaulted, used_call, ` +
	`asked, escalate_to, escalate_at`

func sealedFields(r *permissions.Request) []any {
	return []any{
		&r.Number, &r.ID, &r.Kind, &r.Mode, &r.Caller.Name, &r.Caller.UID, &r.Session, &r.Version, digest{&r.Digest}, &r.Key,
		&r.Hook, instant{&r.CreatedAt}, &r.Agent, &r.Claimed, &r.Host, &r.Cwd, &r.Tool, list[permissions.Tag]{&r.Tags},
		list[permissions.Tag]{&r.Held}, scope{&r.Widest}, &r.HighRisk, &r.Quorum, list[permissions.ID]{&r.Under}, &r.Revision,
		&r.State, instant{&r.Deadline}, instant{&r.DecidedAt}, instant{&r.UsedAt}, instant{&r.CollectedAt}, instant{&r.VoidAt},
		instant{&r.LapsedAt}, &r.Answer, scope{&r.Scope}, &r.DecidedBy, &r.DecidedVia, &r.TimedOut, &r.Defaulted, &r.UsedCall,
		list[string]{&r.Asked}, list[string]{&r.EscalateTo}, instant{&r.EscalateAt},
	}
}

// sealVersion is the version of what seals cover; see the column seals of meta. 0 is before migration 19.
const sealVersion = 1

// sealing returns the sealed values of a request. What pending ones show of an option is sealed until they are settled: the words
// of a clarification are pruned later.
func sealing(r *permissions.Request) []any {
	values := append(sealingBefore(r), "1", r.Beyond, r.Background, r.Foreground, r.Step, r.Group)
	if r.State == permissions.Pending {
		for _, o := range r.Options {
			values = append(values, o.Label)
		}
		if shown := r.Shown(); shown != r.Digest { // old seals lack it
			values = append(values, digest{&shown})
		}
	}
	return values
}

// sealingBefore is sealing before migration 19.
func sealingBefore(r *permissions.Request) []any {
	values := append(sealedFields(r), len(r.Options), len(r.Calls), len(r.Votes))
	for _, o := range r.Options {
		values = append(values, string(o.ID))
	}
	for _, c := range r.Calls {
		values = append(values, c.N, c.Tool, string(c.Answer))
	}
	for _, v := range r.Votes {
		values = append(values, v.By, v.Via, string(v.Answer), v.Call, micros(v.At), v.Key)
		if v.Account != "" { // old stores have none; the type of the first value keeps it distinct
			values = append(values, true, v.Account)
		}
	}
	if r.VoidedBy != "" { // old seals lack it
		values = append(values, r.VoidedBy)
	}
	return values
}

func (k *sealer) request(r *permissions.Request) []byte { return k.seal("requests", sealing(r)...) }

// gate is a table of sealed rows. Where more than the first four fields are set, each row opens something until closed, and can be
// suspended.
type gate[T any] struct {
	table  string
	fields func(*T) []any // the columns
	sealed func(*T) []any // the sealed values
	name   func(T) string
	since  func(*T) *time.Time
	open   string         // condition for an open row
	close  string         // closes one row, at a time or by deleting it
	set    string         // sets suspended_at and mac of one row
	key    func(*T) []any // identifies the row
	made   func(T) time.Time
	agrees func(row T, said *permissions.Entry) bool // reports whether the row matches its newest entry; nil: entries lack the data
}

var (
	grantGate = gate[permissions.Grant]{
		table: "grants", fields: grantFields,
		sealed: func(g *permissions.Grant) []any {
			return []any{
				&g.ID, &g.Caller, &g.Session, list[permissions.Tag]{&g.Tags}, &g.Tool, digest{&g.Call}, end{&g.Until}, &g.Request,
				&g.By, instant{&g.CreatedAt}, instant{&g.SuspendedAt},
			}
		},
		since: func(g *permissions.Grant) *time.Time { return &g.SuspendedAt },
		open:  `SELECT ` + grantColumns + `, mac FROM grants WHERE revoked_at = 0 AND ended_at = 0 ORDER BY id`,
		close: revokeGrant,
		set:   `UPDATE grants SET suspended_at = $1, mac = $2 WHERE id = $3`,
		key:   func(g *permissions.Grant) []any { return []any{g.ID} },
		name:  func(g permissions.Grant) string { return "grant " + string(g.ID) },
		made:  func(g permissions.Grant) time.Time { return g.CreatedAt },
	}
	tokenGate = gate[permissions.Token]{
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
	pairingGate = gate[permissions.Pairing]{
		table: "pairings", fields: pairingFields, sealed: pairingFields,
		since:  func(p *permissions.Pairing) *time.Time { return &p.SuspendedAt },
		open:   `SELECT ` + pairingColumns + `, mac FROM pairings ORDER BY person, via`,
		close:  deletePairing,
		set:    `UPDATE pairings SET suspended_at = $1, mac = $2 WHERE person = $3 AND via = $4`,
		key:    func(p *permissions.Pairing) []any { return []any{p.Person, p.Via} },
		name:   func(p permissions.Pairing) string { return "pairing " + p.Name() },
		made:   func(p permissions.Pairing) time.Time { return p.PairedAt },
		agrees: func(p permissions.Pairing, said *permissions.Entry) bool { return p.Address == said.Detail["address"] },
	}
)

// mac is the seal of a row.
func (g gate[T]) mac(k *sealer, row T) []byte { return k.seal(g.table, g.sealed(&row)...) }

// args are the values of a new row: its columns and its seal.
func (g gate[T]) args(k *sealer, row T) []any { return append(g.fields(&row), g.mac(k, row)) }

// sealedRow is a row as it was read, with its seal.
type sealedRow[T any] struct {
	row T
	mac []byte
}

func (g gate[T]) rowFields(r *sealedRow[T]) []any { return append(g.fields(&r.row), &r.mac) }

func (g gate[T]) holds(k *sealer, r sealedRow[T]) bool {
	return k.holds(r.mac, g.table, g.sealed(&r.row)...)
}

// sealed reads the rows that a query finds and whose seals hold. Others open nothing and are logged once each.
func sealed[T any](ctx context.Context, s *Store, from source, g gate[T], text string, args ...any) (rows []T, err error) {
	found, err := collect(ctx, from, "", g.rowFields, text, args...)
	for _, r := range found {
		if g.holds(s.seals, r) {
			rows = append(rows, r.row)
		} else {
			s.logUnsealed(g.name(r.row))
		}
	}
	return rows, err
}

// logUnsealed logs once that a row is not used.
func (s *Store) logUnsealed(row string) {
	if _, told := s.unsealed.LoadOrStore(row, true); !told {
		s.log.Error("unsealed row ignored", "err", unsealed(row))
	}
}

// countUnsealed is the number of unused rows.
func (s *Store) countUnsealed() (n int) {
	s.unsealed.Range(func(any, any) bool { n++; return true })
	return n
}

// put writes a row's suspension and its new seal.
func (g gate[T]) put(ctx context.Context, t *tx, k *sealer, row T) {
	t.exec(ctx, g.set, append([]any{instant{g.since(&row)}, g.mac(k, row)}, g.key(&row)...)...)
}

// reseal seals every open row with the store's key, and suspends it since a time unless that is zero. A row whose seal
// does not hold is left as it is; without a key to check with, every row is accepted. It returns how many were sealed.
func reseal[T any](ctx context.Context, s *Store, t *tx, g gate[T], since time.Time) (n int64) {
	found, err := collect(ctx, t, "", g.rowFields, g.open)
	t.fail(err)
	for _, r := range found {
		if s.from != nil && !g.holds(s.from, r) {
			s.logUnsealed(g.name(r.row))
			continue
		}
		at := g.since(&r.row)
		if !at.IsZero() && s.from == s.seals {
			continue
		}
		if at.IsZero() {
			*at = since
		}
		g.put(ctx, t, s.seals, r.row)
		n++
	}
	return n
}

// openRows counts the open rows of each gate.
type openRows struct{ grants, tokens, pairings int64 }

// resealGates is [reseal] for every gate. Its counts are also added to an entry's detail.
func (s *Store) resealGates(ctx context.Context, t *tx, since time.Time, detail map[string]string) (n openRows) {
	n.grants = reseal(ctx, s, t, grantGate, since)
	n.tokens = reseal(ctx, s, t, tokenGate, since)
	n.pairings = reseal(ctx, s, t, pairingGate, since)
	for name, count := range map[string]int64{"grants": n.grants, "tokens": n.tokens, "pairings": n.pairings} {
		detail[name] = strconv.FormatInt(count, 10)
	}
	return n
}

const sealRequest = `UPDATE requests SET mac = $1 WHERE number = $2`

// sealedBy are the sealed values of a request in a store of a [sealVersion].
func sealedBy(version int64, r *permissions.Request) []any {
	if version == 0 {
		return sealingBefore(r)
	}
	return sealing(r)
}

// resealRequests seals requests that have a seal of another key or version, or none, with the store's key.
func (s *Store) resealRequests(ctx context.Context, t *tx, version int64) (n int64) {
	t.rows.dropAll()
	t.fail(eachSealed(ctx, t, func(r permissions.Request, mac []byte) error {
		if s.from != nil && !s.from.holds(mac, "requests", sealedBy(version, &r)...) {
			s.logUnsealed("request " + string(r.ID))
			return nil
		}
		n++
		t.exec(ctx, sealRequest, s.seals.request(&r), r.Number)
		return nil
	}))
	return n
}

const (
	// Of the columns after calls some are not sealed, but a request with an unreadable one is not used.
	readSealed = `SELECT ` + sealedColumns + `, voided_by, options, calls, affected_path, env_hash, background, foreground, step, ` +
		`env_names, choices, left_at, place, folder, reminders, comment, failure, input, beyond, was, ` +
		`CASE WHEN ` + hasWords + ` THEN mac ELSE x'' END FROM requests WHERE number >= $1 ORDER BY number LIMIT 0 + $2`

	// hasWords checks the type of columns that are not read here because they may be long.
	hasWords = `typeof(reason) = 'text' AND typeof(message) = 'text' AND typeof(details) = 'text' ` +
		`AND pruned IN (FALSE, TRUE)`

	sealedPage = 200
)

// eachSealed calls take with every request of a store, reading only what its seal covers.
func eachSealed(ctx context.Context, from source, take func(r permissions.Request, mac []byte) error) error {
	text := readSealed
	for column, instead := range map[string]string{"beyond": "0", "was": "'[]'"} { // a store that is not migrated yet may lack them
		n, err := count(ctx, from, `SELECT COUNT(*) FROM pragma_table_info('requests') WHERE name = $1`, column)
		if err != nil {
			return err
		}
		if n == 0 {
			text = strings.Replace(text, ", "+column+", ", ", "+instead+", ", 1)
		}
	}
	fields := func(r *sealedRow[permissions.Request]) []any {
		q := &r.row
		return append(sealedFields(q), &q.VoidedBy, list[permissions.Option]{&q.Options}, list[permissions.Call]{&q.Calls},
			&q.AffectedPath, &q.EnvHash, &q.Background, &q.Foreground, &q.Step, list[string]{&q.EnvNames}, list[string]{&q.Choices},
			instant{&q.LeftAt}, &q.Group, &q.Folder, times{&q.Reminders}, &q.Comment, &q.Failure,
			canonical{raw{new(json.RawMessage)}}, &q.Beyond, list[permissions.Rows]{&q.Was}, &r.mac) // inputs may be long and are not needed
	}
	for next := int64(math.MinInt64); ; { // a number below one was written by another program
		page, err := collect(ctx, from, "", fields, text, next, sealedPage)
		if err != nil || len(page) == 0 {
			return errors.Join(err, ctx.Err())
		}
		requests := make([]permissions.Request, len(page))
		for i, r := range page {
			requests[i] = r.row
		}
		if err := addVotes(ctx, from, requests); err != nil {
			return err
		}
		for i, r := range requests {
			if err := take(r, page[i].mac); err != nil {
				return err
			}
		}
		last := page[len(page)-1].row.Number
		if last == math.MaxInt64 {
			return nil
		}
		next = last + 1
	}
}

const (
	readOpenSealed = `SELECT ` + sessionColumns + `, audited, mac FROM sessions WHERE ended_at = 0 ORDER BY id`

	readAllCopies = `SELECT ` + copyColumns + ` FROM copies ORDER BY request, person, connector, place`

	writeSeals = `UPDATE meta SET seals = $1`

	// countVersions counts the entries that say that the rows of a store were sealed as a [sealVersion] says.
	countVersions = `SELECT COUNT(*) FROM audit WHERE type IN ('AUDIT_KEYED', 'STORE_RESTORED') AND detail LIKE '%"seals":"1"%'`
)

// sealsBefore is the version of the seals that the rows of a store with the identity own have. An identity from before that is said
// to be older than the audit says was put back.
func (s *Store) sealsBefore(ctx context.Context, t *tx, own identity) (int64, error) {
	if own.seals != 0 {
		return own.seals, nil
	}
	n, err := count(ctx, t, countVersions)
	if n == 0 || err != nil {
		return 0, err
	}
	s.log.Error("what the store says of itself was put back to before its rows were sealed: they are not sealed again")
	return sealVersion, nil
}

// sealMore seals the sessions of our own agents, timetables and copies with the store's key. Those that nobody could seal before
// are accepted as they are, but not when a new life begins: then unchecked sessions and timetables stay without a seal, unchecked
// copies count as not sent, and no session holds any longer what was allowed it once. It adds counts to an entry's detail.
func (s *Store) sealMore(ctx context.Context, t *tx, version int64, life bool, detail map[string]string) {
	accepted := func(name string, holds func(*sealer) bool) bool {
		ok := version == 0 && !life || s.from != nil && holds(s.from)
		if !ok && version != 0 {
			s.logUnsealed(name)
		}
		return ok
	}
	sessions, err := collect(ctx, t, "", (*sealedSession).fields, readOpenSealed)
	t.fail(err)
	n := 0
	for _, r := range sessions {
		if !accepted("session "+string(r.row.ID), r.holds) {
			continue
		}
		if life {
			step, unreadable := agents.WithoutOnce(r.row.Step)
			if unreadable != nil {
				continue
			}
			r.row.Step = step
			t.exec(ctx, `UPDATE sessions SET step = $1 WHERE id = $2`, raw{&r.row.Step}, r.row.ID)
		}
		if version == 0 {
			r.audited = t.seq
		}
		t.exec(ctx, sealSession, r.audited, s.seals.session(r.row, r.audited), r.row.ID)
		n++
	}
	timetables, err := collect(ctx, t, "", timetableGate.rowFields, readTimetables)
	t.fail(err)
	for _, r := range timetables {
		if accepted(timetableGate.name(r.row), func(k *sealer) bool { return timetableGate.holds(k, r) }) {
			t.exec(ctx, writeTimetable, timetableGate.args(s.seals, r.row)...)
		}
	}
	copies, err := collectReadable(ctx, s, t, "a copy", copyGate.rowFields, readAllCopies)
	t.fail(err)
	for _, r := range copies {
		if !accepted(copyGate.name(r.row), func(k *sealer) bool { return copyGate.holds(k, r) }) {
			r.row.Ref, r.row.SentAt, r.row.Dated = "", time.Time{}, time.Time{}
		}
		t.exec(ctx, upsertCopy, copyGate.args(s.seals, r.row)...)
	}
	detail[sealsDetail], detail["sessions"] = strconv.Itoa(sealVersion), strconv.Itoa(n)
	t.exec(ctx, writeSeals, sealVersion)
}

// sealWider seals the rows of a store from before migration 19 as they are, once. A request whose earlier seal does not hold gets
// no other.
func (s *Store) sealWider(ctx context.Context, t *tx) {
	detail := map[string]string{}
	requests := s.resealRequests(ctx, t, 0)
	s.sealMore(ctx, t, 0, false, detail)
	t.fail(sealIdentity(ctx, t, s.seals))
	detail["requests"] = strconv.FormatInt(requests, 10)
	if t.err == nil {
		s.log.Info("rows sealed as they are, since more of them are from now on", "requests", requests, "sessions", detail["sessions"])
	}
	s.append(ctx, t, permissions.Record{Type: permissions.AuditKeyed, At: s.now(), Detail: detail})
}
