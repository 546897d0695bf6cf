package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// reconciler sees to it that everybody who is asked has a copy, or that it is known why not: after an escalation, after a
// change of the configuration, and when a channel failed for good. It works from the rows alone.
type reconciler struct {
	*workQueue
	engine *Engine
}

func newReconciler(e *Engine) *reconciler {
	return &reconciler{engine: e, workQueue: newWorkQueue(e.clock.Elapsed, e.log)}
}

// reconcile looks at one request. When too few people can be reached, those of the escalation are asked at once; when
// there are none, the request is undeliverable.
func (u *reconciler) reconcile(ctx context.Context, id permissions.ID) error {
	e := u.engine
	for {
		r, copies, there, err := e.read(ctx, id)
		if err != nil || !there || r.State != permissions.Pending {
			return err
		}
		s := e.settings.Load()
		if err := e.withhold(ctx, s, copies); err != nil {
			return err
		}
		more, why := e.plan(s, r, copies)
		if len(more) > 0 {
			err := e.store.AddCopies(ctx, more)
			e.enqueue(id) // also where the store failed: it may have added them
			if err != nil {
				return err
			}
		}
		if e.reached(s, r, append(copies, more...)) >= r.Quorum {
			return nil
		}
		var next permissions.Transition = permissions.GiveUp{Reason: why, Asked: r.Asked, At: e.stamp()}
		if len(r.EscalateTo) > 0 {
			next = permissions.Escalate{At: e.stamp()}
		}
		c, err := e.registry.Resolve(ctx, id, next)
		switch {
		case errors.Is(err, permissions.ErrSettled), errors.Is(err, permissions.ErrLate):
			return nil
		case err != nil:
			return err
		case c.After.State != permissions.Pending:
			return nil
		}
	}
}

// plan is the copies that r still lacks, beside those that it has, and in words why nobody else can be reached.
func (e *Engine) plan(s *Settings, r permissions.Request, have []permissions.Copy) (more []permissions.Copy, why string) {
	if r.State != permissions.Pending {
		return nil, ""
	}
	var reasons []string
	for _, name := range r.Asked {
		person, ok := s.person(name)
		if !ok {
			reasons = append(reasons, name+" is nobody here")
			continue
		}
		copies, unreachable := e.planFor(person, r, have)
		more = append(more, asOne(copies, more)...)
		live := func(c permissions.Copy) bool {
			return c.Person == name && c.Failed == "" && e.barred(person, c.Connector) == nil
		}
		if !slices.ContainsFunc(copies, live) && !slices.ContainsFunc(have, live) {
			reasons = append(reasons, unreachable...)
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"no channel is switched on"}
	}
	return more, strings.Join(slices.Compact(reasons), "; ")
}

// asOne gives copies the button of those in the same place.
func asOne(copies, others []permissions.Copy) []permissions.Copy {
	for i, c := range copies {
		same := slices.IndexFunc(others, func(o permissions.Copy) bool { return o.Group == c.Group && o.Connector == c.Connector })
		if c.Group != "" && same >= 0 {
			copies[i].Button = others[same].Button
		}
	}
	return copies
}

// planFor is the copies that one person lacks. Somebody who named channels gets one copy in the first of them that
// works, and one on every screen; else there is a copy for every channel that may reach them. Where the request has a
// place, whoever can be reached there sees it there, and is sent none of their own by that channel while that holds.
func (e *Engine) planFor(
	p connectors.Person, r permissions.Request, have []permissions.Copy,
) (more []permissions.Copy, why []string) {
	had := map[string]permissions.Copy{}
	live := map[string]bool{} // that work, as far as is known
	for _, c := range have {
		if c.Person == p.Name && c.Group == "" {
			had[c.Connector], live[c.Connector] = c, c.Failed == ""
		}
	}
	hall, there, first := e.groupChannel(p, r, have)
	if first {
		more = append(more, e.copyFor(p, r, hall, r.Group))
	}
	add := func(c connectors.Connector) bool {
		name := c.Name()
		if there && name == hall {
			return true
		}
		if old, tried := had[name]; tried {
			if out := suspended(p, name); old.Failed == "" && out != nil {
				why = append(why, out.Error())
			} else if old.Failed != "" {
				why = append(why, old.Failed)
			}
			return live[name]
		}
		if err := reach(c, p); err != nil {
			why = append(why, err.Error())
			return false
		}
		mine := e.copyFor(p, r, name, "")
		mine.Since = mine.Since.Add(hold(c, p, r))
		more = append(more, mine)
		return true
	}
	for _, name := range p.Via {
		c, on := e.connector(name)
		if !on {
			why = append(why, p.Name+"'s "+name+" is not switched on")
		} else if add(c) {
			break
		}
	}
	if len(p.Via) > 0 && (len(had) > 0 || hall != "" && !first) {
		return more, why // screens were given theirs
	}
	for _, c := range e.dispatchers {
		_, screen := c.connector.(connectors.Screen)
		if len(p.Via) == 0 || (screen && !slices.Contains(p.Via, c.connector.Name())) {
			add(c.connector)
		}
	}
	return more, why
}

// groupChannel is the channel that has the place of r, where p can be reached by that channel at all; there reports whether they see
// r in that place, and first that they are yet to be given a copy there. The place is given up for good once it failed.
func (e *Engine) groupChannel(p connectors.Person, r permissions.Request, have []permissions.Copy) (name string, there, first bool) {
	if r.Group == "" {
		return "", false, false
	}
	for _, c := range e.dispatchers {
		why := reach(c.connector, p)
		if h, is := c.connector.(connectors.GroupChannel); !is || !h.IsGroup(r.Group) || why != nil && !isLost(why) {
			continue
		}
		name, there, first = c.connector.Name(), true, true
		for _, old := range have {
			if old.Connector == name && old.Group == r.Group {
				there = there && old.Failed == ""
				first = first && old.Person != p.Name
			}
		}
		return name, there, there && first
	}
	return "", false, false
}

// copyFor is a copy that is still to be shown.
func (e *Engine) copyFor(p connectors.Person, r permissions.Request, connector, place string) permissions.Copy {
	return permissions.Copy{
		Request: r.ID, Person: p.Name, Connector: connector, Group: place, Button: permissions.NewButton(), Since: e.stamp(),
	}
}

// hold is how long a copy is kept from somebody's phone: what a hook asks is often answered where its agent runs, which for
// agents that the daemon runs is nowhere. It is never more than half of the request's time, and a screen or a place that
// others see is not kept waiting.
func hold(c connectors.Connector, p connectors.Person, r permissions.Request) time.Duration {
	if _, screen := c.(connectors.Screen); screen || r.Hook == "" || r.Caller.Ours() {
		return 0
	}
	return max(0, min(p.PhoneAfter, r.Timeout()/2))
}

// reach asks a connector whether somebody can be reached there; nil unless it knows that they cannot, or their account is
// suspended.
func reach(c connectors.Connector, p connectors.Person) error {
	err := reachNow(c, p)
	if err == nil || errors.Is(err, connectors.ErrUnreachable) || suspended(p, c.Name()) != nil {
		return err
	}
	return nil
}

func (e *Engine) connector(name string) (connectors.Connector, bool) {
	for _, c := range e.dispatchers {
		if c.connector.Name() == name {
			return c.connector, true
		}
	}
	return nil, false
}

// enqueue has every dispatcher look at a request.
func (e *Engine) enqueue(id permissions.ID) {
	for _, c := range e.dispatchers {
		c.Enqueue(id)
	}
}

// isLost reports whether somebody cannot be reached by themselves until they do something.
func isLost(err error) bool {
	gone := (*connectors.UnreachableError)(nil)
	return errors.As(err, &gone) && gone.Lost
}

// reached counts the people asked who have a copy that was shown, whatever became of it, or may still be. Who lost their
// account since, or left, counts only if they had said all that they can.
func (e *Engine) reached(s *Settings, r permissions.Request, copies []permissions.Copy) int {
	people := map[string]bool{}
	for _, c := range copies {
		p, _ := s.person(c.Person)
		door, on := e.connector(c.Connector)
		left := on && c.Group == "" && c.Failed != "" && isLost(reach(door, p))
		lost := (left || e.barred(p, c.Connector) != nil) && !r.HasVoted(c.Person)
		if (c.Failed == "" || !c.SentAt.IsZero()) && slices.Contains(r.Asked, c.Person) && !lost {
			people[c.Person] = true
		}
	}
	return len(people)
}

// prompt is a request as one person is to see it in one place, or as all do who are asked there.
func (e *Engine) prompt(r permissions.Request, cp permissions.Copy, to connectors.Person, copies []permissions.Copy) connectors.Prompt {
	p := connectors.Prompt{
		Request: r, To: to, Code: e.store.Coder().Encode(r.Number), Waiting: e.waits(r),
		Ref: cp.Ref, SentAt: cp.SentAt, Button: button(r, cp), Silent: !r.HighRisk && e.quiet(to), Locked: to.Locked != "" && cp.Group == "",
	}
	if to.Name == "" && cp.Group == "" { // who is nobody any more does not see how it ends
		p.Locked, p.Request.State = true, permissions.Pending
	}
	if cp.Group != "" {
		p.To, p.Silent = e.audience(r)
		p.Group, p.Silent = e.groupNow(cp.Group), p.Silent && !r.HighRisk
		return p
	}
	p.Before, p.Besides = e.others(r, cp, copies)
	return p
}

// others are who was asked before a copy was to be shown and has not answered, and who is asked since it was.
func (e *Engine) others(r permissions.Request, cp permissions.Copy, copies []permissions.Copy) (before, besides []connectors.Asked) {
	for _, name := range r.Asked {
		is := connectors.Asked{Name: name}
		planned := e.stamp() // whose copy is not there yet
		for _, c := range copies {
			if c.Person != name {
				continue
			}
			if planned = c.Since; is.At.IsZero() || !c.SentAt.IsZero() && c.SentAt.Before(is.At) {
				is.At = c.SentAt
			}
		}
		answered := slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool { return v.By == name })
		switch {
		case name == cp.Person || answered:
		case !is.At.IsZero() && is.At.Before(cp.Since):
			before = append(before, is)
		case !cp.SentAt.IsZero() && planned.After(cp.SentAt):
			besides = append(besides, connectors.Asked{Name: name, At: planned})
		}
	}
	return before, besides
}
