package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
)

// ticking runs a test in virtual time, with Run beside it once start is called.
func ticking(t *testing.T, test func(t *testing.T, m *room, start func())) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		started := false
		test(t, m, func() {
			started = true
			go func() { done <- m.Run(ctx) }()
			synctest.Wait()
		})
		end()
		if started {
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
}

// pass advances the time and lets due events happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (m *room) state(id permissions.ID) permissions.State { return m.store.row(id).State }

func TestADeadlineIsNeverEarlyAndAtMostATickLate(t *testing.T) {
	for _, wait := range []time.Duration{
		time.Millisecond, 700 * time.Millisecond, time.Second, 15*time.Minute + 300*time.Millisecond,
	} {
		ticking(t, func(t *testing.T, m *room, start func()) {
			start()
			pass(123 * time.Millisecond) // out of step with the ticks
			w, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Deadline = r.CreatedAt.Add(wait) }))
			pass(wait - 1)
			if m.state(r.ID) != permissions.Pending {
				t.Fatalf("after %s it is %s", wait-1, m.state(r.ID))
			}
			pass(tick)
			if state, err := rings(t, w); state != permissions.Expired || err != nil {
				t.Fatalf("%s after its deadline it is %s, %v", tick, state, err)
			}
			if late := m.store.row(r.ID).DecidedAt.Sub(r.Deadline); late < 0 || late > tick {
				t.Errorf("it expired %s late", late)
			}
		})
	}
}

// A deadline within a tick is met without waiting for the tick, whatever Run was waiting for.
func TestAnEarlierDeadlineWakesTheClock(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		far, _ := m.ask(t, m.fresh(func(r *permissions.Request) { r.Deadline, r.Tool = r.CreatedAt.Add(time.Hour), "far" }))
		start()
		_, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Deadline = r.CreatedAt.Add(20 * time.Millisecond) }))
		pass(20 * time.Millisecond)
		if m.state(r.ID) != permissions.Expired {
			t.Errorf("it is %s", m.state(r.ID))
		}
		silent(t, far)
	})
}

func TestWhatIsOverdueAtTheStartExpiresFirst(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		old, question := m.fresh(nil), clarification()
		question.ID, question.Deadline = permissions.NewID(m.wall()), m.wall().Add(-time.Hour)
		old.Deadline = m.wall().Add(-time.Minute)
		m.store.rows[old.ID], m.store.rows[question.ID] = old, question
		start() // at the same instant
		if m.state(old.ID) != permissions.Expired || m.state(question.ID) != permissions.Answered || !m.store.row(question.ID).TimedOut {
			t.Errorf("they are %s and %s", m.state(old.ID), m.state(question.ID))
		}
	})
}

// A grant is in force until its time has passed and, after a start with a wrong clock, only if it was given since.
func TestAGrantIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		m.MeasureGrants([]permissions.Grant{{ID: "always"}, {ID: "short", CreatedAt: noon, Until: noon.Add(time.Minute)}}, false)
		check := func(id permissions.ID, since, want bool) {
			t.Helper()
			if got := m.InForce(permissions.Grant{ID: id}, since); got != want {
				t.Errorf("%s, since the start %v: %v", id, since, got)
			}
		}
		check("always", true, true)
		check("short", true, true)
		check("of before", false, true)
		check("of before", true, false)
		m.usedGrants([]permissions.ID{"always", "short"}) // which do not end by not being used
		check("always", true, true)
		check("short", true, true)
		pass(time.Minute)
		check("always", true, true)
		check("short", false, false)
		if m.InForce(permissions.Grant{ID: "short", Until: noon.Add(time.Hour)}, false) {
			t.Error("what was given until then is in force later, as if it had been used")
		}
	})
}

func TestGrantsEnd(t *testing.T) {
	m := newRoom()
	later := m.wall().Add(time.Hour)
	for range dueBatch {
		m.store.grants = append(m.store.grants, permissions.Grant{ID: "over", CreatedAt: m.wall(), Until: m.wall()})
	}
	m.store.grants = append(m.store.grants, permissions.Grant{ID: "later", CreatedAt: m.wall(), Until: later})
	m.MeasureGrants(m.store.grants, false)
	if next, err := m.Sweep(t.Context()); err != nil || !next.Equal(later) {
		t.Errorf("next at %s, %v", next, err)
	}
	if len(m.store.grants) != 1 || m.InForce(permissions.Grant{ID: "over"}, true) || !m.InForce(permissions.Grant{ID: "later"}, true) {
		t.Errorf("left are %v", m.store.grants)
	}
	select {
	case <-m.Noticed():
	default:
		t.Error("nobody is told to look for notices")
	}
	m.store.brokenGrants = permissions.ErrBroken
	if _, err := m.Sweep(t.Context()); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "end expired grants") {
		t.Errorf("got %v", err)
	}
}

// People are notified of grants that have ended, by either clock, and only of those.
func TestNoticesAreLookedForWhenGrantsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		sweep := func(what string, want bool) {
			t.Helper()
			if _, err := m.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-m.Noticed():
				if !want {
					t.Errorf("%s: somebody is told", what)
				}
			default:
				if want {
					t.Errorf("%s: nobody is told", what)
				}
			}
		}
		sweep("nothing was granted", false)
		m.store.grants = []permissions.Grant{{ID: "over", CreatedAt: m.wall(), Until: m.wall()}} // not measured
		sweep("it is over on the wall", true)
		spent := permissions.Grant{ID: "spent", CreatedAt: m.wall(), Until: m.wall().Add(time.Minute)}
		gone := permissions.Grant{ID: "gone", CreatedAt: m.wall(), Until: m.wall().Add(time.Minute)}
		m.store.grants = []permissions.Grant{spent}
		m.MeasureGrants([]permissions.Grant{spent, gone}, false)
		pass(time.Second)
		sweep("it is not over", false)
		m.jump.Store(int64(-time.Hour))
		pass(time.Minute - time.Second - 1)
		sweep("it is not over by the time that has passed", false)
		pass(1)
		sweep("it is over by the time that has passed", true)
		m.MeasureGrants([]permissions.Grant{gone}, false) // revoked meanwhile
		pass(time.Minute)
		sweep("one that is no more", false)
	})
}

func TestABrokenStoreIsTriedAgainAtTheNextTick(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		w, r := m.ask(t, m.fresh(nil))
		start()
		if m.log.String() != "nothing" {
			t.Errorf("logged %s", m.log)
		}
		m.store.breakDown(fmt.Errorf("disk full: %w", permissions.ErrBroken))
		pass(time.Hour)
		silent(t, w)
		if log := m.log.String(); !strings.Contains(log, "process due deadlines") || !strings.Contains(log, "disk full") {
			t.Errorf("logged %s", log)
		}
		m.store.breakDown(nil)
		pass(tick)
		if state, err := rings(t, w); state != permissions.Expired || err != nil || m.state(r.ID) != permissions.Expired {
			t.Errorf("got %s, %v", state, err)
		}
	})
}

func TestAStoreThatBreaksInTheMiddleOfASweep(t *testing.T) {
	m := newRoom()
	for range downAfter {
		a := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Minute) })
		m.store.rows[a.ID] = a
	}
	m.store.beforeApply = func(permissions.ID, permissions.Transition) error {
		return fmt.Errorf("disk full: %w", permissions.ErrBroken)
	}
	if _, err := m.Sweep(t.Context()); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "apply due events") {
		t.Errorf("got %v", err)
	}
	m.store.breakDown(permissions.ErrBroken)
	if _, err := m.Sweep(t.Context()); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "list due events") {
		t.Errorf("got %v", err)
	}
}

// One row that cannot be settled does not keep the others pending.
func TestOneBadRowDoesNotHoldUpTheOthers(t *testing.T) {
	m := newRoom()
	var bad permissions.ID
	for i := range 10 {
		r := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Duration(10-i) * time.Minute) })
		m.store.rows[r.ID] = r
		if i == 0 {
			bad = r.ID
		}
	}
	odd := fmt.Errorf("odd row: %w", permissions.ErrBroken) // like a damaged row
	m.store.beforeApply = func(id permissions.ID, _ permissions.Transition) error {
		if id == bad {
			return odd
		}
		return nil
	}
	if _, err := m.Sweep(t.Context()); !errors.Is(err, odd) || !strings.Contains(err.Error(), string(bad)) {
		t.Errorf("got %v", err)
	}
	for id, r := range m.store.rows {
		if (r.State == permissions.Pending) != (id == bad) {
			t.Errorf("%s is %s", id, r.State)
		}
	}
}

// D9/a row whose id is unreadable is listed as due, and not found by its id.
func TestARowWhoseIDCannotBeReadHoldsUpNoSweep(t *testing.T) {
	m := newRoom()
	good := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Minute) })
	bad := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Hour) })
	m.store.rows[good.ID], m.store.rows["another"] = good, bad
	m.store.beforeApply = func(id permissions.ID, _ permissions.Transition) error {
		if id == bad.ID {
			delete(m.store.rows, "another") // due events are listed once
			return permissions.Unknown(string(id))
		}
		return nil
	}
	if _, err := m.Sweep(t.Context()); err != nil || m.store.rows[good.ID].State == permissions.Pending {
		t.Errorf("%s, %v", m.store.rows[good.ID].State, err)
	}
}

func TestASweepTakesEverythingThatIsDue(t *testing.T) {
	m := newRoom()
	later := m.fresh(nil)
	m.store.rows[later.ID] = later
	for range 2*dueBatch + 1 {
		r := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Minute) })
		m.store.rows[r.ID] = r
	}
	next, err := m.Sweep(t.Context())
	if err != nil || !next.Equal(later.Deadline) {
		t.Fatalf("next at %s, %v", next, err)
	}
	for id, r := range m.store.rows {
		if (r.State == permissions.Pending) != (id == later.ID) {
			t.Fatalf("%s is %s", id, r.State)
		}
	}
	delete(m.store.rows, later.ID)
	if next, err := m.Sweep(t.Context()); err != nil || !next.IsZero() {
		t.Errorf("with nothing to come, next at %s, %v", next, err)
	}
}

// A person answers after a request was listed as due and before it expires.
func TestSomebodyIsFasterThanTheDeadline(t *testing.T) {
	m := newRoom()
	r := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Minute) })
	m.store.rows[r.ID] = r
	m.store.afterDue = func() {
		at := r.Deadline.Add(-time.Second)
		if _, err := m.Resolve(
			t.Context(), r.ID, permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Deny, At: at}},
		); err != nil {
			t.Error(err)
		}
		m.store.afterDue = nil
	}
	if _, err := m.Sweep(t.Context()); err != nil || m.state(r.ID) != permissions.Denied {
		t.Errorf("it is %s, %v", m.state(r.ID), err)
	}
}

func TestAnApprovalThatNobodyCollectsLapses(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		later := func(r *permissions.Request) { r.Deadline = m.wall().Add(2 * redeemWindow) } // nothing else wakes the clock before
		_, r := m.ask(t, m.fresh(later))
		_, other := m.ask(t, m.fresh(func(r *permissions.Request) { r.Tool = "other"; later(r) }))
		synctest.Wait()
		m.decide(t, r.ID, permissions.Allow(permissions.Once))
		m.decide(t, other.ID, permissions.Allow(permissions.Once))
		if _, err := m.Resolve(t.Context(), other.ID, permissions.Use{At: m.wall()}); err != nil {
			t.Fatal(err)
		}
		pass(redeemWindow - 1)
		if !m.store.row(r.ID).LapsedAt.IsZero() {
			t.Error("it lapsed early")
		}
		pass(tick)
		if m.store.row(r.ID).LapsedAt.IsZero() || !m.store.row(other.ID).LapsedAt.IsZero() {
			t.Errorf("lapsed at %s and %s", m.store.row(r.ID).LapsedAt, m.store.row(other.ID).LapsedAt)
		}
	})
}

func TestAShorterRedeemWindowHoldsAtOnce(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		_, r := m.ask(t, m.fresh(nil))
		m.decide(t, r.ID, permissions.Allow(permissions.Once))
		pass(2 * time.Minute)
		m.SetRedeemWindow(time.Minute)
		synctest.Wait()
		if m.store.row(r.ID).LapsedAt.IsZero() {
			t.Error("it has not lapsed")
		}
	})
}

func TestRunEndsWithItsContextInTheMiddleOfAFailure(t *testing.T) {
	m := newRoom()
	ctx, end := context.WithCancel(t.Context())
	r := m.fresh(func(r *permissions.Request) { r.Deadline = m.wall().Add(-time.Minute) })
	m.store.rows[r.ID] = r
	m.store.beforeApply = func(permissions.ID, permissions.Transition) error {
		end()
		return ctx.Err()
	}
	if err := m.Run(ctx); err != nil || m.log.String() != "nothing" {
		t.Errorf("got %v, logged %s", err, m.log)
	}
}

// While nothing is due, and nothing will be, the clock does not read the store.
func TestAnIdleClockDoesNotRead(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		reads := 0
		m.store.afterDue = func() { reads++ }
		start()
		pass(time.Hour)
		if reads != 1 {
			t.Errorf("an idle hour read the store %d times", reads)
		}
	})
}
