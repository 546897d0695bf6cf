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

// pairingLink is the person and the channel of a link.
type pairingLink struct {
	name   string
	pairer connectors.Pairer
	via    string
	ends   func() bool // reports whether the link is over
	// proposed is the unknown sender whose account the operator is asked about, instead of whoever follows the link.
	proposed permissions.UnknownSender
}

// Invite creates a link by which somebody brings the account that will answer as the named person. If somebody has proposed an
// account of theirs, that account is the guest, and there is no link. Like all pairing operations except proposals it is for the
// operator.
func (d *Directory) Invite(
	ctx context.Context, id connectors.Identity, name, via string,
) (connectors.Invitation, error) {
	door, person, err := d.pairable(id, name, via)
	if err != nil {
		return connectors.Invitation{}, err
	}
	if d.readsChats != nil && !d.readsChats() {
		return connectors.Invitation{}, permissions.PairElsewhere()
	}
	if at := person.Addresses[via]; at != "" && !d.isSuspended(via, at) {
		return connectors.Invitation{}, configuredError(name, via)
	}
	i, err := door.Invite(ctx)
	if err != nil {
		return connectors.Invitation{}, &permissions.Refusal{
			Code: permissions.CodeBroken, Exit: permissions.ExitOther, Text: fmt.Sprintf("No link can be made just now: %v.", err),
		}
	}
	in := pairingLink{name: name, pairer: door, via: via, ends: func() bool { return !d.clock.Now().Before(i.Until) }}
	s, found, err := d.sender(ctx, func(s permissions.UnknownSender) bool { return s.Via == via && s.Proposed.Person == name })
	if err != nil {
		return connectors.Invitation{}, err
	}
	guest := connectors.PairingCandidate{Address: s.Account, Alias: s.Alias, Name: s.Name, By: s.Proposed.By}
	if found && door.Take(i.Code, guest) {
		in.proposed, i.Link, i.How = s, "", ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for code, old := range d.links {
		if old.ends() {
			delete(d.links, code)
		}
	}
	d.links[i.Code] = in
	return i, nil
}

// Guest waits until somebody has followed an invitation's link, and rejects an account that answers as another person.
func (d *Directory) Guest(ctx context.Context, id connectors.Identity, code string) (connectors.PairingCandidate, error) {
	in, err := d.invitation(id, code)
	if err != nil {
		return connectors.PairingCandidate{}, err
	}
	g, err := in.pairer.AwaitCandidate(ctx, code)
	if errors.Is(err, connectors.ErrNoInvitation) {
		d.forget(code)
		return connectors.PairingCandidate{}, linkOverError()
	}
	if err != nil {
		return connectors.PairingCandidate{}, err
	}
	if owner := d.owner(in.via, g.Address); owner != "" && owner != in.name {
		d.forget(code)
		in.pairer.Dismiss(code)
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
	if err := d.checkAccount(id, in, address); err != nil {
		return now, was, err
	}
	who, err := d.Who(id)
	if err != nil {
		return now, was, err
	}
	now = permissions.Pairing{Person: in.name, Via: in.via, Address: address, Alias: g.Alias}
	return d.pair(ctx, in, now, code, who, id.Via)
}

// pair stores a pairing and puts it into force. The lock pairing is held.
func (d *Directory) pair(
	ctx context.Context, in pairingLink, now permissions.Pairing, code, by, via string,
) (_, was permissions.Pairing, err error) {
	now.PairedAt = d.clock.Stamp()
	if was, err = d.store.Pair(ctx, now, by, via); err != nil {
		return now, was, shared.Broken(err)
	}
	d.forget(code)
	address := now.Address
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
		in.pairer.Release(was.Address, in.name)
	}
	in.pairer.Greet(code, address, in.name)
	return now, was, nil
}

// guest returns who followed the link with that code, if it is the expected account.
func (in pairingLink) guest(ctx context.Context, code, address string) (connectors.PairingCandidate, error) {
	present, cancel := context.WithCancel(ctx)
	cancel() // the expected guest is there already
	g, err := in.pairer.AwaitCandidate(present, code)
	switch {
	case errors.Is(err, connectors.ErrNoInvitation):
		return g, linkOverError()
	case err != nil || g.Address != address:
		return g, permissions.InvalidInput("nobody with the account %s came by this link", address)
	}
	return g, nil
}

// checkAccount refuses an account that the invited person may not use. The configuration may have changed since.
func (d *Directory) checkAccount(id connectors.Identity, in pairingLink, address string) error {
	_, person, err := d.pairable(id, in.name, in.via)
	if err != nil {
		return err
	}
	if own := person.Addresses[in.via]; own != "" && own != address {
		return configuredError(in.name, in.via)
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
func (d *Directory) Dismiss(ctx context.Context, id connectors.Identity, code string) error {
	in, err := d.invitation(id, code)
	if err != nil {
		return err
	}
	d.forget(code)
	in.pairer.Dismiss(code)
	if in.proposed.Account == "" {
		return nil
	}
	d.pairing.Lock()
	defer d.pairing.Unlock()
	who, err := d.Who(id)
	if err != nil {
		return err
	}
	return d.withdraw(ctx, in.proposed, who, id.Via)
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
			return was, configuredError(name, via)
		}
	}
	var closed error
	if was, err = d.store.Unpair(ctx, name, via, who, id.Via, d.clock.Stamp()); err != nil {
		missing, err := d.FindMissing(ctx, err, permissions.Unpaired, permissions.Pairing{Person: name, Via: via}.Name())
		if err != nil {
			return was, shared.Broken(err)
		}
		was.Address = missing[0].Detail["address"]
		if closed = d.CloseMissing(ctx, id, who, missing); permissions.CodeOf(closed) != permissions.CodeGone {
			return was, closed
		}
	}
	if err := d.readPairings(context.WithoutCancel(ctx)); err != nil {
		return was, shared.Broken(err)
	}
	d.realign(true)
	if door != nil && !d.isSuspended(via, was.Address) {
		door.Release(was.Address, name)
	}
	return was, closed
}

// pairable returns the channel and the configured person of a new pairing.
func (d *Directory) pairable(
	id connectors.Identity, name, via string,
) (door connectors.Pairer, person connectors.Person, err error) {
	if !id.Operator {
		return nil, person, permissions.OperatorOnly()
	}
	return d.free(name, via)
}

// free returns the channel and the configured person of a new pairing, whoever asks for it.
func (d *Directory) free(name, via string) (door connectors.Pairer, person connectors.Person, err error) {
	door = d.Pairer(via)
	if door == nil {
		return nil, person, permissions.InvalidInput("nobody can be paired via %s: it is not switched on here", via)
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
	for _, p := range d.peopleWithPairings() {
		if address != "" && p.Addresses[via] == address {
			return p.Name
		}
	}
	return ""
}

func (d *Directory) invitation(id connectors.Identity, code string) (pairingLink, error) {
	if !id.Operator {
		return pairingLink{}, permissions.OperatorOnly()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	in, known := d.links[code]
	if !known {
		return pairingLink{}, linkOverError()
	}
	return in, nil
}

func (d *Directory) forget(code string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.links, code)
}

// readPairings puts the stored pairings into force.
func (d *Directory) readPairings(ctx context.Context) error {
	return reread(ctx, d, d.store.Pairings, &d.pairings)
}

func linkOverError() error {
	return &permissions.Refusal{
		Code: permissions.CodeGone, Exit: permissions.ExitNobody,
		Text: "The link works no more: it is used, or its time is over. Nothing was changed.",
	}
}

func configuredError(name, via string) error {
	return permissions.InvalidInput("%s's %s account stands in the configuration, which wins; change it there", name, via)
}

// IsKnown reports whether an unknown sender is a known person by now.
func (d *Directory) IsKnown(s permissions.UnknownSender) bool {
	door := d.Pairer(s.Via)
	return door != nil && slices.ContainsFunc(d.settings.Load().People, func(p connectors.Person) bool {
		return p.Addresses[s.Via] == s.Account
	})
}

// PairSender says that an unknown sender's account is a person's who has none in that channel. Said first by the person who is
// told of unknown senders, it is a proposal, of which everybody else is told; said by the operator or another person within
// [permissions.ProposalLife], it pairs. Neither counts from an account that agents ask from, which could so get themselves a person.
func (d *Directory) PairSender(
	ctx context.Context, id connectors.Identity, name, account string,
) (s permissions.UnknownSender, paired bool, err error) {
	d.pairing.Lock()
	defer d.pairing.Unlock()
	who, err := d.Who(id)
	if err == nil {
		err = d.RefuseAskingAccount(ctx, id, "")
	}
	if err != nil {
		return s, false, err
	}
	s, found, err := d.sender(ctx, func(s permissions.UnknownSender) bool { return s.Account == account })
	switch {
	case err != nil:
		return s, false, err
	case !found:
		return s, false, permissions.NoSender(account)
	}
	door, person, err := d.free(name, s.Via)
	if err != nil {
		return s, false, err
	}
	owner := d.settings.Load().Owner().Name
	others, err := d.proposals(ctx)
	i := slices.IndexFunc(others, func(o permissions.UnknownSender) bool { return o.Via == s.Via && o.Proposed.Person == name })
	switch p := s.Proposed; {
	case err != nil:
		return s, false, err
	case d.accountOf(person.Name, s.Via) != "":
		return s, false, permissions.HasAccount(name)
	case p.Person != "" && p.Person != name:
		return s, false, permissions.ProposedFor(account, p.Person)
	case p.Person == "" && i >= 0:
		return s, false, permissions.ProposedFor(others[i].Account, name)
	case p.Person == "" && who != owner:
		return s, false, permissions.OwnerProposes(owner)
	case p.Person == "":
		return d.propose(ctx, id, s, name, who)
	case p.By == who && !id.Operator:
		return s, false, permissions.AnotherConfirms(name)
	}
	now := permissions.Pairing{Person: name, Via: s.Via, Address: s.Account, Alias: s.Alias}
	_, _, err = d.pair(ctx, pairingLink{name: name, pairer: door, via: s.Via}, now, "", who, id.Via)
	return s, err == nil, err
}

func (d *Directory) propose(
	ctx context.Context, id connectors.Identity, s permissions.UnknownSender, name, who string,
) (_ permissions.UnknownSender, paired bool, err error) {
	now := d.clock.Stamp()
	s.Proposed = permissions.ProposedPairing{Person: name, By: who, From: d.settings.Load().AccountOf(id), At: now}
	var tell []permissions.Notice
	for _, p := range d.settings.Load().People {
		if p.Name != who && p.Locked == "" {
			tell = append(tell, permissions.Notice{
				To: p.Name, About: permissions.AboutPairing, Subject: permissions.ID(s.Account), By: who, CreatedAt: now,
			})
		}
	}
	if err := d.store.PutProposal(ctx, s, s.Record(permissions.PairingProposed, who, id.Via, now), tell); err != nil {
		return s, false, shared.Broken(err)
	}
	d.noticed()
	return s, false, nil
}

// WithdrawPairing ends a proposal of [Directory.PairSender], for everybody who may confirm it and for who made it.
func (d *Directory) WithdrawPairing(ctx context.Context, id connectors.Identity, name, account string) error {
	d.pairing.Lock()
	defer d.pairing.Unlock()
	who, err := d.Who(id)
	if err != nil {
		return err
	}
	s, found, err := d.Proposal(ctx, account)
	if err == nil && (!found || s.Proposed.Person != name) {
		err = permissions.NotProposed(account, name)
	}
	if err != nil {
		return err
	}
	return d.withdraw(ctx, s, who, id.Via)
}

// WithdrawPairingsOf ends what a person who is locked proposed: somebody else may have had their account.
func (d *Directory) WithdrawPairingsOf(ctx context.Context, name, who, via string) error {
	d.pairing.Lock()
	defer d.pairing.Unlock()
	all, err := d.store.Senders(ctx)
	for _, s := range all {
		if err == nil && s.Proposed.Person != "" && s.Proposed.By == name {
			err = d.withdraw(ctx, s, who, via)
		}
	}
	return shared.Broken(err)
}

func (d *Directory) withdraw(ctx context.Context, s permissions.UnknownSender, who, via string) error {
	return shared.Broken(d.store.PutProposal(ctx, s, s.Record(permissions.PairingWithdrawn, who, via, d.clock.Stamp()), nil))
}

// Proposal returns the unknown sender with that account if it can be confirmed now whose it is.
func (d *Directory) Proposal(ctx context.Context, account string) (s permissions.UnknownSender, found bool, err error) {
	return d.sender(ctx, func(s permissions.UnknownSender) bool { return s.Account == account && s.Proposed.Person != "" })
}

// sender returns the only unknown sender of some kind; found is false if there is none, or more than one.
func (d *Directory) sender(
	ctx context.Context, is func(permissions.UnknownSender) bool,
) (s permissions.UnknownSender, found bool, err error) {
	all, err := d.senders(ctx)
	all = slices.DeleteFunc(all, func(s permissions.UnknownSender) bool { return !is(s) })
	if err != nil || len(all) != 1 {
		return s, false, err
	}
	return all[0], true, nil
}

func (d *Directory) proposals(ctx context.Context) ([]permissions.UnknownSender, error) {
	all, err := d.senders(ctx)
	return slices.DeleteFunc(all, func(s permissions.UnknownSender) bool { return s.Proposed.Person == "" }), err
}

// senders lists the unknown senders who are nobody's still, without proposals that cannot be confirmed: those that are over, and
// those of somebody who is locked or has another account since.
func (d *Directory) senders(ctx context.Context) ([]permissions.UnknownSender, error) {
	all, err := d.store.Senders(ctx)
	if err != nil {
		return nil, shared.Broken(err)
	}
	voices, now := UnlockedAccounts(d.settings.Load().People), d.clock.Now()
	all = slices.DeleteFunc(all, func(s permissions.UnknownSender) bool {
		return d.Pairer(s.Via) == nil || d.owner(s.Via, s.Account) != ""
	})
	for i, s := range all {
		p := s.Proposed
		said, left := p.By+" ("+p.From+")", p.At.Add(permissions.ProposalLife).Sub(now)
		if !slices.Contains(voices, said) || left <= 0 || left > permissions.ProposalLife || d.accountOf(p.Person, s.Via) != "" {
			all[i].Proposed = permissions.ProposedPairing{}
		}
	}
	return all, nil
}

// Unpaired returns the people who can be paired in a channel and have no account there, not even a suspended one.
func (d *Directory) Unpaired(via string) (names []string) {
	if d.Pairer(via) == nil {
		return nil
	}
	for _, p := range d.settings.Load().People {
		if p.Locked == "" && d.accountOf(p.Name, via) == "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// accountOf returns the account of a person in a channel, suspended or not; empty for none.
func (d *Directory) accountOf(name, via string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.peopleWithPairings() {
		if p.Name == name {
			return p.Addresses[via]
		}
	}
	return ""
}
