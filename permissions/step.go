package permissions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Errors of [Step]. A refused event changes nothing.
var (
	ErrSettled  = errors.New("already settled")          // wrapped by a *SettledError, which says by whom
	ErrLate     = errors.New("the time is over")         // the deadline has passed, whether or not it has expired yet
	ErrNotDue   = errors.New("not due yet")              // Expire or Lapse before its time
	ErrNotAsked = errors.New("not yours to decide")      // the voter is not among the asked
	ErrNoOption = errors.New("not one of the answers")   // the answer or the call is not offered
	ErrWords    = errors.New("no words to answer with")  // Other without words, with too many, or with invisible ones
	ErrAsker    = errors.New("not for the asker's side") // a [Reply] to what permits something, or a vote by way of an editor
	ErrCall     = errors.New("that call is answered")    // of a step whose other calls are still open
	ErrReally   = errors.New("high risk: needs a second yes")
	ErrVoted    = errors.New("an allowance can only become a denial")
	ErrNoRule   = errors.New("no rule was shown")
	ErrNoUse    = errors.New("not an approval that can be used") // none, taken back, lapsed, or used by another call
	ErrEvent    = errors.New("no such event")                    // or one without a time
)

// SettledError says how a request was settled before the refused event. It matches [ErrSettled].
type SettledError struct{ Request Request }

func (e *SettledError) Error() string {
	by := "by " + e.Request.DecidedBy
	switch {
	case e.Request.DecidedVia == ViaRule:
		by = "by " + e.Request.Failure
	case e.Request.DecidedVia == ViaEditor:
		by = "in the editor"
	case e.Request.DecidedBy == "":
		by = "by nobody"
	}
	return fmt.Sprintf("already %s %s", e.Request.State, by)
}

// Is matches [ErrSettled].
func (e *SettledError) Is(target error) bool { return target == ErrSettled }

// Step is the life of a request: it returns what an event does to r, or why it does nothing. It is pure and total. The
// votes so far are r.Votes.
func Step(r Request, e Transition) (Change, error) {
	next, err := step(r, e)
	if err != nil {
		return Change{Before: r, After: r}, err
	}
	return next, nil
}

func step(r Request, e Transition) (Change, error) {
	switch e.(type) {
	case Cast, Default, Reply, Withdraw, Expire, Forbid, GiveUp, Reroute, Escalate, Remind, Extend, Use, Collect, Void, Give, Lapse, Leave,
		Return:
	default:
		return Change{}, ErrEvent
	}
	if e.at().IsZero() {
		return Change{}, ErrEvent
	}
	if via(e) == ViaEditor { // an editor proves no person
		return Change{}, ErrAsker
	}
	switch e := e.(type) {
	case Use:
		return use(r, e)
	case Collect:
		return collect(r, e), nil
	case Void:
		return void(r, e)
	case Give:
		return give(r, e)
	case Lapse:
		return lapse(r, e)
	case Leave:
		return setLeftAt(r, e.At), nil
	case Return:
		return setLeftAt(r, time.Time{}), nil
	}
	return decide(r, e)
}

// decide applies an event that only a pending request accepts, before its deadline.
func decide(r Request, e Transition) (Change, error) {
	end, expires := e.(Expire)
	switch over := !e.at().Before(r.Deadline) || end.Spent; {
	case r.State != Pending:
		return Change{}, &SettledError{Request: r}
	case over && !expires:
		return Change{}, ErrLate
	case !over && expires:
		return Change{}, ErrNotDue
	}
	switch e := e.(type) {
	case Cast:
		return cast(r, e)
	case Default:
		return takeDefault(r, e)
	case Reply:
		return reply(r, e)
	case Withdraw:
		c := settle(r, Cancelled, e.By, e.Via, e.At)
		if e.By == "" {
			for i := range c.Records {
				c.Records[i].Actor = r.Caller.Name
			}
		}
		return c, nil
	case Forbid:
		if r.Kind != KindTool {
			return Change{}, ErrNoOption
		}
		c := settle(r, Denied, "", ViaRule, e.At)
		c.After.Failure, c.Records[0].Detail["rule"] = e.Rule, e.Rule
		return c, nil
	case GiveUp:
		if e.Asked != nil && !slices.Equal(e.Asked, r.Asked) {
			return Change{Before: r, After: r}, nil
		}
		c := settle(r, Undeliverable, "", "", e.At)
		c.After.Failure = e.Reason
		return c, nil
	case Reroute:
		return reroute(r, e), nil
	case Escalate:
		return escalate(r, e), nil
	case Remind:
		return remind(r, e), nil
	case Extend:
		return extend(r, e), nil
	}
	return expire(r, e.at()), nil
}

// settle ends a request. The caller fills in the answer.
func settle(r Request, s State, by, via string, at time.Time) Change {
	after := r
	after.Revision++
	after.State, after.DecidedBy, after.DecidedVia, after.DecidedAt = s, by, via, at
	after.Reminders = nil
	return Change{Before: r, After: after, Records: append(
		[]Record{record(RequestSettled, r, by, via, at, "state", string(s))}, closing(after, by, via, at)...)}
}

// closing returns the record that ends the dialog of a clarification, which [Opened] began; nothing else has one.
func closing(r Request, by, via string, at time.Time) []Record {
	switch {
	case r.Kind != KindClarification || r.State == Pending:
		return nil
	case via == ViaTimeout:
		return []Record{record(DialogTimeout, r, by, via, at)}
	case r.State == Answered:
		return []Record{record(DialogResponded, r, by, via, at)}
	}
	return []Record{record(DialogResponded, r, by, via, at, "reason", string(r.State))}
}

// Opened returns the audit records of a new request, including one that needed no answer.
func Opened(r Request) []Record {
	detail := []string{"kind", string(r.Kind)}
	for _, ruled := range r.Ruled {
		detail = append(detail, ruled.Detail()...)
	}
	all := []Record{record(RequestCreated, r, r.Caller.Name, "", r.CreatedAt, detail...)}
	if r.Kind == KindClarification {
		all = append(all, record(DialogRequested, r, r.Caller.Name, "", r.CreatedAt))
	}
	if r.State != Pending {
		all = append(all, record(RequestSettled, r, r.DecidedBy, r.DecidedVia, r.DecidedAt, "state", string(r.State), "answer", string(r.Answer)))
	}
	return append(all, closing(r, r.DecidedBy, r.DecidedVia, r.DecidedAt)...)
}

func record(t Type, r Request, actor, via string, at time.Time, detail ...string) Record {
	rec := Record{
		Type: t, At: at, Request: r.ID, Actor: actor, Via: via, Detail: map[string]string{"digest": r.ShownDigest().String()},
	}
	for i := 0; i+1 < len(detail); i += 2 {
		rec.Detail[detail[i]] = detail[i+1]
	}
	return rec
}

// expire ends a request that nobody answered in time: silence is never consent. A clarification takes its first option,
// marked as nobody's.
func expire(r Request, at time.Time) Change {
	if r.Kind != KindClarification {
		return settle(r, Expired, "", ViaTimeout, at)
	}
	c := settle(r, Answered, "", ViaTimeout, at)
	c.After.Answer, c.After.TimedOut = Choose(1), true
	return c
}

func takeDefault(r Request, e Default) (Change, error) {
	if r.Kind != KindClarification {
		return Change{}, ErrNoOption
	}
	if !slices.Contains(r.Asked, e.By) {
		return Change{}, ErrNotAsked
	}
	c := settle(r, Answered, "", e.Via, e.At)
	c.After.Answer, c.After.Defaulted = Choose(1), true
	return c, nil
}

// setLeftAt records since when nobody waits for an answer; the zero time means that somebody does. Our own agents always
// wait: the session rests, and continues with the answer.
func setLeftAt(r Request, since time.Time) Change {
	after := r
	if r.State == Pending && !r.Caller.IsOurs() && r.LeftAt.IsZero() != since.IsZero() {
		after.Revision++
		after.LeftAt = since
	}
	return Change{Before: r, After: after}
}

// use hands over an approval. One that was asked with a key, or is wider than once, may be handed over again.
func use(r Request, e Use) (Change, error) {
	lapsed := r.Key == "" && !r.LapsedAt.IsZero() // a key finds its answer for as long as the store says
	if r.State != Approved || !r.VoidAt.IsZero() || lapsed {
		return Change{}, ErrNoUse
	}
	if !r.UsedAt.IsZero() {
		if r.Key != "" || r.Scope != Once || (e.Call != "" && e.Call == r.UsedCall) {
			return Change{Before: r, After: r}, nil
		}
		return Change{}, ErrNoUse
	}
	c := Change{Before: r, After: r}
	c.After.Revision++
	c.spend(e)
	return c, nil
}

// spend marks the approval as used.
func (c *Change) spend(e Use) {
	c.After.UsedAt, c.After.UsedCall, c.After.CollectedAt = e.At, e.Call, e.At
	c.Records = append(c.Records, record(RequestUsed, c.Before, c.Before.Caller.Name, "", e.At))
	if c.Before.Kind == KindPermission {
		c.Records = append(c.Records, record(PermissionApplied, c.Before, c.Before.Caller.Name, "", e.At))
	}
}

func collect(r Request, e Collect) Change {
	after := r
	if r.State != Pending && r.CollectedAt.IsZero() {
		after.CollectedAt = e.At
	}
	return Change{Before: r, After: after}
}

func void(r Request, e Void) (Change, error) {
	if r.State != Approved || !r.UsedAt.IsZero() || !r.VoidAt.IsZero() {
		return Change{}, ErrNoUse
	}
	after := r
	after.Revision++
	after.VoidAt, after.VoidedBy = e.At, e.By
	return Change{Before: r, After: after, Records: []Record{record(RequestVoided, r, e.By, e.Via, e.At)}}, nil
}

// give adds the grant of a rule that the card of the approved request offered, if one person may give it.
func give(r Request, e Give) (Change, error) {
	switch {
	case r.State != Approved || !r.VoidAt.IsZero():
		return Change{}, ErrNoUse
	case !slices.Contains(r.Asked, e.By):
		return Change{}, ErrNotAsked
	case r.HighRisk || r.Quorum > 1 || r.Caller.Name == Anonymous, e.For == 0 && !r.Offers(Allow(Rule)):
		return Change{}, ErrNoOption
	case e.For < 0 || e.For > MaxTrust || (e.For > 0) != (e.Rule.Origin() == Trusted):
		return Change{}, ErrNoRule
	case e.Rule == "" || e.Grant == "":
		return Change{}, ErrNoRule
	}
	c := Change{Before: r, After: r}
	g := Grant{ID: e.Grant, Caller: r.Caller.Name, Rule: e.Rule, Request: r.ID, By: e.By, CreatedAt: e.At, Until: e.At.Add(RuleIdle)}
	if e.For > 0 {
		g.Until = e.At.Add(e.For)
	}
	c.add(g, g.Scope(), e.Via)
	return c, nil
}

func lapse(r Request, e Lapse) (Change, error) {
	if r.State != Approved || !r.CollectedAt.IsZero() || !r.VoidAt.IsZero() || !r.LapsedAt.IsZero() {
		return Change{}, ErrNotDue
	}
	after := r
	after.Revision++
	after.LapsedAt = e.At
	return Change{Before: r, After: after, Records: []Record{record(RequestLapsed, r, "", "", e.At)}}, nil
}

// tooFew is why a request ends when the configuration leaves fewer people than its quorum.
const tooFew = "too few of the people who were asked are left in the configuration"

// tooFewUnlocked is the same when people are locked, followed by their names.
const tooFewUnlocked = "too few of the people who were asked may still answer; locked: "

// reroute replaces the people who are asked, now and on escalation. Undecisive votes of people who are no longer asked
// are dropped; the request stays pending, since only a vote decides, unless too few people are left for any decision. A
// person who is still asked and whose vote was dropped with its account is notified that the request awaits them.
func reroute(r Request, e Reroute) Change {
	if r.EscalateAt.IsZero() { // the escalation came meanwhile, or there was none: it is not scheduled again
		for _, p := range e.EscalateTo {
			if slices.Contains(r.Asked, p) && !slices.Contains(e.Asked, p) && !slices.Contains(e.Locked, p) {
				e.Asked = append(slices.Clone(e.Asked), p)
			}
		}
	}
	later := slices.DeleteFunc(slices.Clone(e.EscalateTo), func(p string) bool { return slices.Contains(e.Asked, p) })
	moved := func(v Vote) bool { return slices.Contains(e.Moved, v) }
	if slices.Equal(e.Asked, r.Asked) && slices.Equal(later, r.EscalateTo) && !slices.ContainsFunc(r.Votes, moved) {
		return Change{Before: r, After: r}
	}
	after := r
	after.Revision++
	after.Asked, after.EscalateTo = slices.Clone(e.Asked), later
	if len(later) == 0 {
		after.EscalateTo, after.EscalateAt = nil, time.Time{}
	}
	after.Votes = slices.DeleteFunc(slices.Clone(r.Votes), func(v Vote) bool {
		return moved(v) || !slices.Contains(e.Asked, v.By) && (len(r.open(v)) > 0 || slices.Contains(e.Locked, v.By))
	})
	after.Calls = slices.Clone(r.Calls)
	for i, c := range r.Calls { // calls decided by locked people, or from moved accounts, are open again
		over := func(v Vote) bool { return v.covers(c.N) && (slices.Contains(e.Locked, v.By) || moved(v)) }
		if verdict := after.unitAnswer(c.N); slices.ContainsFunc(r.Votes, over) && verdict != c.Answer {
			after.Calls[i] = Call{N: c.N, Tool: c.Tool, Input: c.Input, AffectedPath: c.AffectedPath, Answer: verdict, EndsRun: c.EndsRun}
		}
	}
	told := record(RequestRerouted, r, "", "", e.At, "asked", strings.Join(e.Asked, ", "))
	locked := func(p string) bool { return slices.Contains(e.Locked, p) }
	if len(after.Asked)+len(slices.DeleteFunc(slices.Clone(later), locked)) >= r.Quorum {
		c := Change{Before: r, After: after, Records: []Record{told}}
		for _, v := range r.Votes {
			if moved(v) && slices.Contains(e.Asked, v.By) {
				told.Detail["dropped"] = strings.TrimPrefix(told.Detail["dropped"]+", "+v.By, ", ")
				c.Notices = append(c.Notices, Notice{To: v.By, About: AboutWaiting, Subject: r.ID, Urgent: r.Urgent(), CreatedAt: e.At})
			}
		}
		return c
	}
	c := settle(after, Undeliverable, "", "", e.At)
	c.Before, c.After.Failure = r, tooFew
	if len(e.Locked) > 0 {
		c.After.Failure = tooFewUnlocked + strings.Join(e.Locked, ", ")
	}
	c.After.Revision = r.Revision + 1
	c.Records = append([]Record{told}, c.Records...)
	return c
}

// escalate asks the people of the escalation as well, or some of them; the others keep their time. Who is locked when all of them are to be
// asked is asked once they are not.
func escalate(r Request, e Escalate) Change {
	after, to := r, []string(nil)
	after.EscalateTo = nil
	for _, name := range r.EscalateTo {
		if !slices.Contains(e.Locked, name) && (len(e.To) == 0 || slices.Contains(e.To, name)) {
			to = append(to, name)
		} else {
			after.EscalateTo = append(after.EscalateTo, name)
		}
	}
	locked := len(e.To) == 0 && len(after.EscalateTo) > 0
	if len(to) == 0 && (!locked || r.EscalateAt.IsZero()) {
		return Change{Before: r, After: r}
	}
	after.Revision++
	after.Asked = append(slices.Clone(r.Asked), to...)
	told := record(RequestEscalated, r, "", "", e.At)
	if locked || len(after.EscalateTo) == 0 {
		after.EscalateAt = time.Time{}
	}
	if locked {
		told.Detail["locked"] = strings.Join(after.EscalateTo, ", ")
	}
	if len(e.Away) > 0 {
		told.Detail["away"] = strings.Join(e.Away, ", ")
	}
	c := Change{Before: r, After: after, Records: []Record{told}}
	if len(to) > 0 {
		told.Detail["to"], c.Notices = strings.Join(to, ", "), after.inGroup(e.At)
	}
	return c
}

// inGroup reminds the recipients in the group that shows r: an edit makes no sound.
func (r Request) inGroup(at time.Time) []Notice {
	if r.Group == "" {
		return nil
	}
	return []Notice{{Group: r.Group, About: AboutWaiting, Subject: r.ID, Urgent: r.Urgent(), CreatedAt: at}}
}

// remind notifies those who have not answered, individually and in their group, and removes the reminders that are due.
func remind(r Request, e Remind) Change {
	after := r
	after.Reminders = slices.DeleteFunc(slices.Clone(r.Reminders), func(at time.Time) bool { return !at.After(e.At) })
	if len(after.Reminders) == len(r.Reminders) {
		return Change{Before: r, After: r}
	}
	c := Change{Before: r, After: after}
	for _, person := range r.Asked {
		if !slices.ContainsFunc(r.Votes, func(v Vote) bool { return v.By == person && v.Call == 0 }) {
			c.Notices = append(c.Notices, Notice{To: person, About: AboutWaiting, Subject: r.ID, Urgent: r.Urgent(), CreatedAt: e.At})
		}
	}
	if len(c.Notices) > 0 {
		c.Notices = append(c.Notices, r.inGroup(e.At)...)
	}
	return c
}

// extend moves the deadline, only ever to a later time.
func extend(r Request, e Extend) Change {
	if !e.Until.After(r.Deadline) {
		return Change{Before: r, After: r}
	}
	after := r
	after.Revision++
	after.Deadline = e.Until
	told := record(RequestExtended, r, "", "", e.At, "until", e.Until.UTC().Format(time.RFC3339))
	return Change{Before: r, After: after, Records: []Record{told}}
}
