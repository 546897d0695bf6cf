package mcp

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

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
func (s *Server) dialog(r *mcp.CallToolRequest, v *connection, caller permissions.Caller, about question, q permissions.Request) *dialog {
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
	said, err := d.request.Session.Elicit(withdrawal{ctx}, form)
	switch {
	case err == nil: // also when somebody was first in the same moment: then it is told to be late
		d.take(ctx, r, said)
	case ctx.Err() == nil: // it stays with the people
		d.server.o.Log.Debug("the client shows no dialog", "request", r.ID, "err", err)
	}
}

// withdrawal is a context whose end says to the client why its dialog is withdrawn.
type withdrawal struct{ context.Context } //nolint:containedctx // it is one

var errNoMore = errors.New("the question is not open here any more")

// Err is [context.Context]'s.
func (w withdrawal) Err() error {
	if w.Context.Err() == nil {
		return nil
	}
	return errNoMore
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
	d.server.hold(d.caller, d.back, false) // this call takes the place
	return d.server.o.Desk.Ask(ctx, d.caller, q)
}

// hold keeps the place of a client that shows a dialog, or gives it up. Where that fails people are told that nobody waits, which does
// no harm.
func (s *Server) hold(caller permissions.Caller, id permissions.ID, held bool) {
	ctx, done := context.WithTimeout(context.Background(), storeTime)
	defer done()
	if err := s.o.Desk.Hold(ctx, caller, id, held); err != nil {
		s.o.Log.Debug("a client's place is not kept", "request", id, "err", err)
	}
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
	if refusal := permissions.AsRefusal(err); refusal != nil {
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

// stateToken makes what a client brings back after a dialog something that only we can have given it, for that question of that
// caller: a dialog that was never asked for answers nothing. Its key is as old as the process; after a restart the question
// is simply shown again.
type stateToken struct{ key []byte }

func newStateToken() stateToken {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return stateToken{key}
}

// of is the sealed id of a request.
func (s stateToken) of(id permissions.ID, about question) string {
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(s.sum(id, about))
}

// open is the id that was sealed for that question; ok is false for anything else.
func (s stateToken) open(sealed string, about question) (id permissions.ID, ok bool) {
	name, sum, _ := strings.Cut(sealed, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if id = permissions.ID(name); err != nil || !hmac.Equal(given, s.sum(id, about)) {
		return "", false
	}
	return id, true
}

func (s stateToken) sum(id permissions.ID, about question) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(string(id) + "\x00" + about.caller + "\x00"))
	h.Write(about.digest[:])
	return h.Sum(nil)
}

const (
	member = "answer" // the one thing that a dialog asks for, and the name of the dialog itself
	// mostShown is how many characters a dialog has at most. What has more is not shown there at all, rather than in part.
	mostShown = 6000
	titled    = "2025-11-25" // the first revision in which options have titles
)

// formOf is a request as a client's dialog; whole is false where it does not fit one. An agent's words are marked line by
// line, and what cannot be seen in them is spelled out.
func formOf(r permissions.Request, revision string) (form *mcp.ElicitParams, whole bool) {
	lines := []string{"daycared: " + spelled(r.Who()) + " asks you"}
	lines = append(lines, quoted(r.Message)...)
	if r.Details != "" {
		lines = append(lines, "details:")
		lines = append(lines, quoted(r.Details)...)
	}
	silence := "the first option is taken"
	if r.Kind != permissions.KindClarification {
		silence = "it goes on"
	}
	lines = append(lines, fmt.Sprintf("It was put to %s as well; the first answer counts. Without one %s after %s.",
		strings.Join(r.Asked, ", "), silence, permissions.SayDuration(r.Timeout())))
	form = &mcp.ElicitParams{Mode: "form", Message: strings.Join(lines, "\n"), RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{member: options(r, revision)}, "required": []string{member},
	}}
	return form, utf8.RuneCountInString(form.Message) <= mostShown
}

// options is the schema of the choice between those of r, by their ids, with their words as the revision has them.
func options(r permissions.Request, revision string) map[string]any {
	var ids, words []string
	var both []map[string]any
	for _, o := range r.Options {
		ids, words = append(ids, string(o.ID)), append(words, spelled(o.Label))
		both = append(both, map[string]any{"const": string(o.ID), "title": spelled(o.Label)})
	}
	property := map[string]any{"type": "string", "title": "Answer"}
	if revision >= titled {
		property["oneOf"] = both
	} else {
		property["enum"], property["enumNames"] = ids, words
	}
	return property
}

// chosenOf is the option that a dialog brought; ok is false where its person declined or closed it, or it brought anything
// else than one of the options of r.
func chosenOf(r permissions.Request, said *mcp.ElicitResult) (a permissions.Answer, ok bool) {
	text, _ := said.Content[member].(string)
	if said.Action != "accept" || len(said.Content) != 1 {
		return "", false
	}
	for _, o := range r.Options {
		if string(o.ID) == text {
			return o.ID, true
		}
	}
	return "", false
}

// quoted are the lines of an agent's words.
func quoted(words string) []string {
	lines := strings.Split(words, "\n")
	for i, line := range lines {
		lines[i] = "│ " + spelled(line)
	}
	return lines
}

// spelled is a line of text in which everything is seen: letters, marks, numbers, punctuation, symbols and plain spaces
// stay, and whatever else is there becomes its number, as in \u{202E}.
func spelled(line string) string {
	var b strings.Builder
	for _, c := range line {
		seen := c == ' ' || unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
		if !seen || unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			fmt.Fprintf(&b, `\u{%04X}`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}
