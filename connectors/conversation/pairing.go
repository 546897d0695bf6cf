package conversation

import (
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions/i18n"
)

// Pairing is what is the same in every [connectors.Pairer] that writes to accounts.
type Pairing struct {
	*connectors.Invitations
	Host    string              // names the machine; may be empty
	Welcome i18n.Phrase         // goes on after the sentence that greets a person
	Shown   func(string) string // makes a name visible, as the channel does
}

// place is where the daemon runs, for a sentence.
func (p Pairing) place(in i18n.Language) string {
	if p.Host == "" {
		return in.Text("here")
	}
	return in.Sprintf("on %s", p.Shown(p.Host))
}

// Dismiss is [connectors.Pairer].
func (p Pairing) Dismiss(code string) {
	if g, came := p.End(code); came {
		p.Write(g.Address, i18n.Known(g.Language).Text("You were not added: whoever runs daycared did not confirm it. Nothing was changed."))
	}
}

// Greet is [connectors.Pairer].
func (p Pairing) Greet(code, address, name string) {
	g, _ := p.End(code)
	in := i18n.Known(g.Language)
	p.Write(address, in.Sprintf("You answer for daycared %s as %s.", p.place(in), p.Shown(name))+in.Text(p.Welcome))
}

// Release is [connectors.Pairer].
func (p Pairing) Release(address, name string) {
	in := i18n.English
	p.Write(address, in.Sprintf("You no longer answer for daycared %s as %s. Nothing is asked here any more.", p.place(in), p.Shown(name)))
}
