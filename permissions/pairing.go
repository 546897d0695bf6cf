package permissions

import "time"

// Pairing is an account of a channel that proved to be a person's, so that no configuration has to name it. A person has
// at most one on each channel, and an account is one person's.
type Pairing struct {
	Person   string
	Via      string // the channel
	Address  string // as the channel knows the account for good: at Telegram, the numeric id
	Alias    string // another name that the channel has for the same account, at WhatsApp its LID; empty where there is none
	PairedAt time.Time
	// SuspendedAt is since when the account answers for nobody, because the store was restored; the operator may reinstate
	// it, or pair it again.
	SuspendedAt time.Time
}

// Name is what commands call the pairing.
func (p Pairing) Name() string { return p.Person + "/" + p.Via }

// Suspended is everything that opens nothing since the store was restored.
type Suspended struct {
	Grants   []Grant
	Tokens   []Token
	Pairings []Pairing
}

// Count is how many there are.
func (s Suspended) Count() int { return len(s.Grants) + len(s.Tokens) + len(s.Pairings) }

// Suspension says that an account may be somebody else's since a time, though the channel calls it as before. It is
// nobody's until it is paired again.
type Suspension struct {
	Via     string // the channel
	Address string // see [Pairing]
	At      time.Time
}
