package permissions

import (
	"strings"
	"time"
)

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

// OperatorName is who decides where nobody is configured, and whoever holds admin.key without being a person of the
// configuration.
const OperatorName = "operator"

// OwnerName stands in a route for the person whose agent asks. Nobody is called that.
const OwnerName = "owner"

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

// Lock says that nothing that comes from a person's accounts counts, until somebody else unlocks them.
type Lock struct {
	Person string
	// Accounts are those that the person had, as the audit names them: telegram:ID, whatsapp:NUMBER, uid:N. They stay locked
	// whoever the configuration gives them to.
	Accounts  []string
	At        time.Time
	By, Via   string
	Unlocking []string // who has said that the lock may end, each with the account that said it: sam (uid:1001)
	Holds     []string // other names under which the configuration has now whoever is locked by it; not stored
	Unsaved   *Record  // what the audit is to say of it, while it could not be stored; nil once it is
}

// Locked is what locking a person did, with what was taken back of all that they had given since a time.
type Locked struct {
	Lock
	Already bool      // they were locked before, and nothing is new
	Voided  []Request // approvals that were not used
	Used    []Request // approvals that were, and what they allowed ran
	Revoked []Revoked // grants, and what ran under them
}

// Record is what the audit says of a lock.
func (l Lock) Record(what Type, by, via string, at time.Time) Record {
	return Record{Type: what, At: at, Actor: by, Via: via, Detail: map[string]string{
		"person": l.Person, "accounts": strings.Join(l.Accounts, ", "), "unlocking": strings.Join(l.Unlocking, ", "),
	}}
}

// LockedOut refuses whoever is locked.
func LockedOut(person string) *Refusal {
	return refuse(CodeLocked, ExitOther,
		"%s is locked: nothing from this account counts until the operator, or two other people, unlock %s.", person, person)
}

// LockIncomplete is the refusal to say that everything was taken back that a person who is locked has given, and why.
func LockIncomplete(name string, approvals, grants int, why string) *Refusal {
	return refuse(CodeBroken, ExitOther, "%s is locked. Taken back: %d unused approvals and %d grants, but there may be more: %s.",
		name, approvals, grants, why)
}

// LockUnsaved says that somebody is locked, that this could not be stored, and why.
func LockUnsaved(person, why string) *Refusal {
	return refuse(CodeBroken, ExitOther, "%s is locked now, but that is not saved: %s; a restart before it is saved forgets it. "+
		"Nothing was taken back.", person, why)
}

// NotLocked refuses to unlock whoever is not locked.
func NotLocked(person string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "%s is not locked.", bare(person))
}

// OperatorUnlocks refuses an unlocking where fewer than two others could agree to it.
func OperatorUnlocks(person string) *Refusal {
	return refuse(CodeNotYours, ExitOther, "There are not two people who could agree to this, so only the operator unlocks %s, "+
		"with admin.key in reach.", person)
}

// NoPerson refuses a name that nobody has; known says who there is.
func NoPerson(name, known string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "nobody in the configuration is called %q; %s", name, known)
}

const (
	// MaxUnknownSenders is how many strangers are kept by name for the owner to hear of; of more it is only counted how many.
	MaxUnknownSenders = 100
	// UnknownSendersEvery is how often the owner hears of strangers, at most.
	UnknownSendersEvery = 24 * time.Hour
)

// UnknownSender is an account of nobody here that wrote. Nothing that it wrote is kept.
type UnknownSender struct {
	Via     string // the channel
	Account string // as the channel proves it
	Name    string // what they claim to be called: anything, at most [MaxName] characters
	At      time.Time
}

// UnknownSenders are those whom the owner was not told of yet.
type UnknownSenders struct {
	List   []UnknownSender // at most [MaxUnknownSenders], the first that wrote first
	More   int             // how many more were met; one that is met again counts again
	UpTo   int64           // the store's number of the last
	ToldAt time.Time       // when the owner was told last, if that is not longer ago than [UnknownSendersEvery]
}

// Count is how many there are.
func (s UnknownSenders) Count() int { return len(s.List) + s.More }
