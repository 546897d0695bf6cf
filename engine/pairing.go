package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// invited is whom a link is for, and on which channel.
type invited struct {
	name string
	door connectors.Enroller
	via  string
	ends func() bool // the link's time is over
}

// Invite makes a link by which somebody brings the account that is to answer as the person of that name. It is for the
// operator, as is all about pairings.
func (e *Engine) Invite(
	ctx context.Context, id connectors.Identity, name, via string,
) (connectors.Invitation, error) {
	door, person, err := e.pairable(id, name, via)
	if err != nil {
		return connectors.Invitation{}, err
	}
	if door.Address(person) != "" {
		return connectors.Invitation{}, inFile(name, via)
	}
	i, err := door.Invite(ctx)
	if err != nil {
		return connectors.Invitation{}, &permissions.Refusal{
			Code: permissions.CodeBroken, Exit: permissions.ExitOther, Text: fmt.Sprintf("No link can be made just now: %v.", err),
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for code, old := range e.invited {
		if old.ends() {
			delete(e.invited, code)
		}
	}
	over := func() bool { return !e.clock.Now().Before(i.Until) }
	e.invited[i.Code] = invited{name: name, door: door, via: via, ends: over}
	return i, nil
}

// Guest waits until somebody has come by an invitation's link. Whoever answers as another person already is sent away.
func (e *Engine) Guest(ctx context.Context, id connectors.Identity, code string) (connectors.Guest, error) {
	in, err := e.invitation(id, code)
	if err != nil {
		return connectors.Guest{}, err
	}
	g, err := in.door.Guest(ctx, code)
	if errors.Is(err, connectors.ErrNoInvitation) {
		e.forget(code)
		return connectors.Guest{}, overLink()
	}
	if err != nil {
		return connectors.Guest{}, err
	}
	if owner := e.owner(in, g.Address); owner != "" && owner != in.name {
		e.forget(code)
		in.door.Dismiss(code)
		return connectors.Guest{}, permissions.OthersAccount(g.Address, owner)
	}
	return g, nil
}

// Pair has the guest of an invitation answer as its person from now on; address says which guest is meant. It returns
// the account that did before, if another one.
func (e *Engine) Pair(
	ctx context.Context, id connectors.Identity, code, address string,
) (now, was permissions.Pairing, err error) {
	in, err := e.invitation(id, code)
	if err != nil {
		return now, was, err
	}
	present, cancel := context.WithCancel(ctx)
	cancel() // whoever is meant has come already
	g, err := in.door.Guest(present, code)
	switch {
	case errors.Is(err, connectors.ErrNoInvitation):
		return now, was, overLink()
	case err != nil || g.Address != address:
		return now, was, permissions.Invalid(fmt.Errorf("nobody with the account %s came by this link", address))
	}
	if _, _, err := e.pairable(id, in.name, in.via); err != nil { // gone from the configuration meanwhile
		return now, was, err
	}
	e.pairing.Lock()
	defer e.pairing.Unlock()
	if owner := e.owner(in, address); owner != "" && owner != in.name {
		return now, was, permissions.OthersAccount(address, owner)
	}
	who, err := e.Who(id)
	if err != nil {
		return now, was, err
	}
	now = permissions.Pairing{Person: in.name, Via: in.via, Address: address, PairedAt: e.stamp()}
	if was, err = e.store.Pair(ctx, now, who, id.Via); err != nil {
		return now, was, broken(err)
	}
	if was.Address == address {
		now, was = was, permissions.Pairing{}
	}
	e.forget(code)
	if err := e.readPairings(context.WithoutCancel(ctx)); err != nil {
		return now, was, broken(err)
	}
	if was.Address != "" {
		in.door.Release(was.Address, in.name)
	}
	in.door.Greet(code, address, in.name)
	return now, was, nil
}

// Dismiss ends an invitation; a guest is told that they were not added.
func (e *Engine) Dismiss(_ context.Context, id connectors.Identity, code string) error {
	in, err := e.invitation(id, code)
	if err != nil {
		return err
	}
	e.forget(code)
	in.door.Dismiss(code)
	return nil
}

// Unpair takes the account away that somebody was paired with. One that the configuration names stays.
func (e *Engine) Unpair(
	ctx context.Context, id connectors.Identity, name, via string,
) (was permissions.Pairing, err error) {
	if !id.Operator {
		return was, permissions.OperatorOnly()
	}
	who, err := e.Who(id)
	if err != nil {
		return was, err
	}
	e.pairing.Lock()
	defer e.pairing.Unlock()
	was, err = e.store.Unpair(ctx, name, via, who, id.Via, e.stamp())
	var refusal *permissions.Refusal
	door := e.door(via)
	if errors.As(err, &refusal) && refusal.Code == permissions.CodeUnknown && door != nil {
		base := e.base.Load()
		if p, known := base.person(name); known && door.Address(p) != "" {
			return was, inFile(name, via)
		}
	}
	if err != nil {
		return was, broken(err)
	}
	if err := e.readPairings(context.WithoutCancel(ctx)); err != nil {
		return was, broken(err)
	}
	if door != nil {
		door.Release(was.Address, name)
	}
	return was, nil
}

// People is everybody of the configuration, with the accounts that they were paired with.
func (e *Engine) People() []connectors.Person { return slices.Clone(e.settings.Load().People) }

// pairable is the channel and, as the configuration has them, the person of a pairing to be.
func (e *Engine) pairable(
	id connectors.Identity, name, via string,
) (door connectors.Enroller, person connectors.Person, err error) {
	if !id.Operator {
		return nil, person, permissions.OperatorOnly()
	}
	door = e.door(via)
	if door == nil {
		return nil, person, permissions.Invalid(fmt.Errorf("nobody can be paired via %s: it is not switched on here", via))
	}
	people := e.base.Load().People
	i := slices.IndexFunc(people, func(p connectors.Person) bool { return p.Name == name })
	if i >= 0 {
		return door, people[i], nil
	}
	names := make([]string, len(people))
	for i, p := range people {
		names[i] = p.Name
	}
	known := "there are " + strings.Join(names, ", ")
	if len(people) == 0 {
		known = "there are no people; write them there"
	}
	return nil, person, permissions.Invalid(fmt.Errorf("nobody in the configuration is called %q; %s", name, known))
}

// door is the channel of that name, if people can be enrolled there.
func (e *Engine) door(via string) connectors.Enroller {
	for _, c := range e.couriers {
		if door, can := c.connector.(connectors.Enroller); can && c.connector.Name() == via {
			return door
		}
	}
	return nil
}

// owner is who answers with an account now, or empty.
func (e *Engine) owner(in invited, address string) string {
	for _, p := range e.settings.Load().People {
		if in.door.Address(p) == address {
			return p.Name
		}
	}
	return ""
}

func (e *Engine) invitation(id connectors.Identity, code string) (invited, error) {
	if !id.Operator {
		return invited{}, permissions.OperatorOnly()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	in, known := e.invited[code]
	if !known {
		return invited{}, overLink()
	}
	return in, nil
}

func (e *Engine) forget(code string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.invited, code)
}

// readPairings puts what is paired into force.
func (e *Engine) readPairings(ctx context.Context) error {
	pairings, err := e.store.Pairings(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.pairings = pairings
	e.mu.Unlock()
	e.refill()
	return nil
}

// refill lays the pairings over what the configuration says.
func (e *Engine) refill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := *e.base.Load()
	s.People = slices.Clone(s.People)
	for _, p := range e.pairings {
		if door := e.door(p.Via); door != nil {
			fill(s.People, door, p)
		}
	}
	e.settings.Store(&s)
}

// fill gives a person the account that they were paired with, unless they have one by the configuration, or it is
// another's by the configuration: the file wins.
func fill(people []connectors.Person, door connectors.Enroller, p permissions.Pairing) {
	if slices.ContainsFunc(people, func(o connectors.Person) bool { return door.Address(o) == p.Address }) {
		return
	}
	for i, o := range people {
		if o.Name == p.Person && door.Address(o) == "" {
			people[i] = door.At(o, p.Address)
		}
	}
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
