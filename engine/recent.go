package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// rememberDecision is how long the hook that an agent runs where its own rules have it ask finds what the hook before it was told.
const rememberDecision = time.Minute

// decisionKey is one call in one session, and the stage at which a hook asked about it.
type decisionKey struct {
	caller, session, agent, hook, stage string
	call                                permissions.Digest
}

// heardFrom is the stage whose answer counts once at another: what a person has allowed although the agent refused it is not asked
// about when the agent tries it again.
var heardFrom = map[string]string{
	permissions.HookAgain: permissions.HookBefore, permissions.HookBefore: permissions.HookDenied,
}

// recentDecisions are the answers of people that hooks were told a moment ago. They are in memory alone: who asks after a restart is
// asked about once more.
type recentDecisions struct {
	mu      sync.Mutex
	since   time.Time // when the daemon started: what was told before is not kept
	all     map[decisionKey]recentDecision
	over    map[permissions.ID]time.Time // answers that were given a second time, superseded or dropped: never kept again; until when
	refused map[decisionKey]refusedOnce
}

// drop ends the answer kept for a call. Telling its request once more does not bring it back. r.mu is held.
func (r *recentDecisions) drop(of decisionKey, now time.Time) {
	if was, kept := r.all[of]; kept {
		delete(r.all, of)
		r.over[was.id] = now.Add(2 * rememberDecision)
	}
}

// supersede drops the answer kept for a call that has run, or is asked about by another request now.
func (e *Engine) supersede(of decisionKey, id permissions.ID) {
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	if e.recent.all[of].id != id {
		e.recent.drop(of, e.clock.Now())
	}
}

// refusedFor is how long people are not asked again about a call that the agent refuses once more.
const refusedFor = time.Hour

// refusedOnce is the hook's call that asked about what the agent refused.
type refusedOnce struct {
	call  string
	until time.Time
}

type recentDecision struct {
	id    permissions.ID
	until time.Time
}

func decisionKeyOf(caller permissions.Caller, q permissions.Request) *decisionKey {
	if caller.Name == permissions.Anonymous || q.Kind != permissions.KindTool || q.Hook == "" || len(q.Calls) > 0 {
		return nil
	}
	return &decisionKey{caller.Name, q.Session, q.Agent, q.Hook, q.HookStage, permissions.CallDigest(q, carriedOut(q))}
}

// patchCommand is a command that gives a patch to apply_patch and does nothing else: nothing in it is for the shell to expand.
var patchCommand = regexp.MustCompile(`^apply_patch <<'(\w+)'\n((?s:\*\*\* Begin Patch\n.*\n\*\*\* End Patch))\n(\w+)\n?$`)

// carriedOut is the call of q, which is about one, as its agent names it where its own rules ask. Codex applies a patch in a command
// itself, and then asks about the patch.
func carriedOut(q permissions.Request) permissions.Call {
	c := q.ToolCalls()[0]
	var input map[string]string
	if q.Hook != "codex" || json.Unmarshal(c.Input, &input) != nil || len(input) != 1 {
		return c
	}
	found := patchCommand.FindStringSubmatch(input["command"])
	if c.Tool == "Bash" && found != nil && found[1] == found[3] && !slices.Contains(strings.Split(found[2], "\n"), found[1]) {
		c.Tool, input["command"] = "apply_patch", found[2]
	}
	if c.Tool == "apply_patch" {
		c.Input, _ = json.Marshal(input) // it was JSON
		c.AffectedPath = ""              // the patch names it
	}
	return c
}

// refusedByAgent refuses to ask about a call that the agent has refused, where people are not to be asked or were already.
func (e *Engine) refusedByAgent(of *decisionKey, call string) error {
	switch {
	case of == nil: // another of them could have been asked
		return permissions.TokenNeeded()
	case !e.settings.Load().Approvals.AskRefused:
		return permissions.Invalid(errors.New("approvals.ask_refused is off, so nobody is asked about what the agent has refused"))
	}
	now := e.clock.Now()
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	maps.DeleteFunc(e.recent.refused, func(_ decisionKey, r refusedOnce) bool { return !now.Before(r.until) })
	if was, asked := e.recent.refused[*of]; asked && (call == "" || was.call != call) {
		return permissions.Invalid(errors.New("people were asked about this call, which the agent has refused again"))
	}
	e.recent.refused[*of] = refusedOnce{call, now.Add(refusedFor)}
	return nil
}

// rememberDecision notes that the hook before a call was told what a person answered.
func (e *Engine) rememberDecision(of decisionKey, r permissions.Request) {
	if r.State != permissions.Approved && r.State != permissions.Denied || r.DecidedBy == "" || r.DecidedVia == permissions.ViaGrant {
		return
	}
	if r.State == permissions.Denied && of.stage == permissions.HookDenied { // it is as it was
		return
	}
	told := r.DecidedAt
	if !r.UsedAt.IsZero() { // telling it again does not make it younger
		told = r.UsedAt
	}
	now := e.clock.Now()
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	maps.DeleteFunc(e.recent.all, func(_ decisionKey, h recentDecision) bool { return !now.Before(h.until) })
	maps.DeleteFunc(e.recent.over, func(_ permissions.ID, until time.Time) bool { return !now.Before(until) })
	until := told.Add(rememberDecision)
	_, over := e.recent.over[r.ID]
	switch {
	case over || told.Before(e.recent.since) || !now.Before(until):
	case e.StoppedBy() != "":
		e.recent.over[r.ID] = now.Add(2 * rememberDecision)
	default:
		e.recent.all[of] = recentDecision{r.ID, until}
	}
}

// keptDecisions returns the requests whose answers are kept for a caller's agent in a session.
func (e *Engine) keptDecisions(caller, session, agent string) map[decisionKey]permissions.ID {
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	kept := map[decisionKey]permissions.ID{}
	for of, was := range e.recent.all {
		if of.caller == caller && of.session == session && of.agent == agent {
			kept[of] = was.id
		}
	}
	return kept
}

// forgetDecisions drops the answers kept of the calls that match, so that people are asked about them again; nil: of all.
func (e *Engine) forgetDecisions(matches func(decisionKey) bool) {
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	now := e.clock.Now()
	for of := range e.recent.all {
		if matches == nil || matches(of) {
			e.recent.drop(of, now)
		}
	}
}

// stand reports whether everybody whose answer r has is still somebody of the configuration, and not locked.
func (s *Settings) stand(r permissions.Request) bool {
	stands := func(name string) bool {
		p, known := s.person(name)
		return known && p.Locked == ""
	}
	return stands(r.DecidedBy) && !slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool { return !stands(v.By) })
}

// recentDecision is what a hook at an earlier stage was told of the call that q is about, once: one decision is one prompt.
func (e *Engine) recentDecision(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, bool) {
	of := decisionKeyOf(caller, q)
	if of == nil || heardFrom[of.stage] == "" || e.StoppedBy() != "" {
		return permissions.Request{}, false
	}
	of.stage = heardFrom[of.stage]
	now := e.clock.Now()
	e.recent.mu.Lock()
	was, found := e.recent.all[*of]
	e.recent.drop(*of, now)
	e.recent.mu.Unlock()
	if !found || !now.Before(was.until) || now.Before(was.until.Add(-2*rememberDecision)) {
		return permissions.Request{}, false
	}
	r, err := e.store.Read(ctx, was.id)
	if err != nil || !r.VoidAt.IsZero() || !r.LapsedAt.IsZero() || !e.settings.Load().stand(r) || e.stillAllowed(r) != nil {
		return permissions.Request{}, false
	}
	same := r
	same.Reason, same.Widest = q.Reason, q.Widest // what is said beside the call may be other words
	same.Message, same.Choices = q.Message, q.Choices
	if r.Answer.With() > 0 { // it was taken there, and of other suggestions
		same.Answer = permissions.Allow(permissions.Once)
	}
	same.Tool, same.Input, same.AffectedPath, same.Details = q.Tool, q.Input, q.AffectedPath, q.Details
	if same.Normalize() != nil {
		return permissions.Request{}, false
	}
	same.Digest = permissions.ComputeDigest(same)
	if r.Tool != q.Tool && (!e.settings.Load().sameRoute(r, same) || e.stillAllowed(same) != nil) {
		return permissions.Request{}, false
	}
	return same, true
}
