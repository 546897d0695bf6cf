package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

type presence struct {
	Agent      string               `json:"agent"`
	Foreground bool                 `json:"foreground" doc:"messages go to it"`
	Activity   permissions.Activity `json:"activity"`
	Unheard    int                  `json:"unheard" doc:"messages that it does not have yet"`
}

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

// registerChat registers the routes for writing to agents. They concern the caller's own agents that are bound to this
// server.
func (r *routes) registerChat() {
	serve(r, post("write", "/v1/messages", "Write to the caller's agent in the foreground"), r.write)
	serve(r, post("order", "/v1/orders", "Have the caller's agent in the foreground obey at once"), r.order)
	serve(r, post("use", "/v1/agents/{name}/use", "Have the caller's messages go to that agent"), r.use)
	serve(r, get("agents", "/v1/agents", "List the agents that the caller can write to here"), r.agents)
}

// talker is the identity of ctx's caller as a person who writes here, and the prefix that keeps their keys apart from other
// people's.
func (r *routes) talker(ctx context.Context) (id connectors.Identity, prefix string, err error) {
	id = who(ctx)
	id.Via = Name
	name, err := r.engine.Who(id)
	return id, Name + ":" + name + ":", err
}

var errBlank = errors.New("nothing is written")

func (r *routes) write(ctx context.Context, in *writingInput) (none nothingBody, err error) {
	id, prefix, err := r.talker(ctx)
	switch {
	case err != nil:
		return none, err
	case strings.TrimSpace(in.Body.Text) == "":
		return none, permissions.Invalid(errBlank)
	}
	return none, r.engine.OnMessage(ctx, connectors.Message{
		From: id, Text: in.Body.Text, ReplyTo: in.Body.ReplyTo, Key: prefix + in.Body.Key,
	})
}

func (r *routes) order(ctx context.Context, in *orderingInput) (obeying, error) {
	id, prefix, err := r.talker(ctx)
	if err != nil {
		return obeying{}, err
	}
	agent, err := r.engine.Order(ctx, id, in.Body.Order, prefix+in.Body.Key)
	return obeying{Agent: agent}, err
}

func (r *routes) use(ctx context.Context, in *useInput) (obeying, error) {
	id, _, err := r.talker(ctx)
	if err != nil {
		return obeying{}, err
	}
	agent, err := r.engine.Use(ctx, id, in.Name)
	return obeying{Agent: agent}, err
}

func (r *routes) agents(ctx context.Context, _ *struct{}) ([]presence, error) {
	id, _, err := r.talker(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.engine.Agents(ctx, id)
	return wire.Each(found, func(p permissions.Presence) presence { return presence(p) }), err
}

// OnMessage is that of [connectors.Inbound]. m's identity is ignored: the socket proves it.
func (c *Client) OnMessage(ctx context.Context, m connectors.Message) error {
	body := writing{Text: m.Text, ReplyTo: m.ReplyTo, Key: m.Key}
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/v1/messages", body, 0)
	return err
}

// Agents lists the agents that this account can write to here; without any, the refusal is [permissions.CodeNoAgent].
func (c *Client) Agents(ctx context.Context, _ connectors.Identity) ([]permissions.Presence, error) {
	list, err := fetch[[]presence](ctx, c, "/v1/agents")
	return wire.Each(list, func(p presence) permissions.Presence { return permissions.Presence(p) }), err
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
	err = c.inboxes.hand(ctx, s.To, Said{Agent: s.Agent, Text: parts[s.Part].Plain(), Ref: ref})
	if err != nil {
		return "", false, err
	}
	return ref, s.Part+1 < len(parts), nil
}

// hand delivers a message and returns once at least one inbox has written it.
func (i *inboxes) hand(ctx context.Context, to connectors.Person, s Said) error {
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

// offer puts the message into all open inboxes of the person; taken of them will report whether they wrote it. Without any,
// await is closed when one opens.
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

// absent is the error of a message to a person without an open inbox.
type absent struct {
	error
	back <-chan struct{}
}

func (a *absent) ReadySignal() <-chan struct{} { return a.back }

func (a *absent) Unwrap() error { return a.error }
