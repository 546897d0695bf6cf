package wiretest

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Methods for what the fake lacks: agents, locks, pairings and suspensions.

func (d *Desk) nobody(id connectors.Identity) error {
	if _, err := d.Who(id); err != nil {
		return err
	}
	return permissions.NoAgent()
}

// Person is the one of an identity.
func (d *Desk) Person(id connectors.Identity) (connectors.Person, error) {
	name, err := d.Who(id)
	return connectors.Person{Name: name}, err
}

// OnMessage reaches no agent.
func (d *Desk) OnMessage(_ context.Context, m connectors.Message) error { return d.nobody(m.From) }

// Agents are none.
func (d *Desk) Agents(_ context.Context, id connectors.Identity) ([]permissions.Presence, error) {
	return nil, d.nobody(id)
}

// Use finds no agent.
func (d *Desk) Use(_ context.Context, id connectors.Identity, _ string) (string, error) {
	return "", d.nobody(id)
}

// Order reaches no agent.
func (d *Desk) Order(_ context.Context, id connectors.Identity, _ permissions.Order, _ string) (string, error) {
	return "", d.nobody(id)
}

// Lock knows nobody of that name.
func (d *Desk) Lock(_ context.Context, _ connectors.Identity, name string, _ time.Time) (permissions.Locked, error) {
	return permissions.Locked{}, permissions.NoPerson(name, "fay")
}

// Unlock knows nobody of that name.
func (d *Desk) Unlock(_ context.Context, _ connectors.Identity, name string) (permissions.Lock, bool, error) {
	return permissions.Lock{}, false, permissions.NoPerson(name, "fay")
}

// Locks are none.
func (d *Desk) Locks() []permissions.Lock { return nil }

// Invite is for nobody.
func (d *Desk) Invite(_ context.Context, _ connectors.Identity, name, _ string) (connectors.Invitation, error) {
	return connectors.Invitation{}, permissions.NoPerson(name, "fay")
}

// Guest knows no invitation.
func (d *Desk) Guest(context.Context, connectors.Identity, string) (connectors.PairingCandidate, error) {
	return connectors.PairingCandidate{}, permissions.Unknown("code")
}

// Pair knows no invitation.
func (d *Desk) Pair(_ context.Context, _ connectors.Identity, _, _ string) (now, was permissions.Pairing, err error) {
	return now, was, permissions.Unknown("code")
}

// Dismiss ends nothing.
func (d *Desk) Dismiss(context.Context, connectors.Identity, string) error { return nil }

// Unpair finds no pairing.
func (d *Desk) Unpair(_ context.Context, _ connectors.Identity, name, via string) (permissions.Pairing, error) {
	return permissions.Pairing{}, permissions.NoPairing(name, via)
}

// Suspended is nothing.
func (d *Desk) Suspended(context.Context, connectors.Identity) (s permissions.Suspended, err error) {
	return s, nil
}

// Reinstate reinstates nothing.
func (d *Desk) Reinstate(context.Context, connectors.Identity, []string) (s permissions.Suspended, err error) {
	return s, nil
}
