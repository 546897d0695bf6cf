package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Suspend notes that an account may be somebody else's by now, as when its keys have changed: it is nobody's, and nothing
// is sent there, until it is paired again. Its person is asked elsewhere; what they voted before stays. An account that
// is nobody's here changes nothing. While the error is not nil it is suspended, but a restart would forget it: try again.
func (e *Engine) Suspend(ctx context.Context, via, address string) error {
	door := e.door(via)
	if door == nil {
		return nil
	}
	e.pairing.Lock()
	defer e.pairing.Unlock()
	who := e.owner(door, address)
	if who == "" {
		return nil
	}
	s := permissions.Suspension{Via: via, Address: address, At: e.stamp()}
	if !e.isSuspended(via, address) {
		e.log.Warn("an account may be somebody else's by now, and is nobody's until it is enrolled again", "via", via, "person", who)
		e.mu.Lock()
		e.suspended = append(e.suspended, s)
		e.mu.Unlock()
		e.refill()
		e.realignSoon()
	}
	noting, done := noting(ctx)
	defer done()
	return broken(e.store.Suspend(noting, via, address, who, s.At))
}

// isSuspended reports whether an account is.
func (e *Engine) isSuspended(via, address string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
}

// lift has an account be its person's again.
func (e *Engine) lift(via, address string) {
	e.mu.Lock()
	e.suspended = slices.DeleteFunc(e.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
	e.mu.Unlock()
	e.refill()
}

func (e *Engine) readSuspensions(ctx context.Context) error {
	all, err := e.store.Suspensions(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.suspended = all
	e.mu.Unlock()
	e.refill()
	return nil
}

// unconfirmed takes the accounts away that were paired before the store was restored, but where the configuration names
// them too.
func (e *Engine) unconfirmed(people []connectors.Person) {
	for _, p := range e.pairings {
		door := e.door(p.Via)
		if p.SuspendedAt.IsZero() || door == nil || slices.ContainsFunc(e.base.Load().People, func(o connectors.Person) bool {
			return door.Address(o) == p.Address
		}) {
			continue
		}
		for _, i := range empty(people, door, permissions.Suspension{Via: p.Via, Address: p.Address}) {
			people[i].Unconfirmed = append(slices.Clip(people[i].Unconfirmed), p.Via)
		}
	}
}

// empty takes a suspended account away from whoever has it, by the configuration as well, and says from whom.
func empty(people []connectors.Person, door connectors.Pairer, s permissions.Suspension) (whose []int) {
	for i, p := range people {
		if door.Address(p) == s.Address {
			people[i] = door.At(p, "")
			people[i].Suspended = append(slices.Clip(p.Suspended), s.Via)
			whose = append(whose, i)
		}
	}
	return whose
}

// suspended says that somebody's account at a channel is, or that they are locked, and what to do; nil where it is not.
func suspended(p connectors.Person, via string) error {
	if err := lockedOut(p); err != nil {
		return err
	}
	if !slices.Contains(p.Suspended, via) {
		return nil
	}
	if slices.Contains(p.Unconfirmed, via) {
		return &connectors.UnreachableError{Reason: fmt.Sprintf("%s's %s account is suspended since the store was restored: confirm it with "+
			"daycared reinstate %s", p.Name, via, permissions.Pairing{Person: p.Name, Via: via}.Name())}
	}
	return &connectors.UnreachableError{Reason: fmt.Sprintf(
		"%s's %s account has changed its keys: enrol it again with daycared pair %s --via %s", p.Name, via, p.Name, via)}
}

// barred says why what was sent to somebody by a channel can be answered by nobody: the account is suspended, they are
// locked, or they have no account there any more; nil where it is not so.
func (e *Engine) barred(p connectors.Person, via string) error {
	why := suspended(p, via)
	if door := e.door(via); why == nil && door != nil && p.Name != "" && door.Address(p) == "" {
		c, _ := e.connector(via)
		why = reach(c, p)
	}
	return why
}

// suspends reports whether somebody whom r asks has lost an account.
func (s *Settings) suspends(r permissions.Request) bool {
	return slices.ContainsFunc(r.Asked, func(name string) bool {
		p, _ := s.person(name)
		return len(p.Suspended) > 0 || p.Locked != ""
	})
}

// withhold gives up the copies that went to an account that is suspended by now, or its person's no longer. What stands in
// a place is not the account's own.
func (e *Engine) withhold(ctx context.Context, s *Settings, copies []permissions.Copy) error {
	for i, cp := range copies {
		p, _ := s.person(cp.Person)
		why := e.barred(p, cp.Connector)
		if why == nil || cp.Group != "" || cp.Failed != "" || p.Locked != "" { // whoever is locked sees that
			continue
		}
		copies[i].Failed = why.Error()
		if err := e.store.MarkFailed(ctx, copies[i]); err != nil {
			return err
		}
	}
	return nil
}
