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

// rememberDecision is how long an answer given to one hook of a call also answers the call's next hook.
const rememberDecision = time.Minute

// decisionKey identifies a call in a session, and the stage of the hook that asked about it.
type decisionKey struct {
	caller, session, agent, hook, stage string
	call                                permissions.Digest
}

// earlierStage maps a hook's stage to the stage whose answer counts for it once. A call that was approved after the agent refused
// it is not asked about again when the agent retries it.
var earlierStage = map[string]string{
	permissions.HookAgain: permissions.HookBefore, permissions.HookBefore: permissions.HookDenied,
}

// recentDecisions are the recent answers of people to hooks. They are kept in memory only; after a restart, people are asked again.
type recentDecisions struct {
	mu      sync.Mutex
	since   time.Time // the daemon's start; earlier answers are not kept
	all     map[decisionKey]recentDecision
	over    map[permissions.ID]time.Time // answers that were used, superseded or dropped and must not be kept again, until this time
	refused map[decisionKey]refusedOnce
}

// drop removes the answer kept for a call. Returning its request again does not restore it. The caller holds r.mu.
func (r *recentDecisions) drop(of decisionKey, now time.Time) {
	if was, kept := r.all[of]; kept {
		delete(r.all, of)
		r.over[was.id] = now.Add(2 * rememberDecision)
	}
}

// supersede drops the answer kept for a call that has run, or that another request asks about.
func (e *Engine) supersede(of decisionKey, id permissions.ID) {
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	if e.recent.all[of].id != id {
		e.recent.drop(of, e.clock.Now())
	}
}

// refusedFor is how long people are not asked again about a call that the agent keeps refusing.
const refusedFor = time.Hour

// refusedOnce is the hook's call that asked about a call refused by the agent.
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
	q.Message = "" // it may differ between hooks
	return &decisionKey{caller.Name, q.Session, q.Agent, q.Hook, q.HookStage, permissions.CallDigest(q, executedCall(q))}
}

// patchCommand matches a command that only passes a patch to apply_patch; the shell expands nothing in it.
var patchCommand = regexp.MustCompile(`^apply_patch <<'(\w+)'\n((?s:\*\*\* Begin Patch\n.*\n\*\*\* End Patch))\n(\w+)\n?$`)

// executedCall returns the single call of q as the agent names it when its own rules ask. Codex applies the patch of such a command
// itself, and asks about the patch.
func executedCall(q permissions.Request) permissions.Call {
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

// mayAskRefused returns an error if people must not be asked about a call that the agent has refused, or were asked already.
func (e *Engine) mayAskRefused(of *decisionKey, call string) error {
	switch {
	case of == nil: // cannot tell whether people were asked
		return permissions.TokenNeeded()
	case !e.Settings().Approvals.AskRefused:
		return permissions.Invalid(errors.New("approvals.ask_refused is off, so nobody is asked about what the agent has refused"))
	}
	now := e.clock.Now()
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	maps.DeleteFunc(e.recent.refused, func(_ decisionKey, r refusedOnce) bool { return !now.Before(r.until) })
	if was, asked := e.recent.refused[*of]; asked && (call == "" || was.call != call) {
		return permissions.Invalid(errors.New("people were asked about this call, which the agent has refused again"))
	}
	return nil
}

// askedRefused remembers that people are asked about a call that the agent has refused. If they were not, forget takes it back.
func (e *Engine) askedRefused(of decisionKey, call string) (forget func()) {
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	was, asked := e.recent.refused[of]
	e.recent.refused[of] = refusedOnce{call, e.clock.Now().Add(refusedFor)}
	return func() {
		e.recent.mu.Lock()
		defer e.recent.mu.Unlock()
		if delete(e.recent.refused, of); asked {
			e.recent.refused[of] = was
		}
	}
}

// rememberDecision keeps a person's answer that a hook has received.
func (e *Engine) rememberDecision(of decisionKey, r permissions.Request) {
	if r.State != permissions.Approved && r.State != permissions.Denied || r.DecidedBy == "" || r.DecidedVia == permissions.ViaGrant {
		return
	}
	if r.State == permissions.Denied && of.stage == permissions.HookDenied { // nothing changed
		return
	}
	told := r.DecidedAt
	if !r.UsedAt.IsZero() { // returning it again does not extend its time
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

// forgetDecisions drops the answers kept for matching calls (nil: all), so that people are asked again.
// With nil, first steps to trust an agent or to give a rule do not count any more.
func (e *Engine) forgetDecisions(matches func(decisionKey) bool) {
	if matches == nil {
		e.offers.clear()
		e.mu.Lock()
		clear(e.rules)
		e.mu.Unlock()
	}
	e.recent.mu.Lock()
	defer e.recent.mu.Unlock()
	now := e.clock.Now()
	for of := range e.recent.all {
		if matches == nil || matches(of) {
			e.recent.drop(of, now)
		}
	}
}

// recentDecision returns the answer that a hook at an earlier stage received about the call of q. It is returned once.
func (e *Engine) recentDecision(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, bool) {
	of := decisionKeyOf(caller, q)
	if of == nil || earlierStage[of.stage] == "" || e.StoppedBy() != "" {
		return permissions.Request{}, false
	}
	of.stage = earlierStage[of.stage]
	now := e.clock.Now()
	e.recent.mu.Lock()
	was, found := e.recent.all[*of]
	e.recent.drop(*of, now)
	e.recent.mu.Unlock()
	if !found || !now.Before(was.until) || now.Before(was.until.Add(-2*rememberDecision)) {
		return permissions.Request{}, false
	}
	r, err := e.store.Read(ctx, was.id)
	if err != nil || !r.VoidAt.IsZero() || !r.LapsedAt.IsZero() || !e.Settings().DecidersValid(r) || e.stillAllowed(r) != nil {
		return permissions.Request{}, false
	}
	same := r
	same.Reason, same.Widest = q.Reason, q.Widest // these may differ between hooks
	same.Message, same.Choices = q.Message, q.Choices
	if r.Answer.SuggestionNumber() > 0 { // the suggestion was applied by the earlier hook
		same.Answer = permissions.Allow(permissions.Once)
	}
	same.Tool, same.Input, same.AffectedPath, same.Details = q.Tool, q.Input, q.AffectedPath, q.Details
	if same.Normalize() != nil {
		return permissions.Request{}, false
	}
	same.Digest = permissions.ComputeDigest(same)
	if r.Tool != q.Tool && (!e.Settings().SameRoute(r, same) || e.stillAllowed(same) != nil) {
		return permissions.Request{}, false
	}
	return same, true
}
