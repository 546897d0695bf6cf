package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Suspend suspends an account that may belong to somebody else, for example since its keys have changed: it answers for
// nobody and receives nothing until it is paired again. Its person is asked elsewhere; earlier votes stay. An unknown
// account changes nothing. After an error the account is suspended until a restart: try again.
func (e *Engine) Suspend(ctx context.Context, via, address string) error {
	door := e.door(via)
	if door == nil {
		return nil
	}
	e.pairing.Lock()
	defer e.pairing.Unlock()
	who := e.owner(via, address)
	if who == "" {
		return nil
	}
	s := permissions.Suspension{Via: via, Address: address, At: e.stamp()}
	if !e.isSuspended(via, address) {
		e.log.Warn("account suspended: its keys changed; pair it again", "via", via, "person", who)
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

// isSuspended reports whether an account is suspended.
func (e *Engine) isSuspended(via, address string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
}

// lift ends the suspension of an account.
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

// unconfirmed removes the accounts that were paired before the store was restored, unless the configuration names them
// too.
func (e *Engine) unconfirmed(people []connectors.Person) {
	for _, p := range e.pairings {
		door := e.door(p.Via)
		if p.SuspendedAt.IsZero() || door == nil || slices.ContainsFunc(e.base.Load().People, func(o connectors.Person) bool {
			return o.Addresses[p.Via] == p.Address
		}) {
			continue
		}
		for _, i := range empty(people, permissions.Suspension{Via: p.Via, Address: p.Address}) {
			people[i].Unconfirmed = append(slices.Clip(people[i].Unconfirmed), p.Via)
		}
	}
}

// empty removes a suspended account from everybody who has it, including by the configuration, and returns whose it was.
func empty(people []connectors.Person, s permissions.Suspension) (whose []int) {
	for i, p := range people {
		if p.Addresses[s.Via] == s.Address {
			people[i] = p.At(s.Via, "")
			people[i].Suspended = append(slices.Clip(p.Suspended), s.Via)
			whose = append(whose, i)
		}
	}
	return whose
}

// suspended returns the error for a suspended account or a locked person, which says what to do; nil if neither.
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

// barred returns why nobody can answer what was sent to a person by a channel: the account is suspended, they are
// locked, or they have no account there any more; nil if they can.
func (e *Engine) barred(p connectors.Person, via string) error {
	why := suspended(p, via)
	if door := e.door(via); why == nil && door != nil && p.Name != "" && p.Addresses[via] == "" {
		c, _ := e.connector(via)
		why = reach(c, p)
	}
	return why
}

// suspends reports whether a recipient of r has lost an account.
func (s *Settings) suspends(r permissions.Request) bool {
	return slices.ContainsFunc(r.Asked, func(name string) bool {
		p, _ := s.person(name)
		return len(p.Suspended) > 0 || p.Locked != ""
	})
}

// withhold fails the copies that were sent to an account that is suspended by now or no longer its person's. Copies in a
// group are kept.
func (e *Engine) withhold(ctx context.Context, s *Settings, copies []permissions.Copy) error {
	for i, cp := range copies {
		p, _ := s.person(cp.Person)
		why := e.barred(p, cp.Connector)
		if why == nil || cp.Group != "" || cp.Failed != "" || p.Locked != "" { // a locked person's copy says so
			continue
		}
		copies[i].Failed = why.Error()
		if err := e.store.MarkFailed(ctx, copies[i]); err != nil {
			return err
		}
	}
	return nil
}
