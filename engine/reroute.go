package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// reroute applies the settings to the pending requests, at the start and after every change, until ctx ends. Failures
// are retried; meanwhile people who are gone are refused anyway.
func (e *Engine) reroute(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		}
		moved := e.moved.Swap(false)
		err := e.everyPending(ctx, func(r permissions.Request) error {
			var err error
			if moved {
				err = e.revive(ctx, r, e.answers)
			}
			if moved || e.settings.Load().suspends(r) {
				e.reconciler.Enqueue(r.ID)
			}
			return errors.Join(err, e.realign(ctx, r))
		})
		e.registry.NotifyNotices()
		if err == nil && moved {
			err = e.refreshAll(ctx)
		}
		if err != nil && moved {
			e.moved.Store(true)
		}
		if err != nil && ctx.Err() == nil {
			e.log.Error("re-route pending requests: retrying", "err", err)
			_ = timing.Pause(ctx, retryDelay) // the loop checks ctx
			e.realignSoon()
		}
	}
}

// answers reports whether the person of a copy can answer through its channel, as far as it knows.
func (e *Engine) answers(cp permissions.Copy) bool {
	p, known := e.settings.Load().person(cp.Person)
	c, on := e.connector(cp.Connector)
	return known && on && cp.Group == "" && reach(c, p) == nil
}

// refreshAll refreshes the prompts of all pending requests, which finds those at a former account.
func (e *Engine) refreshAll(ctx context.Context) error {
	for _, c := range e.dispatchers {
		if _, err := e.Refresh(ctx, c.connector.Name()); err != nil {
			return err
		}
	}
	return nil
}

// readdressed reports whether a person has another account than before.
func readdressed(before, now []connectors.Person) bool {
	return slices.ContainsFunc(now, func(p connectors.Person) bool {
		return slices.ContainsFunc(before, func(o connectors.Person) bool {
			return o.Name == p.Name && !maps.Equal(o.Addresses, p.Addresses)
		})
	})
}

// realignSoon makes reroute examine all pending requests.
func (e *Engine) realignSoon() { e.changed.Notify() }

// realign applies the settings to a pending request.
func (e *Engine) realign(ctx context.Context, r permissions.Request) error {
	asks := e.settings.Load().asks(r, e.stamp())
	if slices.Equal(asks.Asked, r.Asked) && slices.Equal(asks.EscalateTo, r.EscalateTo) && len(asks.Moved) == 0 {
		return nil
	}
	_, err := e.registry.Resolve(ctx, r.ID, asks)
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) || errors.Is(err, permissions.ErrRow) {
		return nil
	}
	return err
}

// asks returns the recipients of r under these settings: the current ones who are still configured and not locked, and
// those whom the route of r names now. People who wait for an escalation keep waiting. The implicit operator, whom no
// route names, does not replace people who were asked.
func (s *Settings) asks(r permissions.Request, at time.Time) permissions.Reroute {
	gone := func(name string) bool {
		p, known := s.person(name)
		return !known || p.Locked != ""
	}
	e := permissions.Reroute{
		Asked:      slices.DeleteFunc(slices.Clone(r.Asked), gone),
		EscalateTo: slices.DeleteFunc(slices.Clone(r.EscalateTo), gone),
		Moved:      slices.DeleteFunc(slices.Clone(r.Votes), func(v permissions.Vote) bool { return !s.moved(v) }),
		At:         at,
	}
	for _, name := range r.Asked {
		if p, _ := s.person(name); p.Locked != "" {
			e.Locked = append(e.Locked, name)
		}
	}
	route, found := s.route(r)
	for _, name := range route.Ask {
		if found && !gone(name) && name != OperatorName && !slices.Contains(e.Asked, name) {
			e.Asked = append(e.Asked, name)
		}
	}
	return e
}

// moved reports whether an allowing vote came from an account that is no longer its person's: whoever has it now could
// vote again. A suspended account is still theirs.
func (s *Settings) moved(v permissions.Vote) bool {
	p, _ := s.person(v.By)
	channel, _, _ := strings.Cut(v.Account, ":")
	_, allows := v.Answer.Scope()
	return allows && v.Account != "" && !slices.Contains(p.Suspended, channel) && !slices.Contains(accounts(p), v.Account)
}

// Wider lists, in the configuration's names, what next allows that old does not, or asks other people about.
func Wider(old, next Settings) (all []string) {
	all = append(all, widerPolicy("", old.Policy, next.Policy)...)
	for _, name := range slices.Sorted(maps.Keys(next.Policies)) {
		agent := permissions.Caller{Name: name}
		all = append(all, widerPolicy(name+": ", old.policy(agent), next.policy(agent))...)
	}
	all = append(all, more("approvals.scopes", old.Approvals.Scopes, next.Approvals.Scopes)...)
	type limit struct {
		key         string
		before, now int
	}
	limits := []limit{
		{"limits.pending_per_caller", old.Limits.PendingPerCaller, next.Limits.PendingPerCaller},
		{"limits.prompts_per_minute", old.Limits.PromptsPerMinute, next.Limits.PromptsPerMinute},
		{"limits.pending_total", old.Limits.PendingTotal, next.Limits.PendingTotal},
	}
	rates := map[string]int{}
	maps.Copy(rates, old.Limits.AutoPerMinute)
	maps.Copy(rates, next.Limits.AutoPerMinute)
	for _, tool := range slices.Sorted(maps.Keys(rates)) {
		_, before := old.Limits.rate(tool)
		_, now := next.Limits.rate(tool)
		limits = append(limits, limit{"limits.auto_per_minute: " + tool, before, now})
	}
	for _, limit := range limits {
		if limit.now != limit.before && (limit.now == 0 || limit.before != 0 && limit.now > limit.before) { // 0: no limit
			all = append(all, fmt.Sprintf("%s is %d, not %d", limit.key, limit.now, limit.before))
		}
	}
	if next.AllowSameUser && !old.AllowSameUser {
		all = append(all, "api.allow_same_user is on")
	}
	if next.Editor && !old.Editor {
		all = append(all, "connectors.editor.enabled is on")
	}
	return append(append(all, widerPeople(old, next)...), widerRoutes(old.Routes, next.Routes)...)
}

func widerPolicy(of string, old, next permissions.Policy) []string {
	return slices.Concat(
		more(of+"tools.auto", old.Auto, next.Auto), fewer(of+"tools.gated", old.Gated, next.Gated),
		fewer(of+"tools.forbidden", old.Forbidden, next.Forbidden),
		fewer(of+"high_risk.tools", old.HighRiskTools, next.HighRiskTools),
		fewer(of+"high_risk.tags", old.HighRiskTags, next.HighRiskTags),
	)
}

// widerPeople names the people who can decide now and could not before, and their accounts.
func widerPeople(old, next Settings) (all []string) {
	for _, p := range next.People {
		before, known := old.person(p.Name)
		switch {
		case !known:
			all = append(all, "people has "+p.Name)
		case before.UID != p.UID || !maps.Equal(before.Addresses, p.Addresses):
			all = append(all, "people: "+p.Name+" has other accounts")
		}
	}
	return all
}

// widerRoutes names the routes that are gone, and those that ask fewer or other people about the same requests.
func widerRoutes(old, next []Route) (all []string) {
	conditions := func(t Route) []any { return []any{t.Agents, t.Tags, t.Tools, t.Kinds} }
	for i, before := range old {
		at := slices.IndexFunc(next, func(t Route) bool { return reflect.DeepEqual(conditions(t), conditions(before)) })
		name := fmt.Sprintf("routes: the one to %s, the %d. before,", strings.Join(before.Ask, ", "), i+1)
		if at < 0 {
			all = append(all, name+" is gone")
			continue
		}
		now := next[at]
		if was, is := cmp.Or(before.Quorum, 1), cmp.Or(now.Quorum, 1); is < was {
			all = append(all, fmt.Sprintf("%s has quorum %d, not %d", name, is, was))
		}
		if before.NoKeyboard && !now.NoKeyboard {
			all = append(all, name+" lets the keyboard answer")
		}
		all = append(all, more(name+" ask", before.Ask, now.Ask)...)
		all = append(all, more(name+" escalate.to", before.Escalate.To, now.Escalate.To)...)
	}
	return all
}

func more[T comparable](key string, old, next []T) (all []string) {
	for _, v := range next {
		if !slices.Contains(old, v) {
			all = append(all, fmt.Sprintf("%s has %v", key, v))
		}
	}
	return all
}

func fewer[T comparable](key string, old, next []T) []string {
	return more(key+" no longer", next, old)
}
