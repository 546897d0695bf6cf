package permissions

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"math"
	"time"
)

// ErrBroken matches errors that mean the store cannot be read or written now.
var ErrBroken = errors.New("store unusable")

// ErrAway matches, in addition to [ErrBroken], errors of a store that cannot be reached now, and can be used again by itself.
var ErrAway = errors.New("store out of reach")

// ErrRow matches, in addition to [ErrBroken], errors of one unreadable row; the other rows are usable.
var ErrRow = errors.New("row unusable")

// Opening is a request about to be inserted, with what the store must check and write in the same commit.
type Opening struct {
	Request Request
	Copies  []Copy // to be shown
	// Records are further audit records about a request that is inserted as pending, in the same commit.
	Records []Record
	// Wait, if it has a kind, is kept with a request that is inserted as pending, in the same commit.
	Wait Wait
	// RedeemWindow is how long a key finds its settled request.
	RedeemWindow time.Duration
	// PerCaller and Total bound the pending requests; 0 for no limit.
	PerCaller, Total int
	// CoolDown is how long an action that was denied twice is not asked again; 0: no such limit.
	CoolDown time.Duration
	// PromptPause, if positive, is how long nothing may prompt anybody for this caller: a request that would be pending is
	// refused with that delay, unless it joins another.
	PromptPause time.Duration
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
	Request     ID
	Person      string
	Connector   string
	Group       string    // see [Request]; empty: it is this person's alone
	Ref         string    // the connector's id of the message; empty until it was sent
	Button      string    // random data of its buttons, so that nobody can press what they were not sent
	Shown       int64     // the revision last shown, or [ShownAlways]
	DueAt       time.Time // when it is due; the time for trying an unreachable channel starts here
	SentAt      time.Time
	ChannelTime time.Time // the send time by the channel's own clock; zero: unknown
	Failed      string    // why it will never be shown
	// Burst is the Ref of the message that lists the request among others for this person, if one does. Ref is the same until the
	// request gets a message of its own.
	Burst string
}

// ShownAlways is the revision shown of a copy whose person follows every change: it is never outdated.
const ShownAlways = math.MaxInt32

// OtherMessageError says that a copy is known as another message than the one to be recorded, which was not.
type OtherMessageError struct{ Ref string }

func (e *OtherMessageError) Error() string { return "the copy is another message" }

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

// HistoryQuery says which settled requests to list.
type HistoryQuery struct {
	Since  time.Time // decided no earlier
	Caller string    // of that caller alone; empty: of everybody
	Asked  string    // that were put to that person; empty: whoever was asked, and nobody
	After  ID        // that came after this one; empty: from the first
	Limit  int       // at most so many
}

// Spans before a request that [RecentActivity] is about.
const (
	RecentSpan  = 10 * time.Minute
	AllowedSpan = 30 * 24 * time.Hour
)

// RecentActivity is what a caller did before one of its requests, from the store's own rows, and what it says of its
// session, of which the store has one row's.
type RecentActivity struct {
	Allowed, Denied int       // in the [RecentSpan] before, whether people were asked or not
	Last            []Request // the newest of these that were put to the reader, the newest first, at most [MaxLast]
	AllowedBefore   int       // how often people allowed the same action, in whatever folder, in the [AllowedSpan] before
	AllowedBy       string    // who allowed it last; empty: nobody
	Title, Prompt   string    // see [Request]; for the caller's owner only
}

// Unheeded is a request that a person denied, or that nobody answered in time, and one of those who were shown it.
type Unheeded struct {
	ID      ID
	Session string
	State   State
	At      time.Time // when it was denied or its time was over
	Person  string    // empty: it was shown to nobody
	SentAt  time.Time
}

// MaxLast is how many requests a [RecentActivity] names.
const MaxLast = 3

// AsKnown is the key of a value in the context of a read for which a request as this daemon knew it last is enough. Another daemon may have
// changed it a moment ago, of which this one hears soon.
type AsKnown struct{}
