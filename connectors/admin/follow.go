package admin

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Inbox calls handle with everything pending for this account and then with every change, once each, until ctx ends or
// handle returns an error, which it returns. While it runs, the person counts as reachable. The first connection must
// succeed; later ones are retried forever, and what was settled meanwhile is handed over then.
func (c *Client) Inbox(ctx context.Context, handle func(permissions.RequestView) error) error {
	f := &following{link: link{client: c}, handle: handle, known: map[permissions.ID]known{}}
	return f.keep(ctx, f.follow)
}

// following is an inbox across reconnections.
type following struct {
	link
	handle func(permissions.RequestView) error
	known  map[permissions.ID]known // what was handed over as pending
	opened bool
}

type known struct {
	revision int64
	current  bool // sent by the daemon in this connection
	over     bool // handed over as settled, before the stream says so
}

// follow reads one connection to its end.
func (f *following) follow(ctx context.Context) error {
	body, err := f.client.wire.Stream(ctx, "/v1/inbox", f.client.header(viaTerminal))
	if err != nil {
		return err
	}
	defer body.Close()
	if !f.opened {
		f.client.Opened()
	}
	f.opened = true
	events := newEventReader(body)
	for id, k := range f.known {
		if k.over {
			delete(f.known, id)
			continue
		}
		k.current = false
		f.known[id] = k
	}
	for {
		e, err := events.next()
		if err != nil {
			return errors.Join(wire.ErrLost, err)
		}
		switch e.kind {
		case eventRequest:
			err = f.told(e)
		case eventSynced:
			err = f.synced(ctx)
		case eventNotice:
			err = take(e, func(n notice) { f.client.Noticed(n.Lines) })
		case eventSaid:
			err = take(e, f.client.Said)
		}
		if err != nil {
			return err
		}
	}
}

// told hands over a row, unless the inbox has it already.
func (f *following) told(e event) error {
	var w wire.Request
	if err := json.Unmarshal([]byte(e.data), &w); err != nil {
		return err
	}
	s, err := w.Standing()
	if err != nil {
		return err
	}
	_, digits, _ := strings.Cut(e.id, ":")
	s.Request.Revision, _ = strconv.ParseInt(digits, 10, 64) // 0 is older than any
	old, again := f.known[w.ID]
	if old.over {
		if s.Request.State != permissions.Pending {
			delete(f.known, w.ID)
		}
		return nil
	}
	if s.Request.State == permissions.Pending {
		f.known[w.ID] = known{revision: s.Request.Revision, current: true}
	} else {
		delete(f.known, w.ID)
	}
	if again && s.Request.Revision <= old.revision {
		return nil
	}
	return f.give(s)
}

func (f *following) give(s permissions.RequestView) error {
	f.failed = f.handle(s)
	return f.failed
}

// synced hands over what is no longer pending, or is about to be sent again, and reports that the connection is back. The
// rows that it reads may be newer than what the stream sends next.
func (f *following) synced(ctx context.Context) error {
	for id, k := range f.known {
		if k.current {
			continue
		}
		s, err := f.client.Show(ctx, string(id))
		refused := permissions.AsRefusal(err) != nil
		if err != nil && !refused {
			return err
		}
		if refused { // it no longer concerns this person
			delete(f.known, id)
			continue
		}
		f.known[id] = known{current: true, over: s.Request.State != permissions.Pending}
		if err := f.give(s); err != nil {
			return err
		}
	}
	f.isUp()
	return nil
}

// take hands over a message that is not a row.
func take[T any](e event, to func(T)) error {
	var message T
	err := json.Unmarshal([]byte(e.data), &message)
	if err == nil {
		to(message)
	}
	return err
}

// link is a stream that reconnects.
type link struct {
	client *Client
	met    bool  // a connection was complete once
	away   bool  // the connection was lost and is not back
	failed error // error of the callback
}

// keep reads one connection after the other until ctx ends, the callback returns an error, or the daemon refuses. The first
// connection must succeed; later ones are retried forever.
func (l *link) keep(ctx context.Context, read func(context.Context) error) error {
	tries := wire.NewTries()
	for {
		err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.failed != nil:
			return l.failed
		case !l.met || !wire.IsConnectionError(err):
			return err
		}
		if !l.away {
			l.client.Lost(err)
			tries.Reset()
		}
		l.away = true
		if err := timing.Pause(ctx, tries.NextBackOff()); err != nil {
			return err
		}
	}
}

func (l *link) isUp() {
	if l.away {
		l.client.Back()
	}
	l.met, l.away = true, false
}
