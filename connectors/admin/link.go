package admin

import (
	"context"

	"github.com/daycared/daycared/internal/wire"
)

// link is a stream across its connections: one that is lost is made again.
type link struct {
	client *Client
	met    bool  // a connection was complete once
	away   bool  // the connection was lost and is not back
	failed error // of whoever is handed what comes
}

// keep reads one connection after the other until ctx ends, until whoever is handed what comes returns an error, or
// until the daemon refuses. The first connection must succeed; one lost later is tried again for ever.
func (l *link) keep(ctx context.Context, read func(context.Context) error) error {
	tries := wire.NewTries()
	for {
		err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.failed != nil:
			return l.failed
		case !l.met || !wire.Gone(err):
			return err
		}
		if !l.away && l.client.Lost != nil {
			l.client.Lost(err)
		}
		if !l.away {
			tries.Reset()
		}
		l.away = true
		if err := wire.Pause(ctx, tries.NextBackOff()); err != nil {
			return err
		}
	}
}

// isUp says that the connection is complete.
func (l *link) isUp() {
	if l.away && l.client.Back != nil {
		l.client.Back()
	}
	l.met, l.away = true, false
}
