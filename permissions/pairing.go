package permissions

import "time"

// Pairing is an account of a channel that was proven to be a person's, so that the configuration need not name it. A
// person has at most one on each channel, and an account belongs to one person.
type Pairing struct {
	Person   string
	Via      string // the channel
	Address  string // the permanent id of the account: at Telegram, the numeric id
	Alias    string // another id of the same account, at WhatsApp its LID; empty without one
	PairedAt time.Time
	// SuspendedAt is since when the account answers for nobody because the store was restored; the operator may
	// reinstate it, or pair it again.
	SuspendedAt time.Time
}

// Name is how commands refer to the pairing.
func (p Pairing) Name() string { return p.Person + "/" + p.Via }

// OperatorName decides if nobody is configured, and is the name of a holder of admin.key who is not in the
// configuration.
const OperatorName = "operator"

// OwnerName stands in a route for the owner of the asking agent. No person may have this name.
const OwnerName = "owner"

// Suspended is everything that has been suspended since the store was restored.
type Suspended struct {
	Grants   []Grant
	Tokens   []Token
	Pairings []Pairing
}

// Count returns how many entries there are.
func (s Suspended) Count() int { return len(s.Grants) + len(s.Tokens) + len(s.Pairings) }

// Suspension says that an account may belong to somebody else since a time, though the channel calls it as before. It
// answers for nobody until it is paired again.
type Suspension struct {
	Via     string // the channel
	Address string // see [Pairing]
	At      time.Time
}

// Absence says that a person does not answer for a while. It changes when others are asked, never who may decide.
type Absence struct {
	Person string
	Until  time.Time
	// To is who is asked instead where the route lets them decide; empty: everybody to whom the route escalates.
	To  string
	At  time.Time // when they said so
	Via string
}

// MaxAbsence is the longest time for which a person can be away.
const MaxAbsence = 60 * 24 * time.Hour

// Holds reports whether the person is away at that time; the zero absence never holds.
func (a Absence) Holds(at time.Time) bool { return at.Before(a.Until) }

// Record returns the audit record of an absence that begins or, with PersonBack, ends.
func (a Absence) Record(what Type, via string, at time.Time) Record {
	r := Record{Type: what, At: at, Actor: a.Person, Via: via, Detail: map[string]string{
		"person": a.Person, "until": a.Until.UTC().Format(time.RFC3339),
	}}
	if a.To != "" {
		r.Detail["to"] = a.To
	}
	return r
}

// NoPerson refuses a name that nobody has; known says who there is.
func NoPerson(name, known string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "nobody in the configuration is called %q; %s", name, known)
}

const (
	// MaxUnknownSenders bounds the unknown senders that are stored by name for the owner; more are only counted.
	MaxUnknownSenders = 100
	// UnknownSendersEvery is the shortest time between two notices of unknown senders.
	UnknownSendersEvery = 24 * time.Hour
)

// UnknownSender is an account that wrote and belongs to nobody. Its messages are not stored.
type UnknownSender struct {
	Via     string // the channel
	Account string // as proven by the channel
	Alias   string // see [Pairing]
	Name    string // a claimed name: any text of at most [MaxName] characters
	At      time.Time
	// Proposed is whose account it is said to be; zero: nobody has said so.
	Proposed ProposedPairing
}

// ProposalLife is how long a [ProposedPairing] can be confirmed.
const ProposalLife = 24 * time.Hour

// ProposedPairing says that the account of an unknown sender is a person's. It pairs nothing until the operator or another person
// confirms it.
type ProposedPairing struct {
	Person   string
	By, From string // who said so, and by which account, as the audit names it
	At       time.Time
}

// Record returns the audit record of a proposal that is made or withdrawn.
func (s UnknownSender) Record(what Type, by, via string, at time.Time) Record {
	return Record{Type: what, At: at, Actor: by, Via: via, Detail: map[string]string{
		"person": s.Proposed.Person, "via": s.Via, "address": s.Account, "proposed_by": s.Proposed.By,
	}}
}

// NoSender refuses to pair an account of which nothing is known.
func NoSender(account string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "No unknown account %s wrote here within a day. Nothing was changed.", quoteName(account))
}

// HasAccount refuses to pair a person in a channel where they have an account.
func HasAccount(person string) *Refusal {
	return refuseIn(CodeInvalid, ExitUsage, "%s has an account there already. Nothing was changed.", person)
}

// OwnerProposes refuses a proposal of somebody else than the person who hears of unknown senders.
func OwnerProposes(owner string) *Refusal {
	return refuseIn(CodeNotYours, ExitOther, "Only %s, who hears of unknown accounts, says first whose one is. Nothing was changed.", owner)
}

// AnotherConfirms refuses to let the person who proposed a pairing confirm it.
func AnotherConfirms(person string) *Refusal {
	return refuseIn(CodeNotYours, ExitOther, "You said so already. It takes somebody else, or at the machine: daycared pair %s", person)
}

// ProposedFor refuses a proposal beside another one.
func ProposedFor(account, person string) *Refusal {
	return refuseIn(CodeSettled, ExitOther, "%[1]s is said to be %[2]s's already. Take that back first: /unpair %[2]s %[1]s", account, person)
}

// NotProposed refuses to withdraw a proposal that is not there.
func NotProposed(account, person string) *Refusal {
	return refuseIn(CodeSettled, ExitOther, "Nobody says now that %s is %s's. Nothing was changed.", quoteName(account), quoteName(person))
}

// UnknownSenders are those that the owner was not told of yet.
type UnknownSenders struct {
	List   []UnknownSender // at most [MaxUnknownSenders], oldest first
	More   int             // how many more messages of others; repeated senders count again
	UpTo   int64           // the store's number of the last
	ToldAt time.Time       // when the owner was last told, within [UnknownSendersEvery]
}

// Count returns how many there are.
func (s UnknownSenders) Count() int { return len(s.List) + s.More }
