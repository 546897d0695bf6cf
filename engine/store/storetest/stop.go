package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func stoppedBy(t *testing.T, s engine.Store) string {
	t.Helper()
	by, _, err := s.StoppedBy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return by
}

func stop(t *testing.T, s engine.Store, by string, at time.Time) []permissions.Request {
	t.Helper()
	cancelled, err := s.Stop(t.Context(), by, "telegram", at)
	if err != nil {
		t.Fatal(err)
	}
	return cancelled
}

// testStop: all pending requests end, and nothing works until resume, restarts included.
func testStop(t *testing.T, b Backend) {
	s := b.Open(t)
	fays := open(t, s, ask(keyed("k")))
	partly := open(t, s, ask(two, numbered(1)))
	partly = apply(t, s, partly.ID, allow()).After
	overdue := open(t, s, ask(of("kim"), numbered(2), at(noon.Add(-time.Hour))))
	approved := open(t, s, ask(numbered(3)))
	said := allow()
	said.Vote.Key = "telegram:7:1"
	apply(t, s, approved.ID, said)
	if by := stoppedBy(t, s); by != "" {
		t.Errorf("stopped by %q at first", by)
	}
	before, now := len(entries(t, s)), noon.Add(2*time.Minute)

	cancelled := stop(t, s, "sam", now)
	same(t, "what was cancelled", ids(cancelled), []permissions.ID{fays.ID, partly.ID, overdue.ID})
	withdraw := permissions.Withdraw{By: "sam", Via: "telegram", At: now}
	want := []permissions.Record{{ // first, so that nothing comes in between
		Type: permissions.AllStopped, At: now, Actor: "sam", Via: "telegram", Detail: map[string]string{"pending": "3"},
	}}
	for i, c := range []struct {
		r permissions.Request
		e permissions.Transition
	}{{fays, withdraw}, {partly, withdraw}, {overdue, permissions.Expire{At: now}}} {
		step, err := permissions.Step(c.r, c.e)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, step.Records...)
		same(t, "the row returned", cancelled[i], step.After)
		same(t, "the row read", read(t, s, c.r.ID), step.After)
	}
	same(t, "the audit", since(t, s, before), want)
	notice := permissions.Notice{About: permissions.AboutStopped, By: "sam", CreatedAt: now}
	toFay, toKim := notice, notice
	toFay.To, toKim.To = "fay", "kim"
	told(t, "who was asked, but sam", s, toFay, toKim)

	s = b.Reopen(t, s)
	count := len(entries(t, s))
	if by := stoppedBy(t, s); by != "sam" {
		t.Errorf("stopped by %q", by)
	}
	for name, r := range map[string]permissions.Request{
		"new": ask(about("new")), "of the same key": ask(keyed("k")), "nobody has to answer": ask(about("held"), under(now)),
	} {
		_, created, err := s.Open(t.Context(), opening(r))
		refusedWith(t, err, permissions.CodeStopped)
		if created {
			t.Errorf("%s: it was made", name)
		}
	}
	for _, e := range []permissions.Transition{permissions.Use{At: now}, allow(), permissions.Reply{Answer: permissions.Continue, At: now}} {
		c, err := s.Apply(t.Context(), approved.ID, e)
		refusedWith(t, err, permissions.CodeStopped)
		same(t, "the row beside the refusal", c.After, read(t, s, approved.ID))
	}
	if c := apply(t, s, approved.ID, said); !c.Empty() {
		t.Errorf("a redelivered vote: %+v", c)
	}
	if again := stop(t, s, "kim", now); len(again) != 0 || stoppedBy(t, s) != "sam" {
		t.Errorf("a second stop cancelled %d and is %s's", len(again), stoppedBy(t, s))
	}
	if n := len(entries(t, s)); n != count {
		t.Errorf("%d records of what did not happen", n-count)
	}
	if _, err := s.Stop(t.Context(), "sam", "cli", time.Time{}); err != nil {
		t.Errorf("with nothing to cancel: %v", err)
	}
	if _, at, err := s.StoppedBy(t.Context()); err != nil || !at.Equal(now.Truncate(time.Microsecond)) {
		t.Errorf("after more stops it began at %v, %v; want %v", at, err, now)
	}

	for range 2 { // the second changes nothing
		if err := s.Resume(t.Context(), "sam", "cli", false, now); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "the audit of going on", since(t, s, count), []permissions.Record{
		{Type: permissions.AllResumed, At: now, Actor: "sam", Via: "cli"},
	})
	if by := stoppedBy(t, s); by != "" {
		t.Errorf("stopped by %q after all", by)
	}
	open(t, s, ask(about("new")))
	apply(t, s, approved.ID, permissions.Use{At: now})
	if len(stop(t, s, "", now)) != 1 || stoppedBy(t, s) == "" {
		t.Error("a stop of nobody's stops nothing")
	}
	verified(t, s)
}

// testStopAndGrants: a stop suspends a grant and does not revoke it.
func testStopAndGrants(t *testing.T, b Backend) {
	s := b.Open(t)
	g := grant(t, s, permissions.Session, ask())
	stop(t, s, "fay", tapped)
	r := ask(about("held"), under(tapped, g))
	_, _, err := s.Open(t.Context(), opening(r))
	refusedWith(t, err, permissions.CodeStopped)
	if err := s.Resume(t.Context(), "fay", "cli", false, tapped); err != nil {
		t.Fatal(err)
	}
	open(t, s, r)
	if g := readGrant(t, s, g.ID); g.Used != 1 {
		t.Errorf("used %d times", g.Used)
	}
}

// testResumeByAnother: only whoever stopped may resume, whatever happened before.
func testResumeByAnother(t *testing.T, b Backend) {
	s := b.Open(t)
	if err := s.Resume(t.Context(), "sam", "cli", false, noon); err != nil {
		t.Errorf("without a stop: %v", err)
	}
	stop(t, s, "fay", noon)
	before := len(entries(t, s))
	refusedWith(t, s.Resume(t.Context(), "sam", "cli", false, noon), permissions.CodeNotYours)
	if by, n := stoppedBy(t, s), len(entries(t, s)); by != "fay" || n != before {
		t.Errorf("sam resumed what fay stopped: by %q, %d records", by, n-before)
	}
	if err := s.Resume(t.Context(), "operator", "cli", true, noon); err != nil || stoppedBy(t, s) != "" {
		t.Errorf("the operator: %v", err)
	}
}

// testStopWithADamagedRow: an unreadable row does not keep the others from being stopped.
func testStopWithADamagedRow(t *testing.T, b Backend) {
	s := b.Open(t)
	first, bad, late := open(t, s, ask()), open(t, s, ask(numbered(1))), open(t, s, ask(numbered(2)))
	b.Exec(t, s, `UPDATE requests SET scope = 'nonsense' WHERE id = '`+string(bad.ID)+`'`)
	cancelled, err := s.Stop(t.Context(), "fay", "cli", tapped)
	said := "1 of what waits could not be cancelled: request " + s.Coder().Encode(bad.Number) + " "
	if !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), said) {
		t.Errorf("the error is %v", err)
	}
	same(t, "what was cancelled", ids(cancelled), []permissions.ID{first.ID, late.ID})
	for _, r := range []permissions.Request{first, late} {
		if got := read(t, s, r.ID); got.State != permissions.Cancelled {
			t.Errorf("%s is %s", r.Reason, got.State)
		}
	}
	if by := stoppedBy(t, s); by != "fay" {
		t.Errorf("stopped by %q", by)
	}
	b.Exec(t, s, `UPDATE requests SET scope = '' WHERE id = '`+string(bad.ID)+`'`)
	same(t, "once it was mended", ids(stop(t, s, "fay", tapped)), []permissions.ID{bad.ID})
}

// testStopCutShort: what an interrupted stop did not reach cannot be allowed, and the next stop finishes it.
func testStopCutShort(t *testing.T, b Backend) {
	s := b.Open(t)
	waits := open(t, s, ask())
	ready := open(t, s, ask(numbered(1)))
	apply(t, s, ready.ID, allow())
	b.Exec(t, s, `UPDATE meta SET stopped_by = 'sam', stopped_at = 1`) // as after a stop's first commit
	s = b.Reopen(t, s)
	before := len(entries(t, s))
	for id, e := range map[permissions.ID]permissions.Transition{waits.ID: allow(), ready.ID: permissions.Use{At: tapped}} {
		_, err := s.Apply(t.Context(), id, e)
		refusedWith(t, err, permissions.CodeStopped)
	}
	same(t, "what was left", ids(stop(t, s, "sam", tapped)), []permissions.ID{waits.ID})
	records := since(t, s, before)
	if len(records) != 1 || records[0].Type != permissions.RequestSettled || stoppedBy(t, s) != "sam" {
		t.Errorf("finishing it is told by %v, and it is stopped by %q", records, stoppedBy(t, s))
	}
	told(t, "who was asked", s, permissions.Notice{To: "fay", About: permissions.AboutStopped, By: "sam", CreatedAt: tapped})
}

// testNotices: notices are part of the change that they report, and several reminders become one.
func testNotices(t *testing.T, b Backend) {
	s := b.Open(t)
	first := open(t, s, ask(two, patient))
	voted := apply(t, s, first.ID, allow()).After
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

	c := apply(t, s, first.ID, permissions.Remind{At: minute(7)})
	if c.After.Revision != voted.Revision || len(c.Notices) != 1 {
		t.Errorf("reminding made revision %d of %d and %d notices", c.After.Revision, voted.Revision, len(c.Notices))
	}
	same(t, "what is left of the reminders", read(t, s, first.ID).Reminders, []time.Time{minute(12)})
	sams := permissions.Notice{To: "sam", About: permissions.AboutWaiting, Subject: first.ID, CreatedAt: minute(7)}
	told(t, "who has not answered", s, sams)

	risky := func(r *permissions.Request) { r.HighRisk = true }
	second := open(t, s, ask(two, patient, risky, numbered(2)))
	apply(t, s, second.ID, permissions.Remind{At: minute(8)})
	sams.Urgent = true
	fays := permissions.Notice{
		To: "fay", About: permissions.AboutWaiting, Subject: second.ID, Urgent: true, CreatedAt: minute(8),
	}
	told(t, "one reminder a person", s, sams, fays)
	apply(t, s, first.ID, permissions.Remind{At: minute(12)})
	told(t, "an urgent one stays so", s, sams, fays)

	all := notices(t, s)
	page, err := s.Notices(t.Context(), all[0].ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a page, oldest first", page, all[1:])
	for range 2 { // the second time it is gone
		if err := s.DeleteNotice(t.Context(), all[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	s = b.Reopen(t, s)
	same(t, "after one was sent", notices(t, s), all[1:])
	page, err = s.Notices(t.Context(), all[0].ID, 9)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "after one that is gone", page, all[1:])
	apply(t, s, second.ID, permissions.Remind{At: minute(12)})
	if n := len(notices(t, s)); n != 2 {
		t.Errorf("after one was sent, a new reminder makes %d", n)
	}
}
