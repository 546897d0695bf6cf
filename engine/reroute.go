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
)

// reroute brings the pending requests in line with the settings, at the start and whenever there are new ones, until
// ctx ends. What cannot be done is tried again soon; until then whoever is no person any more is refused all the same.
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
			e.log.Error("who is asked cannot be brought in line with the configuration just now", "err", err)
			_ = permissions.Pause(ctx, retryDelay) // ctx is looked at above
			e.realignSoon()
		}
	}
}

// answers reports whether the person of a copy of their own can answer by its channel, as far as that knows.
func (e *Engine) answers(cp permissions.Copy) bool {
	p, known := e.settings.Load().person(cp.Person)
	c, on := e.connector(cp.Connector)
	return known && on && cp.Group == "" && reach(c, p) == nil
}

// refreshAll has every card of what is pending brought up to date, which finds those that are at an account of before.
func (e *Engine) refreshAll(ctx context.Context) error {
	for _, c := range e.dispatchers {
		if _, err := e.Refresh(ctx, c.connector.Name()); err != nil {
			return err
		}
	}
	return nil
}

// readdressed reports whether somebody has another account than before.
func readdressed(before, now []connectors.Person) bool {
	return slices.ContainsFunc(now, func(p connectors.Person) bool {
		return slices.ContainsFunc(before, func(o connectors.Person) bool {
			return o.Name == p.Name && (o.Telegram != p.Telegram || o.WhatsApp != p.WhatsApp)
		})
	})
}

// realignSoon has reroute look at everything that is pending.
func (e *Engine) realignSoon() { e.changed.Notify() }

// realign has a pending request asked of whom the settings say.
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

// asks is who r is put to by these settings: whoever was asked, still is a person and is not locked, and whom the route of such a
// request asks now. Who waits for an escalation goes on waiting. The implicit operator, whom no route names, is not put in
// the place of people who were asked.
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

// moved reports whether a vote that allows came from an account that is its person's no longer: it may be anybody's by now, who
// could vote once more. One that is suspended is still theirs.
func (s *Settings) moved(v permissions.Vote) bool {
	p, _ := s.person(v.By)
	channel, _, _ := strings.Cut(v.Account, ":")
	_, allows := v.Answer.Scope()
	return allows && v.Account != "" && !slices.Contains(p.Suspended, channel) && !slices.Contains(accounts(p), v.Account)
}

// Wider says, in the names of the configuration, what next allows that old does not, or asks of other people.
func Wider(old, next Settings) (all []string) {
	all = append(all, widerPolicy("", old.Policy, next.Policy)...)
	for _, name := range slices.Sorted(maps.Keys(next.Policies)) {
		agent := permissions.Caller{Name: name}
		all = append(all, widerPolicy(name+": ", old.policy(agent), next.policy(agent))...)
	}
	all = append(all, more("approvals.scopes", old.Approvals.Scopes, next.Approvals.Scopes)...)
	for _, limit := range []struct {
		key         string
		before, now int
	}{
		{"limits.pending_per_caller", old.Limits.PendingPerCaller, next.Limits.PendingPerCaller},
		{"limits.prompts_per_minute", old.Limits.PromptsPerMinute, next.Limits.PromptsPerMinute},
		{"limits.auto_per_minute", old.Limits.AutoPerMinute, next.Limits.AutoPerMinute},
		{"limits.pending_total", old.Limits.PendingTotal, next.Limits.PendingTotal},
	} {
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

// widerPeople names whoever can decide now and could not before, and by which account.
func widerPeople(old, next Settings) (all []string) {
	for _, p := range next.People {
		before, known := old.person(p.Name)
		accounts := func(p connectors.Person) []any { return []any{p.UID, p.Telegram, p.WhatsApp} }
		switch {
		case !known:
			all = append(all, "people has "+p.Name)
		case !slices.Equal(accounts(before), accounts(p)):
			all = append(all, "people: "+p.Name+" has other accounts")
		}
	}
	return all
}

// widerRoutes names the routes that are gone, and those of the same requests that ask fewer or other people.
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
