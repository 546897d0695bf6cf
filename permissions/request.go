// Package permissions is the meaning of daycared: what is asked, who answered, what was decided and what that
// decision grants. It imports nothing of ours and does no I/O of its own.
//
// A [Request] is one question that an agent puts to people and waits on. A [Vote] is one person's answer to it. [Step]
// is the life of a request: a pure and total function from a request and an [Transition] to a [Change], which is everything
// that the event does (the row after, the votes, the grants, the audit records). A [Grant] is what a [Scope] wider than
// once leaves behind, and [Policy] says what needs asking at all.
//
// [Registry] keeps those who wait. The row is the truth and a waiter is a doorbell: the registry registers the waiter,
// lets the [Store] insert the row, and rings when a change has been committed. Anything in doubt is not granted.
package permissions

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Limits of what a request may hold. Lengths are in characters (code points) unless they say bytes.
const (
	MaxReason  = 2000
	MaxMessage = 4000
	MaxDetails = 1 << 20 // bytes
	MaxOptions = 20
	MaxOption  = 200
	MaxTags    = 50
	MaxCalls   = 50
	MaxName    = 200 // agent, host, session, key, tool
)

// ID names a request: a ULID, so that every index grows at its end.
type ID string

// NewID makes an id for a request created at t. It is safe for concurrent use.
func NewID(t time.Time) ID { return newID(t, rand.Reader) }

// newID makes an id of ten bytes of entropy. A time that a ULID cannot hold counts as the nearest that it can.
func newID(t time.Time, entropy io.Reader) ID {
	ms := uint64(max(t.UnixMilli(), 0))
	return ID(ulid.MustNew(min(ms, ulid.MaxTime()), entropy).String())
}

// idSkew is how far the time in an id that a caller proposes may be from ours.
const idSkew = 10 * time.Minute

// MadeAt reports whether id is one that may be given to a request created at t: a ULID of about that time.
func (id ID) MadeAt(t time.Time) bool {
	u, err := ulid.ParseStrict(string(id))
	return err == nil && u.String() == string(id) && ulid.Time(u.Time()).Sub(t).Abs() < idSkew
}

// Kind is what sort of question a request is.
type Kind string

// The kinds.
const (
	KindPermission    Kind = "permission"    // may I hold these tags
	KindTool          Kind = "tool"          // may I make this call, or the calls of this step
	KindPause         Kind = "pause"         // look before I go on
	KindClarification Kind = "clarification" // which of these options
)

// Mode tells the two sorts of pause apart; it is empty for every other kind.
type Mode string

// The modes of a pause.
const (
	ModeContinue Mode = "continue" // goes on by itself when nobody answers
	ModeConfirm  Mode = "confirm"  // never goes on by itself
)

// State is where a request is in its life. Every state but pending is terminal.
type State string

// The states.
const (
	Pending       State = "pending"
	Approved      State = "approved"
	Denied        State = "denied"
	Answered      State = "answered"
	Expired       State = "expired"
	Cancelled     State = "cancelled"
	Undeliverable State = "undeliverable"
)

// What decided_via says besides the name of a connector.
const (
	ViaGrant   = "grant"   // nobody was asked: it was held already
	ViaTimeout = "timeout" // nobody answered
	ViaEditor  = "editor"  // through the asker's side, by nobody who was proven: see [Reply]
)

// What decided_via says of a request that its asker withdrew, where the asker gave the reason.
const (
	ViaKeyboard   = "keyboard"    // the agent's own dialog was answered
	ViaInterrupt  = "interrupt"   // the agent was interrupted, or what asked for it was ended
	ViaSessionEnd = "session_end" // the agent's session is over
)

// When an agent runs a hook about one call.
const (
	HookBefore = "before" // before every call
	HookAgain  = "again"  // where the agent's own rules have it ask
	HookDenied = "denied" // after the agent's own judgement has refused the call
)

// Recall says which pending requests of a caller need no answer any more, and why.
type Recall struct {
	Session string // exactly; never empty
	Agent   string // the name that the asker gave itself
	Kind    Kind   // empty: of whatever kind
	Tool    string // with Input, the one call it is about; empty: any
	Input   json.RawMessage
	Via     string // ViaKeyboard, ViaInterrupt or ViaSessionEnd
}

// Matches reports whether r is one of them, whoever's it is.
func (m Recall) Matches(r Request) bool {
	return r.Session == m.Session && r.Agent == m.Agent && r.Claimed && (m.Kind == "" || r.Kind == m.Kind) &&
		(m.Tool == "" || r.Tool == m.Tool && string(r.Input) == string(m.Input))
}

// Call is one tool call of a step.
type Call struct {
	N            int             `json:"n"`
	Tool         string          `json:"tool"`
	Input        json.RawMessage `json:"input"` // canonical
	AffectedPath string          `json:"affected_path,omitempty"`
	Answer       Answer          `json:"answer,omitempty"`
	Comment      string          `json:"comment,omitempty"`
	By           string          `json:"by,omitempty"` // whose vote decided it, and when
	At           time.Time       `json:"at,omitzero"`
	Ends         bool            `json:"ends,omitempty"` // to deny it ends the run, and so denies the whole step
}

// Request is one question an agent puts to people and waits on. It is a value: nothing in it is shared or changed in
// place. Times are UTC.
type Request struct {
	ID       ID
	Number   int64 // counts requests within a store; codes come from it
	Revision int64 // grows with every change that people should see

	// What is asked. These fields make the digest.
	Version      int // of the digest
	Kind         Kind
	Mode         Mode
	Caller       Caller
	Agent        string // who asks, as shown
	Claimed      bool   // Agent is only the caller's word
	Session      string
	Host         string // claimed
	Cwd          string
	Folder       string // which folder Cwd was, where daycared itself holds it: another may have its name later
	Tags         []Tag
	Tool         string
	Input        json.RawMessage // canonical
	AffectedPath string
	Calls        []Call // instead of Tool and Input
	EnvNames     []string
	EnvHash      string
	Message      string
	Details      string
	Reason       string
	Choices      []string // a clarification's
	Widest       Scope    // the widest scope that the caller wants offered; zero for any
	Digest       Digest

	Held       []Tag // of Tags: held already when asked, not put to anybody
	HighRisk   bool
	Background bool
	Foreground string // the agent whose person is told
	Step       int    // 0: not in a step
	Key        string
	Hook       string        // the dialect of an agent's own hook that asks, which knows one call at a time; empty: no hook
	Patience   time.Duration // how long the caller wants to wait; zero: the default. Not stored: see Deadline
	HookStage  string        // HookBefore, HookAgain or HookDenied, of a hook that says it. Not stored
	Harmless   bool          // the hook has read the call whole and says so, and that people need not be asked. Not stored
	Stays      time.Duration // the process that asks is there for so long, unless it is ended; zero: nobody knows. Not stored
	Call       string        // names the waiting call, so that its own retry finds its place; not stored
	Options    []Option
	Asked      []string // people
	Group      string   // where it is shown once for all of them, in the words of a connector; empty: to each by themselves
	Quorum     int
	EscalateTo []string    // people who are asked as well from EscalateAt on; empty once they are
	EscalateAt time.Time   // zero: never by time
	Reminders  []time.Time // still to come, the earliest first
	Under      []ID        // the grants that made asking unnecessary, wholly or in part
	Beyond     int         // how many calls a minute policy lets run unasked, of which this is one too many; 0: it is asked for another reason
	CreatedAt  time.Time
	Deadline   time.Time

	State       State
	Answer      Answer
	Scope       Scope
	Comment     string
	DecidedBy   string
	DecidedVia  string
	DecidedAt   time.Time
	Votes       []Vote
	TimedOut    bool
	Defaulted   bool
	Failure     string // why it could not be delivered
	UsedAt      time.Time
	UsedCall    string // the call that used it
	CollectedAt time.Time
	VoidAt      time.Time
	VoidedBy    string    // who took it back; empty: nobody did, what it rested on is over
	LapsedAt    time.Time // nobody came for the answer in time
	LeftAt      time.Time // nobody waits since
	EarlierAt   time.Time // when the same question was answered under the same key, whose answer is over; zero: it was not
}

// Missing are the tags that are put to people.
func (r Request) Missing() []Tag { return Missing(r.Tags, r.Held) }

// ToolCalls are the calls that a tool request asks about: its own, or those of its step.
func (r Request) ToolCalls() []Call {
	if r.Kind == KindTool && len(r.Calls) == 0 {
		return []Call{{
			N: 1, Tool: r.Tool, Input: r.Input, AffectedPath: r.AffectedPath, Answer: r.Answer, Comment: r.Comment,
			By: r.DecidedBy, At: r.DecidedAt,
		}}
	}
	return r.Calls
}

// Ends reports whether to deny one call of r is to deny all, since it ends the run.
func (r Request) Ends() bool {
	return slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Ends })
}

// ToolNames are the names of the tools asked about, each once, in order.
func (r Request) ToolNames() []string {
	var names []string
	for _, c := range r.ToolCalls() {
		if !slices.Contains(names, c.Tool) {
			names = append(names, c.Tool)
		}
	}
	return names
}

// Who is the asking agent as people are told: a name that was only claimed is shown as a claim.
func (r Request) Who() string {
	switch {
	case r.Agent == "":
		return strings.Replace(r.Caller.Name, ":", " ", 1)
	case r.Claimed:
		return strings.Replace(r.Caller.Name, ":", " ", 1) + ", says it is " + r.Agent
	}
	return r.Agent
}

// Timeout is how long the request waits for an answer.
func (r Request) Timeout() time.Duration { return r.Deadline.Sub(r.CreatedAt) }

// RequestView is a request as it stands: its row, where it was shown and who waits. It is what the doors tell.
type RequestView struct {
	Request Request
	Code    string // for people's eyes only: a door of agents leaves it out
	Copies  []Copy
	Waiting int
	Editor  bool // it may be answered in the asker's own editor as well, see [Reply]
	// Keyboard says that the dialog of the asker's own program may answer it before people do.
	Keyboard bool
	Brief    bool // long texts were left out of Request, as in lists
}

// Vote is one person's answer to a request. The door sets who and through what; everything else about the request is
// read from its row.
type Vote struct {
	By      string
	Via     string // the connector: telegram, whatsapp, terminal, cli, web; never an editor, where nobody is proven
	Answer  Answer
	Call    int // the call of a step that it answers; 0: all that are open
	Comment string
	At      time.Time
	// Account is the account that the door proved, as the audit names it: telegram:ID, whatsapp:NUMBER, uid:N. Empty: unknown.
	Account string
	// Key names the chat event that carried the vote ("telegram:bot", update id), so that its redelivery is harmless.
	// Empty where the door delivers once.
	Key string
}

// Brief is at most so many characters of a text, with "…" where it was cut.
func Brief(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimRight(string(runes[:most-1]), "\u200D") + "…"
	}
	return text
}
