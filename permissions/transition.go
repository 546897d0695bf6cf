package permissions

import (
	"time"
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
	// Forbid denies a call that the configuration has forbidden since it was asked, by a rule or another name of what forbids it.
	Forbid struct {
		Rule string
		At   time.Time
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
	// people's. Who is Locked may be in EscalateTo, but is not one of those who can still be asked.
	Reroute struct {
		Asked, EscalateTo []string
		Locked            []string
		Moved             []Vote
		At                time.Time
	}
	// Escalate asks the people in EscalateTo as well: those of them in To, or all but the Locked ones if To is empty. Away are
	// the recipients whose absence is the reason; empty: there is another one.
	Escalate struct {
		To, Away, Locked []string
		At               time.Time
	}
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
	// Give adds a grant of a rule to an approval, for its caller.
	Give struct {
		Grant   ID
		Rule    GrantedRule
		For     time.Duration // if it is [Trusted]
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
func (e Forbid) at() time.Time   { return e.At }
func (e GiveUp) at() time.Time   { return e.At }
func (e Reroute) at() time.Time  { return e.At }
func (e Escalate) at() time.Time { return e.At }
func (e Remind) at() time.Time   { return e.At }
func (e Extend) at() time.Time   { return e.At }
func (e Use) at() time.Time      { return e.At }
func (e Collect) at() time.Time  { return e.At }
func (e Void) at() time.Time     { return e.At }
func (e Give) at() time.Time     { return e.At }
func (e Lapse) at() time.Time    { return e.At }
func (e Leave) at() time.Time    { return e.At }
func (e Return) at() time.Time   { return e.At }

// PreventedByStop reports whether a stop of everything prevents e: nothing is answered, no approval is used, and no rule is given.
func PreventedByStop(e Transition) bool {
	switch e.(type) {
	case Cast, Reply, Use, Give:
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
	case Give:
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

// ApprovedAndUsed reports whether this change approved the request and used the approval.
func (c Change) ApprovedAndUsed() bool { return c.Settled() && !c.After.UsedAt.IsZero() }

// Voided reports whether this change took the approval back. The commit also revokes every grant of the request.
func (c Change) Voided() bool { return c.Before.VoidAt.IsZero() && !c.After.VoidAt.IsZero() }

// Empty reports whether there is nothing to commit.
func (c Change) Empty() bool {
	return c.Vote == nil && len(c.Records) == 0 && len(c.Notices) == 0 && c.Before.Revision == c.After.Revision &&
		c.Before.CollectedAt.Equal(c.After.CollectedAt) && len(c.Before.Reminders) == len(c.After.Reminders)
}
