package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// The headers by which a call that asks again finds its place.
const (
	headerCall    = "Daycared-Call"    // the call's own name for itself
	headerRequest = "Daycared-Request" // the id it was told, or proposes
)

// findWithin bounds the look for where a request was shown, which must not keep back an answer.
const findWithin = 500 * time.Millisecond

// routes are what agents may call. Who calls is proven before any of them ([gate.admit]).
type routes struct {
	desk Desk
	door *wire.Door
}

func (r *routes) register() {
	waiting := huma.Middlewares{wire.WriteWithin(wire.LongPoll)}
	huma.Register(r.door.API, huma.Operation{
		OperationID: "ask", Method: http.MethodPost, Path: "/v1/requests", Middlewares: waiting,
		Summary:      "Put a question to people",
		Description:  "Returns the request once it is settled, or as it stands when wait is over. Asking again joins it.",
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the door has read the body already
	}, r.ask)
	huma.Register(r.door.API, huma.Operation{
		OperationID: "read", Method: http.MethodGet, Path: "/v1/requests/{id}", Middlewares: waiting,
		Summary: "Read a request of the caller's, which uses nothing",
	}, r.read)
	huma.Register(r.door.API, huma.Operation{
		OperationID: "cancel", Method: http.MethodPost, Path: "/v1/requests/{id}/cancel",
		Summary: "Withdraw a pending request of the caller's",
	}, r.cancel)
	huma.Register(r.door.API, huma.Operation{
		OperationID: "answer", Method: http.MethodPost, Path: "/v1/requests/{id}/answer",
		Summary: "Answer a clarification, or a pause that continues, of the caller's, from the dialog of its own editor",
		Description: "Refused where connectors.editor is not switched on, and for whatever permits anything. " +
			"A request that may be answered so has editor: true.",
	}, r.answer)
}

type askInput struct {
	Call    string `header:"Daycared-Call" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$"`
	Request string `header:"Daycared-Request" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$"`
	Body    wire.Ask
}

type row struct{ Body wire.Request }

func (r *routes) ask(ctx context.Context, in *askInput) (*row, error) {
	q, wait, err := in.question()
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	settled := new(permissions.Request)
	*settled, err = r.desk.Ask(limited, CallerOf(ctx), *q)
	return r.told(ctx, settled, err)
}

// question is what is asked, and how long the call waits. It is not on the stack of the call, which is kept meanwhile.
func (in *askInput) question() (*permissions.Request, time.Duration, error) {
	q, wait, err := in.Body.Question()
	q.Call, q.ID = in.Call, permissions.ID(in.Request)
	return &q, wait, err
}

func (r *routes) told(ctx context.Context, settled *permissions.Request, err error) (*row, error) {
	if err != nil && (settled.State != permissions.Pending || !over(err)) {
		return nil, r.door.Refuse(err) // an answer that came with an error was not given to this call
	}
	return &row{Body: wire.From(r.around(ctx, *settled), false)}, nil
}

// around is where q was shown and who waits. The row stays the one that this call was given: a later one may have been
// decided for another call. An answer that this caller does not wait for any more is not looked at, since looking is
// collecting.
func (r *routes) around(ctx context.Context, q permissions.Request) permissions.Standing {
	if ctx.Err() != nil && q.State != permissions.Pending {
		return permissions.Standing{Request: q}
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), findWithin)
	defer cancel()
	s, err := r.desk.Find(brief, CallerOf(ctx), q.ID)
	if err != nil {
		s = permissions.Standing{} // the answer counts, wherever it was shown
	}
	s.Request = q
	return s
}

type readInput struct {
	ID   string `path:"id" maxLength:"64"`
	Wait string `query:"wait" doc:"how long to wait for an answer, at most 50s"`
}

func (r *routes) read(ctx context.Context, in *readInput) (*row, error) {
	wait, err := wire.ParseWait(in.Wait)
	if err != nil {
		return nil, r.door.Refuse(permissions.Invalid(err))
	}
	read := r.desk.Find
	if wait > 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		ctx, read = limited, r.desk.Await
	}
	return r.standing(read(ctx, CallerOf(ctx), permissions.ID(in.ID)))
}

type cancelInput struct {
	ID   string `path:"id" maxLength:"64"`
	Call string `header:"Daycared-Call" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$" doc:"this call alone leaves, while others wait for the same"`
}

func (r *routes) cancel(ctx context.Context, in *cancelInput) (*row, error) {
	if in.Call != "" {
		return r.standing(r.desk.Forgo(ctx, CallerOf(ctx), permissions.ID(in.ID), in.Call))
	}
	return r.standing(r.desk.Withdraw(ctx, CallerOf(ctx), permissions.ID(in.ID)))
}

type answerInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body wire.Reply
}

func (r *routes) answer(ctx context.Context, in *answerInput) (*row, error) {
	shown, err := permissions.ParseDigest(in.Body.Digest)
	if err != nil {
		return nil, r.door.Refuse(permissions.Invalid(err))
	}
	return r.standing(r.desk.Reply(ctx, CallerOf(ctx), permissions.ID(in.ID), in.Body.Answer, shown))
}

func (r *routes) standing(s permissions.Standing, err error) (*row, error) {
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &row{Body: wire.From(s, false)}, nil
}

// over tells whether an error only says that the waiting ended.
func over(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
