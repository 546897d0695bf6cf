package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// FromNow as a place in the events is behind the newest one.
const FromNow int64 = -1

// eventPage is how many entries are looked at at a time.
const eventPage = 500

// Where a reader goes on is what it was last told, else what it asks for.
type eventsInput struct {
	Last  int64 `header:"Last-Event-ID" minimum:"-1" default:"-1" doc:"the last seq seen; counts before after"`
	After int64 `query:"after" minimum:"-1" default:"-1" doc:"0: from the beginning; -1: from now on"`
}

// events answers with the stream. Whatever keeps it from its beginning is refused before it begins.
func (r *routes) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	at := in.After
	if in.Last != FromNow {
		at = in.Last
	}
	s := &eventStream{desk: r.desk, id: who(ctx)}
	if err := s.begin(ctx, at); err != nil {
		return nil, r.door.Refuse(err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		s.sink = newSink(streamTo(c))
		_ = s.run(c.Context()) // it ends with the connection, and then there is nobody to tell
	}}, nil
}

// eventStream is one reader of the events. It keeps nothing but its place: every event is read from the audit in the
// order of commits, so a reader that is slow or was away loses nothing and is told nothing twice.
type eventStream struct {
	sink
	desk  Desk
	id    connectors.Identity
	place int64 // the last seq looked at
	told  int64 // the place that the reader knows of
}

// begin finds the place to start from, and refuses one that is kept no more, and one that nothing has reached yet: what
// happens up to it would never be told.
func (s *eventStream) begin(ctx context.Context, at int64) (err error) {
	s.place = at
	if at == FromNow {
		s.place, err = s.newest(ctx)
		return err
	}
	_, seen, err := s.desk.Happenings(ctx, s.id, at, 1)
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

// newest is the first place that nothing follows. A [Desk] tells only what follows a place, so the end is looked for by
// doubling and halving: some dozens of looks, however much there is.
func (s *eventStream) newest(ctx context.Context) (seq int64, err error) {
	followed := func(seq int) bool {
		_, seen, failed := s.desk.Happenings(ctx, s.id, int64(seq), 1)
		var refusal *permissions.Refusal
		if errors.As(failed, &refusal) && refusal.Code == permissions.CodeGone {
			return true
		}
		err = cmp.Or(err, failed)
		return failed == nil && seen > int64(seq)
	}
	bound := 1
	for followed(bound) {
		bound *= 2
	}
	last := sort.Search(bound, func(seq int) bool { return !followed(seq) })
	return int64(last), err
}

// run sends what is there and then what comes. The first thing that a reader is told is its place, so that it can come
// back to it whatever happens.
func (s *eventStream) run(ctx context.Context) error {
	s.told = FromNow
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := s.desk.Changed() // taken before looking, so that nothing falls between
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

// catchUp sends everything up to the newest event, and how far it came where that was nothing for this reader.
func (s *eventStream) catchUp(ctx context.Context) error {
	for {
		list, seen, err := s.desk.Happenings(ctx, s.id, s.place, eventPage)
		if err != nil {
			return err
		}
		for _, h := range list {
			if err := s.tell(h); err != nil {
				return err
			}
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

func (s *eventStream) tell(h permissions.Happening) error {
	data, err := wire.Encode(wire.FromHappening(h))
	if err != nil {
		return err
	}
	s.told = h.Seq
	return s.send(event{id: strconv.FormatInt(h.Seq, 10), kind: string(h.Type), data: string(data)})
}
