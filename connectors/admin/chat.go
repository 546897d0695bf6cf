package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/permissions"
)

type (
	writing struct {
		Text    string `json:"text" minLength:"1" doc:"at most 16 KiB"`
		ReplyTo string `json:"reply_to,omitzero" maxLength:"64" doc:"the ref of what this replies to: it goes to whoever said that"`
		Key     string `json:"key" minLength:"1" maxLength:"200" doc:"the same one again changes nothing"`
	}
	ordering struct {
		Order permissions.Order `json:"order" enum:"stop,quit,new" doc:"stop: its work; quit: its session; new: begin another one"`
		Key   string            `json:"key" minLength:"1" maxLength:"200" doc:"the same one again changes nothing"`
	}
	obeying struct {
		Agent string `json:"agent"`
	}

	writingInput  struct{ Body writing }
	orderingInput struct{ Body ordering }
	nothingBody   struct{}
	useInput      struct {
		Name string `path:"name" maxLength:"64"`
	}
)

// registerChat registers the routes for writing to the caller's own agents that are bound to this server.
func (r *routes) registerChat() {
	write := post("write", "/v1/messages", "Write to the caller's agent in the foreground")
	serveTalker(r, write, func(ctx context.Context, id connectors.Identity, prefix string, in *writingInput) (none nothingBody, err error) {
		if strings.TrimSpace(in.Body.Text) == "" {
			return none, permissions.Invalid(errors.New("nothing is written"))
		}
		return none, r.engine.OnMessage(ctx, connectors.Message{
			From: id, Text: in.Body.Text, ReplyTo: in.Body.ReplyTo, Key: prefix + in.Body.Key,
		})
	})
	order := post("order", "/v1/orders", "Have the caller's agent in the foreground obey at once")
	serveTalker(r, order, func(ctx context.Context, id connectors.Identity, prefix string, in *orderingInput) (obeying, error) {
		agent, err := r.engine.Order(ctx, id, in.Body.Order, prefix+in.Body.Key)
		return obeying{Agent: agent}, err
	})
	use := post("use", "/v1/agents/{name}/use", "Have the caller's messages go to that agent")
	serveTalker(r, use, func(ctx context.Context, id connectors.Identity, _ string, in *useInput) (obeying, error) {
		agent, err := r.engine.Use(ctx, id, in.Name)
		return obeying{Agent: agent}, err
	})
	agents := get("agents", "/v1/agents", "List the agents that the caller can write to here")
	serveTalker(r, agents, func(ctx context.Context, id connectors.Identity, _ string, _ *struct{}) ([]permissions.Presence, error) {
		return r.engine.Agents(ctx, id)
	})
}

// serveTalker registers a route for the caller as a person who writes here. The prefix keeps their keys apart from other people's.
func serveTalker[I, O any](
	r *routes, o huma.Operation, handle func(ctx context.Context, id connectors.Identity, prefix string, in *I) (O, error),
) {
	serve(r, o, func(ctx context.Context, in *I) (none O, err error) {
		id := who(ctx)
		id.Via = Name
		name, err := r.engine.Who(id)
		if err != nil {
			return none, err
		}
		return handle(ctx, id, Name+":"+name+":", in)
	})
}

// OnMessage is that of [connectors.Inbound]. m's identity is ignored: the socket proves it.
func (c *Client) OnMessage(ctx context.Context, m connectors.Message) error {
	body := writing{Text: m.Text, ReplyTo: m.ReplyTo, Key: m.Key}
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/v1/messages", body, 0)
	return err
}

// Agents lists the agents that this account can write to here; without any, the refusal is [permissions.CodeNoAgent].
func (c *Client) Agents(ctx context.Context, _ connectors.Identity) ([]permissions.Presence, error) {
	return fetch[[]permissions.Presence](ctx, c, "/v1/agents")
}

// Use brings the agent of that name to the foreground for this account, and returns its name.
func (c *Client) Use(ctx context.Context, _ connectors.Identity, name string) (agent string, err error) {
	told, err := ask[obeying](ctx, c, http.MethodPost, "/v1/agents/"+url.PathEscape(name)+"/use", nil, 0)
	return told.Agent, err
}

// Order makes the agent in the foreground obey at once, and returns its name. A repeated key changes nothing.
func (c *Client) Order(ctx context.Context, _ connectors.Identity, o permissions.Order, key string) (agent string, err error) {
	told, err := ask[obeying](ctx, c, http.MethodPost, "/v1/orders", ordering{Order: o, Key: key}, 0)
	return told.Agent, err
}

var _ connectors.MessageSender = (*Connector)(nil)

// maxSaid limits one agent message in characters; longer ones are split, so that a card can come between.
const maxSaid = 4000

// Said is one agent message to show; its text begins with the agent's name.
type Said struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
	// Ref identifies the message in a reply.
	Ref string `json:"ref"`
}

// SendMessage is [connectors.MessageSender]: the message goes to all open inboxes of the person and counts as sent once one of them has
// written it. Without an open inbox the error is a [connectors.ReadySignaler].
func (c *Connector) SendMessage(ctx context.Context, s connectors.AgentMessage) (ref string, more bool, err error) {
	parts := talk.Parts(s, talk.Limits{Text: maxSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	ref = "said-" + rand.Text()
	err = c.inboxes.deliverMessage(ctx, s.To, Said{Agent: s.Agent, Text: parts[s.Part].Plain(), Ref: ref})
	if err != nil {
		return "", false, err
	}
	return ref, s.Part+1 < len(parts), nil
}

// deliverMessage delivers a message and returns once at least one inbox has written it.
func (i *inboxes) deliverMessage(ctx context.Context, to connectors.Person, s Said) error {
	taken, written, await := i.offer(to.Name, s)
	if await != nil {
		return &absent{error: away(to), back: await}
	}
	for range taken {
		select {
		case ok := <-written:
			if ok {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return away(to) // they fell behind or have just closed
}

// offer puts the message into the person's open inboxes, taken of which report to written; without any, await tells of one.
func (i *inboxes) offer(name string, s Said) (taken int, written <-chan bool, await <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	streams := i.open[name]
	if len(streams) == 0 {
		if i.await == nil {
			i.await = map[string]chan struct{}{}
		}
		if i.await[name] == nil {
			i.await[name] = make(chan struct{})
		}
		return 0, nil, i.await[name]
	}
	results := make(chan bool, len(streams))
	for _, to := range streams {
		select {
		case to <- delivery{said: &s, written: results}:
			taken++
		default:
		}
	}
	return taken, results, nil
}

// absent is the error of what is for a person without an open inbox, who may open one.
type absent struct {
	error
	back <-chan struct{} // nil: nothing tells of it
}

func (a *absent) ReadySignal() <-chan struct{} { return a.back }

func (a *absent) Unwrap() error { return a.error }
