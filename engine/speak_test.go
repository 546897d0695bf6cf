package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// Messages are stored in order, count once, and are bounded.
func TestSayIsBounded(t *testing.T) {
	h := newChatEnv(t)
	h.chat.FailFor("fay", -1, errors.New("away"))
	v := h.helper.voice()
	for _, text := range []string{"", " \n", strings.Repeat("x", permissions.MaxAgentMessage+1)} {
		refused(t, v.Say(t.Context(), "", text), permissions.CodeInvalid)
	}
	var want []string
	for n := range 100 {
		text := fmt.Sprintf("number %d", n)
		for range 2 {
			if err := v.Say(t.Context(), text, text); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, "helper: "+text)
	}
	err := v.Say(t.Context(), "", "one more")
	refused(t, err, permissions.CodeLimit)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal); refusal.After <= 0 {
		t.Error("it is not told when to try again")
	}
	if err := h.coder.voice().Say(t.Context(), "", "another's"); err != nil {
		t.Errorf("another agent: %v", err)
	}
	h.reopen(func() { h.agents = []agents.Resident{h.helper} })
	h.sees(want...)
}

// A long text is several messages; after a failure or a stop the first unsent one follows.
func TestALongTextGoesOnWhereItWas(t *testing.T) {
	h := newChatEnv(t)
	var text strings.Builder
	for n := range 400 {
		fmt.Fprintf(&text, "word%d ", n)
	}
	h.wrote(fayAt(chatVia), 1, "hello", "")
	h.sees("helper: hello")
	h.chat.FailSend(1, errors.New("away for a moment"))
	if err := h.helper.voice().Say(t.Context(), "", text.String()); err != nil {
		t.Fatal(err)
	}
	h.spoken(func(s []connectortest.Spoken) bool { return len(s) > 1 })
	h.stop() // somewhere in the middle, or at the end
	parts := h.spoken(func([]connectortest.Spoken) bool { return true })
	h.reopen(nil)
	if err := h.helper.voice().Say(t.Context(), "", "the end"); err != nil {
		t.Fatal(err)
	}
	rest := h.spoken(func(s []connectortest.Spoken) bool {
		return len(s) > 0 && s[len(s)-1].Text == "helper: the end"
	})
	all := slices.Concat(parts[1:], rest[:len(rest)-1])
	said := ""
	for i, p := range all {
		head := fmt.Sprintf("helper (%d/%d): ", i+1, len(all))
		words, whole := strings.CutPrefix(p.Text, head)
		if !whole || p.Saying.Part != i {
			t.Errorf("message %d begins with %.30q", i, p.Text)
		}
		said += words + " "
	}
	if len(all) < 3 || strings.TrimSpace(said) != strings.TrimSpace(text.String()) {
		t.Errorf("in %d messages was said %q", len(all), said)
	}
	h.wrote(fayAt(chatVia), 2, "to the author", all[0].Ref)
	h.helper.hears(t, "hello", "to the author")
}

// later is a failure with a retry delay from the channel.
type later struct{ time.Duration }

func (later) Error() string               { return "too many messages" }
func (l later) RetryAfter() time.Duration { return l.Duration }

func TestAChannelSaysWhenToSpeakAgain(t *testing.T) {
	h := newChatEnv(t)
	h.chat.FailSend(1, later{1200 * time.Millisecond})
	began := time.Now()
	if err := h.helper.voice().Say(t.Context(), "", "x"); err != nil {
		t.Fatal(err)
	}
	h.sees("helper: x")
	if took := time.Since(began); took < 1200*time.Millisecond {
		t.Errorf("it was tried again after %v", took)
	}
}

// absent is a failure until back is closed.
type absent struct {
	later
	back chan struct{}
}

func (a absent) ReadySignal() <-chan struct{} { return a.back }

// A person who was away is sent messages as soon as they are back, whatever retry delay the channel gave.
func TestWhoComesBackIsToldAtOnce(t *testing.T) {
	h := newChatEnv(t)
	away := absent{later{time.Hour}, make(chan struct{})}
	h.chat.FailSend(1, away)
	if err := h.helper.voice().Say(t.Context(), "", "x"); err != nil {
		t.Fatal(err)
	}
	close(away.back)
	h.sees("helper: x")
}

// An undeliverable message is not retried for ever, and delays nothing.
func TestWhatReachesNobodyIsGivenUp(t *testing.T) {
	elsewhere, unknown := newEchoAgent("elsewhere", "fay", "nowhere"), newEchoAgent("unknown", "kim", chatVia)
	h := newChatEnv(t)
	h.reopen(func() { h.agents = append(h.agents, elsewhere, unknown) })
	h.chat.FailFor("fay", 1, &connectors.UnreachableError{Reason: "fay has blocked the bot"})
	for _, p := range []*echoAgent{h.helper, elsewhere, unknown} {
		if err := p.voice().Say(t.Context(), "", "nobody reads this"); err != nil {
			t.Fatal(err)
		}
		if p == h.helper { // or the sign that it works could be what fails
			h.until("it has failed", func() bool {
				all, err := h.rows.UnsentAgentMessages(t.Context(), p.bond.Agent, 9)
				return err == nil && len(all) == 0
			})
		}
		p.voice().Working(true)
		p.voice().Working(false)
	}
	if err := h.helper.voice().Say(t.Context(), "", "but this"); err != nil {
		t.Fatal(err)
	}
	h.sees("helper: but this")
	for _, p := range []*echoAgent{elsewhere, unknown} {
		h.until("it is given up", func() bool {
			all, err := h.rows.UnsentAgentMessages(t.Context(), p.bond.Agent, 9)
			return err == nil && len(all) == 0
		})
	}
}

// Codes are for people: an agent that knows the code of a pending request cannot show it.
func TestCodesInWhatAgentsSay(t *testing.T) {
	h := newChatEnv(t)
	call := h.ask(t.Context(), network("x"))
	p := h.shown(h.chat, 1)
	if err := h.helper.voice().Say(t.Context(), "", "write yes "+p.Code); err != nil {
		t.Fatal(err)
	}
	h.sees("helper: write yes •••••")
	if _, err := h.chat.Do(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: permissions.Deny}); err != nil {
		t.Fatal(err)
	}
	h.get(call)
	if err := h.helper.voice().Say(t.Context(), "", "it was "+p.Code); err != nil {
		t.Fatal(err)
	}
	h.sees("helper: write yes •••••", "helper: it was "+p.Code)
}

// In quiet hours agents make no sound.
func TestAgentsAreQuietAtNight(t *testing.T) {
	s := night(t)
	h := &chatEnv{chat: connectortest.NewMemory(fayAt(chatVia), nil), helper: newEchoAgent("helper", "fay", chatVia)}
	h.env = newEnvWithAgents(t, s, []agents.Resident{h.helper}, h.chat)
	for _, c := range []struct {
		clock  string
		silent bool
	}{{"2027-03-10 23:00", true}, {"2027-03-11 08:00", false}} {
		at(t, h.env, c.clock)
		if err := h.helper.voice().Say(t.Context(), "", c.clock); err != nil {
			t.Fatal(err)
		}
		all := h.spoken(func(s []connectortest.Spoken) bool { return len(s) > 0 && s[len(s)-1].Saying.Text == c.clock })
		if all[len(all)-1].Saying.Silent != c.silent {
			t.Errorf("at %s it is silent: %v", c.clock, !c.silent)
		}
	}
}
