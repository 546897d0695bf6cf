package runtime

import (
	"context"
	"errors"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// await requests approval for the step's calls and applies the decision. Meanwhile it rests: the session is only a row.
func (sh *turn) await(ctx context.Context) (rests bool, err error) {
	if sh.run.Request == "" {
		return false, sh.submitStep(ctx)
	}
	caller := sh.session.Caller()
	q, err := sh.runtime.approvals.Read(ctx, caller, sh.run.Request)
	if err != nil || q.State == permissions.Pending {
		return true, err
	}
	e := Settled{Request: q, Ends: sh.agent.Terminates}
	if q.State == permissions.Approved {
		used, err := sh.runtime.approvals.Use(ctx, caller, q.ID, q.Key)
		switch r := permissions.AsRefusal(err); {
		case r != nil && r.Code != permissions.CodeBroken:
			e.Voided = r.Text
		case err != nil:
			return false, err
		default:
			e.Request = used
		}
	}
	return false, sh.advance(ctx, sh.closing(e.Request, e.Voided != "", ""), e) // in one commit, so that it is recorded once
}

// submitStep submits the step's calls for approval. They were stored before, so a restart submits the same request.
func (sh *turn) submitStep(ctx context.Context) error {
	if _, err := sh.held(ctx); err != nil { // the kill switch
		return err
	}
	opening := agents.Opening(sh.session, sh.runtime.stamp())
	q, err := sh.runtime.approvals.Submit(ctx, sh.session.Caller(), sh.request(sh.run.asked()), opening)
	switch r := permissions.AsRefusal(err); {
	case r != nil && r.Code != permissions.CodeBroken:
		return sh.advance(ctx, agents.Commit{}, Refused{Text: r.Text})
	case err != nil:
		return err
	}
	c := agents.Commit{}
	if opening.Request = q.ID; q.DecidedVia == permissions.ViaGrant { // decided by a grant: it never waited, but its record is closed too
		c.Records = []permissions.Record{opening}
	}
	return sh.advance(ctx, c, Submitted{q.ID})
}

// closing builds the records and artifacts of a settled request and its calls.
func (sh *turn) closing(q permissions.Request, void bool, stopped string) agents.Commit {
	c := agents.Commit{Records: agents.Closing(sh.session, q, void, stopped, sh.runtime.stamp())}
	for i, answer := range sh.run.answers(q) {
		if call := sh.run.Calls[i]; call.Decision == Asks {
			c.Artifacts = append(c.Artifacts, agents.Verdict(sh.execution(call), q.ForCall(answer), void || !call.is(answer)))
		}
	}
	return c
}

// finish reports the end of a run: to the person, unless it ended normally, and to the parent agent.
func (sh *turn) finish(ctx context.Context) error {
	if err := sh.say(ctx, "end", sh.endMessage()); err != nil {
		return err
	}
	if err := sh.report(ctx); err != nil {
		return err
	}
	r := agents.RecordOf(permissions.RunFinished, sh.session, sh.runtime.stamp(), "outcome", sh.run.Outcome, "reason", sh.run.Reason)
	return sh.advance(ctx, agents.Commit{Records: []permissions.Record{r}}, Finished{})
}

// isStopped reports whether the kill switch caused an error.
func isStopped(err error) bool { return permissions.CodeOf(err) == permissions.CodeStopped }

// allStopped is the message to the person when the kill switch ends a run.
const allStopped = "I stop here: everything was stopped, or I alone. I go on when that is resumed and you write again."

// endMessage is the message to the person for a run that did not end normally; empty if none is needed.
func (sh *turn) endMessage() string {
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

func (sh *turn) obey(ctx context.Context, o *order, told permissions.Order) error {
	if err := sh.halt(ctx, sh.session.Person); err != nil {
		return err
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
	sh.runtime.removeOrder(sh.worker.session, o, told)
	return nil
}

// halt ends the run and withdraws its pending request. If the row of that was changed, the session ends.
func (sh *turn) halt(ctx context.Context, by string) error {
	err := sh.haltRun(ctx, by)
	if errors.Is(err, permissions.ErrRow) {
		return sh.endUntrusted(ctx, err)
	}
	return err
}

func (sh *turn) haltRun(ctx context.Context, by string) error {
	c := agents.Commit{}
	if err := sh.findPendingRequest(ctx); err != nil {
		return err
	}
	if sh.run.Request != "" {
		brief, done := context.WithTimeout(ctx, stopTime)
		defer done()
		err := sh.runtime.approvals.Withdraw(brief, sh.asker(), sh.run.Request, by)
		if r := permissions.AsRefusal(err); err != nil && (r == nil || r.Code == permissions.CodeBroken) {
			return err
		}
		if sh.run.State == WaitAck {
			q, err := sh.runtime.approvals.Read(brief, sh.asker(), sh.run.Request)
			if err != nil {
				return err
			}
			c = sh.closing(q, false, ReasonStopped)
		}
	}
	if sh.run.State != Idle && sh.run.State != Terminate {
		if _, err := sh.held(ctx); isStopped(err) {
			if err := sh.say(ctx, "stopped", allStopped); err != nil {
				return err
			}
		}
		if err := sh.advance(ctx, c, Stopped{Reason: ReasonStopped}); err != nil {
			return err
		}
	}
	if sh.run.State == Terminate {
		return sh.finish(ctx)
	}
	return nil
}

// findPendingRequest finds the run's pending request if the daemon ended between submitting it and storing its id.
func (sh *turn) findPendingRequest(ctx context.Context) error {
	key, at := "", sh.run.asking()
	switch {
	case sh.run.Request != "":
	case sh.run.State == WaitAck:
		key = sh.stepKey()
	case at > 0:
		key = sh.callKey(sh.run.Calls[at-1])
	}
	if key == "" {
		return nil
	}
	q, found, err := sh.runtime.approvals.Find(ctx, sh.asker(), key)
	if err == nil && found && q.DecidedVia != permissions.ViaGrant {
		sh.run.Request = q.ID
	}
	return err
}

// end ends the session, its grants, and its children.
func (sh *turn) end(ctx context.Context) error {
	if !sh.session.EndedAt.IsZero() {
		return nil
	}
	children, err := sh.runtime.children(ctx, sh.session.ID)
	for _, s := range children {
		sh.runtime.giveOrder(s.ID, permissions.OrderQuit)
	}
	if err != nil {
		return err
	}
	if err := sh.runtime.approvals.EndSession(ctx, sh.session.Caller(), string(sh.session.ID)); err != nil {
		return err
	}
	sh.session.EndedAt = sh.runtime.stamp()
	return sh.advance(ctx, agents.Commit{})
}

// disown ends a session whose agent is no longer configured.
func (sh *turn) disown(ctx context.Context) error {
	if !sh.session.EndedAt.IsZero() {
		return nil
	}
	sh.agent = newAgent(sh.runtime, Agent{Name: sh.session.Agent})
	if err := sh.halt(ctx, ""); err != nil {
		return err
	}
	return sh.end(ctx)
}
