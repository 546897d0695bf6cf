package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
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
func (e *Engine) Invite(
	ctx context.Context, id connectors.Identity, name, via string,
) (connectors.Invitation, error) {
	door, person, err := e.pairable(id, name, via)
	if err != nil {
		return connectors.Invitation{}, err
	}
	if at := person.Addresses[via]; at != "" && !e.isSuspended(via, at) {
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

// Guest waits until somebody has followed an invitation's link. An account that already answers as another person is
// rejected.
func (e *Engine) Guest(ctx context.Context, id connectors.Identity, code string) (connectors.PairingCandidate, error) {
	in, err := e.invitation(id, code)
	if err != nil {
		return connectors.PairingCandidate{}, err
	}
	g, err := in.door.AwaitCandidate(ctx, code)
	if errors.Is(err, connectors.ErrNoInvitation) {
		e.forget(code)
		return connectors.PairingCandidate{}, overLink()
	}
	if err != nil {
		return connectors.PairingCandidate{}, err
	}
	if owner := e.owner(in.via, g.Address); owner != "" && owner != in.name {
		e.forget(code)
		in.door.Dismiss(code)
		return connectors.PairingCandidate{}, permissions.OthersAccount(g.Address, owner)
	}
	return g, nil
}

// Pair makes the guest's account answer as the invited person; address says which guest is meant. It returns the
// previous account, if it is another one.
func (e *Engine) Pair(
	ctx context.Context, id connectors.Identity, code, address string,
) (now, was permissions.Pairing, err error) {
	in, err := e.invitation(id, code)
	if err != nil {
		return now, was, err
	}
	g, err := in.guest(ctx, code, address)
	if err != nil {
		return now, was, err
	}
	e.pairing.Lock()
	defer e.pairing.Unlock()
	if err := e.mayBring(id, in, address); err != nil {
		return now, was, err
	}
	who, err := e.Who(id)
	if err != nil {
		return now, was, err
	}
	now = permissions.Pairing{Person: in.name, Via: in.via, Address: address, Alias: g.Alias, PairedAt: e.stamp()}
	if was, err = e.store.Pair(ctx, now, who, id.Via); err != nil {
		return now, was, broken(err)
	}
	e.forget(code)
	if err := e.readPairings(context.WithoutCancel(ctx)); err != nil {
		return now, was, broken(err)
	}
	e.lift(in.via, address)
	if was.Address == address {
		now, was = e.paired(now), permissions.Pairing{}
	}
	if was.Address != "" {
		e.moved.Store(true)
		e.realignSoon()
	} else if err := e.ChatRecovered(context.WithoutCancel(ctx), in.via, in.name, ""); err != nil {
		e.log.Error("show pending requests to a paired person", "person", in.name, "err", err)
	}
	if was.Address != "" && !e.isSuspended(in.via, was.Address) {
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
func (e *Engine) mayBring(id connectors.Identity, in invited, address string) error {
	_, person, err := e.pairable(id, in.name, in.via)
	if err != nil {
		return err
	}
	if own := person.Addresses[in.via]; own != "" && own != address {
		return inFile(in.name, in.via)
	}
	if owner := e.owner(in.via, address); owner != "" && owner != in.name {
		return permissions.OthersAccount(address, owner)
	}
	return nil
}

// paired returns the stored pairing of that person and channel, or p itself without one.
func (e *Engine) paired(p permissions.Pairing) permissions.Pairing {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.pairings, func(o permissions.Pairing) bool { return o.Person == p.Person && o.Via == p.Via })
	if i < 0 {
		return p
	}
	return e.pairings[i]
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

// Unpair removes a paired account from a person. An account in the configuration stays, and a suspended one stays
// suspended even if the configuration names it next.
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
	door := e.door(via)
	if door != nil {
		p, _ := e.base.Load().person(name)
		has := e.paired(permissions.Pairing{Person: name, Via: via}).Address
		if own := p.Addresses[via]; own != "" && (has == "" || has == own) {
			return was, inFile(name, via)
		}
	}
	if was, err = e.store.Unpair(ctx, name, via, who, id.Via, e.stamp()); err != nil {
		return was, broken(err)
	}
	if err := e.readPairings(context.WithoutCancel(ctx)); err != nil {
		return was, broken(err)
	}
	e.moved.Store(true)
	e.realignSoon()
	if door != nil && !e.isSuspended(via, was.Address) {
		door.Release(was.Address, name)
	}
	return was, nil
}

// People returns everybody in the configuration with their paired accounts, without the suspended ones.
func (e *Engine) People() []connectors.Person { return slices.Clone(e.settings.Load().People) }

// pairable returns the channel and the configured person of a new pairing.
func (e *Engine) pairable(
	id connectors.Identity, name, via string,
) (door connectors.Pairer, person connectors.Person, err error) {
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
		now, _ := e.settings.Load().person(name)
		if now.Locked != "" {
			return nil, person, permissions.LockedOut(now.Locked)
		}
		return door, people[i], nil
	}
	return nil, person, unknownPerson(name, people)
}

// unknownPerson refuses an unknown name and lists the known ones.
func unknownPerson(name string, people []connectors.Person) error {
	names := make([]string, len(people))
	for i, p := range people {
		names[i] = p.Name
	}
	known := "there are " + strings.Join(names, ", ")
	if near := permissions.Nearest(name, names); near != "" {
		known = "did you mean " + near + "? " + known
	}
	if len(people) == 0 {
		known = "there are no people; write them there"
	}
	return permissions.NoPerson(name, known)
}

// door returns the channel of that name, if people can be paired there.
func (e *Engine) door(via string) connectors.Pairer {
	for _, c := range e.dispatchers {
		if door, can := c.connector.(connectors.Pairer); can && c.connector.Name() == via {
			return door
		}
	}
	return nil
}

// owner returns who answers with an account, or did until it was suspended; empty for nobody.
func (e *Engine) owner(via, address string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.filled() {
		if address != "" && p.Addresses[via] == address {
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

// readPairings puts the stored pairings into force.
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

// refill applies the pairings to the configuration and removes the suspended accounts.
func (e *Engine) refill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := *e.base.Load()
	s.owners = e.owners
	s.People = e.filled()
	for _, a := range e.suspended {
		if e.door(a.Via) != nil {
			empty(s.People, a)
		}
	}
	e.unconfirmed(s.People)
	e.shut(s.People)
	e.settings.Store(&s)
	e.forgetDecisions(nil)
}

// filled returns everybody in the configuration, with their paired accounts. The lock is held.
func (e *Engine) filled() []connectors.Person {
	people := slices.Clone(e.base.Load().People)
	for _, p := range e.pairings {
		if door := e.door(p.Via); door != nil {
			fill(people, p)
		}
	}
	return people
}

// fill gives a person their paired account, unless the configuration gives them one, or gives it to another person: the
// file wins. The account's alias on the channel applies either way.
func fill(people []connectors.Person, p permissions.Pairing) {
	taken := slices.ContainsFunc(people, func(o connectors.Person) bool { return o.Addresses[p.Via] == p.Address })
	for i, o := range people {
		if o.Name == p.Person && o.Addresses[p.Via] == "" && !taken {
			people[i] = o.At(p.Via, p.Address)
		}
		if p.Alias != "" && people[i].Addresses[p.Via] == p.Address {
			people[i] = people[i].Alias(p.Via, p.Alias)
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

// NoteUnknownSender records that an unknown account wrote, so that the owner is told: at once, or a day after the last
// such notice.
func (e *Engine) NoteUnknownSender(ctx context.Context, s permissions.UnknownSender) error {
	if e.enrolled(s) { // also if locked
		return nil
	}
	s.At = e.stamp()
	noting, done := noting(ctx)
	defer done()
	if err := e.store.AddUnknownSender(noting, s, e.settings.Load().Owner().Name); err != nil {
		return broken(err)
	}
	e.registry.NotifyNotices()
	return nil
}

// tellOfStrangers sends the owner the notice of unknown senders, or returns how long it has to wait.
func (e *Engine) tellOfStrangers(
	ctx context.Context, n permissions.Notice, owner connectors.Person,
) (later time.Duration, err error) {
	met, err := e.store.UnknownSenders(ctx)
	if err != nil {
		return 0, err
	}
	now := e.stamp()
	left := met.ToldAt.Add(permissions.UnknownSendersEvery).Sub(now)
	if !met.ToldAt.IsZero() && left > 0 && left <= permissions.UnknownSendersEvery { // else the clock was set back
		return min(left, idle), nil
	}
	notice := connectors.Notice{To: owner, About: n.About, Strangers: met, Silent: true}
	notice.Strangers.List = slices.DeleteFunc(slices.Clone(met.List), e.enrolled)
	if len(notice.Strangers.List) == 0 {
		return 0, e.store.MarkUnknownSendersTold(ctx, n, met, time.Time{})
	}
	if err := e.announce(ctx, n, notice); err != nil {
		return 0, err
	}
	return 0, e.store.MarkUnknownSendersTold(ctx, n, met, now)
}

// enrolled reports whether an unknown sender is a known person by now.
func (e *Engine) enrolled(s permissions.UnknownSender) bool {
	door := e.door(s.Via)
	return door != nil && slices.ContainsFunc(e.settings.Load().People, func(p connectors.Person) bool {
		return p.Addresses[s.Via] == s.Account
	})
}
