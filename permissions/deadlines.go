package permissions

import (
	"math"
	"slices"
	"time"
)

// Clock is where time comes from.
type Clock struct {
	// Now is the time on the wall, by which people live. It can be set.
	Now func() time.Time
	// Elapsed is how much time has passed since some start. It cannot be set, and counts a suspended machine's sleep.
	Elapsed func() time.Duration
}

// deadlines measures how long what was asked or granted has been there, so that a clock that is set back prolongs nothing.
// Whichever is earlier counts: the deadline on the wall, or the time that has passed. The registry's lock guards it.
type deadlines struct {
	clock  Clock
	ends   map[ID]time.Duration // of pending requests, on the clock that cannot be set
	more   map[ID]time.Duration // when more people are to be asked, on the same
	grants map[ID]measured
	wall   time.Time // when both clocks were last compared
	passed time.Duration
	back   bool // the clock on the wall was set back since the start
}

// measured is a grant's end.
type measured struct {
	end time.Duration // on the clock that cannot be set
	old bool          // it was given before the start
}

// setBackBy is how much the wall's clock may lose between two looks without having been set back.
const setBackBy = 500 * time.Millisecond

func newDeadlines(c Clock) deadlines {
	return deadlines{
		clock: c, ends: map[ID]time.Duration{}, more: map[ID]time.Duration{}, grants: map[ID]measured{},
		wall: c.Now().Round(0), passed: c.Elapsed(),
	}
}

// compare looks at both clocks: whenever a time on the wall begins to be measured, since a clock that was set forward
// before that and back after it may in the end have lost nothing. It looks in this order, so that what lies between makes
// an end later, never too early.
func (s *deadlines) compare() (wall time.Time, passed time.Duration) {
	wall, passed = s.clock.Now().Round(0), s.clock.Elapsed()
	if lost := (passed - s.passed) - wall.Sub(s.wall); lost > setBackBy {
		s.back = true
	}
	s.wall, s.passed = wall, passed
	return wall, passed
}

// remaining is how much of a whole time is left at most, where the clock on the wall says that some of it is. Where it says
// more than the whole, it was set back before this process began.
func (s *deadlines) remaining(says, whole time.Duration) time.Duration {
	if says > whole+setBackBy {
		s.back = true
	}
	return min(says, whole)
}

// Measure begins to measure a pending request's time, unless that was begun before. Of one that was asked before this
// process began, it is at most the whole.
func (g *Registry) Measure(r Request) (began bool) {
	if r.State != Pending {
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

// MeasureGrants begins to measure grants that were given before this process began: at most their whole time again.
func (g *Registry) MeasureGrants(old []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range old {
		g.deadlines.grant(grant, true)
	}
}

// grant begins to measure one.
func (s *deadlines) grant(grant Grant, old bool) {
	m := measured{end: math.MaxInt64, old: old}
	if !grant.Until.IsZero() {
		now, passed := s.compare()
		m.end = passed + s.remaining(grant.Until.Sub(now), grant.Until.Sub(grant.CreatedAt))
	}
	s.grants[grant.ID] = m
}

// ForgetGrant ends the measuring of a grant that was taken back.
func (g *Registry) ForgetGrant(id ID) { g.forgetGrants([]Grant{{ID: id}}) }

func (g *Registry) measureGrants(grants []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range grants {
		g.deadlines.grant(grant, false)
	}
}

func (g *Registry) forgetGrants(ended []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range ended {
		delete(g.deadlines.grants, grant.ID)
	}
}

func (g *Registry) forget(id ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.deadlines.ends, id)
	delete(g.deadlines.more, id)
}

// measuredEnd is when a request's time is measured to be over; 0 where it is not measured.
func (g *Registry) measuredEnd(id ID) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.deadlines.ends[id]
}

// forgetIf forgets what was measured so far of a request that is not there, and not what is measured since it was opened
// in this very moment.
func (g *Registry) forgetIf(id ID, end time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deadlines.ends[id] == end {
		delete(g.deadlines.ends, id)
		delete(g.deadlines.more, id)
	}
}

// isOver reports whether a request's time was measured to be over.
func (g *Registry) isOver(id ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, known := g.deadlines.ends[id]
	return known && g.clock.Elapsed() >= end
}

// InForce reports whether a grant may be relied on as far as the clocks go: its time was not measured to be over, and,
// with doubt (the clock was found to be wrong at the start), it was given since then.
func (g *Registry) InForce(id ID, doubt bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, known := g.deadlines.grants[id]
	if doubt && (!known || m.old) {
		return false
	}
	return !known || g.clock.Elapsed() < m.end
}

// setBack compares the clocks, and reports whether the wall's was ever set back and something is due by the other.
func (g *Registry) setBack() bool {
	over, more, grants := g.overdue()
	return len(over)+len(more)+len(grants) > 0
}

// overdue are the requests that are over by the clock that cannot be set, those of which more people are to be asked,
// and the grants that are over. As long as the other clock was not set back it has told of them itself, and they are
// not looked for.
func (g *Registry) overdue() (over, more, grants []ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadlines.compare()
	if !g.deadlines.back {
		return nil, nil, nil
	}
	passed := func(ends map[ID]time.Duration) (ids []ID) {
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
