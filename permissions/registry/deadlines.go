package registry

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// deadlines enforces deadlines on wall and monotonic time, so that a clock that is set back prolongs nothing; the
// earlier wins. The registry's lock guards it.
type deadlines struct {
	clock  timing.Clock
	ends   map[permissions.ID]time.Duration // of pending requests, monotonic
	more   map[permissions.ID]time.Duration // the escalations, monotonic
	grants map[permissions.ID]measured
	wall   time.Time // the wall clock at the last comparison
	passed time.Duration
	back   bool // the wall clock was set back since the start
}

// measured is the end of a grant.
type measured struct {
	end   time.Duration // monotonic
	old   bool          // granted before this process started
	until time.Time     // as the grant said
	idle  time.Duration // if not 0: the end is so long after the last use
}

// setBackBy is how far the wall clock may fall behind between two comparisons without counting as set back.
const setBackBy = 500 * time.Millisecond

func newDeadlines(c timing.Clock) deadlines {
	return deadlines{
		clock: c, ends: map[permissions.ID]time.Duration{}, more: map[permissions.ID]time.Duration{}, grants: map[permissions.ID]measured{},
		wall: c.Now().Round(0), passed: c.Elapsed(),
	}
}

// compare compares both clocks. It runs whenever a wall time begins to be measured, since a clock that is set forward
// before that and back after it may have lost nothing in the end. The order of reading makes a delay between the two
// extend an end, never shorten it.
func (s *deadlines) compare() (wall time.Time, passed time.Duration) {
	wall, passed = s.clock.Now().Round(0), s.clock.Elapsed()
	if lost := (passed - s.passed) - wall.Sub(s.wall); lost > setBackBy {
		s.back = true
	}
	s.wall, s.passed = wall, passed
	return wall, passed
}

// remaining returns how much of whole is left at most, given what the wall clock says. If that is more than the whole,
// the clock was set back before this process began.
func (s *deadlines) remaining(says, whole time.Duration) time.Duration {
	if says > whole+setBackBy {
		s.back = true
	}
	return min(says, whole)
}

// Measure starts measuring a pending request, unless it is measured already. For a request from before this process, the
// remaining time is at most the whole.
func (g *Registry) Measure(r permissions.Request) (began bool) {
	if r.State != permissions.Pending {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.deadlines.ends[r.ID]
	if !known {
		now, passed := g.deadlines.compare()
		g.deadlines.ends[r.ID] = passed + g.deadlines.remaining(r.Deadline.Sub(now), r.Timeout())
		if len(r.EscalateTo) > 0 && !r.EscalateAt.IsZero() {
			g.deadlines.more[r.ID] = passed + min(r.EscalateAt.Sub(now), r.EscalateAt.Sub(r.CreatedAt))
		}
	}
	return !known
}

// MeasureGrants starts measuring grants. Old ones, from before this process, have at most their whole time again.
func (g *Registry) MeasureGrants(grants []permissions.Grant, old bool) {
	for _, grant := range grants {
		g.dueAt(grant.Until)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range grants {
		g.deadlines.grants[grant.ID] = g.deadlines.measure(grant, old)
	}
}

// measure measures a grant from now on.
func (s *deadlines) measure(grant permissions.Grant, old bool) measured {
	m := measured{end: math.MaxInt64, old: old, until: grant.Until, idle: grant.Idle()}
	if !grant.Until.IsZero() {
		whole := cmp.Or(m.idle, grant.Until.Sub(grant.CreatedAt))
		now, passed := s.compare()
		m.end = passed + s.remaining(grant.Until.Sub(now), whole)
	}
	return m
}

// usedGrants moves the ends of the used grants that end when they are idle.
func (g *Registry) usedGrants(ids []permissions.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if m := g.deadlines.grants[id]; m.idle > 0 {
			_, passed := g.deadlines.compare()
			m.end = passed + m.idle
			g.deadlines.grants[id] = m
		}
	}
}

// ForgetGrant stops measuring a revoked grant.
func (g *Registry) ForgetGrant(id permissions.ID) { g.forgetGrants([]permissions.Grant{{ID: id}}) }

func (g *Registry) forgetGrants(ended []permissions.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range ended {
		delete(g.deadlines.grants, grant.ID)
	}
}

func (g *Registry) forget(id permissions.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.deadlines.ends, id)
	delete(g.deadlines.more, id)
}

// measuredEnd returns the monotonic end of a request; 0 if it is not measured.
func (g *Registry) measuredEnd(id permissions.ID) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.deadlines.ends[id]
}

// forgetIf forgets the measured end of a request that does not exist, but not one measured at this very moment.
func (g *Registry) forgetIf(id permissions.ID, end time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deadlines.ends[id] == end {
		delete(g.deadlines.ends, id)
		delete(g.deadlines.more, id)
	}
}

// isOver reports whether a request is over by monotonic time.
func (g *Registry) isOver(id permissions.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, known := g.deadlines.ends[id]
	return known && g.clock.Elapsed() >= end
}

// InForce reports whether a grant may be used as far as the clocks go: it is not over by monotonic time and, with doubt
// (the clock was wrong at the start), it was given since then.
func (g *Registry) InForce(grant permissions.Grant, doubt bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, known := g.deadlines.grants[grant.ID]
	if m.idle > 0 && grant.Until.After(m.until) { // another daemon may have used it
		m = g.deadlines.measure(grant, m.old)
		g.deadlines.grants[grant.ID] = m
	}
	if doubt && (!known || m.old) {
		return false
	}
	return !known || g.clock.Elapsed() < m.end
}

// setBack reports whether the wall clock was ever set back while something is due by the monotonic one.
func (g *Registry) setBack() bool {
	over, more, grants := g.overdue()
	return len(over)+len(more)+len(grants) > 0
}

// overdue returns, by monotonic time, the overdue requests, those that are to be escalated, and the expired grants.
// Unless the wall clock was set back, it has found them itself, and this is not called.
func (g *Registry) overdue() (over, more, grants []permissions.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadlines.compare()
	if !g.deadlines.back {
		return nil, nil, nil
	}
	passed := func(ends map[permissions.ID]time.Duration) (ids []permissions.ID) {
		for id, end := range ends {
			if g.deadlines.passed >= end {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	for id, m := range g.deadlines.grants {
		if g.deadlines.passed >= m.end {
			grants = append(grants, id)
		}
	}
	slices.Sort(grants)
	return passed(g.deadlines.ends), passed(g.deadlines.more), grants
}
