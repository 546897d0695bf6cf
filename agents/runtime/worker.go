package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// turn is a worker's view of its session: the row as last read or written.
type turn struct {
	*worker
	runtime *Runtime
	agent   *agent
	session permissions.AgentSession
	run     Run
	ruling  permissions.Ruling         // of the call that is about to run
	left    struct{ tool, how string } // a process that was left when a tool's call was planned
}

// work works on a session until it rests. Failures are retried with a growing delay.
func (rt *Runtime) work(ctx context.Context, w *worker) {
	defer rt.endWorker(w)
	delay := time.Duration(0)
	for first := true; ctx.Err() == nil; first = false {
		rests, err := rt.turn(ctx, w, first)
		switch {
		case err == nil && rests:
			return
		case err == nil:
			delay = 0
			continue
		case errors.Is(err, agents.ErrStale): // changed concurrently: read it again
			continue
		}
		delay = min(max(2*delay, 100*time.Millisecond), 30*time.Second)
		if ctx.Err() == nil {
			rt.log.Error("session failed, retrying", "session", w.session, "delay", delay, "err", err)
		}
		brief, done := rt.interruptible(ctx, w)
		if brief.Err() == nil {
			_ = timing.Pause(brief, delay) // the loop checks ctx
		} else { // there is an order
			_ = timing.Pause(ctx, min(delay, again))
		}
		done()
	}
}

// turn reads the session and performs its next step. It rests when there is nothing to do.
func (rt *Runtime) turn(ctx context.Context, w *worker, first bool) (rests bool, err error) {
	sh := &turn{worker: w, runtime: rt}
	o, told := rt.currentOrder(w.session)
	sh.session, err = rt.store.AgentSession(ctx, w.session)
	if permissions.CodeOf(err) == permissions.CodeUnknown { // the session was deleted
		rt.removeOrder(w.session, o, told)
		return true, nil
	}
	unread := err
	changed := errors.Is(err, permissions.ErrRow) && sh.session.ID != ""
	if err != nil && !changed {
		return false, err
	}
	if rt.others[sh.session.Agent] {
		rt.removeOrder(w.session, o, told)
		return true, nil
	}
	if changed {
		sh.run = changedRun
	} else if sh.run, err = runOf(sh.session); err != nil {
		return true, err
	}
	if sh.agent, err = rt.agent(sh.session); err != nil {
		rt.log.Warn("ending session", "session", w.session, "err", err)
		if err := sh.disown(ctx); err != nil {
			return false, err
		}
		rt.removeOrder(w.session, o, told)
		return true, nil
	}
	if o != nil {
		return false, sh.obey(ctx, o, told)
	}
	if !sh.session.EndedAt.IsZero() {
		return true, nil
	}
	if changed {
		return false, sh.endUntrusted(ctx, unread)
	}
	if first {
		if orphan, err := sh.resume(ctx); orphan || err != nil {
			return false, err
		}
	}
	sh.busy(true)
	rests, err = sh.step(ctx)
	if rests {
		sh.busy(false)
	}
	if errors.Is(err, permissions.ErrRow) { // the row of a request, or of its own, was changed
		return false, sh.endUntrusted(ctx, err)
	}
	if isStopped(err) { // the kill switch
		rt.giveOrder(w.session, permissions.OrderStop)
		return false, nil
	}
	return rests, err
}

func runOf(s permissions.AgentSession) (run Run, err error) {
	if err := json.Unmarshal(s.Step, &run); err != nil {
		return run, fmt.Errorf("decode the run of session %s: %w", s.ID, err)
	}
	return run, nil
}

// busy shows or clears the working indicator.
func (sh *turn) busy(on bool) {
	select {
	case <-sh.agent.ready:
		sh.agent.speaker.Working(on && sh.run.Request == "" && sh.run.State != Idle)
	default:
	}
}

// resume handles a session that was open when the daemon ended: it reports interrupted calls, and ends a session whose parent
// has ended (orphan), since the order to end may have been lost.
func (sh *turn) resume(ctx context.Context) (orphan bool, err error) {
	if sh.session.Parent != "" {
		if _, lives, err := sh.startingSession(ctx); !lives || err != nil {
			if err == nil {
				sh.runtime.giveOrder(sh.worker.session, permissions.OrderQuit)
			}
			return true, err
		}
	}
	for _, c := range sh.run.Calls {
		if sh.run.State == Execute && c.Phase == Begun {
			return false, sh.advance(ctx, agents.Commit{}, Resumed{})
		}
	}
	return false, nil
}

// step performs the action of the current state.
func (sh *turn) step(ctx context.Context) (rests bool, err error) {
	switch sh.run.State {
	case Idle:
		return sh.wake(ctx)
	case Plan:
		return false, sh.plan(ctx)
	case ValidateCalls:
		return false, sh.validate(ctx)
	case WaitAck:
		return sh.await(ctx)
	case Execute:
		return sh.execute(ctx)
	case Observe:
		return false, sh.advance(ctx, agents.Commit{}, Observed{})
	case Commit:
		return false, sh.advance(ctx, agents.Commit{}, Committed{})
	case Terminate:
		return false, sh.finish(ctx)
	}
	return true, fmt.Errorf("session %s is in an unknown state %q", sh.session.ID, sh.run.State)
}

// advance applies events and stores their effect, together with c, in one commit.
func (sh *turn) advance(ctx context.Context, c agents.Commit, events ...Event) error {
	next, s := sh.run, sh.session
	var err error
	for _, e := range events {
		was := next
		if next, err = Next(next, e); err != nil {
			return err
		}
		if _, observed := e.(Observed); observed || (was.open() && next.State == Terminate) {
			t, err := sh.turnOf(next.results())
			if err != nil {
				return err
			}
			c.Turns = append(c.Turns, t)
		}
	}
	sh.rowsOf(next, &c)
	now := sh.runtime.stamp()
	s.Version++
	s.ChangedAt, s.Request, s.Tool = now, next.Request, ""
	if at := next.asking(); at > 0 {
		s.Tool = next.Calls[at-1].Tool
	} else if next.State == WaitAck {
		s.Tool = strings.Join(slices.Compact(wire.Map(next.asked(), func(c Call) string { return c.Tool })), ", ")
	}
	if next.State != Terminate { // after the end, the status changes with Finished
		s.Status = status(next)
	}
	if s.Step, err = agents.Encode(next); err != nil {
		return err
	}
	if s.Status != sh.session.Status {
		c.Records = append(c.Records, agents.StatusOf(s))
	}
	c.Session = s
	if err := sh.runtime.store.Commit(ctx, c); err != nil {
		return err
	}
	if next.State != sh.run.State {
		level := slog.LevelDebug
		if s.Debug {
			level = slog.LevelInfo
		}
		sh.runtime.log.Log(ctx, level, "session state changed", "session", s.ID, "agent", s.Agent, "run", next.N, "step", next.Step,
			"from", string(sh.run.State), "state", string(next.State), "request", s.Request)
	}
	sh.session, sh.run = s, next
	sh.agent.setActivity(s.Status)
	return nil
}

// rowsOf adds execution rows for calls that ended without one. A call with a reviewed result has its row already.
func (sh *turn) rowsOf(next Run, c *agents.Commit) {
	for i, after := range next.Calls {
		over := func(c Call) bool { return c.Decision == Skipped || c.Phase == Ended }
		if i >= len(sh.run.Calls) || !over(after) || over(sh.run.Calls[i]) || sh.run.Calls[i].Phase == Asking && sh.run.Shows ||
			slices.ContainsFunc(c.Executions, func(x agents.Execution) bool { return x.Call == after.N }) {
			continue
		}
		x := sh.execution(after)
		x.Ended, x.Error = x.Began, after.Text
		c.Executions = append(c.Executions, x)
	}
}

// status maps a run to the activity shown by front ends.
func status(r Run) permissions.Activity {
	at := r.asking()
	switch {
	case r.State == Idle && r.Outcome == agents.Interrupted:
		return permissions.Interrupted
	case r.State == Idle:
		return permissions.Idle
	case at > 0 && (r.Shows || r.Calls[at-1].Tool == schema.Pause):
		return permissions.Paused
	case at > 0 || r.State == WaitAck:
		return permissions.AwaitingUser
	}
	return permissions.Running
}

func (sh *turn) turnOf(m models.Message) (agents.Turn, error) {
	content, err := agents.Encode(m)
	return agents.Turn{Content: content, At: sh.runtime.stamp()}, err
}

func (sh *turn) execution(c Call) agents.Execution {
	return agents.Execution{
		Session: sh.session.ID, Step: sh.run.Step, Call: c.N, Tool: c.Tool, Arguments: c.Input,
		AffectedPath: c.Plan.AffectedPath, Began: sh.runtime.stamp(),
	}
}
