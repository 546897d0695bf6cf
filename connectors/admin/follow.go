package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// maxLine is the longest line of the stream: a row with its details, escaped.
const maxLine = 16 << 20

// Inbox hands over what is pending for this account and then every change of it, each once, until ctx ends or handle
// returns an error, which it returns. While it runs, the person counts as reachable. The first connection must succeed;
// one lost later is tried again for ever, and what was settled meanwhile is handed over then.
func (c *Client) Inbox(ctx context.Context, handle func(permissions.Standing) error) error {
	f := &following{client: c, handle: handle, known: map[permissions.ID]known{}}
	tries := wire.NewTries()
	for {
		err := f.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case f.failed != nil:
			return f.failed
		case !f.met || !wire.Gone(err):
			return err
		}
		if !f.away && c.Lost != nil {
			c.Lost(err)
		}
		if !f.away {
			tries.Reset()
		}
		f.away = true
		if err := wire.Pause(ctx, tries.NextBackOff()); err != nil {
			return err
		}
	}
}

// following is an inbox across its connections.
type following struct {
	client *Client
	handle func(permissions.Standing) error
	known  map[permissions.ID]known // what was handed over as pending
	met    bool                     // a connection was complete once
	away   bool                     // the connection was lost and is not back
	failed error                    // of handle
}

type known struct {
	revision int64
	current  bool // the daemon told it since the connection came up
}

// follow reads one connection to its end.
func (f *following) follow(ctx context.Context) error {
	body, err := f.client.wire.Stream(ctx, "/v1/inbox", f.client.header(viaTerminal))
	if err != nil {
		return err
	}
	defer body.Close()
	for id, k := range f.known {
		k.current = false
		f.known[id] = k
	}
	events := &eventReader{lines: bufio.NewScanner(body)}
	events.lines.Buffer(nil, maxLine)
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
		}
		if err != nil {
			return err
		}
	}
}

// told hands over a row, unless it is one that the inbox has already.
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

func (f *following) give(s permissions.Standing) error {
	f.failed = f.handle(s)
	return f.failed
}

// synced hands over what is not pending any more, and says that the connection is back.
func (f *following) synced(ctx context.Context) error {
	for id, k := range f.known {
		if k.current {
			continue
		}
		s, err := f.client.Show(ctx, string(id))
		var refusal *permissions.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return err
		}
		delete(f.known, id)
		if refusal != nil { // it is nothing of this person's any more
			continue
		}
		if err := f.give(s); err != nil {
			return err
		}
	}
	if f.away && f.client.Back != nil {
		f.client.Back()
	}
	f.met, f.away = true, false
	return nil
}

// event is one server-sent event.
type event struct{ id, kind, data string }

// eventReader reads the little of server-sent events that our stream uses: one line a field, comments skipped.
type eventReader struct{ lines *bufio.Scanner }

func (r *eventReader) next() (e event, err error) {
	for r.lines.Scan() {
		name, text, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = text
		case "event":
			e.kind = text
		case "data":
			e.data = text
		case "":
			if e.kind != "" { // the empty line ends an event; after a comment there is none
				return e, nil
			}
		}
	}
	if err := r.lines.Err(); err != nil {
		return event{}, err
	}
	return event{}, io.EOF
}
