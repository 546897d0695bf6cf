package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/permissions"
)

// asks is the call of a tool that asks.
func asks[In input](ctx context.Context, s *Server, r *mcp.CallToolRequest) *mcp.CallToolResult {
	in, err := read[In](r.Params.Arguments)
	if err != nil {
		return refused(permissions.Invalid(err))
	}
	q, err := in.question()
	if err != nil {
		return refused(permissions.Invalid(err))
	}
	settled, shown, err := s.ask(ctx, r, q)
	switch {
	case err != nil && !left(err):
		return refused(err)
	case err == nil && shown.form != nil:
		return shown.asked(settled)
	}
	return told(settled, shown.note)
}

// approve is the call of approve_tool. Whatever happens, its result is a verdict.
func approve(ctx context.Context, s *Server, r *mcp.CallToolRequest) *mcp.CallToolResult {
	in, err := read[approveInput](r.Params.Arguments)
	if err != nil {
		return denied(err.Error())
	}
	q, err := in.question()
	if err != nil {
		return denied(err.Error())
	}
	settled, _, err := s.ask(ctx, r, q) // no tool is ever shown in a dialog
	if err != nil {
		return denied(why(err))
	}
	return verdict(settled)
}

// await is the call of await_request. It reads, and uses nothing.
func await(ctx context.Context, s *Server, r *mcp.CallToolRequest) *mcp.CallToolResult {
	in, err := read[awaitInput](r.Params.Arguments)
	if err == nil && in.ID == "" {
		err = errors.New("id is missing")
	}
	if err != nil {
		return refused(permissions.Invalid(err))
	}
	v := visitOf(ctx)
	ctx, done := s.hold(ctx, v, r)
	defer done()
	caller := s.o.CallerOf(ctx)
	standing, err := s.o.Desk.Await(ctx, caller, in.ID)
	if err != nil {
		return refused(err)
	}
	if ctx.Err() == nil {
		s.left.forget(question{caller.Name, standing.Request.Digest}, in.ID)
	}
	return told(standing.Request, "")
}

// ask puts q and waits, with the client's own dialog beside it where there is to be one. A call that left before it was
// answered is found again by its question.
func (s *Server) ask(ctx context.Context, r *mcp.CallToolRequest, q permissions.Request) (permissions.Request, *dialog, error) {
	s.complete(&q, r)
	if err := q.Validate(); err != nil {
		return permissions.Request{}, nil, permissions.Invalid(err)
	}
	v := visitOf(ctx)
	ctx, done := s.hold(ctx, v, r)
	defer done()
	caller := s.o.CallerOf(ctx)
	about := questionOf(caller, q)
	before, again := s.left.take(about) // nobody who is anonymous: they cannot be told apart
	q.ID, q.Call = before.id, cmp.Or(before.call, rand.Text())
	d := s.dialog(r, v, caller, about, q)
	began := time.Now()
	settled, err := d.ask(ctx, q)
	if again && err == nil && d.back == "" && stale(settled, began) {
		q.ID, q.Call = "", rand.Text()
		settled, err = d.ask(ctx, q)
	}
	gone := leaver{id: settled.ID, call: q.Call, caller: caller, message: v.message}
	switch {
	case err == nil && d.form != nil: // it comes back
		s.left.add(about, gone)
		q.ID = settled.ID
		s.vigils.add(vigil{caller, q})
	case caller.Name == permissions.Anonymous:
	case ctx.Err() != nil && settled.ID != "":
		s.leave(about, gone, v.cancelled())
	case err == nil:
		s.left.forget(about, settled.ID)
		v.answered(about, gone)
	}
	return settled, d, err
}

// complete adds where the agent runs, and who it says it is.
func (s *Server) complete(q *permissions.Request, r *mcp.CallToolRequest) {
	q.Cwd, q.Host = s.o.Cwd, s.o.Host
	if client := r.ClientInfo(); client != nil && q.Agent == "" {
		q.Agent = clipped(client.Name)
	}
	q.Claimed = q.Agent != ""
}

// clipped is as much of a client's name as a request may have.
func clipped(name string) string {
	letters := []rune(name)
	return string(letters[:min(len(letters), permissions.MaxName)])
}

// stale tells whether a request that was found again ended without anybody's decision before it was: then there is
// nothing to be collected, and whoever asks again means to ask.
func stale(r permissions.Request, began time.Time) bool {
	switch r.State {
	case permissions.Expired, permissions.Cancelled, permissions.Undeliverable:
		return r.DecidedAt.Before(began)
	}
	return false
}

// left tells whether an error only says that the call ended before its answer came.
func left(err error) bool { return errors.Is(err, context.Canceled) }

// hold is ctx until the client is gone, and the signs of life until done is called, which no sign comes after.
func (s *Server) hold(ctx context.Context, v *visit, r *mcp.CallToolRequest) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var works sync.WaitGroup
	stop := func() bool { return true }
	if v.gone != nil {
		stop = context.AfterFunc(v.gone(), cancel)
	}
	if token := r.Params.GetProgressToken(); token != nil {
		works.Go(func() { s.signs(ctx, r, token, cancel) })
	}
	return ctx, func() {
		stop()
		cancel()
		works.Wait()
	}
}

// signs sends signs of life until ctx ends. A client that they do not reach has left.
func (s *Server) signs(ctx context.Context, r *mcp.CallToolRequest, token any, lost func()) {
	began := time.Now()
	every := time.NewTicker(s.o.Every)
	defer every.Stop()
	for n := 1; ; n++ {
		says := "Waiting for a person's answer."
		if n > 1 {
			says = fmt.Sprintf("Still waiting for a person's answer, after %s.", permissions.SayDuration(time.Since(began).Round(time.Second)))
		}
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: says})
		if err != nil && ctx.Err() == nil {
			lost()
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}
