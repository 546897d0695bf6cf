package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// echoAgent is an agent of our own that repeats what it hears, unless a test replaces that.
type echoAgent struct {
	bond permissions.Binding
	hear func(m permissions.Message) error // replaces repeating; set before newEnv
	mute bool                              // say nothing

	mu      sync.Mutex
	speaker agents.Speaker
	heard   []permissions.Message
	orders  []permissions.Order
	refuses error // the error for orders
	doing   permissions.Activity
	changed chan struct{} // closed and replaced with every change
}

var _ agents.Resident = (*echoAgent)(nil)

// newEchoAgent is a person's echoAgent in the channel called via.
func newEchoAgent(name, person, via string) *echoAgent {
	return &echoAgent{
		bond: permissions.Binding{Agent: name, Person: person, Via: via}, doing: permissions.Idle, changed: make(chan struct{}),
	}
}

func (p *echoAgent) Binding() permissions.Binding { return p.bond }

func (p *echoAgent) Run(ctx context.Context, s agents.Speaker) error {
	p.change(func() { p.speaker = s })
	<-ctx.Done()
	p.change(func() { p.speaker = nil })
	return nil
}

func (p *echoAgent) Receive(ctx context.Context, m permissions.Message) error {
	if p.hear != nil {
		if err := p.hear(m); err != nil {
			return err
		}
	}
	if !p.mute {
		s := p.voiceUntil(ctx)
		if s == nil {
			return errors.New("it has not started, or has ended")
		}
		if err := s.Say(ctx, m.Key, m.Text); err != nil {
			return err
		}
	}
	p.change(func() { p.heard = append(p.heard, m) })
	return nil
}

func (p *echoAgent) Obey(_ context.Context, o permissions.Order) error {
	p.change(func() { p.orders = append(p.orders, o) })
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuses
}

func (p *echoAgent) Activity() permissions.Activity {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doing
}

func (p *echoAgent) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// voice waits for the agent's speaker.
func (p *echoAgent) voice() agents.Speaker { return p.voiceUntil(context.Background()) }

// voiceUntil returns nil if ctx ends first.
func (p *echoAgent) voiceUntil(ctx context.Context) (s agents.Speaker) {
	defer context.AfterFunc(ctx, func() { p.change(func() {}) })()
	p.wait(func() bool {
		s = p.speaker
		return s != nil || ctx.Err() != nil
	})
	return s
}

func (p *echoAgent) wait(ok func() bool) bool {
	late := time.After(20 * time.Second)
	for {
		p.mu.Lock()
		met, changed := ok(), p.changed
		p.mu.Unlock()
		if met {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

// hears waits until it has heard exactly these texts, in that order.
func (p *echoAgent) hears(t *testing.T, want ...string) {
	t.Helper()
	p.wait(func() bool { return len(p.heard) >= len(want) })
	p.mu.Lock()
	defer p.mu.Unlock()
	var got []string
	for _, m := range p.heard {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s heard %q, want %q", p.bond.Agent, got, want)
	}
}

// chatEnv is a chat in which fay has two agents, and sam another one.
type chatEnv struct {
	*env
	chat                   *connectortest.Memory
	helper, coder, nightly *echoAgent
}

const chatVia = "memory"

func newChatEnv(t *testing.T, change ...func(*chatEnv)) *chatEnv {
	t.Helper()
	h := &chatEnv{
		chat:   connectortest.NewMemory(fayAt(chatVia), nil),
		helper: newEchoAgent("helper", "fay", chatVia), coder: newEchoAgent("coder", "fay", chatVia),
		nightly: newEchoAgent("nightly", "sam", chatVia),
	}
	for _, c := range change {
		c(h)
	}
	h.env = newEnvWithAgents(t, usual(), []agents.Resident{h.helper, h.nightly, h.coder}, h.chat)
	return h
}

var samHere = connectors.Identity{Via: chatVia, UID: sam.UID}

// writes sends the n-th message of a person.
func (h *chatEnv) writes(who connectors.Identity, n int, text, replyTo string) error {
	return h.OnMessage(h.t.Context(), connectors.Message{
		From: who, Text: text, ReplyTo: replyTo, Key: fmt.Sprintf("%s:%d", chatVia, n),
	})
}

func (h *chatEnv) wrote(who connectors.Identity, n int, text, replyTo string) {
	h.t.Helper()
	if err := h.writes(who, n, text, replyTo); err != nil {
		h.t.Fatalf("%q: %v", text, err)
	}
}

// sees waits for that many agent messages and compares them.
func (h *chatEnv) sees(want ...string) []connectortest.Spoken {
	h.t.Helper()
	all := h.spoken(func(s []connectortest.Spoken) bool { return len(s) >= len(want) })
	var got []string
	for _, s := range all {
		got = append(got, s.Text)
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("in the chat is %q, want %q", got, want)
	}
	return all
}

// spoken returns the agents' messages once enough is true, or after a timeout.
func (h *chatEnv) spoken(enough func([]connectortest.Spoken) bool) []connectortest.Spoken {
	h.t.Helper()
	ctx, done := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer done()
	all, err := h.chat.Spoken(ctx, enough)
	if err != nil {
		h.t.Errorf("it was not said: %v", err)
	}
	return all
}

// until waits until ok is true.
func (h *chatEnv) until(what string, ok func() bool) {
	h.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(20 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			h.t.Fatalf("it does not come to this: %s", what)
		}
	}
}

// reopen stops the engine, applies change, and starts it with the same people.
func (h *chatEnv) reopen(change func()) {
	h.t.Helper()
	h.stop()
	if change != nil {
		change()
	}
	h.chat = connectortest.NewMemory(fayAt(chatVia), nil)
	h.people = []connectors.Connector{h.chat}
	h.open()
}
