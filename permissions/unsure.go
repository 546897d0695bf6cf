package permissions

import (
	"context"
	"errors"
	"slices"
)

// A store that fails in the very moment of a commit may have done it all the same: whoever waits was not rung then, and
// nobody knows of what is new. So what a store was asked to change when it failed is read again at every tick, until that
// works, and told as it is.

// unsureOf notes that the store failed with err while it changed these, and tells whether it did.
func (g *Registry) unsureOf(err error, ids ...ID) bool {
	if !errors.Is(err, ErrBroken) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = true
	for _, id := range ids {
		g.unsure[id] = struct{}{}
	}
	return true
}

// unsureOfAll notes that the store failed with err while it changed whatever is pending.
func (g *Registry) unsureOfAll(err error) {
	g.mu.Lock()
	var ids []ID
	for id := range g.halls {
		ids = append(ids, id)
	}
	for id := range g.glass.ends {
		ids = append(ids, id)
	}
	g.mu.Unlock()
	g.unsureOf(err, ids...)
}

// isUnsure tells whether there is something to read again.
func (g *Registry) isUnsure() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost
}

// lookAgain reads what it is not known of whether it changed, and tells it as it is.
func (g *Registry) lookAgain(ctx context.Context) {
	g.mu.Lock()
	lost := g.lost
	var ids []ID
	for id := range g.unsure {
		ids = append(ids, id)
	}
	g.lost = false
	clear(g.unsure)
	g.mu.Unlock()
	if !lost {
		return
	}
	slices.Sort(ids)
	for _, id := range ids { // one that is damaged does not keep the others from it
		end := g.ending(id)
		r, err := g.store.Read(ctx, id)
		switch {
		case isUnknown(err): // it was not opened
			g.forgetIf(id, end)
		case err != nil:
			g.unsureOf(ErrBroken, id)
		default:
			g.tellAgain(r)
		}
	}
	g.RingNotices()
}

// isUnknown tells whether err says that there is no such request.
func isUnknown(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && refusal.Code == CodeUnknown
}

// tellAgain tells whoever has to know how a request is. What it left behind is measured from now on, if it was not.
func (g *Registry) tellAgain(r Request) {
	if r.State == Pending {
		g.Measure(r)
	} else {
		left := Change{After: r}
		left.grant(Vote{By: r.DecidedBy, Via: r.DecidedVia, At: r.DecidedAt})
		g.measureNew(left.Grants)
		g.settled(r, nil)
	}
	g.publish(r)
}

// measureNew begins to measure the grants that are not measured yet.
func (g *Registry) measureNew(grants []Grant) {
	g.mu.Lock()
	fresh := slices.DeleteFunc(grants, func(grant Grant) bool {
		_, known := g.glass.grants[grant.ID]
		return known
	})
	g.mu.Unlock()
	g.measureGrants(fresh)
}
