package acp

import (
	"context"
	"errors"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// What an agent asks is put to people at the daemon's desk, and waited for. See [gate].

func (a *Agent) held(ctx context.Context, session string) ([]permissions.Tag, error) {
	return a.desk.Held(ctx, a.caller(), session)
}

// deskTime bounds what is done about a question that nobody waits for any more.
const deskTime = 5 * time.Second

func (a *Agent) allow(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	q.Agent, q.Hook = a.o.Name, "acp" // it knows one call at a time, as a hook does
	verdict, err := a.desk.Judge(ctx, a.caller(), q)
	switch {
	case err != nil:
		return q, err
	case verdict.Forbidden != "":
		return q, permissions.Forbidden(verdict.Forbidden)
	case !verdict.Ask && len(verdict.Grants) == 0: // policy alone allows it
		q.State, q.Answer, q.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		return q, nil
	}
	r, err := a.desk.Pose(ctx, a.caller(), q)
	if err != nil {
		return r, err
	}
	if r.State == permissions.Pending {
		if r, err = a.wait(ctx, r); err != nil {
			return r, err
		}
	}
	if r.State != permissions.Approved {
		return r, nil
	}
	return a.desk.Use(ctx, a.caller(), r.ID, q.Key)
}

// wait waits until people have settled a question, or withdraws it.
func (a *Agent) wait(ctx context.Context, r permissions.Request) (permissions.Request, error) {
	settled := permissions.NewBell()
	a.mu.Lock()
	a.answers[r.ID] = settled
	a.posed = append(a.posed, posed{r.ID, r.Tool})
	a.mu.Unlock()
	a.waits(ctx)
	defer func() {
		a.mu.Lock()
		delete(a.answers, r.ID)
		a.posed = slices.DeleteFunc(a.posed, func(p posed) bool { return p.id == r.ID })
		a.mu.Unlock()
		late, done := context.WithTimeout(context.WithoutCancel(ctx), deskTime)
		defer done()
		a.waits(late)
	}()
	for {
		now, err := a.desk.Read(ctx, a.caller(), r.ID)
		if err == nil && now.State != permissions.Pending {
			return now, nil
		}
		if err != nil && ctx.Err() == nil {
			return r, err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			a.withdraw(ctx, r.ID)
			return r, ctx.Err()
		}
	}
}

// withdraw cancels what nobody waits for any more.
func (a *Agent) withdraw(ctx context.Context, id permissions.ID) {
	late, done := context.WithTimeout(context.WithoutCancel(ctx), deskTime)
	defer done()
	if err := a.desk.Withdraw(late, a.caller(), id, ""); err != nil {
		a.log.Warn("what an agent asked is not cancelled", "request", id, "err", err)
	}
}

// waits shows what the agent waits for, in its session and to its person.
func (a *Agent) waits(ctx context.Context) {
	err := a.row.change(ctx, func(s *permissions.AgentSession, _ *agents.Commit) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if s.Request, s.Tool = "", ""; len(a.posed) > 0 {
			s.Request, s.Tool = a.posed[0].id, a.posed[0].tool
		}
		switch {
		case len(a.posed) > 0:
			s.Status = permissions.AwaitingUser
		case s.Status == permissions.AwaitingUser:
			s.Status = permissions.Running
		}
	})
	if err != nil && ctx.Err() == nil {
		a.log.Error("what an agent waits for cannot be shown just now", "err", err)
	}
	a.working(a.Activity() == permissions.Running)
}

// Witness is [agents.Witness]: it wakes whoever waits for an answer, and the kill switch ends the program.
func (a *Agent) Witness(_ context.Context, h permissions.Happening, r permissions.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch h.Type {
	case permissions.AllStopped:
		if a.turn != nil {
			a.turn.end()
		}
		if a.seat != nil {
			a.seat.doom()
		}
	case permissions.RequestSettled:
		a.answers[r.ID].Ring() // where nobody waits, that does nothing
	}
	return nil
}

func (a *Agent) note(ctx context.Context, x agents.Execution, artifacts []agents.Artifact) {
	late, done := context.WithTimeout(context.WithoutCancel(ctx), deskTime)
	defer done()
	err := a.row.change(late, func(_ *permissions.AgentSession, c *agents.Commit) {
		c.Executions, c.Artifacts = []agents.Execution{x}, artifacts
	})
	if err != nil {
		a.log.Error("how a call of an agent's went cannot be stored", "tool", x.Tool, "err", err)
	}
}

// Errand is one prompt to an agent outside the chat. All is required but Program.Start.
type Errand struct {
	Name    string // of the agent, as people are shown it
	Session string // what an answer for a session holds for
	Program Program
	Place   tools.Place
	Read    tools.Tool // as in [Options]
	Write   tools.Tool
	Run     tools.Tool
	Asker   agents.Asker            // who people answer through
	Say     func(text string) error // is told what the agent says and does
}

// ErrUndone says that the agent did not do what it was told to; why was said.
var ErrUndone = errors.New("the agent did not finish")

// Once starts the agent's program, has it do one turn, and ends it. When ctx ends, the turn is cancelled first, and the
// error is that of ctx.
func Once(ctx context.Context, e Errand, prompt string) error {
	c := &client{
		gate: errand{e}, place: e.Place, tools: kit{e.Read, e.Write, e.Run}, log: e.Program.Log,
	}
	p, err := launch(ctx, e.Program, c.answer, c.update)
	if err != nil {
		return err
	}
	s := &seat{c, p}
	defer s.part()
	limited, done := context.WithTimeout(ctx, e.Program.patience())
	_, err = s.begin(limited, (Options{Place: e.Place}).conversation(), "")
	done()
	if err != nil {
		return s.why(ctx, err)
	}
	t := newTurn(e.Session, 1)
	defer t.end()
	stop := context.AfterFunc(ctx, t.end) // it may end its turn by itself
	defer stop()
	say := func(text string) error {
		if text == "" {
			return nil
		}
		return e.Say(text)
	}
	reason, err := s.ask(context.WithoutCancel(ctx), t, prompt, say)
	if err := say(t.last(reason, err, ctx.Err() != nil)); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || reason != sdk.StopReasonEndTurn:
		return ErrUndone
	}
	return nil
}

// errand is a gate that asks over the socket for agents: policy and grants are looked at there.
type errand struct{ Errand }

var _ gate = errand{}

func (errand) held(context.Context, string) ([]permissions.Tag, error) { return nil, nil }

func (e errand) allow(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	q.Agent = e.Name
	return e.Asker.Ask(ctx, permissions.Caller{}, q)
}

func (errand) note(context.Context, agents.Execution, []agents.Artifact) {}

func (errand) stamp() time.Time { return time.Now().UTC() }
