package engine

import (
	"context"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Suspended lists what opens nothing since the store was restored, for the operator.
func (e *Engine) Suspended(ctx context.Context, id connectors.Identity) (permissions.Suspended, error) {
	if !id.Operator {
		return permissions.Suspended{}, permissions.OperatorOnly()
	}
	all, err := e.store.Suspended(ctx)
	return all, broken(err)
}

// Reinstate has what is suspended open again what it opened, and returns it: what the names mean, or everything without
// names. It is for the operator.
func (e *Engine) Reinstate(ctx context.Context, id connectors.Identity, names []string) (permissions.Suspended, error) {
	if !id.Operator {
		return permissions.Suspended{}, permissions.OperatorOnly()
	}
	who, err := e.Who(id)
	if err != nil {
		return permissions.Suspended{}, err
	}
	e.pairing.Lock()
	defer e.pairing.Unlock()
	back, err := e.store.Reinstate(ctx, names, who, id.Via, e.stamp())
	if err != nil {
		return permissions.Suspended{}, broken(err)
	}
	if len(back.Pairings) > 0 {
		if err := e.readPairings(context.WithoutCancel(ctx)); err != nil {
			return back, broken(err)
		}
		e.realignSoon()
	}
	return back, nil
}
