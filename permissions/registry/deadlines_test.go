package registry

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

func TestTheClockIsSetForward(t *testing.T) {
	t.Run("D6/the clock is set forward", func(t *testing.T) {
		ticking(t, func(t *testing.T, m *room, start func()) {
			start()
			_, r := m.ask(t, m.fresh(nil))
			pass(time.Minute)
			m.jump.Store(int64(10 * 365 * 24 * time.Hour))
			pass(tick)
			if m.state(r.ID) != permissions.Expired {
				t.Errorf("a tick after the jump it is %s", m.state(r.ID))
			}
		})
	})
}

// A clock that is set back prolongs nothing: monotonic time counts as well.
func TestTheClockIsSetBack(t *testing.T) {
	t.Run("D6/the clock is set back", func(t *testing.T) {
		ticking(t, func(t *testing.T, m *room, start func()) {
			start()
			w, r := m.ask(t, m.fresh(nil))
			_, later := m.ask(t, m.fresh(func(r *permissions.Request) { r.Tool, r.Deadline = "later", r.Deadline.Add(time.Hour) }))
			pass(14 * time.Minute)
			m.jump.Store(int64(-time.Hour))
			pass(59 * time.Second)
			if m.state(r.ID) != permissions.Pending {
				t.Errorf("before its time is over it is %s", m.state(r.ID))
			}
			pass(time.Second + tick)
			if state, err := rings(t, w); state != permissions.Expired || err != nil || m.state(r.ID) != permissions.Expired {
				t.Errorf("when its time is over it is %s, %v", m.state(r.ID), err)
			}
			if m.state(later.ID) != permissions.Pending {
				t.Errorf("one with more time is %s", m.state(later.ID))
			}
			m.jump.Store(int64(-24 * time.Hour)) // an expired request stays expired
			pass(time.Minute)
			late := permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall()}}
			if _, err := m.Resolve(t.Context(), r.ID, late); !errors.Is(err, permissions.ErrSettled) {
				t.Errorf("an answer to what has expired: %v", err)
			}
		})
	})
}

// A clock that is set forward, and back again after a request was opened, has lost nothing since the last sweep.
func TestTheClockIsSetForwardAndBackBetweenTwoSweeps(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		m.jump.Store(int64(24 * time.Hour))
		_, r := m.ask(t, m.fresh(forAMinute))
		c, err := m.Resolve(
			t.Context(), r.ID, permissions.Cast{
				Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.For(time.Minute)), At: m.wall()},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		_, other := m.ask(t, m.fresh(func(r *permissions.Request) { r.Tool = "other" }))
		m.jump.Store(int64(23 * time.Hour))
		start()
		pass(time.Minute + 2*tick)
		if m.measures(c.Grants[0].ID) {
			t.Error("what it granted has not ended after its time")
		}
		pass(14 * time.Minute)
		if m.state(other.ID) != permissions.Expired {
			t.Errorf("after its time it is %s", m.state(other.ID))
		}
	})
}

// A request that was opened after the clock was set back is not over by its earlier time, however long a sweep takes
// that began before.
func TestTheClockIsSetBackWhileItIsLookedForWhatIsDue(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, _ func()) {
		store := &meddling{memory: m.store}
		m.Registry.store = store
		var r permissions.Request
		store.once = func() {
			m.jump.Store(int64(-24 * time.Hour))
			_, r = m.ask(t, m.fresh(nil))
		}
		if _, err := m.Sweep(t.Context()); err != nil || m.state(r.ID) != permissions.Pending {
			t.Errorf("before its time it is %s, %v", m.state(r.ID), err)
		}
	})
}

// An answer between two ticks gains no time from the clock either.
func TestAnAnswerAfterTheTimeThatHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom() // nobody enforces deadlines
		_, r := m.ask(t, m.fresh(nil))
		m.jump.Store(int64(-time.Hour))
		pass(15 * time.Minute)
		late := permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall()}}
		if _, err := m.Resolve(t.Context(), r.ID, late); !errors.Is(err, permissions.ErrSettled) || m.state(r.ID) != permissions.Expired {
			t.Errorf("it is %s, %v", m.state(r.ID), err)
		}
	})
}

// TestAnAnswerThatIsTooLateEndsTheRequest: setting the clock back revives nothing that somebody was told is over.
func TestAnAnswerThatIsTooLateEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom() // nobody enforces deadlines
		_, r := m.ask(t, m.fresh(nil))
		allow := func() error {
			_, err := m.Resolve(t.Context(), r.ID, permissions.Cast{
				Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall()},
			})
			return err
		}
		m.jump.Store(int64(time.Hour))
		if err := allow(); !errors.Is(err, permissions.ErrLate) {
			t.Fatalf("after its time: %v", err)
		}
		m.jump.Store(0)
		if err := allow(); !errors.Is(err, permissions.ErrSettled) || m.state(r.ID) != permissions.Expired {
			t.Errorf("it is %s, %v", m.state(r.ID), err)
		}
		if m.log.String() != "nothing" {
			t.Errorf("logged %s", m.log)
		}
	})
}

// A request from before this process has at most its whole time again.
func TestTheClockIsSetBackAcrossARestart(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		old := m.fresh(nil)
		m.store.rows[old.ID] = old
		m.jump.Store(int64(-10 * 365 * 24 * time.Hour))
		m.Measure(old)
		m.Measure(old) // a second time changes nothing
		m.Measure(permissions.Request{ID: "settled", State: permissions.Denied})
		start()
		pass(14 * time.Minute)
		m.jump.Store(int64(-11 * 365 * 24 * time.Hour))
		pass(time.Minute - time.Second)
		if m.state(old.ID) != permissions.Pending {
			t.Errorf("before its time is over it is %s", m.state(old.ID))
		}
		pass(2 * time.Second)
		if m.state(old.ID) != permissions.Expired {
			t.Errorf("after its time is over it is %s", m.state(old.ID))
		}
	})
}

// A machine that is suspended between the readings of the two clocks loses no time to answer.
func TestAMachineThatSleepsWhileADeadlineIsMeasured(t *testing.T) {
	t.Run("D6/a machine that sleeps", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newRoom()
			slept, sleeps := time.Duration(0), false
			sleep := func() {
				if sleeps {
					sleeps, slept = false, 10*time.Minute
				}
			}
			m.Registry = New(m.store, timing.Clock{
				Now:     func() time.Time { defer sleep(); return m.wall().Add(slept) },
				Elapsed: func() time.Duration { defer sleep(); return m.elapsed() + slept },
			}, redeemWindow, slog.New(slog.DiscardHandler))
			r := m.fresh(nil)
			m.store.rows[r.ID] = r
			sleeps = true
			m.Measure(r)
			pass(5*time.Minute - time.Second) // a second before the wall deadline
			in := permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall().Add(slept)}}
			if _, err := m.Resolve(t.Context(), r.ID, in); err != nil || m.state(r.ID) != permissions.Approved {
				t.Errorf("it is %s, %v", m.state(r.ID), err)
			}
		})
	})
}

// A retry with a proposed id may overtake its first try: the time of the stored row counts, not that of the other.
func TestTheTimeMeasuredIsThatOfTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		first := m.fresh(func(r *permissions.Request) { r.Deadline = r.CreatedAt.Add(time.Minute) })
		again := first
		again.Deadline = again.CreatedAt.Add(5 * time.Minute)
		m.store.beforeOpen = func() {
			m.store.beforeOpen = nil
			if _, created, err := m.Open(t.Context(), permissions.Opening{Request: again}); err != nil || !created {
				t.Errorf("created: %t, %v", created, err)
			}
		}
		if r, created, err := m.Open(t.Context(), permissions.Opening{Request: first}); err != nil || created ||
			!r.Deadline.Equal(again.Deadline) {
			t.Fatalf("created: %t, %v", created, err)
		}
		pass(2 * time.Minute)
		in := permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall()}}
		if _, err := m.Resolve(t.Context(), first.ID, in); err != nil || m.state(first.ID) != permissions.Approved {
			t.Errorf("before its deadline it is %s, %v", m.state(first.ID), err)
		}
	})
}

// A request that is settled when its caller arrives is no longer measured.
func TestWhatIsSettledIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		r := m.fresh(func(r *permissions.Request) { r.Key = "k" })
		m.store.beforeOpen = func() {
			m.store.beforeOpen = nil
			if _, _, err := m.Open(t.Context(), permissions.Opening{Request: r}); err != nil {
				t.Error(err)
			}
			if _, err := m.Cancel(t.Context(), r.ID, "fay", "cli"); err != nil {
				t.Error(err)
			}
			m.Measure(r) // as by a try that has not reached the store yet
		}
		if found, _, err := m.Open(t.Context(), permissions.Opening{Request: r}); err != nil || found.State != permissions.Cancelled {
			t.Fatalf("it is %s, %v", found.State, err)
		}
		if n := len(m.deadlines.ends); n != 0 {
			t.Errorf("%d are measured", n)
		}
	})
}

// A clock that was set back before this process started is detected by a request with more than its whole time left.
func TestTheClockWasSetBackBeforeTheStart(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		old := m.fresh(nil)
		m.store.rows[old.ID] = old
		m.jump.Store(int64(-24 * time.Hour))
		m.Measure(old)
		start()
		pass(15*time.Minute - tick)
		if m.state(old.ID) != permissions.Pending {
			t.Errorf("before its time is over it is %s", m.state(old.ID))
		}
		pass(2 * tick)
		if m.state(old.ID) != permissions.Expired {
			t.Errorf("after its time is over it is %s", m.state(old.ID))
		}
	})
}

func TestAStoreThatBreaksWhileAClockIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		_, r := m.ask(t, m.fresh(nil))
		m.jump.Store(int64(-time.Hour))
		pass(16 * time.Minute)
		m.store.beforeApply = func(permissions.ID, permissions.Transition) error {
			return fmt.Errorf("disk full: %w", permissions.ErrBroken)
		}
		if _, err := m.Sweep(t.Context()); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "expire overdue request") {
			t.Errorf("got %v", err)
		}
		if _, err := m.Resolve(t.Context(), r.ID, permissions.Leave{At: m.wall()}); !errors.Is(err, permissions.ErrBroken) {
			t.Errorf("got %v", err)
		}
		m.store.beforeApply = nil
		if _, err := m.Sweep(t.Context()); err != nil || m.state(r.ID) != permissions.Expired {
			t.Errorf("it is %s, %v", m.state(r.ID), err)
		}
	})
}

// A request is due exactly at its monotonic end.
func TestTheMomentWhileAClockIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom() // only this test checks
		_, r := m.ask(t, m.fresh(func(r *permissions.Request) {
			r.EscalateTo, r.EscalateAt = []string{"kim"}, r.CreatedAt.Add(5*time.Minute)
		}))
		m.jump.Store(int64(-time.Hour))
		sweep := func(after time.Duration) permissions.Request {
			t.Helper()
			pass(after)
			if _, err := m.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			return m.store.row(r.ID)
		}
		if got := sweep(5*time.Minute - 1); len(got.Asked) != 2 {
			t.Errorf("a moment before, asked are %v", got.Asked)
		}
		if got := sweep(1); len(got.Asked) != 3 {
			t.Errorf("at the moment, asked are %v", got.Asked)
		}
		if got := sweep(10*time.Minute - 1); got.State != permissions.Pending {
			t.Errorf("a moment before its time is over it is %s", got.State)
		}
		if got := sweep(1); got.State != permissions.Expired {
			t.Errorf("when its time is over it is %s", got.State)
		}
	})
}

// A clock that is corrected gradually was not set back: the wall deadline counts.
func TestAClockThatIsSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom() // only this test checks
		_, r := m.ask(t, m.fresh(nil))
		sweep := func(after time.Duration) permissions.State {
			t.Helper()
			pass(after)
			if _, err := m.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			return m.state(r.ID)
		}
		sweep(10 * time.Minute)
		m.jump.Store(int64(-500 * time.Millisecond))
		sweep(time.Minute)
		m.jump.Store(int64(-time.Second))
		if got := sweep(4*time.Minute + time.Second - 1); got != permissions.Pending {
			t.Errorf("a moment before its deadline it is %s", got)
		}
		if got := sweep(1); got != permissions.Expired {
			t.Errorf("at its deadline it is %s", got)
		}
	})
}

// An extended request is measured again.
func TestTheClockIsSetBackAfterAnExtension(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		_, r := m.ask(t, m.fresh(nil))
		if _, err := m.Resolve(t.Context(), r.ID, permissions.Extend{Until: r.Deadline.Add(5 * time.Minute), At: m.wall()}); err != nil {
			t.Fatal(err)
		}
		m.jump.Store(int64(-time.Hour))
		pass(19 * time.Minute)
		if m.state(r.ID) != permissions.Pending {
			t.Errorf("before its time is over it is %s", m.state(r.ID))
		}
		pass(time.Minute + 2*tick)
		if m.state(r.ID) != permissions.Expired {
			t.Errorf("after its time is over it is %s", m.state(r.ID))
		}
	})
}

// TestAnEscalationToAllLeavesOutWhoIsLocked, and one to somebody by name does not.
func TestAnEscalationToAllLeavesOutWhoIsLocked(t *testing.T) {
	m := newRoom()
	m.Locked = func() []string { return []string{"kim"} }
	_, r := m.ask(t, m.fresh(func(r *permissions.Request) {
		r.EscalateTo, r.EscalateAt = []string{"kim"}, r.CreatedAt.Add(5*time.Minute)
	}))
	for _, to := range [][]string{nil, {"kim"}} {
		c, err := m.Resolve(t.Context(), r.ID, permissions.Escalate{To: to, At: m.wall()})
		if err != nil || slices.Contains(c.After.Asked, "kim") != (to != nil) {
			t.Errorf("to %q: asked are %q, %v", to, c.After.Asked, err)
		}
	}
}

// By monotonic time escalations happen and grants end, though the wall clock was set back.
func TestEscalationAndGrantsWhileAClockIsBehind(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		old := permissions.Grant{ID: "old", CreatedAt: m.wall().Add(-time.Minute), Until: m.wall().Add(time.Minute)}
		always := permissions.Grant{ID: "always", CreatedAt: m.wall()}
		m.store.grants = []permissions.Grant{old} // before anything reads them
		start()
		_, r := m.ask(t, m.fresh(func(r *permissions.Request) {
			r.EscalateTo, r.EscalateAt = []string{"kim"}, r.CreatedAt.Add(5*time.Minute)
		}))
		m.MeasureGrants([]permissions.Grant{old, always}, true)
		if !m.InForce(old, false) || m.InForce(old, true) || m.InForce(always, true) {
			t.Error("with a clock that was wrong at the start, what was given before is not relied on")
		}
		m.jump.Store(int64(-time.Hour))
		pass(time.Minute + 2*tick)
		if got := m.store.row(r.ID); len(got.Asked) != 2 {
			t.Errorf("before more people are to be asked, asked are %v", got.Asked)
		}
		m.store.mu.Lock()
		left := slices.Clone(m.store.grants)
		m.store.mu.Unlock()
		if m.InForce(permissions.Grant{ID: "old"}, false) != true || len(left) != 0 { // ended, and so forgotten
			t.Errorf("left are %v", left)
		}
		pass(4 * time.Minute)
		if got := m.store.row(r.ID); len(got.EscalateTo) != 0 || len(got.Asked) != 3 {
			t.Errorf("asked are %v, later %v", got.Asked, got.EscalateTo)
		}
		pass(time.Minute)
		if got := m.store.row(r.ID); len(got.Asked) != 3 {
			t.Errorf("it escalated again: %v", got.Asked)
		}
	})
}

func TestAStoreThatBreaksWhileMoreIsDueByTheTimeThatHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		_, r := m.ask(t, m.fresh(func(r *permissions.Request) {
			r.EscalateTo, r.EscalateAt = []string{"kim"}, r.CreatedAt.Add(5*time.Minute)
		}))
		m.MeasureGrants([]permissions.Grant{{ID: "old", CreatedAt: m.wall(), Until: m.wall().Add(time.Minute)}}, true)
		m.jump.Store(int64(-time.Hour))
		pass(6 * time.Minute)
		full := fmt.Errorf("disk full: %w", permissions.ErrBroken)
		m.store.beforeApply = func(permissions.ID, permissions.Transition) error { return full }
		if _, err := m.Sweep(t.Context()); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "escalate") {
			t.Errorf("got %v", err)
		}
		m.store.beforeApply = nil
		m.store.brokenGrants = full
		if _, err := m.Sweep(t.Context()); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "end expired grants") {
			t.Errorf("got %v", err)
		}
		m.store.brokenGrants = nil
		if _, err := m.Sweep(t.Context()); err != nil || len(m.store.row(r.ID).Asked) != 3 {
			t.Errorf("asked are %v, %v", m.store.row(r.ID).Asked, err)
		}
	})
}

// More than the whole time is left only if the wall clock was set back, except for the difference allowed between
// clocks.
func TestMoreTimeLeftThanTheWholeIsASetBackClock(t *testing.T) {
	for more, back := range map[time.Duration]bool{
		-time.Second: false, 0: false, 500 * time.Millisecond: false, 500*time.Millisecond + 1: true,
	} {
		m := newRoom()
		if got := m.deadlines.remaining(time.Minute+more, time.Minute); got != time.Minute+min(more, 0) || m.deadlines.back != back {
			t.Errorf("%s more than the whole: %s are left, and it was set back: %v", more, got, m.deadlines.back)
		}
	}
}

// TestAUseByAnotherDaemonPutsTheEndOff: the row says so; this daemon measures from then on.
func TestAUseByAnotherDaemonPutsTheEndOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		g := permissions.Grant{ID: "g", Session: "s", Tool: "Bash", CreatedAt: m.wall(), Until: m.wall().Add(permissions.SessionIdle)}
		m.MeasureGrants([]permissions.Grant{g}, false)
		pass(permissions.SessionIdle - time.Minute)
		g.Until = m.wall().Add(permissions.SessionIdle)
		for range 2 {
			if !m.InForce(g, false) {
				t.Error("it is over")
			}
			pass(permissions.SessionIdle / 2)
		}
		if m.InForce(g, false) {
			t.Error("it is in force after its time")
		}
	})
}
