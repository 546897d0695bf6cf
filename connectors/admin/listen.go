package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/daycared/daycared/internal/wire"
)

// Events hands over every event after seq that this account may see, in the order of commits and each once, until ctx
// ends or handle returns an error, which it returns. After 0 is from the beginning, [FromNow] from now on. The first
// connection must succeed; one lost later is tried again for ever and goes on where it was. A place that the daemon
// keeps no more is a *permissions.Refusal with CodeGone.
func (c *Client) Events(ctx context.Context, after int64, handle func(wire.Event) error) error {
	l := &listening{link: link{client: c}, handle: handle, place: after}
	return l.keep(ctx, l.listen)
}

// listening is the events across their connections.
type listening struct {
	link
	handle func(wire.Event) error
	place  int64 // the last seq that the daemon told
}

// listen reads one connection to its end.
func (l *listening) listen(ctx context.Context) error {
	header := l.client.header("")
	if l.place != FromNow {
		header.Set("Last-Event-ID", strconv.FormatInt(l.place, 10))
	}
	body, err := l.client.wire.Stream(ctx, "/v1/events", header)
	if err != nil {
		return err
	}
	defer body.Close()
	events := newEventReader(body)
	for {
		e, err := events.next()
		if err != nil {
			return errors.Join(wire.ErrLost, err)
		}
		if !l.met || l.away {
			l.isUp() // the first that comes is the place
		}
		if err := l.heard(e); err != nil {
			return err
		}
	}
}

// heard hands over an event, and notes how far the stream has come.
func (l *listening) heard(e event) error {
	seq, err := strconv.ParseInt(e.id, 10, 64)
	if err != nil {
		return fmt.Errorf("read the place of an event: %w", err)
	}
	if e.kind != "" && seq > l.place {
		var told wire.Event
		if err := json.Unmarshal([]byte(e.data), &told); err != nil {
			return fmt.Errorf("read event %d: %w", seq, err)
		}
		if l.failed = l.handle(told); l.failed != nil {
			return l.failed
		}
	}
	l.place = max(l.place, seq)
	return nil
}
