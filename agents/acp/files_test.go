package acp_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

func (s *env) file(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.at(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *env) content(name string) string {
	text, _ := os.ReadFile(s.at(name))
	return string(text)
}

// Files in the workspace are read exactly, without a question.
func TestReadFile(t *testing.T) {
	s := newEnv(t)
	s.file("a", "one\ntwo\nthree")
	s.write(
		fmt.Sprintf(`call fs/read_text_file {"sessionId":"$S","path":%q}`, s.at("a")),
		fmt.Sprintf(`call fs/read_text_file {"sessionId":"$S","path":%q,"line":2,"limit":1}`, s.at("a")),
		fmt.Sprintf(`call fs/read_text_file {"sessionId":"$S","path":%q}`, s.at("gone")),
		fmt.Sprintf(`call fs/read_text_file {"sessionId":"other","path":%q}`, s.at("a")),
		`call fs/read_text_file {"sessionId":"$S","path":7}`,
		"say read")
	text := s.waitMessage("read")
	for _, want := range []string{`{"content":"one\ntwo\nthree"}`, `{"content":"two\n"}`, "there is no such file", "-32602"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in\n%s", want, text)
		}
	}
}

// Elsewhere people are asked, with the path; the daemon's files are never read.
func TestReadElsewhere(t *testing.T) {
	s := newEnv(t)
	s.write(`call fs/read_text_file {"sessionId":"$S","path":"/etc/hostname"}`)
	r := s.card(1)
	if r.Tool != "read_file" || len(r.Tags) != 1 || r.Tags[0].String() != "@read:/etc/hostname" {
		t.Errorf("it asks %+v", r)
	}
	s.answer(r, permissions.Deny, "no")
	s.waitMessage("fails: -32603 Tool read_file denied by the user. fay: \"no\"")
	s.write(fmt.Sprintf(`call fs/read_text_file {"sessionId":"$S","path":%q}`, s.dir+"/store.db"))
	s.answer(s.card(2), allow)
	s.waitMessage("daycared's own")
}

// A file is written after it was allowed, as it was shown.
func TestWriteFile(t *testing.T) {
	s := newEnv(t)
	s.file("a", "old\n")
	write := func(text string) string {
		return fmt.Sprintf(`call fs/write_text_file {"sessionId":"$S","path":%q,"content":%q}`, s.at("a"), text)
	}
	s.write(write("new\n"))
	r := s.card(1)
	if r.Tool != "write_file" || len(r.Rows) != 1 || r.Rows[0].Text != "old\n" || r.AffectedPath != s.at("a") {
		t.Errorf("it asks %+v", r)
	}
	if got := s.content("a"); got != "old\n" {
		t.Errorf("it was written before it was allowed: %q", got)
	}
	s.answer(r, allow)
	s.waitMessage("fs/write_text_file gives {}")
	if got := s.content("a"); got != "new\n" {
		t.Errorf("it holds %q", got)
	}
	s.write(write("newer\n"))
	r = s.card(2)
	s.file("a", "changed meanwhile\n")
	s.answer(r, allow)
	s.waitMessage("it has changed since it was shown")
	s.write(write("evil\n"), "say denied")
	s.answer(s.card(3), permissions.Deny)
	s.waitMessage("denied")
	if got := s.content("a"); got != "changed meanwhile\n" {
		t.Errorf("it holds %q", got)
	}
	current := s.waitActivity("coder", permissions.Idle)
	for step, want := range []string{"true", "false", "false"} {
		calls, err := s.rows.Executions(t.Context(), current.ID, step+1)
		if err != nil || len(calls) != 1 || fmt.Sprint(calls[0].Success) != want || calls[0].Ended.IsZero() {
			t.Errorf("of turn %d it is kept that %+v, %v", step+1, calls, err)
		}
	}
}

// A command runs in the sandbox after it was allowed, with the exact line that was shown.
func TestTerminal(t *testing.T) {
	s := newEnv(t)
	s.write(`call terminal/create {"sessionId":"$S","command":"sh","args":["-c","echo $GREETING; echo made > out; exit 3"],`+
		`"env":[{"name":"GREETING","value":"it's me"}],"cwd":"`+strings.TrimSuffix(s.at(""), "/")+`"}`,
		`call terminal/wait_for_exit {"sessionId":"$S","terminalId":"terminal-1"}`,
		`call terminal/output {"sessionId":"$S","terminalId":"terminal-1"}`,
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Run it",`+
			`"kind":"execute","status":"completed","content":[{"type":"terminal","terminalId":"terminal-1"}]}}`,
		`call terminal/release {"sessionId":"$S","terminalId":"terminal-1"}`,
		`call terminal/output {"sessionId":"$S","terminalId":"terminal-1"}`,
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call","toolCallId":"c2","title":"Gone",`+
			`"status":"completed","content":[{"type":"terminal","terminalId":"terminal-1"}]}}`,
		"say ran")
	r := s.card(1)
	want := `{"command":"export GREETING='it'\\''s me'\nsh -c 'echo $GREETING; echo made > out; exit 3'","timeout":3600,"write":["."]}`
	if r.Tool != "run_command" || string(r.Input) != want {
		t.Errorf("it asks %s %s", r.Tool, r.Input)
	}
	if s.content("out") != "" {
		t.Error("it ran before it was allowed")
	}
	s.answer(r, allow)
	text := s.waitMessage("ran")
	for _, want := range []string{
		`terminal/create gives {"terminalId":"terminal-1"}`, `terminal/wait_for_exit gives {"exitCode":3}`,
		`"output":"it's me\n"`, `"exitStatus":{"exitCode":3}`, "terminal/release gives {}", "terminal/output fails: -32602",
		"· Run it (execute)", "terminal terminal-1:\nit's me", "(it is gone)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in\n%s", want, text)
		}
	}
	if s.content("out") != "made\n" {
		t.Errorf("it made %q", s.content("out"))
	}
}

// A denied command does not run; a running one is killed when the agent asks for it and when its turn ends.
func TestTerminalEnds(t *testing.T) {
	s := newEnv(t)
	const slow = `call terminal/create {"sessionId":"$S","command":"echo begun > begun; sleep 100; echo done > done"}`
	s.write(slow)
	s.answer(s.card(1), permissions.Deny)
	s.waitMessage("terminal/create fails: -32603 Tool run_command denied")
	s.write(slow,
		`call terminal/output {"sessionId":"$S","terminalId":"terminal-2"}`,
		`call terminal/kill {"sessionId":"$S","terminalId":"terminal-2"}`,
		`call terminal/wait_for_exit {"sessionId":"$S","terminalId":"terminal-2"}`, "say killed")
	s.answer(s.card(2), allow)
	text := s.waitMessage("killed")
	if !strings.Contains(text, `gives {"output":"","truncated":false}`) || !strings.Contains(text, `"signal":"SIGKILL"`) {
		t.Errorf("it says\n%s", text)
	}
	s.write(slow, ask("execute", `{"command":"while it runs"}`))
	s.answer(s.card(3), allow)
	s.card(4) // the command runs
	s.order(permissions.OrderStop)
	s.write(`call terminal/wait_for_exit {"sessionId":"$S","terminalId":"terminal-3"}`, "say over")
	if text := s.waitMessage("over"); !strings.Contains(text, `"signal":"SIGKILL"`) {
		t.Errorf("it says\n%s", text)
	}
	if s.content("done") != "" {
		t.Error("it went on")
	}
}

// TestAProgramThatAsksWithoutEndIsEnded: each call that waits for its answer takes memory.
func TestAProgramThatAsksWithoutEndIsEnded(t *testing.T) {
	s := newEnv(t)
	lines := []string{`call terminal/create {"sessionId":"$S","command":"sleep 100"}`}
	for range 101 {
		lines = append(lines, `calls terminal/wait_for_exit {"sessionId":"$S","terminalId":"terminal-1"}`)
	}
	s.write(lines...)
	s.answer(s.card(1), allow)
	s.waitMessage("I cannot go on: its program has ended")
}

// An unusual command is refused without asking people.
func TestOddTerminals(t *testing.T) {
	s := newEnv(t)
	s.write(
		`call terminal/create {"sessionId":"$S","command":" "}`,
		`call terminal/create {"sessionId":"$S","command":"ls","env":[{"name":"A B","value":"x"}]}`,
		`call terminal/create {"sessionId":"$S","command":7}`,
		`call terminal/create {"sessionId":"other","command":"ls"}`,
		`call terminal/create {"sessionId":"$S","command":"ls","cwd":"relative/../odd"}`,
		`call terminal/output {"sessionId":"$S","terminalId":"none"}`,
		`call terminal/output {"sessionId":"other","terminalId":"none"}`,
		`call terminal/wait_for_exit {"sessionId":"$S","terminalId":"none"}`,
		`call terminal/kill {"sessionId":"$S","terminalId":"none"}`,
		`call terminal/release {"sessionId":"$S","terminalId":"none"}`,
		"say odd")
	text := s.waitMessage("odd")
	if strings.Count(text, " fails: ") != 10 || len(s.phone.Copies()) != 0 {
		t.Errorf("it says\n%s", text)
	}
}

// A command's output is its last bytes, as many as the agent wants.
func TestTerminalOutputIsBounded(t *testing.T) {
	s := newEnv(t)
	s.write(`call terminal/create {"sessionId":"$S","command":"seq 1 100000; echo the end","outputByteLimit":12}`,
		`call terminal/wait_for_exit {"sessionId":"$S","terminalId":"terminal-1"}`,
		`call terminal/output {"sessionId":"$S","terminalId":"terminal-1"}`)
	s.answer(s.card(1), allow)
	if text := s.waitMessage("terminal/output"); !strings.Contains(text, `"output":"000\nthe end\n","truncated":true`) {
		t.Errorf("it says\n%s", text)
	}
}
