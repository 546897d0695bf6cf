package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

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
func isStopped(err error) bool {
	r := refusal(err)
	return r != nil && r.Code == permissions.CodeStopped
}

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
		if r := refusal(err); err != nil && (r == nil || r.Code == permissions.CodeBroken) {
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
		if err := sh.runtime.desk.Withdraw(ctx, sh.asker(), sh.run.Request, ""); err != nil && refusal(err) == nil {
			return err
		}
	}
	return sh.end(ctx)
}
