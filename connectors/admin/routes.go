package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// routes are the server's routes. [authenticator.admit] authenticates the caller before each of them.
type routes struct {
	desk    Operations
	door    *server.Server
	gate    authenticator
	inboxes *inboxes
	zone    func(name string) *time.Location // may be nil
	daemon  func() Daemon                    // may be nil
	end     func(by string)                  // begins the shutdown; may be nil
}

// serve registers a route. handle returns the response's body; its error becomes a refusal.
func serve[I, O any](r *routes, o huma.Operation, handle func(context.Context, *I) (O, error)) {
	huma.Register(r.door.API, o, func(ctx context.Context, in *I) (*struct{ Body O }, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, r.door.Refuse(err)
		}
		return &struct{ Body O }{out}, nil
	})
}

func get(id, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary}
}

func post(id, path, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Summary: summary,
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the server has read the body already
	}
}

func remove(id, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: http.MethodDelete, Path: path, Summary: summary}
}

// long is an operation that may wait long before it answers.
func long(o huma.Operation) huma.Operation {
	o.Middlewares = huma.Middlewares{server.WriteWithin(server.LongPoll)}
	return o
}

func (r *routes) register() {
	api := r.door.API
	api.UseMiddleware(r.gate.admit)
	serve(r, get("list", "/v1/requests", "List what is pending for the caller, oldest first, without what is long"), r.list)
	serve(r, get("show", "/v1/requests/{id}", "Show one request by its id or its code"), r.show)
	huma.Register(api, post("decide", "/v1/requests/{id}/decision", "Decide a request"), r.decide)
	serve(r, post("cancel", "/v1/requests/{id}/cancel", "Withdraw a pending request"), r.cancel)
	serve(r, long(get("audit", "/v1/audit", "List the audit; for the operator")), r.audit)
	serve(r, long(get("verify", "/v1/audit/verify", "Check every audit chain, tell their heads")), r.verify)
	serve(r, get("whoami", "/v1/whoami", "Tell who the caller is here"), r.whoami)
	huma.Register(api, get("inbox", "/v1/inbox", "Follow what is put to the caller (server-sent events)"), r.inbox)
	serve(r, post("void", "/v1/requests/{id}/void", "Take back an approval that was not used"), r.void)
	serve(r, get("grants", "/v1/grants", "List the grants in force that the caller may see"), r.grants)
	serve(r, remove("revoke", "/v1/grants/{id}", "Take back a grant, and tell what ran under it"), r.revoke)
	serve(r, long(post("stop", "/v1/stop-all", "Cancel all that is pending, and refuse what is new")), r.stop)
	serve(r, post("resume", "/v1/resume", "End what stop-all began"), r.resume)
	serve(r, get("tokens", "/v1/tokens", "List the tokens; for the operator"), r.tokens)
	serve(r, post("token", "/v1/tokens", "Make a token, and tell its secret this once"), r.createToken)
	serve(r, remove("forget", "/v1/tokens/{id}", "Revoke a token by its id, or all of a name"), r.revokeToken)
	serve(r, get("sessions", "/v1/sessions", "List the sessions of the caller's agents"), r.sessions)
	serve(r, get("session", "/v1/sessions/{id}", "Show one session, and what it waits for"), r.session)
	serve(r, post("debug", "/v1/sessions/{id}/debug", "Switch whether each state of a session's run is logged"), r.debug)
	serve(r, get("executions", "/v1/sessions/{id}/executions", "List the calls of a session, oldest first"), r.executions)
	serve(r, get("artifacts", "/v1/sessions/{id}/artifacts", "List what came of a session or of one of its calls, oldest first"), r.artifacts)
	events := get("events", "/v1/events", "Follow what happens (server-sent events)")
	events.Responses = map[string]*huma.Response{"200": {
		Description: "The data of each is an event", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: server.Events.Schema()}},
	}}
	api.OpenAPI().Extensions = map[string]any{"x-views": server.Events.Views}
	huma.Register(api, events, r.events)
	r.registerHealth()
	r.registerStatus()
	r.registerPairing()
	r.registerSuspended()
	r.registerLocks()
	r.registerChat()
}

type named struct {
	ID string `path:"id" maxLength:"64" doc:"an id or a code"`
}

type listInput struct {
	State permissions.State `query:"state" enum:"pending" default:"pending"`
	After permissions.ID    `query:"after" maxLength:"64" doc:"the last id of the page before"`
	Limit int               `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// listStep is how many requests, with all their data, are in memory at a time.
const listStep = 16

func (r *routes) list(ctx context.Context, in *listInput) ([]wire.Request, error) {
	all := []wire.Request{}
	for after := in.After; len(all) < in.Limit; {
		step := min(listStep, in.Limit-len(all))
		found, err := r.desk.Pending(ctx, who(ctx), after, step)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			after = s.Request.ID
			all = append(all, wire.Listed(s))
		}
		if len(found) < step {
			break
		}
	}
	return all, nil
}

func (r *routes) show(ctx context.Context, in *named) (wire.Request, error) {
	return told(r.desk.Show(ctx, who(ctx), in.ID))
}

func (r *routes) cancel(ctx context.Context, in *named) (wire.Request, error) {
	return told(r.desk.Cancel(ctx, who(ctx), in.ID))
}

func told(s permissions.RequestView, err error) (wire.Request, error) {
	if err != nil {
		return wire.Request{}, err
	}
	return wire.From(s, true), nil
}

type decideInput struct {
	ID   string `path:"id" maxLength:"64" doc:"an id or a code"`
	Body decision
}

func (r *routes) decide(ctx context.Context, in *decideInput) (*struct{ Body wire.Request }, error) {
	d, err := in.Body.of(in.ID)
	if err != nil {
		return nil, r.door.Refuse(permissions.Invalid(err))
	}
	d.From = who(ctx)
	after, err := r.desk.OnPermission(ctx, d)
	if err == nil {
		return &struct{ Body wire.Request }{r.around(ctx, after)}, nil
	}
	refused := r.door.Refuse(err)
	var p *wire.Problem
	if after.ID != "" && errors.As(refused, &p) {
		w := r.around(ctx, after)
		p.Request = &w
	}
	return nil, refused
}

// around adds the copies and waiters to q. The decision is returned even if they cannot be read.
func (r *routes) around(ctx context.Context, q permissions.Request) wire.Request {
	s, err := r.desk.View(ctx, q)
	if err != nil {
		s = permissions.RequestView{Request: q}
	}
	return wire.From(s, true)
}

type auditInput struct {
	After int64 `query:"after" minimum:"0" doc:"the last seq of the page before"`
	Limit int   `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
}

func (r *routes) audit(ctx context.Context, in *auditInput) ([]Entry, error) {
	found, err := r.desk.Audit(ctx, who(ctx), in.After, in.Limit)
	return wire.Each(found, FromEntry), err
}

func (r *routes) verify(ctx context.Context, _ *struct{}) ([]Head, error) {
	heads, err := r.desk.Verify(ctx, who(ctx))
	switch {
	case err == nil:
		return wire.Each(heads, func(h permissions.Head) Head {
			return Head{FromEntry(h.Entry), h.First, h.Entries, h.Unkeyed}
		}), nil
	case permissions.AsRefusal(err) != nil, errors.Is(err, permissions.ErrBroken), ctx.Err() != nil:
		return nil, err
	}
	return nil, wire.NewProblem(http.StatusConflict, wire.CodeChain, err.Error())
}

func (r *routes) whoami(ctx context.Context, _ *struct{}) (Me, error) {
	id := who(ctx)
	name, err := r.desk.Who(id)
	if err != nil {
		return Me{}, err
	}
	me := Me{Name: name, UID: id.UID, Operator: id.Operator, Via: id.Via, StoppedBy: wire.OrNull(r.desk.StoppedBy())}
	if r.zone != nil {
		me.Timezone = zoneName(r.zone(name))
	}
	return me, nil
}

// decision is the body of a decision.
type decision struct {
	Answer    permissions.Answer `json:"answer,omitzero" maxLength:"64" doc:"the id of an option, or other: the comment answers a question"`
	Call      int                `json:"call,omitzero" minimum:"0" doc:"of a step; 0 for all that are open"`
	Comment   string             `json:"comment,omitzero" maxLength:"2000" doc:"the reason, or with other the answer"`
	Digest    string             `json:"digest,omitzero" doc:"of what was shown"`
	Really    bool               `json:"really,omitzero" doc:"the second yes of high risk"`
	Defaulted bool               `json:"defaulted,omitzero" doc:"no valid answer in three tries; answer is not read"`
}

// of converts it to the decision about a request, named by id or code.
func (b decision) of(name string) (d connectors.Decision, err error) {
	if b.Answer != "" && b.Defaulted {
		return d, errors.New("a decision has an answer, or is defaulted, not both")
	}
	if b.Answer == "" && !b.Defaulted {
		return d, errors.New("a decision needs an answer, the id of one of the request's options")
	}
	d = connectors.Decision{
		Answer: b.Answer, Call: b.Call, Comment: b.Comment, Really: b.Really, Default: b.Defaulted,
	}
	if b.Digest != "" {
		if d.Shown, err = permissions.ParseDigest(b.Digest); err != nil {
			return d, err
		}
		if d.Shown == (permissions.Digest{}) {
			return d, errors.New("the digest is nobody's: leave it out, or send that of what was shown")
		}
	}
	if len(name) == permissions.CodeLength {
		d.Code = name
	} else {
		d.Request = permissions.ID(name)
	}
	return d, nil
}

// bodyOf returns the body that posts d, and the name of its request.
func bodyOf(d connectors.Decision) (b decision, name string) {
	b = decision{Answer: d.Answer, Call: d.Call, Comment: d.Comment, Really: d.Really, Defaulted: d.Default}
	if d.Shown != (permissions.Digest{}) {
		b.Digest = d.Shown.String()
	}
	if d.Request != "" {
		return b, string(d.Request)
	}
	return b, d.Code
}

// Me is a caller's identity here.
type Me struct {
	Name     string `json:"name"`
	UID      int    `json:"uid"`
	Operator bool   `json:"operator"`
	Via      string `json:"via"`
	// StoppedBy is who stopped everything, or null.
	StoppedBy *string `json:"stopped_by"`
	// Timezone is the IANA name of their time zone, or null if none is configured.
	Timezone *string `json:"timezone"`
}

// Location is the caller's time zone; without a known one, this process's.
func (m Me) Location() *time.Location {
	if m.Timezone == nil {
		return time.Local
	}
	zone, err := time.LoadLocation(*m.Timezone)
	if err != nil {
		return time.Local
	}
	return zone
}

// zoneName is the IANA name of a zone, or null.
func zoneName(zone *time.Location) *string {
	if zone == nil || zone == time.Local {
		return nil
	}
	return wire.OrNull(zone.String())
}

// Entry is the JSON form of an audit entry.
type Entry struct {
	Chain   string            `json:"chain"`
	Seq     int64             `json:"seq"`
	At      time.Time         `json:"at"`
	Type    permissions.Type  `json:"type"`
	Request *permissions.ID   `json:"request"`
	Actor   *string           `json:"actor"`
	Via     *string           `json:"via"`
	Detail  map[string]string `json:"detail"`
	Prev    string            `json:"prev"`
	Hash    string            `json:"hash"`
}

// FromEntry converts an audit entry.
func FromEntry(e permissions.Entry) Entry {
	detail := e.Detail
	if detail == nil {
		detail = map[string]string{}
	}
	return Entry{
		Chain: e.Chain, Seq: e.Seq, At: e.At.UTC(), Type: e.Type, Request: wire.OrNull(e.Request),
		Actor: wire.OrNull(e.Actor), Via: wire.OrNull(e.Via), Detail: detail, Prev: e.Prev.String(), Hash: e.Hash.String(),
	}
}

// Head is the JSON form of the last entry of a verified chain, and of how much of the chain is kept.
type Head struct {
	Entry
	First   int64 `json:"first" doc:"the seq of the first entry that is kept"`
	Entries int   `json:"entries" doc:"how many are kept; there are gaps where the store was restored"`
	Unkeyed int64 `json:"unkeyed" doc:"the last entry that the audit key did not key, but seals as it was then; 0: there is none"`
}

// Permissions converts it back.
func (e Entry) Permissions() (permissions.Entry, error) {
	prev, err := permissions.ParseDigest(e.Prev)
	if err != nil {
		return permissions.Entry{}, err
	}
	hash, err := permissions.ParseDigest(e.Hash)
	if err != nil {
		return permissions.Entry{}, err
	}
	return permissions.Entry{Chain: e.Chain, Seq: e.Seq, Prev: prev, Hash: hash, Record: permissions.Record{
		Type: e.Type, At: e.At, Request: wire.Value(e.Request), Actor: wire.Value(e.Actor), Via: wire.Value(e.Via), Detail: e.Detail,
	}}, nil
}
