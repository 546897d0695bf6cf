package runtime

import (
	"context"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// await has people asked about the calls of the step, and takes what they answered. Until then it rests: a session that
// waits costs a row.
func (sh *shift) await(ctx context.Context) (rests bool, err error) {
	if sh.run.Request == "" {
		return false, sh.poseStep(ctx)
	}
	caller := sh.session.Caller()
	q, err := sh.runtime.desk.Read(ctx, caller, sh.run.Request)
	if err != nil || q.State == permissions.Pending {
		return true, err
	}
	e := Settled{Request: q, Ends: sh.agent.Terminates}
	if q.State == permissions.Approved {
		used, err := sh.runtime.desk.Use(ctx, caller, q.ID, q.Key)
		switch r := refusal(err); {
		case r != nil && r.Code != permissions.CodeBroken:
			e.Voided = r.Text
		case err != nil:
			return false, err
		default:
			e.Request = used
		}
	}
	return false, sh.settle(ctx, e)
}

// poseStep puts the calls of the step to people. What is asked was stored before, so that it is the same question after
// a restart.
func (sh *shift) poseStep(ctx context.Context) error {
	if _, err := sh.held(ctx); err != nil { // the kill switch
		return err
	}
	q, err := sh.runtime.desk.Pose(ctx, sh.session.Caller(), sh.request(sh.run.asked()))
	switch r := refusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		return sh.refused(ctx, r)
	case err != nil:
		return err
	}
	return sh.advance(ctx, agents.Commit{Records: []permissions.Record{sh.about(q, permissions.WaitAckEnter)}}, Posed{q.ID})
}

// refused has the calls spared that nobody could be asked about.
func (sh *shift) refused(ctx context.Context, r *permissions.Refusal) error {
	c := agents.Commit{}
	for _, call := range sh.run.asked() {
		c.Executions = append(c.Executions, sh.spared(call, call.Input, r.Text))
	}
	return sh.advance(ctx, c, Refused{Text: r.Text})
}

// about is a record of what happened to a request of the session.
func (sh *shift) about(q permissions.Request, t permissions.Type, detail ...string) permissions.Record {
	r := sh.runtime.record(t, sh.session, detail...)
	r.Request = q.ID
	return r
}

// settle takes what became of the request, and tells it: once, since it is told with the step.
func (sh *shift) settle(ctx context.Context, e Settled) error {
	q := e.Request
	next, err := Next(sh.run, e)
	if err != nil {
		return err
	}
	c := agents.Commit{}
	decision := string(q.State)
	if q.State == permissions.Approved && e.Voided == "" {
		c.Records = append(c.Records, sh.about(q, permissions.AckApproved))
	} else {
		c.Records = append(c.Records, sh.about(q, permissions.AckRejected, "reason", why(q)))
		decision = why(q)
	}
	c.Records = append(c.Records, sh.about(q, permissions.AckDecisionHandled, "decision", decision))
	for i, call := range sh.run.Calls {
		if call.Fate != Asks {
			continue
		}
		after := next.Calls[i]
		if after.Fate != Runs {
			c.Executions = append(c.Executions, sh.spared(call, call.Input, after.Text))
		}
		c.Artifacts = append(c.Artifacts, sh.verdict(after, q))
	}
	return sh.advance(ctx, c, e)
}

// why is in a word why calls were not allowed.
func why(q permissions.Request) string {
	switch q.State {
	case permissions.Denied:
		return ReasonDenied
	case permissions.Expired:
		return ReasonTimeout
	case permissions.Approved:
		return "void"
	}
	return string(q.State)
}

// verdict is the artifact of what became of one call that people were asked about.
func (sh *shift) verdict(c Call, q permissions.Request) agents.Artifact {
	content := map[string]any{
		"session_id": sh.session.ID, "tool": c.Tool, "args": c.Input, "timestamp": q.DecidedAt,
	}
	a := agents.Artifact{}
	if c.Fate == Runs {
		scope := q.Scope
		for _, asked := range q.Calls {
			if s, ok := asked.Answer.Scope(); ok && asked.Tool == c.Tool && string(asked.Input) == string(c.Input) {
				scope = s
			}
		}
		content["scope"] = scope.String()
		a = artifact(agents.ArtifactApprovalGranted, content)
	} else {
		reason := q.Comment
		if reason == "" {
			reason = why(q)
		}
		content["reason"] = reason
		a = artifact(agents.ArtifactApprovalDenied, content)
	}
	a.Step, a.Call = sh.run.Step, c.N
	return a
}
