package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// routes are what deciders may call. Who calls is proven before any of them ([gate.admit]).
type routes struct {
	desk    Desk
	door    *wire.Door
	gate    gate
	inboxes *inboxes
	zone    func(name string) *time.Location // may be nil
	daemon  func() Daemon                    // may be nil
	end     func(by string)                  // ends the daemon; may be nil
}

func (r *routes) register() {
	get := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary}
	}
	post := func(id, path, summary string) huma.Operation {
		return huma.Operation{
			OperationID: id, Method: http.MethodPost, Path: path, Summary: summary,
			MaxBodyBytes: -1, BodyReadTimeout: -1, // the door has read the body already
		}
	}
	remove := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodDelete, Path: path, Summary: summary}
	}
	long := func(o huma.Operation) huma.Operation {
		o.Middlewares = huma.Middlewares{wire.WriteWithin(wire.LongPoll)}
		return o
	}
	api := r.door.API
	api.UseMiddleware(r.gate.admit)
	huma.Register(api, get("list", "/v1/requests", "List what is pending for the caller, oldest first"), r.list)
	huma.Register(api, get("show", "/v1/requests/{id}", "Show one request by its id or its code"), r.show)
	huma.Register(api, post("decide", "/v1/requests/{id}/decision", "Decide a request"), r.decide)
	huma.Register(api, post("cancel", "/v1/requests/{id}/cancel", "Withdraw a pending request"), r.cancel)
	huma.Register(api, long(get("audit", "/v1/audit", "List the audit; for the operator")), r.audit)
	huma.Register(api, long(get("verify", "/v1/audit/verify", "Check every audit chain, tell their heads")), r.verify)
	huma.Register(api, get("whoami", "/v1/whoami", "Tell who the caller is here"), r.whoami)
	huma.Register(api, get("inbox", "/v1/inbox", "Follow what is put to the caller (server-sent events)"), r.inbox)
	huma.Register(api, post("void", "/v1/requests/{id}/void", "Take back an approval that was not used"), r.void)
	huma.Register(api, get("grants", "/v1/grants", "List the grants in force that the caller may see"), r.grants)
	huma.Register(api, remove("revoke", "/v1/grants/{id}", "Take back a grant, and tell what ran under it"), r.revoke)
	huma.Register(api, long(post("stop", "/v1/stop-all", "Cancel all that is pending, and refuse what is new")), r.stop)
	huma.Register(api, post("resume", "/v1/resume", "End what stop-all began"), r.resume)
	huma.Register(api, get("tokens", "/v1/tokens", "List the tokens; for the operator"), r.tokens)
	huma.Register(api, post("token", "/v1/tokens", "Make a token, and tell its secret this once"), r.createToken)
	huma.Register(api, remove("forget", "/v1/tokens/{id}", "Revoke a token by its id, or all of a name"), r.revokeToken)
	huma.Register(api, get("sessions", "/v1/sessions", "List the sessions of the caller's agents"), r.sessions)
	huma.Register(api, get("session", "/v1/sessions/{id}", "Show one session, and what it waits for"), r.session)
	huma.Register(api, get("events", "/v1/events", "Follow what happens (server-sent events)"), r.events)
	r.registerHealth()
	r.registerStatus()
	r.registerPairing()
	r.registerSuspended()
	r.registerChat()
}

type named struct {
	ID string `path:"id" maxLength:"64" doc:"an id or a code"`
}

type row struct{ Body wire.Request }

type listInput struct {
	State permissions.State `query:"state" enum:"pending" default:"pending"`
	After permissions.ID    `query:"after" maxLength:"64" doc:"the last id of the page before"`
	Limit int               `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type rows struct{ Body []wire.Request }

func (r *routes) list(ctx context.Context, in *listInput) (*rows, error) {
	found, err := r.desk.Pending(ctx, who(ctx), in.After, in.Limit)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	out := &rows{Body: make([]wire.Request, len(found))}
	for i, s := range found {
		out.Body[i] = wire.From(s, true)
	}
	return out, nil
}

func (r *routes) show(ctx context.Context, in *named) (*row, error) {
	return r.standing(r.desk.Show(ctx, who(ctx), in.ID))
}

func (r *routes) cancel(ctx context.Context, in *named) (*row, error) {
	return r.standing(r.desk.Cancel(ctx, who(ctx), in.ID))
}

func (r *routes) standing(s permissions.Standing, err error) (*row, error) {
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &row{Body: wire.From(s, true)}, nil
}

type decideInput struct {
	ID   string `path:"id" maxLength:"64" doc:"an id or a code"`
	Body decision
}

func (r *routes) decide(ctx context.Context, in *decideInput) (*row, error) {
	d, err := in.Body.of(in.ID)
	if err != nil {
		return nil, r.door.Refuse(permissions.Invalid(err))
	}
	d.From = who(ctx)
	after, err := r.desk.OnPermission(ctx, d)
	if err == nil {
		w := r.around(ctx, after)
		return &row{Body: w}, nil
	}
	refused := r.door.Refuse(err)
	var p *wire.Problem
	if after.ID != "" && errors.As(refused, &p) {
		w := r.around(ctx, after)
		p.Request = &w
	}
	return nil, refused
}

// around is where q was shown and who waits; what was decided is told even when that cannot be found.
func (r *routes) around(ctx context.Context, q permissions.Request) wire.Request {
	s, err := r.desk.Stand(ctx, q)
	if err != nil {
		s = permissions.Standing{Request: q}
	}
	return wire.From(s, true)
}

type auditInput struct {
	After int64 `query:"after" minimum:"0" doc:"the last seq of the page before"`
	Limit int   `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
}

type entries struct{ Body []Entry }

func (r *routes) audit(ctx context.Context, in *auditInput) (*entries, error) {
	found, err := r.desk.Audit(ctx, who(ctx), in.After, in.Limit)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &entries{Body: fromEntries(found)}, nil
}

type headsOutput struct{ Body []Head }

func (r *routes) verify(ctx context.Context, _ *struct{}) (*headsOutput, error) {
	heads, err := r.desk.Verify(ctx, who(ctx))
	var refusal *permissions.Refusal
	switch {
	case err == nil:
		out := &headsOutput{Body: make([]Head, len(heads))}
		for i, h := range heads {
			out.Body[i] = Head{FromEntry(h.Entry), h.First, h.Entries}
		}
		return out, nil
	case errors.As(err, &refusal), errors.Is(err, permissions.ErrBroken), ctx.Err() != nil:
		return nil, r.door.Refuse(err)
	}
	return nil, wire.NewProblem(http.StatusConflict, wire.CodeChain, err.Error())
}

type meOutput struct{ Body Me }

func (r *routes) whoami(ctx context.Context, _ *struct{}) (*meOutput, error) {
	id := who(ctx)
	name, err := r.desk.Who(id)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	me := Me{Name: name, UID: id.UID, Operator: id.Operator, Via: id.Via, StoppedBy: orNull(r.desk.StoppedBy())}
	if r.zone != nil {
		me.Timezone = zoneName(r.zone(name))
	}
	return &meOutput{Body: me}, nil
}
