package runtime

import (
	"context"
	"errors"
	"slices"

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
		switch r := permissions.AsRefusal(err); {
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
	switch r := permissions.AsRefusal(err); {
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

// isFinal tells whether storing the same again cannot help.
func isFinal(err error) bool { return errors.Is(err, agents.ErrStale) || errors.Is(err, ErrStep) }

// finish tells of the end of a run: its person where it did not end by itself, and the agent that started it.
func (sh *shift) finish(ctx context.Context) error {
	if err := sh.say(ctx, "end", sh.epilogue()); err != nil {
		return err
	}
	if err := sh.report(ctx); err != nil {
		return err
	}
	r := sh.runtime.record(permissions.RunFinished, sh.session, "outcome", string(sh.run.Outcome), "reason", sh.run.Reason)
	return sh.advance(ctx, agents.Commit{Records: []permissions.Record{r}}, Finished{})
}

// isStopped tells whether nothing may go on, because of the kill switch.
func isStopped(err error) bool { return permissions.CodeOf(err) == permissions.CodeStopped }

// allStopped is what people are told of a run that the kill switch ends.
const allStopped = "I stop here: everything was stopped, and I go on when it is resumed and you write again."

// epilogue is what a person is told of a run that did not end by itself and of which they would not know.
func (sh *shift) epilogue() string {
	switch sh.run.Reason {
	case ReasonDenied:
		return "I stop here: you denied what I needed."
	case ReasonTimeout:
		return "I stop here: nobody answered in time what I needed."
	case ReasonInterrupted:
		return "I stop here, as you said."
	case ReasonSteps:
		return "I stop here: this takes more steps than I may make at once. Tell me to go on."
	}
	return ""
}

// obey does what a person ordered.
func (sh *shift) obey(ctx context.Context, o *order, told permissions.Order) error {
	if sh.run.Request != "" {
		brief, done := context.WithTimeout(ctx, stopTime)
		err := sh.runtime.desk.Withdraw(brief, sh.asker(), sh.run.Request, sh.session.Person)
		done()
		if r := permissions.AsRefusal(err); err != nil && (r == nil || r.Code == permissions.CodeBroken) {
			return err
		}
	}
	if sh.run.State != Idle && sh.run.State != Terminate {
		if _, err := sh.held(ctx); isStopped(err) {
			if err := sh.say(ctx, "stopped", allStopped); err != nil {
				return err
			}
		}
		c := agents.Commit{}
		if x, running := sh.broken(); running {
			c.Executions = append(c.Executions, x)
		}
		if err := sh.advance(ctx, c, Stopped{Reason: ReasonStopped}); err != nil {
			return err
		}
	}
	if sh.run.State == Terminate {
		if err := sh.finish(ctx); err != nil {
			return err
		}
	}
	if told != permissions.OrderStop {
		if err := sh.end(ctx); err != nil {
			return err
		}
	}
	if told == permissions.OrderNew {
		if _, err := sh.runtime.session(ctx, sh.agent); err != nil {
			return err
		}
	}
	sh.busy(false)
	sh.runtime.obeyed(sh.worker.session, o, told)
	return nil
}

// broken is the row of a call that was begun and is stopped now.
func (sh *shift) broken() (agents.Execution, bool) {
	at := slices.IndexFunc(sh.run.Calls, func(c Call) bool { return c.Phase == Begun || c.Phase == Asking && !sh.run.Shows })
	if at < 0 {
		return agents.Execution{}, false
	}
	x := sh.execution(sh.run.Calls[at])
	x.Ended, x.Error = x.Began, "stopped"
	return x, true
}

// end ends the session, with what it was granted, and those that it started.
func (sh *shift) end(ctx context.Context) error {
	if !sh.session.EndedAt.IsZero() {
		return nil
	}
	if err := sh.runtime.endChildren(ctx, sh.session.ID); err != nil {
		return err
	}
	if err := sh.runtime.desk.EndSession(ctx, sh.session.Caller(), string(sh.session.ID)); err != nil {
		return err
	}
	sh.session.EndedAt = sh.runtime.stamp()
	return sh.advance(ctx, agents.Commit{})
}

// disown ends a session whose agent is not in the configuration any more.
func (sh *shift) disown(ctx context.Context) error {
	if !sh.session.EndedAt.IsZero() {
		return nil
	}
	sh.agent = newAgent(sh.runtime, Agent{Name: sh.session.Agent})
	if sh.run.Request != "" {
		if err := sh.runtime.desk.Withdraw(ctx, sh.asker(), sh.run.Request, ""); err != nil && permissions.AsRefusal(err) == nil {
			return err
		}
	}
	return sh.end(ctx)
}
