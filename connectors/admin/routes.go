package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// routes are the server's routes. [authenticator.admit] authenticates the caller before each of them.
type routes struct {
	*Connector
	srv *server.Server
}

// serve registers a route. handle returns the response's body; its error becomes a refusal.
func serve[I, O any](r *routes, o huma.Operation, handle func(context.Context, *I) (O, error)) {
	server.Register(r.srv, o, handle)
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

// finishInBackground is a handler of what is finished once it has begun, however many rows that changes. If that takes longer than a call
// may, the answer says so.
func finishInBackground[I, O any](handle func(context.Context, *I) (O, error)) func(context.Context, *I) (O, error) {
	return func(ctx context.Context, in *I) (out O, err error) {
		answered := make(chan error, 1)
		var told O
		go func() {
			defer func() {
				if p := recover(); p != nil {
					answered <- fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			var err error
			told, err = handle(context.WithoutCancel(ctx), in)
			answered <- err
		}()
		late := time.NewTimer(wire.MaxWait)
		defer late.Stop()
		select {
		case err := <-answered:
			return told, err
		case <-late.C:
			return out, wire.NewProblem(http.StatusAccepted, wire.CodeGoesOn,
				"There is so much to change that it takes longer than a call may, and it goes on. Say the same again to learn how it ended.")
		}
	}
}

func (r *routes) register() {
	r.srv.API.UseMiddleware(newGate(r.options.Key).admit)
	r.registerRequests()
	r.registerGrants()
	r.registerTokens()
	r.registerSessions()
	r.registerAudit()
	r.registerEvents()
	r.registerStatus()
	r.registerPairing()
	r.registerSuspended()
	r.registerLocks()
	r.registerAway()
	r.registerChat()
}

type named struct {
	ID string `path:"id" maxLength:"64" doc:"an id or a code"`
}

func (r *routes) registerRequests() {
	serve(r, get("list", "/v1/requests", "List what is pending for the caller, oldest first, without what is long"), r.list)
	show := get("show", "/v1/requests/{id}", "Show one request by its id or its code")
	serve(r, show, func(ctx context.Context, in *named) (wire.Request, error) {
		found, err := r.engine.Show(ctx, who(ctx), in.ID)
		return requestOrError(r.engine.WithRecentActivity(ctx, who(ctx), found), err)
	})
	serve(r, get("history", "/v1/history", "List what is settled, oldest first, without details"), r.history)
	huma.Register(r.srv.API, post("decide", "/v1/requests/{id}/decision", "Decide a request"), r.decide)
	cancel := post("cancel", "/v1/requests/{id}/cancel", "Withdraw a pending request")
	serve(r, cancel, func(ctx context.Context, in *named) (wire.Request, error) {
		return requestOrError(r.engine.Cancel(ctx, who(ctx), in.ID))
	})
	void := post("void", "/v1/requests/{id}/void", "Take back an approval that was not used")
	serve(r, void, func(ctx context.Context, in *named) (wire.Request, error) {
		return requestOrError(r.engine.Void(ctx, who(ctx), in.ID))
	})
	huma.Register(r.srv.API, get("inbox", "/v1/inbox", "Follow what is put to the caller (server-sent events)"), r.inbox)
}

type listInput struct {
	State permissions.State `query:"state" enum:"pending" default:"pending"`
	After permissions.ID    `query:"after" maxLength:"64" doc:"the last id of the page before, or -N for the last N"`
	Limit int               `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// listStep is how many requests, with all their data, are in memory at a time.
const listStep = 64

func (r *routes) list(ctx context.Context, in *listInput) ([]wire.Request, error) {
	all := []wire.Request{}
	for after := in.After; len(all) < in.Limit; {
		step := min(listStep, in.Limit-len(all))
		found, err := r.engine.Pending(ctx, who(ctx), after, step)
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

type historyInput struct {
	Since time.Time      `query:"since" doc:"decided no earlier"`
	Agent string         `query:"agent" maxLength:"128" doc:"of that caller alone"`
	After permissions.ID `query:"after" maxLength:"64" doc:"the last id of the page before"`
	Limit int            `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

func (r *routes) history(ctx context.Context, in *historyInput) ([]wire.Request, error) {
	of := permissions.HistoryQuery{Since: in.Since, Caller: in.Agent, After: in.After, Limit: in.Limit}
	found, err := r.engine.History(ctx, who(ctx), of)
	return wire.Map(found, func(q permissions.Request) wire.Request {
		q.Details = ""
		return wire.From(permissions.RequestView{Request: q}, true)
	}), err
}

func requestOrError(s permissions.RequestView, err error) (wire.Request, error) {
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
		return nil, r.srv.Refuse(permissions.Invalid(err))
	}
	d.From = who(ctx)
	after, err := r.engine.OnPermission(ctx, d)
	if err == nil {
		return &struct{ Body wire.Request }{r.withCopies(ctx, after)}, nil
	}
	refused := r.srv.Refuse(err)
	var p *wire.Problem
	if after.ID != "" && errors.As(refused, &p) {
		w := r.withCopies(ctx, after)
		p.Request = &w
	}
	return nil, refused
}

// withCopies adds the copies and waiters to q. The decision is returned even if they cannot be read.
func (r *routes) withCopies(ctx context.Context, q permissions.Request) wire.Request {
	s, err := r.engine.View(ctx, q)
	if err != nil {
		s = permissions.RequestView{Request: q}
	}
	return wire.From(s, true)
}

type auditInput struct {
	After int64 `query:"after" doc:"the last seq of the page before; below 0: from so many before the end on"`
	Limit int   `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
}

func (r *routes) registerAudit() {
	audit := long(get("audit", "/v1/audit", "List the audit; for the operator"))
	serve(r, audit, func(ctx context.Context, in *auditInput) ([]Entry, error) {
		found, err := r.engine.Audit(ctx, who(ctx), in.After, in.Limit)
		return wire.Map(found, FromEntry), err
	})
	serve(r, get("verify", "/v1/audit/verify", "Check every audit chain, tell their heads; 202 while that goes on"), r.verify)
}

func (r *routes) whoami(ctx context.Context, _ *struct{}) (Me, error) {
	id := who(ctx)
	name, err := r.engine.Who(id)
	if err != nil {
		return Me{}, err
	}
	me := Me{Now: r.options.Now(), Name: name, UID: id.UID, Operator: id.Operator, Via: id.Via, StoppedBy: wire.OrNull(r.engine.StoppedBy())}
	me.Away = r.absence(name)
	if r.options.Zone != nil {
		me.Timezone = zoneName(r.options.Zone(name))
	}
	if p, err := r.engine.Person(id); err == nil {
		me.Language = p.Language
	}
	return me, nil
}

type decision struct {
	Answer    permissions.Answer `json:"answer,omitzero" maxLength:"64" doc:"the id of an option, or other: the comment answers a question"`
	Call      int                `json:"call,omitzero" minimum:"0" doc:"of a step; 0 for all that are open"`
	Comment   string             `json:"comment,omitzero" maxLength:"2000" doc:"the reason, or with other the answer"`
	Digest    string             `json:"digest,omitzero" doc:"of what was shown"`
	Really    bool               `json:"really,omitzero" doc:"the second yes of high risk"`
	Rule      string             `json:"rule,omitzero" maxLength:"16" doc:"of allow_rule: the name of the proposed rule"`
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
		Answer: b.Answer, Call: b.Call, Comment: b.Comment, Really: b.Really, Default: b.Defaulted, Rule: b.Rule,
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
	b = decision{Answer: d.Answer, Call: d.Call, Comment: d.Comment, Really: d.Really, Defaulted: d.Default, Rule: d.Rule}
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
	// Now is the time by the clock that the daemon goes by: with PostgreSQL, the database's.
	Now time.Time `json:"now"`
	// StoppedBy is who stopped everything, or null.
	StoppedBy *string `json:"stopped_by"`
	// Timezone is the IANA name of their time zone, or null if none is configured.
	Timezone *string `json:"timezone"`
	// Away is their absence, or null.
	Away *Absence `json:"away"`
	// Language is the code of the language that they read, as in de; empty if none is known.
	Language i18n.Language `json:"language"`
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
	Code    string            `json:"code,omitzero" doc:"of that request, if it is kept"`
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
		Chain: e.Chain, Seq: e.Seq, At: e.At.UTC(), Type: e.Type, Request: wire.OrNull(e.Request), Code: e.Code,
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
	return permissions.Entry{Chain: e.Chain, Seq: e.Seq, Prev: prev, Hash: hash, Code: e.Code, Record: permissions.Record{
		Type: e.Type, At: e.At, Request: wire.Value(e.Request), Actor: wire.Value(e.Actor), Via: wire.Value(e.Via), Detail: e.Detail,
	}}, nil
}

// revoked is the JSON form of a revoked grant and of what had run under it.
type revoked struct {
	Grant wire.Grant     `json:"grant"`
	Ran   []wire.Request `json:"ran" doc:"what was not asked because of it, the newest first"`
}

// giving is a rule for the caller of a request.
type giving struct {
	Request permissions.ID `json:"request" maxLength:"64" doc:"an approved request that the rule covers something of"`
	Allow   []string       `json:"allow" minItems:"1" maxItems:"5" doc:"patterns, as in the configuration"`
	In      string         `json:"in" doc:"the folder that its calls are in"`
}

type grantsInput struct {
	After permissions.ID `query:"after" pattern:"^(-[0-9]{1,9}|[0-9A-Za-z]{0,64})$" doc:"the last id of the page before, or -N for the last N"`
	Limit int            `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}

func (r *routes) registerGrants() {
	list := get("grants", "/v1/grants", "List the grants in force that the caller may see, oldest first")
	serve(r, list, func(ctx context.Context, in *grantsInput) ([]wire.Grant, error) {
		found, err := r.engine.Grants(ctx, who(ctx), in.After, in.Limit)
		return wire.Map(found, wire.FromGrant), err
	})
	give := post("give", "/v1/grants", "Give the caller of an approved request a rule that was suggested")
	serve(r, give, func(ctx context.Context, in *struct{ Body giving }) (wire.Grant, error) {
		given, err := r.engine.GiveRule(ctx, who(ctx), in.Body.Request, in.Body.Allow, in.Body.In)
		return wire.FromGrant(given), err
	})
	revoke := remove("revoke", "/v1/grants/{id}", "Take back a grant, and tell what ran under it")
	serve(r, revoke, func(ctx context.Context, in *idInput) (revoked, error) {
		took, err := r.engine.Revoke(ctx, who(ctx), in.ID)
		return revokedOf(took), err
	})
	stop := long(post("stop", "/v1/stop-all", "Cancel all that is pending, and refuse what is new"))
	serve(r, stop, finishInBackground(func(ctx context.Context, _ *struct{}) (stopped, error) {
		n, err := r.engine.StopAll(ctx, who(ctx))
		return stopped{Cancelled: n}, err
	}))
	resume := post("resume", "/v1/resume", "End what stop-all began")
	serve(r, resume, func(ctx context.Context, _ *struct{}) (struct{}, error) {
		return struct{}{}, r.engine.Resume(ctx, who(ctx))
	})
	stopAgent := long(post("stop-agent", "/v1/agents/{name}/stop", "Deny what an agent waits for, and refuse what it asks"))
	serve(r, stopAgent, finishInBackground(func(ctx context.Context, in *personInput) (StoppedAgent, error) {
		l, n, err := r.engine.StopAgent(ctx, who(ctx), in.Name)
		return stoppedAgent(l, n), err
	}))
	serve(r, post("quiet-agent", "/v1/agents/{name}/quiet", "Make an agent's cards silent for a while, and tell then what it asked"), r.quiet)
	serve(r, post("trust-agent", "/v1/agents/{name}/trust", "Let an agent do for a while what stays in its folder"), r.trust)
	resumeAgent := post("resume-agent", "/v1/agents/{name}/resume", "Let a stopped agent go on")
	serve(r, resumeAgent, func(ctx context.Context, in *personInput) (StoppedAgent, error) {
		l, err := r.engine.ResumeAgent(ctx, who(ctx), in.Name)
		return stoppedAgent(l, 0), err
	})
}

type trusting struct {
	Name string `path:"name" maxLength:"200"`
	Body struct {
		For  string `json:"for" maxLength:"64" doc:"as in 30m, at most 2h"`
		Sure bool   `json:"sure,omitzero" doc:"the second step, after one without that"`
	}
}

type quieting struct {
	Name string `path:"name" maxLength:"200"`
	Body struct {
		For string `json:"for" maxLength:"64" doc:"as in 1h, at most 24h; 0s ends it"`
	}
}

type quieted struct {
	Until time.Time `json:"until"`
}

func (r *routes) quiet(ctx context.Context, in *quieting) (quieted, error) {
	span, err := time.ParseDuration(in.Body.For)
	if err != nil {
		return quieted{}, permissions.Invalid(err)
	}
	until, err := r.engine.QuietAgent(ctx, who(ctx), in.Name, span)
	return quieted{until.UTC()}, err
}

func (r *routes) trust(ctx context.Context, in *trusting) (wire.Grant, error) {
	span, err := time.ParseDuration(in.Body.For)
	if err != nil {
		return wire.Grant{}, permissions.Invalid(err)
	}
	given, err := r.engine.TrustAgent(ctx, who(ctx), in.Name, span, in.Body.Sure)
	return wire.FromGrant(given), err
}

func revokedOf(took permissions.Revoked) revoked {
	return revoked{wire.FromGrant(took.Grant), wireRequests(took.Ran)}
}

// Void withdraws an unused approval, by its request's id or code, and the grants that it created.
func (c *Client) Void(ctx context.Context, _ connectors.Identity, name string) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, requestPath(name)+"/void")
}

// Grants lists at most limit grants in force after one that this account may see, oldest first; 0 is the daemon's limit.
func (c *Client) Grants(ctx context.Context, _ connectors.Identity, after permissions.ID, limit int) ([]permissions.Grant, error) {
	return fetchEach(ctx, c, "/v1/grants"+page("", after, limit), 0, wire.Grant.Permissions)
}

// GiveRule gives the caller of an approved request the rule with one pattern, for calls in a folder.
func (c *Client) GiveRule(ctx context.Context, request permissions.ID, allow, in string) (permissions.Grant, error) {
	given, err := ask[wire.Grant](ctx, c, http.MethodPost, "/v1/grants", giving{request, []string{allow}, in}, 0)
	if err != nil {
		return permissions.Grant{}, err
	}
	return given.Permissions()
}

// Revoke revokes a grant and returns what ran under it, newest first.
func (c *Client) Revoke(ctx context.Context, _ connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	told, err := ask[revoked](ctx, c, http.MethodDelete, "/v1/grants/"+url.PathEscape(string(grant)), nil, 0)
	if err != nil {
		return permissions.Revoked{}, err
	}
	return told.Revoked()
}

func (told revoked) Revoked() (permissions.Revoked, error) {
	g, err := told.Grant.Permissions()
	if err != nil {
		return permissions.Revoked{}, err
	}
	ran, err := wire.TryMap(told.Ran, wire.Request.Permissions)
	return permissions.Revoked{Grant: g, Ran: ran}, err
}

type stopped struct {
	Cancelled int `json:"cancelled"`
}

// StopAll cancels everything that is pending, returns how many requests that was, and refuses new requests until [Client.Resume].
func (c *Client) StopAll(ctx context.Context, _ connectors.Identity) (cancelled int, err error) {
	told, err := ask[stopped](ctx, c, http.MethodPost, "/v1/stop-all", nil, wire.MaxWait) // much may be pending
	return told.Cancelled, err
}

// StoppedAgent is the JSON form of the stop of an agent, also of one that just ended.
type StoppedAgent struct {
	Agent     string    `json:"agent" doc:"its proven name"`
	StoppedAt time.Time `json:"stopped_at"`
	StoppedBy string    `json:"stopped_by"`
	Via       string    `json:"via"`
	Ended     int       `json:"ended,omitempty" doc:"how many of its requests were denied"`
	Unsaved   bool      `json:"unsaved,omitempty" doc:"it could not be stored yet: a restart before it is forgets it"`
}

func stoppedAgent(l permissions.Lock, ended int) StoppedAgent {
	return StoppedAgent{l.Agent(), l.At.UTC(), l.By, l.Via, ended, l.Unsaved != nil}
}

func (s StoppedAgent) lock() permissions.Lock {
	return permissions.Lock{Person: permissions.StopOf(s.Agent), At: s.StoppedAt, By: s.StoppedBy, Via: s.Via}
}

func agentPath(name, verb string) string { return "/v1/agents/" + url.PathEscape(name) + "/" + verb }

// StopAgent is that of [connectors.Inbound]. The identity is ignored: the socket proves it.
func (c *Client) StopAgent(ctx context.Context, _ connectors.Identity, name string) (permissions.Lock, int, error) {
	told, err := ask[StoppedAgent](ctx, c, http.MethodPost, agentPath(name, "stop"), nil, wire.MaxWait)
	return told.lock(), told.Ended, err
}

// QuietAgent is that of [connectors.Inbound].
func (c *Client) QuietAgent(ctx context.Context, _ connectors.Identity, name string, span time.Duration) (time.Time, error) {
	var in quieting
	in.Body.For = span.String()
	told, err := ask[quieted](ctx, c, http.MethodPost, agentPath(name, "quiet"), in.Body, 0)
	return told.Until, err
}

// TrustAgent is that of [connectors.Inbound].
func (c *Client) TrustAgent(
	ctx context.Context, _ connectors.Identity, name string, span time.Duration, sure bool,
) (permissions.Grant, error) {
	var in trusting
	in.Body.For, in.Body.Sure = span.String(), sure
	given, err := ask[wire.Grant](ctx, c, http.MethodPost, agentPath(name, "trust"), in.Body, 0)
	if err != nil {
		return permissions.Grant{}, err
	}
	return given.Permissions()
}

// ResumeAgent is that of [connectors.Inbound].
func (c *Client) ResumeAgent(ctx context.Context, _ connectors.Identity, name string) (permissions.Lock, error) {
	told, err := ask[StoppedAgent](ctx, c, http.MethodPost, agentPath(name, "resume"), nil, 0)
	return told.lock(), err
}

// Resume ends a stop. Without one it changes nothing.
func (c *Client) Resume(ctx context.Context, _ connectors.Identity) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/v1/resume", nil, 0)
	return err
}
