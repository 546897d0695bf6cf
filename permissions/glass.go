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

// glass measures how long what was asked or granted has been there, so that a clock that is set back prolongs nothing.
// Whichever is earlier counts: the deadline on the wall, or the time that has passed. The registry's lock guards it.
type glass struct {
	clock  Clock
	ends   map[ID]time.Duration // of pending requests, on the clock that cannot be set
	grants map[ID]time.Duration // of grants that were given since the start, on the same
	wall   time.Time            // when both clocks were last compared
	passed time.Duration
	back   bool // the clock on the wall was set back since the start
}

// setBackBy is how much the wall's clock may lose between two looks without having been set back.
const setBackBy = 500 * time.Millisecond

func newGlass(c Clock) glass {
	return glass{clock: c, ends: map[ID]time.Duration{}, grants: map[ID]time.Duration{}, wall: c.Now().Round(0), passed: c.Elapsed()}
}

// compare looks at both clocks.
func (s *glass) compare() {
	wall, passed := s.clock.Now().Round(0), s.clock.Elapsed()
	if lost := (passed - s.passed) - wall.Sub(s.wall); lost > setBackBy {
		s.back = true
	}
	s.wall, s.passed = wall, passed
}

// Measure begins to measure a pending request's time, unless that was begun before. Of one that was asked before this
// process began, it is at most the whole.
func (g *Registry) Measure(r Request) {
	if r.State != Pending {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.glass.ends[r.ID]; !known {
		g.glass.ends[r.ID] = g.clock.Elapsed() + min(r.Deadline.Sub(g.clock.Now()), r.Timeout())
	}
}

func (g *Registry) measureGrants(grants []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range grants {
		g.glass.grants[grant.ID] = math.MaxInt64
		if !grant.Until.IsZero() {
			g.glass.grants[grant.ID] = g.clock.Elapsed() + grant.Until.Sub(grant.CreatedAt)
		}
	}
}

func (g *Registry) forgetGrants(ended []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range ended {
		delete(g.glass.grants, grant.ID)
	}
}

func (g *Registry) forget(id ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.glass.ends, id)
}

// spent tells whether a request's time was measured to be over.
func (g *Registry) spent(id ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, known := g.glass.ends[id]
	return known && g.clock.Elapsed() >= end
}

// InForce tells whether a grant may be relied on as far as the clocks go: its time was not measured to be over, and,
// with since (the clock was found to be wrong at the start), it was given since then.
func (g *Registry) InForce(id ID, since bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, known := g.glass.grants[id]
	return (known || !since) && (!known || g.clock.Elapsed() < end)
}

// setBack compares the clocks, and tells whether the wall's was ever set back and something is over by the other.
func (g *Registry) setBack() bool { return len(g.overdue()) > 0 }

// overdue are the requests that are over by the clock that cannot be set. As long as the other one was not
// set back it has told of them itself, and they are not looked for.
func (g *Registry) overdue() []ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.glass.compare()
	if !g.glass.back {
		return nil
	}
	var over []ID
	for id, end := range g.glass.ends {
		if g.glass.passed >= end {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	return over
}
