package permissions

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"
)

// Store keeps requests, as far as the [Registry] needs. Every method either did everything it says, durably, before it
// returned nil, or nothing. Errors that mean the store itself is unusable match [ErrBroken]. Implementations are safe
// for concurrent use.
type Store interface {
	// Open inserts o.Request, or finds the request that it joins: the one of its id, else of its key, else a pending one
	// of an equal digest of the same caller and session; for a hook, also an approval of such a request that nobody has
	// collected within o.RedeemWindow. It returns the row as stored, and whether it was inserted. It refuses with a
	// *[Refusal] different content under an id or a key in use, and requests beyond o's limits.
	Open(ctx context.Context, o Opening) (r Request, created bool, err error)

	// Apply loads a request, applies e with [Step], and commits the whole change if the row is still the one loaded. An
	// error of Step is returned unchanged, with nothing changed. A Use of an approval based on a grant that is over
	// commits a [Void] instead. A vote whose key is already stored changes nothing: the Change is empty.
	Apply(ctx context.Context, id ID, e Transition) (Change, error)

	// Read returns one request with its votes. A missing one is a *[Refusal] with [CodeUnknown].
	Read(ctx context.Context, id ID) (Request, error)

	// Due lists at most limit events that are due at now, the longest overdue first, and when the next one will be
	// (zero: never). redeem is how long an unused approval is kept.
	Due(ctx context.Context, now time.Time, redeem time.Duration, limit int) (due []Due, next time.Time, err error)

	// EndGrants ends at most limit grants that are over at now, and leaves a notice for everybody who allowed them. It
	// returns those, and when the next one will be over (zero: none).
	EndGrants(ctx context.Context, now time.Time, limit int) (ended []Grant, next time.Time, err error)

	// EndGrantsNow is EndGrants for those that are over by monotonic time, whatever the wall clock says. It returns the
	// ones that were still in force.
	EndGrantsNow(ctx context.Context, ids []ID, now time.Time) (ended []Grant, err error)

	// Stop cancels everything pending, suspends every grant and refuses new requests and the use of approvals with a
	// *[Refusal] with [CodeStopped], until Resume. The stop itself is committed first, then the pending requests are
	// cancelled; the next Stop completes an interrupted one. It returns what it cancelled even with an error.
	Stop(ctx context.Context, by, via string, at time.Time) (cancelled []Request, err error)
}

// Opening is a request about to be inserted, with what the store must check and write in the same commit.
type Opening struct {
	Request Request
	Copies  []Copy // to be shown
	// Told are further audit records about a request that is inserted as pending, in the same commit.
	Told []Record
	// RedeemWindow is how long a key finds its settled request.
	RedeemWindow time.Duration
	// PerCaller and Total bound the pending requests; 0 for no limit.
	PerCaller, Total int
	// CoolDown is how long an action that was denied twice is not asked again; 0: no such limit.
	CoolDown time.Duration
	// Exhausted, if positive, is how long nothing may prompt anybody for this caller: a request that would be pending is
	// refused with that delay, unless it joins another.
	Exhausted time.Duration
}

// WaitKind is how somebody waits in a way that a restarted daemon cannot observe.
type WaitKind string

// The kinds of [Wait].
const (
	WaitProcess   WaitKind = "process"   // a local process, whose end withdraws its requests
	WaitCancelled WaitKind = "cancelled" // the asker cancelled the call: the request is withdrawn unless it is asked again
	WaitDialog    WaitKind = "dialog"    // the asker's program shows a dialog, and returns with the answer
)

// Wait is the record of somebody who waits for a pending request, for use after a restart. It decides nothing.
type Wait struct {
	Request ID
	Kind    WaitKind
	Call    string    // of a process: the name of its call
	PID     int       // of a process
	Began   string    // of a process: its start time, in the kernel's words; empty if unknown
	Until   time.Time // when a process ends by itself, or a cancelled call's request is withdrawn; zero: never
}

// Due is an event that is due.
type Due struct {
	ID    ID
	Event Transition // Expire, Lapse, Escalate or Remind
}

// Copy is a request as shown to one person. A copy whose Shown revision is older than its request's is outdated and has
// to be edited; no rendered text is stored. The copies of a request in one Group are one message that several people
// see: they share Ref and Button, and are shown and fail together.
type Copy struct {
	Request   ID
	Person    string
	Connector string
	Group     string    // see [Request]; empty: it is this person's alone
	Ref       string    // the connector's id of the message; empty until it was sent
	Button    string    // random data of its buttons, so that nobody can press what they were not sent
	Shown     int64     // the revision last shown
	Since     time.Time // when it is due; the time for trying an unreachable channel starts here
	SentAt    time.Time
	Dated     time.Time // the send time by the channel's own clock; zero: unknown
	Failed    string    // why it will never be shown
}

// ElsewhereError says that a copy is known as another message than the one to be recorded, which was not.
type ElsewhereError struct{ Ref string }

func (e *ElsewhereError) Error() string { return "the copy is another message" }

// Keep is how long settled requests are kept; 0 is for ever.
type Keep struct {
	Requests time.Duration // rows, with their votes and copies
	Payloads time.Duration // the text of requests: inputs, details, messages, reasons
	Audit    time.Duration
}

// NewButton creates the value in the buttons of one copy: 128 random bits.
func NewButton() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
