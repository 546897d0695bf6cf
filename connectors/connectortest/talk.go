package connectortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/permissions"
)

// Spoken is one message of an agent's.
type Spoken struct {
	Ref    string
	Saying connectors.AgentMessage
	Text   string
}

// memoryLimits have a long text be several messages.
var memoryLimits = talk.Limits{Text: 1000, Unit: card.Characters}

// SendMessage remembers the message.
func (m *Memory) SendMessage(_ context.Context, s connectors.AgentMessage) (ref string, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, memoryLimits)
	if s.Part >= len(parts) {
		return "", false, nil
	}
	ref = fmt.Sprintf("%s-said-%d", m.As.Via, len(m.spoken)+1)
	m.spoken = append(m.spoken, Spoken{ref, s, parts[s.Part].Text})
	m.change()
	return ref, s.Part+1 < len(parts), nil
}

// ShowTyping remembers that an agent works.
func (m *Memory) ShowTyping(_ context.Context, to connectors.Person) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails(to); err != nil {
		return err
	}
	m.typing = append(m.typing, time.Now())
	m.change()
	return nil
}

// Spoken is what agents said, in order, once enough of it is true or ctx ends.
func (m *Memory) Spoken(ctx context.Context, enough func([]Spoken) bool) ([]Spoken, error) {
	err := m.wait(ctx, func() bool { return enough(m.spoken) })
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.spoken), err
}

// Typed is when it was shown that an agent works, once enough of it is true or ctx ends.
func (m *Memory) Typed(ctx context.Context, enough func([]time.Time) bool) ([]time.Time, error) {
	err := m.wait(ctx, func() bool { return enough(m.typing) })
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.typing), err
}

// passOn hands a message that is no answer to the handler, once there is one, if that takes any.
func (m *Memory) passOn(ctx context.Context, name, text string) error {
	if err := m.wait(ctx, func() bool { return m.runs || m.ended }); err != nil {
		return err
	}
	m.mu.Lock()
	in, runs := m.in, m.runs
	m.passed++
	key := fmt.Sprintf("%s:%d", m.As.Via, m.passed)
	m.mu.Unlock()
	if !runs {
		return nil
	}
	return in.OnMessage(ctx, connectors.Message{From: m.from(name), Text: text, Key: key})
}

// talks has an agent speak to the person, by a connector that can.
func talks(t *testing.T, b *bench) {
	talker, talks := b.Connector.(connectors.MessageSender)
	if !talks {
		return
	}
	p, _ := b.send(t, permissions.KindPermission, nil)
	b.Sees(t, p.Code)
	secret := code(999)
	say := func(s connectors.AgentMessage) (more bool) {
		t.Helper()
		s.To, s.Agent, s.Codes = b.To, "helper", map[string]bool{secret: true}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ref, more, err := talker.SendMessage(ctx, s)
		if err != nil || ref == "" {
			t.Fatalf("Talk = %q, %v; want the channel's name for what was sent", ref, err)
		}
		return more
	}
	if say(connectors.AgentMessage{Text: "write yes " + secret + " now\u202e\u200b\x1b[2J"}) {
		t.Error("there is more of a short text")
	}
	b.Sees(t, "helper: write yes ••••• now")
	for _, hidden := range []string{secret, "\u202e", "\u200b", "\x1b[2J"} {
		if strings.Contains(b.Seen(), hidden) {
			t.Errorf("the person gets %q as it is", hidden)
		}
	}
	long := connectors.AgentMessage{Text: strings.Repeat("lorem ", 4000) + "the end"}
	for say(long) {
		long.Part++
	}
	b.Sees(t, "the end")
	if n := strings.Count(b.Seen(), "lorem"); long.Part == 0 || n != 4000 {
		t.Errorf("%d of 4000 words in %d messages", n, long.Part+1)
	}
	b.in.none(t)
	b.stop(t)
	_, _, err := talker.SendMessage(context.Background(), connectors.AgentMessage{To: b.To, Text: "x"})
	if err == nil || errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Talk = %v after the end of Run; want an error for now", err)
	}
}

// listens has the person write what is no answer, to a connector by which agents speak.
func listens(t *testing.T, b *bench) {
	if _, talks := b.Connector.(connectors.MessageSender); !talks || b.Writes == nil {
		return
	}
	tells := b.Tells
	if tells == nil {
		tells = b.Writes
	}
	p, _ := b.send(t, permissions.KindPermission, nil)
	tells(t, p, "yes")
	b.Sees(t, "Nothing was decided")
	const text = "how is it going?"
	tells(t, p, text)
	b.Sees(t, "refuses nothing")
	select {
	case m := <-b.in.heard:
		if m.Text != text || m.Key == "" {
			t.Errorf("the handler heard %+v", m)
		}
	case <-time.After(patience):
		t.Error("the handler heard nothing")
	}
	if n := len(b.in.heard); n > 0 {
		t.Errorf("it heard %d messages more", n)
	}
	b.in.none(t)
	b.Do(t, p, deny) // what waits can still be answered
	b.decided(t, p, deny)
}
