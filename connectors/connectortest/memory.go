package connectortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// again is how long Memory waits before it hands on once more what could not be stored.
const again = 10 * time.Millisecond

// Memory is a connector without a channel: it remembers what was sent, edited and told, and lets scripted people
// answer.
// The exported fields are set before it is used. It is safe for concurrent use.
type Memory struct {
	// As is what the connector is called and how its decisions come in.
	As connectors.Identity
	// Identities are how the decisions of people come in, by their names; of anybody else they come in as As.
	Identities map[string]connectors.Identity
	// Person is what a person does as soon as they see a prompt; nil does nothing. Request, Shown and From are filled
	// in where they are empty. It is called by Run, one prompt at a time.
	Person func(p connectors.Prompt) []connectors.Decision

	mu       sync.Mutex
	in       connectors.Inbound // see Bind
	runs     bool
	ended    bool
	copies   []Copy
	todo     []connectors.Prompt // not seen by Person yet
	notices  []connectors.Notice
	spoken   []Spoken
	typing   []time.Time        // when an agent was shown to work
	passed   int                // messages that were no answers
	told     []string           // refusals and other words that somebody was told
	changed  chan struct{}      // closed and replaced with every change
	failing  map[string]failure // by name; of the empty name for everybody
	unreach  map[string]error   // by name; of the empty name for everybody
	inFlight sync.WaitGroup
}

// failure is an error and how many times it is still to come; negative: for good.
type failure struct {
	n   int
	err error
}

// Copy is one thing that was sent.
type Copy struct {
	Ref   string
	At    time.Time
	First connectors.Prompt // as sent
	Last  connectors.Prompt // as edited last
	Edits int
}

var (
	_ connectors.Connector           = (*Memory)(nil)
	_ connectors.Editor              = (*Memory)(nil)
	_ connectors.ReachabilityChecker = (*Memory)(nil)
	_ connectors.Notifier            = (*Memory)(nil)
	_ connectors.MessageSender       = (*Memory)(nil)
	_ connectors.TypingIndicator     = (*Memory)(nil)
)

// NewMemory makes a connector whose decisions come from as; as.Via is its name. person may be nil.
func NewMemory(as connectors.Identity, person func(p connectors.Prompt) []connectors.Decision) *Memory {
	return &Memory{
		As: as, Person: person, changed: make(chan struct{}),
		failing: map[string]failure{}, unreach: map[string]error{},
	}
}

// Always is a person who gives the same answer to everything, and a second yes where it takes one.
func Always(a permissions.Answer) func(connectors.Prompt) []connectors.Decision {
	return func(p connectors.Prompt) []connectors.Decision {
		return []connectors.Decision{{Answer: a, Really: p.Request.HighRisk}}
	}
}

// Bind sets where what people do goes, before Run.
func (m *Memory) Bind(in connectors.Services) { m.in = in }

// Connect connects an engine with connectors, of which those with a Bind, as [Memory] has, are bound to it.
func Connect(engine interface {
	connectors.Services
	Connect(...connectors.Connector)
}, channels ...connectors.Connector) {
	for _, c := range channels {
		if m, late := c.(interface{ Bind(connectors.Services) }); late {
			m.Bind(engine)
		}
	}
	engine.Connect(channels...)
}

// Name is as.Via.
func (m *Memory) Name() string { return m.As.Via }

// FailSend makes the next n calls of Send, Tell, Talk and Typing fail with err, every call for n < 0; n = 0 ends that. A
// *connectors.Gone is for good, anything else is for now.
func (m *Memory) FailSend(n int, err error) { m.FailFor("", n, err) }

// FailFor is [Memory.FailSend] for what is sent to one person.
func (m *Memory) FailFor(name string, n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing[name] = failure{n, err}
}

// FailReach makes Reach answer err; nil ends that.
func (m *Memory) FailReach(err error) { m.UnreachFor("", err) }

// UnreachFor is [Memory.FailReach] for one person.
func (m *Memory) UnreachFor(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unreach[name] = err
}

// Reach answers what FailReach and UnreachFor said.
func (m *Memory) Reach(p connectors.Person) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.unreach[p.Name], m.unreach[""])
}

// fails is why sending to a person fails this time. The lock is held.
func (m *Memory) fails(p connectors.Person) error {
	if m.ended {
		return errors.New("the connector has stopped")
	}
	for _, name := range []string{p.Name, ""} {
		if f := m.failing[name]; f.n != 0 {
			m.failing[name] = failure{max(f.n-1, -1), f.err}
			return f.err
		}
	}
	return nil
}

// Send remembers the prompt and lets the person see it.
func (m *Memory) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails(p.To); err != nil {
		return "", err
	}
	ref = fmt.Sprintf("%s-%d", m.As.Via, len(m.copies)+1)
	m.copies = append(m.copies, Copy{Ref: ref, At: time.Now(), First: p, Last: p})
	m.todo = append(m.todo, p)
	m.change()
	return ref, nil
}

// Edit remembers the prompt in place of the one before.
func (m *Memory) Edit(_ context.Context, ref string, p connectors.Prompt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.copies {
		if m.copies[i].Ref == ref {
			m.copies[i].Last = p
			m.copies[i].Edits++
			m.change()
			return nil
		}
	}
	return &connectors.UnreachableError{Reason: "there is no message " + ref}
}

// Copies are what was sent, in order.
func (m *Memory) Copies() []Copy {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Copy(nil), m.copies...)
}

// Wait returns once enough of what was sent is true, or with the error of ctx.
func (m *Memory) Wait(ctx context.Context, enough func([]Copy) bool) error {
	return m.wait(ctx, func() bool { return enough(m.copies) })
}

// Sees returns once the person has got to see text, or with the error of ctx.
func (m *Memory) Sees(ctx context.Context, text string) error {
	return m.wait(ctx, func() bool { return strings.Contains(m.seen(), text) })
}

// Seen is everything that anybody gets to see, as text.
func (m *Memory) Seen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen()
}

func (m *Memory) seen() string {
	var b strings.Builder
	for _, c := range m.copies {
		o := card.Options{Self: c.Last.To.Name, Width: 80}
		b.WriteString(card.Card(c.First, o) + "\n" + card.Settled(c.Last.Request, o) + "\n")
	}
	for _, n := range m.notices {
		b.WriteString(strings.Join(card.Notice(n, card.Options{Self: n.To.Name}), "\n") + "\n")
	}
	for _, s := range m.spoken {
		b.WriteString(s.Text + "\n")
	}
	return b.String() + strings.Join(m.told, "\n")
}

// wait waits for a change until ok. ok is called with the lock held.
func (m *Memory) wait(ctx context.Context, ok func() bool) error {
	for {
		m.mu.Lock()
		met, changed := ok(), m.changed
		m.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// change tells whoever waits. The lock is held.
func (m *Memory) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Do has the person decide, whenever: it waits until the connector runs, and returns what the handler said.
func (m *Memory) Do(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	if err := m.wait(ctx, func() bool { return m.runs || m.ended }); err != nil {
		return permissions.Request{}, err
	}
	m.mu.Lock()
	in := m.in
	if !m.runs {
		m.mu.Unlock()
		return permissions.Request{}, errors.New("the connector has stopped")
	}
	m.inFlight.Add(1)
	m.mu.Unlock()
	defer m.inFlight.Done()
	if d.From == (connectors.Identity{}) {
		d.From = m.As
	}
	r, err := in.OnPermission(ctx, d)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) {
		m.say(refusal.Text)
	}
	return r, err
}

// Run has the person see what is sent, and hands on what they do, until ctx ends. What could not be stored is handed
// on again.
func (m *Memory) Run(ctx context.Context) error {
	m.mu.Lock()
	m.runs = true
	m.change()
	m.mu.Unlock()
	for ctx.Err() == nil {
		m.serve(ctx)
	}
	m.mu.Lock()
	m.runs, m.ended = false, true
	m.change()
	m.mu.Unlock()
	m.inFlight.Wait()
	return nil
}

// serve has the person see the next prompt and do what they do.
func (m *Memory) serve(ctx context.Context) {
	var p connectors.Prompt
	err := m.wait(ctx, func() bool {
		if len(m.todo) == 0 {
			return false
		}
		p, m.todo = m.todo[0], m.todo[1:]
		return true
	})
	if err != nil || m.Person == nil {
		return
	}
	for _, d := range m.Person(p) {
		m.perform(ctx, p, d)
	}
}

// perform hands a decision on until it is stored, refused, or ctx ends.
func (m *Memory) perform(ctx context.Context, p connectors.Prompt, d connectors.Decision) {
	if d.Request == "" && d.Code == "" {
		d.Request, d.Shown = p.Request.ID, p.Request.ShownDigest()
	}
	if d.From == (connectors.Identity{}) {
		d.From = m.from(p.To.Name)
	}
	for {
		_, err := m.Do(ctx, d)
		var refusal *permissions.Refusal
		if err == nil || errors.As(err, &refusal) || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}
