package acp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// The [gate] of an agent in the chat: it submits questions to the daemon and waits for the answers.

func (a *Agent) held(ctx context.Context, session string) ([]permissions.Tag, error) {
	return a.approvals.Held(ctx, a.caller(), session)
}

// cleanupTime bounds the cleanup of a question that nobody waits for any more.
const cleanupTime = 5 * time.Second

func (a *Agent) allow(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	q.Agent, q.Hook = a.o.Name, permissions.HookACP // only one call at a time, as with a hook
	verdict, err := a.approvals.Evaluate(ctx, a.caller(), q)
	switch {
	case err != nil:
		return q, err
	case verdict.Forbidden != "":
		return q, permissions.ForbiddenBy(verdict)
	case !verdict.Ask && len(verdict.Grants) == 0 && !a.approvals.OverRate(a.caller(), q): // allowed by policy alone
		q.State, q.Answer, q.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		return q, nil
	}
	q.ID = permissions.NewID(a.stamp()) // the status names the question before anybody is asked
	p := &submitted{id: q.ID, tool: q.Tool, done: make(chan struct{})}
	defer a.done(p)
	if err := a.reportAsking(ctx, p, verdict.Ask); err != nil {
		return q, err
	}
	s, _, err := a.row.open(ctx)
	r := q
	if err == nil {
		r, err = a.approvals.Submit(ctx, a.caller(), q, agents.Opening(s, a.stamp()))
	}
	opened := err == nil && r.DecidedVia != permissions.ViaGrant
	if opened {
		r, err = a.wait(ctx, p, r)
	}
	void := false
	if err == nil && r.State == permissions.Approved {
		var used permissions.Request
		if used, err = a.approvals.Use(ctx, a.caller(), r.ID, q.Key); err == nil {
			r = used
		}
		void = err != nil
	}
	told := r
	if !opened {
		told.Scope = verdict.Scope
	}
	a.reportOutcome(ctx, p, told, opened, void)
	return r, err
}

// reportAsking reports that the agent waits for people, before they are asked, if they will be. In a turn that is over it refuses.
func (a *Agent) reportAsking(ctx context.Context, p *submitted, people bool) error {
	a.mu.Lock()
	err := ctx.Err()
	if err == nil {
		a.unreported = append(a.unreported, p)
	}
	if err == nil && people {
		a.pending = append(a.pending, p)
	}
	a.mu.Unlock()
	if err == nil && people {
		a.storeWaiting(ctx, false, nil)
	}
	return err
}

// done marks a question as fully reported.
func (a *Agent) done(p *submitted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unreported = slices.DeleteFunc(a.unreported, func(q *submitted) bool { return p == q })
	close(p.done)
}

// wait waits until people have settled a question; otherwise it withdraws it.
func (a *Agent) wait(ctx context.Context, p *submitted, r permissions.Request) (permissions.Request, error) {
	settled := timing.NewSignal()
	a.mu.Lock()
	a.answers[r.ID], p.id = settled, r.ID
	if !slices.Contains(a.pending, p) { // a grant has just ended
		a.pending = append(a.pending, p)
	}
	a.mu.Unlock()
	a.storeWaiting(context.WithoutCancel(ctx), false, nil)
	for {
		now, err := a.approvals.Read(ctx, a.caller(), r.ID)
		if err == nil && now.State != permissions.Pending {
			return now, nil
		}
		if err != nil && ctx.Err() == nil {
			return r, err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return a.withdraw(ctx, r), ctx.Err()
		}
	}
}

// reportOutcome reports the outcome of a question, and that the agent no longer waits for it.
func (a *Agent) reportOutcome(ctx context.Context, p *submitted, r permissions.Request, opened, void bool) {
	a.mu.Lock()
	delete(a.answers, p.id)
	a.pending = slices.DeleteFunc(a.pending, func(q *submitted) bool { return p == q })
	a.mu.Unlock()
	late, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer done()
	over, stopped := ctx.Err() != nil, ""
	if over {
		stopped = agents.ReasonStopped
	}
	a.storeWaiting(late, over, func(s permissions.AgentSession, c *agents.Commit) {
		if opened {
			c.Records = agents.Closing(s, r, void, stopped, a.stamp())
		}
		if opened || len(r.Grants) > 0 {
			a.closing(s, r, void, c)
		}
	})
}

// closing adds the outcome of a question to a commit: the decision, and the row of a call that does not run.
func (a *Agent) closing(s permissions.AgentSession, r permissions.Request, void bool, c *agents.Commit) {
	now := a.stamp()
	_, n, _ := strings.Cut(strings.TrimPrefix(r.Key, r.Session+"/"), "/")
	x := agents.Execution{Session: s.ID, Step: r.Step, Tool: r.Tool, Arguments: r.Input, AffectedPath: r.AffectedPath, Began: now, Ended: now}
	x.Call, _ = strconv.Atoi(n) // see [turn.key]
	c.Artifacts = append(c.Artifacts, agents.Verdict(x, r, void))
	if r.State != permissions.Approved {
		x.Error = permissions.Result(r).Text
		c.Executions = append(c.Executions, x)
	}
}

// waitForQuestions waits until all questions are closed. The turn is over, so no new ones are asked.
func (a *Agent) waitForQuestions() {
	for {
		a.mu.Lock()
		all := slices.Clone(a.unreported)
		a.mu.Unlock()
		if len(all) == 0 {
			return
		}
		<-all[0].done
	}
}

// withdraw cancels a question that nobody waits for any more, and returns its outcome.
func (a *Agent) withdraw(ctx context.Context, r permissions.Request) permissions.Request {
	late, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer done()
	err := a.approvals.Withdraw(late, a.caller(), r.ID, "")
	if err == nil {
		var now permissions.Request
		if now, err = a.approvals.Read(late, a.caller(), r.ID); err == nil {
			return now
		}
	}
	a.log.Warn("cancel the request of an agent", "request", r.ID, "err", err)
	return r
}

// storeWaiting stores what the agent waits for in its session, with further records, and shows it; when the turn is over, nothing.
func (a *Agent) storeWaiting(ctx context.Context, over bool, more func(permissions.AgentSession, *agents.Commit)) {
	err := a.row.change(ctx, func(s *permissions.AgentSession, c *agents.Commit) {
		if more != nil {
			more(*s, c)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		was := stepOf(*s)
		was.Asks = wire.Map(a.pending, func(p *submitted) permissions.ID { return p.id })
		s.Step = was.encode()
		if s.Request, s.Tool = "", ""; len(a.pending) > 0 {
			s.Request, s.Tool = a.pending[0].id, a.pending[0].tool
		}
		switch {
		case len(a.pending) > 0:
			s.Status = permissions.AwaitingUser
		case s.Status == permissions.AwaitingUser && !over:
			s.Status = permissions.Running
		}
	})
	if err != nil && ctx.Err() == nil {
		a.log.Error("store what an agent waits for", "err", err)
	}
	a.working(a.Activity() == permissions.Running)
}

// HandleEvent implements [agents.EventHandler]: it wakes the waiter of an answer, and a stop ends the program.
func (a *Agent) HandleEvent(_ context.Context, h permissions.Event, r permissions.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case h.IsStopOf(a.caller()):
		if a.turn != nil {
			a.turn.end()
		}
		if s := a.running.Load(); s != nil {
			s.ending.Store(true)
			s.run.Kill()
		}
	case h.Type == permissions.RequestSettled:
		a.answers[r.ID].Notify() // without a waiter this does nothing
	}
	return nil
}

func (a *Agent) note(ctx context.Context, x agents.Execution, artifacts []agents.Artifact) {
	late, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer done()
	err := a.row.change(late, func(_ *permissions.AgentSession, c *agents.Commit) {
		c.Executions, c.Artifacts = []agents.Execution{x}, artifacts
	})
	if err != nil {
		a.log.Error("store tool result", "tool", x.Tool, "err", err)
	}
}

// OneShot is one prompt to an agent outside the chat. All but Program.Start is required.
type OneShot struct {
	Name    string // of the agent, as shown to people
	Session string // the session that grants are for
	Program Program
	Asker   agents.Asker            // how people are asked
	Say     func(text string) error // receives what the agent says and does
}

// ErrUnfinished means that the agent did not finish; the reason was said.
var ErrUnfinished = errors.New("the agent did not finish")

// Once starts the agent's program, runs one turn, and ends it. When ctx ends, it cancels the turn and returns ctx's error.
func Once(ctx context.Context, e OneShot, prompt string) error {
	s, err := e.Program.start(ctx, oneShotGate{e})
	if err != nil {
		return err
	}
	defer s.shutDown()
	limited, done := context.WithTimeout(ctx, e.Program.patience())
	_, err = s.beginConversation(limited, e.Program.conversation(), "")
	done()
	if err != nil {
		return s.why(ctx, err)
	}
	t := newTurn(e.Session, 1)
	t.prompt = prompt
	defer t.end()
	stop := context.AfterFunc(ctx, t.end) // the agent may end its turn itself
	defer stop()
	say := func(text string) error {
		if text == "" {
			return nil
		}
		return e.Say(text)
	}
	reason, err := s.ask(context.WithoutCancel(ctx), t, prompt, say)
	if err := say(t.finalMessage(reason, err, ctx.Err() != nil)); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || reason != sdk.StopReasonEndTurn:
		return ErrUnfinished
	}
	return nil
}

// oneShotGate is a gate that asks over the agent socket, behind which policy and grants are checked.
type oneShotGate struct{ OneShot }

var _ gate = oneShotGate{}

func (oneShotGate) held(context.Context, string) ([]permissions.Tag, error) { return nil, nil }

func (e oneShotGate) allow(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	q.Agent = e.Name
	return e.Asker.Ask(ctx, permissions.Caller{}, q)
}

func (oneShotGate) note(context.Context, agents.Execution, []agents.Artifact) {}

func (oneShotGate) stamp() time.Time { return time.Now().UTC() }
