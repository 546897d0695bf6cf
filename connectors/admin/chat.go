package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Chatter is a [Desk] at which people write to agents of ours. Each has those that are bound to them and to this door, and
// nobody else's. Where the desk is none, there are no such routes.
type Chatter interface {
	connectors.Listener
	// Agents are those of an identity's, in the order in which they are listed.
	Agents(ctx context.Context, id connectors.Identity) ([]permissions.Presence, error)
	// Use has an identity's messages go to the agent of that name, and returns its name.
	Use(ctx context.Context, id connectors.Identity, name string) (agent string, err error)
	// Order has the agent in the foreground obey at once, and returns its name. The same key again changes nothing.
	Order(ctx context.Context, id connectors.Identity, o permissions.Order, key string) (agent string, err error)
}

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
	presencesOutput struct{ Body []presence }
	obeyingOutput   struct{ Body obeying }
	nothing         struct{ Body struct{} }
)

// chatter serves the routes of those who talk to agents.
type chatter struct {
	*routes
	desk Chatter
}

// registerChat registers those routes where the desk has them.
func (r *routes) registerChat() {
	desk, can := r.desk.(Chatter)
	if !can {
		return
	}
	c := chatter{r, desk}
	post := func(id, path, summary string) huma.Operation {
		return huma.Operation{
			OperationID: id, Method: http.MethodPost, Path: path, Summary: summary,
			MaxBodyBytes: -1, BodyReadTimeout: -1, // the door has read the body already
		}
	}
	api := r.door.API
	huma.Register(api, post("write", "/v1/messages", "Write to the caller's agent in the foreground"), c.write)
	huma.Register(api, post("order", "/v1/orders", "Have the caller's agent in the foreground obey at once"), c.order)
	huma.Register(api, post("use", "/v1/agents/{name}/use", "Have the caller's messages go to that agent"), c.use)
	huma.Register(api, huma.Operation{
		OperationID: "agents", Method: http.MethodGet, Path: "/v1/agents", Summary: "List the agents that the caller can write to here",
	}, c.agents)
}

// talker is who makes the call that ctx is of, as somebody who talks by this door, and the prefix of their keys: one person's
// are no other's.
func (c chatter) talker(ctx context.Context) (id connectors.Identity, prefix string, err error) {
	id = who(ctx)
	id.Via = Name
	name, err := c.routes.desk.Who(id)
	return id, Name + ":" + name + ":", err
}

var errBlank = errors.New("nothing is written")

func (c chatter) write(ctx context.Context, in *writingInput) (*nothing, error) {
	id, prefix, err := c.talker(ctx)
	if err == nil && strings.TrimSpace(in.Body.Text) == "" {
		err = permissions.Invalid(errBlank)
	}
	if err == nil {
		err = c.desk.OnMessage(ctx, connectors.Message{
			From: id, Text: in.Body.Text, ReplyTo: in.Body.ReplyTo, Key: prefix + in.Body.Key,
		})
	}
	if err != nil {
		return nil, c.door.Refuse(err)
	}
	return &nothing{}, nil
}

func (c chatter) order(ctx context.Context, in *orderingInput) (*obeyingOutput, error) {
	id, prefix, err := c.talker(ctx)
	if err != nil {
		return nil, c.door.Refuse(err)
	}
	return c.obeyed(c.desk.Order(ctx, id, in.Body.Order, prefix+in.Body.Key))
}

func (c chatter) use(ctx context.Context, in *useInput) (*obeyingOutput, error) {
	id, _, err := c.talker(ctx)
	if err != nil {
		return nil, c.door.Refuse(err)
	}
	return c.obeyed(c.desk.Use(ctx, id, in.Name))
}

func (c chatter) obeyed(agent string, err error) (*obeyingOutput, error) {
	if err != nil {
		return nil, c.door.Refuse(err)
	}
	return &obeyingOutput{Body: obeying{Agent: agent}}, nil
}

func (c chatter) agents(ctx context.Context, _ *struct{}) (*presencesOutput, error) {
	id, _, err := c.talker(ctx)
	if err != nil {
		return nil, c.door.Refuse(err)
	}
	found, err := c.desk.Agents(ctx, id)
	if err != nil {
		return nil, c.door.Refuse(err)
	}
	out := &presencesOutput{Body: make([]presence, len(found))}
	for i, p := range found {
		out.Body[i] = presence(p)
	}
	return out, nil
}

// OnMessage is [connectors.Listener]: it writes to the agent in the foreground, or to the author of what m replies to. Of
// m's identity nothing is read: the socket proves it.
func (c *Client) OnMessage(ctx context.Context, m connectors.Message) error {
	body := writing{Text: m.Text, ReplyTo: m.ReplyTo, Key: m.Key}
	return c.wire.Call(ctx, http.MethodPost, "/v1/messages", c.header(""), body, 0, nil)
}

// Agents are those that this account can write to here; none is refused with [permissions.CodeNoAgent].
func (c *Client) Agents(ctx context.Context) ([]permissions.Presence, error) {
	var list []presence
	if err := c.get(ctx, "/v1/agents", &list); err != nil {
		return nil, err
	}
	found := make([]permissions.Presence, len(list))
	for i, p := range list {
		found[i] = permissions.Presence(p)
	}
	return found, nil
}

// Use has this account's messages go to the agent of that name, and returns its name.
func (c *Client) Use(ctx context.Context, name string) (agent string, err error) {
	var told obeying
	err = c.wire.Call(ctx, http.MethodPost, "/v1/agents/"+url.PathEscape(name)+"/use", c.header(""), nil, 0, &told)
	return told.Agent, err
}

// Order has the agent in the foreground obey at once, and returns its name. The same key again changes nothing.
func (c *Client) Order(ctx context.Context, o permissions.Order, key string) (agent string, err error) {
	var told obeying
	err = c.wire.Call(ctx, http.MethodPost, "/v1/orders", c.header(""), ordering{Order: o, Key: key}, 0, &told)
	return told.Agent, err
}
