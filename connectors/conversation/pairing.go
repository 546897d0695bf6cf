package conversation

import (
	"context"

	"github.com/daycared/daycared/connectors"
)

// Pairing is what is the same in every [connectors.Pairer] that writes to accounts.
type Pairing struct {
	*connectors.Invitations
	Host    string              // names the machine; may be empty
	Welcome string              // goes on after the sentence that greets a person
	Shown   func(string) string // makes a name visible, as the channel does
}

// place is where the daemon runs, for a sentence.
func (p Pairing) place() string {
	if p.Host == "" {
		return "here"
	}
	return "on " + p.Shown(p.Host)
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
	p.Write(address, "You answer for daycared "+p.place()+" as "+p.Shown(name)+"."+p.Welcome)
}

// Release is [connectors.Pairer].
func (p Pairing) Release(address, name string) {
	p.Write(address, "You no longer answer for daycared "+p.place()+" as "+p.Shown(name)+". Nothing is asked here any more.")
}
