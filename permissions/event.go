package permissions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Transition is something that happens to a request, at a time. The types below are all there are.
type Transition interface{ at() time.Time }

type (
	// Cast is a person's answer. When it approves and has a Use, the approval is used in the same change, by the waiting
	// call that Use names (the registry fills it in, or drops it when nobody waits).
	Cast struct {
		Vote   Vote
		Really bool // the second yes that high risk needs
		Use    *Use
	}
	// Default takes the first option of a clarification because a person gave no valid answer in three tries.
	Default struct {
		By, Via string
		At      time.Time
	}
	// Reply is an answer through the dialog of the asker's own editor. It proves no identity, so it has no person, is no
	// vote, and answers only what permits nothing ([Request.TakesReplies]).
	Reply struct {
		Answer Answer
		At     time.Time
	}
	// Withdraw cancels a request: by a person, `/stop` or the kill switch; By is empty for the caller itself.
	Withdraw struct {
		By, Via string
		At      time.Time
	}
	// Expire ends a request at its deadline. Spent says that it is over by monotonic time, whatever the wall clock says.
	Expire struct {
		At    time.Time
		Spent bool
	}
	// GiveUp says that too few people can be reached, and why. It has no effect if people other than Asked are asked by
	// now; nil Asked matches everybody.
	GiveUp struct {
		Reason string
		Asked  []string
		At     time.Time
	}
	// Reroute changes who is asked, now and later, when people leave or enter the configuration. Earlier votes do not
	// count if their people are Locked and no longer asked, or if they are in Moved: their accounts are no longer their
	// people's.
	Reroute struct {
		Asked, EscalateTo []string
		Locked            []string
		Moved             []Vote
		At                time.Time
	}
	// Escalate asks the people in EscalateTo as well.
	Escalate struct{ At time.Time }
	// Remind reminds the people who have not answered yet.
	Remind struct{ At time.Time }
	// Extend moves the deadline later because people could not answer for a while.
	Extend struct{ Until, At time.Time }
	// Use hands an approval to the call that acts on it. An approval for once, asked without a key, has one use.
	Use struct {
		Call string // names the call, so that its own retry is not a second use; may be empty
		At   time.Time
	}
	// Collect records that the caller has read the answer. It uses nothing.
	Collect struct{ At time.Time }
	// Void takes an unused approval back, with the grants that it left behind: see [Change.Voided].
	Void struct {
		By, Via string
		At      time.Time
	}
	// Lapse ends the redeem window of an uncollected approval.
	Lapse struct{ At time.Time }
	// Leave says that nobody waits any more.
	Leave struct{ At time.Time }
	// Return undoes Leave.
	Return struct{ At time.Time }
)

func (e Cast) at() time.Time     { return e.Vote.At }
func (e Default) at() time.Time  { return e.At }
func (e Reply) at() time.Time    { return e.At }
func (e Withdraw) at() time.Time { return e.At }
func (e Expire) at() time.Time   { return e.At }
func (e GiveUp) at() time.Time   { return e.At }
func (e Reroute) at() time.Time  { return e.At }
func (e Escalate) at() time.Time { return e.At }
func (e Remind) at() time.Time   { return e.At }
func (e Extend) at() time.Time   { return e.At }
func (e Use) at() time.Time      { return e.At }
func (e Collect) at() time.Time  { return e.At }
func (e Void) at() time.Time     { return e.At }
func (e Lapse) at() time.Time    { return e.At }
func (e Leave) at() time.Time    { return e.At }
func (e Return) at() time.Time   { return e.At }

// Halts reports whether a stop of everything prevents e: nothing is answered, and no approval is used.
func Halts(e Transition) bool {
	switch e.(type) {
	case Cast, Reply, Use:
		return true
	}
	return false
}

// via returns the channel of a person's transition; empty for any other.
func via(e Transition) string {
	switch e := e.(type) {
	case Cast:
		return e.Vote.Via
	case Default:
		return e.Via
	case Withdraw:
		return e.Via
	case Void:
		return e.Via
	}
	return ""
}

// Change is everything that one transition does to a request, to be committed as a whole. When nothing changes (an equal
// second vote, a late Leave), After equals Before and there is nothing to commit.
type Change struct {
	Before, After Request
	Vote          *Vote   // cast by this transition
	Grants        []Grant // created by it
	Records       []Record
	Notices       []Notice // for people, without ids
}

// Settled reports whether this change ended the request.
func (c Change) Settled() bool { return c.Before.State == Pending && c.After.State != Pending }

// Handed reports whether this change approved the request and used the approval.
func (c Change) Handed() bool { return c.Settled() && !c.After.UsedAt.IsZero() }

// Voided reports whether this change took the approval back. The commit also revokes every grant of the request.
func (c Change) Voided() bool { return c.Before.VoidAt.IsZero() && !c.After.VoidAt.IsZero() }

// Empty reports whether there is nothing to commit.
func (c Change) Empty() bool {
	return c.Vote == nil && len(c.Records) == 0 && len(c.Notices) == 0 && c.Before.Revision == c.After.Revision &&
		c.Before.CollectedAt.Equal(c.After.CollectedAt) && len(c.Before.Reminders) == len(c.After.Reminders)
}

// The types of events that repeat, in the terms of agents' front ends, another record of the same commit.
const (
	PermissionApplied Type = "PERMISSION_APPLIED"   // an approval of tags is used
	DialogRequested   Type = "AIC_DIALOG_REQUESTED" // a clarification is asked
	DialogResponded   Type = "AIC_DIALOG_RESPONDED" // by a person, even with an unreadable answer; or it ended without a response
	DialogTimeout     Type = "AIC_TIMEOUT"          // by nobody
)

// Event is an audit entry as front ends follow it, with what they need to know of its request. Its Seq is that of the
// daemon's chain, so it grows in the order of commits, with gaps for entries that are no events.
type Event struct {
	Entry
	Session string
	Asked   []string // people of the request; nil where there is none
	// About is the current request, for events with its text ([Type.HasWords]); without an ID if it is no longer stored.
	// The audit contains no request texts, which it outlives.
	About Request
}

// EventsOf returns the types of audit entries that are events as well.
func EventsOf() []Type {
	return []Type{
		RequestCreated, RequestShown, RequestVoted, RequestSettled, RequestUsed, RequestVoided, RequestLapsed,
		RequestRerouted, RequestEscalated, RequestExtended, GrantAdded, GrantRevoked, GrantEnded, AllStopped, AllResumed,
		StoreRestored, GrantReinstated,
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout,
		SessionStatus, SessionEnded, RunFinished, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled, ToolFinished,
	}
}

// HasWords reports whether events of that type carry the text of their request.
func (t Type) HasWords() bool {
	return slices.Contains([]Type{
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled,
	}, t)
}

// VisibleTo reports whether a person may see the event: about requests to them, about their sessions, or public.
func (h Event) VisibleTo(person string) bool {
	if h.Detail[ofSession] != "" {
		return h.Detail[ofPerson] == person
	}
	return h.Request == "" || slices.Contains(h.Asked, person)
}

// The details by which a record names its session and the session's person.
const (
	ofSession = "session"
	ofPerson  = "person"
)

// Locate returns h with the session that its record names, if any.
func (h Event) Locate() Event {
	if s := h.Detail[ofSession]; s != "" {
		h.Session = s
	}
	return h
}

// About is the subject of a notice.
type About string

// Subjects of notices from the daemon.
const (
	AboutWaiting About = "waiting" // a reminder of everything that awaits them; Subject is the request that caused it
	AboutEnded   About = "ended"   // a grant is over; Subject is the grant
	AboutRevoked About = "revoked" // a grant was revoked; Subject is the grant
	AboutStopped About = "stopped" // everything was stopped

	AboutUnknownSenders About = "strangers" // unknown accounts wrote; at most one such notice is pending

	// Subjects of notices from callers; see [Telling].
	AboutFinished About = "finished" // an agent has finished a turn
	AboutWaits    About = "waits"    // an agent waits for its person, outside daycared
	AboutFailed   About = "failed"   // an agent has given up
	AboutSays     About = "says"     // free text of a script
)

// Tellings returns the subjects that callers may use.
func Tellings() []About { return []About{AboutFinished, AboutWaits, AboutFailed, AboutSays} }

const (
	// MaxTitle bounds the title of a session in a [Telling], in characters.
	MaxTitle = 100
	// MaxTelling bounds the text of a [Telling], in characters.
	MaxTelling = 1000
)

// Telling is a caller's message to a person. It asks nothing and decides nothing, and its words are the caller's own.
type Telling struct {
	Agent   string // claimed by the caller; empty: the caller itself
	Session string // claimed by the caller; empty: none in particular
	Title   string // of the session
	Text    string
	Silent  bool // without a sound, if the channel supports that
}

// Validate returns what is wrong with a telling with that subject, or nil.
func (t Telling) Validate(about About) error {
	if !slices.Contains(Tellings(), about) {
		return fmt.Errorf("what is told is about one of %v, not %q", Tellings(), about)
	}
	for _, one := range []struct {
		name, text string
		most       int
	}{{"agent", t.Agent, MaxName}, {"session", t.Session, MaxName}, {"title", t.Title, MaxTitle}, {"text", t.Text, MaxTelling}} {
		switch {
		case !utf8.ValidString(one.text):
			return fmt.Errorf("the %s is not UTF-8", one.name)
		case utf8.RuneCountInString(one.text) > one.most:
			return fmt.Errorf("the %s has more than %d characters", one.name, one.most)
		}
	}
	if about == AboutSays && strings.TrimSpace(t.Text) == "" {
		return errors.New("there is no text to tell")
	}
	return nil
}

// Notice is a message to one person, or to all in a group, that asks nothing. It is stored in the commit that causes it,
// without text unless it is a caller's: the text is built from the rows when it is sent. Unsent reminders to one person,
// or one group, are merged.
type Notice struct {
	ID        ID     // the store's
	To        string // a person; empty: all in Group
	Group     string // see [Request]
	About     About
	Subject   ID
	By        string // who caused it; empty for the daemon itself
	Urgent    bool   // also in quiet hours
	CreatedAt time.Time
	Told      Telling // if About is one of [Tellings]; By is then the name of the caller
}

// GroupRename says that a group has another id since a time, as when it becomes a supergroup.
type GroupRename struct {
	Was, Now string
	At       time.Time
}
