package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// withChild is a helper that first starts a child, whose model is child.
func withChild(start string, child modelFunc) modelFunc {
	return func(turn int, p models.Prompt) models.Reply {
		if strings.HasPrefix(p.System, "You are helper/") {
			return child(turn, p)
		}
		if turn == 0 {
			return calls("start_agent", start)
		}
		return says("told: " + newest(p))
	}
}

func TestABackgroundAgentAsks(t *testing.T) {
	s := newEnv(t, helper(withChild(`{"name":"notes","prompt":"write the notes"}`, func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("request_permission", `{"permission":"@network","reason":"to look them up"}`)
		case 1:
			return calls("write_file", noteA)
		}
		return says("I wrote them: " + newest(p))
	})))
	s.write("have them written")
	s.waitMessage("told: Started helper/notes. You are told when it is done.")
	r := s.card(1)
	if r.Agent != "helper/notes" || !r.Background || r.Foreground != "helper" || r.Caller.Name != "agent:helper/notes" {
		t.Errorf("the card is %+v", r)
	}
	s.answer(r, once)
	s.answer(s.card(2), once)
	s.waitMessage("[agent helper/notes] I am done.\n│ │ I wrote them: wrote a")
	if n := len(s.phone.Copies()); n != 2 || s.file("a") != "one\n" {
		t.Errorf("%d cards, and it wrote %q", n, s.file("a"))
	}
	notes := s.silentMessage("helper")
	for _, want := range []string{
		"[daycared] The background agent helper/notes asks fay for network access (\"to look them up\"). It was shown to fay",
		"[daycared] What the background agent helper/notes asked, network access, is settled (fay, phone): " +
			"Permission granted for network access.",
		"asks fay for leave to run write_file",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the foreground agent is not told %q, but %s", want, notes)
		}
	}
}

// silentMessage waits until an agent's session has taken all posts, and returns its transcript.
func (s *env) silentMessage(agent string) string {
	s.t.Helper()
	for deadline := time.After(patience); ; {
		s.rows.mu.Lock()
		changed := s.rows.changed
		s.rows.mu.Unlock()
		id := s.current(agent).ID
		turns, err := s.rows.Turns(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		text := ""
		for _, turn := range turns {
			text += strings.NewReplacer(`\"`, `"`, `\n`, "\n").Replace(string(turn.Content)) + "\n"
		}
		if strings.Count(text, "is settled") >= 2 {
			return text
		}
		select {
		case <-changed:
		case <-deadline:
			return text
		}
	}
}

// TestAChildHoldsNoMoreThanItsParent: a child holds only what it was given, which its parent must hold.
func TestAChildHoldsNoMoreThanItsParent(t *testing.T) {
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	run := func(start string) *env {
		a := helper(withChild(start, func(turn int, p models.Prompt) models.Reply {
			if turn == 0 {
				return calls("look", noteA)
			}
			return says("done")
		}))
		a.Tools = []tools.Tool{noteTool{name: "look", needs: needs}}
		a.Place.Tags = []permissions.Tag{permissions.Network}
		return newEnv(t, a)
	}
	s := run(`{"name":"x","prompt":"p","permissions":["@read:/etc/shadow"]}`)
	s.write("go")
	s.waitMessage("told: you cannot give @read:/etc/shadow: you do not hold it yourself")

	s = run(`{"name":"x","prompt":"p","permissions":["@network"]}`)
	s.write("go")
	s.waitMessage("[agent helper/x] I am done.")
	if n := len(s.phone.Copies()); n != 0 {
		t.Errorf("it asks %d times for what it was given", n)
	}

	s = run(`{"name":"x","prompt":"p"}`)
	s.write("go")
	if r := s.card(1); r.Agent != "helper/x" || len(r.Missing()) != 1 {
		t.Errorf("it asks %+v", r)
	}
}

func TestAPermissionForAChild(t *testing.T) {
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	hold := make(chan struct{})
	a := helper(nil)
	a.Model = modelFunc(func(turn int, p models.Prompt) models.Reply {
		if strings.HasPrefix(p.System, "You are helper/x") {
			switch turn {
			case 0:
				return calls("wait", noteB)
			case 1:
				return calls("look", noteA)
			}
			return says("done")
		}
		if turn == 0 {
			return calls("start_agent", `{"name":"x","prompt":"p"}`,
				"request_permission", `{"permission":"@network","reason":"for x","agentId":"x"}`,
				"request_permission", `{"permission":"@network","reason":"for y","agentId":"y"}`)
		}
		return says("told: " + newest(p))
	})
	a.Tools = []tools.Tool{noteTool{name: "look", needs: needs}, noteTool{name: "wait", hold: hold}}
	s := newEnvWith(t, withAuto("look", "wait"), a)
	s.write("go")
	r := s.card(1)
	if r.Agent != "helper/x" || r.Caller.Name != "agent:helper/x" {
		t.Errorf("it is asked for %+v", r)
	}
	s.answer(r, once)
	s.waitMessage("Permission granted for network access.\nYou have started no agent y.")
	close(hold)
	s.waitMessage("[agent helper/x] I am done.")
	if n := len(s.phone.Copies()); n != 1 || s.file("a") != "one\n" {
		t.Errorf("%d cards, and it wrote %q", n, s.file("a"))
	}
}

func TestAgentsWriteToEachOther(t *testing.T) {
	a := helper(nil)
	a.Model = modelFunc(func(turn int, p models.Prompt) models.Reply {
		if strings.HasPrefix(p.System, "You are helper/x") {
			if turn == 0 {
				return calls("message_agent", `{"agent":"parent","text":"which one?"}`)
			}
			return says("I heard: " + newest(p))
		}
		switch {
		case turn == 0:
			return calls("start_agent", `{"name":"x","prompt":"p"}`)
		case strings.Contains(newest(p), "which one?"):
			return calls("message_agent", `{"agent":"x","text":"the blue one"}`, "message_agent", `{"agent":"sam","text":"hello"}`)
		}
		return says("told: " + newest(p))
	})
	s := newEnv(t, a)
	s.write("go")
	s.waitMessage("told: Sent to helper/x.\n│ there is no agent sam here")
	s.waitMessage("I heard: [agent helper] the blue one")
}

func TestChildrenEndWithTheSession(t *testing.T) {
	s := newEnv(t, helper(withChild(`{"name":"x","prompt":"p"}`, firstCalls("write_file", noteA))))
	s.write("go")
	r := s.card(1)
	s.order(permissions.OrderQuit)
	for deadline := time.After(patience); ; {
		s.rows.mu.Lock()
		changed := s.rows.changed
		s.rows.mu.Unlock()
		if _, open, err := s.rows.CurrentSession(t.Context(), "helper/x"); err != nil || !open {
			break
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("the child goes on")
		}
	}
	if now, err := s.rows.Read(t.Context(), r.ID); err != nil || now.State != permissions.Cancelled {
		t.Errorf("what it asked is %s, %v", now.State, err)
	}
}

// TestASecondPersonsAgent sees nothing of the first person's.
func TestASecondPersonsAgent(t *testing.T) {
	seen := make(chan models.Prompt, 10)
	other := runtime.Agent{Name: "spy", Person: "sam", Via: "phone", Model: modelFunc(func(turn int, p models.Prompt) models.Reply {
		seen <- p
		if turn == 0 {
			return calls("message_agent", `{"agent":"helper","text":"tell me"}`, "message_agent", `{"agent":"helper/x","text":"tell me"}`,
				"request_permission", `{"permission":"@network","reason":"r","agentId":"helper/x"}`)
		}
		return says("told: " + newest(p))
	})}
	s := newEnv(t, helper(writer), other)
	s.write("my secret")
	r := s.card(1)
	s.writeAs(sam, "go")
	p := <-seen
	if len(p.Messages) != 1 || p.Messages[0].Text != "go" {
		t.Errorf("it reads %+v", p.Messages)
	}
	s.waitMessage("told: there is no agent helper here that you could write to\nthere is no agent helper/x here that you could write to\n" +
		"You have started no agent helper/x.")
	if got := s.current("helper"); got.Request != r.ID {
		t.Errorf("fay's agent is %+v", got)
	}
}

// If the parent agent's inbox is full, the person is told how the child's run ended.
func TestAPersonIsToldOfARunThatNoAgentIsToldOf(t *testing.T) {
	for name, c := range map[string]struct{ reply, says string }{
		"done":   {"I wrote them", "💬 agent helper/x has finished · "},
		"failed": {"", "💬 agent helper/x has failed · "},
	} {
		t.Run(name, func(t *testing.T) {
			full, over, reads, works := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
			fill, read, work := sync.OnceFunc(func() { close(full) }), sync.OnceFunc(func() { close(reads) }), sync.OnceFunc(func() { close(works) })
			s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
				switch {
				case strings.HasPrefix(p.System, "You are helper/"):
					work()
					<-full
					if c.reply == "" {
						return calls("look", `{}`) // forever
					}
					return says(c.reply)
				case turn == 0:
					return calls("start_agent", `{"name":"x","prompt":"p"}`)
				}
				read()
				<-over
				return says("told")
			}))
			t.Cleanup(func() { fill(); close(over) })
			s.write("go")
			<-reads
			<-works
			var err error
			for n := 0; err == nil && n < 1000; n++ {
				err = s.rows.Post(t.Context(), agents.Post{
					Session: s.current("helper").ID, Key: fmt.Sprint(n), From: "agent:helper/y", Text: "x", At: time.Now(),
				})
			}
			if permissions.CodeOf(err) != permissions.CodeLimit {
				t.Fatal(err)
			}
			fill()
			ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
			defer done()
			if err := s.phone.Hears(ctx, func(all []connectors.Notice) bool { return len(all) > 0 }); err != nil {
				t.Fatal(err)
			}
			said := strings.Join(card.Notice(s.phone.Told()[0], card.Options{}), "\n")
			if !strings.HasPrefix(said, c.says) || !strings.Contains(said, "│ "+c.reply) {
				t.Error(said)
			}
		})
	}
}
