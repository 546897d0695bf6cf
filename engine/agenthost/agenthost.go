// Package agenthost connects the daemon's own agents with people: it takes what people write to them (chat.go), hands it
// over and sends what they say (host.go), tells them what became of their requests (eventrelay.go), and shows their
// sessions (sessions.go). Nothing of it decides anything.
package agenthost

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Store keeps the messages between people and agents until they are delivered, and the agents' sessions.
type Store interface {
	// Read is that of [registry.Store].
	Read(ctx context.Context, id permissions.ID) (permissions.Request, error)
	// Coder gives requests their codes. Its key belongs to the store and does not change while it is open.
	Coder() permissions.Coder

	// AddMessage stores a message for its agent. A known key changes nothing. If most messages are undelivered it
	// refuses with [permissions.CodeLimit]. Of a message with a ReceivedAt only the key is stored.
	AddMessage(ctx context.Context, m permissions.Message, most int) error
	// HasMessage reports whether a message or an order with that key was accepted.
	HasMessage(ctx context.Context, key string) (bool, error)
	// UndeliveredMessages lists at most limit undelivered messages of an agent, oldest first.
	UndeliveredMessages(ctx context.Context, agent string, limit int) ([]permissions.Message, error)
	// MarkDelivered records that the agent has a message, and deletes its text.
	MarkDelivered(ctx context.Context, number int64, at time.Time) error

	// AddAgentMessage stores a message of an agent. A known key of that agent changes nothing. If most of its messages
	// are unsent it refuses with [permissions.CodeLimit].
	AddAgentMessage(ctx context.Context, u permissions.AgentMessage, most int) error
	// UnsentAgentMessages lists at most limit messages of an agent with unsent parts, oldest first.
	UnsentAgentMessages(ctx context.Context, agent string, limit int) ([]permissions.AgentMessage, error)
	// MarkAgentMessageSent records that u.Sent parts of a message were sent, the last as ref (empty: it was not sent),
	// and with done that no more follow; then its text is deleted. The refs of an agent's last thousand parts are kept.
	MarkAgentMessageSent(ctx context.Context, u permissions.AgentMessage, ref string, done bool, at time.Time) error
	// Author returns the agent that a message in a channel is from; empty if unknown.
	Author(ctx context.Context, via, ref string) (agent string, err error)

	// Foreground returns the agent that a person chose in a channel; empty for none.
	Foreground(ctx context.Context, person, via string) (agent string, err error)
	// SetForeground directs a person's messages to an agent in the channel of the binding.
	SetForeground(ctx context.Context, b permissions.Binding) error

	// PendingNumbers lists the numbers of all pending requests.
	PendingNumbers(ctx context.Context) ([]int64, error)

	// AgentSession returns a session, or refuses with [permissions.CodeUnknown].
	AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error)
	// AgentSessions lists at most limit sessions of a person (empty: everybody's), including ended ones, after the one
	// named (empty: from the first), by id.
	AgentSessions(ctx context.Context, person string, after permissions.ID, limit int) ([]permissions.AgentSession, error)
	// SetDebug switches the logging of each state of a session's run. The session's version stays the same.
	SetDebug(ctx context.Context, id permissions.ID, on bool) error
	// ExecutionsOf lists at most limit calls of a session after the one with that ID, by ID.
	ExecutionsOf(ctx context.Context, session permissions.ID, after int64, limit int) ([]permissions.Execution, error)
	// ArtifactsOf lists at most limit artifacts of a session after the one with that ID, by ID: those of one execution,
	// or of the whole session if that is 0.
	ArtifactsOf(ctx context.Context, session permissions.ID, execution, after int64, limit int) ([]permissions.Artifact, error)
	// OpenSessions lists at most limit sessions that have not ended, after the one named (empty: from the first), by id.
	OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error)

	// Cursor returns the position of a named follower in the daemon's chain. A new one starts after the newest entry.
	Cursor(ctx context.Context, name string) (seq int64, err error)
	// SetCursor stores the position of a follower.
	SetCursor(ctx context.Context, name string, seq int64) error
	// Events lists at most limit entries of the daemon's chain after seq that are events, oldest first, and the first
	// seq that the chain still has: earlier ones were deleted. Of what is in memory, [permissions.Event.About] is set.
	Events(ctx context.Context, after int64, limit int) (list []permissions.Event, first int64, err error)
	// Changed is closed with the next entry of the audit.
	Changed() <-chan struct{}
}

// Config are the parts of [Hosts]. Without an EventHandler, nobody handles events.
type Config struct {
	Store        Store
	Directory    *directory.Directory
	Residents    []agents.Resident
	EventHandler agents.EventHandler
	Clock        timing.Clock
	Log          *slog.Logger
	// AwaitLease returns true when this daemon is the one of several that runs the agents, and false when its context ends before that; nil:
	// there are no others.
	AwaitLease func(context.Context) bool
	// CheckLease returns nil while that is so, and is called before each message.
	CheckLease func(context.Context) error
}

// Hosts are the hosts of all our own agents. It is safe for concurrent use.
type Hosts struct {
	dir        *directory.Directory
	store      Store
	clock      timing.Clock
	log        *slog.Logger
	hosts      []*host
	eventRelay *eventRelay // nil: nobody handles events
	awaitLease func(context.Context) bool
	checkLease func(context.Context) error // see Config.CheckLease
}

// New makes a host for each agent, in order. It starts nothing: call [Hosts.Recover], then [Hosts.Run].
func New(c Config) *Hosts {
	a := &Hosts{dir: c.Directory, store: c.Store, clock: c.Clock, log: c.Log, awaitLease: c.AwaitLease, checkLease: c.CheckLease}
	for _, r := range c.Residents {
		a.hosts = append(a.hosts, &host{
			Hosts: a, resident: r, bond: r.Binding(), log: c.Log.With("agent", r.Binding().Agent),
			written: timing.NewSignal(), said: timing.NewSignal(), works: timing.NewSignal(),
		})
	}
	if c.EventHandler != nil {
		a.eventRelay = &eventRelay{Hosts: a, handler: c.EventHandler}
	}
	return a
}

// RecoverEvents ensures that from here on no event is missed.
func (a *Hosts) RecoverEvents(ctx context.Context) error {
	if a.eventRelay == nil {
		return nil
	}
	_, err := a.store.Cursor(ctx, eventRelayName)
	return err
}

// EndRuns ends what an agent of ours runs here, with those that it started, after the record of its stop. A stop that comes while no
// daemon runs it has nothing to end.
func (a *Hosts) EndRuns(ctx context.Context, stop permissions.Record) {
	if a.eventRelay == nil {
		return
	}
	err := a.eventRelay.handler.HandleEvent(ctx, permissions.Event{Entry: permissions.Entry{Record: stop}}, permissions.Request{})
	if err != nil {
		a.log.Error("end what a stopped agent runs", "err", err)
	}
}

// LookAgain delivers what other daemons have stored for the agents and their people.
func (a *Hosts) LookAgain() {
	for _, h := range a.hosts {
		h.written.Notify()
		h.said.Notify()
	}
}

// Run runs the agents, delivers messages both ways and passes events on, until ctx ends, once no other daemon does.
func (a *Hosts) Run(ctx context.Context) error {
	if a.awaitLease != nil && !a.awaitLease(ctx) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	if a.eventRelay != nil {
		group.Go(func() error { return a.eventRelay.run(ctx) })
	}
	for _, h := range a.hosts {
		group.Go(func() error { return h.run(ctx) })
	}
	return group.Wait()
}
