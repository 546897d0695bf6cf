package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	heartbeat   = 15 * time.Second
	eventWithin = 10 * time.Second // to write one
	feedBuffer  = 256
	page        = 100
	// maxSeen is how many requests a stream remembers before it forgets those that are settled.
	maxSeen = 4096
)

// The events of the stream.
const (
	eventRequest = "request" // a row, new or changed; the event's id is the request's, a colon and the revision
	eventSynced  = "synced"  // all that was pending has been sent
)

// inboxes are the open streams of each person, and when somebody's last one closed. The zero value is ready.
type inboxes struct {
	mu     sync.Mutex
	open   map[string][]chan permissions.ID // what was sent to a person goes to all of theirs
	closed map[string]time.Time
}

// present tells whether the person has an inbox open.
func (i *inboxes) present(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.open[name]) > 0
}

// left is when the person's last inbox closed, or the zero time.
func (i *inboxes) left(name string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed[name]
}

// send tells every open inbox of the person to show a request, and whether there was one. A stream that does not keep
// up is not waited for: it has lagged, and starts from the rows again.
func (i *inboxes) send(name string, id permissions.ID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, to := range i.open[name] {
		select {
		case to <- id:
		default:
		}
	}
	return len(i.open[name]) > 0
}

// enter opens one more, until leave is called.
func (i *inboxes) enter(name string) (sent <-chan permissions.ID, leave func()) {
	to := make(chan permissions.ID, feedBuffer)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open == nil {
		i.open, i.closed = map[string][]chan permissions.ID{}, map[string]time.Time{}
	}
	i.open[name] = append(i.open[name], to)
	return to, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.open[name] = slices.DeleteFunc(i.open[name], func(c chan permissions.ID) bool { return c == to })
		if len(i.open[name]) == 0 {
			delete(i.open, name)
			i.closed[name] = time.Now()
		}
	}
}

func (r *routes) inbox(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	id := who(ctx)
	name, err := r.desk.Who(id)
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		sent, leave := r.inboxes.enter(name)
		defer leave()
		s := newStream(r.desk, id, name, w)
		s.sent = sent
		_ = s.run(c.Context()) // it ends with the connection, and then there is nobody to tell
	}}, nil
}

// stream is one open inbox.
type stream struct {
	desk    Desk
	id      connectors.Identity
	name    string
	w       io.Writer
	control *http.ResponseController
	sent    <-chan permissions.ID // to be shown now
	seen    map[permissions.ID]seen
}

func newStream(desk Desk, id connectors.Identity, name string, w http.ResponseWriter) *stream {
	return &stream{
		desk: desk, id: id, name: name, w: w, control: http.NewResponseController(w), seen: map[permissions.ID]seen{},
	}
}

// seen is what the other end knows of a request.
type seen struct {
	revision int64
	settled  bool
}

// errLagged ends a stream whose reader fell behind: it comes back and starts from the rows.
var errLagged = errors.New("the reader fell behind")

// run follows the changes first and then lists what is pending, so that nothing falls between the two.
func (s *stream) run(ctx context.Context) error {
	feed := s.desk.Subscribe(feedBuffer)
	defer feed.Close()
	if err := s.snapshot(ctx); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
			err = s.write([]byte(": still here\n\n"))
		case q, open := <-feed.C:
			if !open {
				return errLagged
			}
			err = s.changed(ctx, q)
		case id := <-s.sent:
			err = s.show(ctx, id)
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) snapshot(ctx context.Context) error {
	for after := permissions.ID(""); ; {
		pending, err := s.desk.Pending(ctx, s.id, after, page)
		if err != nil {
			return err
		}
		for _, p := range pending {
			after = p.Request.ID
			if slices.ContainsFunc(p.Copies, s.toCome) {
				continue
			}
			if err := s.send(p); err != nil {
				return err
			}
		}
		if len(pending) < page {
			return s.write([]byte("event: " + eventSynced + "\ndata: {}\n\n"))
		}
	}
}

// show passes on a request that is sent to this person now.
func (s *stream) show(ctx context.Context, id permissions.ID) error {
	standing, err := s.desk.Show(ctx, s.id, string(id))
	if err != nil {
		return err
	}
	return s.send(standing)
}

// changed passes on a change that concerns this person: of what they are asked, and the one that takes a request away
// from them. A pending request that was not sent to them yet is about to be.
func (s *stream) changed(ctx context.Context, q permissions.Request) error {
	before, known := s.seen[q.ID]
	asked := s.id.Operator || slices.Contains(q.Asked, s.name)
	if (!asked && !known) || (known && q.Revision <= before.revision) {
		return nil
	}
	standing, err := s.desk.Stand(ctx, q)
	if err != nil {
		return err
	}
	if !known && q.State == permissions.Pending && slices.ContainsFunc(standing.Copies, s.toCome) {
		return nil
	}
	if err := s.send(standing); err != nil {
		return err
	}
	if !asked {
		delete(s.seen, q.ID)
	}
	return nil
}

// toCome tells whether a copy is this person's, here, and still to be sent.
func (s *stream) toCome(c permissions.Copy) bool {
	return c.Connector == Name && c.Person == s.name && c.Ref == "" && c.Failed == ""
}

func (s *stream) send(p permissions.Standing) error {
	q := p.Request
	if old, known := s.seen[q.ID]; known && q.Revision <= old.revision {
		return nil
	}
	s.remember(q)
	row, err := wire.Encode(wire.From(p, true))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s:%d\nevent: %s\ndata: %s\n\n", q.ID, q.Revision, eventRequest, row)
	return s.write(b.Bytes())
}

// remember keeps what was sent, so that an older change that comes later is not taken for news. What was settled long
// ago does not change any more and is forgotten when there is much of it.
func (s *stream) remember(q permissions.Request) {
	if len(s.seen) >= maxSeen {
		for id, old := range s.seen {
			if old.settled {
				delete(s.seen, id)
			}
		}
	}
	s.seen[q.ID] = seen{revision: q.Revision, settled: q.State != permissions.Pending}
}

func (s *stream) write(b []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(eventWithin)) // a writer without deadlines is still a writer
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}
