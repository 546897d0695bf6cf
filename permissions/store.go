package permissions

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"
)

// Store is where requests are kept: what the [Registry] needs of it. Every method either did all of what it says,
// durably, before it returned nil, or nothing. Errors that mean the store itself is unwell match [ErrBroken].
// Implementations are safe for concurrent use.
type Store interface {
	// Open inserts o.Request, or finds the request it joins: the one of its id, else of its key, else a pending one of
	// an equal digest of the same caller and session; or, where a hook asks, an approval of such a one that nobody has
	// come for within o.RedeemWindow. It returns the row as stored, and whether it was inserted. It
	// refuses with a *[Refusal] other content under an id or a key in use, and what is beyond o's limits.
	Open(ctx context.Context, o Opening) (r Request, created bool, err error)

	// Apply loads a request, lets [Step] say what e does, and commits the whole change if the row is still the one
	// loaded. An error of Step is returned as it is, with nothing changed. A Use of what rested on a grant that is over
	// commits a [Void] instead. A vote whose key is already stored changes
	// nothing: the Change is empty.
	Apply(ctx context.Context, id ID, e Transition) (Change, error)

	// Read gives one request with its votes. A missing one is a *[Refusal] with [CodeUnknown].
	Read(ctx context.Context, id ID) (Request, error)

	// Due lists at most limit events that time has made due at now, the longest overdue first, and when the next one
	// will be (zero: none). redeem is how long an unused approval is kept.
	Due(ctx context.Context, now time.Time, redeem time.Duration, limit int) (due []Due, next time.Time, err error)

	// EndGrants notes of at most limit grants that they are over at now, and leaves a notice for everybody who allowed
	// them. It returns those, and when the next one will be over (zero: none).
	EndGrants(ctx context.Context, now time.Time, limit int) (ended []Grant, next time.Time, err error)

	// EndGrantsNow is EndGrants for those that were measured to be over, whatever the clock says. It returns the ones
	// that were still in force.
	EndGrantsNow(ctx context.Context, ids []ID, now time.Time) (ended []Grant, err error)

	// Stop cancels everything that is pending, suspends every grant and refuses new requests and the use of approvals
	// with a *[Refusal] with [CodeStopped], until Resume. The stop itself is committed first; what waited is cancelled
	// after it, and the next Stop finishes one that was cut short. Beside an error it returns what it cancelled.
	Stop(ctx context.Context, by, via string, at time.Time) (cancelled []Request, err error)
}

// Opening is a request about to be inserted, with what the store must check and write in the same commit.
type Opening struct {
	Request Request
	Copies  []Copy // to be shown
	// Told are further entries of the audit about a request that is inserted to wait for people, in the same commit.
	Told []Record
	// RedeemWindow is how long a key finds its settled request.
	RedeemWindow time.Duration
	// PerCaller and Total are the most requests that may be pending; 0 for no limit.
	PerCaller, Total int
	// CoolDown is how long an action that was denied twice is not asked again; 0 for no such rest.
	CoolDown time.Duration
	// Exhausted, when positive, is how long nothing may prompt anybody for this caller: what would be pending is refused
	// with that as the time to try again, unless it joins something.
	Exhausted time.Duration
}

// WaitKind is how somebody waits whom a daemon that is started anew cannot see.
type WaitKind string

// The kinds of [Wait].
const (
	WaitProcess   WaitKind = "process"   // a process of this machine, whose end withdraws what it asked
	WaitCancelled WaitKind = "cancelled" // its asker cancelled the call: the request is withdrawn unless somebody comes back
	WaitDialog    WaitKind = "dialog"    // the asker's program shows a dialog, and comes back with its answer
)

// Wait is what is kept of one who waits for a pending request, so that a daemon that is started anew knows it. It decides nothing.
type Wait struct {
	Request ID
	Kind    WaitKind
	Call    string    // of a process: the name of its call
	PID     int       // of a process
	Began   string    // of a process: when it began, in the kernel's words; empty where that is not known
	Until   time.Time // when a process ends by itself, or a cancelled call's request is withdrawn; zero: never
}

// Due is an event whose time has come.
type Due struct {
	ID    ID
	Event Transition // Expire, Lapse, Escalate or Remind
}

// Copy is a request as shown to one person. A copy whose Shown revision is older than its request's is brought up to
// date by whoever shows it; no rendered text is kept. The copies of a request in one Place are one message that several
// people see: they share Ref and Button, and are shown and fail together.
type Copy struct {
	Request   ID
	Person    string
	Connector string
	Group     string    // see [Request]; empty: it is this person's alone
	Ref       string    // the connector's own name for what it sent; empty until it was
	Button    string    // random: its buttons carry it, so that nobody can press what they were not sent
	Shown     int64     // the revision last shown
	Since     time.Time // it is to be shown; how long a channel that is away is tried counts from here
	SentAt    time.Time
	Dated     time.Time // when the channel says that it was sent, by its own clock; zero: it did not say
	Failed    string    // why it never will be shown
}

// ElsewhereError says that a copy is known by another name than one that was to be noted for it, which was not.
type ElsewhereError struct{ Ref string }

func (e *ElsewhereError) Error() string { return "the copy is another message" }

// Keep is how long what is settled is kept; 0 is for ever.
type Keep struct {
	Requests time.Duration // rows, with their votes and copies
	Payloads time.Duration // what was asked in words: inputs, details, messages, reasons
	Audit    time.Duration
}

// NewButton makes the value that the buttons of one copy carry: 128 random bits.
func NewButton() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
