// Package connectors defines the port between the engine and the channels that reach people. A [Connector] shows requests
// and passes on what people do. It makes no requests and decides nothing: it hands a [Decision] to its [Inbound], which
// looks up the request, checks who may decide it, and commits.
//
// The core interface requires only what every channel can do. Everything else is an optional interface, found by type assertion ([Editor],
// [BurstSender], [ReachabilityChecker], [Notifier], [FitChecker], [AddressChecker], [MessageIDAllocator], [MessageSender],
// [TypingIndicator], [Screen], [EphemeralChannel], [GroupChannel]); the engine degrades gracefully without it. connectortest holds the
// suite that every connector passes. The pure parts are card (a request to text), talk (an agent's message to text) and reply (text to an
// answer).
package connectors

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Connector is one channel to people.
type Connector interface {
	// Name identifies the channel in decided_via, in the copies and in the configuration.
	Name() string
	// Run serves until ctx ends or the channel fails permanently. It hands everything that people do to the [Inbound] of the
	// connector's constructor, and acknowledges an event to the channel only after that returned nil or a refusal for it.
	Run(ctx context.Context) error
	// Send shows a request to one person and returns the channel's reference of the message. Errors that match [ErrUnreachable]
	// are permanent; all others are retried, see [RetryLater].
	Send(ctx context.Context, p Prompt) (ref string, err error)
}

// Editor changes messages that were sent. When a request is settled, every copy is edited. Errors are those of Send; one
// that matches [ErrResend] means that the prompt has to be sent again instead.
type Editor interface {
	Edit(ctx context.Context, ref string, p Prompt) error
}

// ReachabilityChecker reports before sending whether a person can be reached: nil, or an error whose text gives the reason.
type ReachabilityChecker interface {
	Reach(p Person) error
}

// AddressChecker reports whether the message with that reference was sent to the account that a person has now.
type AddressChecker interface {
	SentTo(ref string, p Person) bool
}

// MessageIDAllocator allocates a message's reference before it is sent, so that an answer that overtakes the channel's confirmation is
// understood and a retry sends the same message. Send finds the reference in its prompt's Ref.
type MessageIDAllocator interface {
	AllocateID(p Prompt) (ref string)
}

// FitChecker reports whether a prompt fits the channel completely. A request that does not fit can only be denied there.
type FitChecker interface {
	Fits(p Prompt) bool
}

// BurstSender is a connector that can list several requests of one person in one message, see [Burst].
type BurstSender interface {
	// SendBurst sends a list and returns the channel's reference of the message. Errors are those of Send.
	SendBurst(ctx context.Context, b Burst) (ref string, err error)
	// EditBurst updates it. Errors are those of Edit.
	EditBurst(ctx context.Context, ref string, b Burst) error
	// ShowsWhole reports whether a list shows everything that p's person decides about.
	ShowsWhole(p Prompt) bool
	// HidesAction reports whether nothing of what p's person decides about is on a card of its own: it is in a file alone, or does not fit.
	HidesAction(p Prompt) bool
}

// Notifier sends notices that need no answer: a reminder, the end of a grant. Errors are those of Send.
type Notifier interface {
	Notify(ctx context.Context, n Notice) error
}

// HealthChecker reports the state of its channel: nil, or an error whose text says what is wrong and what to do.
type HealthChecker interface {
	Health() error
}

// ReceiptTracker reports until when everything that people did in the channel has been received. Anything later may be lost.
type ReceiptTracker interface {
	// ReceivedUntil is zero while that is unknown. When the daemon stops, a healthy channel has received everything.
	ReceivedUntil(stops bool) time.Time
}

// StateError is an optional interface of Health's errors: one word for the state, for programs.
type StateError interface {
	error
	State() string
}

// GroupError is an error of Health about groups alone: people are reached in chats of their own all the same.
type GroupError string

// Error says what is wrong and what to do.
func (e GroupError) Error() string { return string(e) }

// EphemeralChannel is a connector whose copies end with its process (a screen). They are shown again after a restart.
type EphemeralChannel interface {
	Ephemeral()
}

// Screen is a connector that disturbs nobody, such as a terminal: it gets copies for everybody whom it reaches.
type Screen interface {
	Screen()
}

// Follower is a connector whose people may follow every change by themselves: to them nothing is sent, and nothing edited.
type Follower interface {
	// Follows returns the Ref of what is put to a person from now on; empty if it has to be sent, or cannot be.
	Follows(p Person) (ref string)
}

// GroupChannel is a connector that can show a request to a group. A prompt with a Group goes there, whoever To is.
type GroupChannel interface {
	// IsGroup reports whether place is a group of this channel.
	IsGroup(place string) bool
}

// Chat is what a connector to a messenger offers.
type Chat interface {
	Connector
	Editor
	ReachabilityChecker
	Notifier
	FitChecker
	AddressChecker
	HealthChecker
	Pairer
	MessageSender
	TypingIndicator
	MessageDater
}

// ErrResend is matched by errors of Edit about a message whose chat is no longer where its people are.
var ErrResend = errors.New("the message has to be sent again")

// GroupRenamedError is an error of Send, Edit and Notify: the group has another id from now on. Nothing was sent.
type GroupRenamedError struct{ Now string }

func (e *GroupRenamedError) Error() string { return "the group has a new id: " + e.Now }

// Group is a group in which several people are asked at once.
type Group struct {
	Name string // as in the configuration
	Now  string // the channel's current id
	// Routed reports whether a route of the configuration names the group. Otherwise it only has requests that are pending.
	Routed bool
}

// MessageDater is a connector whose channel dates messages by its own clock, which may differ from the machine's. What people
// write is compared with the prompt by that clock.
type MessageDater interface {
	Connector
	// SentTime is the channel's time of the message that Send has just named, or zero if it gave none. It is read once.
	SentTime(ref string) time.Time
}

// ErrUnreachable is matched by errors of Send and Edit that a retry cannot fix: no address, blocked, disabled.
var ErrUnreachable = errors.New("cannot be reached")

// UnreachableError is an error that matches [ErrUnreachable] and gives the reason in words for people.
type UnreachableError struct {
	Reason string
	// Lost is set if the person has an address, but nothing reaches it until they act.
	Lost bool
}

func (e *UnreachableError) Error() string { return e.Reason }

// Is matches [ErrUnreachable].
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

// RetryLater is an optional interface of the errors of Send, Edit and Notify: the channel said when a retry makes sense. The retry
// comes soon after that time, never before. Without it, retries back off.
type RetryLater interface {
	error
	// RetryAfter is the delay, measured from when the error was returned.
	RetryAfter() time.Duration
}

// RetryAfter is the delay of the [RetryLater] in err's chain, or 0.
func RetryAfter(err error) time.Duration {
	if later, is := errors.AsType[RetryLater](err); is {
		return max(later.RetryAfter(), 0)
	}
	return 0
}

// ReadySignaler is an optional interface of the errors of Send, Notify and SendMessage: nothing is wrong, and the channel, unless it
// is nil, is closed as soon as a retry of SendMessage makes sense. The usual retries run meanwhile.
type ReadySignaler interface {
	error
	ReadySignal() <-chan struct{}
}

// ReadySignal is the channel of the [ReadySignaler] in err's chain, or nil.
func ReadySignal(err error) <-chan struct{} {
	if awaited, is := errors.AsType[ReadySignaler](err); is {
		return awaited.ReadySignal()
	}
	return nil
}

// Prompt is a request as one person, or everybody asked in a group, is to see it.
type Prompt struct {
	Request permissions.Request
	Code    string    // names the request in text answers
	To      Person    // in a group: the first recipient, whose time zone is used
	Group   string    // see [GroupChannel]; empty: To's own chat
	Waiting int       // calls that are waiting
	Ref     string    // the connector's reference of the message; empty before it is sent
	Button  string    // payload of this copy's buttons
	Silent  bool      // no sound: all recipients have quiet hours, and the risk is not high
	SentAt  time.Time // when it was first sent; zero before
	Burst   string    // the reference of the message that lists it, see [Burst]; empty if none does. Ref is the same until it is opened
	// Before were asked before To and have not answered; Besides were asked since. Both are empty in a group.
	Before, Besides []Asked
	// Away are the recipients who are away and have not answered; Needed is set if too few others are left to decide.
	Away   []permissions.Absence
	Needed bool
	Hasty  bool                       // To approved many in a row just now, so that this one can be allowed only a little later
	Recent permissions.RecentActivity // what the agent did before, of a pending request; zero: nothing is known
	Locked bool                       // To is locked or no longer configured: show no way to answer
	// Untitled says that the message shows no more than the title, and is to show all: an answer that allows counts once it does. It came
	// without a file, so what needs one is sent anew.
	Untitled bool
	// Refresh, unless it is nil, is called by the Send of a [MessageDater] right before the request to the channel. It returns the
	// current prompt, or an error to return because nothing is to be sent any more. It begins unless something else is sent before the card.
	Refresh func(ctx context.Context, begins bool) (Prompt, error)
}

// Burst is a message that lists requests of one person in their own chat. Each can be opened: it is then shown in a message of
// its own, too.
type Burst struct {
	To     Person
	Items  []Item // also settled ones
	Joined int    // how many of them were not listed before
	// Begins, unless it is nil, is called by SendBurst and EditBurst when its turn has come, right before the request to the channel.
	Begins func()
}

// MaxBurst limits the requests of a [Burst].
const MaxBurst = 10

// Item is a request in a [Burst].
type Item struct {
	Prompt
	Seen   bool // it was opened, or stands whole in the list
	Hidden bool // what it wants is on no card, see [BurstSender]
}

// Begin calls Begins.
func (b Burst) Begin() {
	if b.Begins != nil {
		b.Begins()
	}
}

// Digest is of what b lists: it changes when a request joins, not when one is settled.
func (b Burst) Digest() string {
	h := sha256.New()
	for _, it := range b.Items {
		shown := it.Request.ShownDigest()
		_, _ = fmt.Fprintf(h, "%s %x %s\n", it.Request.ID, shown[:], it.Button) // never fails
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// ForAll are the positions, from 0, of the items that an answer to all decides: those that its person can still answer so and, if
// it allows, that are neither of high risk nor hidden.
func (b Burst) ForAll(a permissions.Answer) (at []int) {
	_, allows := a.Scope()
	for i, it := range b.Items {
		r := it.Request
		left := r.HighRisk || it.Hidden || r.HasVoted(b.To.Name)
		if r.State == permissions.Pending && !it.Locked && r.Offers(a) && (!allows || !left) {
			at = append(at, i)
		}
	}
	return at
}

// Untitled reports whether the message shows no more than the title of something that waits, and is to show all.
func (b Burst) Untitled() bool {
	return slices.ContainsFunc(b.Items, func(it Item) bool { return it.Untitled && it.Request.State == permissions.Pending })
}

// Unseen are those of ForAll that have to be opened before all can be allowed.
func (b Burst) Unseen() []int {
	return slices.DeleteFunc(b.ForAll(permissions.Allow(permissions.Once)), func(i int) bool { return b.Items[i].Seen })
}

// BurstDecision is one answer to all that a [Burst] lists.
type BurstDecision struct {
	Ref    string // the channel's reference of the message
	Digest string // of the list as it was shown, see [Burst.Digest]; empty if Count names it
	Count  int    // how many requests the list had as it was shown: it only grows
	Answer permissions.Answer
	From   Identity
	Key    string // see [Decision]
}

// Refreshed is the current prompt, see Refresh.
func (p Prompt) Refreshed(ctx context.Context, begins bool) (Prompt, error) {
	if p.Refresh == nil {
		return p, nil
	}
	return p.Refresh(ctx, begins)
}

// Asked is a recipient and the time since which they are asked.
type Asked struct {
	Name string
	At   time.Time
}

// Notice is a message that needs no answer and is never edited. The connector chooses its words.
type Notice struct {
	To      Person
	Group   string // as in Prompt
	About   permissions.About
	By      string                // who caused it
	Waiting []Prompt              // for To's answer, oldest first
	Grant   permissions.Grant     // that expired or was revoked
	Ran     []permissions.Request // requests that ran under Grant; of AboutMuted: that were denied or ignored
	// UnknownSenders are the unknown senders that To has not been told of yet.
	UnknownSenders permissions.UnknownSenders
	// Unpaired are the people who have no account in the channel of one of Strangers, by that channel.
	Unpaired map[string][]string
	Silent   bool // as in Prompt
	// CallerMessage is what a caller says, where About is one of [permissions.CallerSubjects], since At; By is then the name of the
	// caller, and Codes are those of pending requests, which are not shown in it.
	CallerMessage permissions.CallerMessage
	At            time.Time
	Codes         map[string]bool
}

// Inbound is the port through which a channel hands what people do to the engine. A channel gets it in its constructor and
// has no other way to it. An identity that is not configured, or that asks for what is not routed to it, gets a
// *permissions.Refusal; the operator sees everything. Implementations are safe for concurrent use.
type Inbound interface {
	// Person returns the person of an identity.
	Person(id Identity) (Person, error)
	// OnPermission decides a request and returns its new row; a nil error means that it is stored. It also returns the row
	// beside a *permissions.Refusal (not yours, too late, your own request, high risk) if the person may see it.
	OnPermission(ctx context.Context, d Decision) (permissions.Request, error)

	// OnMessage returns nil once the message is stored for its agent: the author of the message that it replies to,
	// otherwise the agent in the foreground. A repeated Key changes nothing. The refusal is [permissions.CodeNoAgent] if
	// there is no agent, and [permissions.CodeLimit] if its inbox is full.
	OnMessage(ctx context.Context, m Message) error
	// Agents lists an identity's agents in the chat that it writes from, in a fixed order.
	Agents(ctx context.Context, id Identity) ([]permissions.Presence, error)
	// Use brings the agent of that name to the foreground for an identity, and returns its name.
	Use(ctx context.Context, id Identity, name string) (agent string, err error)
	// Order makes the agent in the foreground obey at once, and returns its name. A repeated key changes nothing.
	Order(ctx context.Context, id Identity, o permissions.Order, key string) (agent string, err error)

	// Pending lists at most limit pending requests created after the one given, oldest first.
	Pending(ctx context.Context, id Identity, after permissions.ID, limit int) ([]permissions.RequestView, error)
	// Grants lists at most limit grants in force after one, oldest first, that came from requests to this person.
	Grants(ctx context.Context, id Identity, after permissions.ID, limit int) ([]permissions.Grant, error)
	// Revoke revokes a grant, which its id names or the short form of that among those of Grants, and returns what ran under it.
	Revoke(ctx context.Context, id Identity, grant permissions.ID) (permissions.Revoked, error)
	// Void withdraws an unused approval and the grants that it created. name is the request's id or code.
	Void(ctx context.Context, id Identity, name string) (permissions.RequestView, error)

	// StopAll cancels all that is pending, for everybody, returns how many that was, and refuses new requests until Resume.
	StopAll(ctx context.Context, id Identity) (cancelled int, err error)
	// Resume ends a stop. Only the operator and the person who stopped may call it.
	Resume(ctx context.Context, id Identity) error
	// StopAgent denies what an agent waits for and refuses what it asks until ResumeAgent, and returns how many requests ended. name is
	// the id or code of one of its requests, or the agent's own.
	StopAgent(ctx context.Context, id Identity, name string) (l permissions.Lock, ended int, err error)
	// ResumeAgent ends that. Only the operator and the person who stopped it may call it.
	ResumeAgent(ctx context.Context, id Identity, name string) (permissions.Lock, error)
	// QuietAgent makes an agent's cards silent for the caller for a while, and returns until when; zero ends that. A digest follows.
	QuietAgent(ctx context.Context, id Identity, name string, span time.Duration) (until time.Time, err error)
	// TrustAgent lets an agent do without asking for a while what stays in its folder. The first step is refused with
	// [permissions.CodeRule], which says what the second, sure, gives.
	TrustAgent(ctx context.Context, id Identity, name string, span time.Duration, sure bool) (permissions.Grant, error)
	// StoppedBy is who stopped everything, or empty.
	StoppedBy() string
	// Lock ignores everything that comes from a person's accounts until Unlock, and withdraws what they gave since a time,
	// unless that is zero. An empty name is the caller's own.
	Lock(ctx context.Context, id Identity, name string, since time.Time) (permissions.Locked, error)
	// Unlock ends a lock, or records the first of the two people that it takes; for the operator it ends at once.
	Unlock(ctx context.Context, id Identity, name string) (l permissions.Lock, over bool, err error)
	// SetAway has requests to the caller escalate at once until a time: to the person called to where a route lets them
	// decide, else to everybody to whom it escalates. With the zero time the caller is back.
	SetAway(ctx context.Context, id Identity, until time.Time, to string) error
	// PairSender says that an unknown sender's account is a person's who has none in that channel. Said first, by the person who is
	// told of unknown senders, it is a proposal; it pairs once another person or the operator says the same within
	// [permissions.ProposalLife].
	PairSender(ctx context.Context, id Identity, name, account string) (s permissions.UnknownSender, paired bool, err error)
	// WithdrawPairing ends such a proposal.
	WithdrawPairing(ctx context.Context, id Identity, name, account string) error
}

// Services is the [Inbound] of a channel that the daemon runs, with what such a channel reports and asks about its chats.
type Services interface {
	Inbound
	// NoteUnknownSender records that an unknown account wrote; At is ignored.
	NoteUnknownSender(ctx context.Context, s permissions.UnknownSender) error
	// ChatLost records that a group, or that person, cannot be written to, and why. Other recipients are asked at once.
	ChatLost(ctx context.Context, via, person, place, why string) error
	// ChatRecovered ends ChatLost: the person is asked again, or the group's copies are kept up to date again.
	ChatRecovered(ctx context.Context, via, person, place string) error
	// Suspend makes an account count for nobody until it is paired again, because it may belong to somebody else by now.
	Suspend(ctx context.Context, via, address string) error

	// Preview returns the request that a decision would be about, without deciding it.
	Preview(ctx context.Context, d Decision) (Prompt, error)
	// Burst is the list that a message of the identity's channel is, as its person sees it now; without items if it is none of theirs.
	Burst(ctx context.Context, id Identity, ref string) (Burst, error)
	// DecideAll answers everything that a burst lists with one answer, each request as OnPermission would, and returns the burst as it
	// is then and how many requests took the answer. It refuses if the burst lists something else than what was shown, and if
	// something would be allowed that its person cannot have read; nothing is answered then.
	DecideAll(ctx context.Context, d BurstDecision) (b Burst, taken int, err error)
	// LivePrompts returns at most limit prompts of the newest pending requests that a connector shows.
	LivePrompts(ctx context.Context, connector string, limit int) ([]Prompt, error)
	// Refresh edits everything pending that a connector shows, and returns it.
	Refresh(ctx context.Context, connector string) ([]Prompt, error)
	// ShowAgain sends everything pending that was shown through a connector again, and returns the previous prompts.
	ShowAgain(ctx context.Context, connector string) ([]Prompt, error)
	// SendAgain sends the pending request of a code to its person in a new message, and returns its prompt as it was. The refusals are
	// those of a decision.
	SendAgain(ctx context.Context, from Identity, code string) (Prompt, error)
	// Groups lists the groups in which people are asked.
	Groups(ctx context.Context) ([]Group, error)
	// RenameGroup records a group's new id and sends its pending requests again.
	RenameGroup(ctx context.Context, was, now string) error

	// Unheeded returns what an agent asked this person that was denied or ignored in the minutes before it was muted or stopped, or
	// until now, at most [MaxUnheeded] requests, newest first. name is as in StopAgent.
	Unheeded(ctx context.Context, id Identity, name string) ([]permissions.Request, error)

	// People returns everybody who may be asked, with their addresses.
	People() []Person
	// Downtime is how long the daemon was down before this start.
	Downtime() time.Duration
	// Stop is the stop in force.
	Stop() Stop
	// EndStop is Resume for the stop that began at that time. It refuses with [permissions.CodeSettled] if that is over.
	EndStop(ctx context.Context, id Identity, at time.Time) error
}

// MaxUnheeded is how many of an agent's requests that were denied or ignored a person is shown.
const MaxUnheeded = 20

// Stop is a stop of everything.
type Stop struct {
	By   string          // empty: nothing is stopped
	At   time.Time       // identifies the stop, across restarts too; zero until it is stored
	Over <-chan struct{} // closed when everything is resumed
}

// Decision is what a person did. Everything else is read from the row.
type Decision struct {
	Request permissions.ID
	Code    string // names the request instead of Request
	Answer  permissions.Answer
	Call    int // of a step; 0: all open calls
	Comment string
	Really  bool               // the second confirmation of high risk
	Rule    string             // the second step of [permissions.Rule]: the Check of the rule that the person was shown
	Default bool               // three invalid answers: Answer is ignored
	Shown   permissions.Digest // of what the person was shown; zero if the channel cannot know
	// Button and Ref are the payload of a pressed button and the connector's reference of its message. Both must be those
	// of one copy that was sent to the person who decides. They name the request instead of Request.
	Button, Ref string
	From        Identity
	List        bool   // it is one of those that an answer to a whole list decides
	Again       bool   // it was refused before and is only reread
	Key         string // names the chat event, so that a redelivery is harmless
}

// Identity is who decides, as proved by the channel.
type Identity struct {
	Via string // decided_via: telegram, whatsapp, terminal, cli, web, editor
	// Console is set by the daemon's own terminal: the person whose account runs the daemon, otherwise the operator.
	Console bool
	// UID is the account at the admin socket, [permissions.NoUID] elsewhere. An account may not allow what it asked for.
	UID int
	// Operator is set if the account proved to be the daemon's own by presenting the admin key.
	Operator bool
	// Address is the account in the channel Via, if people have addresses there, see [Kind].
	Address string
	// Alias is the channel's other name of the account, if it gave one: the LID at WhatsApp.
	Alias string
	// Language is an IETF tag of what the account reads, if the channel says so. It proves nothing.
	Language string
}

// Message is text from a person that is not an answer.
type Message struct {
	From    Identity
	Text    string
	ReplyTo string // the channel's reference of the message that this replies to; empty: none
	Key     string // names the chat event
}

// MessageSender sends people what our agents say.
type MessageSender interface {
	// SendMessage sends one of the messages that s consists of. It returns the channel's reference and whether there are more.
	// Errors are those of Send, see [RetryLater].
	SendMessage(ctx context.Context, s AgentMessage) (ref string, more bool, err error)
}

// AgentMessage is what an agent says to a person. A long text becomes several messages, split by Agent and Text alone.
type AgentMessage struct {
	To     Person
	Agent  string
	Text   string
	Part   int             // which of the messages, from 0
	Codes  map[string]bool // codes of pending requests in capitals; they are masked
	Silent bool            // as in Prompt
}

// TypingIndicator shows a person for some seconds that one of our agents is working.
type TypingIndicator interface {
	// ShowTyping is called repeatedly. Its errors are ignored.
	ShowTyping(ctx context.Context, to Person) error
}

// Pairer is a channel in which people can pair their own accounts by a link that works once. The channel proves what it
// shows of an account. Somebody who knows the person has to confirm that it is theirs.
type Pairer interface {
	// Invite makes a link. Its code is kept in memory only.
	Invite(ctx context.Context) (Invitation, error)
	// AwaitCandidate waits until an account has used the link with that code, which ends the link, and returns the account. The
	// error matches [ErrNoInvitation] once nobody can use it any more.
	AwaitCandidate(ctx context.Context, code string) (PairingCandidate, error)
	// Take makes an account the candidate of an invitation, as if it had used the link.
	Take(code string, g PairingCandidate) bool
	// Dismiss ends an invitation. An account that used it is told that it was not added.
	Dismiss(code string)
	// Greet ends the invitation with that code, if there is one, and tells the account that it now answers as that person.
	Greet(code, address, name string)
	// Release tells an account that it no longer answers as that person.
	Release(address, name string)
}

// Invitation is a link that pairs one account.
type Invitation struct {
	Code string `json:"code"`
	Link string `json:"link"`
	// How stands between the name of the invited person and the link: "presses Start behind this link".
	How   string    `json:"how" doc:"what the person does, to follow their name and to be followed by the link"`
	Until time.Time `json:"until"` // when the link expires
}

// PairingCandidate is an account that used a link.
type PairingCandidate struct {
	Address  string // as in [permissions.Pairing]
	Alias    string // likewise
	Name     string // chosen by the account itself, so it proves nothing
	Language string // an IETF tag, if the channel gives one
	By       string // who proposed the account, if it used no link
}

// ErrNoInvitation is matched by errors of [Pairer.AwaitCandidate] about a link that was used, has expired or never existed.
var ErrNoInvitation = errors.New("the link is used, its time is over, or it was never there")
