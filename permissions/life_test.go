package permissions

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// life is a request with what a simple model expects of it: a ballot for every person and call, instead of votes.
type life struct {
	r        Request
	now      time.Time
	ballots  map[string]map[int]Answer // by person and unit: what counts
	revision int64
	ended    *Request
}

func (l *life) units() []int {
	if len(l.r.Calls) == 0 {
		return []int{0}
	}
	units := []int{}
	for _, c := range l.r.Calls {
		units = append(units, c.N)
	}
	return units
}

// step applies an event and checks the invariants of every event.
func (l *life) step(t *rapid.T, e Transition) (Change, error) {
	c, err := Step(l.r, e)
	switch {
	case err != nil && !c.Empty():
		t.Fatalf("%T refused with %v, and yet it changed %+v", e, err, c)
	case c.After.Revision < l.revision:
		t.Fatalf("%T took revision %d back to %d", e, l.revision, c.After.Revision)
	case c.Settled() && l.ended != nil:
		t.Fatalf("%T ended it a second time", e)
	case c.After.State == Approved && l.r.State == Pending && !e.at().Before(l.r.Deadline):
		t.Fatalf("%T approved after the deadline", e)
	}
	if _, votes := e.(Cast); c.Settled() && !votes && c.After.State == Approved {
		t.Fatalf("%T approved without a vote", e)
	}
	l.r, l.revision = c.After, c.After.Revision
	if c.Settled() {
		end := c.After
		l.ended = &end
	}
	return c, err
}

func (l *life) cast(t *rapid.T) {
	e := Cast{Really: rapid.Bool().Draw(t, "really"), Vote: Vote{
		By: rapid.SampledFrom([]string{"fay", "sam", "kim", "eve"}).Draw(t, "by"), At: l.now,
		Via: rapid.SampledFrom([]string{"terminal", "terminal", "terminal", ViaEditor}).Draw(t, "via"),
		Answer: rapid.SampledFrom([]Answer{
			Allow(Once), Allow(SessionTool), Allow(Session), Allow(For(15 * time.Minute)), Deny,
			Continue, Interrupt, Other, Choose(1), Choose(2), "nonsense",
		}).Draw(t, "answer"),
		Call:    rapid.IntRange(0, 4).Draw(t, "call"),
		Comment: rapid.SampledFrom([]string{"", "because"}).Draw(t, "comment"),
	}}
	before := l.r
	c, err := l.step(t, e)
	_, allows := e.Vote.Answer.Scope()
	switch {
	case err != nil || c.Empty():
		return
	case !slices.Contains(before.Asked, e.Vote.By):
		t.Fatalf("%s was not asked and voted", e.Vote.By)
	case allows && before.HighRisk && !e.Really:
		t.Fatal("high risk with one yes")
	}
	for _, n := range l.units() {
		open := len(before.Calls) == 0 || before.Calls[n-1].Answer == ""
		if !open || (e.Vote.Call != 0 && e.Vote.Call != n) {
			continue
		}
		if l.ballots[e.Vote.By] == nil {
			l.ballots[e.Vote.By] = map[int]Answer{}
		}
		if old := l.ballots[e.Vote.By][n]; old == "" || !allows {
			l.ballots[e.Vote.By][n] = e.Vote.Answer
		}
	}
}

func (l *life) reroute(t *rapid.T) {
	people := []string{"fay", "sam", "kim"}
	asked := slices.DeleteFunc(people, func(string) bool { return rapid.IntRange(0, 3).Draw(t, "leaves") == 0 })
	before := l.r
	if _, err := l.step(t, Reroute{Asked: asked, At: l.now}); err != nil {
		return
	}
	for by := range l.ballots {
		if slices.Contains(asked, by) {
			continue
		}
		for _, n := range l.units() { // a vote that decided a call stays
			if len(before.Calls) == 0 || before.Calls[n-1].Answer == "" {
				delete(l.ballots[by], n)
			}
		}
	}
}

// verdict is the result of the ballots on a unit.
func (l *life) verdict(unit int) (a Answer) {
	people := 0
	var narrowest Scope
	for _, ballot := range l.ballots {
		s, ok := ballot[unit].Scope()
		switch {
		case ballot[unit] == Deny:
			return Deny
		case ok:
			people++
			narrowest = Narrowest(narrowest, s)
		}
	}
	if people >= l.r.Quorum {
		return Allow(narrowest)
	}
	return ""
}

// check checks the invariants after every event.
func (l *life) check(t *rapid.T) {
	if l.ended != nil && l.r.State != l.ended.State {
		t.Fatalf("it was %s and is %s", l.ended.State, l.r.State)
	}
	if l.ended != nil && (l.r.Answer != l.ended.Answer || l.r.Scope != l.ended.Scope ||
		l.r.DecidedBy != l.ended.DecidedBy || !l.r.DecidedAt.Equal(l.ended.DecidedAt) ||
		!reflect.DeepEqual(l.r.Votes, l.ended.Votes)) {
		t.Fatal("the decision changed after the end")
	}
	if l.r.Answer == Other && (l.r.Kind != KindClarification || l.r.State != Answered || l.r.Comment == "") {
		t.Fatalf("%s of kind %s is answered in the words %q", l.r.State, l.r.Kind, l.r.Comment)
	}
	if l.r.DecidedVia == ViaEditor && (l.r.State != Answered || l.r.DecidedBy != "" || l.r.Scope != (Scope{}) ||
		(l.r.Kind != KindClarification && l.r.Mode != ModeContinue)) {
		t.Fatalf("%s of kind %s %s by way of an editor, by %q", l.r.State, l.r.Kind, l.r.Mode, l.r.DecidedBy)
	}
	switch l.r.State {
	case Pending:
		if l.r.Kind == KindPermission || l.r.Kind == KindTool {
			l.checkUnits(t)
		}
	case Approved:
		l.checkUnits(t)
		if l.r.DecidedBy == "" || l.r.Scope == (Scope{}) || !l.r.DecidedAt.Before(l.r.Deadline) {
			t.Fatalf("approved by %q within %v at %s", l.r.DecidedBy, l.r.Scope, l.r.DecidedAt)
		}
	case Denied:
		if l.r.DecidedVia == ViaRule {
			break
		}
		l.checkUnits(t)
		if l.r.DecidedBy == "" {
			t.Fatal("nobody denied it")
		}
	case Expired, Cancelled, Undeliverable:
		if l.r.Answer != "" || l.r.Scope != (Scope{}) {
			t.Fatalf("%s with %q", l.r.State, l.r.Answer)
		}
	}
	if (!l.r.UsedAt.IsZero() || !l.r.VoidAt.IsZero()) && l.r.State != Approved {
		t.Fatalf("%s and used or taken back", l.r.State)
	}
	if !l.r.UsedAt.IsZero() && !l.r.VoidAt.IsZero() {
		t.Fatal("used and taken back")
	}
	if o := Result(l.r); o.Text == "" || (o.Exit == ExitYes && o.Error) {
		t.Fatalf("told as %+v", o)
	}
}

// checkUnits compares the row with the ballots.
func (l *life) checkUnits(t *rapid.T) {
	for _, n := range l.units() {
		got := l.r.Answer
		if n > 0 {
			got = l.r.Calls[n-1].Answer
		}
		if want := l.verdict(n); got != want && (n == 0 || got == "" || want != "") {
			t.Fatalf("unit %d is %q, the ballots say %q", n, got, want)
		}
	}
}

func TestLifeOfARequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{now: noon, ballots: map[string]map[int]Answer{}}
		l.r = kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")].make()
		l.r.Asked, l.r.Quorum = []string{"fay", "sam", "kim"}, rapid.IntRange(1, 3).Draw(t, "quorum")
		l.r.HighRisk = rapid.IntRange(0, 4).Draw(t, "high risk") == 0
		if rapid.Bool().Draw(t, "keyed") {
			l.r.Key = "k"
		}
		l.revision = l.r.Revision
		simple := func(draw func() Transition) func(*rapid.T) {
			return func(t *rapid.T) { _, _ = l.step(t, draw()) }
		}
		var used []string // the calls that were handed the approval
		t.Repeat(map[string]func(*rapid.T){
			"":       l.check,
			"cast":   l.cast,
			"cast 2": l.cast, // people answer more often than anything else happens
			"cast 3": l.cast,
			"wait": func(t *rapid.T) {
				l.now = l.now.Add(time.Duration(rapid.IntRange(-60, 400).Draw(t, "seconds")) * time.Second)
			},
			"reroute": l.reroute,
			"default": simple(func() Transition { return Default{By: "fay", Via: "terminal", At: l.now} }),
			"reply": simple(func() Transition {
				answers := append([]Option{{ID: Allow(Once)}, {ID: Deny}, {ID: Other}}, l.r.Options...)
				return Reply{Answer: rapid.SampledFrom(answers).Draw(t, "reply").ID, At: l.now}
			}),
			"withdraw": simple(func() Transition { return Withdraw{By: "fay", At: l.now} }),
			"forbid":   simple(func() Transition { return Forbid{Rule: "rule 3", At: l.now} }),
			"give up":  simple(func() Transition { return GiveUp{Reason: "nobody", At: l.now} }),
			"collect":  simple(func() Transition { return Collect{At: l.now} }),
			"void":     simple(func() Transition { return Void{By: "fay", At: l.now} }),
			"lapse":    simple(func() Transition { return Lapse{At: l.now} }),
			"leave":    simple(func() Transition { return Leave{At: l.now} }),
			"return":   simple(func() Transition { return Return{At: l.now} }),
			"expire": func(t *rapid.T) {
				early := l.r.State == Pending && l.now.Before(l.r.Deadline)
				if _, err := l.step(t, Expire{At: l.now}); early && !errors.Is(err, ErrNotDue) {
					t.Fatalf("expired early: %v", err)
				}
			},
			"use": func(t *rapid.T) {
				call := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "call")
				if _, err := l.step(t, Use{Call: call, At: l.now}); err != nil {
					return
				}
				if l.r.Scope == Once && l.r.Key == "" && len(used) > 0 && (call == "" || !slices.Contains(used, call)) {
					t.Fatalf("approved once, used by %q and then by %q", used, call)
				}
				used = append(used, call)
			},
		})
	})
}
