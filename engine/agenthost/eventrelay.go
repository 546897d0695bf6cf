package agenthost

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// eventRelay passes the events of requests by the daemon's own agents to the event handler. Its position is stored:
// events from downtime are delivered later, and an event that was delivered right before a crash is delivered again.
type eventRelay struct {
	*Hosts

	handler agents.EventHandler
	placed  bool  // seq was read
	seq     int64 // the last event that was delivered or needed no delivery
	kept    int64 // as stored
}

// eventRelayName is the name of the cursor.
const eventRelayName = "witness"

// run delivers events until ctx ends. A failed event is retried with growing delays, before any later event.
func (p *eventRelay) run(ctx context.Context) error {
	for delay := time.Duration(0); ctx.Err() == nil; {
		changed := p.store.Changed() // before reading, so that no change is missed
		err := p.catchUp(ctx)
		if err == nil {
			delay = 0
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		delay = min(max(2*delay, shared.RetryFirst), shared.RetryMost)
		if ctx.Err() == nil {
			p.log.Warn("deliver agent events, retrying", "delay", delay, "err", err)
		}
		_ = timing.Pause(ctx, delay) // the loop checks ctx
	}
	return nil
}

// catchUp delivers everything up to the newest event.
func (p *eventRelay) catchUp(ctx context.Context) (err error) {
	if !p.placed {
		if p.seq, err = p.store.Cursor(ctx, eventRelayName); err != nil {
			return err
		}
		p.kept, p.placed = p.seq, true
	}
	for {
		list, _, err := p.store.Events(ctx, p.seq, shared.Page)
		if err != nil {
			return err
		}
		told := false
		for _, h := range list {
			tells, err := p.tell(ctx, h)
			if err != nil {
				return err
			}
			told, p.seq = told || tells, h.Seq
		}
		if told || p.seq-p.kept >= shared.Page { // events without delivery may be read again
			if err := p.store.SetCursor(ctx, eventRelayName, p.seq); err != nil {
				return err
			}
			p.kept = p.seq
		}
		if len(list) < shared.Page {
			return nil
		}
	}
}

// tell delivers one event if it concerns a request of the daemon's own agents, or stops everything.
func (p *eventRelay) tell(ctx context.Context, h permissions.Event) (tells bool, err error) {
	switch {
	case h.Type == permissions.AllStopped:
		return true, p.handler.HandleEvent(ctx, h, permissions.Request{})
	case h.Request == "":
		return false, nil
	}
	r, err := p.store.Read(ctx, h.Request)
	switch {
	case permissions.CodeOf(err) == permissions.CodeUnknown, errors.Is(err, permissions.ErrRow): // no longer stored, or unreadable
		return false, nil
	case err != nil:
		return false, err
	case !r.Caller.IsOurs() && r.Foreground == "":
		return false, nil
	}
	return true, p.handler.HandleEvent(ctx, h, r)
}
