package dispatch

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// quietKey is a person and the root name of an agent whose cards are silent for them.
type quietKey struct{ person, agent string }

// maxDigest is how many settled requests a digest counts.
const maxDigest = 1000

// ReadQuiet reads which agents' cards are silent for whom: their digests are notices that are still to be sent.
func (d *Dispatch) ReadQuiet(ctx context.Context) error {
	for after := permissions.ID(""); ; {
		page, err := d.store.Notices(ctx, after, shared.Page)
		for _, n := range page {
			if after = n.ID; n.About == permissions.AboutQuiet {
				d.NoteQuiet(n)
			}
		}
		if err != nil || len(page) < shared.Page {
			return err
		}
	}
}

// NoteQuiet makes an agent's cards silent for a person as the notice of its digest says.
func (d *Dispatch) NoteQuiet(n permissions.Notice) { d.quieted.Store(quietKey{n.To, n.By}, n) }

// QuietSince is since when and until when an agent's cards are silent for a person; zero times: they are not.
func (d *Dispatch) QuietSince(person string, agent permissions.Caller) (since, until time.Time) {
	kept, _ := d.quieted.Load(quietKey{person, agent.Root()})
	n, _ := kept.(permissions.Notice)
	until, err := time.Parse(time.RFC3339Nano, n.CallerMessage.Text)
	if now := d.clock.Now(); err == nil && !now.Before(until) { // it stays over, even if the clock is set back
		d.quieted.Delete(quietKey{person, agent.Root()})
		return time.Time{}, time.Time{}
	} else if err != nil || now.Before(n.CreatedAt.Add(-permissions.MaxQuiet)) {
		return time.Time{}, time.Time{}
	}
	return n.CreatedAt, until
}

// isSilenced reports whether a request's cards are silent for a person because its agent is.
func (d *Dispatch) isSilenced(person string, r permissions.Request) bool {
	_, until := d.QuietSince(person, r.Caller)
	return !until.IsZero() && !r.Urgent()
}

// digest adds what an agent asked a person while its cards were silent, or returns how long they still are.
func (d *Dispatch) digest(ctx context.Context, n permissions.Notice, notice *connectors.Notice) (later time.Duration, err error) {
	if _, until := d.QuietSince(n.To, permissions.Caller{Name: n.By}); !until.IsZero() {
		until, err = time.Parse(time.RFC3339Nano, n.CallerMessage.Text) // its own: it may just take the place of another
		if later = min(until.Sub(d.clock.Now()), shared.Idle); err == nil && later > 0 {
			return later, nil
		}
	}
	notice.At = n.CreatedAt
	settled, err := d.history(ctx, permissions.HistoryQuery{Since: n.CreatedAt, Asked: n.To, Limit: maxDigest})
	if err != nil {
		return 0, err
	}
	for _, r := range settled {
		if r.Caller.Root() == n.By && r.DecidedVia != permissions.ViaGrant {
			notice.Ran = append(notice.Ran, r)
		}
	}
	waiting, err := d.waitingFor(ctx, notice.To)
	for _, p := range waiting {
		if p.Request.Caller.Root() == n.By {
			notice.Waiting = append(notice.Waiting, p)
		}
	}
	return 0, err
}
