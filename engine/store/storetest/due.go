package storetest

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// testDueWhileItWaits: escalation and reminders come due in turn, and no longer after the deadline.
func testDueWhileItWaits(t *testing.T, b Backend) {
	s := b.Open(t)
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	first := open(t, s, ask(patient)) // escalation at 12:05, reminders at 12:07 and 12:12, deadline at 12:15
	second := open(t, s, ask(numbered(2), at(minute(1)), patient))
	due := func(now time.Time, limit int) ([]permissions.Due, time.Time) {
		t.Helper()
		events, next, err := s.Due(t.Context(), now, redeem, limit)
		if err != nil {
			t.Fatal(err)
		}
		return events, next
	}
	none, next := due(minute(4), 9)
	if len(none) != 0 || !next.Equal(minute(5)) {
		t.Errorf("at first: %v, next %s", none, next)
	}
	now := minute(7)
	more, nudge := permissions.Escalate{At: now}, permissions.Remind{At: now}
	events, next := due(now, 9)
	same(t, "both sorts", events, []permissions.Due{
		{ID: first.ID, Event: more}, {ID: second.ID, Event: more}, {ID: first.ID, Event: nudge},
	})
	if !next.Equal(minute(8)) {
		t.Errorf("next is %s", next)
	}
	few, _ := due(now, 2)
	same(t, "a few", few, events[:2])
	for _, e := range events {
		apply(t, s, e.ID, e.Event)
	}
	if none, next = due(now, 9); len(none) != 0 || !next.Equal(minute(8)) {
		t.Errorf("after they were applied: %v, next %s", none, next)
	}
	now = minute(12)
	nudge = permissions.Remind{At: now}
	events, next = due(now, 9)
	same(t, "the reminders", events, []permissions.Due{{ID: second.ID, Event: nudge}, {ID: first.ID, Event: nudge}})
	if !next.Equal(minute(13)) {
		t.Errorf("next is %s", next)
	}
	apply(t, s, events[0].ID, nudge)
	now = minute(15)
	events, _ = due(now, 9)
	same(t, "what is over only expires", events, []permissions.Due{
		{ID: second.ID, Event: permissions.Remind{At: now}}, {ID: first.ID, Event: permissions.Expire{At: now}},
	})
	for _, r := range []permissions.Request{first, second} {
		apply(t, s, r.ID, permissions.Withdraw{At: minute(14)})
	}
	if none, next = due(minute(60), 9); len(none) != 0 || !next.IsZero() {
		t.Errorf("after the end: %v, next %s", none, next)
	}
}
