package engine

import (
	"context"
	"errors"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Begin is [Engine.Ask] that does not wait: the request as it stands. The call keeps its place for a moment, for an Ask
// with the same Call and the request's id.
func (e *Engine) Begin(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Standing, error) {
	now, done := context.WithTimeout(ctx, 0)
	defer done()
	r, err := e.Ask(now, caller, q)
	if err != nil && (r.State != permissions.Pending || !errors.Is(err, context.DeadlineExceeded)) {
		return permissions.Standing{Request: r}, err
	}
	return e.Stand(ctx, r)
}

// Reply answers a request of this caller's by what the dialog of the caller's own editor brought: shown is the digest of
// what it showed. It comes through the asker's side and proves nobody, so it counts where the settings allow it, and only
// for what permits nothing; [permissions.Step] holds that as well. One that is settled stays as it is, and the error says
// how it ended.
func (e *Engine) Reply(
	ctx context.Context, caller permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.Standing, error) {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return permissions.Standing{}, err
	}
	d := connectors.Decision{
		From: connectors.Identity{Via: permissions.ViaEditor, UID: caller.UID}, Request: id, Answer: a, Shown: shown,
	}
	if err := e.settings.Load().editable(r); err != nil {
		return permissions.Standing{}, e.refused(ctx, r, d, caller.Name, err)
	}
	if shown != r.Digest {
		return permissions.Standing{}, e.refused(ctx, r, d, caller.Name, permissions.OtherShown())
	}
	c, err := e.registry.Resolve(ctx, id, permissions.Reply{Answer: a, At: e.stamp()})
	if err != nil {
		return permissions.Standing{}, e.refused(ctx, r, d, caller.Name, broken(permissions.Refused(err)))
	}
	return e.Stand(ctx, c.After)
}

// editable is why r may not be answered in the editor of whoever asks; nil if it may.
func (s *Settings) editable(r permissions.Request) error {
	switch {
	case !r.TakesReplies():
		return permissions.AskersSide()
	case !s.Editor || r.Caller.Ours():
		return permissions.EditorOff()
	case r.Caller.Name == permissions.Anonymous: // another of them could answer for this one
		return permissions.TokenNeeded()
	}
	return nil
}
