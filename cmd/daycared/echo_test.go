package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

// Scripts may have agents of our own in them, which echo what is written to them: $ECHO_AGENTS names them, each with its
// person, and with the channel where that is not Telegram, as in helper:fay,coder:fay:terminal. What
// they do besides is in [echo.Receive]. Scripts say:
//
//	inorder NAME REGEXP…     wait until the bot has sent messages like these, in that order
//	never NAME REGEXP        it sent none like that
//	formats FORMAT…          of the message that is meant, exactly this is formatted, as in "pre go: first words"
//	typing N                 wait until it was shown N times that an agent works
//	appears FILE             wait for a file

func init() {
	residents = func() (all []agents.Resident) {
		for name := range strings.SplitSeq(os.Getenv("ECHO_AGENTS"), ",") {
			if agent, person, ok := strings.Cut(name, ":"); ok {
				person, via, _ := strings.Cut(person, ":")
				bond := permissions.Binding{Agent: agent, Person: person, Via: cmp.Or(via, "telegram")}
				all = append(all, &echo{bond: bond, ready: make(chan struct{})})
			}
		}
		return all
	}
}

// echo is an agent that exists only in tests.
type echo struct {
	bond    permissions.Binding
	speaker agents.Speaker
	ready   chan struct{} // closed once the speaker is set
}

// Binding implements [agents.Resident].
func (e *echo) Binding() permissions.Binding { return e.bond }

// Run implements [agents.Resident].
func (e *echo) Run(ctx context.Context, s agents.Speaker) error {
	e.speaker = s
	close(e.ready)
	<-ctx.Done()
	return nil
}

// Receive repeats the message. On "hold" it creates the file held and waits for the file go; "work" and "rest" start and end the
// working indicator; "report" sends a long text.
func (e *echo) Receive(ctx context.Context, m permissions.Message) error {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	text := "you said: " + m.Text
	switch m.Text {
	case "hold":
		if err := os.WriteFile(filepath.Join(os.Getenv("HOME"), "held"), nil, 0o600); err != nil {
			return err
		}
		if err := e.until(ctx, "go"); err != nil {
			return err
		}
	case "work", "rest":
		e.speaker.Working(m.Text == "work")
	case "report":
		text = strings.Repeat("A sentence of the report. ", 100) + "\n\n" + strings.Repeat("Another one. ", 100) +
			"\n```go\n" + strings.Repeat("\tdo(it, `now`)\n", 300) + "```\nRun `make it`."
	}
	return e.speaker.Say(ctx, m.Key, text)
}

// until waits for a file.
func (e *echo) until(ctx context.Context, name string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), name)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Obey implements [agents.Resident].
func (e *echo) Obey(ctx context.Context, o permissions.Order) error {
	<-e.ready
	return e.speaker.Say(ctx, "", "I obey: "+string(o))
}

// Activity implements [agents.Resident].
func (e *echo) Activity() permissions.Activity { return permissions.Idle }

func echoCommands() scriptCommands {
	return scriptCommands{"inorder": inOrder, "never": never, "formats": formats, "typing": typing, "appears": appears}
}

func inOrder(ts *testscript.TestScript, _ bool, args []string) {
	p := chatsOf(ts).person(ts, args[0])
	until(ts, "they came in order", func(context.Context) error {
		want := args[1:]
		for _, m := range p.Messages() {
			if len(want) > 0 && m.FromBot && regexp.MustCompile("(?s)"+want[0]).MatchString(m.Text) {
				want = want[1:]
			}
		}
		if len(want) > 0 {
			return fmt.Errorf("not yet: %s", want[0])
		}
		return nil
	})
}

func never(ts *testscript.TestScript, _ bool, args []string) {
	for _, m := range chatsOf(ts).person(ts, args[0]).Messages() {
		if m.FromBot && regexp.MustCompile("(?s)"+args[1]).MatchString(m.Text) {
			ts.Fatalf("%s was sent %q", args[0], m.Text)
		}
	}
}

func formats(ts *testscript.TestScript, _ bool, args []string) {
	m := chatsOf(ts).now
	var got []string
	for _, e := range m.Entities {
		text := strings.Fields(e.Of(m.Text))
		got = append(got, strings.TrimSpace(e.Type+" "+e.Language)+": "+strings.Join(text[:min(len(text), 2)], " "))
	}
	if !slices.Equal(got, args) {
		ts.Fatalf("it has %q", got)
	}
}

func typing(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	err = chatsOf(ts).server.AwaitCalls(ctx, func(calls []telegramtest.Call) bool {
		shown := 0
		for _, c := range calls {
			if c.Method == "sendChatAction" && c.Params["action"] == "typing" {
				shown++
			}
		}
		return shown >= n
	})
	ts.Check(err)
}

func appears(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, args[0]+" appears", func(context.Context) error {
		if _, err := os.Stat(ts.MkAbs(args[0])); err != nil {
			return errors.New("it is not there")
		}
		return nil
	})
}
