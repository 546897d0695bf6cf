package store

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/internal/pgtest"
	"github.com/daycared/daycared/permissions"
)

// TestACommitWithoutAnAnswerIsNeitherLostNorDoubled, whichever of the two was lost on the way.
func TestACommitWithoutAnAnswerIsNeitherLostNorDoubled(t *testing.T) {
	for name, lost := range map[string]pgtest.Loss{"the commit": pgtest.TheCommit, "the answer": pgtest.TheAnswer} {
		t.Run(name, func(t *testing.T) {
			url := emptyDatabase(t)
			way := pgtest.NewProxy(t, url)
			s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), way.URL)
			way.Lose(lost)
			r := insert(t, s)
			way.Lose(lost)
			c, err := s.Apply(t.Context(), r.ID, fayAllows())
			if err != nil || c.After.State != permissions.Approved {
				t.Errorf("it is %s, %v", c.After.State, err)
			}
			if !way.HasLost() {
				t.Error("no commit was lost")
			}
			got := query(t, url, `SELECT STRING_AGG(type, ' ' ORDER BY seq) FROM audit WHERE request <> ''`)
			if strings.Count(got, "CREATED") != 1 || strings.Count(got, "SETTLED") != 1 {
				t.Errorf("the audit has %s", got)
			}
			if _, err := s.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestARequestWaitsFiveTimesForPostgreSQL: three times when it is asked, and twice when it is decided.
func TestARequestWaitsFiveTimesForPostgreSQL(t *testing.T) {
	way := pgtest.NewProxy(t, emptyDatabase(t))
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), way.URL)
	fewest := int64(math.MaxInt64)
	for range 4 { // the first prepares the statements; in a later one the daemon may say that it runs
		before := way.Trips()
		r := insert(t, s)
		if _, err := s.Apply(t.Context(), r.ID, fayAllows()); err != nil {
			t.Fatal(err)
		}
		fewest = min(fewest, way.Trips()-before)
	}
	if fewest != 5 {
		t.Errorf("it waited %d times", fewest)
	}
}

// TestADecisionAfterOthersWroteWaitsThreeTimesForPostgreSQL: to begin, with what others may have changed, for whether the approval's
// grants are in force, and to commit. It sees what they wrote.
func TestADecisionAfterOthersWroteWaitsThreeTimesForPostgreSQL(t *testing.T) {
	url := emptyDatabase(t)
	way := pgtest.NewProxy(t, url)
	path := filepath.Join(t.TempDir(), "daycared.db")
	other, s := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, way.URL)
	fewest := int64(math.MaxInt64)
	for range 4 {
		r := insert(t, other)
		if err := s.followOnce(t.Context(), func(context.Context, []permissions.Entry) error { return nil }); err != nil { // as Follow does
			t.Fatal(err)
		}
		before := way.Trips()
		c, err := s.Apply(t.Context(), r.ID, fayAllowsACall())
		if err != nil || c.After.State != permissions.Approved || c.After.UsedAt.IsZero() {
			t.Fatalf("it is %+v, %v", c.After, err)
		}
		fewest = min(fewest, way.Trips()-before)
		if _, err := other.Apply(t.Context(), r.ID, permissions.Use{At: c.After.UsedAt}); err == nil {
			t.Fatal("the other daemon used it again")
		}
	}
	if fewest != 3 {
		t.Errorf("it waited %d times", fewest)
	}
}

// TestAWriteReadsWhatItWrote, although what others wrote was read ahead.
func TestAWriteReadsWhatItWrote(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	other, s := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	r := insert(t, other)
	if err := s.followOnce(t.Context(), func(context.Context, []permissions.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	left, enough := -1, errors.New("enough")
	err := s.write(t.Context(), func(ctx context.Context, w *tx) (err error) {
		one := 0
		w.returning(ctx, &one, `UPDATE requests SET state = 'denied' WHERE id = $1 RETURNING 1`, r.ID)
		if left, err = count(ctx, w, countPending); err != nil {
			return err
		}
		return enough
	})
	if !errors.Is(err, enough) || left != 0 {
		t.Errorf("%d requests wait, %v", left, err)
	}
}

// TestAStatementThatFailsInTheEndFailsItsWriteAlone, although it is sent with the statements of others.
func TestAStatementThatFailsInTheEndFailsItsWriteAlone(t *testing.T) {
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), emptyDatabase(t))
	write := func(do func(ctx context.Context, t *tx)) func() error {
		return func() error {
			return s.write(t.Context(), func(ctx context.Context, w *tx) error {
				s.append(ctx, w, permissions.Record{Type: "EXEC"})
				do(ctx, w)
				return nil
			})
		}
	}
	add := func(n int) func() error {
		return write(func(ctx context.Context, w *tx) { w.exec(ctx, "UPDATE meta SET strangers = strangers + $1", n) })
	}
	errs := grouped(t, s, add(1),
		write(func(ctx context.Context, w *tx) { w.exec(ctx, "INSERT INTO moved VALUES ('a', NULL)") }),
		add(10),
		write(func(ctx context.Context, w *tx) { w.change(ctx, "UPDATE meta SET strangers = 7 WHERE strangers < 0") }),
		write(func(ctx context.Context, w *tx) { // nobody looks at its error
			w.exec(ctx, "INSERT INTO moved VALUES ('a', NULL)")
			_ = w.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
			w.err = nil
		}),
		add(100))
	for i, fails := range []bool{false, true, false, true, true, false} {
		if errors.Is(errs[i], permissions.ErrBroken) != fails || !fails && errs[i] != nil {
			t.Errorf("write %d: %v", i, errs[i])
		}
	}
	n := 0
	if err := s.writer.QueryRowContext(t.Context(), "SELECT strangers FROM meta").Scan(&n); err != nil || n != 111 {
		t.Errorf("the rows add up to %d, %v", n, err)
	}
	if got := len(actors(t, s)); got != 3 {
		t.Errorf("%d entries", got)
	}
}
