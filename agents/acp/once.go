package acp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

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
	last := t.heard.said(true)
	end := ending(reason, err, ctx.Err() != nil, t.heard.spoke())
	if end != "" {
		last = join(last, end)
	}
	if err := say(last); err != nil {
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
