package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

var kim = connectors.Person{Name: "kim", User: "kim", UID: 4000, Location: time.UTC}

// phone is a channel to one person.
type phone struct {
	*connectortest.Memory
	owner connectors.Person

	mu   sync.Mutex
	sent int // tries
	told []connectors.Notice
	news chan struct{}
}

var _ connectors.Notifier = (*phone)(nil)

func newPhone(owner connectors.Person, via string) *phone {
	return &phone{
		Memory: connectortest.NewMemory(connectors.Identity{Via: via, UID: owner.UID}, nil), owner: owner,
		news: make(chan struct{}, 100),
	}
}

// Reach knows only its owner.
func (p *phone) Reach(who connectors.Person) error {
	if who.Name != p.owner.Name {
		return &connectors.UnreachableError{Reason: who.Name + " has no " + p.Name()}
	}
	return p.Memory.Reach(who)
}

func (p *phone) Send(ctx context.Context, prompt connectors.Prompt) (string, error) {
	p.mu.Lock()
	p.sent++
	p.mu.Unlock()
	return p.Memory.Send(ctx, prompt)
}

// Tries returns how many sends were tried.
func (p *phone) Tries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

func (p *phone) Notify(_ context.Context, n connectors.Notice) error {
	p.mu.Lock()
	p.told = append(p.told, n)
	p.mu.Unlock()
	p.news <- struct{}{}
	return nil
}

// notice waits for the next notice.
func (p *phone) notice(t *testing.T) connectors.Notice {
	t.Helper()
	select {
	case <-p.news:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s is told nothing", p.owner.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[len(p.told)-len(p.news)-1]
}

// says answers a request as the owner.
func (p *phone) says(t *testing.T, id permissions.ID, a permissions.Answer) (permissions.Request, error) {
	t.Helper()
	return p.Do(t.Context(), connectors.Decision{Request: id, Answer: a})
}

// must is an answer that must be accepted.
func (p *phone) must(t *testing.T, id permissions.ID, a permissions.Answer) permissions.Request {
	t.Helper()
	r, err := p.says(t, id, a)
	if err != nil {
		t.Fatalf("%s says %s: %v", p.owner.Name, a, err)
	}
	return r
}

// team is fay and sam, both of whom are needed, and kim after half the time.
func team() engine.Settings {
	s := usual()
	s.People = []connectors.Person{fay, sam, kim}
	route := engine.Route{Ask: []string{"fay", "sam"}, Quorum: 2}
	route.Escalate.Moment, route.Escalate.To = engine.Moment{Percent: 50}, []string{"kim"}
	s.Routes = []engine.Route{route}
	return s
}

// said is the text of a notice.
func said(n connectors.Notice) string { return strings.Join(card.Notice(n, card.Options{}), "\n") }

func phones() (f, s, k *phone) {
	return newPhone(fay, "fays-phone"), newPhone(sam, "sams-phone"), newPhone(kim, "kims-phone")
}

func allowFor(s permissions.Scope) permissions.Answer { return permissions.Allow(s) }
