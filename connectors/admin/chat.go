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
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// presence is an agent of the caller's, as programs read it.
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
	useInput      struct {
		Name string `path:"name" maxLength:"64"`
	}
	nothing struct{ Body struct{} }
)

// registerChat registers the routes by which people write to agents. Each has those that are bound to them and to this
// door, and nobody else's.
func (r *routes) registerChat() {
	huma.Register(r.door.API, post("write", "/v1/messages", "Write to the caller's agent in the foreground"), r.write)
	serve(r, post("order", "/v1/orders", "Have the caller's agent in the foreground obey at once"), r.order)
	serve(r, post("use", "/v1/agents/{name}/use", "Have the caller's messages go to that agent"), r.use)
	serve(r, get("agents", "/v1/agents", "List the agents that the caller can write to here"), r.agents)
}

// talker is who makes the call that ctx is of, as somebody who talks by this door, and the prefix of their keys: one person's
// are no other's.
func (r *routes) talker(ctx context.Context) (id connectors.Identity, prefix string, err error) {
	id = who(ctx)
	id.Via = Name
	name, err := r.desk.Who(id)
	return id, Name + ":" + name + ":", err
}

var errBlank = errors.New("nothing is written")

func (r *routes) write(ctx context.Context, in *writingInput) (*nothing, error) {
	id, prefix, err := r.talker(ctx)
	if err == nil && strings.TrimSpace(in.Body.Text) == "" {
		err = permissions.Invalid(errBlank)
	}
	if err == nil {
		err = r.desk.OnMessage(ctx, connectors.Message{
			From: id, Text: in.Body.Text, ReplyTo: in.Body.ReplyTo, Key: prefix + in.Body.Key,
		})
	}
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &nothing{}, nil
}

func (r *routes) order(ctx context.Context, in *orderingInput) (obeying, error) {
	id, prefix, err := r.talker(ctx)
	if err != nil {
		return obeying{}, err
	}
	agent, err := r.desk.Order(ctx, id, in.Body.Order, prefix+in.Body.Key)
	return obeying{Agent: agent}, err
}

func (r *routes) use(ctx context.Context, in *useInput) (obeying, error) {
	id, _, err := r.talker(ctx)
	if err != nil {
		return obeying{}, err
	}
	agent, err := r.desk.Use(ctx, id, in.Name)
	return obeying{Agent: agent}, err
}

func (r *routes) agents(ctx context.Context, _ *struct{}) ([]presence, error) {
	id, _, err := r.talker(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.desk.Agents(ctx, id)
	return wire.Each(found, func(p permissions.Presence) presence { return presence(p) }), err
}

// OnMessage is [connectors.Listener]: it writes to the agent in the foreground, or to the author of what m replies to. Of
// m's identity nothing is read: the socket proves it.
func (c *Client) OnMessage(ctx context.Context, m connectors.Message) error {
	body := writing{Text: m.Text, ReplyTo: m.ReplyTo, Key: m.Key}
	return c.wire.Call(ctx, http.MethodPost, "/v1/messages", c.header(""), body, 0, nil)
}

// Agents are those that this account can write to here; none is refused with [permissions.CodeNoAgent].
func (c *Client) Agents(ctx context.Context, _ connectors.Identity) ([]permissions.Presence, error) {
	var list []presence
	if err := c.get(ctx, "/v1/agents", &list); err != nil {
		return nil, err
	}
	return wire.Each(list, func(p presence) permissions.Presence { return permissions.Presence(p) }), nil
}

// Use has this account's messages go to the agent of that name, and returns its name.
func (c *Client) Use(ctx context.Context, _ connectors.Identity, name string) (agent string, err error) {
	var told obeying
	err = c.wire.Call(ctx, http.MethodPost, "/v1/agents/"+url.PathEscape(name)+"/use", c.header(""), nil, 0, &told)
	return told.Agent, err
}

// Order has the agent in the foreground obey at once, and returns its name. The same key again changes nothing.
func (c *Client) Order(ctx context.Context, _ connectors.Identity, o permissions.Order, key string) (agent string, err error) {
	var told obeying
	err = c.wire.Call(ctx, http.MethodPost, "/v1/orders", c.header(""), ordering{Order: o, Key: key}, 0, &told)
	return told.Agent, err
}

var _ connectors.Talker = (*Connector)(nil)

// mostSaid is how many characters a message of an agent's has; longer ones are several, so that a card can come between.
const mostSaid = 4000

// Said is one message of an agent's, as it is to be shown: it begins with the agent's name.
type Said struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
	// Ref is what a reply names it by.
	Ref string `json:"ref"`
}

// Talk is [connectors.Talker]: the message goes to every inbox that the person has open, and was sent once one of them has
// been written. While there is none the error is a [connectors.Awaited].
func (c *Connector) Talk(ctx context.Context, s connectors.Saying) (ref string, more bool, err error) {
	parts := talk.Parts(s, talk.Limits{Text: mostSaid, Unit: card.Characters})
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

// hand hands over a message and returns once it is written to one inbox at least.
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
	return away(to) // they fell behind, or have just closed
}

// offer puts the message in every inbox that the person has open. taken of them will say whether they wrote it. Where none
// is open, await is closed when one opens.
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
		case to <- parcel{said: &s, written: results}:
			taken++
		default:
		}
	}
	return taken, results, nil
}

// absent is the error of what is said to somebody without an open inbox.
type absent struct {
	error
	back <-chan struct{}
}

// Awaits is [connectors.Awaited].
func (a *absent) Awaits() <-chan struct{} { return a.back }

// Unwrap is what is wrong, in words.
func (a *absent) Unwrap() error { return a.error }
