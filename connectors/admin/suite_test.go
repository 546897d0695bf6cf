package admin_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// What agents say comes to an inbox as it comes to any channel.
func TestPassesTheSuiteOfTalk(t *testing.T) {
	connectortest.RunTalk(t, func(t *testing.T, in connectors.Services) connectortest.Harness {
		socket := wiretest.Socket(t)
		s := &shown{opened: make(chan struct{})}
		s.Connector = admin.New(admin.Options{Socket: socket, Log: wiretest.Quiet}, cards{wiretest.NewEnv(t), in, s})
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		c := newClient(t, socket, "")
		c.Opened = func() { close(s.opened) }
		c.Said = func(said admin.Said) { s.see(said.Text) }
		ctx, leave := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Inbox(ctx, func(p permissions.RequestView) error { // until leave
				s.see(p.Code)
				return nil
			})
		}()
		t.Cleanup(func() {
			leave()
			<-done
		})
		return connectortest.Harness{
			Connector: s, To: connectors.Person{Name: "fay", UID: os.Getuid()}, Seen: s.seen,
			Is: func(id connectors.Identity) bool { return id.UID == os.Getuid() },
			Sees: func(t testing.TB, text string) {
				wiretest.Eventually(t, "the inbox has "+text, func() bool { return strings.Contains(s.seen(), text) })
			},
		}
	})
}

// shown is a connector with an inbox open, and what came there.
type shown struct {
	*admin.Connector
	opened chan struct{}

	mu    sync.Mutex
	cards map[string]permissions.RequestView
	texts []string
}

// Send sends once the inbox is open.
func (s *shown) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	select {
	case <-s.opened:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	s.mu.Lock()
	if s.cards == nil {
		s.cards = map[string]permissions.RequestView{}
	}
	s.cards[string(p.Request.ID)] = permissions.RequestView{Request: p.Request, Code: p.Code}
	s.mu.Unlock()
	return s.Connector.Send(ctx, p)
}

func (s *shown) see(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

func (s *shown) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.texts, "\n")
}

// cards is an env that shows what was sent.
type cards struct {
	*wiretest.Env
	suite connectors.Inbound
	at    *shown
}

func (c cards) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	return c.suite.OnPermission(ctx, d)
}

func (c cards) Show(_ context.Context, _ connectors.Identity, id string) (permissions.RequestView, error) {
	c.at.mu.Lock()
	defer c.at.mu.Unlock()
	return c.at.cards[id], nil
}
