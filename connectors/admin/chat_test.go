package admin_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// talked is an env at which fay has agents.
type talked struct {
	*wiretest.Env

	mu     sync.Mutex
	heard  []connectors.Message
	orders []string
	front  string
	fail   error
}

func (d *talked) OnMessage(_ context.Context, m connectors.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		d.heard = append(d.heard, m)
	}
	return d.fail
}

func (d *talked) Agents(_ context.Context, id connectors.Identity) ([]permissions.Presence, error) {
	if name, err := d.Who(id); err != nil || name != "fay" || id.Via != admin.Name {
		return nil, permissions.NoAgent()
	}
	return []permissions.Presence{{Agent: "helper", Foreground: true, Activity: permissions.Running, Undelivered: 2}, {Agent: "coder"}}, nil
}

func (d *talked) Use(ctx context.Context, id connectors.Identity, name string) (string, error) {
	all, err := d.Agents(ctx, id)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(all, func(p permissions.Presence) bool { return p.Agent == name }) {
		return "", permissions.UnknownAgent(name, []string{"coder"})
	}
	d.front = name
	return name, nil
}

func (d *talked) Order(ctx context.Context, id connectors.Identity, o permissions.Order, key string) (string, error) {
	if _, err := d.Agents(ctx, id); err != nil {
		return "", err
	}
	d.orders = append(d.orders, string(o)+" "+key)
	return "helper", nil
}

func TestPeopleTalkToTheirAgents(t *testing.T) {
	socket, env := wiretest.Socket(t), &talked{Env: wiretest.NewEnv(t)}
	serve(t, socket, env)
	c := newClient(t, socket, "")
	want, _ := env.Agents(t.Context(), connectors.Identity{Via: admin.Name, UID: os.Getuid()})
	if all, err := c.Agents(t.Context(), connectors.Identity{}); err != nil || !slices.Equal(all, want) {
		t.Errorf("agents: %+v, %v", all, err)
	}
	if name, err := c.Use(t.Context(), connectors.Identity{}, "coder"); err != nil || name != "coder" || env.front != "coder" {
		t.Errorf("use: %q, %v", name, err)
	}
	_, err := c.Use(t.Context(), connectors.Identity{}, "a/b c")
	if !isRefusal(err, permissions.CodeUnknown) || !strings.Contains(err.Error(), `"a/b c"`) {
		t.Errorf("use of no agent: %v", err)
	}
	if name, err := c.Order(t.Context(), connectors.Identity{}, permissions.OrderStop, "1"); err != nil || name != "helper" ||
		!slices.Equal(env.orders, []string{"stop admin:fay:1"}) {
		t.Errorf("order: %q, %v, %q", name, err, env.orders)
	}
	m := connectors.Message{Text: "how is it\ngoing?", ReplyTo: "said-1", Key: "terminal:X"}
	if err := c.OnMessage(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Key = "admin:fay:" + m.Key
	m.From = connectors.Identity{Via: admin.Name, UID: os.Getuid()}
	if diff := cmp.Diff([]connectors.Message{m}, env.heard); diff != "" {
		t.Errorf("(-sent +got):\n%s", diff)
	}
	env.fail = permissions.InboxFull("helper")
	if err := c.OnMessage(t.Context(), m); !isRefusal(err, permissions.CodeLimit) || err.Error() != env.fail.Error() {
		t.Errorf("a refusal comes as %v", err)
	}
}

// What a message may be is checked before anybody hears it.
func TestMessagesThatAreNone(t *testing.T) {
	socket, env := wiretest.Socket(t), &talked{Env: wiretest.NewEnv(t)}
	serve(t, socket, env)
	c := newClient(t, socket, "")
	for what, m := range map[string]connectors.Message{
		"nothing": {Key: "1"}, "blanks": {Text: " \n", Key: "1"}, "no key": {Text: "x"},
		"a long key": {Text: "x", Key: strings.Repeat("k", 201)}, "a long ref": {Text: "x", Key: "1", ReplyTo: strings.Repeat("r", 65)},
	} {
		if err := c.OnMessage(t.Context(), m); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := c.Order(t.Context(), connectors.Identity{}, "dance", "1"); err == nil {
		t.Error("any order is taken")
	}
	if _, err := c.Order(t.Context(), connectors.Identity{}, permissions.OrderNew, ""); err == nil {
		t.Error("an order without a key is taken")
	}
	if len(env.heard)+len(env.orders) > 0 {
		t.Errorf("%+v, %q", env.heard, env.orders)
	}
}

// Who has no agents is told so, and who is nobody hears nothing of them.
func TestAPersonWithoutAgents(t *testing.T) {
	for what, c := range map[string]struct {
		person string
		code   permissions.Code
	}{"somebody else": {"sam", permissions.CodeNoAgent}, "nobody": {"", permissions.CodeNotYours}} {
		socket, env := wiretest.Socket(t), &talked{Env: wiretest.NewEnv(t)}
		env.GiveAccount(c.person)
		serve(t, socket, env)
		client := newClient(t, socket, "")
		_, agents := client.Agents(t.Context(), connectors.Identity{})
		_, use := client.Use(t.Context(), connectors.Identity{}, "helper")
		_, order := client.Order(t.Context(), connectors.Identity{}, permissions.OrderStop, "1")
		for _, err := range []error{agents, use, order} {
			if !isRefusal(err, c.code) {
				t.Errorf("%s: %v", what, err)
			}
		}
		err := client.OnMessage(t.Context(), connectors.Message{Text: "x", Key: "1"})
		if c.person == "" && (!isRefusal(err, c.code) || len(env.heard) > 0) {
			t.Errorf("%s writes: %v, %+v", what, err, env.heard)
		}
	}
}
