package terminal_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// echo is an agent of fay's that says what it hears, and what it is ordered.
type echo struct {
	name    string
	speaker agents.Speaker
	ready   chan struct{}
	refuses error // to obey
}

func (e *echo) Binding() permissions.Binding {
	return permissions.Binding{Agent: e.name, Person: fay.Name, Via: terminal.Name}
}

func (e *echo) Run(ctx context.Context, s agents.Speaker) error {
	e.speaker = s
	close(e.ready)
	<-ctx.Done()
	return nil
}

func (e *echo) Receive(ctx context.Context, m permissions.Message) error {
	<-e.ready
	return e.speaker.Say(ctx, m.Key, "heard: "+m.Text)
}

func (e *echo) Obey(ctx context.Context, o permissions.Order) error {
	<-e.ready
	if e.refuses != nil {
		return e.refuses
	}
	return e.speaker.Say(ctx, "", "I obey: "+string(o))
}

func (e *echo) Activity() permissions.Activity { return permissions.Idle }

// env is a real engine over a real store, whose person sits at a console and has agents.
type env struct {
	*person
	engine *engine.Engine
	rows   *store.Store
	clock  *clock
	stop   func()
}

// clock only moves when a test sets it forward.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newEnv(t *testing.T, sit func(testing.TB, func(*terminal.Options)) *person, names ...string) *env {
	t.Helper()
	s := &env{clock: &clock{now: time.Now()}}
	s.person = sit(t, func(o *terminal.Options) { o.Now = s.clock.Now })
	log := slog.New(slog.DiscardHandler)
	var err error
	s.rows, err = wiretest.OpenStore(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "store.db"), Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	var residents []agents.Resident
	for _, name := range names {
		residents = append(residents, &echo{name: name, ready: make(chan struct{})})
	}
	s.engine = engine.New(engine.Options{
		Store: s.rows, Residents: residents, Now: time.Now, Log: log,
		Settings: engine.Settings{
			UID: fay.UID, People: []connectors.Person{fay}, Routes: []engine.Route{{Ask: []string{fay.Name}}},
			Approvals: engine.Approvals{
				Timeout: time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: time.Minute, DeliverWithin: time.Minute,
				RedeemWindow: time.Minute, Scopes: []permissions.Scope{permissions.Once},
			},
			Limits: engine.Limits{PendingPerCaller: 20, PromptsPerMinute: 1000, PendingTotal: 20},
		},
	})
	s.engine.Connect(s.Terminal)
	s.to.Services = s.engine
	if err := s.engine.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = s.engine.Run(ctx) })
	group.Go(func() { _ = s.Run(ctx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		if err := s.rows.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// asks has a caller ask, and gives its code once the card is there, and what becomes of it.
func (s *env) asks(t *testing.T, q permissions.Request) (code string, end <-chan permissions.Request) {
	t.Helper()
	settled := make(chan permissions.Request, 1)
	go func() {
		r, _ := s.engine.Ask(context.Background(), permissions.Caller{Name: "token:ci", UID: permissions.NoUID}, q)
		settled <- r
	}()
	before := s.screen.String()
	s.screen.until(t, "another card", func(all string) bool {
		rest := strings.TrimPrefix(all, before)
		i := strings.LastIndex(rest, " · until ")
		if i < permissions.CodeLength || !awaits(rest) {
			return false
		}
		code = rest[i-permissions.CodeLength : i]
		return true
	})
	return code, settled
}

func (s *env) ends(t *testing.T, end <-chan permissions.Request, want permissions.State) permissions.Request {
	t.Helper()
	select {
	case r := <-end:
		if r.State != want {
			t.Errorf("it is %s; want %s", r.State, want)
		}
		return r
	case <-time.After(patience):
		t.Fatalf("it is still asked:\n%s", s.screen)
		return permissions.Request{}
	}
}

// says types a line, and waits until the screen says something new.
func (s *env) says(t *testing.T, line, want string) {
	t.Helper()
	before := len(s.screen.String())
	s.types(t, line+"\n")
	s.screen.until(t, want, func(all string) bool { return strings.Contains(all[before:], want) })
}

// heard waits until it is noted that an agent has all that was written to it.
func (s *env) heard(t *testing.T, agent string) {
	t.Helper()
	s.until(t, "it is noted that it was heard", func() bool {
		waiting, err := s.rows.UndeliveredMessages(t.Context(), agent, 9)
		return err == nil && len(waiting) == 0
	})
}

// until looks again and again until something is so.
func (s *env) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for late := time.After(patience); !so(); {
		select {
		case <-late:
			t.Fatalf("not yet: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// atCard is says once the card's hint is there, before which nothing counts.
func (s *env) atCard(t *testing.T, line, want string) {
	t.Helper()
	s.screen.until(t, "the hint", awaits)
	s.says(t, line, want)
}

func permission(reason string) permissions.Request {
	return permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason,
	}
}

// forEach plays a test at a pipe and at a terminal.
func forEach(t *testing.T, names []string, test func(t *testing.T, s *env)) {
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, sit, names...)) })
	}
}

func TestTalkingToAnAgent(t *testing.T) {
	forEach(t, []string{"helper", "coder"}, func(t *testing.T, s *env) {
		s.screen.sees(t, "What you type here goes to helper; /help says more.\n")
		s.says(t, "good morning", "helper: heard: good morning\n")
		s.types(t, "one\ntwo\nthree\n") // at once, and nothing of it is lost
		s.screen.sees(t, "helper: heard: one\n")
		s.screen.sees(t, "helper: heard: two\n")
		s.screen.sees(t, "helper: heard: three\n")
		s.says(t, "yes", "helper: heard: yes\n") // to nothing
		s.says(t, "/agents", "helper · idle · your messages go there\ncoder · idle\n/use NAME")
		s.says(t, "/use codr", "did you mean coder?")
		s.says(t, "/use coder", "Your messages go to coder from now on")
		s.says(t, "  to you  ", "coder: heard:   to you")
		s.heard(t, "coder")
		s.says(t, "/status", "coder · idle\nNothing waits for your answer.")
		s.says(t, "/pending", "Nothing waits for your answer.")
		s.says(t, "/grants", "Nothing is granted.")
		s.says(t, "/revoke", "Say which")
		s.says(t, "/whoami", "You are fay here. This is the daemon's own console.")
		s.says(t, "/help", "begin with >, as in: > how far are you?")
		s.says(t, "/stop", "coder: I obey: stop")
		s.says(t, "/new", "coder: I obey: new")
		s.says(t, "/quit", "coder: I obey: quit")
		s.says(t, "/stpo", "There is no command /stpo.")
		s.says(t, strings.Repeat("x", 5000), "That line is too long, and nobody has read it.")
		s.says(t, "\n \n/stop all", "0 requests were cancelled; nothing is asked until /resume.")
		s.says(t, "/resume", "Resumed: requests are asked again")
		s.says(t, "/resume", "Nothing is stopped.")
	})
}

// A card has its own answers, exactly as without agents; what begins with > or / is none.
func TestTalkingWhileACardIsThere(t *testing.T) {
	forEach(t, []string{"helper"}, func(t *testing.T, s *env) {
		code, end := s.asks(t, permission("fetch the docs"))
		s.atCard(t, "what for?", "Nothing was decided")
		s.screen.sees(t, "/ begins a command, as in /stop, and > what your agent is to hear meanwhile.\n")
		s.atCard(t, "> what for?", "This goes to the agent. It decides nothing and refuses nothing")
		s.screen.sees(t, "helper: heard: what for?\n")
		s.atCard(t, "> yes", "Nothing was decided: an answer names its request")
		s.atCard(t, "> yes "+code, "codes are not for agents")
		s.atCard(t, "> no KKKKK", "codes are not for agents")
		s.atCard(t, ">", "Nothing was decided")
		s.atCard(t, "/status", "1 request waiting for your answer")
		s.atCard(t, "/pending", code)
		s.atCard(t, "/nothing", "There is no command /nothing")
		s.atCard(t, "/quit", "helper: I obey: quit\n")
		s.atCard(t, "r", "reason > ")
		s.atCard(t, "/stop", "helper: I obey: stop\n")
		s.atCard(t, "/etc is not yours", "⛔ You denied this")
		if r := s.ends(t, end, permissions.Denied); r.Comment != "/etc is not yours" {
			t.Errorf("the reason is %q", r.Comment)
		}
		for _, never := range []string{"heard: yes", "heard: no", "heard: /", "heard: >"} {
			if strings.Contains(s.screen.String(), never) {
				t.Errorf("the agent %s", never)
			}
		}
		_, end = s.asks(t, permission("again"))
		s.atCard(t, "y", "✅ You allowed this once")
		s.ends(t, end, permissions.Approved)
		code, end = s.asks(t, permission("and again"))
		s.atCard(t, "/stop all", "1 request was cancelled")
		s.ends(t, end, permissions.Cancelled)
		s.screen.sees(t, "✖ You cancelled this") // the card is gone
		s.says(t, "no "+code, code)              // named while nothing is asked: told, and not passed on
		if strings.Contains(s.screen.String(), "heard: no") {
			t.Error("the agent heard a code")
		}
	})
}

// What was a mistaken answer is still one, and the third takes the first option.
func TestMistakesAtAQuestion(t *testing.T) {
	forEach(t, []string{"helper"}, func(t *testing.T, s *env) {
		question := permissions.Request{
			Kind: permissions.KindClarification, Message: "Where to?", Choices: []string{"/srv/www", "/stop"},
		}
		_, end := s.asks(t, question)
		s.atCard(t, "/status", "helper · idle")
		s.atCard(t, "> neither", "helper: heard: neither\n")
		s.atCard(t, "/stop", "✅") // an option goes before a command
		if r := s.ends(t, end, permissions.Answered); r.Answer != permissions.Choose(2) || r.Defaulted {
			t.Errorf("it is %+v", r)
		}
		_, end = s.asks(t, question)
		s.atCard(t, "/srv/wwww", `No option (2 tries left, then 1 "/srv/www" is taken). Type a number`)
		s.atCard(t, "/agents", "Your agents in this chat")
		s.atCard(t, "/", `No option (1 try left, then 1 "/srv/www" is taken).`)
		s.atCard(t, "neither", "No valid answer in three tries")
		if r := s.ends(t, end, permissions.Answered); !r.Defaulted {
			t.Errorf("it is %+v", r)
		}
	})
}

// A card does not come between the keys of a line, nor wait for ever, and what was begun comes back after it.
func TestACardWaitsForTyping(t *testing.T) {
	s := newEnv(t, atTerminal, "helper")
	s.screen.sees(t, "What you type here goes to helper")
	s.types(t, "not y")
	s.screen.until(t, "it is typed", func(all string) bool { return strings.HasSuffix(all, "not y") })
	end := make(chan permissions.Request, 2)
	ask := func(reason string) {
		r, _ := s.engine.Ask(context.Background(), permissions.Caller{Name: "token:ci", UID: permissions.NoUID}, permission(reason))
		end <- r
	}
	go ask("fetch the docs")
	s.until(t, "it was sent", func() bool {
		all, err := s.engine.Pending(t.Context(), connectors.Identity{Via: terminal.Name, Console: true, UID: permissions.NoUID}, "", 9)
		return err == nil && len(all) == 1 && len(all[0].Copies) == 1 && all[0].Copies[0].Ref != ""
	})
	if err := s.Say("a row of ours"); err != nil { // after which the card is known here
		t.Fatal(err)
	}
	s.screen.until(t, "the line again", func(all string) bool { return strings.HasSuffix(all, "a row of ours\nnot y") })
	s.types(t, "et\n")
	s.screen.sees(t, "helper: heard: not yet\n")
	s.screen.until(t, "the card", awaits)
	s.atCard(t, "y", "✅ You allowed this once")
	if r := <-end; r.State != permissions.Approved {
		t.Errorf("it is %s", r.State)
	}
	s.types(t, "half a li")
	s.screen.until(t, "it is typed", func(all string) bool { return strings.HasSuffix(all, "half a li") })
	go ask("and the tests")
	s.clock.forward(time.Minute)
	s.screen.until(t, "the card", awaits)
	s.atCard(t, "n", "⛔ You denied this")
	if r := <-end; r.State != permissions.Denied {
		t.Errorf("it is %s", r.State)
	}
	s.screen.until(t, "the line again", func(all string) bool { return strings.HasSuffix(all, "\nhalf a li") })
	s.types(t, "ne\n")
	s.screen.sees(t, "helper: heard: half a line\n")
}

// What an agent says is under its name, with codes of what is pending hidden, and never as a card.
func TestWhatAgentsSayHere(t *testing.T) {
	forEach(t, []string{"helper"}, func(t *testing.T, s *env) {
		code, end := s.asks(t, permission("fetch the docs"))
		for i, text := range []string{
			"type yes " + code, "✅ Allowed once by fay", "token:ci wants   network access", "run `make it` now",
			"```\n\tdo(it)\n```", "\x1b[2Jgone\u202e",
		} {
			said := connectors.AgentMessage{To: fay, Agent: "helper", Text: text, Codes: map[string]bool{code: true}}
			if ref, more, err := s.SendMessage(t.Context(), said); ref == "" || more || err != nil {
				t.Errorf("%d: %q, %v, %v", i, ref, more, err)
			}
		}
		for _, want := range []string{
			"\nhelper: type yes •••••\n", "\nhelper: │ ✅ Allowed once by fay\n", "\nhelper: │ token:ci wants   network access\n",
			"\nhelper: run `make it` now\n", "\nhelper:\n    do(it)\n", `helper: \u{1B}[2Jgone\u{202E}`,
		} {
			s.screen.sees(t, want)
		}
		s.screen.until(t, "the hint again", awaits)
		if n := strings.Count(s.screen.String(), code); n != 1 {
			t.Errorf("the code is seen %d times:\n%s", n, s.screen)
		}
		s.atCard(t, "n", "⛔ You denied this")
		s.ends(t, end, permissions.Denied)
		stranger := connectors.AgentMessage{To: connectors.Person{Name: "sam", UID: 8}, Agent: "helper", Text: "hello"}
		if _, _, err := s.SendMessage(t.Context(), stranger); !errors.Is(err, connectors.ErrUnreachable) {
			t.Errorf("to somebody else: %v", err)
		}
		beyond := connectors.AgentMessage{To: fay, Agent: "helper", Text: "x", Part: 7}
		if ref, more, err := s.SendMessage(t.Context(), beyond); ref != "" || more || err != nil {
			t.Errorf("beyond the end: %q, %v, %v", ref, more, err)
		}
	})
}

func TestTheEndWhileNothingIsAsked(t *testing.T) {
	forEach(t, []string{"helper"}, func(t *testing.T, s *env) {
		s.screen.sees(t, "What you type here")
		if s.tty == nil {
			s.types(t, "the last\nlost")
			_ = s.hand.Close()
			s.screen.sees(t, "This console is closed")
		} else {
			s.types(t, "\x1b\n") // Esc means nothing here
			s.says(t, "the last", "helper: heard: the last\n")
			s.says(t, "\x04", "This console is closed")
		}
		if err := s.Reach(fay); !errors.Is(err, connectors.ErrUnreachable) {
			t.Errorf("Reach = %v", err)
		}
		s.stop()
	})
}

// Without agents, nothing is read while nothing is asked, and what begins with a slash is a mistaken answer.
func TestWithoutAgents(t *testing.T) {
	forEach(t, nil, func(t *testing.T, s *env) {
		s.types(t, "hello\n")
		_, end := s.asks(t, permission("fetch the docs"))
		s.atCard(t, "/stop", "Nothing was decided")
		s.atCard(t, "> hello", "Nothing was decided")
		s.atCard(t, "n", "⛔ You denied this")
		s.ends(t, end, permissions.Denied)
		for _, never := range []string{"agent is to hear", "What you type"} {
			if strings.Contains(s.screen.String(), never) {
				t.Errorf("it says %q", never)
			}
		}
	})
}
