package directory

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// Wider lists, in the configuration's names, what next allows that old does not, or asks other people about.
func Wider(old, next Settings) (all []string) {
	all = append(all, widerPolicy("", old.Policy, next.Policy)...)
	all = append(all, more("rules: allow", old.Rules.Lines(rules.Allow), next.Rules.Lines(rules.Allow))...)
	for _, e := range []rules.Effect{rules.Ask, rules.Deny} {
		all = append(all, fewer("rules: "+string(e), old.Rules.Lines(e), next.Rules.Lines(e))...)
	}
	for _, name := range slices.Sorted(maps.Keys(next.Policies)) {
		agent := permissions.Caller{Name: name}
		all = append(all, widerPolicy(name+": ", old.PolicyOf(agent), next.PolicyOf(agent))...)
	}
	all = append(all, more("approvals.scopes", old.Approvals.Scopes, next.Approvals.Scopes)...)
	all = append(all, more("api.trusted_tokens", old.TrustedLinks, next.TrustedLinks)...)
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
		_, before := old.Limits.Rate(tool)
		_, now := next.Limits.Rate(tool)
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
		more(of+"tools.auto", foreign(old), foreign(next)), more(of+"tools.auto", old.Auto, next.Auto),
		fewer(of+"tools.gated", old.Gated, next.Gated),
		fewer(of+"tools.forbidden", old.Forbidden, next.Forbidden),
		fewer(of+"high_risk.tools", old.HighRiskTools, next.HighRiskTools),
		fewer(of+"high_risk.tags", old.HighRiskTags, next.HighRiskTags),
		fewer(of+"high_risk.kinds", old.HighRiskEffects, next.HighRiskEffects),
		fewer(of+"high_risk.patterns", old.HighRiskPatterns, next.HighRiskPatterns),
		more(of+"high_risk.except.tools", old.Ordinary.Tools, next.Ordinary.Tools),
		more(of+"high_risk.except.kinds", old.Ordinary.Effects, next.Ordinary.Effects),
		more(of+"high_risk.except.patterns", old.Ordinary.Patterns, next.Ordinary.Patterns),
		fewer(of+"high_risk.enabled", switchedOn(old), switchedOn(next)),
		more(of+"sandboxed", allowed(old), allowed(next)),
	)
}

// foreign is whose tools Auto names besides ours.
func foreign(p permissions.Policy) []string {
	if p.OwnAuto {
		return nil
	}
	return []string{"other agents' tools of these names"}
}

// allowed is allow, if commands that the sandbox keeps in the workspace run unasked.
func allowed(p permissions.Policy) []string {
	if p.Sandboxed {
		return []string{"allow"}
	}
	return nil
}

// switchedOn is on, unless nothing is high risk.
func switchedOn(p permissions.Policy) []string {
	if p.NoHighRisk {
		return nil
	}
	return []string{"on"}
}

// widerPeople names the people who can decide now and could not before, and their accounts.
func widerPeople(old, next Settings) (all []string) {
	for _, p := range next.People {
		before, known := old.Person(p.Name)
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
