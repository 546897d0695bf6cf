package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// eventRelay tells the witness what becomes of what agents of ours asked. How far it came is a row: whatever happens while
// nobody runs is told later, and what was told in the moment of a kill is told again.
type eventRelay struct {
	engine  *Engine
	witness agents.EventHandler
	placed  bool  // seq was read
	seq     int64 // the last entry that was told, or was nothing to tell
	kept    int64 // as the store has it
}

// eventRelayName is the name of the cursor.
const eventRelayName = "witness"

// run tells until ctx ends. What fails is tried again, ever later, and before anything after it.
func (p *eventRelay) run(ctx context.Context) error {
	for delay := time.Duration(0); ctx.Err() == nil; {
		changed := p.engine.store.Changed() // taken before looking, so that nothing falls between
		err := p.catchUp(ctx)
		if err == nil {
			delay = 0
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		delay = min(max(2*delay, retryFirst), retryMost)
		if ctx.Err() == nil {
			p.engine.log.Warn("agents are not told just now what became of what they asked", "delay", delay, "err", err)
		}
		_ = permissions.Pause(ctx, delay) // the loop looks at ctx
	}
	return nil
}

// catchUp tells everything up to the newest entry.
func (p *eventRelay) catchUp(ctx context.Context) (err error) {
	if !p.placed {
		if p.seq, err = p.engine.store.Cursor(ctx, eventRelayName); err != nil {
			return err
		}
		p.kept, p.placed = p.seq, true
	}
	for {
		list, _, err := p.engine.store.Events(ctx, p.seq, page)
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
		if told || p.seq-p.kept >= page { // what was nothing to tell may well be looked at again
			if err := p.engine.store.SetCursor(ctx, eventRelayName, p.seq); err != nil {
				return err
			}
			p.kept = p.seq
		}
		if len(list) < page {
			return nil
		}
	}
}

// tell has the witness see one happening, if it is about what an agent of ours asked or is told of, or stops them all.
func (p *eventRelay) tell(ctx context.Context, h permissions.Event) (tells bool, err error) {
	switch {
	case h.Type == permissions.AllStopped:
		return true, p.witness.HandleEvent(ctx, h, permissions.Request{})
	case h.Request == "":
		return false, nil
	}
	r, err := p.engine.store.Read(ctx, h.Request)
	switch {
	case permissions.CodeOf(err) == permissions.CodeUnknown, errors.Is(err, permissions.ErrRow): // it is not kept any more, or not used
		return false, nil
	case err != nil:
		return false, err
	case !r.Caller.Ours() && r.Foreground == "":
		return false, nil
	}
	return true, p.witness.HandleEvent(ctx, h, r)
}
