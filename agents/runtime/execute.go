package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// execute runs the next call of the step, or applies the answer to a call that asks.
func (sh *turn) execute(ctx context.Context) (rests bool, err error) {
	c, ok := sh.run.next()
	if !ok {
		return false, ErrStep // the last call ends EXECUTE
	}
	switch c.Phase {
	case Asking:
		return sh.awaitAnswer(ctx, c)
	case Begun: // its outcome could not be stored
		_, err := sh.resume(ctx)
		return false, err
	}
	held, granted, why, err := sh.allowed(ctx, c)
	if err != nil {
		return false, err
	}
	if t, asks := askingTool(c.Tool); asks && why == "" {
		return false, sh.startCall(ctx, c, t)
	}
	x := sh.execution(c)
	if err := sh.storeStart(ctx, x, granted); err != nil {
		return false, err
	}
	brief, done := sh.runtime.interruptible(ctx, sh.worker)
	defer done()
	tool, known := sh.agent.tool(brief, c.Tool)
	if why == "" && !known {
		why = "This was not run: the tool " + c.Tool + " is not there just now."
	}
	if why != "" {
		return false, sh.storeOutcome(ctx, x, tools.Outcome{Text: why, Error: true}, Ran{N: c.N, Text: why, Error: true})
	}
	o := tool.Run(brief, sh.place(held), c.Input, c.Plan)
	stopped := brief.Err() != nil
	done()
	if ctx.Err() != nil { // the daemon stops; the next start reports the interrupted call
		return false, ctx.Err()
	}
	if o.Left != "" {
		if err := sh.tellLeft(ctx, c.Tool, o.Left); err != nil {
			return false, err
		}
	}
	if o.Pause != "" && !stopped {
		return false, sh.storeOutcome(ctx, x, o, Asked{N: c.N, Shows: true, Text: o.Text, Error: o.Error, Look: o.Pause})
	}
	return false, sh.storeOutcome(ctx, x, o, Ran{N: c.N, Text: o.Text, Error: o.Error})
}

// tellLeft says that a process of the agent was left, and how.
func (sh *turn) tellLeft(ctx context.Context, tool, how string) error {
	sh.runtime.log.Warn("a process of an agent was left", "agent", sh.agent.Name, "tool", tool, "why", how)
	return sh.say(ctx, "left", fmt.Sprintf("I go on without a process of %s: it %s", tool, how))
}

// storeStart stores that a call runs from now on, with an audit entry: an older row of the session does not begin it again.
func (sh *turn) storeStart(ctx context.Context, x agents.Execution, granted []agents.Artifact) error {
	r := agents.RecordOf(permissions.ToolStarted, sh.session, x.Began, append(sh.ruling.Detail(),
		"tool", x.Tool, "step", strconv.Itoa(x.Step), "call", strconv.Itoa(x.Call))...)
	return sh.advance(ctx, agents.Commit{
		Executions: []agents.Execution{x}, Artifacts: granted, Records: []permissions.Record{r},
	}, Began{x.Call})
}

// allowed returns the tags that a call runs with. A call that a person approved runs with the tags that the person was shown, if
// the approval is still valid: it may have been revoked since it was used for the step. Any other call is evaluated again. why
// is for the model, and empty if the call may run; granted records the grants that it runs under.
func (sh *turn) allowed(ctx context.Context, c Call) (held []permissions.Tag, granted []agents.Artifact, why string, err error) {
	if held, err = sh.held(ctx); err != nil {
		return nil, nil, "", err
	}
	if sh.workspaceReplaced() {
		return held, nil, moved, nil
	}
	if c.Request != "" {
		q, err := sh.runtime.approvals.Use(ctx, sh.session.Caller(), c.Request, sh.stepKey())
		if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
			return held, nil, r.Text, nil
		}
		if err == nil && (q.Cwd != sh.agent.Place.Workspace || q.Folder != sh.agent.Place.Folder()) {
			return held, nil, moved, nil
		}
		if err == nil && !c.approvedBy(q) {
			return held, nil, anotherCall, nil
		}
		if err == nil {
			granted, why, err = sh.heldTags(ctx, c)
		}
		return append(held, c.Plan.Needs...), granted, why, err
	}
	_, asks := askingTool(c.Tool)
	verdict, err := sh.runtime.approvals.Evaluate(ctx, sh.session.Caller(), sh.request([]Call{c}))
	sh.ruling = verdict.Ruling
	switch r := permissions.AsRefusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		return held, nil, r.Text, nil
	case err != nil:
		return nil, nil, "", err
	case verdict.Forbidden != "":
		return held, nil, permissions.ForbiddenBy(verdict).Text, nil
	case asks: // built-in tools need no permission
		return held, nil, "", nil
	case verdict.Ask:
		return held, nil, notAnyMore, nil
	case len(verdict.Grants) > 0:
		if granted, why, err = sh.useGrants(ctx, c, sh.request([]Call{c}), ""); why != "" || err != nil {
			return held, nil, why, err
		}
	}
	more, why, err := sh.heldTags(ctx, c)
	return held, append(granted, more...), why, err
}

// approvedBy reports whether q approved this call with the tags that it needs. [agents.Approvals.Use] checked the text of q.
func (c Call) approvedBy(q permissions.Request) bool {
	approved := func(asked permissions.Call) bool {
		return c.is(asked) && q.ForCall(asked).State == permissions.Approved
	}
	return slices.ContainsFunc(q.ToolCalls(), approved) && len(permissions.Missing(c.Plan.Needs, q.Tags)) == 0
}

// heldTags calls [turn.useGrants] for the tags that a call needs and grants provide.
func (sh *turn) heldTags(ctx context.Context, c Call) (granted []agents.Artifact, why string, err error) {
	own, err := sh.ungranted(ctx)
	tags := permissions.Missing(c.Held, slices.Concat(own, sh.agent.Place.Tags))
	if err != nil || len(tags) == 0 {
		return nil, "", err
	}
	q := sh.request(nil)
	q.Kind, q.Tags, q.Calls, q.Reason = permissions.KindPermission, tags, nil, "for "+c.Tool
	return sh.useGrants(ctx, c, q, "/held")
}

// moved is the result of a call planned for a workspace folder that has been replaced since.
var moved = tools.ErrMoved.Error()

// where identifies the agent's workspace: its path and the folder behind it.
func (a *agent) where() string { return strings.TrimSpace(a.Place.Workspace + " " + a.Place.Folder()) }

// workspaceReplaced reports whether the workspace has changed since the run began. It is false for runs stored without a workspace.
func (sh *turn) workspaceReplaced() bool {
	return sh.run.Where != "" && sh.run.Where != sh.agent.where()
}

const anotherCall = "This was not run: what was approved is another call."

const notAnyMore = "This was not run: it is not allowed any more. Call it again to ask."

// useGrants submits a request that grants already cover, so that it is audited and counted, and returns its artifact.
func (sh *turn) useGrants(
	ctx context.Context, c Call, q permissions.Request, key string,
) (granted []agents.Artifact, why string, err error) {
	caller := sh.session.Caller()
	verdict, err := sh.runtime.approvals.Evaluate(ctx, caller, q)
	q.Key = sh.callKey(c) + key
	r := q
	if err == nil {
		r, err = sh.runtime.approvals.Submit(ctx, caller, q)
	}
	if err == nil && r.State == permissions.Pending { // the grant ended after Evaluate
		return nil, notAnyMore, sh.runtime.approvals.Withdraw(ctx, caller, r.ID, "")
	}
	if err == nil {
		_, err = sh.runtime.approvals.Use(ctx, caller, r.ID, q.Key)
	}
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
		return nil, r.Text, nil
	}
	if err != nil || len(r.Grants) == 0 { // permissions from the configuration are not grants
		return nil, "", err
	}
	r.Scope = verdict.Scope
	return []agents.Artifact{agents.Verdict(sh.execution(c), r, false)}, "", nil
}

// storeOutcome stores a call's outcome, and retries until that succeeds, so that the call never runs twice.
func (sh *turn) storeOutcome(ctx context.Context, x agents.Execution, o tools.Outcome, e Event) error {
	x.Ended, x.Success, x.Exit = sh.runtime.stamp(), !o.Error, o.Exit
	if o.Error {
		x.Error = short(o.Text, permissions.MaxReason)
	}
	c := agents.Commit{}
	if !sh.run.Shows { // otherwise the row was written before a person reviewed the result
		c.Executions = []agents.Execution{x}
	}
	for _, a := range o.Artifacts {
		a.Step, a.Call = x.Step, x.Call
		c.Artifacts = append(c.Artifacts, sh.limitOutput(a))
	}
	for delay := again; ; delay = min(2*delay, 30*again) {
		err := sh.advance(ctx, c, e)
		if err == nil || ctx.Err() != nil || errors.Is(err, agents.ErrStale) || errors.Is(err, ErrStep) { // a retry would not help
			return err
		}
		sh.runtime.log.Error("store tool result", "session", sh.session.ID, "err", err)
		if timing.Pause(ctx, delay) != nil {
			return ctx.Err()
		}
	}
}

// limitOutput drops a stream's text from an artifact when the agent has used up its hourly output budget.
func (sh *turn) limitOutput(a agents.Artifact) agents.Artifact {
	switch a.Type {
	case agents.ArtifactStdout, agents.ArtifactStderr, agents.ArtifactDiagnostics:
	default:
		return a
	}
	var stream struct {
		Bytes int `json:"bytes"`
	}
	if sh.agent.output.AllowN(sh.runtime.now(), len(a.Content)) || json.Unmarshal(a.Content, &stream) != nil {
		return a
	}
	kept := agents.ArtifactOf(a.Type, map[string]any{"text": "", "bytes": stream.Bytes, "missing": stream.Bytes})
	kept.Step, kept.Call = a.Step, a.Call
	return kept
}

func (sh *turn) stepKey() string { return string(sh.session.ID) + "/" + strconv.Itoa(sh.run.Step) }

func (sh *turn) callKey(c Call) string { return sh.stepKey() + "/" + strconv.Itoa(c.N) }
