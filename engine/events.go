package engine

import (
	"context"
	"errors"
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
	list = slices.DeleteFunc(list, func(h permissions.Happening) bool { return !id.Operator && !h.VisibleTo(who) })
	for i, h := range list {
		if list[i].About, err = e.about(ctx, h); err != nil {
			return nil, after, broken(err)
		}
	}
	return list, seen, nil
}

// about is the request in whose words h is told, if it is; without an ID where that is not kept any more.
func (e *Engine) about(ctx context.Context, h permissions.Happening) (permissions.Request, error) {
	if !h.Type.Wordy() || h.Request == "" {
		return permissions.Request{}, nil
	}
	r, err := e.store.Read(ctx, h.Request)
	var refusal *permissions.Refusal
	if errors.As(err, &refusal) && refusal.Code == permissions.CodeUnknown {
		return permissions.Request{}, nil
	}
	return r, err
}

// Changed is closed when there may be new ones.
func (e *Engine) Changed() <-chan struct{} { return e.store.Changed() }
