package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

func testDue(t *testing.T, b Backend) {
	s := b.Open(t)
	// Deadlines are 15 minutes later: 12:15, 12:16, 12:17; the approvals of 12:01 lapse at 12:11.
	first := open(t, s, ask(numbered(1)))
	second := open(t, s, ask(numbered(2), at(noon.Add(2*time.Minute))))
	third := open(t, s, ask(numbered(3), at(noon.Add(time.Minute))))
	approved := open(t, s, ask(numbered(4)))
	collected := open(t, s, ask(numbered(5)))
	taken := open(t, s, ask(numbered(6)))
	denied := open(t, s, ask(numbered(7)))
	for _, r := range []permissions.Request{approved, collected, taken} {
		apply(t, s, r.ID, allow())
	}
	apply(t, s, collected.ID, permissions.Collect{At: noon.Add(2 * time.Minute)})
	apply(t, s, taken.ID, permissions.Void{By: "fay", At: noon.Add(2 * time.Minute)})
	apply(t, s, denied.ID, vote(permissions.Deny))

	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	for _, c := range []struct {
		name  string
		now   time.Time
		limit int
		want  []permissions.ID
		next  time.Time
	}{
		{"nothing yet", minute(10), 9, nil, minute(11)},
		{"just before", minute(11).Add(-time.Microsecond), 9, nil, minute(11)},
		{"a lapse", minute(11), 9, []permissions.ID{approved.ID}, minute(15)},
		{"both sorts", minute(16), 9, []permissions.ID{approved.ID, first.ID, third.ID}, minute(17)},
		{"all", minute(60), 9, []permissions.ID{approved.ID, first.ID, third.ID, second.ID}, time.Time{}},
		{"the longest overdue first", minute(60), 2, []permissions.ID{approved.ID, first.ID}, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			due, next, err := s.Due(t.Context(), c.now, redeem, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []permissions.ID
			for _, d := range due {
				got = append(got, d.ID)
				want := permissions.Transition(permissions.Expire{At: c.now})
				if d.ID == approved.ID {
					want = permissions.Lapse{At: c.now}
				}
				same(t, "the event", d.Event, want)
			}
			same(t, "who is due", got, c.want)
			if !next.Equal(c.next) {
				t.Errorf("next is %s, want %s", next, c.next)
			}
		})
	}
	due, _, err := s.Due(t.Context(), minute(60), redeem, 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range due {
		apply(t, s, d.ID, d.Event)
	}
	due, next, err := s.Due(t.Context(), minute(90), redeem, 9)
	if err != nil || len(due) != 0 || !next.IsZero() {
		t.Errorf("after all is done: %v, next %s, %v", due, next, err)
	}
}

func testHistory(t *testing.T, b Backend) {
	s := b.Open(t)
	var all, sams, late []permissions.ID
	for n := range 8 {
		who := permissions.CallerUID(1000 + n%2)
		r := open(t, s, ask(numbered(n), of("fay", []string{"sam", "kim"}[n%2]), func(q *permissions.Request) { q.Caller = who }))
		if n == 3 {
			continue // it is pending
		}
		answer := vote([]permissions.Answer{permissions.Deny, permissions.Allow(permissions.Once)}[n%2])
		if n > 4 {
			answer.Vote.At = noon.Add(10 * time.Minute)
			late = append(late, r.ID)
		}
		apply(t, s, r.ID, by("fay", answer))
		all = append(all, r.ID)
		if n%2 == 0 {
			sams = append(sams, r.ID)
		}
	}
	over := open(t, s, ask(numbered(8), func(q *permissions.Request) { // it is pending
		q.Caller = permissions.Caller{Name: "token:deploy", UID: permissions.AnyUID}
	}))
	for name, c := range map[string]struct {
		uid    int
		caller string
		since  time.Time
		want   bool
	}{
		"an account": {1000, "uid:1000", noon, true}, "as another caller": {1000, "uid:1001", noon, false},
		"over TCP, of any account": {4711, "", noon, true}, "of any account, as that": {4711, over.Caller.Name, noon, true},
		"another account": {4711, "uid:1000", noon, false}, "later": {1000, "uid:1000", noon.Add(time.Hour), false},
	} {
		if asked, err := s.AskedFrom(t.Context(), c.uid, c.caller, c.since); err != nil || asked != c.want {
			t.Errorf("%s has asked: %t, %v", name, asked, err)
		}
	}
	for name, c := range map[string]struct {
		of   permissions.HistoryQuery
		want []permissions.ID
	}{
		"all":                {permissions.HistoryQuery{}, all},
		"of one caller":      {permissions.HistoryQuery{Caller: permissions.CallerUID(1000).Name}, sams},
		"put to a person":    {permissions.HistoryQuery{Asked: "sam"}, sams},
		"since a time":       {permissions.HistoryQuery{Since: noon.Add(5 * time.Minute)}, late},
		"of another caller":  {permissions.HistoryQuery{Caller: "kim"}, nil},
		"put to nobody else": {permissions.HistoryQuery{Asked: "eve"}, nil},
		"in the future":      {permissions.HistoryQuery{Since: noon.Add(time.Hour)}, nil},
	} {
		for _, limit := range []int{1, 3, 100} {
			var got []permissions.ID
			for c.of.After, c.of.Limit = "", limit; ; {
				page, err := s.History(t.Context(), c.of)
				if err != nil || len(page) > limit {
					t.Fatalf("%s: %d on a page of %d, %v", name, len(page), limit, err)
				}
				if len(page) == 0 {
					break
				}
				got, c.of.After = append(got, ids(page)...), page[len(page)-1].ID
			}
			same(t, name, got, c.want)
		}
	}
}

func testLately(t *testing.T, b Backend) {
	s := b.Open(t)
	minute := func(n int) func(*permissions.Request) { return at(noon.Add(time.Duration(n) * time.Minute)) }
	settle := func(n int, reason string, a permissions.Answer, who string, change ...func(*permissions.Request)) permissions.ID {
		r := open(t, s, ask(append([]func(*permissions.Request){minute(n), about(reason), of(who)}, change...)...))
		c := vote(a)
		c.Vote.At = r.CreatedAt.Add(time.Second)
		apply(t, s, r.ID, by(who, c))
		return r.ID
	}
	tool := func(q *permissions.Request) {
		q.Kind, q.Tags, q.Tool, q.Input = permissions.KindTool, nil, "look", []byte(`{"at":"x"}`)
	}
	allow := permissions.Allow(permissions.Once)
	month := int(permissions.AllowedSpan.Minutes())
	settle(-month-1, "too long ago", allow, "kim", tool)
	settle(-60, "earlier", allow, "sam", tool)
	settle(-30, "later", allow, "fay", tool)
	settle(-20, "no", permissions.Deny, "fay", tool)
	settle(-9, "of another caller", allow, "fay", tool, func(q *permissions.Request) { q.Caller = permissions.CallerUID(7) })
	settle(-8, "one", allow, "fay")
	second := settle(-7, "two", permissions.Deny, "fay")
	settle(-6, "not hers", allow, "sam")
	third := settle(-5, "three", allow, "fay")
	fourth := settle(-4, "four", allow, "fay")
	r := open(t, s, ask(minute(0), tool, about("now")))
	settle(1, "after it", allow, "fay", tool)
	got, err := s.RecentActivity(t.Context(), r, "fay")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the last", ids(got.Last), []permissions.ID{fourth, third, second})
	if got.Allowed != 4 || got.Denied != 1 || got.AllowedBefore != 2 || got.AllowedBy != "fay" {
		t.Errorf("%d allowed, %d denied, %d before, by %q; want 4, 1, 2, fay", got.Allowed, got.Denied, got.AllowedBefore, got.AllowedBy)
	}
	if got, err := s.RecentActivity(t.Context(), r, ""); err != nil || len(got.Last) != 0 || got.Allowed != 4 {
		t.Errorf("for a group: %+v, %v", got, err)
	}
	if got, err := s.RecentActivity(t.Context(), r, "kim"); err != nil || len(got.Last) != 0 {
		t.Errorf("for somebody to whom none was put: %+v, %v", got.Last, err)
	}
}

func testPending(t *testing.T, b Backend) {
	s := b.Open(t)
	var all, fays []permissions.ID
	for n := range 9 {
		people := of("sam")
		if n%2 == 0 {
			people = of("sam", `fay "the" <boss>`)
		}
		r := open(t, s, ask(numbered(n), people))
		if n == 4 {
			apply(t, s, r.ID, by("sam", vote(permissions.Deny)))
			continue
		}
		all = append(all, r.ID)
		if n%2 == 0 {
			fays = append(fays, r.ID)
		}
	}
	if n, err := s.CountPending(t.Context()); err != nil || n != len(all) {
		t.Errorf("%d are counted, %v; %d are pending", n, err, len(all))
	}
	for _, c := range []struct {
		name  string
		asked string
		limit int
		want  []permissions.ID
	}{
		{"all", "", 100, all},
		{"all, page by page", "", 3, all},
		{"of one person", `fay "the" <boss>`, 3, fays},
		{"of one person, one at a time", `fay "the" <boss>`, 1, fays},
		{"part of a name", "fay", 3, nil},
		{"of nobody", "kim", 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []permissions.ID
			after := permissions.ID("")
			for {
				page, err := s.Pending(t.Context(), c.asked, after, c.limit)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) > c.limit {
					t.Fatalf("%d on a page of %d", len(page), c.limit)
				}
				if len(page) == 0 {
					break
				}
				got = append(got, ids(page)...)
				after = page[len(page)-1].ID
			}
			same(t, "the requests", got, c.want)
			for n := 1; n < len(got)+2; n++ {
				last, err := s.Pending(t.Context(), c.asked, permissions.ID(fmt.Sprintf("-%d", n)), 100)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("the last %d", n), ids(last), got[max(len(got)-n, 0):])
			}
		})
	}
	partly := open(t, s, ask(two))
	voted := apply(t, s, partly.ID, allow()).After
	page, err := s.Pending(t.Context(), "fay", all[len(all)-1], 9)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a request with a vote", page, []permissions.Request{voted})
	_, err = s.Pending(t.Context(), "", "01J0000000000000000000NONE", 9)
	refusedWith(t, err, permissions.CodeUnknown)
}

func testCodes(t *testing.T, b Backend) {
	s := b.Open(t)
	_, err := s.ByCode(t.Context(), s.Coder().Encode(1))
	refusedWith(t, err, permissions.CodeUnknown)
	for n := range 3 {
		r := open(t, s, ask(two, numbered(n)))
		r = apply(t, s, r.ID, allow()).After
		got, err := s.ByCode(t.Context(), s.Coder().Encode(r.Number))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the request", got, r)
	}
	encode := s.Coder().Encode
	for _, code := range []string{"", "K7F3", "K7F30", encode(0), encode(4), encode(1 << 20)} {
		_, err := s.ByCode(t.Context(), code)
		refusedWith(t, err, permissions.CodeUnknown)
	}
	// Many requests later the codes repeat: a code belongs to the newer request.
	old, err := s.ByCode(t.Context(), s.Coder().Encode(1))
	if err != nil {
		t.Fatal(err)
	}
	b.Exec(t, s, "UPDATE requests SET number = number + 28629151 WHERE number = 2")
	newer, err := s.ByCode(t.Context(), s.Coder().Encode(2))
	if err != nil || newer.Number != 2+permissions.CodeCount {
		t.Errorf("request %d, %v", newer.Number, err)
	}
	_, err = s.ByCode(t.Context(), s.Coder().Encode(old.Number))
	refusedWith(t, err, permissions.CodeUnknown) // another number has its code now
}
