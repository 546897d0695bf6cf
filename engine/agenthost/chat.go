package agenthost

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

const (
	// maxUnheard bounds the undelivered messages of one agent.
	maxUnheard = 100
	// orderTime bounds one call of an agent's Obey: the channel delivers nothing else meanwhile.
	orderTime = 3 * time.Second
)

// OnMessage implements [connectors.Inbound]. A reply goes to the author of what it replies to, whoever is in the foreground.
func (a *Hosts) OnMessage(ctx context.Context, m connectors.Message) error {
	person, mine, err := a.bound(m.From)
	if err != nil {
		return err
	}
	if len(m.Text) > permissions.MaxMessageSize || !utf8.ValidString(m.Text) {
		return permissions.InvalidInput("a message has at most %d bytes of UTF-8", permissions.MaxMessageSize)
	}
	to, err := a.foreground(ctx, person, m.From.Via, mine)
	if err != nil {
		return err
	}
	if m.ReplyTo != "" {
		author, err := a.store.Author(ctx, m.From.Via, m.ReplyTo)
		if err != nil {
			return shared.Broken(err)
		}
		for _, h := range mine {
			if h.bond.Agent == author {
				to = h
			}
		}
	}
	err = a.store.AddMessage(ctx, permissions.Message{
		Key: m.Key, Agent: to.bond.Agent, From: person.Name, Text: m.Text, CreatedAt: a.clock.Stamp(),
	}, maxUnheard)
	if err != nil {
		return shared.Broken(err)
	}
	to.written.Notify()
	return nil
}

// Agents lists an identity's agents in the chat that it came from, in configured order.
func (a *Hosts) Agents(ctx context.Context, id connectors.Identity) ([]permissions.Presence, error) {
	person, mine, err := a.bound(id)
	if err != nil {
		return nil, err
	}
	front, err := a.foreground(ctx, person, id.Via, mine)
	if err != nil {
		return nil, err
	}
	var all []permissions.Presence
	for _, h := range mine {
		waiting, err := a.store.UndeliveredMessages(ctx, h.bond.Agent, maxUnheard)
		if err != nil {
			return nil, shared.Broken(err)
		}
		all = append(all, permissions.Presence{
			Agent: h.bond.Agent, Foreground: h == front, Activity: h.resident.Activity(), Undelivered: len(waiting),
		})
	}
	return all, nil
}

// Use directs an identity's messages to the named agent, in the chat that it came from, and returns its name.
func (a *Hosts) Use(ctx context.Context, id connectors.Identity, name string) (agent string, err error) {
	person, mine, err := a.bound(id)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(mine, func(h *host) bool { return strings.EqualFold(h.bond.Agent, name) })
	if at < 0 {
		var names []string
		for _, h := range mine {
			names = append(names, h.bond.Agent)
		}
		return "", permissions.UnknownAgent(name, names)
	}
	agent = mine[at].bond.Agent
	return agent, shared.Broken(a.store.SetForeground(ctx, permissions.Binding{Agent: agent, Person: person.Name, Via: id.Via}))
}

// Order gives an order to the agent in the foreground of an identity's chat, at once, and returns the agent's name. A
// repeated key changes nothing: the order preceded what came since.
func (a *Hosts) Order(
	ctx context.Context, id connectors.Identity, o permissions.Order, key string,
) (agent string, err error) {
	person, mine, err := a.bound(id)
	if err != nil {
		return "", err
	}
	to, err := a.foreground(ctx, person, id.Via, mine)
	if err != nil {
		return "", err
	}
	known, err := a.store.HasMessage(ctx, key)
	if err != nil || known {
		return to.bond.Agent, shared.Broken(err)
	}
	brief, done := context.WithTimeout(ctx, orderTime)
	defer done()
	if err := to.resident.Obey(brief, o); err != nil { // the channel does not wait for a slow agent
		to.log.Warn("order failed", "order", o, "err", err)
		return "", permissions.OrderNotTaken(to.bond.Agent)
	}
	now := a.clock.Stamp()
	return to.bond.Agent, shared.Broken(a.store.AddMessage(ctx, permissions.Message{
		Key: key, Agent: to.bond.Agent, From: person.Name, CreatedAt: now, ReceivedAt: now,
	}, maxUnheard))
}

// bound returns the person of an identity and their agents, at least one, in the chat that it came from, in order.
func (a *Hosts) bound(id connectors.Identity) (person connectors.Person, mine []*host, err error) {
	person, err = a.dir.Person(id)
	if err != nil {
		return person, nil, err
	}
	if mine = a.agentsOf(person.Name, id.Via); len(mine) == 0 {
		return person, nil, permissions.NoAgent()
	}
	return person, mine, nil
}

func (a *Hosts) agentsOf(person, via string) (mine []*host) {
	for _, h := range a.hosts {
		if h.bond.Person == person && h.bond.Via == via {
			mine = append(mine, h)
		}
	}
	return mine
}

// Front returns the foreground agent of the first of these people who has one; empty: none has.
func (a *Hosts) Front(ctx context.Context, people []string) (agent string, err error) {
	for _, name := range people {
		for _, h := range a.hosts {
			if h.bond.Person != name || h.bond.Via == "" {
				continue
			}
			to, err := a.foreground(ctx, connectors.Person{Name: name}, h.bond.Via, a.agentsOf(name, h.bond.Via))
			if err != nil {
				return "", err
			}
			return to.bond.Agent, nil
		}
	}
	return "", nil
}

// foreground returns the agent that a person chose, or else their first.
func (a *Hosts) foreground(
	ctx context.Context, person connectors.Person, via string, mine []*host,
) (*host, error) {
	chosen, err := a.store.Foreground(ctx, person.Name, via)
	if err != nil {
		return nil, shared.Broken(err)
	}
	for _, h := range mine {
		if h.bond.Agent == chosen {
			return h, nil
		}
	}
	return mine[0], nil
}
