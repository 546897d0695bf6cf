package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// invited is the person and the channel of a link.
type invited struct {
	name string
	door connectors.Pairer
	via  string
	ends func() bool // stops the timer of the link
}

// Invite creates a link by which somebody brings the account that will answer as the named person. Like all pairing
// operations it is for the operator.
func (d *Directory) Invite(
	ctx context.Context, id connectors.Identity, name, via string,
) (connectors.Invitation, error) {
	door, person, err := d.pairable(id, name, via)
	if err != nil {
		return connectors.Invitation{}, err
	}
	if at := person.Addresses[via]; at != "" && !d.isSuspended(via, at) {
		return connectors.Invitation{}, inFile(name, via)
	}
	i, err := door.Invite(ctx)
	if err != nil {
		return connectors.Invitation{}, &permissions.Refusal{
			Code: permissions.CodeBroken, Exit: permissions.ExitOther, Text: fmt.Sprintf("No link can be made just now: %v.", err),
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for code, old := range d.invited {
		if old.ends() {
			delete(d.invited, code)
		}
	}
	over := func() bool { return !d.clock.Now().Before(i.Until) }
	d.invited[i.Code] = invited{name: name, door: door, via: via, ends: over}
	return i, nil
}

// Guest waits until somebody has followed an invitation's link, and rejects an account that answers as another person.
func (d *Directory) Guest(ctx context.Context, id connectors.Identity, code string) (connectors.PairingCandidate, error) {
	in, err := d.invitation(id, code)
	if err != nil {
		return connectors.PairingCandidate{}, err
	}
	g, err := in.door.AwaitCandidate(ctx, code)
	if errors.Is(err, connectors.ErrNoInvitation) {
		d.forget(code)
		return connectors.PairingCandidate{}, overLink()
	}
	if err != nil {
		return connectors.PairingCandidate{}, err
	}
	if owner := d.owner(in.via, g.Address); owner != "" && owner != in.name {
		d.forget(code)
		in.door.Dismiss(code)
		return connectors.PairingCandidate{}, permissions.OthersAccount(g.Address, owner)
	}
	return g, nil
}

// Pair makes the guest's account answer as the invited person; address says which guest is meant. It returns the
// previous account, if it is another one.
func (d *Directory) Pair(
	ctx context.Context, id connectors.Identity, code, address string,
) (now, was permissions.Pairing, err error) {
	in, err := d.invitation(id, code)
	if err != nil {
		return now, was, err
	}
	g, err := in.guest(ctx, code, address)
	if err != nil {
		return now, was, err
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	if err := d.mayBring(id, in, address); err != nil {
		return now, was, err
	}
	who, err := d.Who(id)
	if err != nil {
		return now, was, err
	}
	now = permissions.Pairing{Person: in.name, Via: in.via, Address: address, Alias: g.Alias, PairedAt: d.clock.Stamp()}
	if was, err = d.store.Pair(ctx, now, who, id.Via); err != nil {
		return now, was, shared.Broken(err)
	}
	d.forget(code)
	if err := d.readPairings(context.WithoutCancel(ctx)); err != nil {
		return now, was, shared.Broken(err)
	}
	d.lift(in.via, address)
	if was.Address == address {
		now, was = d.paired(now), permissions.Pairing{}
	}
	if was.Address != "" {
		d.realign(true)
	} else if err := d.recovered(context.WithoutCancel(ctx), in.via, in.name, ""); err != nil {
		d.log.Error("show pending requests to a paired person", "person", in.name, "err", err)
	}
	if was.Address != "" && !d.isSuspended(in.via, was.Address) {
		in.door.Release(was.Address, in.name)
	}
	in.door.Greet(code, address, in.name)
	return now, was, nil
}

// guest returns who followed the link with that code, if it is the expected account.
func (in invited) guest(ctx context.Context, code, address string) (connectors.PairingCandidate, error) {
	present, cancel := context.WithCancel(ctx)
	cancel() // the expected guest is there already
	g, err := in.door.AwaitCandidate(present, code)
	switch {
	case errors.Is(err, connectors.ErrNoInvitation):
		return g, overLink()
	case err != nil || g.Address != address:
		return g, permissions.Invalid(fmt.Errorf("nobody with the account %s came by this link", address))
	}
	return g, nil
}

// mayBring refuses an account that the invited person may not use. The configuration may have changed since.
func (d *Directory) mayBring(id connectors.Identity, in invited, address string) error {
	_, person, err := d.pairable(id, in.name, in.via)
	if err != nil {
		return err
	}
	if own := person.Addresses[in.via]; own != "" && own != address {
		return inFile(in.name, in.via)
	}
	if owner := d.owner(in.via, address); owner != "" && owner != in.name {
		return permissions.OthersAccount(address, owner)
	}
	return nil
}

// paired returns the stored pairing of that person and channel, or p itself without one.
func (d *Directory) paired(p permissions.Pairing) permissions.Pairing {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.pairings, func(o permissions.Pairing) bool { return o.Person == p.Person && o.Via == p.Via })
	if i < 0 {
		return p
	}
	return d.pairings[i]
}

// Dismiss ends an invitation; a guest is told that they were not added.
func (d *Directory) Dismiss(_ context.Context, id connectors.Identity, code string) error {
	in, err := d.invitation(id, code)
	if err != nil {
		return err
	}
	d.forget(code)
	in.door.Dismiss(code)
	return nil
}

// Unpair removes a paired account from a person. An account in the configuration stays, and a suspended one stays
// suspended even if the configuration names it next.
func (d *Directory) Unpair(
	ctx context.Context, id connectors.Identity, name, via string,
) (was permissions.Pairing, err error) {
	who, err := d.Operator(id)
	if err != nil {
		return was, err
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	door := d.Pairer(via)
	if door != nil {
		p, _ := d.base.Load().Person(name)
		has := d.paired(permissions.Pairing{Person: name, Via: via}).Address
		if own := p.Addresses[via]; own != "" && (has == "" || has == own) {
			return was, inFile(name, via)
		}
	}
	if was, err = d.store.Unpair(ctx, name, via, who, id.Via, d.clock.Stamp()); err != nil {
		return was, shared.Broken(err)
	}
	if err := d.readPairings(context.WithoutCancel(ctx)); err != nil {
		return was, shared.Broken(err)
	}
	d.realign(true)
	if door != nil && !d.isSuspended(via, was.Address) {
		door.Release(was.Address, name)
	}
	return was, nil
}

// pairable returns the channel and the configured person of a new pairing.
func (d *Directory) pairable(
	id connectors.Identity, name, via string,
) (door connectors.Pairer, person connectors.Person, err error) {
	if !id.Operator {
		return nil, person, permissions.OperatorOnly()
	}
	door = d.Pairer(via)
	if door == nil {
		return nil, person, permissions.Invalid(fmt.Errorf("nobody can be paired via %s: it is not switched on here", via))
	}
	people := d.base.Load().People
	i := slices.IndexFunc(people, func(p connectors.Person) bool { return p.Name == name })
	if i >= 0 {
		now, _ := d.settings.Load().Person(name)
		if now.Locked != "" {
			return nil, person, permissions.LockedOut(now.Locked)
		}
		return door, people[i], nil
	}
	return nil, person, d.UnknownPerson(name)
}

// owner returns who answers with an account, or did until it was suspended; empty for nobody.
func (d *Directory) owner(via, address string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.filled() {
		if address != "" && p.Addresses[via] == address {
			return p.Name
		}
	}
	return ""
}

func (d *Directory) invitation(id connectors.Identity, code string) (invited, error) {
	if !id.Operator {
		return invited{}, permissions.OperatorOnly()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	in, known := d.invited[code]
	if !known {
		return invited{}, overLink()
	}
	return in, nil
}

func (d *Directory) forget(code string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.invited, code)
}

// readPairings puts the stored pairings into force.
func (d *Directory) readPairings(ctx context.Context) error {
	return reread(ctx, d, d.store.Pairings, &d.pairings)
}

func overLink() error {
	return &permissions.Refusal{
		Code: permissions.CodeGone, Exit: permissions.ExitNobody,
		Text: "The link works no more: it is used, or its time is over. Nothing was changed.",
	}
}

func inFile(name, via string) error {
	return permissions.Invalid(fmt.Errorf("%s's %s account stands in the configuration, which wins; change it there", name, via))
}

// Enrolled reports whether an unknown sender is a known person by now.
func (d *Directory) Enrolled(s permissions.UnknownSender) bool {
	door := d.Pairer(s.Via)
	return door != nil && slices.ContainsFunc(d.settings.Load().People, func(p connectors.Person) bool {
		return p.Addresses[s.Via] == s.Account
	})
}
