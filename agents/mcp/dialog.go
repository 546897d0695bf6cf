package mcp

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/permissions"
)

// rounds is the first revision of the protocol in which a client is asked by the result of its call, and calls again with
// what its person said.
const rounds = "2026-07-28"

// dialog is one call's question as the client's own dialog, beside the people it is put to. Where the client has no
// dialogs it only asks. It is shown what permits nothing, when the desk says that it may be answered there.
type dialog struct {
	server  *Server
	request *mcp.CallToolRequest
	caller  permissions.Caller
	about   question
	shows   shows
	back    permissions.ID // the request that this call comes back to with what its person said; empty: none

	form *mcp.ElicitParams // what the client is to be asked now, by the result of this call
	note string            // what is to be told with the outcome
}

// shows is how a client shows dialogs.
type shows int

const (
	never     shows = iota
	byCalling       // it is called meanwhile, over the same connection
	byResult        // the result of its call says what to ask, see rounds
)

// dialog is that of a call that asks q.
func (s *Server) dialog(r *mcp.CallToolRequest, v *visit, caller permissions.Caller, about question, q permissions.Request) *dialog {
	d := &dialog{server: s, request: r, caller: caller, about: about}
	can := r.ClientCapabilities()
	if !q.TakesReplies() || can == nil || can.Elicitation == nil || (can.Elicitation.Form == nil && can.Elicitation.URL != nil) {
		return d
	}
	revision, _ := r.Params.Meta[mcp.MetaKeyProtocolVersion].(string) // of this call, not of a session
	switch {
	case revision >= rounds:
		d.shows = byResult
		d.back, _ = s.seal.open(r.Params.RequestState, about)
	case v.talks:
		d.shows = byCalling
	}
	return d
}

// ask is [agents.Asker] with the dialog beside it. Where the client is to be asked by the result of its call, the request
// comes back as it stands.
func (d *dialog) ask(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	desk := d.server.o.Desk
	if d.shows == never {
		return desk.Ask(ctx, d.caller, q)
	}
	if d.back != "" {
		return d.comeBack(ctx, q)
	}
	s, err := desk.Begin(ctx, d.caller, q)
	q.ID = cmp.Or(s.Request.ID, q.ID)
	switch {
	case err != nil: // Ask tries longer, or says it again
		return desk.Ask(ctx, d.caller, q)
	case s.Request.State != permissions.Pending:
		return s.Request, nil
	}
	form, whole := formOf(s.Request, d.request.ProtocolVersion())
	switch {
	case !s.Editor || !whole:
		return desk.Ask(ctx, d.caller, q)
	case d.shows == byResult:
		d.form = form
		return s.Request, nil
	}
	showing, withdraw := context.WithCancel(ctx)
	var works sync.WaitGroup
	works.Go(func() { d.show(showing, s.Request, form) })
	defer works.Wait()
	defer withdraw()
	return desk.Ask(ctx, d.caller, q)
}

// show calls the client, until ctx ends, which withdraws the dialog.
func (d *dialog) show(ctx context.Context, r permissions.Request, form *mcp.ElicitParams) {
	said, err := d.request.Session.Elicit(ctx, form)
	switch {
	case err == nil: // also when somebody was first in the same moment: then it is told to be late
		d.take(ctx, r, said)
	case ctx.Err() == nil: // it stays with the people
		d.server.o.Log.Debug("the client shows no dialog", "request", r.ID, "err", err)
	}
}

// comeBack is the call after a dialog: what its person said counts, if it is in time, and nothing that was said is kept for
// another question. When they said nothing it goes on waiting for the others, and there is no second dialog.
func (d *dialog) comeBack(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	s, err := d.server.o.Desk.Find(ctx, d.caller, d.back)
	if err != nil {
		return permissions.Request{ID: d.back}, err
	}
	if said, ok := d.request.Params.InputResponses[member].(*mcp.ElicitResult); ok {
		d.take(ctx, s.Request, said)
	}
	if s.Request.State != permissions.Pending {
		return s.Request, nil
	}
	q.ID = d.back
	d.server.vigils.end(d.back) // this call takes the place
	return d.server.o.Desk.Ask(ctx, d.caller, q)
}

// take answers r by what a dialog brought, if that is one of its options. It is seen to its end, whoever leaves.
func (d *dialog) take(ctx context.Context, r permissions.Request, said *mcp.ElicitResult) {
	a, chosen := chosenOf(r, said)
	if !chosen {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer done()
	_, err := d.server.o.Desk.Reply(ctx, d.caller, r.ID, a, r.Digest)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) {
		d.note = "In the editor: " + refusal.Text
	} else if err != nil {
		d.server.o.Log.Warn("what was answered in an editor is lost; the question stands", "request", r.ID, "err", err)
	}
}

// asked is the result that has the client ask its person.
func (d *dialog) asked(r permissions.Request) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{member: d.form}, RequestState: d.server.seal.of(r.ID, d.about),
	}
}
