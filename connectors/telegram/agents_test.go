package telegram

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

// scribe is an agent of fay's that says what it hears, and works when it is told to.
type scribe struct {
	name  string
	doing permissions.Activity

	mu      sync.Mutex
	speaker agents.Speaker
	ready   chan struct{}
	refuses error // to hear
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
	a.mu.Lock()
	refuses := a.refuses
	a.mu.Unlock()
	if refuses != nil {
		return refuses
	}
	return a.voice().Say(ctx, m.Key, "heard: "+m.Text)
}

func (a *scribe) Obey(context.Context, permissions.Order) error { return nil }

func (a *scribe) Activity() permissions.Activity { return a.doing }

func withAgents(all ...agents.Resident) with { return func(s *env) { s.agents = all } }

// heard waits until it is noted that an agent has all that was written to it.
func (s *env) heard(agent string) {
	s.t.Helper()
	s.until("it is noted that it was heard", func() bool {
		waiting, err := s.rows.UndeliveredMessages(s.t.Context(), agent, 9)
		return err == nil && len(waiting) == 0
	})
}

// Nobody is told that work stops where there is none.
func TestStopWhereNothingIsDone(t *testing.T) {
	s := newEnv(t, withAgents(newScribe("helper", permissions.Idle)))
	s.says("fay", "/stop", "helper works on nothing, so nothing stops. Other agents go on; /stop all stops everything.")
}

// An agent is written to in the chat, and seen there, while requests wait and while none does.
func TestAnAgentInTheChat(t *testing.T) {
	helper, coder := newScribe("helper", permissions.AwaitingUser), newScribe("coder", permissions.Running)
	s := newEnv(t, withAgents(helper, coder))
	fay := s.phones["fay"]
	fay.Writes("good morning")
	s.told("fay", "helper: heard: good morning")
	s.heard("helper")
	s.says("fay", "/agents", "helper · waits for you · your messages go there\ncoder · running\n/use NAME")
	s.says("fay", "/status", "helper · waits for you\nNothing waits for your answer.")
	s.says("fay", "/stop", "helper stops what it works on")
	s.says("fay", "/new", "helper begins a new session")
	s.says("fay", "/quit", "helper ends its session")
	s.says("fay", "/use Codr", "did you mean coder?")
	s.says("fay", "/use coder", "Your messages go to coder from now on")
	s.says("fay", "/use", "coder · running · your messages go there")
	s.says("sam", "/agents", "No agent is bound")

	call, _, code := s.asked("x")
	s.says("fay", "what for?", "This goes to the agent. It decides nothing and refuses nothing")
	s.told("fay", "coder: heard: what for?")
	s.heard("coder")
	s.says("fay", "yes", "Nothing was decided")
	s.says("fay", "I say yes to "+code, "an answer is a whole message")
	coder.mu.Lock()
	coder.refuses = errors.New("busy")
	coder.mu.Unlock()
	fay.Writes("later")
	s.says("fay", "/status", "coder · running\n1 message of yours not read yet\n1 request waiting for your answer: /pending")
	for range 10 { // muted, which agents are not
		fay.Writes("yes " + permissions.Coder{}.Encode(4711))
	}
	s.says("fay", "yes "+code, "too many wrong codes")
	s.says("fay", "still here?", "This goes to the agent")
	s.waits(call)
	if n := s.sent("fay", func(m telegramtest.Message) bool { return strings.Contains(m.Text, "heard: yes") }); n > 0 {
		t.Errorf("an answer was passed on %d times", n)
	}
}

// What an agent says comes with its code as code, makes a sound or none, and can reach nobody.
func TestWhatAnAgentSays(t *testing.T) {
	s := newEnv(t)
	fay, _ := s.Person(identity(ids["fay"]))
	say := func(p connectors.AgentMessage) (string, bool, error) {
		p.Agent = "helper"
		return s.bot.SendMessage(t.Context(), p)
	}
	const text = "Look at `a.go`:\n```go\nfunc main() {\n\tdo()\n}\n```\nsha 😀 `b`"
	name, more, err := say(connectors.AgentMessage{To: fay, Text: text, Silent: true})
	m := s.told("fay", "helper: Look at a.go:")
	if err != nil || more || name != (ref{2001, int64(m.ID)}).String() || !m.Silent {
		t.Errorf("%s, more %v, %v; silent %v", name, more, err, m.Silent)
	}
	var got []string
	for _, e := range m.Entities {
		got = append(got, e.Type+" "+e.Language+" "+e.Of(m.Text))
	}
	want := "code  a.go|pre go func main() {\n    do()\n}|code  b"
	if strings.Join(got, "|") != want {
		t.Errorf("formatted: %q, want %q", got, want)
	}
	long := connectors.AgentMessage{To: fay, Text: strings.Repeat("`x` ", 1500)}
	for more := true; more; long.Part++ {
		if _, more, err = say(long); err != nil {
			t.Fatal(err)
		}
	}
	pieces := 0
	for _, m := range s.phones["fay"].Messages() {
		if strings.HasPrefix(m.Text, "helper (") {
			pieces += len(m.Entities)
		}
	}
	if pieces != 1500 {
		t.Errorf("%d pieces of code in %d messages", pieces, long.Part)
	}
	if name, more, err := say(long); err != nil || name != "" || more {
		t.Errorf("beyond the end: %q, %v, %v", name, more, err)
	}
	odd := telegramtest.Refuse(400, "Bad Request: something new")
	s.server.FailNext("sendMessage", 1, odd)
	if _, _, err := say(connectors.AgentMessage{To: fay, Text: "in `plain`"}); err != nil {
		t.Error(err)
	}
	if m := s.told("fay", "helper: in plain"); len(m.Entities) > 0 {
		t.Errorf("what was refused with its format came with %v", m.Entities)
	}
	s.server.FailNext("sendMessage", 2, odd)
	if _, _, err := say(connectors.AgentMessage{To: fay, Text: "`x`"}); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("what is never taken: %v", err)
	}
	s.server.FailNext("sendMessage", 1, telegramtest.BadGateway())
	if _, _, err := say(connectors.AgentMessage{To: fay, Text: "`x`"}); err == nil || errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("for now: %v", err)
	}
	s.phones["fay"].Blocks()
	for _, to := range []connectors.Person{fay, {Name: "kim"}} {
		if _, _, err := say(connectors.AgentMessage{To: to, Text: "x"}); !errors.Is(err, connectors.ErrUnreachable) {
			t.Errorf("to %s: %v, want that it is for good", to.Name, err)
		}
	}
	if err := s.bot.ShowTyping(t.Context(), connectors.Person{Name: "kim"}); err != nil {
		t.Errorf("typing to nobody: %v", err)
	}
}

// That an agent works is shown on the side: while that hangs, cards come and are answered, and so do messages.
func TestTypingHoldsUpNothing(t *testing.T) {
	helper := newScribe("helper", permissions.Running)
	s := newEnv(t, withAgents(helper), func(s *env) { s.server.FailNext("sendChatAction", -1, telegramtest.Hang()) })
	helper.voice().Working(true)
	s.until("it is shown that it works", func() bool { return s.called("sendChatAction") > 0 })
	call := s.ask(network("meanwhile"))
	s.phones["fay"].Writes("are you there?")
	s.told("fay", "helper: heard: are you there?")
	s.taps("fay", s.card("fay", "meanwhile"), "Allow once", "✅")
	s.get(call, permissions.Approved)
	helper.voice().Working(false)
}
