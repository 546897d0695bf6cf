package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestABadRowOfAListIsLeftOut: one notice, message or copy that cannot be read keeps nobody from the others, and the log says
// so once. A transcript is read whole or not at all.
func TestABadRowOfAListIsLeftOut(t *testing.T) {
	const two = "WITH two (n, at) AS (VALUES (1, 'x'), (2, 5)) INSERT INTO "
	const copied = "copies SELECT (SELECT id FROM requests WHERE state = 'pending'), n, 'telegram', '', n, '', 0, 0, at, '', 0 FROM two"
	for name, c := range map[string]struct {
		rows string
		list func(ctx context.Context, s *Store) (int, error)
	}{
		"D9/notices": {"notices SELECT 'N' || n, 'fay', '', 'stop', '', '', 0, at FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.Notices(ctx, "", 9)) }},
		"D9/strangers": {"strangers SELECT n, 'telegram', n, '', at, 0 FROM two",
			func(ctx context.Context, s *Store) (int, error) {
				met, err := s.Strangers(ctx)
				return length(met.List, err)
			}},
		"D9/messages to an agent": {"messages SELECT n, n, 'one', 'fay', 'hi', at, 0 FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.Unheard(ctx, "one", 9)) }},
		"D9/messages of an agent": {"utterances SELECT n, n, 'one', 'fay', 'cli', 'hi', 0, 0, at FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.Unsaid(ctx, "one", 9)) }},
		"D9/copies in a chat": {copied,
			func(ctx context.Context, s *Store) (int, error) { return length(s.Live(ctx, "telegram", 9)) }},
		"D9/copies that are shown again": {copied,
			func(ctx context.Context, s *Store) (int, error) { return length(s.ShowAgain(ctx, "telegram", false)) }},
		"D9/sessions": {"sessions SELECT n, n, 1, 'one', 'fay', '', 'idle', '', 0, 0, '', '', 1, at, 0, 0, 0, '', 0 FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.OpenSessions(ctx, "", 9)) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			meddle(t, o.Store, two+c.rows)
			s, log := logged(t, o.path)
			for range 2 {
				if n, err := c.list(t.Context(), s); err != nil || n != 1 {
					t.Errorf("%d rows, %v; want the good one", n, err)
				}
			}
			if n := strings.Count(log.String(), "a row is left out"); n != 1 {
				t.Errorf("it says that %d times:\n%s", n, log)
			}
		})
	}
}

func length[T any](all []T, err error) (int, error) { return len(all), err }

// TestRowsThatAreLeftOutHoldUpNoDeadline: D9/as many as are looked at in one go.
func TestRowsThatAreLeftOutHoldUpNoDeadline(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	for range 3 {
		insert(t, o.Store)
	}
	meddle(t, o.Store, "UPDATE requests SET tags = 'x', deadline = 5 WHERE state = 'pending'")
	o.Store, _ = logged(t, o.path)
	good := insert(t, o.Store)
	later := time.Now().Add(2 * time.Hour)
	for range 5 {
		due, _, err := o.Due(t.Context(), later, 3*time.Hour, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range due {
			_, err := o.Apply(t.Context(), d.ID, permissions.Expire{At: later})
			if err != nil && !errors.Is(err, permissions.ErrRow) && !errors.Is(err, permissions.ErrSettled) {
				t.Fatal(err)
			}
		}
	}
	if r, err := o.Read(t.Context(), good.ID); err != nil || r.State != permissions.Expired {
		t.Errorf("the request behind them is %s, %v", r.State, err)
	}
}
