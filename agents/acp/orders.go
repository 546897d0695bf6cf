package acp

import (
	"context"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// Obey is [agents.Resident]. It returns once the turn has ended, and the session as well where that was ordered.
func (a *Agent) Obey(ctx context.Context, o permissions.Order) error {
	a.mu.Lock()
	a.orders++
	t, ended := a.turn, a.ended
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.orders--
		a.mu.Unlock()
		a.ring()
	}()
	if t != nil {
		t.end()
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if o == permissions.OrderStop {
		return nil
	}
	if err := a.close(ctx); err != nil {
		return err
	}
	if o == permissions.OrderQuit {
		a.leave()
		return nil
	}
	_, err := a.row.current(ctx)
	return err
}

// close ends the session, with what it was granted.
func (a *Agent) close(ctx context.Context) error {
	s, open, err := a.row.open(ctx)
	if err != nil || !open {
		return err
	}
	if err := a.desk.EndSession(ctx, a.caller(), string(s.ID)); err != nil {
		return err
	}
	return a.row.change(ctx, func(s *permissions.AgentSession, _ *agents.Commit) {
		s.Status, s.EndedAt, s.Request, s.Tool = permissions.Idle, a.stamp(), "", ""
	})
}
