package engine_test

import (
	"cmp"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func inEditors() engine.Settings {
	s := usual()
	s.Editor = true
	return s
}

func which() permissions.Request {
	return permissions.Request{Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"}}
}

func look(mode permissions.Mode) permissions.Request {
	return permissions.Request{Kind: permissions.KindPause, Mode: mode, Message: "look"}
}

// dialog opens a request as a server with dialogs does.
func (s *env) dialog(caller permissions.Caller, q permissions.Request) permissions.RequestView {
	s.t.Helper()
	q.Call = cmp.Or(q.Call, rand.Text())
	standing, err := s.Begin(s.t.Context(), caller, q)
	if err != nil || standing.Request.State != permissions.Pending {
		s.t.Fatalf("begin: %s, %v", standing.Request.State, err)
	}
	return standing
}

// Begin does not wait, and the call continues from its place.
func TestACallGoesOnFromWhereItBegan(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, inEditors(), m)
	q := which()
	q.Call = "call-1"
	standing := st.dialog(self, q)
	q.ID = standing.Request.ID
	call := st.ask(t.Context(), q)
	st.shown(m, 1)
	st.waiting(q.ID, 1)
	if _, err := st.Reply(t.Context(), self, q.ID, permissions.Choose(2), standing.Request.Digest); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.ID != q.ID || r.Choice() != "mail" || r.DecidedVia != permissions.ViaEditor || r.DecidedBy != "" {
		t.Errorf("got %+v", r)
	}
	st.edited(m, 1, func(p connectors.Prompt) bool { return p.Request.DecidedVia == permissions.ViaEditor })
	if s, err := st.Begin(t.Context(), self, q); err != nil || s.Request.Choice() != "mail" || s.Editor {
		t.Errorf("begun again: %+v, %v", s.Request, err)
	}
	if _, err := st.Begin(t.Context(), self, tool("delete_all", `{}`)); err == nil {
		t.Error("what is forbidden was begun")
	}
}

// An answer through an editor settles only what permits nothing, of its own caller, as it was shown, in time.
func TestWhatAnEditorMayAnswer(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, inEditors(), m)
	other, nobody := permissions.CallerUID(askerUID+1), permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
	for _, try := range []struct {
		name   string
		q      permissions.Request
		by, as permissions.Caller
		answer permissions.Answer
		code   permissions.Code // empty: it is accepted
	}{
		{"a choice", which(), self, self, permissions.Choose(1), ""},
		{"going on", look(permissions.ModeContinue), self, self, permissions.Continue, ""},
		{"an interruption", look(permissions.ModeContinue), self, self, permissions.Interrupt, ""},
		{"a permission", network("x"), self, self, allow(), permissions.CodeEditor},
		{"a denial", network("y"), self, self, permissions.Deny, permissions.CodeEditor},
		{"a tool", tool("write_file", `{}`), self, self, allow(), permissions.CodeEditor},
		{"a confirmation", look(permissions.ModeConfirm), self, self, allow(), permissions.CodeEditor},
		{"an interrupted confirmation", look(permissions.ModeConfirm), self, self, permissions.Interrupt, permissions.CodeEditor},
		{"an option that is not there", which(), self, self, permissions.Choose(3), permissions.CodeNoAnswer},
		{"words", which(), self, self, permissions.Other, permissions.CodeNoAnswer},
		{"an allowance", which(), self, self, allow(), permissions.CodeNoAnswer},
		{"another's", which(), self, other, permissions.Choose(1), permissions.CodeUnknown},
		{"nobody's in particular", which(), nobody, nobody, permissions.Choose(1), permissions.CodeToken},
	} {
		standing := st.dialog(try.by, try.q)
		r := standing.Request
		permits := r.Kind != permissions.KindClarification && r.Mode != permissions.ModeContinue
		if standing.Editor != (!permits && try.by == self) {
			t.Errorf("%s: editor is %v", try.name, standing.Editor)
		}
		got, err := st.Reply(t.Context(), try.as, r.ID, try.answer, r.Digest)
		if try.code == "" {
			if err != nil || got.Request.State != permissions.Answered || got.Request.Answer != try.answer || got.Editor {
				t.Errorf("%s: %+v, %v", try.name, got.Request, err)
			}
			_, err := st.Reply(t.Context(), try.as, r.ID, try.answer, r.Digest)
			refused(t, err, permissions.CodeSettled)
			continue
		}
		refused(t, err, try.code)
		if s, err := st.Find(t.Context(), try.by, r.ID); err != nil || s.Request.State != permissions.Pending {
			t.Errorf("%s: it is %s, %v", try.name, s.Request.State, err)
		}
		if _, err := st.Withdraw(t.Context(), try.by, r.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// An editor's answer to something else, a late one, and one after it was disabled do not count, and are audited.
func TestAnEditorIsRefused(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, inEditors(), m)
	r := st.dialog(self, which()).Request
	_, err := st.Reply(t.Context(), self, r.ID, permissions.Choose(2), permissions.Digest{1})
	refused(t, err, permissions.CodeNotYours)
	st.Configure(usual())
	_, err = st.Reply(t.Context(), self, r.ID, permissions.Choose(2), r.Digest)
	refused(t, err, permissions.CodeEditor)
	if s, err := st.Find(t.Context(), self, r.ID); err != nil || s.Editor || s.Request.State != permissions.Pending {
		t.Errorf("editor %v, %s, %v", s.Editor, s.Request.State, err)
	}
	st.Configure(inEditors())
	st.advance(6 * time.Minute)
	_, err = st.Reply(t.Context(), self, r.ID, permissions.Choose(2), r.Digest)
	refused(t, err, permissions.CodeSettled)
	if s, err := st.Find(t.Context(), self, r.ID); err != nil || !s.Request.TimedOut || s.Request.Answer != permissions.Choose(1) {
		t.Errorf("%+v, %v", s.Request, err)
	}
	entries, err := st.Audit(t.Context(), connectors.Identity{Operator: true}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var why []string
	for _, e := range entries {
		if e.Type == permissions.DecisionRefused && e.Via == permissions.ViaEditor && e.Actor == self.Name {
			why = append(why, e.Detail["why"])
		}
	}
	if want := []string{"not-yours", "editor", "settled"}; !slices.Equal(why, want) {
		t.Errorf("audited %v, want %v", why, want)
	}
}

// An editor does not count as a recipient: if no person can be reached, the question is undeliverable.
func TestAnEditorReachesNobody(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	m.FailReach(&connectors.UnreachableError{Reason: "fay is not there"})
	st := newEnv(t, inEditors(), m)
	standing, err := st.Begin(t.Context(), self, which())
	if err != nil || standing.Request.State != permissions.Undeliverable || standing.Editor {
		t.Errorf("%s, editor %v, %v", standing.Request.State, standing.Editor, err)
	}
	_, err = st.Reply(t.Context(), self, standing.Request.ID, permissions.Choose(1), standing.Request.Digest)
	refused(t, err, permissions.CodeSettled)
}
