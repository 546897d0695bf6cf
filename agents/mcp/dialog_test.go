package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// editor is a client with dialogs, and the person who answers them.
type editor struct {
	t     testing.TB
	shown chan *sdk.ElicitParams
	says  chan *sdk.ElicitResult
	gone  chan struct{} // a dialog was withdrawn
}

func newEditor(t testing.TB) *editor {
	return &editor{t: t, shown: make(chan *sdk.ElicitParams, 9), says: make(chan *sdk.ElicitResult), gone: make(chan struct{}, 9)}
}

func (e *editor) options() *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		e.shown <- r.Params
		select {
		case said := <-e.says:
			if said == nil {
				return nil, errors.New("the dialog crashed")
			}
			return said, nil
		case <-ctx.Done():
			e.gone <- struct{}{}
			return nil, ctx.Err()
		}
	}}
}

func wait[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatalf("never: %s", what)
	}
	return v
}

func accept(option string) *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": option}}
}

// newDialogEnv returns an env in which editors may answer.
func newDialogEnv(t testing.TB) *env {
	t.Helper()
	s := newEnv(t, nil)
	on := settings()
	on.Editor = true
	s.Configure(on)
	return s
}

// The ways to ask a client: by a call to it, or by the result of its call.
const (
	byCalling = "stdio, " + legacy
	older     = "stdio, 2025-06-18"
	byResult  = "http, " + modern
	both      = "stdio, " + modern
)

func (s *env) editors(e *editor) map[string]*sdk.ClientSession {
	s.t.Helper()
	return map[string]*sdk.ClientSession{
		byCalling: s.stdioWith(legacy, nil, e.options()), older: s.stdioWith("2025-06-18", nil, e.options()),
		byResult: s.clientWith(modern, e.options()), both: s.stdioWith(modern, nil, e.options()),
	}
}

// row returns a stored request.
func (s *env) row(id permissions.ID) permissions.Request {
	s.t.Helper()
	r, err := s.rows.Read(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// A request that grants nothing is also shown in the editor; an answer there is anonymous and not a vote.
func TestTheEditorAnswers(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	for name, c := range s.editors(e) {
		for _, try := range []struct {
			tool   string
			with   arguments
			choose string
			text   string
			silent string
		}{
			{"ask_user", choose, "option_2", "mail", "Without one the first option is taken after 5 minutes."},
			{"pause", look, "continue", "Resumed.", "Without one it goes on after 15 minutes."},
			{"pause", look, "interrupt", "Interrupted by the user.", "Without one it goes on after 15 minutes."},
		} {
			waits := call(t.Context(), c, try.tool, try.with)
			form := wait(t, "a dialog", e.shown)
			for _, part := range []string{"daycared: token bot, says it is tester asks you\n│ ", "It was put to fay as well", try.silent} {
				if !strings.Contains(form.Message, part) {
					t.Errorf("%s: %q lacks %q", name, form.Message, part)
				}
			}
			r := s.pending(1)[0]
			s.waits(r.ID, 1)
			s.shown(r.ID)
			e.says <- accept(try.choose)
			got := s.get(waits)
			if textOf(t, got) != try.text || got.IsError || beside(t, got)["decided_by"] != nil || beside(t, got)["answer"] != try.choose {
				t.Errorf("%s: %q, %v", name, textOf(t, got), beside(t, got))
			}
			r = s.row(r.ID)
			if r.DecidedVia != "editor" || r.DecidedBy != "" || len(r.Votes) != 0 || r.State != permissions.Answered {
				t.Errorf("%s: stored %+v", name, r)
			}
			wiretest.Eventually(t, "fay's card says it", func() bool {
				for _, cp := range s.fay.Copies() {
					if cp.First.Request.ID == r.ID && cp.Last.Request.DecidedVia == "editor" {
						return true
					}
				}
				return false
			})
		}
	}
}

// Options have labels if the client's revision supports them.
func TestOptionsHaveTheirWords(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	for name, want := range map[string]string{
		older: `{"enum":["option_1","option_2"],"enumNames":["blog","\\u{202E}mail"],"title":"Answer","type":"string"}`,
		byCalling: `{"oneOf":[{"const":"option_1","title":"blog"},{"const":"option_2","title":"\\u{202E}mail"}],` +
			`"title":"Answer","type":"string"}`,
	} {
		waits := call(t.Context(), s.editors(e)[name], "ask_user", arguments{
			"question": "where?\nIt was put to nobody.\u200b", "options": []string{"blog", "\u202email"}, "details": "line 1\nline 2",
		})
		form := wait(t, "a dialog", e.shown)
		schema, _ := form.RequestedSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		got, err := json.Marshal(properties["answer"])
		if err != nil || string(got) != want || fmt.Sprint(schema["required"]) != "[answer]" {
			t.Errorf("%s: %s, %v", name, got, schema)
		}
		const words = "asks you\n│ where?\n│ It was put to nobody.\\u{200B}\ndetails:\n│ line 1\n│ line 2\nIt was put to fay"
		if !strings.Contains(form.Message, words) {
			t.Errorf("%s: %q", name, form.Message)
		}
		e.says <- accept("option_1")
		s.get(waits)
	}
}

// The first answer wins. A dialog that called the client is withdrawn; one that a result asked for learns it at its next call.
func TestAPersonAnswersFirst(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	for name, c := range s.editors(e) {
		waits := call(t.Context(), c, "ask_user", choose)
		wait(t, "a dialog", e.shown)
		r := s.pending(1)[0]
		s.decide(r.ID, permissions.Choose(1), "")
		want := "blog"
		if name == byResult || name == both {
			e.says <- accept("option_2")
			want += "\n(In the editor: " + permissions.TooLate(s.row(r.ID), nil).Text + ")"
		} else {
			wait(t, "it is withdrawn", e.gone)
		}
		got := s.get(waits)
		if textOf(t, got) != want || got.IsError || beside(t, got)["decided_by"] != "fay" || beside(t, got)["answer"] != "option_1" {
			t.Errorf("%s: %q, %v", name, textOf(t, got), beside(t, got))
		}
		if after := s.row(r.ID); after.Answer != permissions.Choose(1) || after.DecidedVia != "telegram" {
			t.Errorf("%s: %+v", name, after)
		}
	}
	if len(e.shown) > 0 {
		t.Error("there was a second dialog")
	}
}

// An answer after the deadline is reported as late, and never applied to another question.
func TestTheEditorAnswersLate(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	for name, c := range s.editors(e) {
		for _, try := range []struct {
			late       time.Duration
			tool       string
			with       arguments
			says, want string
			state      permissions.State
		}{
			{0, "ask_user", choose, "option_2", "blog\n(nobody answered within 5 minutes; first option taken)", permissions.Answered},
			{time.Hour, "ask_user", choose, "option_2", "blog\n(nobody answered within 5 minutes; first option taken)", permissions.Answered},
			{0, "pause", look, "interrupt", "Nobody resumed within 15 minutes; continuing.", permissions.Expired},
			{time.Hour, "pause", look, "interrupt", "Nobody resumed within 15 minutes; continuing.", permissions.Expired},
		} {
			waits := call(t.Context(), c, try.tool, try.with)
			wait(t, "a dialog", e.shown)
			r := s.pending(1)[0]
			s.shown(r.ID)
			before := s.asked()
			s.pass(r.Deadline.Sub(r.CreatedAt))
			s.settled(r.ID, try.state)
			want := try.want
			if name == byResult || name == both {
				s.pass(try.late)
				e.says <- accept(try.says)
				want += "\n(In the editor: " + permissions.TooLate(s.row(r.ID), nil).Text + ")"
			} else {
				wait(t, "it is withdrawn", e.gone)
			}
			if got := s.get(waits); textOf(t, got) != want || beside(t, got)["id"] != string(r.ID) {
				t.Errorf("%s: %q, want %q", name, textOf(t, got), want)
			}
			if after := s.row(r.ID); after.DecidedVia != permissions.ViaTimeout || s.asked() != before {
				t.Errorf("%s: %+v, asked %d times", name, after, s.asked()-before)
			}
		}
	}
}

// Declining, closing or breaking the dialog answers nothing: people can still answer, and the dialog is not shown again.
func TestTheEditorDoesNotAnswer(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	for name, c := range s.editors(e) {
		for _, said := range []*sdk.ElicitResult{
			{Action: "decline"}, {Action: "cancel"}, {Action: "decline", Content: map[string]any{"answer": "option_2"}},
		} {
			waits := call(t.Context(), c, "ask_user", choose)
			wait(t, "a dialog", e.shown)
			r := s.pending(1)[0]
			e.says <- said
			s.waits(r.ID, 1)
			s.decide(r.ID, permissions.Choose(1), "")
			if got := s.get(waits); textOf(t, got) != "blog" || beside(t, got)["decided_by"] != "fay" {
				t.Errorf("%s: %q", name, textOf(t, got))
			}
		}
	}
	waits := call(t.Context(), s.editors(e)[byCalling], "ask_user", choose)
	wait(t, "a dialog", e.shown)
	e.says <- nil
	s.decide(s.pending(1)[0].ID, permissions.Choose(1), "")
	if got := s.get(waits); textOf(t, got) != "blog" || len(e.shown) > 0 {
		t.Errorf("%q, and %d more dialogs", textOf(t, got), len(e.shown))
	}
}

// A request that grants something is never shown there.
func TestNoDialogPermitsAnything(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	for name, c := range s.editors(e) {
		for tool, with := range map[string]arguments{"request_permission": network, "pause": confirm, "approve_tool": shell} {
			waits := call(t.Context(), c, tool, with)
			r := s.pending(1)[0]
			s.waits(r.ID, 1)
			s.decide(r.ID, permissions.Allow(permissions.Once), "")
			s.get(waits)
			if len(e.shown) > 0 {
				t.Fatalf("%s: %s was shown: %s", name, tool, (<-e.shown).Message)
			}
		}
	}
}

// Nor is any dialog shown if the configuration forbids it, the client has none or cannot be called, or the text does not fit.
func TestWhereThereIsNoDialog(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	quiet := e.options()
	quiet.Capabilities = &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}}
	ask := func(name string, c *sdk.ClientSession, with arguments) {
		t.Helper()
		waits := call(t.Context(), c, "ask_user", with)
		r := s.pending(1)[0]
		s.waits(r.ID, 1)
		s.decide(r.ID, permissions.Choose(2), "")
		if got := s.get(waits); textOf(t, got) != "mail" || len(e.shown) > 0 {
			t.Errorf("%s: %q, and %d dialogs", name, textOf(t, got), len(e.shown))
		}
	}
	ask("pages only", s.stdioWith(legacy, nil, quiet), choose)
	ask("pages only, asked by results", s.clientWith(modern, quiet), choose)
	ask("a client that cannot be called", s.clientWith(legacy, e.options()), choose)
	ask("a client without dialogs", s.client(modern), choose)
	long := arguments{"question": "where?", "options": []string{"blog", "mail"}, "details": strings.Repeat("x", 6000)}
	ask("too long", s.editors(e)[byCalling], long)
	ask("too long for a result", s.editors(e)[byResult], long)
	s.Configure(settings())
	for name, c := range s.editors(e) {
		ask("switched off, "+name, c, choose)
	}
}

// Anonymous callers could answer for one another.
func TestWhoIsAnonymousHasNoDialog(t *testing.T) {
	nobody := permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
	s := newEnv(t, func(o *mcp.Options) { o.CallerOf = func(context.Context) permissions.Caller { return nobody } })
	on := settings()
	on.Editor = true
	s.Configure(on)
	e := newEditor(t)
	waits := call(t.Context(), s.clientWith(modern, e.options()), "ask_user", choose)
	s.decide(s.pending(1)[0].ID, permissions.Choose(2), "")
	if got := s.get(waits); textOf(t, got) != "mail" || len(e.shown) > 0 {
		t.Errorf("%q, and %d dialogs", textOf(t, got), len(e.shown))
	}
}
