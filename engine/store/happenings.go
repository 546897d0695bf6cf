package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// The list of types is that of permissions.Happenings, which are words of the program and no input. The entry of a
// request that is no longer kept has neither a session nor people.
var readHappenings = func() string {
	var types []string
	for _, t := range permissions.Happenings() {
		types = append(types, `'`+string(t)+`'`)
	}
	columns := `audit.` + strings.ReplaceAll(entryColumns, `, `, `, audit.`)
	return `SELECT ` + columns + `, COALESCE(requests.session, ''), COALESCE(requests.asked, '` + emptyList + `') ` +
		`FROM audit LEFT JOIN requests ON requests.id = audit.request WHERE audit.chain = $1 AND audit.seq > $2 ` +
		`AND audit.type IN (` + strings.Join(types, `, `) + `) ORDER BY audit.seq LIMIT 0 + $3`
}()

const readFirst = `SELECT seq FROM audit WHERE chain = $1 ORDER BY seq LIMIT 1`

func happeningFields(h *permissions.Happening) []any {
	return append(entryFields(&h.Entry), &h.Session, list[string]{&h.Asked})
}

// Happenings is [engine.Store].
func (s *Store) Happenings(
	ctx context.Context, after int64, limit int,
) (found []permissions.Happening, first int64, err error) {
	err = s.read(ctx, func(from source) error {
		err := from.QueryRowContext(ctx, readFirst, s.chain).Scan(&first)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		found, err = collect(ctx, from, "an event", happeningFields, readHappenings, s.chain, after, limit)
		for i, h := range found {
			found[i] = h.Located()
		}
		return err
	})
	return found, first, err
}

const readNewestTime = `SELECT at FROM audit WHERE chain = $1 ORDER BY seq DESC LIMIT 1`

// Newest is the time of the newest entry of the daemon's chain; zero without one.
func (s *Store) Newest(ctx context.Context) (at time.Time, err error) {
	err = s.read(ctx, func(from source) error {
		err := from.QueryRowContext(ctx, readNewestTime, s.chain).Scan(instant{&at})
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return at, err
}

// Changed is closed with the next entry of the audit. It is safe for concurrent use.
func (s *Store) Changed() <-chan struct{} { return s.bell.wait() }

// bell wakes everybody who waits for the next entry. The channel is made for the first who waits.
type bell struct {
	mu sync.Mutex
	c  chan struct{} // nil: nobody waits
}

func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
