package connectortest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

// Notify remembers the notice.
func (m *Memory) Notify(_ context.Context, n connectors.Notice) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails(n.To); err != nil {
		return err
	}
	m.notices = append(m.notices, n)
	m.change()
	return nil
}

// Told are the notices, in order.
func (m *Memory) Told() []connectors.Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.notices)
}

// Hears returns once enough has been told, or with the error of ctx.
func (m *Memory) Hears(ctx context.Context, enough func([]connectors.Notice) bool) error {
	return m.wait(ctx, func() bool { return enough(m.notices) })
}

// Writes has a person send a text to the chat; see [Memory.Chats].
func (m *Memory) Writes(ctx context.Context, name, text string) (reply.Result, error) {
	return m.Chats(ctx, name, reply.Message{Text: text})
}

// Chats has a person send a message to the chat, which is read as an answer to what was sent to them and is still
// pending, as far as they were shown. What it decides is handed on one after the other, up to the first error, which is
// returned; what it says is told. Without a time, the message is of now.
func (m *Memory) Chats(ctx context.Context, name string, message reply.Message) (reply.Result, error) {
	message.At = cmp.Or(message.At, time.Now())
	said := reply.Read(message, m.open(name))
	if said.Reply != "" {
		m.say(said.Reply)
	}
	for _, code := range said.Unknown { // without an answer it decides nothing, and the refusal says what became of it
		_, _ = m.Do(ctx, connectors.Decision{Code: code, From: m.from(name)})
	}
	if said.PassOn {
		return said, m.passOn(ctx, name, message.Text)
	}
	for _, d := range said.Decisions {
		d.From = m.from(name)
		if _, err := m.Do(ctx, d); err != nil {
			return said, err
		}
	}
	return said, nil
}

// open is what a person was sent and waits for them, each request once.
func (m *Memory) open(name string) (all []reply.Open) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.copies {
		r := c.Last.Request
		known := slices.ContainsFunc(all, func(o reply.Open) bool { return o.Request.ID == r.ID })
		if c.Last.To.Name == name && r.State == permissions.Pending && !known {
			all = append(all, reply.Open{Request: r, Code: c.Last.Code, ShownAt: c.At})
		}
	}
	return all
}

// from is how a person's decisions come in.
func (m *Memory) from(name string) connectors.Identity {
	if id, ok := m.Identities[name]; ok {
		return id
	}
	return m.As
}

// say remembers what somebody was told.
func (m *Memory) say(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, text)
	m.change()
}
