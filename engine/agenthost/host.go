package agenthost

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
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// host connects one of the daemon's own agents with its person: it delivers the person's messages, sends the
// agent's, and shows when the agent works. Each runs as a worker of its own, so that a slow agent or channel delays
// nothing else. It works from the rows, so a crash loses nothing.
type host struct {
	*Hosts

	resident agents.Resident
	bond     permissions.Binding
	written  timing.Signal // a message was written
	said     timing.Signal // the agent said something
	works    timing.Signal // working changed
	working  atomic.Int64  // incremented by each change; odd while the agent works
	log      *slog.Logger
}

func (h *host) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.runAgent(ctx) })
	group.Go(func() error { return h.work(ctx, h.written, h.deliverMessages) })
	group.Go(func() error { return h.work(ctx, h.said, h.sendMessages) })
	group.Go(func() error { return h.show(ctx) })
	return group.Wait()
}

// runAgent runs the agent until ctx ends and restarts it with growing delays. Nothing else ends with it.
func (h *host) runAgent(ctx context.Context) error {
	for delay := time.Duration(0); ctx.Err() == nil; {
		began := h.clock.Elapsed()
		err := h.resident.Run(ctx, speaker{h})
		speaker{h}.Working(false)
		if h.clock.Elapsed()-began > shared.RetryMost {
			delay = 0
		}
		delay = min(max(2*delay, shared.RetryFirst), shared.RetryMost)
		if ctx.Err() == nil {
			h.log.Error("agent ended: restarting", "delay", delay, "err", err)
		}
		_ = timing.Pause(ctx, delay) // the loop checks ctx
	}
	return nil
}

// work calls do after each wake-up. Failures are retried when the channel says so, or with growing delays. An
// unreachable person is no failure: the retry follows as soon as they are back.
func (h *host) work(ctx context.Context, wake timing.Signal, do func(context.Context) error) error {
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
			delay = min(max(2*delay, shared.RetryFirst), shared.RetryMost)
			level := slog.LevelDebug
			if delay > shared.RetryFirst && back == nil { // the first failure is often fixed by the retry
				level = slog.LevelWarn
			}
			h.log.Log(ctx, level, "chat delivery failed, retrying", "delay", delay, "err", err)
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

// atATime bounds how many messages are read from the store at once.
const atATime = 10

// deliverMessages delivers the person's messages to the agent, in order.
func (h *host) deliverMessages(ctx context.Context) error {
	for {
		messages, err := h.store.UndeliveredMessages(ctx, h.bond.Agent, atATime)
		if err != nil || len(messages) == 0 {
			return err
		}
		for _, m := range messages {
			from, _ := h.dir.Settings().Person(m.From)
			if m.From == h.bond.Person && from.Locked == "" { // else the message was written for another owner's agent
				if err := h.resident.Receive(ctx, m); err != nil {
					return fmt.Errorf("deliver message to agent: %w", err)
				}
			}
			if err := h.store.MarkDelivered(ctx, m.Number, h.clock.Stamp()); err != nil {
				return err
			}
		}
	}
}

// sendMessages sends the agent's messages to its person, in order.
func (h *host) sendMessages(ctx context.Context) error {
	for {
		all, err := h.store.UnsentAgentMessages(ctx, h.bond.Agent, atATime)
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

// send sends the remaining parts of a message, each stored as sent before the next.
func (h *host) send(ctx context.Context, u permissions.AgentMessage) error {
	for {
		ref, more, err := h.talk(ctx, u)
		if errors.Is(err, connectors.ErrUnreachable) {
			h.log.Info("agent message undeliverable", "to", u.Binding.Person, "err", err)
			return h.store.MarkAgentMessageSent(ctx, u, "", true, h.clock.Stamp())
		}
		if err != nil {
			return err
		}
		u.Sent++
		noting, done := shared.Noting(ctx) // store it even while stopping
		err = h.store.MarkAgentMessageSent(noting, u, ref, !more, h.clock.Stamp())
		done()
		if err != nil || !more {
			return err
		}
	}
}

// talk sends the next part of a message.
func (h *host) talk(ctx context.Context, u permissions.AgentMessage) (ref string, more bool, err error) {
	talker, to, err := h.listener(u.Binding)
	if err != nil {
		return "", false, err
	}
	codes, err := shared.Codes(ctx, h.store)
	if err == nil {
		err = h.checkLease(ctx)
	}
	if err != nil {
		return "", false, err
	}
	return talker.SendMessage(ctx, connectors.AgentMessage{
		To: to, Agent: u.Binding.Agent, Text: u.Text, Part: u.Sent, Codes: codes, Silent: to.Quiet.Hold(h.dir.LocalTime(to)),
	})
}

// listener returns the person of a binding and the channel to them.
func (h *host) listener(b permissions.Binding) (talker connectors.MessageSender, to connectors.Person, err error) {
	to, known := h.dir.Settings().Person(b.Person)
	if !known {
		return nil, to, &connectors.UnreachableError{Reason: b.Person + " is not configured"}
	}
	c, on := h.dir.Channel(b.Via)
	talker, talks := c.(connectors.MessageSender)
	if !on || !talks {
		return nil, to, &connectors.UnreachableError{Reason: b.Via + " takes nothing that agents say"}
	}
	return talker, to, directory.AccountProblem(to, b.Via)
}

const (
	// typingEvery is the interval of the typing indicator: channels drop it after about five seconds.
	typingEvery = 4 * time.Second
	// typingTime bounds one call of the typing indicator.
	typingTime = 3 * time.Second
)

// show keeps the typing indicator on while the agent works.
func (h *host) show(ctx context.Context) error {
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
			case <-h.works: // may be a wake-up for the state seen above
				same = h.working.Load() == now
			case <-next:
				same = false
			}
		}
	}
	return nil
}

// typing shows the typing indicator once. Failures are ignored.
func (h *host) typing(ctx context.Context) {
	c, _ := h.dir.Channel(h.bond.Via)
	typer, types := c.(connectors.TypingIndicator)
	to, known := h.dir.Settings().Person(h.bond.Person)
	if !types || !known || directory.AccountProblem(to, h.bond.Via) != nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, typingTime)
	defer done()
	if err := typer.ShowTyping(ctx, to); err != nil {
		h.log.Debug("show typing indicator", "err", err)
	}
}

// speaker implements [agents.Speaker]: the agent speaks to its own person, as itself.
type speaker struct{ *host }

// maxUnsaid bounds the unsent messages of an agent.
const maxUnsaid = 100

func (v speaker) Say(ctx context.Context, key, text string) error {
	if strings.TrimSpace(text) == "" || len(text) > permissions.MaxAgentMessage {
		return permissions.Invalid(fmt.Errorf("what is said has 1 to %d bytes; this has %d", permissions.MaxAgentMessage, len(text)))
	}
	m := permissions.AgentMessage{Key: key, Binding: v.bond, Text: text, CreatedAt: v.clock.Stamp()}
	if err := v.store.AddAgentMessage(ctx, m, maxUnsaid); err != nil {
		return shared.Broken(err)
	}
	v.said.Notify()
	return nil
}

func (v speaker) Working(on bool) {
	for n := v.working.Load(); (n%2 != 0) != on; n = v.working.Load() {
		if v.working.CompareAndSwap(n, n+1) {
			v.works.Notify()
			return
		}
	}
}
