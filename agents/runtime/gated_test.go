package runtime_test

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const (
	noteA = `{"path":"a","text":"one"}`
	noteB = `{"path":"b","text":"two"}`
)

// writer writes a and then b, whatever the results, and repeats its results.
func writer(turn int, p models.Prompt) models.Reply {
	switch turn % 3 {
	case 0:
		return calls("write_file", noteA)
	case 1:
		return calls("write_file", noteB)
	}
	return says("told: " + newest(p))
}

// TestGatedTools runs the cases of the seed, by name.
func TestGatedTools(t *testing.T) {
	t.Run("gated_tool_prompts_once", func(t *testing.T) {
		s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
			if turn == 0 {
				return calls("write_file", noteA)
			}
			return says("done: " + newest(p))
		}))
		s.write("write a")
		r := s.card(1)
		if r.Tool != "write_file" || string(r.Input) != noteA || r.Details != "+ one" || r.Agent != "helper" || r.Background {
			t.Errorf("the card is %+v", r)
		}
		if got := s.waitAsking("helper"); got.Status != permissions.AwaitingUser || got.Request != r.ID || got.Tool != "write_file" {
			t.Errorf("meanwhile the session is %+v", got)
		}
		if s.file("a") != "" {
			t.Error("it wrote before it was allowed to")
		}
		s.answer(r, once)
		s.waitMessage("done: wrote a")
		if n := len(s.phone.Copies()); n != 1 || s.file("a") != "one\n" {
			t.Errorf("%d cards, and the file has %q", n, s.file("a"))
		}
	})
	t.Run("approve_all_allows_multiple_writes", func(t *testing.T) {
		s := newEnv(t, helper(writer))
		s.write("write both")
		s.answer(s.card(1), always)
		s.waitMessage("told: wrote b")
		if n := len(s.phone.Copies()); n != 1 || s.file("a") != "one\n" || s.file("b") != "two\n" {
			t.Errorf("%d cards, %q, %q", n, s.file("a"), s.file("b"))
		}
	})
	t.Run("single_tool_approval_scope", func(t *testing.T) {
		s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
			switch turn {
			case 0:
				return calls("write_file", noteA)
			case 1:
				return calls("write_file", noteB)
			case 2:
				return calls("other", noteA)
			}
			return says("told: " + newest(p))
		}))
		s.write("go")
		s.answer(s.card(1), permissions.Allow(permissions.SessionTool))
		r := s.card(2) // the granted tool ran without a question, another does not
		if r.Tool != "other" || s.file("b") != "two\n" {
			t.Errorf("then it asks for %s, with %q written", r.Tool, s.file("b"))
		}
		s.answer(r, permissions.Deny)
		s.waitMessage("told: Tool other denied by the user.")
	})
	t.Run("denied_tool_is_skipped_and_injected", func(t *testing.T) {
		s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
			if turn == 0 {
				return calls("write_file", noteA)
			}
			return says("told: " + newest(p))
		}))
		s.write("go")
		s.answer(s.card(1), permissions.Deny, func(d *connectors.Decision) { d.Comment = "keep it" })
		s.waitMessage(`told: Tool write_file denied by the user. fay: "keep it"`)
		if s.file("a") != "" {
			t.Error("it was written all the same")
		}
		rows, err := s.rows.Executions(t.Context(), s.current("helper").ID, 1)
		if err != nil || len(rows) != 1 || rows[0].Success || !strings.Contains(rows[0].Error, "denied") {
			t.Errorf("its row is %+v, %v", rows, err)
		}
	})
	t.Run("denial_does_not_end_loop", func(t *testing.T) {
		s := newEnv(t, helper(writer))
		s.write("go")
		s.answer(s.card(1), permissions.Deny)
		s.answer(s.card(2), once)
		s.waitMessage("told: wrote b")
		if s.file("a") != "" || s.file("b") != "two\n" {
			t.Errorf("it wrote %q and %q", s.file("a"), s.file("b"))
		}
		if got := s.waitActivity("helper", permissions.Idle); got.Tokens != 33 || got.Cost != 66 {
			t.Errorf("three replies are %d tokens for %d", got.Tokens, got.Cost)
		}
	})
	t.Run("approval_cleared_on_new_session", func(t *testing.T) {
		s := newEnv(t, helper(writer))
		s.write("go")
		s.answer(s.card(1), always)
		s.waitMessage("told: wrote b")
		was := s.waitActivity("helper", permissions.Idle)
		if grants, err := s.Grants(t.Context(), fayHere, "", 99); err != nil || len(grants) != 1 || grants[0].Used != 1 {
			t.Errorf("what ran under the grant is not counted: %+v, %v", grants, err)
		}
		s.order(permissions.OrderNew)
		s.write("go")
		if r := s.card(2); r.Session == string(was.ID) {
			t.Error("it is the same session")
		}
		if grants, err := s.Grants(t.Context(), fayHere, "", 99); err != nil || len(grants) != 0 {
			t.Errorf("what was granted is still there: %+v, %v", grants, err)
		}
	})
	t.Run("gated_tool_logged_with_scope", func(t *testing.T) {
		s := newEnv(t, helper(writer))
		s.write("go")
		s.answer(s.card(1), permissions.Allow(permissions.SessionTool))
		s.waitMessage("told: wrote b")
		got := s.rows.artifacts(agents.ArtifactApprovalGranted)
		if len(got) != 2 || got[1]["scope"] != "session_tool" || got[1]["grants"] == nil ||
			got[0]["scope"] != "session_tool" || got[0]["tool"] != "write_file" ||
			got[0]["session_id"] != string(s.current("helper").ID) || got[0]["args"] == nil || got[0]["timestamp"] == nil {
			t.Errorf("it is logged as %v", got)
		}
	})
	t.Run("quit_during_approval_exits_immediately", func(t *testing.T) {
		s := newEnv(t, helper(writer))
		s.write("go")
		r := s.card(1)
		id := s.current("helper").ID
		s.order(permissions.OrderQuit)
		over, err := s.rows.AgentSession(t.Context(), id)
		if err != nil || over.EndedAt.IsZero() {
			t.Errorf("the session is %+v, %v", over, err)
		}
		if now, err := s.rows.Read(t.Context(), r.ID); err != nil || now.State != permissions.Cancelled {
			t.Errorf("its request is %s, %v", now.State, err)
		}
		ends := s.rows.records(permissions.RunFinished)
		if len(ends) != 1 || ends[0].Detail["outcome"] != "interrupted" || ends[0].Detail["reason"] != "stopped" {
			t.Errorf("the run ended as %+v", ends)
		}
	})
}

var fayHere = connectors.Identity{Via: "phone", UID: fay.UID}

// TestWhatIsShownIsCompared: the call that runs is the one that people were shown, whatever characters it has.
func TestWhatIsShownIsCompared(t *testing.T) {
	const text = `<a href="x">&amp;</a> 2>&1 \u2028 \u00e4 \u0007 \\ \/`
	s := newEnv(t, helper(firstCalls("write_file", `{"text":"`+strings.ReplaceAll(text, `"`, `\"`)+`","path":"a"}`)))
	s.write("go")
	s.answer(s.card(1), once)
	s.waitMessage("told: wrote a")
	if got, want := s.file("a"), "<a href=\"x\">&amp;</a> 2>&1 \u2028 \u00e4 \a \\ /\n"; got != want {
		t.Errorf("it wrote %q, want %q", got, want)
	}
}
