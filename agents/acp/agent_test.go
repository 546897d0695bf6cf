package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

// fay's text is a prompt, and the agent's reports come back as text.
func TestPrompt(t *testing.T) {
	s := newEnv(t)
	s.write("say Hello, fay.")
	s.waitMessage("Hello, fay.")
	s.waitActivity("coder", permissions.Idle)
	s.write(
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"plan","entries":[`+
			`{"content":"look","priority":"high","status":"completed"},{"content":"mend","priority":"low","status":"in_progress"},`+
			`{"content":"rest","priority":"low","status":"pending"}]}}`,
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit main.go",`+
			`"kind":"edit","status":"pending"}}`,
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed",`+
			`"content":[{"type":"diff","path":"main.go","oldText":"old\n","newText":"new\n"}]}}`,
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call","toolCallId":"c2","title":"Fetch it",`+
			`"kind":"fetch","status":"failed"}}`,
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"agent_thought_chunk",`+
			`"content":{"type":"text","text":"secret thought"}}}`,
		`say All done.`,
	)
	text := s.waitMessage("All done.")
	for _, want := range []string{
		"Plan:\n[x] look\n[>] mend\n[ ] rest", "· Edit main.go (edit)", "-old\n+new", "· failed: Fetch it (fetch)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret thought") {
		t.Errorf("thoughts are told:\n%s", text)
	}
}

// In a long turn people get news: whole paragraphs, and the rest at the end.
func TestProgress(t *testing.T) {
	s := newEnvWith(t, testAgent{name: "coder", person: "fay", often: true})
	s.write("say First.",
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Look around"}}`,
		"say Second.", ask("execute", `{"command":"make"}`))
	card := s.card(1)
	if text := s.waitMessage("· Look around"); strings.Contains(text, "Second.") {
		t.Errorf("it says %q before the paragraph ends", text)
	}
	s.answer(card, allow)
	s.waitMessage("Second.")
	seen := strings.ReplaceAll(s.phone.Seen(), "say First.", "") // what it was told stands on the card
	if n := strings.Count(seen, "First."); n != 1 {
		t.Errorf("it says the same %d times", n)
	}
}

// Unknown, invalid and foreign updates change nothing.
func TestUnknownUpdates(t *testing.T) {
	s := newEnv(t)
	s.write(
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"state_update","state":"odd"}}`,
		`note session/update {"sessionId":"$S","update":7}`,
		`note session/update {"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk",`+
			`"content":{"type":"text","text":"of another"}}}`,
		`note _vendor/thing {"x":1}`,
		`call _vendor/thing {"x":1}`,
		`call elicitation/create {}`,
		`say Still here.`,
	)
	text := s.waitMessage("Still here.")
	if strings.Contains(text, "of another") || strings.Count(text, "fails: -32601") != 2 {
		t.Errorf("it says\n%s", text)
	}
}

// Of a very long output people get a bounded part, and how much is left out.
func TestGiantOutput(t *testing.T) {
	s := newEnv(t)
	s.write("flood 900", "say The end.")
	s.waitMessage("more bytes are left out here]")
	s.write("say And now?")
	s.waitMessage("And now?")
}

// If the program exits in the middle of a turn, the person is told, and the next message restarts it: the conversation continues.
func TestCrash(t *testing.T) {
	s := newEnv(t)
	s.write("remember")
	before := s.waitMessage("prompt 1 of conversation-")
	s.write("stderr it hurts", "crash")
	text := s.waitMessage("I cannot go on: its program has ended (exit status 4)")
	if !strings.Contains(text, "Write, and it is started anew") {
		t.Errorf("it says %q", text)
	}
	s.waitActivity("coder", permissions.Interrupted)
	s.write("remember")
	_, name, _ := strings.Cut(strings.TrimSpace(before), " of ")
	s.waitMessage("prompt 3 of " + name)
	if seen := s.phone.Seen(); strings.Contains(seen, "long ago") {
		t.Errorf("what is loaded is told once more:\n%s", seen)
	}
}

// If the agent cannot load a conversation, a new one begins, in which no earlier permission for the session is valid.
func TestACrashedConversationThatCannotBeLoaded(t *testing.T) {
	s := newEnv(t, "forgets")
	s.write(ask("execute", `{"command":"a"}`))
	s.answer(s.card(1), always)
	s.waitMessage(`"optionId":"o1"`)
	s.write("crash")
	s.waitMessage("its program has ended")
	s.write("remember", ask("execute", `{"command":"b"}`))
	s.answer(s.card(2), permissions.Deny)
	s.waitMessage("prompt 1 of")
}

// A daemon restart ends the turn: its requests are cancelled, and fay is told. Her next message continues the session.
func TestRestart(t *testing.T) {
	s := newEnv(t)
	s.write("remember", ask("execute", `{"command":"make"}`))
	s.card(1)
	s.waitActivity("coder", permissions.AwaitingUser)
	s.restart()
	s.waitMessage("I was interrupted in the middle of something")
	s.waitActivity("coder", permissions.Interrupted)
	pending, err := s.rows.PendingNumbers(t.Context())
	if err != nil || len(pending) != 0 {
		t.Errorf("%v still wait, %v", pending, err)
	}
	s.write("remember")
	s.waitMessage("prompt 2 of")
	s.waitActivity("coder", permissions.Idle)
	s.restart()
	s.write("remember")
	s.waitMessage("prompt 3 of")
	if n := strings.Count(s.phone.Seen(), "I was interrupted"); n != 0 {
		t.Errorf("without a turn it says %d times that it was interrupted", n)
	}
}

// TestARestartAfterARequestWasChanged: H1/a request whose seal does not hold keeps no agent from going on.
func TestARestartAfterARequestWasChanged(t *testing.T) {
	for name, change := range map[string]func(path, kept string) error{
		"H1/after a crash": func(path, kept string) error {
			if err := os.Rename(kept, path); err != nil {
				return err
			}
			return storetest.Change(t.Context(), path, `UPDATE requests SET mac = ''`)
		},
		"A7/put back with its session": func(path, kept string) error {
			return storetest.PutBack(t.Context(), path, kept, "sessions", "requests", "request_votes")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.write("remember", ask("execute", `{"command":"make"}`))
			s.card(1)
			s.waitActivity("coder", permissions.AwaitingUser)
			path, kept := filepath.Join(s.dir, "store.db"), filepath.Join(t.TempDir(), "kept.db")
			if err := storetest.Change(t.Context(), path, "VACUUM INTO '"+kept+"'"); err != nil {
				t.Fatal(err)
			}
			s.stop()
			if err := change(path, kept); err != nil {
				t.Fatal(err)
			}
			s.open()
			s.write("say I go on.")
			s.waitMessage("I go on.")
		})
	}
}

// An agent with a new owner starts over: the owner sees none of the old chat.
func TestAnotherPersons(t *testing.T) {
	s := newEnv(t)
	s.write("remember", ask("execute", `{"command":"make"}`))
	s.card(1)
	before := s.waitActivity("coder", permissions.AwaitingUser)
	s.stop()
	s.testAgents[0].person = "sam"
	s.open()
	s.writeAs(sam, "remember", "say for sam")
	if text := s.waitMessage("for sam"); !strings.Contains(text, "prompt 1 of") {
		t.Errorf("it says %q", text)
	}
	old, err := s.rows.AgentSession(t.Context(), before.ID)
	if err != nil || old.EndedAt.IsZero() {
		t.Errorf("the old session is %+v, %v", old, err)
	}
	if now := s.waitActivity("coder", permissions.Idle); now.Person != "sam" {
		t.Errorf("the session is %s's", now.Person)
	}
	all, err := s.rows.Audit(t.Context(), "", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	told := map[permissions.Type]int{}
	for _, e := range all {
		if e.Detail["session"] == string(before.ID) {
			told[e.Type]++
		}
	}
	if told[permissions.WaitAckEnter] != 1 || told[permissions.AckRejected] != 1 || told[permissions.RunFinished] != 1 {
		t.Errorf("of what it waited for is told %v", told)
	}
}

// A turn ends as its stop reason says.
func TestEndings(t *testing.T) {
	s := newEnv(t)
	for _, test := range []struct{ line, want string }{
		{"stop end_turn", "I am done."},
		{"stop max_tokens", "more tokens than I may use"},
		{"stop max_turn_requests", "more steps than I may make"},
		{"stop refusal", "I do not want to do that"},
		{"stop cancelled", "something that I needed was not allowed"},
		{"fail the model is away", "my program answers: the model is away"},
	} {
		s.write(test.line)
		s.waitMessage(test.want)
	}
}

// An agent that cannot be started says why, and what to do.
func TestCannotStart(t *testing.T) {
	for _, test := range []struct{ like, want string }{
		{"broken", "its program has ended (exit status 3); it wrote last: no key is set. It reaches its workspace, and what read, write, " +
			`network and env of "coder" in the configuration name`},
		{"newer", "it speaks version 2 of the protocol, and daycared version 1"},
		{"locked", "it is not signed in (Authentication required). It offers:\n- \"login\", Log in: opens a browser\n- \"key\"\n" +
			"- \"env\", API key; set AGENT_KEY, AGENT_URL for the daemon, and name it under env\n" +
			"- \"tui\", In a terminal; run its program in a terminal with: '--sign in'\nOne that needs neither"},
	} {
		t.Run(test.like, func(t *testing.T) {
			s := newEnv(t, test.like)
			s.write("say hello")
			s.waitMessage(test.want)
			s.write("say hello")
			s.waitActivity("coder", permissions.Interrupted)
		})
	}
}

// A program is not started in another folder that took the workspace's name.
func TestAProgramWhoseWorkspaceMoved(t *testing.T) {
	s := newEnv(t)
	old := filepath.Clean(s.at("")) + ".old"
	if err := os.Rename(s.at(""), old); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(old) })
	if err := os.Mkdir(s.at(""), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("say hello")
	s.waitMessage("the workspace is another folder by now")
}

// Two agents work at once, each for its own person.
func TestTwoAgents(t *testing.T) {
	s := newEnvWith(t, testAgent{name: "coder", person: "fay"}, testAgent{name: "writer", person: "sam"})
	s.phone.Identities = nil
	s.write(ask("execute", `{"command":"make"}`))
	card := s.card(1)
	s.writeAs(sam, "say I am free.")
	s.waitMessage("I am free.")
	s.waitActivity("writer", permissions.Idle)
	s.waitActivity("coder", permissions.AwaitingUser)
	s.answer(card, allow)
	s.waitMessage(`"optionId":"o1"`)
}

// Messages during a turn are the next prompt.
func TestQueue(t *testing.T) {
	s := newEnv(t)
	s.write(ask("execute", `{"command":"make"}`))
	card := s.card(1)
	s.write("say second")
	s.write("say third")
	s.answer(card, allow)
	s.waitMessage("third")
	if _, err := os.Stat(s.at("nothing")); err == nil {
		t.Error("there is a file that nobody made")
	}
}
