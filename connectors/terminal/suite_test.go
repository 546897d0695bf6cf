package terminal_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

func TestPassesTheSuite(t *testing.T) {
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) {
			connectortest.Run(t, func(t *testing.T) connectortest.Harness {
				p := &talked{person: sit(t, nil)}
				return connectortest.Harness{
					Connector: p, To: fay,
					Tells: func(t testing.TB, prompt connectors.Prompt, text string) {
						p.screen.asked(t, prompt.Code)
						p.types(t, "> "+text+"\n")
					}, Sees: p.screen.sees, Seen: p.screen.String,
					Is: func(id connectors.Identity) bool { return id.Console && id.UID == permissions.NoUID },
					Do: func(t testing.TB, prompt connectors.Prompt, d connectors.Decision) {
						p.screen.asked(t, prompt.Code)
						p.types(t, keys(prompt, d, p.tty != nil))
					},
					Writes: func(t testing.TB, prompt connectors.Prompt, text string) {
						p.screen.asked(t, prompt.Code)
						before := strings.Count(p.screen.String(), "\n")
						p.types(t, text+"\n")
						p.screen.until(t, "an end of the line", func(all string) bool { return strings.Count(all, "\n") > before })
					},
				}
			})
		})
	}
}

// talked is a terminal whose person has an agent, at the suite's desk.
type talked struct {
	*person
	mu    sync.Mutex
	cards []connectors.Prompt
}

func (p *talked) Send(ctx context.Context, prompt connectors.Prompt) (string, error) {
	p.mu.Lock()
	p.cards = append(p.cards, prompt)
	p.mu.Unlock()
	return p.Terminal.Send(ctx, prompt)
}

func (p *talked) Run(ctx context.Context, h connectors.Handler) error {
	return p.Terminal.Run(ctx, front{h.(connectortest.Desk), p})
}

// front is the suite's desk with what else conversations need of one.
type front struct {
	connectortest.Desk
	at *talked
}

var _ conversation.Desk = front{}

func (f front) Person(connectors.Identity) (connectors.Person, error) { return fay, nil }

func (f front) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return []permissions.Presence{{Agent: "helper", Foreground: true, Activity: permissions.Idle}}, nil
}

func (f front) Use(context.Context, connectors.Identity, string) (string, error) {
	return "helper", nil
}

func (f front) Order(context.Context, connectors.Identity, permissions.Order, string) (string, error) {
	return "helper", nil
}

func (f front) Pending(context.Context, connectors.Identity, permissions.ID, int) (all []permissions.RequestView, err error) {
	f.at.mu.Lock()
	defer f.at.mu.Unlock()
	for _, p := range f.at.cards {
		all = append(all, permissions.RequestView{Request: p.Request, Code: p.Code})
	}
	return all, nil
}

func (f front) Grants(context.Context, connectors.Identity) ([]permissions.Grant, error) {
	return nil, nil
}

func (f front) Revoke(context.Context, connectors.Identity, permissions.ID) (permissions.Revoked, error) {
	return permissions.Revoked{}, permissions.Unknown("grant")
}

func (f front) Void(context.Context, connectors.Identity, string) (permissions.RequestView, error) {
	return permissions.RequestView{}, permissions.Unknown("request")
}

func (f front) StopAll(context.Context, connectors.Identity) (int, error) { return 0, nil }
func (f front) Resume(context.Context, connectors.Identity) error         { return nil }
func (f front) StoppedBy() string                                         { return "" }

// keys are what a person types for an answer.
func keys(p connectors.Prompt, d connectors.Decision, terminal bool) string {
	words := ""
	if d.Call != 0 {
		words = fmt.Sprintf(" #%d", d.Call)
	}
	scope, allows := d.Answer.Scope()
	switch {
	case d.Really:
		return "yes " + p.Code + words + "\n"
	case allows && scope == permissions.Once:
		return "y" + words + "\n"
	case allows && scope == permissions.SessionTool:
		return "t" + words + "\n"
	case allows && scope.Span() == 0:
		return "a" + words + "\n"
	case allows:
		return "yes " + scope.String() + words + "\n"
	case d.Answer == permissions.Other:
		return "o " + d.Comment + "\n"
	case d.Comment != "":
		return "r" + words + " " + d.Comment + "\n"
	case d.Answer == permissions.Deny:
		return "n" + words + "\n"
	case d.Answer == permissions.Continue:
		return "\n"
	case d.Answer == permissions.Interrupt && terminal:
		return reply.Esc
	case d.Answer == permissions.Interrupt:
		return "i\n"
	}
	for i := range p.Request.Choices {
		if d.Answer == permissions.Choose(i+1) {
			return fmt.Sprintf("%d\n", i+1)
		}
	}
	return "?\n"
}
