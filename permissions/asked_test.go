package permissions

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// escalating asks fay, needs two answers, and after ten minutes asks kim as well.
func escalating() Request {
	r := permissionRequest()
	r.Asked, r.EscalateTo, r.EscalateAt, r.Quorum = []string{"fay", "sam"}, []string{"kim"}, noon.Add(10*time.Minute), 2
	r.Reminders = []time.Time{noon.Add(5 * time.Minute), noon.Add(12 * time.Minute)}
	return r
}

func TestEscalationAsksMorePeopleOnce(t *testing.T) {
	r := after(t, escalating(), vote("fay", Allow(Session)))
	if _, err := Step(r, vote("kim", Allow(Once))); !errors.Is(err, ErrNotAsked) {
		t.Fatalf("before it, kim may not decide: %v", err)
	}
	c := must(Step(r, Escalate{At: soon}))
	if !slices.Equal(c.After.Asked, []string{"fay", "sam", "kim"}) || c.After.EscalateTo != nil || !c.After.EscalateAt.IsZero() ||
		c.Records[0].Type != RequestEscalated || c.Records[0].Detail["to"] != "kim" || c.After.Revision != r.Revision+1 {
		t.Fatalf("got %+v", c)
	}
	if away, has := c.Records[0].Detail["away"]; has {
		t.Errorf("nobody is away, and the audit says %q", away)
	}
	if locked, has := c.Records[0].Detail["locked"]; has {
		t.Errorf("nobody is locked, and the audit says %q", locked)
	}
	if again := must(Step(c.After, Escalate{At: soon})); !again.Empty() {
		t.Error("it escalated twice")
	}
	if end := after(t, c.After, vote("kim", Allow(Once))); end.State != Approved || end.Scope != Once {
		t.Errorf("with kim it is %s, %v", end.State, end.Scope)
	}
}

// TestAnEscalationToSome: only they are asked at once, the others at their time; nobody whom it doesn't name is asked.
func TestAnEscalationToSome(t *testing.T) {
	r := escalating()
	r.EscalateTo = []string{"kim", "ann"}
	c := must(Step(r, Escalate{To: []string{"ann", "eve"}, Away: []string{"fay"}, At: soon}))
	if !slices.Equal(c.After.Asked, []string{"fay", "sam", "ann"}) || !slices.Equal(c.After.EscalateTo, []string{"kim"}) ||
		!c.After.EscalateAt.Equal(r.EscalateAt) || c.After.Quorum != r.Quorum {
		t.Errorf("got %+v", c.After)
	}
	if d := c.Records[0].Detail; d["to"] != "ann" || d["away"] != "fay" {
		t.Errorf("the audit says %v", d)
	}
	if none := must(Step(r, Escalate{To: []string{"eve"}, At: soon})); !none.Empty() {
		t.Errorf("eve is asked: %v", none.After.Asked)
	}
	rest := must(Step(c.After, Escalate{At: soon}))
	if !slices.Equal(rest.After.Asked, []string{"fay", "sam", "ann", "kim"}) || !rest.After.EscalateAt.IsZero() {
		t.Errorf("later: %+v", rest.After)
	}
}

// TestAnEscalationAsksNobodyWhoIsLocked: they are asked once they are not, and it is not due again.
func TestAnEscalationAsksNobodyWhoIsLocked(t *testing.T) {
	r := escalating()
	r.EscalateTo, r.Group = []string{"kim", "ann"}, "ops"
	c := must(Step(r, Escalate{Locked: []string{"kim", "fay"}, At: soon}))
	if !slices.Equal(c.After.Asked, []string{"fay", "sam", "ann"}) || !slices.Equal(c.After.EscalateTo, []string{"kim"}) ||
		!c.After.EscalateAt.IsZero() || c.Records[0].Detail["to"] != "ann" || c.Records[0].Detail["locked"] != "kim" || len(c.Notices) != 1 {
		t.Errorf("got %+v, %+v", c.After, c.Records)
	}
	none := must(Step(r, Escalate{Locked: []string{"kim", "ann"}, At: soon}))
	if _, told := none.Records[0].Detail["to"]; told || !slices.Equal(none.After.Asked, r.Asked) || !none.After.EscalateAt.IsZero() ||
		!slices.Equal(none.After.EscalateTo, r.EscalateTo) || len(none.Notices) != 0 {
		t.Errorf("both are locked: %+v, %+v", none.After, none.Records)
	}
	if again := must(Step(none.After, Escalate{Locked: []string{"kim", "ann"}, At: soon})); !again.Empty() {
		t.Errorf("once more: %+v", again.After)
	}
}

func TestPeopleComeAndGoWhileARequestIsPending(t *testing.T) {
	r := after(t, escalating(), vote("fay", Allow(Once)))
	for _, c := range []struct {
		name    string
		e       Reroute
		state   State
		asked   []string
		later   []string
		votes   int
		changed bool
	}{
		{"nothing changes", Reroute{Asked: []string{"fay", "sam"}, EscalateTo: []string{"kim"}}, Pending,
			[]string{"fay", "sam"}, []string{"kim"}, 1, false},
		{"fay goes, and her vote with her", Reroute{Asked: []string{"sam"}, EscalateTo: []string{"kim"}}, Pending,
			[]string{"sam"}, []string{"kim"}, 0, true},
		{"sam goes", Reroute{Asked: []string{"fay"}, EscalateTo: []string{"kim"}}, Pending, []string{"fay"}, []string{"kim"}, 1, true},
		{"ann comes", Reroute{Asked: []string{"fay", "sam", "ann"}, EscalateTo: []string{"kim"}}, Pending,
			[]string{"fay", "sam", "ann"}, []string{"kim"}, 1, true},
		{"kim is asked at once", Reroute{Asked: []string{"fay", "kim"}, EscalateTo: []string{"kim"}}, Pending,
			[]string{"fay", "kim"}, nil, 1, true},
		{"too few are left", Reroute{Asked: []string{"fay"}}, Undeliverable, []string{"fay"}, nil, 1, true},
		{"fay is locked", Reroute{Asked: []string{"sam"}, EscalateTo: []string{"fay", "kim"}, Locked: []string{"fay"}}, Pending,
			[]string{"sam"}, []string{"fay", "kim"}, 0, true},
		{"fay and kim are locked", Reroute{Asked: []string{"sam"}, EscalateTo: []string{"fay", "kim"}, Locked: []string{"fay", "kim"}},
			Undeliverable, []string{"sam"}, []string{"fay", "kim"}, 0, true},
	} {
		c.e.At = soon
		got := must(Step(r, c.e))
		if got.After.State != c.state || !slices.Equal(got.After.Asked, c.asked) ||
			!slices.Equal(got.After.EscalateTo, c.later) || len(got.After.Votes) != c.votes || got.Empty() == c.changed {
			t.Errorf("%s: got %+v", c.name, got.After)
		}
		if len(c.later) == 0 && !got.After.EscalateAt.IsZero() {
			t.Errorf("%s: it still escalates", c.name)
		}
		why := tooFew
		if len(c.e.Locked) > 0 {
			why = "too few of the people who were asked may still answer; locked: " + strings.Join(c.e.Locked, ", ")
		}
		if c.state == Undeliverable && (got.After.Failure != why || !got.Settled() || got.After.Revision != r.Revision+1) {
			t.Errorf("%s: %+v", c.name, got.After)
		}
	}
}

// TestWhatALockedPersonSaidOfSingleCalls is open again, and the votes of others stay.
func TestWhatALockedPersonSaidOfSingleCalls(t *testing.T) {
	for name, answers := range map[string][2]Answer{
		"A8/a call that was allowed": {Allow(Once), Allow(Once)}, "A8/a call that was denied": {Deny, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := escalating()
			r.Kind, r.Tags, r.Quorum = KindTool, nil, 2
			r.Calls = []Call{{N: 1, Tool: "a"}, {N: 2, Tool: "b"}, {N: 3, Tool: "c"}}
			on := func(by string, a Answer, call int) Cast {
				e := vote(by, a)
				e.Vote.Call = call
				return e
			}
			r = after(t, r, on("sam", Allow(Once), 1))
			r = after(t, r, on("fay", answers[0], 1))
			if r.Calls[0].Answer != answers[0] || r.State != Pending {
				t.Fatalf("before: %s, %+v", r.State, r.Calls)
			}
			got := must(Step(r, Reroute{Asked: []string{"sam"}, EscalateTo: []string{"kim"}, Locked: []string{"fay"}, At: soon})).After
			if got.Calls[0].Answer != "" || len(got.Votes) != 1 || got.Votes[0].By != "sam" || r.Calls[0].Answer != answers[0] {
				t.Errorf("after: %+v, %+v", got.Calls, got.Votes)
			}
			kept := must(Step(r, Reroute{Asked: []string{"sam"}, EscalateTo: []string{"kim"}, At: soon})).After
			if kept.Calls[0].Answer != answers[0] {
				t.Errorf("of somebody who only left: %+v", kept.Calls)
			}
		})
	}
}

// TestAnAccountCountsOnce, whoever it belonged to when it voted.
func TestAnAccountCountsOnce(t *testing.T) {
	by := func(who, account string) Cast {
		e := vote(who, Allow(Once))
		e.Vote.Account = account
		return e
	}
	for name, c := range map[string]struct {
		votes []Cast
		state State
	}{
		"A2/two people by one account":           {[]Cast{by("fay", "uid:1"), by("sam", "uid:1")}, Pending},
		"A2/two people by one account and third": {[]Cast{by("fay", "uid:1"), by("sam", "uid:1"), by("kim", "uid:2")}, Approved},
		"A2/two people by two accounts":          {[]Cast{by("fay", "uid:1"), by("sam", "uid:2")}, Approved},
		"A2/two people by accounts of before":    {[]Cast{by("fay", ""), by("sam", "")}, Approved},
	} {
		t.Run(name, func(t *testing.T) {
			r := permissionRequest()
			r.Asked, r.Quorum = []string{"fay", "sam", "kim"}, 2
			for _, e := range c.votes {
				r = after(t, r, e)
			}
			if r.State != c.state {
				t.Errorf("it is %s with %+v", r.State, r.Votes)
			}
		})
	}
}

// TestWhatAMovedAccountSaidOfSingleCalls is open again where it allowed, and stays where it denied.
func TestWhatAMovedAccountSaidOfSingleCalls(t *testing.T) {
	r := escalating()
	r.Kind, r.Tags, r.Quorum = KindTool, nil, 2
	r.Calls = []Call{{N: 1, Tool: "a"}, {N: 2, Tool: "b"}, {N: 3, Tool: "c"}}
	for _, e := range []Cast{vote("fay", Allow(Once)), comment(voteOn(2, "fay", Deny), "why"), voteOn(1, "sam", Allow(Once))} {
		e.Vote.Account = map[string]string{"fay": "uid:1", "sam": "uid:2"}[e.Vote.By]
		r = after(t, r, e)
	}
	if r.Calls[0].Answer != Allow(Once) || r.State != Pending {
		t.Fatalf("before: %s, %+v", r.State, r.Calls)
	}
	c := must(Step(r, Reroute{Asked: r.Asked, EscalateTo: r.EscalateTo, Moved: r.Votes[:1], At: soon}))
	if calls := c.After.Calls; calls[0].Answer != "" || calls[1].Answer != Deny || calls[1].Comment != "why" || len(c.After.Votes) != 2 {
		t.Errorf("after: %+v, %+v", calls, c.After.Votes)
	}
	if len(c.Notices) != 1 || c.Notices[0].To != "fay" || c.Records[0].Detail["dropped"] != "fay" {
		t.Errorf("told: %+v, %+v", c.Notices, c.Records)
	}
}

func TestAReminderIsOnlyForThoseWhoHaveNotAnswered(t *testing.T) {
	r := after(t, escalating(), vote("fay", Allow(Once)))
	if early := must(Step(r, Remind{At: noon.Add(5*time.Minute - 1)})); !early.Empty() {
		t.Errorf("reminded early: %+v", early)
	}
	c := must(Step(r, Remind{At: noon.Add(6 * time.Minute)}))
	if len(c.Notices) != 1 || c.Notices[0].To != "sam" || c.Notices[0].About != AboutWaiting || c.Notices[0].Urgent ||
		len(c.After.Reminders) != 1 || c.After.Revision != r.Revision || c.Empty() {
		t.Errorf("got %+v", c)
	}
	r.HighRisk = true
	c = must(Step(r, Remind{At: noon.Add(14 * time.Minute)}))
	if len(c.Notices) != 1 || !c.Notices[0].Urgent || len(c.After.Reminders) != 0 {
		t.Errorf("after a sleep, of high risk: %+v", c)
	}
}

func TestAnExtensionOnlyEverMovesTheDeadlineLater(t *testing.T) {
	r := escalating()
	c := must(Step(r, Extend{Until: dusk.Add(5 * time.Minute), At: soon}))
	if !c.After.Deadline.Equal(dusk.Add(5*time.Minute)) || c.Records[0].Type != RequestExtended {
		t.Errorf("got %+v", c)
	}
	if late := after(t, c.After, vote("fay", Deny).later(dusk)); late.State != Denied {
		t.Errorf("an answer in the time that was added: %s", late.State)
	}
	if c := must(Step(r, Extend{Until: dusk, At: soon})); !c.Empty() {
		t.Errorf("got %+v", c)
	}
}

// later returns the same answer at another time.
func (e Cast) later(at time.Time) Cast {
	e.Vote.At = at
	return e
}

// The recipients are computed from a row that was read before: an escalation that came in between is not undone.
func TestAnEscalationInTheMeantimeHolds(t *testing.T) {
	r := must(Step(escalating(), Escalate{At: soon})).After
	got := must(Step(r, Reroute{Asked: []string{"sam"}, EscalateTo: []string{"kim"}, At: soon})).After
	if got.State != Pending || !slices.Equal(got.Asked, []string{"sam", "kim"}) || got.EscalateTo != nil {
		t.Errorf("asked are %v, later %v, and it is %s", got.Asked, got.EscalateTo, got.State)
	}
	locked := Reroute{Asked: []string{"sam"}, EscalateTo: []string{"kim"}, Locked: []string{"kim"}, At: soon}
	if got = must(Step(r, locked)).After; slices.Contains(got.Asked, "kim") || !slices.Equal(got.EscalateTo, []string{"kim"}) {
		t.Errorf("kim is locked: asked are %v, later %v", got.Asked, got.EscalateTo)
	}
}

func TestRemindersInAGroup(t *testing.T) {
	r := escalating()
	r.Group, r.HighRisk = "telegram:-1001", true
	want := Notice{Group: r.Group, About: AboutWaiting, Subject: r.ID, Urgent: true, CreatedAt: r.Reminders[0]}
	c := must(Step(r, Remind{At: r.Reminders[0]}))
	if len(c.Notices) != 3 || c.Notices[0].To != "fay" || c.Notices[2] != want {
		t.Errorf("reminded are %+v", c.Notices)
	}
	voted := after(t, after(t, func() Request { r := r; r.HighRisk, r.Quorum = false, 3; return r }(), vote("fay", Allow(Once))),
		vote("sam", Allow(Once)))
	if c := must(Step(voted, Remind{At: r.Reminders[0]})); len(c.Notices) != 0 {
		t.Errorf("nobody has to answer, and reminded are %+v", c.Notices)
	}
	want.CreatedAt = soon
	if c := must(Step(r, Escalate{At: soon})); len(c.Notices) != 1 || c.Notices[0] != want {
		t.Errorf("an escalation tells %+v", c.Notices)
	}
	if c := must(Step(escalating(), Escalate{At: soon})); len(c.Notices) != 0 {
		t.Errorf("an escalation without a place tells %+v", c.Notices)
	}
}

// TestAbsenceIsRecorded: the audit says who is away, until when, and who is asked instead, if anybody is.
func TestAbsenceIsRecorded(t *testing.T) {
	for to, want := range map[string]map[string]string{
		"":    {"person": "fay", "until": "2026-11-21T12:15:00Z"},
		"sam": {"person": "fay", "until": "2026-11-21T12:15:00Z", "to": "sam"},
	} {
		got := Absence{Person: "fay", Until: dusk, To: to}.Record(PersonBack, "terminal", noon)
		if got.Type != PersonBack || !got.At.Equal(noon) || got.Actor != "fay" || got.Via != "terminal" || !maps.Equal(got.Detail, want) {
			t.Errorf("got %+v, want %v", got, want)
		}
	}
}
