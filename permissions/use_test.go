package permissions

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// approved is a request that fay has allowed within s.
func approved(t *testing.T, r Request, s Scope) Request { return after(t, r, vote("fay", Allow(s))) }

func keyed(r Request) Request {
	r.Key = "k"
	return r
}

func TestUse(t *testing.T) {
	once, session := approved(t, toolRequest(), Once), approved(t, toolRequest(), Session)
	withKey := approved(t, keyed(toolRequest()), Once)
	use := func(call string) Use { return Use{Call: call, At: soon} }
	for _, c := range []struct {
		name   string
		r      Request
		events []Transition
		want   []error
		used   string // the call that used it
	}{
		{"once", once, []Transition{use("a")}, []error{nil}, "a"},
		{"once by two calls", once, []Transition{use("a"), use("b")}, []error{nil, ErrNoUse}, "a"},
		{"once, the same call again", once, []Transition{use("a"), use("a")}, []error{nil, nil}, "a"},
		{"once, calls without a name", once, []Transition{use(""), use("")}, []error{nil, ErrNoUse}, ""},
		{"once, a call without a name after one with", once, []Transition{use("a"), use("")}, []error{nil, ErrNoUse}, "a"},
		{"with a key", withKey, []Transition{use("a"), use("b"), use("")}, []error{nil, nil, nil}, "a"},
		{"wider than once", session, []Transition{use("a"), use("b"), use("")}, []error{nil, nil, nil}, "a"},
		{"taken back", once, []Transition{Void{At: soon}, use("a")}, []error{nil, ErrNoUse}, ""},
		{"taken back, with a key", withKey, []Transition{Void{At: soon}, use("a")}, []error{nil, ErrNoUse}, ""},
		{"taken back too late", once, []Transition{use("a"), Void{At: soon}}, []error{nil, ErrNoUse}, "a"},
		{"taken back twice", once, []Transition{Void{At: soon}, Void{At: soon}}, []error{nil, ErrNoUse}, ""},
		{"taken back after reading", once, []Transition{Collect{At: soon}, Void{At: soon}}, []error{nil, nil}, ""},
		{"reading uses nothing", once, []Transition{Collect{At: soon}, Collect{At: soon}, use("a")}, []error{nil, nil, nil}, "a"},
		{"not collected", once, []Transition{Lapse{At: soon}, use("a")}, []error{nil, ErrNoUse}, ""},
		{"not collected, with a key", withKey, []Transition{Lapse{At: soon}, use("a")}, []error{nil, nil}, "a"},
		{"lapsed once", once, []Transition{Lapse{At: soon}, Lapse{At: soon}}, []error{nil, ErrNotDue}, ""},
		{"collected does not lapse", once, []Transition{Collect{At: soon}, Lapse{At: soon}}, []error{nil, ErrNotDue}, ""},
		{"used does not lapse", once, []Transition{use("a"), Lapse{At: soon}}, []error{nil, ErrNotDue}, "a"},
		{"taken back does not lapse", once, []Transition{Void{At: soon}, Lapse{At: soon}}, []error{nil, ErrNotDue}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.r
			for i, e := range c.events {
				change, err := Step(r, e)
				if !errors.Is(err, c.want[i]) {
					t.Fatalf("%d: %T: got %v, want %v", i, e, err, c.want[i])
				}
				r = change.After
			}
			if r.UsedCall != c.used {
				t.Errorf("used by %q, want %q", r.UsedCall, c.used)
			}
			if r.State != Approved {
				t.Errorf("it is %s now", r.State)
			}
		})
	}
}

func TestUseCollectAndLapse(t *testing.T) {
	r := approved(t, toolRequest(), Once)
	use, err := Step(r, Use{Call: "a", At: soon})
	if err != nil || use.After.UsedAt != soon || use.After.CollectedAt != soon || use.After.Revision != r.Revision+1 ||
		use.Records[0].Type != RequestUsed || use.Records[0].Actor != "agent:scribe" || use.Voided() {
		t.Errorf("use: %v, %+v", err, use)
	}
	if c, err := Step(use.After, Use{Call: "a", At: dusk}); err != nil || !c.Empty() || c.After.UsedAt != soon {
		t.Errorf("the same call again: %v, %+v", err, c)
	}
	collect, err := Step(r, Collect{At: soon})
	if err != nil || collect.Empty() || collect.After.CollectedAt != soon || collect.After.Revision != r.Revision {
		t.Errorf("collect: %v, %+v", err, collect)
	}
	if c, err := Step(collect.After, Collect{At: dusk}); err != nil || !c.Empty() || c.After.CollectedAt != soon {
		t.Errorf("collect again: %v, %+v", err, c)
	}
	void, err := Step(r, Void{By: "sam", Via: "cli", At: soon})
	if err != nil || !void.Voided() || void.After.VoidAt != soon || void.After.Revision != r.Revision+1 ||
		void.Records[0].Type != RequestVoided || void.Records[0].Actor != "sam" || void.Records[0].Via != "cli" {
		t.Errorf("void: %v, %+v", err, void)
	}
	lapse, err := Step(r, Lapse{At: soon})
	if err != nil || lapse.After.LapsedAt != soon || lapse.After.Revision != r.Revision+1 ||
		lapse.Records[0].Type != RequestLapsed {
		t.Errorf("lapse: %v, %+v", err, lapse)
	}
	if c, err := Step(toolRequest(), Collect{At: soon}); err != nil || !c.Empty() {
		t.Errorf("collect what is pending: %v, %+v", err, c)
	}
}

func TestLeaveAndReturn(t *testing.T) {
	r := theirs(toolRequest())
	for _, step := range []struct {
		e        Transition
		revision int64
		left     time.Time
	}{
		{Return{At: soon}, 1, time.Time{}}, // somebody waits already
		{Leave{At: soon}, 2, soon},
		{Leave{At: dusk}, 2, soon},
		{Return{At: dusk}, 3, time.Time{}},
		{Leave{At: dusk}, 4, dusk}, // leaving has no deadline
	} {
		c, err := Step(r, step.e)
		if err != nil || c.After.Revision != step.revision || c.After.LeftAt != step.left || len(c.Records) > 0 {
			t.Fatalf("%T: %v, %+v", step.e, err, c.After)
		}
		if c.Empty() != (step.revision == r.Revision) {
			t.Errorf("%T: empty %v", step.e, c.Empty())
		}
		r = c.After
	}
	settled := after(t, r, Expire{At: dusk})
	if c, err := Step(settled, Return{At: dusk}); err != nil || !c.Empty() {
		t.Errorf("return to what is over: %v, %+v", err, c)
	}
}

func TestReroute(t *testing.T) {
	r := permissionRequest()
	r.Asked, r.Quorum = []string{"fay", "sam", "kim"}, 2
	r = after(t, r, vote("fay", Allow(Once)))
	c, err := Step(r, Reroute{Asked: []string{"sam", "kim", "lee"}, At: soon})
	if err != nil || len(c.After.Votes) != 0 || c.After.State != Pending || c.After.Revision != r.Revision+1 ||
		c.Records[0].Type != RequestRerouted || !slices.Equal(c.After.Asked, []string{"sam", "kim", "lee"}) {
		t.Fatalf("%v, %+v", err, c)
	}
	if _, err := Step(c.After, vote("fay", Deny)); !errors.Is(err, ErrNotAsked) {
		t.Errorf("who was removed votes: %v", err)
	}
	if got := after(t, c.After, vote("lee", Allow(Once))); got.State != Pending {
		t.Error("the dropped vote still counts")
	}
	if got := after(t, c.After, vote("lee", Allow(Once)), vote("sam", Allow(Once))); got.State != Approved {
		t.Errorf("two of the new people left it %s", got.State)
	}
	back := after(t, c.After, Reroute{Asked: []string{"fay", "sam"}, At: soon}, vote("sam", Allow(Once)))
	if back.State != Pending {
		t.Error("who came back still has the old vote")
	}
	if got := after(t, back, vote("fay", Allow(Session))); got.State != Approved || got.Scope != Once {
		t.Errorf("who came back votes anew: %s, %v", got.State, got.Scope)
	}
}

// A vote that decided a call stays when its person is removed.
func TestRerouteKeepsDecisiveVotes(t *testing.T) {
	r := after(t, stepRequest(), voteOn(1, "fay", Deny), Reroute{Asked: []string{"sam"}, At: soon})
	if len(r.Votes) != 1 || r.Calls[0].Answer != Deny {
		t.Errorf("got %+v, %+v", r.Votes, r.Calls)
	}
	if r = after(t, r, vote("sam", Allow(Once))); r.State != Approved || r.Calls[0].Answer != Deny {
		t.Errorf("got %s, %+v", r.State, r.Calls)
	}
}

// handing is fay's answer, with a use of the approval.
func handing(a Answer, call string) Cast {
	c := vote("fay", a)
	c.Use = &Use{Call: call, At: c.Vote.At}
	return c
}

// A vote that approves is one change with the use of the approval, and any other vote uses nothing.
func TestAnApprovingVoteUsesTheApproval(t *testing.T) {
	two := toolRequest()
	two.Asked, two.Quorum = []string{"fay", "sam"}, 2
	c, err := Step(toolRequest(), handing(Allow(Once), "a"))
	if err != nil || !c.ApprovedAndUsed() || c.After.State != Approved || c.After.UsedCall != "a" || c.After.UsedAt.IsZero() ||
		c.After.CollectedAt.IsZero() || c.After.Revision != c.Before.Revision+1 {
		t.Fatalf("%v, %+v", err, c.After)
	}
	types := []Type{c.Records[0].Type, c.Records[len(c.Records)-1].Type}
	if want := []Type{RequestSettled, RequestUsed}; !slices.Equal(types, want) {
		t.Errorf("the audit has %v, want %v", types, want)
	}
	if _, err := Step(c.After, Use{Call: "b", At: soon}); !errors.Is(err, ErrNoUse) {
		t.Errorf("another call: %v", err)
	}
	for name, c := range map[string]Change{
		"denied":       must(Step(toolRequest(), handing(Deny, "a"))),
		"below quorum": must(Step(two, handing(Allow(Once), "a"))),
		"chosen":       must(Step(clarification(), handing(Choose(1), "a"))),
	} {
		if c.ApprovedAndUsed() || !c.After.UsedAt.IsZero() {
			t.Errorf("%s: it was used", name)
		}
	}
}
