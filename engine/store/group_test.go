package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// grouped runs writes as one group: they queue in this order while another write has the turn.
func grouped(t *testing.T, s *Store, writes ...func() error) []error {
	t.Helper()
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	err := s.turn(t.Context(), func(context.Context, *sql.Conn) error {
		for i, write := range writes {
			all.Go(func() { errs[i] = write() })
			await(s, i+1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all.Wait()
	return errs
}

// await returns when so many writes are queued.
func await(s *Store, n int) {
	for queued := -1; queued != n; runtime.Gosched() {
		s.writes.mu.Lock()
		queued = len(s.writes.queued)
		s.writes.mu.Unlock()
	}
}

func (s *Store) exec(ctx context.Context, text string, fail error) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.ExecContext(ctx, text); err != nil {
			return err
		}
		s.append(ctx, t, permissions.Record{Type: "EXEC", Actor: text})
		return fail
	})
}

// TestNothingIsWrittenAfterAStatementThatFailed: SQLite may have rolled the transaction back with it, as OR ROLLBACK does here.
// The write fails with the first error, although do returns none.
func TestNothingIsWrittenAfterAStatementThatFailed(t *testing.T) {
	s := newStore(t)
	insert(t, s)
	before := actors(t, s)
	err := s.write(t.Context(), func(ctx context.Context, w *tx) error {
		w.exec(ctx, "INSERT OR ROLLBACK INTO requests SELECT * FROM requests")
		s.append(ctx, w, permissions.Record{Type: "EXEC", Actor: "what followed"})
		w.change(ctx, "UPDATE meta SET strangers = 7")
		w.returning(ctx, new(int64), "UPDATE meta SET strangers = 7 RETURNING strangers")
		w.fail(errors.New("a later error"))
		return nil
	})
	var failed sqlite3.Error
	if !errors.As(err, &failed) || failed.Code != sqlite3.ErrConstraint {
		t.Errorf("the write returned %v", err)
	}
	if after := actors(t, s); !slices.Equal(after, before) {
		t.Errorf("the audit was %v and is %v", before, after)
	}
	strangers := 0
	if err := s.readers.QueryRowContext(t.Context(), "SELECT strangers FROM meta").Scan(&strangers); err != nil || strangers != 0 {
		t.Errorf("%d strangers, %v", strangers, err)
	}
}

// actors are those in the audit, which must be valid.
func actors(t *testing.T, s *Store) (all []string) {
	t.Helper()
	if _, err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Audit(t.Context(), "", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Actor)
	}
	return all
}

// TestWritesOfAGroupShareACommit and have separate results: a refused one leaves nothing, not even in the audit.
func TestWritesOfAGroupShareACommit(t *testing.T) {
	s := newStore(t)
	r := insert(t, s)
	refused := errors.New("refused")
	first, late := fayAllows(), fayAllows()
	late.Vote.By = "bob"
	var won, lost permissions.Change
	errs := grouped(t, s,
		func() (err error) { won, err = s.Apply(t.Context(), r.ID, first); return err },
		func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = strangers + 1", nil) },
		func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = strangers + 100", refused) },
		func() error { return s.exec(t.Context(), "INSERT INTO moved VALUES ('a', NULL)", nil) },
		func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = strangers + 10", nil) },
		func() (err error) { lost, err = s.Apply(t.Context(), r.ID, late); return err },
	)
	if errs[0] != nil || errs[1] != nil || errs[4] != nil || !won.Settled() {
		t.Errorf("the good ones: %v", errs)
	}
	if !errors.Is(errs[2], refused) || !errors.Is(errs[3], permissions.ErrBroken) {
		t.Errorf("the refused one: %v; the one that breaks a rule of the table: %v", errs[2], errs[3])
	}
	if !errors.Is(errs[5], permissions.ErrSettled) || lost.After.DecidedBy != "fay" {
		t.Errorf("the second decision: %v, decided by %q", errs[5], lost.After.DecidedBy)
	}
	n := 0
	if err := s.writer.QueryRowContext(t.Context(), "SELECT strangers FROM meta").Scan(&n); err != nil || n != 11 {
		t.Errorf("the rows add up to %d, %v", n, err)
	}
	const one, ten = "UPDATE meta SET strangers = strangers + 1", "UPDATE meta SET strangers = strangers + 10"
	if diff := cmp.Diff([]string{"uid:1000", "fay", one, ten}, actors(t, s)); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
}

// TestAWriteOfAGroupHasAValueOnlyIfItSucceeds: what a failed write had computed is not returned.
func TestAWriteOfAGroupHasAValueOnlyIfItSucceeds(t *testing.T) {
	s, refused := newStore(t), errors.New("refused")
	var good, bad int
	value := func(into *int, fail error) func() error {
		return func() (err error) {
			*into, err = writing(t.Context(), s, func(context.Context, *tx) (int, error) { return 7, fail })
			return err
		}
	}
	errs := grouped(t, s, value(&good, nil), value(&bad, refused))
	if errs[0] != nil || good != 7 || !errors.Is(errs[1], refused) || bad != 0 {
		t.Errorf("%d, %v; of the refused one %d, %v", good, errs[0], bad, errs[1])
	}
}

// TestAGroupIsWrittenApart when one fails after it wrote: the others run again, and their second results count.
func TestAGroupIsWrittenApart(t *testing.T) {
	s := newStore(t)
	opening := newAsk()
	refused, runs := errors.New("refused"), 0
	var first, second permissions.Request
	var created, again bool
	open := func(r *permissions.Request, created *bool) func() error {
		return func() (err error) { *r, *created, err = s.Open(t.Context(), opening); return err }
	}
	errs := grouped(t, s,
		open(&first, &created),
		open(&second, &again),
		func() error {
			return s.write(t.Context(), func(ctx context.Context, t *tx) error {
				runs++
				_, err := t.ExecContext(ctx, "UPDATE meta SET strangers = strangers + 1")
				return errors.Join(err, refused)
			})
		},
	)
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], refused) || runs != 2 {
		t.Errorf("%v, after %d runs", errs, runs)
	}
	if !created || again || first.ID != opening.Request.ID || second.Number != first.Number {
		t.Errorf("opened %s, %t, then %s, %t", first.ID, created, second.ID, again)
	}
	if diff := cmp.Diff([]string{"uid:1000"}, actors(t, s)); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
	if n, err := s.CountPending(t.Context()); err != nil || n != 1 || s.ledger.pending != 1 {
		t.Errorf("%d are pending, %d in the ledger, %v", n, s.ledger.pending, err)
	}
}

// TestAGroupWhoseFileFailsIsUndone completely: no caller is told that something was stored that was not.
func TestAGroupWhoseFileFailsIsUndone(t *testing.T) {
	s := newStore(t)
	a, b := insert(t, s), insert(t, s)
	before := actors(t, s)
	allow := func(r permissions.Request) func() error {
		return func() error { _, err := s.Apply(t.Context(), r.ID, fayAllows()); return err }
	}
	errs := grouped(t, s,
		allow(a),
		func() error { return s.exec(t.Context(), "PRAGMA max_page_count = 1", nil) }, // no more pages than exist
		func() error { return s.exec(t.Context(), "INSERT INTO moved VALUES (hex(zeroblob(1000000)), '')", nil) },
		allow(b),
	)
	for i, err := range errs {
		if !errors.Is(err, permissions.ErrBroken) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	for _, r := range []permissions.Request{a, b} {
		if got, err := s.Read(t.Context(), r.ID); err != nil || got.State != permissions.Pending {
			t.Errorf("the row is %s, %v", got.State, err)
		}
	}
	if diff := cmp.Diff(before, actors(t, s)); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
	if err := s.exec(t.Context(), "PRAGMA max_page_count = 1000000", nil); err != nil {
		t.Fatal(err)
	}
	if err := allow(a)(); err != nil {
		t.Errorf("the store does not go on: %v", err)
	}
}

// TestACancelledWriteIsNotStarted; a caller whose write has begun gets its result.
func TestACancelledWriteIsNotStarted(t *testing.T) {
	s := newStore(t)
	a, b := insert(t, s), insert(t, s)
	leaving, leave := context.WithCancel(t.Context())
	begun, end := context.WithCancel(t.Context())
	var wrote, decided, left error
	var all, gone sync.WaitGroup
	err := s.turn(t.Context(), func(context.Context, *sql.Conn) error {
		all.Go(func() { wrote = s.write(begun, func(context.Context, *tx) error { end(); return nil }) })
		await(s, 1)
		all.Go(func() { _, decided = s.Apply(begun, a.ID, fayAllows()) })
		await(s, 2)
		gone.Go(func() { _, left = s.Apply(leaving, b.ID, fayAllows()) })
		await(s, 3)
		leave()
		gone.Wait()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if wrote != nil || decided != nil || !errors.Is(left, context.Canceled) {
		t.Errorf("%v, %v, who left: %v", wrote, decided, left)
	}
	for id, want := range map[permissions.ID]permissions.State{a.ID: permissions.Approved, b.ID: permissions.Pending} {
		if got, err := s.Read(t.Context(), id); err != nil || got.State != want {
			t.Errorf("the row is %s, want %s, %v", got.State, want, err)
		}
	}
}

// TestAWriteThatPanicsEndsAlone: its caller panics, on whichever goroutine it ran, and the rest of the group is written.
func TestAWriteThatPanicsEndsAlone(t *testing.T) {
	s := newStore(t)
	before, r, after := insert(t, s), insert(t, s), insert(t, s)
	allow := func(r permissions.Request) func() error {
		return func() error { _, err := s.Apply(t.Context(), r.ID, fayAllows()); return err }
	}
	panics := func() (err error) {
		defer func() {
			if fault, _ := recover().(string); strings.HasPrefix(fault, "a fault of ours\n") {
				err = errors.New("it panicked")
			}
		}()
		return s.write(t.Context(), func(ctx context.Context, t *tx) error {
			s.append(ctx, t, permissions.Record{Type: "EXEC", Actor: "who panics"})
			panic("a fault of ours")
		})
	}
	was := len(actors(t, s))
	errs := append(grouped(t, s, panics, allow(r)), grouped(t, s, allow(before), panics, allow(after))...)
	if errs[0] == nil || errs[1] != nil || errs[2] != nil || errs[3] == nil || errs[4] != nil {
		t.Errorf("%v", errs)
	}
	if diff := cmp.Diff([]string{"fay", "fay", "fay"}, actors(t, s)[was:]); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
}

// whenWritten is a log that calls a function for every line.
type whenWritten func()

func (w whenWritten) Write(line []byte) (int, error) {
	w()
	return len(line), nil
}

// TestNobodyWritesAfterDamageWasFound, including writes that were queued.
func TestNobodyWritesAfterDamageWasFound(t *testing.T) {
	s := newStore(t)
	r := insert(t, s)
	var waiting []int
	s.log = slog.New(slog.NewTextHandler(whenWritten(func() {
		s.writes.mu.Lock()
		waiting = append(waiting, len(s.writes.queued))
		s.writes.mu.Unlock()
	}), nil))
	corrupt := func() error {
		return s.write(t.Context(), func(context.Context, *tx) error { return sqlite3.Error{Code: sqlite3.ErrCorrupt} })
	}
	next := func() error { return s.turn(t.Context(), func(context.Context, *sql.Conn) error { return nil }) }
	allow := func() error { _, err := s.Apply(t.Context(), r.ID, fayAllows()); return err }
	for i, err := range grouped(t, s, allow, corrupt, next) {
		if !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if diff := cmp.Diff([]int{1}, waiting); diff != "" {
		t.Errorf("who still waited when the damage was noted, each time (-want +got):\n%s", diff)
	}
}

// TestWhatACommitDidAlthoughItFailedIsTold to audit followers with the next write.
func TestWhatACommitDidAlthoughItFailedIsTold(t *testing.T) {
	s := newStore(t)
	insert(t, s)
	err := s.turn(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
		lost := &tx{conn: conn, ledger: s.ledger, rows: changes{rows: s.rows}}
		s.stale = true
		return s.transact(ctx, lost, nil, func(int64) error {
			s.append(ctx, lost, permissions.Record{Type: "LOST"})
			s.tried = lost.head
			return lost.err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	changed, refused := s.Changed(), errors.New("refused")
	if err := s.write(t.Context(), func(context.Context, *tx) error { return refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told of what the audit holds")
	}
}

// TestAnIdleWriteGoesWithTheNext write, or runs alone if there is none. If its caller leaves, it is not written.
func TestAnIdleWriteGoesWithTheNext(t *testing.T) {
	s := newStore(t)
	var idle, next *tx
	var all sync.WaitGroup
	err := s.turn(t.Context(), func(context.Context, *sql.Conn) error {
		all.Go(func() {
			if err := s.writeLowPriority(t.Context(), func(_ context.Context, t *tx) error { idle = t; return nil }); err != nil {
				t.Error(err)
			}
		})
		for waits := false; !waits; runtime.Gosched() {
			s.writes.mu.Lock()
			waits = len(s.writes.lowPriority)+len(s.writes.queued) == 1
			s.writes.mu.Unlock()
		}
		all.Go(func() {
			if err := s.write(t.Context(), func(_ context.Context, t *tx) error { next = t; return nil }); err != nil {
				t.Error(err)
			}
		})
		for wait := true; wait; runtime.Gosched() {
			s.writes.mu.Lock()
			wait = len(s.writes.lowPriority)+len(s.writes.queued) < 2
			s.writes.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if all.Wait(); idle == nil || idle != next {
		t.Errorf("the idle write was in transaction %p, the next in %p", idle, next)
	}
	alone := false
	err = s.writeLowPriority(t.Context(), func(context.Context, *tx) error { alone = true; return nil })
	if !alone || err != nil {
		t.Errorf("by itself: %v, %v", alone, err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	err = s.writeLowPriority(left, func(context.Context, *tx) error { t.Error("it was written"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
}

// TestTheGroupOfAnEmptyLine starts at once and takes low-priority writes along, up to the group's limit.
func TestTheGroupOfAnEmptyLine(t *testing.T) {
	do := func(context.Context, *tx) error { return nil }
	var l writeQueue
	for range maxGroup {
		l.lowPriority = append(l.lowPriority, &writeJob{do: do})
	}
	last := l.lowPriority[maxGroup-1]
	first := &writeJob{do: do}
	if err := l.enter(t.Context(), first); err != nil || first.turn != nil || !l.busy {
		t.Errorf("it waits: %v, %v", first.turn, err)
	}
	if len(first.group) != maxGroup || first.group[0] != first || len(l.lowPriority) != 1 || l.lowPriority[0] != last {
		t.Errorf("a group of %d, and %d idle ones are left", len(first.group), len(l.lowPriority))
	}
	waits := &writeJob{do: do}
	l.queued = append(l.queued, waits)
	if l.remove(first) || len(l.queued) != 1 {
		t.Error("what does not wait any more is found")
	}
	if !l.remove(waits) || len(l.queued) > 0 || !l.remove(last) || len(l.lowPriority) > 0 {
		t.Error("what waits is not found")
	}
}

// TestWhoWasWrittenByAnotherIsDone: by then the connection and the turn belong to the next.
func TestWhoWasWrittenByAnotherIsDone(t *testing.T) {
	s, done := newStore(t), make(chan struct{})
	errs := grouped(t, s,
		func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = strangers + 1", nil) },
		func() error {
			defer close(done)
			return s.exec(t.Context(), "UPDATE meta SET strangers = strangers + 10", nil)
		},
		func() error {
			return s.turn(t.Context(), func(context.Context, *sql.Conn) error {
				select {
				case <-done:
					s.writes.mu.Lock()
					defer s.writes.mu.Unlock()
					if !s.writes.busy {
						return errors.New("the second write has given the turn away")
					}
					return nil
				case <-time.After(5 * time.Second):
					return errors.New("the second write has not returned")
				}
			})
		},
	)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestWhenTheAuditHeadIsReadAgain: after a failed commit, not after a successful one or a deliberate rollback. Audit
// followers are notified of new entries only.
func TestWhenTheAuditHeadIsReadAgain(t *testing.T) {
	s := newStore(t)
	refused := errors.New("refused")
	for _, c := range []struct {
		name        string
		write       func() error
		stale, told bool
	}{
		{"written", func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = 1", nil) }, false, true},
		{"nothing to audit", func() error { return s.write(t.Context(), func(context.Context, *tx) error { return nil }) }, false, false},
		{"refused", func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = 2", refused) }, false, false},
		{"failed", func() error {
			return s.write(t.Context(), func(context.Context, *tx) error { return sqlite3.Error{Code: sqlite3.ErrIoErr} })
		}, true, false},
		{"read again", func() error { return s.exec(t.Context(), "UPDATE meta SET strangers = 3", nil) }, false, true},
	} {
		changed := s.Changed()
		err := c.write()
		if (err != nil) != (c.name == "refused" || c.name == "failed") {
			t.Errorf("%s: %v", c.name, err)
		}
		told := false
		select {
		case <-changed:
			told = true
		default:
		}
		if s.stale != c.stale || told != c.told {
			t.Errorf("%s: to be read again %t, told %t", c.name, s.stale, told)
		}
	}
}
