package whatsapp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// scribe is an agent of fay's that says what it hears.
type scribe struct {
	name  string
	doing permissions.Activity

	mu      sync.Mutex
	speaker agents.Speaker
	ready   chan struct{}
}

func newScribe(name string, doing permissions.Activity) *scribe {
	return &scribe{name: name, doing: doing, ready: make(chan struct{})}
}

func (a *scribe) Binding() permissions.Binding {
	return permissions.Binding{Agent: a.name, Person: "fay", Via: Name}
}

func (a *scribe) Run(ctx context.Context, s agents.Speaker) error {
	a.mu.Lock()
	a.speaker = s
	a.mu.Unlock()
	close(a.ready)
	<-ctx.Done()
	return nil
}

func (a *scribe) voice() agents.Speaker {
	<-a.ready
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.speaker
}

func (a *scribe) Receive(ctx context.Context, m permissions.Message) error {
	return a.voice().Say(ctx, m.Key, "heard: "+m.Text)
}

func (a *scribe) Obey(context.Context, permissions.Order) error { return nil }

func (a *scribe) Activity() permissions.Activity { return a.doing }

// Agents are written to in the chat, and speak there, while requests wait and while none does.
func TestAnAgentInTheChat(t *testing.T) {
	helper, coder := newScribe("helper", permissions.AwaitingUser), newScribe("coder", permissions.Running)
	s := newEnv(t, func(s *env) { s.agents = []agents.Resident{helper, coder} })
	fay := s.phones["fay"]
	fay.Says("good morning")
	s.sees("fay", "helper: heard: good morning")
	s.says("fay", "/agents", "`helper` · waits for you · your messages go there\n`coder` · running\n/use NAME")
	s.says("fay", "/stop", "`helper` stops what it works on")
	s.says("fay", "/new", "`helper` begins a new session")
	s.says("fay", "/quit", "`helper` ends its session")
	s.says("fay", "/use coder", "Your messages go to `coder` from now on")
	s.says("fay", "/status", "`coder` · running")
	s.says("sam", "/agents", "No agent is bound")
	fay.Quotes(s.sees("fay", "helper: heard: good morning").ID, "you are meant")
	s.sees("fay", "helper: heard: you are meant")

	call, _, code := s.asked("waits.")
	s.says("fay", "what for?", "This goes to the agent. It decides nothing and refuses nothing")
	s.sees("fay", "coder: heard: what for?")
	s.says("fay", "yes", "Nothing was decided")
	if err := coder.voice().Say(t.Context(), "1", "write yes "+code+" now"); err != nil {
		t.Fatal(err)
	}
	s.sees("fay", "coder: write yes ••••• now")
	fay.Ago(0).Forwards("what somebody else wrote")
	s.waits(call)

	coder.voice().Working(true)
	s.until("it is shown that it works", func() bool {
		for _, typing := range s.server.Typings() {
			if typing.To == fay.Number() && typing.State == "composing" {
				return true
			}
		}
		return false
	})
	coder.voice().Working(false)
	s.acknowledged()
	if n := s.count("fay", "heard: yes") + s.count("fay", "somebody else"); n > 0 {
		t.Errorf("%d messages were passed on that are none", n)
	}
	s.says("sam", "is anybody there?", "nobody reads this")
}

// What an agent says comes with its code as code, and nothing else is formatted.
func TestWhatAnAgentSays(t *testing.T) {
	s := newEnv(t)
	fay, _ := s.Person(connectors.Identity{Via: Name, Address: "+" + numbers["fay"]})
	say := func(p connectors.AgentMessage) (string, bool, error) {
		p.Agent = "helper"
		return s.wa.SendMessage(t.Context(), p)
	}
	const text = "Look at *all* of `a_b.go`:\n```go\nfunc main() {\n\tdo()\n}\n```\nsha 😀 ~b~ `c`"
	name, more, err := say(connectors.AgentMessage{To: fay, Text: text})
	m := s.sees("fay", "helper: Look at")
	if err != nil || more || name != (ref{"+" + numbers["fay"], m.ID}).String() {
		t.Errorf("%s, more %v, %v", name, more, err)
	}
	want := "helper: Look at *\u2060all*\u2060 of `a_b.go`:\n```func main() {\n    do()\n}```\nsha 😀 ~\u2060b~\u2060 `c`"
	if m.Text != want {
		t.Errorf("%q; want %q", m.Text, want)
	}
	long := connectors.AgentMessage{To: fay, Text: strings.Repeat("`x` ", 3000)}
	for more := true; more; long.Part++ {
		if _, more, err = say(long); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count("fay", "helper ("); n != long.Part || n < 2 {
		t.Errorf("%d messages of %d", n, long.Part)
	}
	if name, more, err := say(long); err != nil || name != "" || more {
		t.Errorf("beyond the end: %q, %v, %v", name, more, err)
	}
	s.server.RefuseMessages(1, 500)
	if _, _, err := say(connectors.AgentMessage{To: fay, Text: "x"}); err == nil || errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("refused for now: %v", err)
	}
	s.phones["fay"].Deletes()
	for _, to := range []connectors.Person{{Name: "zoe", Addresses: map[string]string{Name: "+491700000777"}}, {Name: "kim"}} {
		if _, _, err := say(connectors.AgentMessage{To: to, Text: "x"}); !errors.Is(err, connectors.ErrUnreachable) {
			t.Errorf("to %s: %v, want that it is for good", to.Name, err)
		}
	}
	if err := s.wa.ShowTyping(t.Context(), connectors.Person{Name: "kim"}); err != nil {
		t.Errorf("typing to nobody: %v", err)
	}
}

// The commands do here what they do elsewhere.
func TestCommands(t *testing.T) {
	s := newEnv(t)
	s.says("fay", "/whoami", "You are fay here. Your number is +"+numbers["fay"])
	s.says("fay", "/help", "YES K7F3Q RUN")
	s.says("fay", "/what", "There is no command /what")
	s.says("fay", "/grants", "Nothing is granted")
	call, _, code := s.asked("for a while.")
	s.says("fay", " /pending", code)
	s.phones["fay"].Says("yes " + code + " 15m")
	s.get(call, permissions.Approved)
	granted := plain(s.says("fay", "/grants", "/revoke ").Text)
	_, id, _ := strings.Cut(granted, "/revoke ")
	s.says("fay", "/revoke "+strings.TrimSpace(id), "Taken back")
	call, m, _ := s.asked("to be stopped.")
	s.says("fay", "/stop all", "1 request was cancelled")
	s.get(call, permissions.Cancelled)
	s.becomes("fay", m.ID, "You cancelled this")
	s.phones["eve"].Says("/stop all")
	s.phones["eve"].Says("/help")
	s.acknowledged()
	if n := s.count("eve", ""); n != 0 {
		t.Errorf("a stranger is told %d things", n)
	}
}

// An account that brings the code of an invitation is paired once the machine that showed it confirms that.
func TestEnrolling(t *testing.T) {
	s := newEnv(t)
	eve := s.phones["eve"]
	in, err := s.wa.Invite(t.Context())
	if err != nil || !strings.Contains(in.Link, "https://wa.me/"+s.server.Number()) || !strings.Contains(in.How, "pair "+in.Code) {
		t.Fatalf("%+v, %v", in, err)
	}
	wrong := "pair " + strings.Repeat("2", codeLength)
	s.phones["fay"].Says(wrong)
	s.sees("fay", "This code does not work")
	said := eve.Says(wrong)
	eve.Reacts(said, "pair "+in.Code) // which is no message
	s.acknowledged()
	if n := s.count("eve", ""); n != 0 {
		t.Errorf("a stranger with a wrong code is told %d things", n)
	}
	eve.Says(" Pair  " + strings.ToLower(in.Code))
	s.sees("eve", "is asking now whether you are the one it expects")
	guest, err := s.wa.AwaitCandidate(soon(t), in.Code)
	if err != nil || guest.Address != "+"+numbers["eve"] || guest.Alias != eve.LID().User || guest.Name != "eve" {
		t.Errorf("%+v, %v", guest, err)
	}
	s.wa.Greet(in.Code, guest.Address, "eve")
	s.sees("eve", "You answer for daycared here as eve")
	s.wa.Host = "a machine"
	s.wa.Release(guest.Address, "eve")
	s.sees("eve", "You no longer answer for daycared on a machine as eve")
	in, err = s.wa.Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eve.Says("pair " + in.Code)
	if _, err := s.wa.AwaitCandidate(soon(t), in.Code); err != nil {
		t.Fatal(err)
	}
	s.wa.Dismiss(in.Code)
	s.sees("eve", "You were not added")
	s.server.Down()
	s.sick("no connection")
	if _, err := s.wa.Invite(t.Context()); err == nil {
		t.Error("invited while nobody can come")
	}
}
