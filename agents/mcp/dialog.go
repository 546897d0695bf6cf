package mcp

import (
	"cmp"
	"context"
	"crypto/hmac"
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

// resultAsksSince is the first protocol revision in which the result of a call asks the client, which then calls again with the answer.
const resultAsksSince = "2026-07-28"

// dialog shows one call's question in the client's own dialog while other people are asked. It is used only for requests that
// grant nothing, if the client has dialogs and the engine allows an answer there.
type dialog struct {
	server  *Server
	request *mcp.CallToolRequest
	caller  permissions.Caller
	about   question
	shows   dialogMode
	back    permissions.ID // the request that this call returns to with an answer; empty: none

	form *mcp.ElicitParams // what the client must ask now, by the result of this call
	note string            // added to the outcome
}

type dialogMode int

const (
	never     dialogMode = iota
	byCalling            // by a request on the same connection during the call
	byResult             // by the result of its call, see resultAsksSince
)

func (s *Server) dialog(r *mcp.CallToolRequest, v *connection, caller permissions.Caller, about question, q permissions.Request) *dialog {
	d := &dialog{server: s, request: r, caller: caller, about: about}
	can := r.ClientCapabilities()
	if !q.TakesReplies() || r.Params.Name == approveTool || can == nil || can.Elicitation == nil ||
		(can.Elicitation.Form == nil && can.Elicitation.URL != nil) {
		return d
	}
	revision, _ := r.Params.Meta[mcp.MetaKeyProtocolVersion].(string) // of this call, not of a session
	switch {
	case revision >= resultAsksSince:
		d.shows = byResult
		d.back, _ = s.stateToken.open(r.Params.RequestState, about)
	case v.acceptsCalls:
		d.shows = byCalling
	}
	return d
}

// ask implements [agents.Asker] beside the dialog. If the call's result must ask the client, it returns the pending request.
func (d *dialog) ask(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	requests := d.server.o.Requests
	if d.shows == never {
		return requests.Ask(ctx, d.caller, q)
	}
	if d.back != "" {
		return d.handleReturn(ctx, q)
	}
	s, err := requests.Begin(ctx, d.caller, q)
	q.ID = cmp.Or(s.Request.ID, q.ID)
	switch {
	case err != nil: // Ask retries, or reports the error
		return requests.Ask(ctx, d.caller, q)
	case s.Request.State != permissions.Pending:
		return s.Request, nil
	}
	form, whole := formOf(s.Request, d.request.ProtocolVersion())
	switch {
	case !s.Editor || !whole:
		return requests.Ask(ctx, d.caller, q)
	case d.shows == byResult:
		d.form = form
		return s.Request, nil
	}
	showing, withdraw := context.WithCancel(ctx)
	var works sync.WaitGroup
	works.Go(func() { d.show(showing, s.Request, form) })
	defer works.Wait()
	defer withdraw()
	return requests.Ask(ctx, d.caller, q)
}

// show sends the dialog to the client, and withdraws it when ctx ends.
func (d *dialog) show(ctx context.Context, r permissions.Request, form *mcp.ElicitParams) {
	said, err := d.request.Session.Elicit(withdrawal{ctx}, form)
	switch {
	case err == nil: // also if another answer came first: the person is told that it was too late
		d.take(ctx, r, said)
	case ctx.Err() == nil: // the people can still answer
		d.server.o.Log.Debug("the client shows no dialog", "request", r.ID, "err", err)
	}
}

// withdrawal is a context whose error tells the client why its dialog is withdrawn.
type withdrawal struct{ context.Context } //nolint:containedctx // it is one

var errNoMore = errors.New("the question is not open here any more")

func (w withdrawal) Err() error {
	if w.Context.Err() == nil {
		return nil
	}
	return errNoMore
}

// handleReturn handles the call after a dialog. An answer in time counts, and is never applied to another question. Without an
// answer the call waits for the other people; no second dialog is shown.
func (d *dialog) handleReturn(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	s, err := d.server.o.Requests.Find(ctx, d.caller, d.back)
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
	d.server.hold(d.caller, d.back, false) // this call takes over the place
	return d.server.o.Requests.Ask(ctx, d.caller, q)
}

// hold marks the request of a client that shows a dialog as waited for, or ends that; else people read that nobody waits.
func (s *Server) hold(caller permissions.Caller, id permissions.ID, held bool) {
	ctx, done := context.WithTimeout(context.Background(), storeTime)
	defer done()
	if err := s.o.Requests.Hold(ctx, caller, id, held); err != nil {
		s.o.Log.Debug("hold request for client dialog", "request", id, "err", err)
	}
}

// take answers r with the dialog's result, if it is one of the options. It runs to completion even if the client leaves.
func (d *dialog) take(ctx context.Context, r permissions.Request, said *mcp.ElicitResult) {
	a, chosen := chosenOf(r, said)
	if !chosen {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer done()
	_, err := d.server.o.Requests.Reply(ctx, d.caller, r.ID, a, r.ShownDigest())
	if refusal := permissions.AsRefusal(err); refusal != nil {
		d.note = "In the editor: " + refusal.Text
	} else if err != nil {
		d.server.o.Log.Warn("answer from editor dialog not stored; the question is still pending", "request", r.ID, "err", err)
	}
}

// stateToken signs dialog state, for one question of one caller, so that a client cannot forge it and answer a dialog that was
// not requested. The key is per process; after a restart the question is shown again.
type stateToken struct{ key []byte }

// of returns the signed id of a request.
func (s stateToken) of(id permissions.ID, about question) string {
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(s.sum(id, about))
}

// open verifies a token and returns its request id; ok is false for anything not signed for that question.
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
	member = "answer" // the dialog's only field, and the dialog's name
	// maxShown is the maximum length of a dialog in characters. A longer one is not shown, rather than cut.
	maxShown = 6000
	titled   = "2025-11-25" // the first revision with titled options
)

// formOf formats a request as a client's dialog, the agent's words marked line by line; whole is false if it does not fit.
func formOf(r permissions.Request, revision string) (form *mcp.ElicitParams, whole bool) {
	lines := []string{"daycared: " + visibleText(r.AgentLabel()) + " asks you"}
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
		strings.Join(r.Asked, ", "), silence, permissions.FormatDuration(r.Timeout())))
	form = &mcp.ElicitParams{Mode: "form", Message: strings.Join(lines, "\n"), RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{member: options(r, revision)}, "required": []string{member},
	}}
	return form, utf8.RuneCountInString(form.Message) <= maxShown
}

// options is the schema of the choice between r's options, by id, with labels if the revision supports them.
func options(r permissions.Request, revision string) map[string]any {
	var ids, words []string
	var both []map[string]any
	for _, o := range r.Options {
		ids, words = append(ids, string(o.ID)), append(words, visibleText(o.Label))
		both = append(both, map[string]any{"const": string(o.ID), "title": visibleText(o.Label)})
	}
	property := map[string]any{"type": "string", "title": "Answer"}
	if revision >= titled {
		property["oneOf"] = both
	} else {
		property["enum"], property["enumNames"] = ids, words
	}
	return property
}

// chosenOf returns the chosen option; ok is false if the person declined, or the result is none of the options.
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

// quoted marks the lines of an agent's words.
func quoted(words string) []string {
	lines := strings.Split(words, "\n")
	for i, line := range lines {
		lines[i] = "│ " + visibleText(line)
	}
	return lines
}

// visibleText makes a line's content visible: letters, marks, numbers, punctuation, symbols and plain spaces stay; any other
// character is written as its code point, such as \u{202E}.
func visibleText(line string) string {
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
