package connectortest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// patience is how long the suite waits for what must come.
const patience = 10 * time.Second

// Desk is what the suite hands a connector as its handler.
type Desk interface {
	connectors.Handler
	connectors.Listener
}

var _ Desk = (*desk)(nil)

// desk is the handler of the suite: rows in memory, settled by permissions.Step.
type desk struct {
	name string
	self connectors.Person
	is   func(connectors.Identity) bool // whether an identity is self

	mu       sync.Mutex
	rows     map[permissions.ID]permissions.Request
	codes    map[string]permissions.ID
	failures int // how many decisions cannot be stored
	taken    chan taken
	heard    chan connectors.Message
}

// taken is a decision that came in, and what became of it.
type taken struct {
	decision connectors.Decision
	after    permissions.Request
	err      error
}

var errStore = errors.New("the disk is full")

// newDesk makes a desk at which one identity is the harness's person.
func newDesk(h Harness) *desk {
	return &desk{
		name: h.Connector.Name(), self: h.To, is: h.Is, taken: make(chan taken, 100), heard: make(chan connectors.Message, 100),
		rows: map[permissions.ID]permissions.Request{}, codes: map[string]permissions.ID{},
	}
}

// OnPermission is [connectors.Handler].
func (d *desk) OnPermission(_ context.Context, dec connectors.Decision) (permissions.Request, error) {
	after, err := d.decide(dec)
	d.taken <- taken{dec, after, err}
	return after, err
}

// OnMessage is [connectors.Listener].
func (d *desk) OnMessage(_ context.Context, m connectors.Message) error {
	if m.From.Via != d.name || !d.is(m.From) {
		return permissions.NotConfigured(m.From.UID)
	}
	d.heard <- m
	return nil
}

func (d *desk) decide(dec connectors.Decision) (permissions.Request, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := dec.Request
	if id == "" {
		id = d.codes[dec.Code]
	}
	r, ok := d.rows[id]
	switch {
	case !ok:
		return permissions.Request{}, permissions.Unknown(string(id))
	case dec.From.Via != d.name || !d.is(dec.From) || !slices.Contains(r.Asked, d.self.Name):
		return permissions.Request{}, permissions.NotYours()
	case dec.Shown != permissions.Digest{} && dec.Shown != r.Digest:
		return r, permissions.OtherShown()
	case d.failures > 0:
		d.failures--
		return permissions.Request{}, errStore
	}
	var e permissions.Transition = permissions.Cast{Really: dec.Really, Vote: permissions.Vote{
		By: d.self.Name, Via: dec.From.Via, Answer: dec.Answer, Call: dec.Call, Comment: dec.Comment, At: r.CreatedAt,
	}}
	if dec.Default {
		e = permissions.Default{By: d.self.Name, Via: dec.From.Via, At: r.CreatedAt}
	}
	c, err := permissions.Step(r, e)
	if err != nil {
		return r, permissions.Refused(err)
	}
	d.rows[id] = c.After
	return c.After, nil
}

// put keeps a row and returns it as the person is to see it.
func (d *desk) put(r permissions.Request, code string) connectors.Prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[r.ID] = r
	d.codes[code] = r.ID
	return connectors.Prompt{Request: r, Code: code, To: d.self, Waiting: 1}
}

// elsewhere lets something happen to a request that does not come through the connector.
func (d *desk) elsewhere(t testing.TB, p connectors.Prompt, e permissions.Transition) connectors.Prompt {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := permissions.Step(d.rows[p.Request.ID], e)
	if err != nil {
		t.Fatalf("settle elsewhere: %v", err)
	}
	d.rows[p.Request.ID] = c.After
	p.Request = c.After
	return p
}

func (d *desk) row(p connectors.Prompt) permissions.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows[p.Request.ID]
}

// next is the next decision that comes in.
func (d *desk) next(t testing.TB) taken {
	t.Helper()
	select {
	case got := <-d.taken:
		return got
	case <-time.After(patience):
		t.Fatal("no decision reached the handler")
		return taken{}
	}
}

// none checks that no decision was taken that changed anything.
func (d *desk) none(t testing.TB) {
	t.Helper()
	for {
		select {
		case got := <-d.taken:
			if got.err == nil {
				t.Fatalf("a decision was taken: %+v", got.decision)
			}
		default:
			return
		}
	}
}
