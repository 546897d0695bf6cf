package conversation

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
)

// Pairing is what is the same in every [connectors.Pairer] that writes to accounts.
type Pairing struct {
	*connectors.Invitations
	place   string // where the daemon runs, after its name
	welcome string
}

// NewPairing makes one. host names the machine and may be empty; welcome goes on after the sentence that greets a person.
func NewPairing(now func() time.Time, host, welcome string) Pairing {
	place := " here"
	if host = card.Visible(host); host != "" {
		place = " on " + host
	}
	return Pairing{connectors.NewInvitations(now), place, welcome}
}

// AwaitCandidate is [connectors.Pairer].
func (p Pairing) AwaitCandidate(ctx context.Context, code string) (connectors.PairingCandidate, error) {
	return p.Guest(ctx, code)
}

// Dismiss is [connectors.Pairer].
func (p Pairing) Dismiss(code string) {
	if g, came := p.End(code); came {
		p.Write(g.Address, "You were not added: whoever runs daycared did not confirm it. Nothing was changed.")
	}
}

// Greet is [connectors.Pairer].
func (p Pairing) Greet(code, address, name string) {
	p.End(code)
	p.Write(address, "You answer for daycared"+p.place+" as "+card.Visible(name)+"."+p.welcome)
}

// Release is [connectors.Pairer].
func (p Pairing) Release(address, name string) {
	p.Write(address, "You no longer answer for daycared"+p.place+" as "+card.Visible(name)+". Nothing is asked here any more.")
}
