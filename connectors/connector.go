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

// Hearer knows until when everything that people did there has arrived. What they do later may be lost.
type Hearer interface {
	// Heard is zero while nobody knows yet. Where the daemon stops, a channel that is well has heard everything.
	Heard(stops bool) time.Time
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

// Dater is a connector whose channel dates messages by a clock of its own, which may be another than the machine's. What
// people write is compared with the card by that clock.
type Dater interface {
	Connector
	// Dated is when the channel says that it took the card that Send has just named; zero where it did not say. It is
	// asked once.
	Dated(ref string) time.Time
}

// ErrGone is matched by errors of Send and Edit that trying again will not mend: no address, blocked, switched off.
var ErrGone = errors.New("cannot be reached")

// Gone is an error that matches [ErrGone] and says why in words for people.
type Gone struct {
	Why string
	// Lost says that somebody has an address, at which nothing reaches them until they do something themselves.
	Lost bool
}

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
	if later, is := errors.AsType[Later](err); is {
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
	if awaited, is := errors.AsType[Awaited](err); is {
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
	// Before are those who were asked before To and have not answered, Besides who is asked since To was; not of a place.
	Before, Besides []Asked
	Locked          bool // To is locked, or nobody any more and without a name: it is shown without a way to answer
	// Fresh, unless it is nil, is called by the Send of a [Dater] when it is the card's turn, right before the channel is: it
	// returns the prompt as it is by then, or an error to return since nothing is to be sent any more.
	Fresh func(ctx context.Context) (Prompt, error)
}

// Now is p as it is to be sent now, see Fresh.
func (p Prompt) Now(ctx context.Context) (Prompt, error) {
	if p.Fresh == nil {
		return p, nil
	}
	return p.Fresh(ctx)
}

// Asked is somebody who is asked, and since when.
type Asked struct {
	Name string
	At   time.Time
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

// Controls are what people do besides deciding. An identity that is nobody here, or that asks for what is not routed to it,
// gets a *permissions.Refusal; the operator sees everything. Implementations are safe for concurrent use.
type Controls interface {
	// Pending lists at most limit pending requests created after the one named, oldest first.
	Pending(ctx context.Context, id Identity, after permissions.ID, limit int) ([]permissions.Standing, error)
	// Grants lists the grants in force that came of what was put to this person.
	Grants(ctx context.Context, id Identity) ([]permissions.Grant, error)
	// Revoke takes a grant back and tells what ran under it.
	Revoke(ctx context.Context, id Identity, grant permissions.ID) (permissions.Revoked, error)
	// Void takes an approval that was not used back, with the grants that it left behind, by its id or its code.
	Void(ctx context.Context, id Identity, name string) (permissions.Standing, error)
	// StopAll cancels everything that is pending and refuses everything new until Resume; for every person. It returns
	// how many requests it cancelled.
	StopAll(ctx context.Context, id Identity) (cancelled int, err error)
	// Resume is for the operator and for whoever stopped.
	Resume(ctx context.Context, id Identity) error
	// StoppedBy is who stopped everything, or empty.
	StoppedBy() string
}

// Locker locks people, and unlocks them.
type Locker interface {
	// Lock has nothing count any more that comes from a person's accounts, and takes back what they gave since a time, unless
	// that is zero. An empty name is the caller's own.
	Lock(ctx context.Context, id Identity, name string, since time.Time) (permissions.Locked, error)
	// Unlock ends that, or notes that one of the two people says so whom it takes; for the operator it ends at once.
	Unlock(ctx context.Context, id Identity, name string) (l permissions.Lock, over bool, err error)
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
	Again       bool   // it was refused before, and is only looked at again
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

// Listener takes what people write to agents of ours. Implementations are safe for concurrent use.
type Listener interface {
	// OnMessage returns nil once the message is stored for the agent that it is for: the author of what it replies to,
	// else the one in the foreground. The same Key again changes nothing. It refuses with [permissions.CodeNoAgent] where
	// there is no agent, and with [permissions.CodeLimit] while too much waits for it.
	OnMessage(ctx context.Context, m Message) error
}

// Message is what a person wrote that is no answer.
type Message struct {
	From    Identity
	Text    string
	ReplyTo string // the channel's own name for the message that this replies to; empty: none
	Key     string // names the chat event
}

// Talks are where people talk to agents of ours. It is safe for concurrent use.
type Talks interface {
	Listener
	// Agents are those of an identity's in the chat that it came from, in the order in which they are listed.
	Agents(ctx context.Context, id Identity) ([]permissions.Presence, error)
	// Use has an identity's messages go to the agent of that name, and returns its name.
	Use(ctx context.Context, id Identity, name string) (agent string, err error)
	// Order has the agent in the foreground obey at once, and returns its name. The key is that of the chat event; the
	// same one again changes nothing.
	Order(ctx context.Context, id Identity, o permissions.Order, key string) (agent string, err error)
}

// Talker sends people what agents of ours say.
type Talker interface {
	// Talk sends one of the messages that s is, and returns the channel's own name for it and whether there are more.
	// Errors are as those of Send, see [Later].
	Talk(ctx context.Context, s Saying) (ref string, more bool, err error)
}

// Saying is what an agent says to a person. A long one is several messages: which, depends on Agent and Text alone.
type Saying struct {
	To     Person
	Agent  string
	Text   string
	Part   int             // which of the messages that it is, from 0
	Codes  map[string]bool // of what is pending, as they are written in capitals: they are masked
	Silent bool            // as a Prompt's
}

// Typer shows a person for some seconds that an agent of ours works.
type Typer interface {
	// Typing is called again and again. A failure is nobody's loss.
	Typing(ctx context.Context, to Person) error
}

// Enroller is a channel to which people bring their own accounts, by a link that works once. What it shows of an account
// is what the channel itself proves, and whether that is the person who was meant is for somebody to say who knows them.
type Enroller interface {
	// Invite makes a link. Its code is kept in memory only.
	Invite(ctx context.Context) (Invitation, error)
	// Guest waits until somebody has come by the link with that code, and says who; the link works no more then. The
	// error matches [ErrNoInvitation] when nobody can come by it any more.
	Guest(ctx context.Context, code string) (Guest, error)
	// Dismiss ends an invitation. Whoever came by it is told that they were not added.
	Dismiss(code string)
	// Greet ends an invitation, if code is one, and tells an account that it answers as that person from now on.
	Greet(code, address, name string)
	// Release tells an account that it no longer answers as that person.
	Release(address, name string)
	// Address is what this channel knows a person by, as the configuration has it; empty where it has none.
	Address(p Person) string
	// At is p with that address.
	At(p Person, address string) Person
}

// Invitation is a link that enrols one account.
type Invitation struct {
	Code string
	Link string
	// How is what the invited person does, to follow their name and to be followed by the link: "presses Start behind this
	// link".
	How   string
	Until time.Time // the link works before
}

// Guest is an account that came by a link.
type Guest struct {
	Address  string // as a [permissions.Pairing] has it
	Alias    string // as well
	Name     string // as the account calls itself: anybody may call themselves anything
	Language string // an IETF tag, if the channel tells
}

// ErrNoInvitation is matched by errors of [Enroller.Guest] about a link that is used, over, or was never there.
var ErrNoInvitation = errors.New("the link is used, its time is over, or it was never there")
