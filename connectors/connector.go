// Package connectors is who is asked: the ways to reach people and to hear from them. A [Connector] shows requests and
// passes on what people do; it cannot ask, and it decides nothing itself: it hands a [Decision] to its [Handler], which
// looks up the request, checks the finger and commits.
//
// The core interface asks only what every channel can do. What only some can do is an optional power, found by type
// assertion ([Editor], [Reacher], [Teller], [Wholer], [Namer], [Talker], [Typer], [Screen], [Forgetful], [Hall]), and its absence
// degrades politely. connectortest holds the suite that every connector passes, card the pure way from a request to text,
// talk that of what an agent says, reply the pure way from text to an answer.
package connectors

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Connector is one channel to people.
type Connector interface {
	// Name is what decided_via, the copies and the configuration call this channel.
	Name() string
	// Run serves until ctx ends or the channel is gone for good. It hands everything people do to h, and acknowledges
	// to the channel only what h has stored (returned nil or a refusal for).
	Run(ctx context.Context, h Handler) error
	// Send shows a request to one person and returns the channel's own name for what it sent. Errors that match
	// [ErrGone] are for good; any other is tried again, see [Later].
	Send(ctx context.Context, p Prompt) (ref string, err error)
}

// Editor changes what was sent: every copy of a settled request is brought up to date. Errors are as those of Send; one
// that matches [ErrAnew] says that it has to be sent anew instead.
type Editor interface {
	Edit(ctx context.Context, ref string, p Prompt) error
}

// Reacher knows before sending whether a person can be reached: nil, or an error that says in words why not.
type Reacher interface {
	Reach(p Person) error
}

// Namer names what it will send before it does, so that an answer that is faster than the channel's confirmation is
// understood, and what has to be sent again is the same message. Send finds the name in its prompt's Ref.
type Namer interface {
	NameFor(p Prompt) (ref string)
}

// Wholer knows whether a request can be shown whole in its channel. What cannot be may be denied there, never allowed.
type Wholer interface {
	Whole(p Prompt) bool
}

// Teller tells a person what is no request: a reminder, the end of a grant. Errors are as those of Send.
type Teller interface {
	Tell(ctx context.Context, n Notice) error
}

// Healther knows how its channel is: nil, or an error that says in words what is wrong and what to do.
type Healther interface {
	Health() error
}

// Stated is an optional power of the errors of Health: one word for how things stand, for programs.
type Stated interface {
	error
	State() string
}

// Forgetful is a connector whose copies end with its process (a screen): after a restart they are shown again.
type Forgetful interface {
	Forgets()
}

// Screen is a connector that shows something to whoever looks, and disturbs nobody: whoever can be reached there gets a
// copy, whatever channels they named.
type Screen interface {
	Shows()
}

// Hall is a connector that can show a request once to several people, in a place of theirs such as a group: what is sent
// with a Place goes there, whomever it is To.
type Hall interface {
	// Holds tells whether a place is one of this channel's.
	Holds(place string) bool
}

// ErrAnew is matched by errors of Edit about a message that is where its people are no more.
var ErrAnew = errors.New("the message has to be sent anew")

// Renamed is an error of Send, Edit and Tell about a place that goes by another name from now on. Nothing was sent.
type Renamed struct{ Now string }

func (e *Renamed) Error() string { return "the place goes by another name now: " + e.Now }

// Place is somewhere several people are asked at once.
type Place struct {
	Name string // as the configuration has it, or had it
	Now  string // what the channel calls it now
	// Routed says that a route of the configuration names it. Else it is only where something still waits.
	Routed bool
}

// ErrGone is matched by errors of Send and Edit that trying again will not mend: no address, blocked, switched off.
var ErrGone = errors.New("cannot be reached")

// Gone is an error that matches [ErrGone] and says why in words for people.
type Gone struct{ Why string }

func (e *Gone) Error() string { return e.Why }

// Is matches [ErrGone].
func (e *Gone) Is(target error) bool { return target == ErrGone }

// Later is an optional power of the errors of Send, Edit and Tell: the channel said when trying again makes sense. It is
// not tried before, and soon after; without it, ever later.
type Later interface {
	error
	// RetryAfter counts from when the error was returned.
	RetryAfter() time.Duration
}

// RetryAfter is what err, or what it wraps, says as a [Later]; 0 if it says nothing.
func RetryAfter(err error) time.Duration {
	var later Later
	if errors.As(err, &later) {
		return max(later.RetryAfter(), 0)
	}
	return 0
}

// Awaited is an optional power of the errors of Talk: nothing is wrong, and what it gives is closed as soon as trying again
// makes sense. It is tried before, too, ever later.
type Awaited interface {
	error
	Awaits() <-chan struct{}
}

// Awaits is what err, or what it wraps, gives as an [Awaited]; nil if it is none.
func Awaits(err error) <-chan struct{} {
	var awaited Awaited
	if errors.As(err, &awaited) {
		return awaited.Awaits()
	}
	return nil
}

// Prompt is a request as one person is to see it, or all who are asked in a place.
type Prompt struct {
	Request permissions.Request
	Code    string    // names the request in text answers
	To      Person    // in a place: the first who is asked, in whose time zone times are told
	Place   string    // see [Hall]; empty: To's own chat
	Waiting int       // calls that wait just now
	Ref     string    // the connector's own name for what it sent; empty before
	Button  string    // what the buttons of this copy carry
	Silent  bool      // without a sound: everybody it is for has quiet hours, and this is not high risk
	SentAt  time.Time // when it was sent first; zero before
}

// Notice is one message that asks nothing and is never edited. Its words are made by whoever shows it.
type Notice struct {
	To      Person
	Place   string // as a Prompt's
	About   permissions.About
	By      string                // who caused it
	Waiting []Prompt              // for To's answer, the oldest first
	Grant   permissions.Grant     // that is over or was taken back
	Ran     []permissions.Request // under it
	// Strangers are whom To has not been told of yet.
	Strangers permissions.Strangers
	Silent    bool // as a Prompt's
}

// Handler takes what people do. Returning nil means stored. Implementations are safe for concurrent use.
type Handler interface {
	// OnPermission decides. The request returned is the row after, also beside a *permissions.Refusal (not yours,
	// too late, your own request, high risk) whenever the person may see it.
	OnPermission(ctx context.Context, d Decision) (permissions.Request, error)
}

// Decision is what a person did: an id, an answer and who they are. All else is read from the row.
type Decision struct {
	Request permissions.ID
	Code    string // names the request instead of Request
	Answer  permissions.Answer
	Call    int // of a step; 0: all that are open
	Comment string
	Really  bool               // the second yes of high risk
	Default bool               // three wrong tries: Answer is not read
	Shown   permissions.Digest // of what the person was shown; zero where the door cannot tell
	// Button and Ref are what a pressed button carried, and the connector's own name for the message that it was on:
	// both must be those of one copy that was sent to whoever decides. They name the request instead of Request.
	Button, Ref string
	From        Identity
	Key         string // names the chat event, so that its redelivery is harmless
}

// Identity is who decides, as the door proved it.
type Identity struct {
	Via string // decided_via: telegram, whatsapp, terminal, cli, web, editor
	// Console is set by the daemon's own terminal: the person whose account runs the daemon, else the operator.
	Console bool
	// UID is the account at the admin socket, [permissions.NoUID] elsewhere. Whoever asked with it may not allow.
	UID int
	// Operator says that the account proved to be the daemon's own (it presented the admin key).
	Operator bool
	Telegram int64
	WhatsApp string
	// Alias is another name that the channel has for the same account, where it told one: at WhatsApp, the LID.
	Alias string
}
