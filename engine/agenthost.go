package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// agentHost is what the engine does for one agent of our own: it hands over what its person writes, sends what it says, and
// shows that it works. Each is a worker of its own, so that neither a slow agent nor a slow channel holds up the other,
// nor anybody else. The rows say what there is to do, so a crash loses nothing.
type agentHost struct {
	engine   *Engine
	resident agents.Resident
	bond     permissions.Binding
	written  permissions.Signal // there is something to hear
	said     permissions.Signal // there is something to send
	works    permissions.Signal // working has changed
	working  atomic.Int64       // grows with each change; odd while it works
	log      *slog.Logger
}

// run works until ctx ends.
func (h *agentHost) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.runAgent(ctx) })
	group.Go(func() error { return h.work(ctx, h.written, h.deliverMessages) })
	group.Go(func() error { return h.work(ctx, h.said, h.sendMessages) })
	group.Go(func() error { return h.show(ctx) })
	return group.Wait()
}

// runAgent has the agent work until ctx ends. One that ends before is started again, ever later: nothing else ends with it.
func (h *agentHost) runAgent(ctx context.Context) error {
	for delay := time.Duration(0); ctx.Err() == nil; {
		began := h.engine.clock.Elapsed()
		err := h.resident.Run(ctx, agentSpeaker{h})
		agentSpeaker{h}.Working(false)
		if h.engine.clock.Elapsed()-began > retryMost {
			delay = 0
		}
		delay = min(max(2*delay, retryFirst), retryMost)
		if ctx.Err() == nil {
			h.log.Error("an agent has ended; it is started again", "delay", delay, "err", err)
		}
		_ = permissions.Pause(ctx, delay) // the loop looks at ctx
	}
	return nil
}

// work does what there is to do, whenever the bell rings. What fails is tried again when the channel says so, or ever
// later. That somebody is away is no failure: as soon as they are back, it is tried.
func (h *agentHost) work(ctx context.Context, wake permissions.Signal, do func(context.Context) error) error {
	delay := time.Duration(0)
	for ctx.Err() == nil {
		err := do(ctx)
		if err == nil {
			delay = 0
			select {
			case <-ctx.Done():
			case <-wake:
			}
			continue
		}
		back := connectors.ReadySignal(err)
		if ctx.Err() == nil {
			delay = min(max(2*delay, retryFirst), retryMost)
			level := slog.LevelDebug
			if delay > retryFirst && back == nil { // the first failure is often mended by the second try
				level = slog.LevelWarn
			}
			h.log.Log(ctx, level, "what an agent and its person say is held up; it is tried again", "delay", delay, "err", err)
		}
		select {
		case <-back:
			delay = 0
		case <-ctx.Done():
		case <-time.After(cmp.Or(connectors.RetryAfter(err), delay)):
		}
	}
	return nil
}

// atATime is how many messages are read from the store at a time.
const atATime = 10

// deliverMessages hands the agent what its person wrote, in order.
func (h *agentHost) deliverMessages(ctx context.Context) error {
	for {
		messages, err := h.engine.store.UndeliveredMessages(ctx, h.bond.Agent, atATime)
		if err != nil || len(messages) == 0 {
			return err
		}
		for _, m := range messages {
			from, _ := h.engine.settings.Load().person(m.From)
			if m.From == h.bond.Person && from.Locked == "" { // else the agent was somebody else's when it was written
				if err := h.resident.Hear(ctx, m); err != nil {
					return fmt.Errorf("have it hear: %w", err)
				}
			}
			if err := h.engine.store.MarkDelivered(ctx, m.Number, h.engine.stamp()); err != nil {
				return err
			}
		}
	}
}

// sendMessages sends the agent's person what it said, in order.
func (h *agentHost) sendMessages(ctx context.Context) error {
	for {
		all, err := h.engine.store.UnsentAgentMessages(ctx, h.bond.Agent, atATime)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, u := range all {
			if err := h.send(ctx, u); err != nil {
				return err
			}
		}
	}
}

// send sends what is still to be sent of an utterance, one message after the other, each noted before the next.
func (h *agentHost) send(ctx context.Context, u permissions.AgentMessage) error {
	e := h.engine
	for {
		ref, more, err := h.talk(ctx, u)
		if errors.Is(err, connectors.ErrUnreachable) {
			h.log.Info("what an agent says reaches nobody", "to", u.Bond.Person, "err", err)
			return e.store.MarkAgentMessageSent(ctx, u, "", true, e.stamp())
		}
		if err != nil {
			return err
		}
		u.Sent++
		noting, done := noting(ctx) // what was sent is noted, also while stopping
		err = e.store.MarkAgentMessageSent(noting, u, ref, !more, e.stamp())
		done()
		if err != nil || !more {
			return err
		}
	}
}

// talk sends the next message of an utterance.
func (h *agentHost) talk(ctx context.Context, u permissions.AgentMessage) (ref string, more bool, err error) {
	e := h.engine
	talker, to, err := h.listener(u.Bond)
	if err != nil {
		return "", false, err
	}
	codes, err := e.codes(ctx)
	if err != nil {
		return "", false, err
	}
	return talker.SendMessage(ctx, connectors.AgentMessage{
		To: to, Agent: u.Bond.Agent, Text: u.Text, Part: u.Sent, Codes: codes, Silent: to.Quiet.Hold(e.wall(to)),
	})
}

// listener is whom a bond is with, and the channel to them.
func (h *agentHost) listener(b permissions.Binding) (talker connectors.MessageSender, to connectors.Person, err error) {
	to, known := h.engine.settings.Load().person(b.Person)
	if !known {
		return nil, to, &connectors.UnreachableError{Reason: b.Person + " is nobody here"}
	}
	c, on := h.engine.connector(b.Via)
	talker, talks := c.(connectors.MessageSender)
	if !on || !talks {
		return nil, to, &connectors.UnreachableError{Reason: b.Via + " takes nothing that agents say"}
	}
	return talker, to, suspended(to, b.Via)
}

const (
	// typingEvery is how often it is shown that an agent works: channels forget it after about five seconds.
	typingEvery = 4 * time.Second
	// typingTime bounds how long that takes.
	typingTime = 3 * time.Second
)

// show shows the person that the agent works, until it no longer does.
func (h *agentHost) show(ctx context.Context) error {
	for ctx.Err() == nil {
		var next <-chan time.Time
		now := h.working.Load()
		if now%2 != 0 {
			h.typing(ctx)
			next = time.After(typingEvery)
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				same = false
			case <-h.works: // perhaps of what was seen above
				same = h.working.Load() == now
			case <-next:
				same = false
			}
		}
	}
	return nil
}

// typing shows once that the agent works. Nothing is lost where that fails.
func (h *agentHost) typing(ctx context.Context) {
	c, _ := h.engine.connector(h.bond.Via)
	typer, types := c.(connectors.TypingIndicator)
	to, known := h.engine.settings.Load().person(h.bond.Person)
	if !types || !known || suspended(to, h.bond.Via) != nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, typingTime)
	defer done()
	if err := typer.ShowTyping(ctx, to); err != nil {
		h.log.Debug("that an agent works was not shown", "err", err)
	}
}

// agentSpeaker is how an agent speaks: to its own person, as itself.
type agentSpeaker struct{ *agentHost }

// mostUnsaid is how much of what an agent said may still be to be sent.
const mostUnsaid = 100

// Say is [agents.Speaker].
func (v agentSpeaker) Say(ctx context.Context, key, text string) error {
	if strings.TrimSpace(text) == "" || len(text) > permissions.MaxAgentMessage {
		return permissions.Invalid(fmt.Errorf("what is said has 1 to %d bytes; this has %d", permissions.MaxAgentMessage, len(text)))
	}
	m := permissions.AgentMessage{Key: key, Bond: v.bond, Text: text, CreatedAt: v.engine.stamp()}
	if err := v.engine.store.AddAgentMessage(ctx, m, mostUnsaid); err != nil {
		return broken(err)
	}
	v.said.Notify()
	return nil
}

// Working is [agents.Speaker].
func (v agentSpeaker) Working(on bool) {
	for n := v.working.Load(); (n%2 != 0) != on; n = v.working.Load() {
		if v.working.CompareAndSwap(n, n+1) {
			v.works.Notify()
			return
		}
	}
}
