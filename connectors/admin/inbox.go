package admin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	feedBuffer = 256
	// maxSeen is how many requests a stream remembers before it forgets settled ones.
	maxSeen = 4096
)

// The event types of the stream.
const (
	eventRequest = "request" // a row, new or changed; the event's id is the request's id, a colon and the revision
	eventSynced  = "synced"  // everything pending has been sent
	eventNotice  = "notice"  // lines that need no answer
	eventSaid    = "said"    // a message of the person's agent
)

type notice struct {
	Lines []string `json:"lines"`
}

// delivery is what is sent to an open inbox: a request, a notice or an agent message.
type delivery struct {
	request permissions.ID
	lines   []string
	said    *Said
	written chan<- bool // every stream that took it reports once whether it wrote it; may be nil
}

// report reports whether one stream wrote the parcel.
func (p delivery) report(written bool) {
	if p.written != nil {
		p.written <- written // buffered, see inboxes.offer
	}
}

// inboxes are the open streams of each person, and when a person's last one closed.
type inboxes struct {
	changed timing.Signal // who has one

	mu     sync.Mutex
	open   map[string][]chan delivery // everything sent to a person goes to all their streams
	closed map[string]time.Time
	await  map[string]chan struct{} // closed when the person's next inbox opens
}

func (i *inboxes) present(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.open[name]) > 0
}

// names are the people who have one, in order.
func (i *inboxes) names() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Sorted(maps.Keys(i.open))
}

// left is when the person's last inbox closed, or the zero time.
func (i *inboxes) left(name string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed[name]
}

// send puts a parcel into every open inbox of the person and reports whether there was one, and how many took it. It never
// blocks: a stream that fell behind restarts from the rows.
func (i *inboxes) send(name string, p delivery) (present bool, taken int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, to := range i.open[name] {
		select {
		case to <- p:
			taken++
		default:
		}
	}
	return len(i.open[name]) > 0, taken
}

// enter opens an inbox until leave is called.
func (i *inboxes) enter(name string) (sent <-chan delivery, leave func()) {
	to := make(chan delivery, feedBuffer)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open == nil {
		i.open, i.closed = map[string][]chan delivery{}, map[string]time.Time{}
	}
	if i.open[name] = append(i.open[name], to); len(i.open[name]) == 1 {
		i.changed.Notify()
	}
	if await := i.await[name]; await != nil {
		close(await)
		delete(i.await, name)
	}
	return to, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.open[name] = slices.DeleteFunc(i.open[name], func(c chan delivery) bool { return c == to })
		close(to) // no more parcels arrive
		for p := range to {
			p.report(false)
		}
		if len(i.open[name]) == 0 {
			delete(i.open, name)
			i.closed[name] = time.Now()
			i.changed.Notify()
		}
	}
}

func (r *routes) inbox(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	id := who(ctx)
	name, err := r.engine.Who(id)
	if err != nil {
		return nil, r.srv.Refuse(err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		sent, leave := r.inboxes.enter(name)
		defer leave()
		s := newStream(r.engine, id, name, streamTo(c))
		s.now = r.options.Now
		s.sent = sent
		_ = s.run(c.Context()) // it ends with the connection, so nobody needs the error
	}}, nil
}

type stream struct {
	sink
	engine Operations
	now    func() time.Time
	id     connectors.Identity
	name   string
	sent   <-chan delivery // to send now
	seen   map[permissions.ID]seen
}

func newStream(engine Operations, id connectors.Identity, name string, w http.ResponseWriter) *stream {
	return &stream{sink: newSink(w), engine: engine, now: time.Now, id: id, name: name, seen: map[permissions.ID]seen{}}
}

// seen is what the client knows of a request.
type seen struct {
	revision int64
	settled  bool
}

// errLagged ends a stream whose reader fell behind: it reconnects and restarts from the rows.
var errLagged = errors.New("the reader fell behind")

// run subscribes to the changes before it lists what is pending, so that nothing is missed.
func (s *stream) run(ctx context.Context) error {
	feed := s.engine.Subscribe(feedBuffer)
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
			err = s.beat()
		case q, open := <-feed.C:
			if !open {
				return errLagged
			}
			err = s.changed(ctx, *q)
		case p := <-s.sent:
			err = s.deliver(ctx, p)
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) snapshot(ctx context.Context) error {
	for after := permissions.ID(""); ; {
		pending, err := s.engine.Pending(ctx, s.id, after, listStep)
		if err != nil {
			return err
		}
		for _, p := range pending {
			after = p.Request.ID
			if slices.ContainsFunc(p.Copies, s.toCome) {
				continue
			}
			if err := s.sendView(ctx, p); err != nil {
				return err
			}
		}
		if len(pending) < listStep {
			return s.send(event{kind: eventSynced, data: "{}"})
		}
	}
}

func (s *stream) deliver(ctx context.Context, p delivery) error {
	switch {
	case p.said != nil:
		err := s.pass(eventSaid, p.said)
		p.report(err == nil)
		return err
	case p.request == "":
		return s.pass(eventNotice, notice{Lines: p.lines})
	}
	standing, err := s.engine.Show(ctx, s.id, string(p.request))
	if err != nil {
		return err
	}
	return s.sendView(ctx, standing)
}

// pass sends an event that is not a request.
func (s *stream) pass(kind string, data any) error {
	text, err := wire.Encode(data)
	if err != nil {
		return err
	}
	return s.send(event{kind: kind, data: string(text)})
}

// changed sends a change that concerns this person: of a request to them, or the change that takes it away from them. A
// pending request that was not sent to them yet follows as a parcel.
func (s *stream) changed(ctx context.Context, q permissions.Request) error {
	if name, err := s.engine.Who(s.id); name != s.name { // perhaps locked meanwhile
		return cmp.Or(err, errLagged)
	}
	before, known := s.seen[q.ID]
	asked := s.id.Operator || slices.Contains(q.Asked, s.name)
	if (!asked && !known) || (known && q.Revision <= before.revision) {
		return nil
	}
	standing, err := s.engine.View(ctx, q)
	if err != nil {
		return err
	}
	if !known && q.State == permissions.Pending && slices.ContainsFunc(standing.Copies, s.toCome) {
		return nil
	}
	if err := s.sendView(ctx, standing); err != nil {
		return err
	}
	if !asked {
		delete(s.seen, q.ID)
	}
	return nil
}

// toCome reports whether a copy is this person's, here, and not due yet: it will be sent.
func (s *stream) toCome(c permissions.Copy) bool {
	return c.Connector == Name && c.Person == s.name && c.Ref == "" && c.Failed == "" && c.DueAt.After(s.now())
}

func (s *stream) sendView(ctx context.Context, p permissions.RequestView) error {
	q := p.Request
	if old, known := s.seen[q.ID]; known && q.Revision <= old.revision {
		return nil
	}
	s.remember(q)
	row, err := wire.Encode(wire.From(s.engine.WithRecentActivity(ctx, s.id, p), true))
	if err != nil {
		return err
	}
	return s.send(event{id: fmt.Sprintf("%s:%d", q.ID, q.Revision), kind: eventRequest, data: string(row)})
}

// remember records what was sent, so that an older change that arrives later is ignored. Settled requests never change, so
// they are forgotten when there are too many.
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

const (
	heartbeat   = 15 * time.Second
	eventWithin = 10 * time.Second // limit to write one event; a reader that does not read is disconnected
	// maxLine is the longest line of a stream: a row with its details, escaped.
	maxLine = 16 << 20
)

// event is one server-sent event with one line of data. Without a kind it only carries the position.
type event struct{ id, kind, data string }

// sink writes server-sent events.
type sink struct {
	w       io.Writer
	control *http.ResponseController
}

func newSink(w http.ResponseWriter) sink { return sink{w: w, control: http.NewResponseController(w)} }

// streamTo begins c's response as a stream of events.
func streamTo(c huma.Context) http.ResponseWriter {
	_, w := humago.Unwrap(c)
	return streamed(w)
}

func streamed(w http.ResponseWriter) http.ResponseWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return w
}

func (s sink) send(e event) error {
	var b bytes.Buffer
	e.encode(&b)
	return s.write(b.Bytes())
}

func (e event) encode(b *bytes.Buffer) {
	for _, field := range [...]struct{ name, text string }{{"id", e.id}, {"event", e.kind}, {"data", e.data}} {
		if field.text != "" {
			b.WriteString(field.name + ": " + field.text + "\n")
		}
	}
	b.WriteByte('\n')
}

// beat keeps a quiet stream alive.
func (s sink) beat() error { return s.write([]byte(": still here\n\n")) }

func (s sink) write(b []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(eventWithin)) // writers without deadlines work, too
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}

// eventReader reads the subset of server-sent events that our streams use: one line per field, comments skipped.
type eventReader struct{ lines *bufio.Scanner }

func newEventReader(r io.Reader) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	return &eventReader{lines: lines}
}

// next returns the next event, or the end of the stream as an error.
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
			if e != (event{}) { // an empty line ends an event; after a comment there is none
				return e, nil
			}
		}
	}
	if err := r.lines.Err(); err != nil {
		return event{}, err
	}
	return event{}, io.EOF
}
