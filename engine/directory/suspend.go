package directory

import (
	"context"
	"fmt"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Suspend suspends an account that may belong to somebody else, for example since its keys have changed: it answers for
// nobody and receives nothing until it is paired again. Its person is asked elsewhere; earlier votes stay. An unknown
// account changes nothing. After an error the account is suspended until a restart: try again.
func (d *Directory) Suspend(ctx context.Context, via, address string) error {
	door := d.Pairer(via)
	if door == nil {
		return nil
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	who := d.owner(via, address)
	if who == "" {
		return nil
	}
	s := permissions.Suspension{Via: via, Address: address, At: d.clock.Stamp()}
	if !d.isSuspended(via, address) {
		d.log.Warn("account suspended: its keys changed; pair it again", "via", via, "person", who)
		d.mu.Lock()
		d.suspended = append(d.suspended, s)
		d.mu.Unlock()
		d.refill()
		d.realign(false)
	}
	noting, done := shared.Noting(ctx)
	defer done()
	return shared.Broken(d.store.Suspend(noting, via, address, who, s.At))
}

// isSuspended reports whether an account is suspended.
func (d *Directory) isSuspended(via, address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
}

// lift ends the suspension of an account.
func (d *Directory) lift(via, address string) {
	d.mu.Lock()
	d.suspended = slices.DeleteFunc(d.suspended, func(s permissions.Suspension) bool { return s.Via == via && s.Address == address })
	d.mu.Unlock()
	d.refill()
}

// unconfirmed removes the accounts that were paired before the store was restored, unless the configuration names them
// too.
func (d *Directory) unconfirmed(people []connectors.Person) {
	for _, p := range d.pairings {
		door := d.Pairer(p.Via)
		if p.SuspendedAt.IsZero() || door == nil || slices.ContainsFunc(d.base.Load().People, func(o connectors.Person) bool {
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

// AccountProblem returns the error for a suspended account or a locked person, which says what to do; nil if neither.
func AccountProblem(p connectors.Person, via string) error {
	why := ""
	switch {
	case p.Locked != "":
		why = fmt.Sprintf("%s is locked until: daycared unlock %s", p.Name, p.Locked)
	case !slices.Contains(p.Suspended, via):
		return nil
	case slices.Contains(p.Unconfirmed, via):
		why = fmt.Sprintf("%s's %s account is suspended since the store was restored: confirm it with daycared reinstate %s",
			p.Name, via, permissions.Pairing{Person: p.Name, Via: via}.Name())
	default:
		why = fmt.Sprintf("%s's %s account has changed its keys: enrol it again with daycared pair %[1]s --via %[2]s", p.Name, via)
	}
	return &connectors.UnreachableError{Reason: why}
}

// Suspended lists what has been suspended since the store was restored, for the operator.
func (d *Directory) Suspended(ctx context.Context, id connectors.Identity) (permissions.Suspended, error) {
	if !id.Operator {
		return permissions.Suspended{}, permissions.OperatorOnly()
	}
	all, err := d.store.Suspended(ctx)
	return all, shared.Broken(err)
}

// Reinstate ends the suspension of what the names denote, or of everything without names, and returns it. It is for the
// operator.
func (d *Directory) Reinstate(ctx context.Context, id connectors.Identity, names []string) (permissions.Suspended, error) {
	who, err := d.Operator(id)
	if err != nil {
		return permissions.Suspended{}, err
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	back, err := d.store.Reinstate(ctx, names, who, id.Via, d.clock.Stamp())
	if err != nil {
		return permissions.Suspended{}, shared.Broken(err)
	}
	if len(back.Pairings) > 0 {
		if err := d.readPairings(context.WithoutCancel(ctx)); err != nil {
			return back, shared.Broken(err)
		}
		d.realign(false)
	}
	return back, nil
}
