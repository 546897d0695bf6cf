package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// execute runs the next call of the step, or takes what a person answered to one that asks.
func (sh *turn) execute(ctx context.Context) (rests bool, err error) {
	c, ok := sh.run.next()
	if !ok {
		return false, ErrStep // the machine leaves EXECUTE with the last call
	}
	switch c.Phase {
	case Asking:
		return sh.hearAnswer(ctx, c)
	case Begun: // and how it went could not be stored
		_, err := sh.resume(ctx)
		return false, err
	}
	held, granted, why, err := sh.allowed(ctx, c)
	if err != nil {
		return false, err
	}
	if t, asks := askingTool(c.Tool); asks && why == "" {
		return false, sh.begin(ctx, c, t)
	}
	x := sh.execution(c)
	if err := sh.advance(ctx, agents.Commit{Executions: []agents.Execution{x}, Artifacts: granted}, Began{c.N}); err != nil {
		return false, err
	}
	brief, done := sh.runtime.breakable(ctx, sh.worker)
	defer done()
	tool, known := sh.agent.tool(brief, c.Tool)
	if why == "" && !known {
		why = "This was not run: the tool " + c.Tool + " is not there just now."
	}
	if why != "" {
		return false, sh.ended(ctx, x, tools.Outcome{Text: why, Error: true}, Ran{N: c.N, Text: why, Error: true})
	}
	o := tool.Run(brief, sh.place(held), c.Input, c.Plan)
	stopped := brief.Err() != nil
	done()
	if ctx.Err() != nil { // the daemon ends: how far the call came is told when it is started again
		return false, ctx.Err()
	}
	if o.Pause != "" && !stopped {
		return false, sh.ended(ctx, x, o, Asked{N: c.N, Shows: true, Text: o.Text, Error: o.Error, Look: o.Pause})
	}
	return false, sh.ended(ctx, x, o, Ran{N: c.N, Text: o.Text, Error: o.Error})
}

// allowed are the tags that a call runs with. What was allowed by a person runs with what that person was shown that it
// needs, if the approval still counts: much may have happened since it was used for the step. Anything else is judged once
// more. why it may not run is for the model, and granted says under which grants it runs.
func (sh *turn) allowed(ctx context.Context, c Call) (held []permissions.Tag, granted []agents.Artifact, why string, err error) {
	if held, err = sh.held(ctx); err != nil {
		return nil, nil, "", err
	}
	if sh.elsewhere() {
		return held, nil, moved, nil
	}
	if c.Request != "" {
		q, err := sh.runtime.desk.Use(ctx, sh.session.Caller(), c.Request, sh.stepKey())
		if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
			return held, nil, r.Text, nil
		}
		if err == nil && (q.Cwd != sh.agent.Place.Workspace || q.Folder != sh.agent.Place.Folder()) {
			return held, nil, moved, nil
		}
		if err == nil {
			granted, why, err = sh.heldTags(ctx, c)
		}
		return append(held, c.Plan.Needs...), granted, why, err
	}
	_, asks := askingTool(c.Tool)
	verdict, err := sh.runtime.desk.Evaluate(ctx, sh.session.Caller(), sh.request([]Call{c}))
	switch r := permissions.AsRefusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		return held, nil, r.Text, nil
	case err != nil:
		return nil, nil, "", err
	case verdict.Forbidden != "":
		return held, nil, permissions.Forbidden(verdict.Forbidden).Text, nil
	case asks: // it has no gate
		return held, nil, "", nil
	case verdict.Ask:
		return held, nil, notAnyMore, nil
	case len(verdict.Grants) > 0:
		if granted, why, err = sh.underGrant(ctx, c, sh.request([]Call{c}), ""); why != "" || err != nil {
			return held, nil, why, err
		}
	}
	more, why, err := sh.heldTags(ctx, c)
	return held, append(granted, more...), why, err
}

// heldTags is [turn.underGrant] of what a call needs of tags that grants give.
func (sh *turn) heldTags(ctx context.Context, c Call) (granted []agents.Artifact, why string, err error) {
	own, err := sh.ungranted(ctx)
	tags := permissions.Missing(c.Held, slices.Concat(own, sh.agent.Place.Tags))
	if err != nil || len(tags) == 0 {
		return nil, "", err
	}
	q := sh.request(nil)
	q.Kind, q.Tags, q.Calls, q.Reason = permissions.KindPermission, tags, nil, "for "+c.Tool
	return sh.underGrant(ctx, c, q, "/held")
}

// moved is what is told of a call that was planned for another folder than the workspace is now.
var moved = tools.ErrMoved.Error()

// where is the workspace of the agent, and which folder that is.
func (a *agent) where() string { return strings.TrimSpace(a.Place.Workspace + " " + a.Place.Folder()) }

// elsewhere reports whether the workspace was another folder when the run began. Of runs before that was kept nobody knows.
func (sh *turn) elsewhere() bool { return sh.run.Where != "" && sh.run.Where != sh.agent.where() }

const notAnyMore = "This was not run: it is not allowed any more. Call it again to ask."

// underGrant has a row for what nobody is asked about, of a call, because of what was granted: it is audited, the grant counts
// it, and an artifact says so.
func (sh *turn) underGrant(
	ctx context.Context, c Call, q permissions.Request, key string,
) (granted []agents.Artifact, why string, err error) {
	caller := sh.session.Caller()
	verdict, err := sh.runtime.desk.Evaluate(ctx, caller, q)
	q.Key = sh.callKey(c) + key
	r := q
	if err == nil {
		r, err = sh.runtime.desk.Submit(ctx, caller, q)
	}
	if err == nil && r.State == permissions.Pending { // the grant has ended in this very moment
		return nil, notAnyMore, sh.runtime.desk.Withdraw(ctx, caller, r.ID, "")
	}
	if err == nil {
		_, err = sh.runtime.desk.Use(ctx, caller, r.ID, q.Key)
	}
	if r := permissions.AsRefusal(err); r != nil && r.Code != permissions.CodeBroken {
		return nil, r.Text, nil
	}
	if err != nil || len(r.Under) == 0 { // what the configuration gives is no grant
		return nil, "", err
	}
	r.Scope = verdict.Scope
	return []agents.Artifact{agents.Verdict(sh.execution(c), r, false)}, "", nil
}

// ended stores how a call went, whatever the store does meanwhile: it is not run again for that.
func (sh *turn) ended(ctx context.Context, x agents.Execution, o tools.Outcome, e Event) error {
	x.Ended, x.Success, x.Exit = sh.runtime.stamp(), !o.Error, o.Exit
	if o.Error {
		x.Error = short(o.Text, permissions.MaxReason)
	}
	c := agents.Commit{}
	if !sh.run.Shows { // else it ended before a person looked at it
		c.Executions = []agents.Execution{x}
	}
	for _, a := range o.Artifacts {
		a.Step, a.Call = x.Step, x.Call
		c.Artifacts = append(c.Artifacts, sh.bounded(a))
	}
	for delay := again; ; delay = min(2*delay, 30*again) {
		err := sh.advance(ctx, c, e)
		if err == nil || ctx.Err() != nil || isFinal(err) {
			return err
		}
		sh.runtime.log.Error("how a call went cannot be stored just now", "session", sh.session.ID, "err", err)
		if permissions.Pause(ctx, delay) != nil {
			return ctx.Err()
		}
	}
}

// bounded is an artifact of a call, without the text that a program wrote where the agent has no room left for it this hour.
func (sh *turn) bounded(a agents.Artifact) agents.Artifact {
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

// stepKey names the question of the step.
func (sh *turn) stepKey() string { return string(sh.session.ID) + "/" + strconv.Itoa(sh.run.Step) }

// callKey names the question of one call.
func (sh *turn) callKey(c Call) string { return sh.stepKey() + "/" + strconv.Itoa(c.N) }
