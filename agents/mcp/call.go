package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

func asks(t schema.Asking) func(context.Context, *Server, *mcp.CallToolRequest) *mcp.CallToolResult {
	return func(ctx context.Context, s *Server, r *mcp.CallToolRequest) *mcp.CallToolResult {
		q, err := t.Question(r.Params.Arguments)
		if err != nil {
			return refusalResult(permissions.Invalid(err))
		}
		settled, shown, err := s.ask(ctx, r, q)
		switch {
		case err != nil && !isDisconnect(err):
			return refusalResult(err)
		case err == nil && shown.form != nil:
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{member: shown.form}, RequestState: shown.server.stateToken.of(settled.ID, shown.about),
			}
		}
		return outcomeResult(settled, shown.note)
	}
}

// approve handles approve_tool. Its result is always a verdict.
func approve(ctx context.Context, s *Server, r *mcp.CallToolRequest) *mcp.CallToolResult {
	in, err := schema.Decode[approveInput](approveTool, r.Params.Arguments)
	if err != nil {
		return denialResult(err.Error())
	}
	q, err := in.question()
	if err != nil {
		return denialResult(err.Error())
	}
	if in.Tool == schema.ClaudeAsks { // policy judges it as it judges that of the hook
		q.Hook = "claude-code"
	}
	if q.Plans() {
		q.Widest = permissions.Once
	}
	if inStartFolder(q) {
		q.Cwd = s.o.Cwd
	}
	if q.Leads, err = s.leads(q); err != nil {
		return denialResult(err.Error())
	}
	settled, _, err := s.ask(ctx, r, q) // a dialog never shows a tool request
	if err != nil {
		return denialResult(errorText(err))
	}
	o := permissions.Result(settled)
	if settled.State != permissions.Approved || o.Error || o.Exit != permissions.ExitYes {
		return denialResult(o.Text)
	}
	if in.Tool == schema.ClaudeAsks && settled.AllowedByPolicy() && settled.DecidingRule(permissions.RuleAllows) == "" {
		return answerQuestions(ctx, s, r, in.Input)
	}
	now := q
	if now.Leads, err = s.leads(q); err != nil {
		return denialResult(err.Error())
	}
	if !now.SameLeads(q) {
		return denialResult("Not allowed: a link was changed while this was asked; try the same call again.")
	}
	return jsonResult(map[string]any{"behavior": "allow", "updatedInput": settled.Input})
}

// leads is where the links of a call lead now.
func (s *Server) leads(q permissions.Request) (permissions.Leads, error) {
	known := q.Cwd != ""
	q.Cwd = s.o.Cwd
	switch {
	case q.Tool == schema.ClaudeAsks || q.Plans():
		return permissions.Leads{}, nil
	case s.o.Leads == nil:
		return permissions.Leads{Unknown: true}, nil
	}
	l, err := s.o.Leads(q)
	l.Unknown = l.Unknown || !known
	return l, err
}

// inStartFolder reports whether a call of approve_tool is in the folder in which Claude Code was started, as servers are. Its own shell is
// where earlier commands went, and so are the relative names that its own tools get.
func inStartFolder(q permissions.Request) bool {
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
	}
	switch effect := permissions.EffectOf(q.Tool); {
	case strings.HasPrefix(q.Tool, "mcp__"):
		return true
	case effect == permissions.DoesExecute, acts.HasCode(q.Input):
		return false
	case effect == permissions.DoesRead, effect == permissions.DoesEdit:
		relative := func(name string) bool { return name != "" && !filepath.IsAbs(name) }
		return json.Unmarshal(q.Input, &in) == nil && in.File+in.Notebook+in.Path != "" &&
			!slices.ContainsFunc([]string{in.File, in.Notebook, in.Path}, relative)
	}
	return true
}

// answerQuestions asks the questions of a call of Claude Code's own tool for that, one by one. The call is allowed with all answers in its
// input. Without one it is denied, with what became of that question as the reason.
func answerQuestions(ctx context.Context, s *Server, r *mcp.CallToolRequest, input json.RawMessage) *mcp.CallToolResult {
	all, err := schema.Questions(input)
	var given []string
	for _, q := range all {
		settled, _, err := s.ask(ctx, r, q)
		if err != nil {
			return denialResult(errorText(err))
		}
		if settled.State != permissions.Answered || settled.Defaulted || settled.TimedOut {
			return denialResult(permissions.Result(settled).Text)
		}
		given = append(given, cmp.Or(settled.Choice(), settled.Comment))
	}
	if err == nil {
		input, err = schema.ClaudeAnswered(input, given)
	}
	if err != nil {
		return denialResult(err.Error())
	}
	return jsonResult(map[string]any{"behavior": "allow", "updatedInput": input})
}

// await handles await_request. It only reads; it does not use the approval.
func await(ctx context.Context, s *Server, r *mcp.CallToolRequest) *mcp.CallToolResult {
	in, err := schema.Decode[awaitInput]("await_request", r.Params.Arguments)
	if err != nil {
		return refusalResult(permissions.Invalid(err))
	}
	v := connectionOf(ctx)
	ctx, done := s.keepInformed(ctx, v, r, "", in.ID)
	defer done()
	caller := s.o.CallerOf(ctx)
	standing, err := s.o.Requests.Await(ctx, caller, in.ID)
	if err != nil {
		return refusalResult(err)
	}
	if ctx.Err() == nil {
		s.abandoned.forget(question{caller.Name, standing.Request.Digest}, in.ID)
	}
	return outcomeResult(standing.Request, "")
}

// errOther means that an answer belongs to another question.
var errOther = errors.New("the answer is about another request than this one; nothing is granted")

// ask submits q and waits, beside the client's own dialog if there is one. A repeated question continues the abandoned call.
func (s *Server) ask(ctx context.Context, r *mcp.CallToolRequest, q permissions.Request) (permissions.Request, *dialog, error) {
	if q.Host = s.o.Host; q.Kind != permissions.KindTool {
		q.Cwd = s.o.Cwd
	}
	if client := r.ClientInfo(); client != nil && q.Agent == "" {
		letters := []rune(client.Name)
		q.Agent = string(letters[:min(len(letters), permissions.MaxName)])
	}
	q.Claimed = q.Agent != ""
	if err := q.Validate(); err != nil {
		return permissions.Request{}, nil, permissions.Invalid(err)
	}
	v, caller := connectionOf(ctx), s.o.CallerOf(ctx)
	about := questionOf(caller, q)
	before, again := s.abandoned.take(about) // not for anonymous callers, who cannot be told apart
	q.ID, q.Call = before.id, cmp.Or(before.call, rand.Text())
	d := s.dialog(r, v, caller, about, q)
	began, note := time.Now(), ""
	if q.WantedTimeout > 0 && d.back == "" { // the first progress message says how long people have
		if begun, err := s.o.Requests.Begin(ctx, caller, q); err == nil { // on failure, Ask retries or reports the error
			q.ID, note = begun.Request.ID, begun.Request.Shortened(q.WantedTimeout)
		}
	}
	ctx, done := s.keepInformed(ctx, v, r, note, q.ID)
	defer done()
	settled, err := d.ask(ctx, q)
	if again && err == nil && d.back == "" && stale(settled, began) {
		q.ID, q.Call = "", rand.Text()
		settled, err = d.ask(ctx, q)
	}
	if err == nil && !settled.IsRowOf(q) {
		err = errOther
	}
	d.note = cmp.Or(d.note, settled.Shortened(q.WantedTimeout))
	gone := abandonedCall{id: settled.ID, call: q.Call, caller: caller, message: v.message}
	switch {
	case err == nil && d.form != nil: // the client calls again
		s.abandoned.add(about, gone)
		s.hold(caller, settled.ID, true)
	case caller.Name == permissions.Anonymous:
	case ctx.Err() != nil && settled.ID != "":
		s.abandoned.add(about, gone) // first, so that a concurrent cancellation finds it
		if v.cancelled() {
			s.scheduleCancel(gone)
		}
	case err == nil:
		s.abandoned.forget(about, settled.ID)
		v.answered(about, gone)
	}
	return settled, d, err
}

// stale reports whether a request that was found again had ended undecided before this call, so that it is asked anew.
func stale(r permissions.Request, began time.Time) bool {
	switch r.State {
	case permissions.Expired, permissions.Cancelled, permissions.Undeliverable:
		return r.DecidedAt.Before(began)
	}
	return false
}

// isDisconnect reports whether an error only says that the call ended before its answer.
func isDisconnect(err error) bool { return errors.Is(err, context.Canceled) }

// keepInformed returns a context that ends when the client is gone, and starts progress messages about a request (empty: not known yet),
// beginning with the note. None is sent after done was called.
func (s *Server) keepInformed(
	ctx context.Context, v *connection, r *mcp.CallToolRequest, note string, id permissions.ID,
) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var works sync.WaitGroup
	stop := func() bool { return true }
	if v.gone != nil {
		stop = context.AfterFunc(v.gone(), cancel)
	}
	if token := r.Params.GetProgressToken(); token != nil {
		works.Go(func() { s.sendProgress(ctx, r, token, note, id, cancel) })
	}
	return ctx, func() {
		stop()
		cancel()
		works.Wait()
	}
}

// sendProgress sends progress messages until ctx ends. A client that does not receive one has gone.
func (s *Server) sendProgress(ctx context.Context, r *mcp.CallToolRequest, token any, note string, id permissions.ID, lost func()) {
	began := time.Now()
	every := time.NewTicker(s.o.Every)
	defer every.Stop()
	for n := 1; ; n++ {
		says := "Waiting for an answer."
		switch {
		case n == 1 && note != "":
			says = "Waiting for an answer; " + note + "."
		case n > 1:
			says = fmt.Sprintf("Still waiting for an answer, after %s.", permissions.FormatDuration(time.Since(began).Round(time.Second)))
			says += s.delayed(ctx, id)
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

// delayed says which channels do not deliver a request; empty if none, or if that is not known.
func (s *Server) delayed(ctx context.Context, id permissions.ID) string {
	if id == "" {
		return ""
	}
	v, err := s.o.Requests.Find(ctx, s.o.CallerOf(ctx), id)
	if err != nil || len(v.Delayed) == 0 {
		return ""
	}
	return " Not delivered yet by " + strings.Join(v.Delayed, ", ") + "."
}

// outcomeOf is the structured content beside the sentence.
type outcomeOf struct {
	State     permissions.State   `json:"state"`
	Answer    *permissions.Answer `json:"answer"`
	Scope     *string             `json:"scope"`
	ID        permissions.ID      `json:"id"`
	Digest    string              `json:"digest"`
	Comment   *string             `json:"comment"`
	DecidedBy *string             `json:"decided_by"`
	VoidedBy  *string             `json:"voided_by,omitzero"`
	VoidAt    *time.Time          `json:"void_at,omitzero"`
	TimedOut  bool                `json:"timed_out,omitzero"`
	Defaulted bool                `json:"defaulted,omitzero"`
	Result    string              `json:"result"`
}

// outcomeResult formats a request's outcome in the contract's wording, then the note; if it is pending, with how to continue.
func outcomeResult(r permissions.Request, note string) *mcp.CallToolResult {
	o := permissions.Result(r)
	if note != "" {
		o.Text += "\n(" + note + ")"
	}
	if r.State == permissions.Pending {
		o.Text += fmt.Sprintf("\nNobody has said no: call await_request with the id %s, or ask the same again.", r.ID)
	}
	w := wire.From(permissions.RequestView{Request: r}, false)
	return &mcp.CallToolResult{
		IsError: o.Error, Content: text(o.Text),
		StructuredContent: outcomeOf{
			State: w.State, Answer: w.Answer, Scope: w.Scope, ID: w.ID, Digest: w.Digest,
			Comment: w.Comment, DecidedBy: w.DecidedBy, VoidedBy: w.VoidedBy, VoidAt: w.VoidAt,
			TimedOut: w.TimedOut, Defaulted: w.Defaulted, Result: o.Text,
		},
	}
}

func refusalResult(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: text(errorText(err))}
}

func errorText(err error) string {
	switch {
	case wire.IsConnectionError(err):
		return err.Error() + "; nothing is granted. It is started with: daycared serve"
	case isDisconnect(err), errors.Is(err, context.DeadlineExceeded):
		return "daycared did not answer in time; nothing is granted."
	}
	return err.Error()
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }

func denialResult(why string) *mcp.CallToolResult {
	return jsonResult(map[string]any{"behavior": "deny", "message": why})
}

func jsonResult(v map[string]any) *mcp.CallToolResult {
	line, err := wire.Encode(v)
	if err != nil { // the input was canonical before
		line = []byte(`{"behavior":"deny","message":"the verdict could not be written"}`)
	}
	return &mcp.CallToolResult{Content: text(string(line))}
}
