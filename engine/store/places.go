package store

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

const readPendingIn = `SELECT ` + sealedRequest + ` FROM requests WHERE state = 'pending' AND place <> '' ` +
	`AND number > $1 AND place = $2 ORDER BY number LIMIT 0 + $3`

// PendingIn lists at most limit pending requests of a place, after the one named (empty: from the first), oldest first.
func (s *Store) PendingIn(
	ctx context.Context, place string, after permissions.ID, limit int,
) (found []permissions.Request, err error) {
	err = s.read(ctx, func(from source) error {
		number, err := position(ctx, from, after)
		if err != nil {
			return err
		}
		found, err = s.after(ctx, from, number, limit, readPendingIn, place)
		return err
	})
	return found, err
}

const readPlaces = `SELECT DISTINCT place FROM requests WHERE state = 'pending' AND place <> '' ORDER BY place`

// Places lists where something pending is shown to several people at once.
func (s *Store) Places(ctx context.Context) (places []string, err error) {
	err = s.read(ctx, func(from source) error {
		field := func(place *string) []any { return []any{place} }
		places, err = collect(ctx, from, "a place", field, readPlaces)
		return err
	})
	return places, err
}

const (
	writeMoved = `INSERT INTO moved (was, now) VALUES ($1, $2) ON CONFLICT (was) DO UPDATE SET now = excluded.now ` +
		`WHERE now <> excluded.now`

	readMoved = `SELECT was, now FROM moved ORDER BY was`
)

// Move notes that a place goes by another name now, and tells whether that is news. It is audited.
func (s *Store) Move(ctx context.Context, m permissions.Move, via string) (news bool, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		result, err := t.ExecContext(ctx, writeMoved, m.Was, m.Now)
		if err != nil {
			return err
		}
		n, _ := result.RowsAffected() // SQLite always tells
		if news = n > 0; !news {
			return nil
		}
		return s.append(ctx, t, permissions.Record{
			Type: permissions.PlaceMoved, At: m.At, Via: via, Detail: map[string]string{"was": m.Was, "now": m.Now},
		})
	})
	return news, err
}

// Moves lists the places that go by another name now. Their times are in the audit.
func (s *Store) Moves(ctx context.Context) (moves []permissions.Move, err error) {
	err = s.read(ctx, func(from source) error {
		fields := func(m *permissions.Move) []any { return []any{&m.Was, &m.Now} }
		moves, err = collect(ctx, from, "a place", fields, readMoved)
		return err
	})
	return moves, err
}
