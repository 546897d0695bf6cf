package permissions

import "time"

// Event is something that happens to a request, at a time. The events below are all there are.
type Event interface{ at() time.Time }

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
	// Reroute changes who is asked, now and later: people leave the configuration, and come into it.
	Reroute struct {
		Asked, EscalateTo []string
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

// via is the door that a person's event says it came through; empty of any other.
func via(e Event) string {
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

// Settled tells whether this change ended the request.
func (c Change) Settled() bool { return c.Before.State == Pending && c.After.State != Pending }

// Handed tells whether this change approved the request and used the approval.
func (c Change) Handed() bool { return c.Settled() && !c.After.UsedAt.IsZero() }

// Voided tells whether this change took the approval back. Whoever commits it revokes every grant of the request.
func (c Change) Voided() bool { return c.Before.VoidAt.IsZero() && !c.After.VoidAt.IsZero() }

// Empty tells whether there is nothing to commit.
func (c Change) Empty() bool {
	return c.Vote == nil && len(c.Records) == 0 && len(c.Notices) == 0 && c.Before.Revision == c.After.Revision &&
		c.Before.CollectedAt.Equal(c.After.CollectedAt) && len(c.Before.Reminders) == len(c.After.Reminders)
}
