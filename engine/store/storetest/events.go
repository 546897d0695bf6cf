package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func eventsAfter(t *testing.T, s engine.Store, after int64, limit int) (list []permissions.Event, first int64) {
	t.Helper()
	list, first, err := s.Events(t.Context(), after, limit)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].About = permissions.Request{} // it comes with what is in memory
	}
	return list, first
}

func testEvents(t *testing.T, b Backend) {
	s := b.Open(t)
	if list, first := eventsAfter(t, s, 0, 9); len(list) != 0 || first > 1 {
		t.Errorf("an empty store: %v from %d", list, first)
	}
	r := open(t, s, ask(two))
	apply(t, s, r.ID, by("sam", allow()))
	if err := s.Record(t.Context(), permissions.Record{Type: permissions.DecisionRefused, Request: r.ID}); err != nil {
		t.Fatal(err)
	}
	addToken(t, s, "deploy", time.Time{})
	stop(t, s, "sam", tapped)

	var want []permissions.Event
	for _, e := range entries(t, s) {
		switch e.Type {
		case permissions.DecisionRefused, permissions.TokenCreated: // no event for anybody
		case permissions.AllStopped:
			want = append(want, permissions.Event{Entry: e})
		default:
			want = append(want, permissions.Event{Entry: e, Session: "s-1", Asked: []string{"fay", "sam"}})
		}
	}
	sams := map[string]string{"session": "s-9", "person": "sam"}
	commit(t, s, agents.Commit{Session: begun("helper"), Records: []permissions.Record{
		{Type: permissions.SessionStatus, At: noon, Detail: sams}, {Type: permissions.WaitAckEnter, At: noon, Request: r.ID, Detail: sams},
	}})
	all := entries(t, s)
	want = append(want, permissions.Event{Entry: all[len(all)-2], Session: "s-9"},
		permissions.Event{Entry: all[len(all)-1], Session: "s-9", Asked: []string{"fay", "sam"}})
	list, first := eventsAfter(t, s, 0, 9)
	same(t, "the events", list, want)
	if len(want) != 6 || first != 1 {
		t.Errorf("%d events, from %d", len(want), first)
	}
	page, _ := eventsAfter(t, s, want[1].Seq, 1)
	same(t, "a page", page, want[2:3])
	if last, _ := eventsAfter(t, s, want[5].Seq, 9); len(last) != 0 {
		t.Errorf("after the last: %v", last)
	}
}

// testChanged: the next entry wakes waiters, who find it.
func testChanged(t *testing.T, b Backend) {
	s := b.Open(t)
	changed, same := s.Changed(), s.Changed()
	if _, _, err := s.Due(t.Context(), noon, redeem, 9); err != nil {
		t.Fatal(err)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := ask()
	if _, err := s.Apply(t.Context(), r.ID, allow()); err == nil {
		t.Fatal("there is such a request")
	}
	select {
	case <-changed:
		t.Error("it rings for nothing")
	default:
	}
	open(t, s, r)
	for _, c := range []<-chan struct{}{changed, same} {
		<-c
	}

	const many = 50
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for after := int64(1); after < many; {
				next := s.Changed()
				list, _, err := s.Events(t.Context(), after, many)
				if err != nil {
					t.Error(err)
					return
				}
				for _, h := range list {
					after = h.Seq
				}
				if after < many {
					<-next
				}
			}
		})
	}
	for n := range many - 1 {
		open(t, s, ask(numbered(n)))
	}
	group.Wait()
}

func testNewest(t *testing.T, b Backend) {
	s := b.Open(t)
	newest := func() time.Time {
		t.Helper()
		at, err := s.NewestTime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at := newest(); !at.IsZero() {
		t.Errorf("an empty store: %s", at)
	}
	open(t, s, ask())
	open(t, s, ask(numbered(1), at(noon.Add(time.Hour+time.Microsecond))))
	if at := newest(); !at.Equal(noon.Add(time.Hour + time.Microsecond)) {
		t.Errorf("the newest entry is of %s", at)
	}
}
