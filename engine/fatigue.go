package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// fatigueSpan is the time within which denied and ignored prompts of an agent are counted.
const fatigueSpan = 10 * time.Minute

// applyFatigue returns a new request as people are asked it, given how much of its agent's session they denied or ignored shortly before,
// whatever that was: silent and with a second yes, or not at all. The counts come from the store, so a restart changes nothing.
func (e *Engine) applyFatigue(
	ctx context.Context, s *directory.Settings, r permissions.Request, widest permissions.Scope,
) (permissions.Request, error) {
	most := s.Limits.MutedAfter
	if err := e.AgentMuted(r.Caller, r.Session); err != nil || most <= 0 {
		return r, err
	}
	all, err := e.store.Unheeded(ctx, r.Caller.Name, e.clock.Now().Add(-fatigueSpan))
	if err != nil {
		return r, err
	}
	here, every := unheededIn(s, all, r.Session), unheededIn(s, all, permissions.AllSessions)
	switch {
	case len(every) >= 2*most: // agents name their sessions themselves
		return r, e.mute(ctx, r, permissions.AllSessions, every)
	case len(here) >= most:
		return r, e.mute(ctx, r, r.Session, here)
	case 2*max(len(here), len(every)/2) >= most:
		r.HighRisk, r.Reminders = true, nil
		r.Ruled = append(slices.Clip(r.Ruled), permissions.Ruling{Effect: permissions.RuleAsks, PromptsRefused: len(every)})
		r.Options = permissions.Offer(r, s.Approvals.Scopes, widest)
	}
	return r, nil
}

// unheededIn returns the requests of a session that people denied or, outside their quiet hours, ignored.
func unheededIn(s *directory.Settings, all []permissions.Unheeded, session string) (ids []permissions.ID) {
	for _, u := range all {
		p, _ := s.Person(u.Person)
		at := u.SentAt
		if p.Location != nil {
			at = at.In(p.Location)
		}
		counts := u.State == permissions.Denied || u.Person != "" && !p.Quiet.Hold(at)
		if counts && (session == permissions.AllSessions || u.Session == session) && !slices.Contains(ids, u.ID) {
			ids = append(ids, u.ID)
		}
	}
	return ids
}

// mute has an agent ask nothing in a session until somebody of those who are asked resumes it, who are told once. It returns the refusal.
func (k *locks) mute(ctx context.Context, r permissions.Request, session string, why []permissions.ID) error {
	k.locking.Lock()
	defer k.locking.Unlock()
	if err := k.AgentMuted(r.Caller, r.Session); err != nil { // at this very moment
		return err
	}
	now := k.clock.Stamp()
	l := permissions.Lock{Person: permissions.MuteOf(r.Caller.Name, session), Accounts: r.Asked, At: now}
	var ids []string
	for _, id := range why[:min(len(why), connectors.MaxUnheeded)] {
		ids = append(ids, string(id))
	}
	var notices []permissions.Notice
	for _, person := range r.Asked {
		notices = append(notices, permissions.Notice{
			To: person, About: permissions.AboutMuted, By: r.Caller.Name, CreatedAt: now,
			CallerMessage: permissions.CallerMessage{Text: strings.Join(ids, " ")},
		})
	}
	if err := k.store.PutLock(ctx, l, l.Record(permissions.AgentMuted, "", "", now), notices...); err != nil {
		return err
	}
	k.SetLock(l, true)
	k.registry.NotifyNotices()
	k.log.Warn("agent muted: too much of it was denied or ignored", "agent", r.Caller.Name)
	return permissions.Muted(l)
}

// Unheeded implements [connectors.Services].
func (k *locks) Unheeded(ctx context.Context, id connectors.Identity, name string) (why []permissions.Request, err error) {
	caller, who, err := k.agentOf(ctx, id, name)
	if err != nil {
		return nil, err
	}
	until, s := k.clock.Now(), k.Settings()
	for _, l := range k.StoppedAgents() {
		if l.Agent() == caller {
			until = l.At
		}
	}
	all, err := k.store.Unheeded(ctx, caller, until.Add(-fatigueSpan))
	if err != nil {
		return nil, shared.Broken(err)
	}
	for _, one := range unheededIn(s, all, permissions.AllSessions) {
		r, err := k.store.Read(ctx, one)
		if err == nil && slices.Contains(r.Asked, who) && len(why) < connectors.MaxUnheeded {
			why = append(why, s.Shown(r, id.Via))
		}
	}
	return why, nil
}
