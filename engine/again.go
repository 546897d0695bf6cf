package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// extension is what a request whose caller waits has left, at least, after a time in which nobody could answer it.
const extension = 5 * time.Minute

// ShowAgain has every pending request that was shown through a connector shown anew there, since what people did on the
// old cards may not have arrived; it returns the prompts as they were, each with its Ref. A request that has less than
// five minutes left and whose caller still waits gets five, within its maximum.
func (e *Engine) ShowAgain(ctx context.Context, connector string) ([]connectors.Prompt, error) {
	return e.live(ctx, connector, func(r permissions.Request) error { return e.extend(ctx, r) }, true)
}

// Refresh has every pending request that was shown through a connector brought up to date there, as after a stop during
// which its cards said that the daemon does not run.
func (e *Engine) Refresh(ctx context.Context, connector string) ([]connectors.Prompt, error) {
	return e.live(ctx, connector, func(permissions.Request) error { return nil }, false)
}

// Live is what people see through a connector of the newest pending requests, so many of them at most.
func (e *Engine) Live(ctx context.Context, connector string, limit int) ([]connectors.Prompt, error) {
	copies, err := e.store.Live(ctx, connector, limit)
	if err != nil {
		return nil, broken(err)
	}
	return e.faces(ctx, copies, func(permissions.Request) error { return nil })
}

func (e *Engine) live(
	ctx context.Context, connector string, also func(permissions.Request) error, anew bool,
) ([]connectors.Prompt, error) {
	copies, err := e.store.ShowAgain(ctx, connector, anew)
	if err != nil {
		return nil, broken(err)
	}
	prompts, err := e.faces(ctx, copies, also)
	for _, cp := range copies {
		e.kick(cp.Request)
	}
	return prompts, err
}

// faces are the messages that copies stand in; also is done for the request of each.
func (e *Engine) faces(
	ctx context.Context, copies []permissions.Copy, also func(permissions.Request) error,
) ([]connectors.Prompt, error) {
	prompts := make([]connectors.Prompt, 0, len(copies))
	seen := map[string]bool{} // messages
	for _, cp := range copies {
		if cp.Place != "" && seen[cp.Ref] { // several people's
			continue
		}
		seen[cp.Ref] = true
		r, err := e.store.Read(ctx, cp.Request)
		if err != nil {
			return nil, broken(err)
		}
		if err := also(r); err != nil {
			return nil, broken(err)
		}
		person, _ := e.settings.Load().person(cp.Person)
		prompts = append(prompts, e.prompt(r, cp, person, nil))
	}
	return prompts, nil
}

// extend gives a request some time, where its caller waits.
func (e *Engine) extend(ctx context.Context, r permissions.Request) error {
	now := e.stamp()
	until := now.Add(extension)
	if e.waits(r) == 0 || !r.Deadline.Before(until) {
		return nil
	}
	s := e.settings.Load()
	most := s.Approvals.MaxTimeout
	if route, found := s.route(r); found && route.Timeout > 0 {
		most = route.Timeout
	}
	if latest := r.CreatedAt.Add(most); until.After(latest) {
		until = latest
	}
	_, err := e.registry.Resolve(ctx, r.ID, permissions.Extend{Until: until, At: now})
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) {
		return nil
	}
	return err
}
