package permissions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Transition is something that happens to a request, at a time. The events below are all there are.
type Transition interface{ at() time.Time }

type (
	// Cast is a person's answer. When it approves, Use, if there is one, is done in the same change: the call that it
	// names waits just now ([Registry.Resolve] fills that in, and leaves Use out when nobody does).
	Cast struct {
		Vote   Vote
		Really bool // the second yes that high risk needs
		Use    *Use
	}
	// Default is the first option of a clarification, taken because a person gave no valid answer in three tries.
	Default struct {
		By, Via string
		At      time.Time
	}
	// Reply is what the dialog of the asker's own editor brought. It came through the asker's side and proves nobody: it has
	// no person, is no vote, and answers only what permits nothing ([Request.TakesReplies]).
	Reply struct {
		Answer Answer
		At     time.Time
	}
	// Withdraw cancels: a person, `/stop` or the kill switch; By is empty for the caller itself.
	Withdraw struct {
		By, Via string
		At      time.Time
	}
	// Expire is the deadline. Spent says that the time was measured to be over, whatever the clock on the wall says.
	Expire struct {
		At    time.Time
		Spent bool
	}
	// GiveUp says that too few people can be reached, and why. It means nothing when others than Asked are asked by now;
	// nil Asked are whoever they are.
	GiveUp struct {
		Reason string
		Asked  []string
		At     time.Time
	}
	// Reroute changes who is asked, now and later: people leave the configuration, and come into it. Of those who are Locked
	// and asked no longer, nothing counts that they said before. Votes that Moved came from accounts that are their people's no
	// longer, and do not count either.
	Reroute struct {
		Asked, EscalateTo []string
		Locked            []string
		Moved             []Vote
		At                time.Time
	}
	// Escalate asks more people: those of EscalateTo.
	Escalate struct{ At time.Time }
	// Remind has those who have not answered yet reminded.
	Remind struct{ At time.Time }
	// Extend moves the deadline later: people could not answer for a while.
	Extend struct{ Until, At time.Time }
	// Use hands an approval to the call that acts on it. An approval for once, asked without a key, has one use.
	Use struct {
		Call string // names the call, so that its own retry is not a second use; may be empty
		At   time.Time
	}
	// Collect notes that the caller has read the answer. It uses nothing.
	Collect struct{ At time.Time }
	// Void takes an unused approval back, and with it the grants that it left behind: see [Change.Voided].
	Void struct {
		By, Via string
		At      time.Time
	}
	// Lapse is the end of the redeem window of an approval that nobody came for.
	Lapse struct{ At time.Time }
	// Leave says that nobody waits any more, Return that somebody does again.
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

// Halts reports whether a stop of everything keeps e from happening: then nothing is answered, and no approval is used.
func Halts(e Transition) bool {
	switch e.(type) {
	case Cast, Reply, Use:
		return true
	}
	return false
}

// via is the door that a person's event says it came through; empty of any other.
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

// Change is all that one event does to a request, to be committed whole. When nothing changes (a second equal vote, a
// late Leave), After equals Before and there is nothing to commit.
type Change struct {
	Before, After Request
	Vote          *Vote   // cast by this event
	Grants        []Grant // left behind by this event
	Records       []Record
	Notices       []Notice // for people, without ids
}

// Settled reports whether this change ended the request.
func (c Change) Settled() bool { return c.Before.State == Pending && c.After.State != Pending }

// Handed reports whether this change approved the request and used the approval.
func (c Change) Handed() bool { return c.Settled() && !c.After.UsedAt.IsZero() }

// Voided reports whether this change took the approval back. Whoever commits it revokes every grant of the request.
func (c Change) Voided() bool { return c.Before.VoidAt.IsZero() && !c.After.VoidAt.IsZero() }

// Empty reports whether there is nothing to commit.
func (c Change) Empty() bool {
	return c.Vote == nil && len(c.Records) == 0 && len(c.Notices) == 0 && c.Before.Revision == c.After.Revision &&
		c.Before.CollectedAt.Equal(c.After.CollectedAt) && len(c.Before.Reminders) == len(c.After.Reminders)
}

// The types of events that repeat, in the words of agents' front ends, what another record of the same commit says.
const (
	PermissionApplied Type = "PERMISSION_APPLIED"   // an approval of tags is used
	DialogRequested   Type = "AIC_DIALOG_REQUESTED" // a clarification is asked
	DialogResponded   Type = "AIC_DIALOG_RESPONDED" // by a person, also with what nobody could read; or it ended without a response
	DialogTimeout     Type = "AIC_TIMEOUT"          // by nobody
)

// Event is an entry of the audit as front ends follow it: with what they need to know of its request. Its Seq is
// that of the daemon's chain, so it grows in the order of commits, and has gaps where the audit tells what is nobody's
// event.
type Event struct {
	Entry
	Session string
	Asked   []string // people of the request; nil where there is none
	// About is the request as it is now, where the event is told in its words ([Type.HasWords]); without an ID where that is
	// no longer kept. The audit outlives what was asked in words, and so has none of them.
	About Request
}

// EventsOf are the types of audit entries that are events as well.
func EventsOf() []Type {
	return []Type{
		RequestCreated, RequestShown, RequestVoted, RequestSettled, RequestUsed, RequestVoided, RequestLapsed,
		RequestRerouted, RequestEscalated, RequestExtended, GrantAdded, GrantRevoked, GrantEnded, AllStopped, AllResumed,
		StoreRestored, GrantReinstated,
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout,
		SessionStatus, SessionEnded, RunFinished, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled, ToolFinished,
	}
}

// HasWords reports whether events of that type are told in the words of their request.
func (t Type) HasWords() bool {
	return slices.Contains([]Type{
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled,
	}, t)
}

// VisibleTo reports whether a person may see it: what was put to them, what their sessions do, and what is everybody's.
func (h Event) VisibleTo(person string) bool {
	if h.Detail[ofSession] != "" {
		return h.Detail[ofPerson] == person
	}
	return h.Request == "" || slices.Contains(h.Asked, person)
}

// The details by which a record names its session, and whose that is.
const (
	ofSession = "session"
	ofPerson  = "person"
)

// Locate is h with the session that its record names, where it names one.
func (h Event) Locate() Event {
	if s := h.Detail[ofSession]; s != "" {
		h.Session = s
	}
	return h
}

// About is what a notice tells.
type About string

// What people are told beside the cards.
const (
	AboutWaiting About = "waiting" // a reminder of everything that waits for them; Subject is the request that caused it
	AboutEnded   About = "ended"   // a grant is over; Subject is the grant
	AboutRevoked About = "revoked" // a grant was taken back; Subject is the grant
	AboutStopped About = "stopped" // everything was stopped

	AboutUnknownSenders About = "strangers" // accounts of nobody here wrote; there is one such notice at a time

	// What callers have people told; see [Telling].
	AboutFinished About = "finished" // an agent has finished a turn
	AboutWaits    About = "waits"    // an agent waits for its person, outside daycared
	AboutFailed   About = "failed"   // an agent has given up
	AboutSays     About = "says"     // whatever a script says
)

// Tellings are what callers may have people told.
func Tellings() []About { return []About{AboutFinished, AboutWaits, AboutFailed, AboutSays} }

const (
	// MaxTitle is the most characters that the title of a session has in a [Telling].
	MaxTitle = 100
	// MaxTelling is the most characters that the text of a [Telling] has.
	MaxTelling = 1000
)

// Telling is what a caller has a person told. It asks nothing and decides nothing, and its words are the caller's own.
type Telling struct {
	Agent   string // who it is about, by the caller's word; empty: the caller itself
	Session string // what it is about, by the caller's word; empty: nothing in particular
	Title   string // of the session
	Text    string
	Silent  bool // shown without a sound, where the channel can do that
}

// Validate says what is wrong with a telling about about; nil: nothing.
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

// Notice is a message to one person, or to all in a place, that asks nothing. It is stored in the commit of what it
// tells, without its words, unless they are a caller's: those are made of the rows when it is sent. Several reminders that
// are still to be sent to a person, or to a place, are one.
type Notice struct {
	ID        ID     // the store's
	To        string // a person; empty: all in Place
	Group     string // see [Request]
	About     About
	Subject   ID
	By        string // who caused it; empty for the daemon itself
	Urgent    bool   // also in quiet hours
	CreatedAt time.Time
	Told      Telling // where About is one of [Tellings]; By is then the name of the caller
}

// GroupRename says that a place of several people goes by another name since a time, as a group does that becomes a supergroup.
type GroupRename struct {
	Was, Now string
	At       time.Time
}
