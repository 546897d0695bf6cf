package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// A person's messages reach their agent in order, and its messages come back in order, under its name.
func TestChatInOrder(t *testing.T) {
	h := newChatEnv(t)
	var written, back []string
	for n := range 20 {
		text := fmt.Sprintf("message %d", n)
		h.wrote(fayAt(chatVia), n, text, "")
		written, back = append(written, text), append(back, "helper: "+text)
	}
	h.sees(back...)
	h.helper.hears(t, written...)
	if m := h.helper.heard[0]; m.From != "fay" || m.Agent != "helper" || m.Key != "memory:0" || m.CreatedAt.IsZero() {
		t.Errorf("it heard %+v", m)
	}
	h.wrote(fayAt(chatVia), 3, "message 3", "") // delivered again
	h.wrote(samHere, 100, "to sam's", "")
	h.nightly.hears(t, "to sam's")
	h.helper.hears(t, written...)
	h.coder.hears(t)
}

// Messages go to the agent in the foreground, and a reply to the author of the message that it replies to.
func TestChatAmongSeveralAgents(t *testing.T) {
	h := newChatEnv(t)
	fayHere := fayAt(chatVia)
	use := func(name, want string) {
		t.Helper()
		if got, err := h.Use(t.Context(), fayHere, name); err != nil || got != want {
			t.Fatalf("use %s: %q, %v", name, got, err)
		}
	}
	h.wrote(fayHere, 1, "one", "")
	first := h.sees("helper: one")[0]
	use("CODER", "coder")
	h.wrote(fayHere, 2, "two", "")
	second := h.sees("helper: one", "coder: two")[1]
	h.wrote(fayHere, 3, "three", first.Ref)
	h.sees("helper: one", "coder: two", "helper: three")
	h.wrote(fayHere, 4, "four", "of something else")
	h.sees("helper: one", "coder: two", "helper: three", "coder: four")

	h.reopen(nil)
	h.wrote(fayHere, 5, "five", "")
	h.sees("coder: five")
	use("helper", "helper")
	h.wrote(fayHere, 6, "six", second.Ref)
	h.sees("coder: five", "coder: six")
	h.wrote(samHere, 7, "not sam's", second.Ref) // a reply to another person's agent goes to one's own
	h.nightly.hears(t, "not sam's")

	for name, near := range map[string]string{
		"codr": "; did you mean coder? ", "nightly": `called "nightly". See `, "hlper": "; did you mean helper? ",
	} {
		_, err := h.Use(t.Context(), fayHere, name)
		refused(t, err, permissions.CodeUnknown)
		if !strings.Contains(err.Error(), near) {
			t.Errorf("use %s: %v", name, err)
		}
	}
}

func TestChatWithoutAnAgent(t *testing.T) {
	h := newChatEnv(t)
	unknown, elsewhere := connectors.Identity{Via: chatVia, UID: 4711}, fayAt("another")
	for _, c := range []struct {
		who  connectors.Identity
		code permissions.Code
	}{{unknown, permissions.CodeNotYours}, {elsewhere, permissions.CodeNoAgent}} {
		refused(t, h.writes(c.who, 1, "x", ""), c.code)
		_, err := h.Agents(t.Context(), c.who)
		refused(t, err, c.code)
		_, err = h.Use(t.Context(), c.who, "helper")
		refused(t, err, c.code)
		_, err = h.Order(t.Context(), c.who, permissions.OrderStop, "k")
		refused(t, err, c.code)
	}
	refused(t, h.writes(fayAt(chatVia), 1, strings.Repeat("x", permissions.MaxMessageSize+1), ""), permissions.CodeInvalid)
	refused(t, h.writes(fayAt(chatVia), 1, "\xff", ""), permissions.CodeInvalid)
	h.helper.hears(t)
}

func TestChatPresence(t *testing.T) {
	h := newChatEnv(t, func(h *chatEnv) {
		h.helper.hear = func(permissions.Message) error { return errors.New("busy") }
		h.coder.doing = permissions.Paused
	})
	for n := range 100 {
		h.wrote(fayAt(chatVia), n, "x", "")
	}
	refused(t, h.writes(fayAt(chatVia), 100, "too much", ""), permissions.CodeLimit)
	if _, err := h.Use(t.Context(), fayAt(chatVia), "coder"); err != nil {
		t.Fatal(err)
	}
	h.wrote(fayAt(chatVia), 101, "to another one", "")
	h.coder.hears(t, "to another one")
	want := []permissions.Presence{
		{Agent: "helper", Activity: permissions.Idle, Undelivered: 100},
		{Agent: "coder", Foreground: true, Activity: permissions.Paused},
	}
	h.until("it is noted that it was heard", func() bool {
		got, err := h.Agents(t.Context(), fayAt(chatVia))
		return err == nil && cmp.Diff(want, got) == ""
	})
}

// An order reaches the agent in the foreground at once, even if it takes no messages, and counts once.
func TestChatOrders(t *testing.T) {
	h := newChatEnv(t, func(h *chatEnv) {
		h.coder.hear = func(permissions.Message) error { return errors.New("busy") }
	})
	fayHere := fayAt(chatVia)
	if _, err := h.Use(t.Context(), fayHere, "coder"); err != nil {
		t.Fatal(err)
	}
	h.wrote(fayHere, 1, "x", "")
	order := func(o permissions.Order, key string) error {
		t.Helper()
		name, err := h.Order(t.Context(), fayHere, o, key)
		if err == nil && name != "coder" {
			t.Errorf("%s obeys", name)
		}
		return err
	}
	h.coder.refuses = errors.New("not now")
	refused(t, order(permissions.OrderStop, "k1"), permissions.CodeLimit)
	h.coder.refuses = nil
	for _, err := range []error{
		order(permissions.OrderStop, "k1"), order(permissions.OrderStop, "k1"), order(permissions.OrderNew, "k2"),
		order(permissions.OrderQuit, "k3"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []permissions.Order{permissions.OrderStop, permissions.OrderStop, permissions.OrderNew, permissions.OrderQuit}
	if diff := cmp.Diff(want, h.coder.orders); diff != "" {
		t.Errorf("obeyed (-want +got):\n%s", diff)
	}
}

// A message that an agent could not take is delivered again before later ones, also after a restart, and none is lost.
func TestChatIsHeardLater(t *testing.T) {
	failing := make(chan struct{}, 1)
	h := newChatEnv(t, func(h *chatEnv) {
		h.helper.hear = func(permissions.Message) error {
			select {
			case failing <- struct{}{}:
			default:
			}
			return errors.New("the disk is full")
		}
	})
	h.wrote(fayAt(chatVia), 1, "one", "")
	h.wrote(fayAt(chatVia), 2, "two", "")
	<-failing
	h.reopen(func() {
		tries := 0
		h.helper.hear = func(permissions.Message) error {
			if tries++; tries == 1 {
				return errors.New("still full")
			}
			return nil
		}
	})
	h.wrote(fayAt(chatVia), 2, "two", "") // delivered again
	h.wrote(fayAt(chatVia), 3, "three", "")
	h.sees("helper: one", "helper: two", "helper: three")
	h.helper.hears(t, "one", "two", "three")
}

// Messages to an agent are not delivered to another person's agent of that name.
func TestChatIsForWhoseAgentItWas(t *testing.T) {
	h := newChatEnv(t, func(h *chatEnv) {
		h.helper.hear = func(permissions.Message) error { return errors.New("busy") }
	})
	h.wrote(fayAt(chatVia), 1, "for my agent only", "")
	h.helper.hears(t)
	h.reopen(func() {
		h.helper = newEchoAgent("helper", "sam", chatVia)
		h.agents = []agents.Resident{h.helper}
	})
	h.wrote(samHere, 2, "hello", "")
	h.helper.hears(t, "hello")
}

// A stuck agent and an unreachable person delay nobody else.
func TestChatIsHeldUpByNobodyElse(t *testing.T) {
	stuck := make(chan struct{})
	h := newChatEnv(t, func(h *chatEnv) {
		h.coder.hear = func(permissions.Message) error { <-stuck; return nil }
	})
	defer close(stuck)
	h.chat.FailFor("sam", -1, errors.New("the network is away"))
	h.wrote(samHere, 1, "to nobody yet", "")
	h.nightly.hears(t, "to nobody yet")
	if _, err := h.Use(t.Context(), fayAt(chatVia), "coder"); err != nil {
		t.Fatal(err)
	}
	h.wrote(fayAt(chatVia), 2, "stuck", "")
	if _, err := h.Use(t.Context(), fayAt(chatVia), "helper"); err != nil {
		t.Fatal(err)
	}
	h.wrote(fayAt(chatVia), 3, "free", "")
	h.sees("helper: free")
	call := h.ask(t.Context(), network("a card"))
	p := h.shown(h.chat, 1)
	if _, err := h.chat.Do(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	h.get(call)
	h.chat.FailFor("sam", 0, nil)
	h.sees("helper: free", "nightly: to nobody yet")
}

// The typing indicator is repeated while the agent works, and no longer.
func TestChatShowsThatAnAgentWorks(t *testing.T) {
	h := newChatEnv(t)
	v := h.helper.voice()
	h.chat.FailSend(1, errors.New("away")) // the first time; nobody loses anything
	v.Working(true)
	v.Working(true)
	typed := func(n int) time.Time {
		t.Helper()
		ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
		defer done()
		all, err := h.chat.Typed(ctx, func(at []time.Time) bool { return len(at) >= n })
		if err != nil {
			t.Fatalf("it is shown %d times: %v", len(all), err)
		}
		return all[n-1]
	}
	began := time.Now()
	first := typed(1) // the retry
	if first.Sub(began) < time.Second {
		t.Errorf("it is shown again after %v", first.Sub(began))
	}
	v.Working(false)
	v.Working(true)
	if at := typed(2); at.Sub(first) > 3*time.Second {
		t.Errorf("what begins is shown after %v", at.Sub(first))
	}
	v.Working(false)
	none := h.nightly.voice() // another channel's agent
	none.Working(true)
	none.Working(false)
}

// failingAgent is an echoAgent that fails at first.
type failingAgent struct {
	*echoAgent
	moods []error
}

func (m *failingAgent) Run(ctx context.Context, s agents.Speaker) error {
	if len(m.moods) > 0 {
		mood := m.moods[0]
		m.moods = m.moods[1:]
		return mood
	}
	return m.echoAgent.Run(ctx, s)
}

// An agent that fails or ends by itself is restarted, and nobody else notices.
func TestAnAgentThatFailsStopsNobody(t *testing.T) {
	chat := connectortest.NewMemory(fayAt(chatVia), nil)
	bad := &failingAgent{echoAgent: newEchoAgent("helper", "fay", chatVia), moods: []error{errors.New("no model")}}
	st := newEnvWithAgents(t, usual(), []agents.Resident{bad}, chat)
	call := st.ask(t.Context(), network("x"))
	p := st.shown(chat, 1)
	if _, err := chat.Do(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	(&chatEnv{env: st}).wrote(fayAt(chatVia), 1, "are you there?", "")
	bad.hears(t, "are you there?")
}
