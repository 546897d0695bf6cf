package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// FromNow is the position after the newest event.
const FromNow int64 = -1

// eventPage is how many entries are read at a time.
const eventPage = 500

// A reader continues after the last event that it got, otherwise where it asks to begin.
type eventsInput struct {
	Last  int64 `header:"Last-Event-ID" minimum:"-1" default:"-1" doc:"the last seq seen; counts before after"`
	After int64 `query:"after" minimum:"-1" default:"-1" doc:"0: from the beginning; -1: from now on"`
}

func (r *routes) registerEvents() {
	events := get("events", "/v1/events", "Follow what happens (server-sent events)")
	events.Responses = map[string]*huma.Response{"200": {
		Description: "The data of each is an event", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: server.Events().Schema()}},
	}}
	r.srv.API.OpenAPI().Extensions = map[string]any{"x-views": server.Events().Views}
	huma.Register(r.srv.API, events, r.events)
}

// events answers with the stream, or with a refusal if that cannot begin.
func (r *routes) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	at := in.After
	if in.Last != FromNow {
		at = in.Last
	}
	id := who(ctx)
	look := func(ctx context.Context, after int64, limit int) ([]permissions.Event, int64, error) {
		return r.engine.Events(ctx, id, after, limit)
	}
	s := &eventStream{changed: r.engine.Changed, look: look}
	if err := s.begin(ctx, at); err != nil {
		return nil, r.srv.Refuse(err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		s.sink = newSink(streamTo(c))
		_ = s.run(c.Context()) // it ends with the connection, so nobody needs the error
	}}, nil
}

// Look returns at most limit events after seq, and how far it looked, as [Operations.Events] does for a person. After [FromNow] there
// are none, and it looked as far as there is anything.
type Look func(ctx context.Context, after int64, limit int) (list []permissions.Event, seen int64, err error)

// Events serves the same stream on another server, with what look returns for each call, until look refuses.
func Events(look func(r *http.Request) Look, changed func() <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &eventStream{changed: changed, look: look(r)}
		at, err := FromNow, error(nil)
		if text := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")); text != "" {
			if at, err = strconv.ParseInt(text, 10, 64); err != nil || at < FromNow {
				err = permissions.Invalid(errors.New("after is the last seq seen, 0 for the beginning, or -1 for now"))
			}
		}
		if err == nil {
			err = s.begin(r.Context(), at)
		}
		if err != nil {
			wire.ProblemOf(err).Write(w)
			return
		}
		s.sink = newSink(streamed(w))
		_ = s.run(r.Context()) // it ends with the connection or with the caller's access
	})
}

// eventStream is one reader of the events. Its only state is a position: every event is read from the audit in the order of
// commits, so a slow or returning reader misses nothing and gets nothing twice.
type eventStream struct {
	sink
	look    Look
	changed func() <-chan struct{}
	place   int64 // the last seq looked at
	told    int64 // the position that the reader knows
}

// begin finds where to start. It refuses a position that is no longer kept, and one in the future, which would skip events.
func (s *eventStream) begin(ctx context.Context, at int64) (err error) {
	s.place = at
	if at == FromNow {
		s.place, err = s.newest(ctx)
		return err
	}
	_, seen, err := s.look(ctx, at, 1)
	if err != nil || at == 0 || seen > at {
		return err
	}
	newest, err := s.newest(ctx)
	if err == nil && newest < at {
		err = permissions.Invalid(fmt.Errorf(
			"nothing as late as seq %d has happened yet: the newest is seq %d; go on from there, or from now on", at, newest))
	}
	return err
}

// newest is the position of the newest event.
func (s *eventStream) newest(ctx context.Context) (seq int64, err error) {
	_, seq, err = s.look(ctx, FromNow, 1)
	return seq, err
}

// run sends the events that exist, then new ones. It sends the position first, so that the reader can always resume.
func (s *eventStream) run(ctx context.Context) error {
	s.told = FromNow
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := s.changed() // taken before looking, so that no event is missed
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				waiting = false
			case <-beat.C:
				if err := s.beat(); err != nil {
					return err
				}
			}
		}
	}
}

// catchUp sends everything up to the newest event, and the new position if the last events were not for this reader.
func (s *eventStream) catchUp(ctx context.Context) error {
	for {
		list, seen, err := s.look(ctx, s.place, eventPage)
		if err != nil {
			return err
		}
		if err := s.sendEvents(list); err != nil {
			return err
		}
		if seen <= s.place {
			break
		}
		s.place = seen
	}
	if s.told == s.place {
		return nil
	}
	s.told = s.place
	return s.send(event{id: strconv.FormatInt(s.place, 10)})
}

// enough is how many bytes of events are written at once, and flushed.
const enough = 64 << 10

func (s *eventStream) sendEvents(list []permissions.Event) error {
	var b bytes.Buffer
	for i, h := range list {
		data, err := wire.Encode(server.EventOf(h))
		if err != nil {
			return err
		}
		s.told = h.Seq
		event{id: strconv.FormatInt(h.Seq, 10), kind: string(h.Type), data: string(data)}.encode(&b)
		if i < len(list)-1 && b.Len() < enough {
			continue
		}
		if err := s.write(b.Bytes()); err != nil {
			return err
		}
		b.Reset()
	}
	return nil
}

// Events calls handle with every event after seq that this account may see, in the order of commits and once each, until
// ctx ends or handle returns an error, which it returns. After 0 means from the beginning, [FromNow] from now on. The first
// connection must succeed; later ones are retried forever and resume. A position that the daemon no longer keeps is a
// *permissions.Refusal with CodeGone.
func (c *Client) Events(ctx context.Context, after int64, handle func(wire.Event) error) error {
	l := &eventFollower{link: link{client: c}, handle: handle, place: after}
	return l.keepReading(ctx, l.listen)
}

// eventFollower is the event stream across reconnections.
type eventFollower struct {
	link
	handle func(wire.Event) error
	place  int64 // the last seq from the daemon
}

// listen reads one connection to its end.
func (l *eventFollower) listen(ctx context.Context) error {
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
		if !l.connectedOnce || l.away {
			l.isUp() // the first message is the position
		}
		if err := l.handleEvent(e); err != nil {
			return err
		}
	}
}

// handleEvent handles one message and advances the position.
func (l *eventFollower) handleEvent(e event) error {
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
