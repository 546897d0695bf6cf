package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const longestDelay = time.Hour

// findWithin bounds the lookup of where a request was shown, so that it cannot delay an answer.
const findWithin = 500 * time.Millisecond

// routes are the calls available to agents. [gate.admit] has authenticated the caller.
type routes struct {
	requests Requests
	srv      *server.Server
	present  *presence
	log      *slog.Logger
}

func (r *routes) register() {
	server.RegisterDeferred(r.srv, huma.Operation{
		OperationID: "ask", Method: http.MethodPost, Path: "/v1/requests",
		Summary:      "Put a question to people",
		Description:  "Returns the request once it is settled, or as it stands when wait is over. Asking again joins it.",
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the server has read the body already
	}, r.ask)
	server.RegisterDeferred(r.srv, huma.Operation{
		OperationID: "read", Method: http.MethodGet, Path: "/v1/requests/{id}",
		Summary: "Read a request of the caller's, which uses nothing",
	}, r.read)
	server.Register(r.srv, huma.Operation{
		OperationID: "cancel", Method: http.MethodPost, Path: "/v1/requests/{id}/cancel",
		Summary: "Withdraw a pending request of the caller's",
	}, r.cancel)
	server.Register(r.srv, huma.Operation{
		OperationID: "recall", Method: http.MethodPost, Path: "/v1/recall",
		Summary: "Withdraw what a session of the caller's asks, with the reason",
	}, r.recall)
	server.Register(r.srv, huma.Operation{
		OperationID: "tell", Method: http.MethodPost, Path: "/v1/tell",
		Summary: "Have a person told something, which asks nothing",
		Description: "The caller's owner, or somebody whom a route may ask for the caller. It is stored, and sent as soon as a channel of " +
			"the person's takes it and their quiet hours are over.",
	}, r.tell)
	server.Register(r.srv, huma.Operation{
		OperationID: "answer", Method: http.MethodPost, Path: "/v1/requests/{id}/answer",
		Summary: "Answer a clarification, or a pause that continues, of the caller's, from the dialog of its own editor",
		Description: "Refused where connectors.editor is not switched on, and for whatever permits anything. " +
			"A request that may be answered so has editor: true.",
	}, r.answer)
}

type askInput struct {
	Call    string `header:"Daycared-Call" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$"`
	Request string `header:"Daycared-Request" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$"`
	Stays   string `header:"Daycared-Stays" maxLength:"64" doc:"so long the process that asks, on this machine, is there unless it is ended"`
	Body    wire.Ask
	RawBody []byte
}

// asking is a call that asks. While it waits, it holds no more than its text.
type asking struct {
	call, request, stays string
	text                 []byte
	read                 *wire.Ask // what text says; nil once the question was put
}

func (r *routes) ask(ctx context.Context, in *askInput) (server.Deferred[wire.Request], error) {
	wait, err := wire.ParseWait(in.Body.Wait)
	if err != nil {
		return nil, permissions.Invalid(err)
	}
	a := &asking{in.Call, in.Request, in.Stays, bytes.Clone(in.RawBody), &in.Body}
	until := time.Now().Add(wait)
	return func(begun func()) func() (wire.Request, error) {
		q, err := r.requests.AskDeferred(ctx, until, CallerOf(ctx), func() (permissions.Request, error) {
			defer begun()
			return a.question()
		})
		r.kept(ctx, a, q)
		return func() (wire.Request, error) { return r.settled(ctx, q, err) }
	}, nil
}

// kept stores which process waits for q, so that it survives a restart.
func (r *routes) kept(ctx context.Context, a *asking, q *permissions.Request) {
	work, done := context.WithTimeout(context.WithoutCancel(ctx), findWithin)
	defer done()
	for _, w := range r.present.note(ctx, a, q) {
		if err := r.requests.KeepProcess(work, CallerOf(ctx), w); err != nil {
			r.log.Warn("store waiting process: its request may outlive it across a restart", "request", w.Request, "err", err)
		}
	}
}

// question returns the question. It is rarely put again, and then read again.
func (a *asking) question() (permissions.Request, error) {
	read := a.read
	if a.read = nil; read == nil {
		read = new(wire.Ask)
		if err := wire.Decode(a.text, read); err != nil {
			return permissions.Request{}, err
		}
	}
	q, _, err := read.Question()
	q.Call, q.ID = a.call, permissions.ID(a.request)
	return q, err
}

// settled is the response to a call that waited.
func (r *routes) settled(ctx context.Context, q *permissions.Request, err error) (wire.Request, error) {
	waited := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) // only that is over
	if err != nil && (q.State != permissions.Pending || !waited) {
		return wire.Request{}, err // an answer that came with an error was not given to this call
	}
	return told(r.around(ctx, *q), nil)
}

// around adds where q was shown and who waits. The row stays the one that this call received, because a later one may have been
// decided for another call. Once ctx has ended, a settled request is not read, because reading collects the answer.
func (r *routes) around(ctx context.Context, q permissions.Request) permissions.RequestView {
	if ctx.Err() != nil && q.State != permissions.Pending {
		return permissions.RequestView{Request: q}
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), findWithin)
	defer cancel()
	s, err := r.requests.Find(brief, CallerOf(ctx), q.ID)
	if err != nil {
		s = permissions.RequestView{} // the answer counts even if the lookup fails
	}
	s.Request = q
	return s
}

type readInput struct {
	ID   string `path:"id" maxLength:"64"`
	Wait string `query:"wait" doc:"how long to wait for an answer, at most 50s"`
}

func (r *routes) read(ctx context.Context, in *readInput) (server.Deferred[wire.Request], error) {
	wait, err := wire.ParseWait(in.Wait)
	if err != nil {
		return nil, permissions.Invalid(err)
	}
	id := permissions.ID(in.ID)
	if wait == 0 {
		return server.Resolved(told(r.requests.Find(ctx, CallerOf(ctx), id)))
	}
	until := time.Now().Add(wait)
	return func(begun func()) func() (wire.Request, error) {
		begun()
		err := r.requests.WaitSettled(ctx, until, CallerOf(ctx), id)
		return func() (wire.Request, error) {
			if err != nil {
				return wire.Request{}, err
			}
			limited, cancel := context.WithDeadline(ctx, until)
			defer cancel()
			return told(r.requests.Await(limited, CallerOf(ctx), id)) // nothing to wait for any more
		}
	}, nil
}

func told(s permissions.RequestView, err error) (wire.Request, error) {
	if err != nil {
		return wire.Request{}, err
	}
	return wire.From(s, false), nil
}

type cancelInput struct {
	ID    string `path:"id" maxLength:"64"`
	Call  string `header:"Daycared-Call" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$" doc:"this call alone leaves, while others wait for it"`
	After string `query:"after" doc:"withdraw it after so long, such as 60s, unless somebody has asked the same by then, or waits for it"`
}

func (r *routes) cancel(ctx context.Context, in *cancelInput) (wire.Request, error) {
	caller, id := CallerOf(ctx), permissions.ID(in.ID)
	switch {
	case in.Call != "":
		return told(r.requests.LeaveOrCancel(ctx, caller, id, in.Call, ""))
	case in.After != "":
		after, err := time.ParseDuration(in.After)
		if err != nil || after < 0 || after > longestDelay {
			return wire.Request{}, permissions.Invalid(fmt.Errorf("after must be a duration from 0s to %s, such as 60s", longestDelay))
		}
		return told(r.requests.WithdrawLater(ctx, caller, id, after))
	}
	return told(r.requests.Withdraw(ctx, caller, id))
}

type recallInput struct{ Body permissions.Recall }

func (r *routes) recall(ctx context.Context, in *recallInput) (wire.Recalled, error) {
	input, err := permissions.CanonicalJSON(in.Body.Input)
	if err != nil {
		return wire.Recalled{}, permissions.Invalid(err)
	}
	in.Body.Input = input
	n, err := r.requests.Recall(ctx, CallerOf(ctx), in.Body)
	return wire.Recalled{Withdrawn: n}, err
}

type tellInput struct{ Body wire.Tell }

func (r *routes) tell(ctx context.Context, in *tellInput) (wire.Told, error) {
	to, err := r.requests.Tell(ctx, CallerOf(ctx), in.Body.To, in.Body.About, in.Body.CallerMessage)
	return wire.Told{To: to}, err
}

type answerInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body wire.Reply
}

func (r *routes) answer(ctx context.Context, in *answerInput) (wire.Request, error) {
	shown, err := permissions.ParseDigest(in.Body.Digest)
	if err != nil {
		return wire.Request{}, permissions.Invalid(err)
	}
	return told(r.requests.Reply(ctx, CallerOf(ctx), permissions.ID(in.ID), in.Body.Answer, shown))
}
