package engine

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// draft turns what a caller asks into the row to be opened, or refuses it. A request that needs nobody's answer comes
// back approved, via grant.
func (e *Engine) draft(
	s *Settings, caller permissions.Caller, q permissions.Request, grants []permissions.Grant,
) (permissions.Request, error) {
	r := q
	now := e.stamp()
	r.Version, r.Revision = permissions.DigestVersion, 1
	if !q.ID.MadeAt(now) {
		r.ID = permissions.NewID(now)
	}
	r.Caller, r.CreatedAt, r.State = caller, now, permissions.Pending
	named(&r)
	if err := canonical(&r); err != nil {
		return r, permissions.Invalid(err)
	}
	if err := r.Validate(); err != nil {
		return r, permissions.Invalid(err)
	}
	if r.Key != "" && caller.Name == permissions.Anonymous {
		return r, permissions.Nameless()
	}
	if t, own := s.coversOwn(r.Tags); own {
		return r, permissions.OwnFiles(t)
	}
	policy := s.policy(caller)
	verdict := policy.Evaluate(r, grants, now)
	if verdict.Forbidden != "" {
		return r, permissions.Forbidden(verdict.Forbidden)
	}
	r.Held = verdict.Held
	r.HighRisk = policy.HighRisk(r)
	if !caller.Ours() { // only those whom we run know which of them is in the foreground
		r.Background, r.Foreground = true, ""
	}
	r.Options = permissions.Offer(r, s.Approvals.Scopes, q.Widest)
	r.Digest = permissions.ComputeDigest(r)
	r.Under = verdict.Grants
	if !verdict.Ask {
		r.Answer, r.Scope, r.DecidedVia, r.DecidedAt = permissions.Allow(permissions.Once), permissions.Once, permissions.ViaGrant, now
		r.State, r.Deadline = permissions.Approved, now
		return r, nil
	}
	return r, s.direct(&r)
}

// direct sets who is asked and until when.
func (s *Settings) direct(r *permissions.Request) error {
	route, found := s.route(*r)
	if !found {
		asker := *r
		if asker.Claimed { // routes go by what is proven
			asker.Agent = ""
		}
		return permissions.NoRoute(asker.Who())
	}
	r.Asked, r.Quorum, r.Place = slices.Clone(route.Ask), route.Quorum, route.Place
	usual, most := s.Approvals.Timeout, s.Approvals.MaxTimeout
	if r.Kind == permissions.KindClarification {
		usual = s.Approvals.ClarificationTimeout
	}
	if route.Timeout > 0 {
		usual, most = route.Timeout, route.Timeout
	}
	if r.Caller.Ours() && r.Patience > 0 {
		most = max(most, longestPatience)
	}
	wait := cmp.Or(r.Patience, usual)
	if wait > most || wait < time.Second {
		return permissions.Invalid(fmt.Errorf("a timeout of %s is not allowed here; it is 1s to %s", wait, most))
	}
	r.Deadline = r.CreatedAt.Add(wait)
	s.pace(r, route)
	return nil
}

// pace sets what happens while r waits, and when.
func (s *Settings) pace(r *permissions.Request, route Route) {
	if r.Kind == permissions.KindClarification || r.Mode == permissions.ModeContinue {
		r.Quorum = 1 // the first answer counts
	}
	for _, name := range route.Escalate.To {
		if !slices.Contains(r.Asked, name) && !slices.Contains(r.EscalateTo, name) {
			r.EscalateTo = append(r.EscalateTo, name)
		}
	}
	if len(r.EscalateTo) > 0 {
		r.EscalateAt = route.Escalate.Moment.of(r)
	}
	if r.Mode == permissions.ModeContinue {
		return // it goes on by itself
	}
	for _, m := range s.Approvals.Remind {
		if at := m.of(r); at.Before(r.Deadline) {
			r.Reminders = append(r.Reminders, at.Truncate(time.Microsecond))
		}
	}
	slices.SortFunc(r.Reminders, time.Time.Compare)
	r.Reminders = slices.Compact(r.Reminders)
}

// named settles by what name r's agent is shown. A proven name needs no claim, and a claim that repeats it is none.
func named(r *permissions.Request) {
	if proven := r.Caller.Proven(); proven != r.Caller.Name && (r.Agent == "" || r.Agent == proven) {
		r.Agent, r.Claimed = proven, false
	}
}

// canonical gives tool inputs their one form, and calls their numbers.
func canonical(r *permissions.Request) (err error) {
	if r.Kind != permissions.KindTool {
		return nil
	}
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		c := &r.Calls[i]
		c.N, c.Answer, c.Comment = i+1, "", ""
		if c.Input, err = permissions.CanonicalJSON(c.Input); err != nil {
			return err
		}
	}
	if len(r.Calls) == 0 {
		r.Input, err = permissions.CanonicalJSON(r.Input)
	}
	return err
}

// coversOwn finds a tag that reaches the daemon's own data, configuration or binary.
func (s *Settings) coversOwn(tags []permissions.Tag) (permissions.Tag, bool) {
	for _, t := range tags {
		names := []permissions.Tag{t}
		if resolved, err := filepath.EvalSymlinks(t.Path()); err == nil && t.Path() != "" {
			if target, err := permissions.ParseTag("@read:" + resolved); err == nil {
				names = append(names, target)
			}
		}
		for _, own := range s.Own {
			if slices.ContainsFunc(names, func(n permissions.Tag) bool { return n.Touches(own) }) {
				return t, true
			}
		}
	}
	return permissions.Tag{}, false
}
