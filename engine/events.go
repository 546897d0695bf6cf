package engine

import (
	"context"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Happenings lists at most limit events after seq that this identity may see, and how far it looked: where to go on.
func (e *Engine) Happenings(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) (list []permissions.Happening, seen int64, err error) {
	who, err := e.Who(id)
	if err != nil {
		return nil, after, err
	}
	list, first, err := e.store.Happenings(ctx, after, limit)
	if err != nil {
		return nil, after, broken(err)
	}
	if after > 0 && after < first-1 {
		return nil, after, permissions.Pruned(first)
	}
	seen = after
	if len(list) > 0 {
		seen = list[len(list)-1].Seq
	}
	return slices.DeleteFunc(list, func(h permissions.Happening) bool { return !id.Operator && !h.VisibleTo(who) }), seen, nil
}

// Changed is closed when there may be new ones.
func (e *Engine) Changed() <-chan struct{} { return e.store.Changed() }
