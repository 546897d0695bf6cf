package registry

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

func TestAFeedCarriesEveryCommittedChange(t *testing.T) {
	m := newRoom()
	feed, other := m.Subscribe(10), m.Subscribe(10)
	defer feed.Close()
	defer other.Close()
	_, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Quorum = 2 }))
	m.decide(t, r.ID, permissions.Allow(permissions.Once))
	m.decide(t, r.ID, permissions.Allow(permissions.Once)) // a double tap is no change
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Expire{At: m.wall()}); err == nil {
		t.Error("it expired early")
	}
	m.decide(t, r.ID, permissions.Deny)
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Collect{At: m.wall()}); err != nil { // not visible
		t.Error(err)
	}
	for _, f := range []*Feed{feed, other} {
		f.Close()
		var got []permissions.Request
		for change := range f.C {
			got = append(got, *change)
		}
		if len(got) != 3 || f.Overflowed() {
			t.Fatalf("%d changes, lagged %v", len(got), f.Overflowed())
		}
		for i, want := range []struct {
			revision int64
			state    permissions.State
			votes    int
		}{{1, permissions.Pending, 0}, {2, permissions.Pending, 1}, {3, permissions.Denied, 2}} {
			if got[i].Revision != want.revision || got[i].State != want.state || len(got[i].Votes) != want.votes {
				t.Errorf("%d: revision %d, %s, %d votes", i, got[i].Revision, got[i].State, len(got[i].Votes))
			}
		}
	}
}

func TestAJoinIsNoChange(t *testing.T) {
	m := newRoom()
	_, _ = m.ask(t, m.fresh(nil))
	feed := m.Subscribe(10)
	_, _ = m.ask(t, m.fresh(nil))
	feed.Close()
	if r, open := <-feed.C; open {
		t.Errorf("told of %s", r.ID)
	}
}

func TestASlowReaderIsCutOff(t *testing.T) {
	m := newRoom()
	slow, quick := m.Subscribe(1), m.Subscribe(10)
	defer quick.Close()
	var last permissions.ID
	for range 3 {
		_, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Reason = time.Now().String() }))
		last = r.ID
	}
	if first := <-slow.C; first.ID == last {
		t.Error("the first change is gone")
	}
	if _, open := <-slow.C; open || !slow.Overflowed() {
		t.Errorf("the slow reader goes on; lagged %v", slow.Overflowed())
	}
	if len(quick.C) != 3 || quick.Overflowed() {
		t.Errorf("the quick reader has %d changes; lagged %v", len(quick.C), quick.Overflowed())
	}
	slow.Close()
	slow.Close()
}
