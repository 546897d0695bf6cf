package acp_test

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/permissions"
)

// asAccount asks the engine as an account's process does.
type asAccount struct{ s *env }

func (a asAccount) Ask(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.Request, error) {
	return a.s.Ask(ctx, permissions.Caller{Name: "uid:4000", UID: 4000}, q)
}

// onceOptions is a prompt to the tests' agent, which records its output.
func (s *env) onceOptions(like ...string) (acp.OneShot, *strings.Builder) {
	box := sandbox.New(sandbox.Options{})
	said := &strings.Builder{}
	return acp.OneShot{
		Name: "coder", Session: "run-1", Program: program(box, s.place("coder"), 0, like...), Asker: asAccount{s},
		Say: func(text string) error { said.WriteString(text + "\n"); return nil },
	}, said
}

// One prompt from a terminal: people are asked, its output is printed, and it ends.
func TestOnce(t *testing.T) {
	s := newEnv(t)
	e, said := s.onceOptions()
	done := make(chan error, 1)
	go func() {
		done <- acp.Once(t.Context(), e, ask("execute", `{"command":"make"}`)+"\n"+
			`call fs/write_text_file {"sessionId":"$S","path":"`+s.at("a")+`","content":"hello\n"}`+"\nsay done")
	}()
	r := s.card(1)
	if r.Tool != "acp_execute" || r.Agent != "coder" || r.Caller.Name != "uid:4000" {
		t.Errorf("it asks %+v", r)
	}
	s.answer(r, allow)
	s.answer(s.card(2), allow)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), `"optionId":"o1"`) || !strings.Contains(said.String(), "done") || s.content("a") != "hello\n" {
		t.Errorf("it said\n%s\nand the file holds %q", said, s.content("a"))
	}
}

// It fails if the agent refuses, crashes, cannot be started, or on Ctrl-C.
func TestOnceFails(t *testing.T) {
	s := newEnv(t)
	e, said := s.onceOptions()
	if err := acp.Once(t.Context(), e, "stop refusal"); !errors.Is(err, acp.ErrUnfinished) ||
		!strings.Contains(said.String(), "I do not want") {
		t.Errorf("it ends with %v, saying %s", err, said)
	}
	if err := acp.Once(t.Context(), e, "crash"); !errors.Is(err, acp.ErrUnfinished) ||
		!strings.Contains(said.String(), "its program has ended") {
		t.Errorf("it ends with %v, saying %s", err, said)
	}
	for _, like := range []string{"broken", "locked"} {
		e, _ := s.onceOptions(like)
		if err := acp.Once(t.Context(), e, "say hello"); err == nil {
			t.Errorf("one that is %s ends well", like)
		}
	}
	locked, told := s.onceOptions("locked")
	if err := acp.Once(t.Context(), locked, "say hello"); err == nil || !strings.Contains(err.Error(), "\n- \"key\"\n") {
		t.Errorf("one that is locked ends with %v", err)
	}
	locked.Program.Auth = "key"
	if err := acp.Once(t.Context(), locked, "say hello"); err != nil || !strings.Contains(told.String(), "hello") {
		t.Errorf("one that can be signed in ends with %v, saying %s", err, told)
	}
	e.Program.Command = func(context.Context) (*exec.Cmd, func(), error) { return nil, nil, errors.New("no room") }
	if err := acp.Once(t.Context(), e, "say hello"); err == nil || !strings.Contains(err.Error(), "start its program: no room") {
		t.Errorf("it ends with %v", err)
	}
	e.Program.Command = func(ctx context.Context) (*exec.Cmd, func(), error) {
		return exec.CommandContext(ctx, "/nowhere/at/all"), func() {}, nil
	}
	if err := acp.Once(t.Context(), e, "say hello"); err == nil {
		t.Error("a program that is not there ends well")
	}
	e, said = s.onceOptions()
	e.Program.Log = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelInfo}))
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := acp.Once(ctx, e, "stderr a secret\nwait"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
	if strings.Contains(said.String(), "secret") {
		t.Errorf("what it wrote is logged:\n%s", said)
	}
	e.Say = func(string) error { return errors.New("nobody listens") }
	if err := acp.Once(t.Context(), e, "say hello"); err == nil || err.Error() != "nobody listens" {
		t.Errorf("it ends with %v", err)
	}
}
