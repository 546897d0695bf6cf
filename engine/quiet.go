package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// QuietAgent makes an agent's cards silent for the caller, but for high risk, until a time that it returns; what they missed is told then
// in one notice. A span of zero ends that now.
func (k *locks) QuietAgent(ctx context.Context, id connectors.Identity, name string, span time.Duration) (until time.Time, err error) {
	caller, who, err := k.agentOf(ctx, id, name)
	if err != nil {
		return until, err
	}
	now := k.clock.Stamp()
	since, before := k.QuietSince(who, permissions.Caller{Name: caller})
	if span != 0 && span < time.Minute || span > permissions.MaxQuiet || span == 0 && before.IsZero() {
		return until, permissions.NoQuiet()
	}
	n := permissions.Notice{To: who, About: permissions.AboutQuiet, By: caller, CreatedAt: now}
	if !since.IsZero() {
		n.CreatedAt = since
	}
	until = now.Add(span)
	n.CallerMessage.Text = until.Format(time.RFC3339Nano)
	noting, done := shared.Noting(ctx)
	defer done()
	if err := k.store.SetQuiet(noting, n); err != nil {
		return until, shared.Broken(err)
	}
	k.NoteQuiet(n)
	k.registry.NotifyNotices()
	return until, nil
}
