package permissions

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"
)

// The kinds of request, in the order of the columns below.
var kinds = []struct {
	name string
	make func() Request
}{
	{"permission", permissionRequest}, {"tool", toolRequest}, {"step", stepRequest},
	{"pause", pauseRequest}, {"confirm", confirmRequest}, {"clarification", clarification},
}

var (
	soon  = noon.Add(time.Minute)
	every = func(want any) [6]any { return [6]any{want, want, want, want, want, want} }
)

// onPending says what every event does to a pending request of every kind: a state, or an error.
var onPending = []struct {
	name string
	e    Transition
	want [6]any // permission, tool, step, pause, confirm, clarification
}{
	{"allow", vote("fay", Allow(Once)), [6]any{Approved, Approved, Approved, ErrNoOption, Approved, ErrNoOption}},
	{"deny", vote("sam", Deny), [6]any{Denied, Denied, Denied, ErrNoOption, Denied, ErrNoOption}},
	{"choose", vote("fay", Choose(2)),
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, Answered}},
	{"answer in words", comment(vote("fay", Other), "look at staging first"),
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, Answered}},
	{"answer in no words", vote("fay", Other),
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrWords}},
	{"answer in words by a stranger", comment(vote("eve", Other), "all of it"), every(ErrNotAsked)},
	{"answer in words for a call", comment(voteOn(1, "fay", Other), "all of it"), every(ErrNoOption)},
	{"answer in words late", Cast{Vote: Vote{By: "fay", Answer: Other, Comment: "now", At: dusk}}, every(ErrLate)},
	{"choose what is not there", vote("fay", Choose(4)), every(ErrNoOption)},
	{"continue", vote("fay", Continue),
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, Answered, ErrNoOption, ErrNoOption}},
	{"interrupt", vote("fay", Interrupt),
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, Answered, Answered, ErrNoOption}},
	{"no answer", vote("fay", ""), every(ErrNoOption)},
	{"allow what is not offered", vote("fay", Allow(For(time.Hour))), every(ErrNoOption)},
	{"allow by a stranger", vote("eve", Allow(Once)), every(ErrNotAsked)},
	{"deny by nobody", vote("", Deny), every(ErrNotAsked)},
	{"allow one call", voteOn(2, "fay", Allow(Once)),
		[6]any{ErrNoOption, ErrNoOption, Pending, ErrNoOption, ErrNoOption, ErrNoOption}},
	{"deny a call that is not there", voteOn(4, "fay", Deny), every(ErrNoOption)},
	{"choose for a call", voteOn(1, "fay", Choose(1)), every(ErrNoOption)},
	{"default", Default{By: "fay", Via: "terminal", At: soon},
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, Answered}},
	{"default by a stranger", Default{By: "eve", At: soon},
		[6]any{ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrNoOption, ErrNotAsked}},
	{"reply", Reply{Answer: Choose(2), At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, ErrNoOption, ErrAsker, Answered}},
	{"reply that goes on", Reply{Answer: Continue, At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, Answered, ErrAsker, ErrNoOption}},
	{"reply that interrupts", Reply{Answer: Interrupt, At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, Answered, ErrAsker, ErrNoOption}},
	{"reply that allows", Reply{Answer: Allow(Once), At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, ErrNoOption, ErrAsker, ErrNoOption}},
	{"reply that denies", Reply{Answer: Deny, At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, ErrNoOption, ErrAsker, ErrNoOption}},
	{"reply in words", Reply{Answer: Other, At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, ErrNoOption, ErrAsker, ErrNoOption}},
	{"reply with what is not there", Reply{Answer: Choose(4), At: soon},
		[6]any{ErrAsker, ErrAsker, ErrAsker, ErrNoOption, ErrAsker, ErrNoOption}},
	{"reply late", Reply{Answer: Choose(1), At: dusk}, every(ErrLate)},
	{"withdraw", Withdraw{By: "uid:1000", Via: "cli", At: soon}, every(Cancelled)},
	{"expire early", Expire{At: dusk.Add(-1)}, every(ErrNotDue)},
	{"expire", Expire{At: dusk}, [6]any{Expired, Expired, Expired, Expired, Expired, Answered}},
	{"give up", GiveUp{Reason: "nobody is here", At: soon}, every(Undeliverable)},
	{"expire by the time that has passed", Expire{At: soon, Spent: true},
		[6]any{Expired, Expired, Expired, Expired, Expired, Answered}},
	{"forbid", Forbid{Rule: "rule 3", At: soon}, [6]any{ErrNoOption, Denied, Denied, ErrNoOption, ErrNoOption, ErrNoOption}},
	{"give up on others", GiveUp{Reason: "nobody is here", Asked: []string{"kim"}, At: soon}, every(Pending)},
	{"reroute", Reroute{Asked: []string{"kim"}, At: soon}, every(Pending)},
	{"reroute to nobody", Reroute{At: soon}, every(Undeliverable)},
	{"reroute to the same", Reroute{Asked: []string{"fay", "sam"}, At: soon}, every(Pending)},
	{"escalate to nobody", Escalate{At: soon}, every(Pending)},
	{"extend", Extend{Until: dusk.Add(time.Minute), At: soon}, every(Pending)},
	{"extend to an earlier time", Extend{Until: soon, At: soon}, every(Pending)},
	{"extend late", Extend{Until: dusk.Add(time.Minute), At: dusk}, every(ErrLate)},
	{"remind of nothing", Remind{At: soon}, every(Pending)},

	{"allow late", Cast{Vote: Vote{By: "fay", Answer: Allow(Once), At: dusk}}, every(ErrLate)},
	{"deny late", Cast{Vote: Vote{By: "fay", Answer: Deny, At: dusk.Add(time.Hour)}}, every(ErrLate)},
	{"default late", Default{By: "fay", At: dusk}, every(ErrLate)},
	{"withdraw late", Withdraw{At: dusk}, every(ErrLate)},
	{"give up late", GiveUp{At: dusk}, every(ErrLate)},
	{"escalate late", Escalate{At: dusk}, every(ErrLate)},
	{"remind late", Remind{At: dusk}, every(ErrLate)},
	{"reroute late", Reroute{Asked: []string{"kim"}, At: dusk}, every(ErrLate)},
}

// always says what the events do that do not decide: to a pending request, to an approved one, to any other.
var always = []struct {
	name                     string
	e                        Transition
	pending, approved, other any // nil: the state stays
}{
	{"use", Use{Call: "c", At: soon}, ErrNoUse, Approved, ErrNoUse},
	{"collect", Collect{At: soon}, Pending, Approved, nil},
	{"void", Void{By: "fay", Via: "cli", At: soon}, ErrNoUse, Approved, ErrNoUse},
	{"give a rule", Give{Grant: "g", Rule: "{}", By: "fay", Via: "cli", At: soon}, ErrNoUse, ErrNoOption, ErrNoUse}, // no card offered it
	{"lapse", Lapse{At: soon}, ErrNotDue, Approved, ErrNotDue},
	{"leave", Leave{At: soon}, Pending, Approved, nil},
	{"return", Return{At: soon}, Pending, Approved, nil},
	{"nothing", nil, ErrEvent, ErrEvent, ErrEvent},
	{"a pointer to nothing", (*Cast)(nil), ErrEvent, ErrEvent, ErrEvent},
	{"a pointer", &Withdraw{At: soon}, ErrEvent, ErrEvent, ErrEvent},
	{"allow by way of an editor", Cast{Vote: Vote{By: "fay", Via: ViaEditor, Answer: Allow(Once), At: soon}}, ErrAsker, ErrAsker, ErrAsker},
	{"choose by way of an editor", Cast{Vote: Vote{By: "fay", Via: ViaEditor, Answer: Choose(1), At: soon}}, ErrAsker, ErrAsker, ErrAsker},
	{"default by way of an editor", Default{By: "fay", Via: ViaEditor, At: soon}, ErrAsker, ErrAsker, ErrAsker},
	{"withdraw by way of an editor", Withdraw{By: "fay", Via: ViaEditor, At: soon}, ErrAsker, ErrAsker, ErrAsker},
	{"give by way of an editor", Give{By: "fay", Via: ViaEditor, At: soon}, ErrAsker, ErrAsker, ErrAsker},
	{"void by way of an editor", Void{By: "fay", Via: ViaEditor, At: soon}, ErrAsker, ErrAsker, ErrAsker},
	{"a reply without a time", Reply{Answer: Choose(1)}, ErrEvent, ErrEvent, ErrEvent},
	{"an event without a time", Withdraw{By: "fay"}, ErrEvent, ErrEvent, ErrEvent},
	{"a use without a time", Use{}, ErrEvent, ErrEvent, ErrEvent},
	{"a vote without a time", Cast{Vote: Vote{By: "fay", Answer: Allow(Session)}}, ErrEvent, ErrEvent, ErrEvent},
}

var settledStates = []State{Approved, Denied, Answered, Expired, Cancelled, Undeliverable, "", "other"}

func TestStepOnEveryStateEventAndKind(t *testing.T) {
	for i, kind := range kinds {
		for _, row := range onPending {
			t.Run("pending/"+kind.name+"/"+row.name, func(t *testing.T) { checkStep(t, kind.make(), row.e, row.want[i]) })
			for _, s := range settledStates {
				t.Run(string(s)+"/"+kind.name+"/"+row.name, func(t *testing.T) {
					r := kind.make()
					r.State, r.DecidedBy, r.DecidedAt = s, "fay", soon
					checkStep(t, r, row.e, ErrSettled)
				})
			}
		}
		for _, row := range always {
			t.Run("pending/"+kind.name+"/"+row.name, func(t *testing.T) { checkStep(t, kind.make(), row.e, row.pending) })
			for _, s := range settledStates {
				t.Run(string(s)+"/"+kind.name+"/"+row.name, func(t *testing.T) {
					r := kind.make()
					r.State, r.DecidedBy, r.DecidedAt, r.Scope = s, "fay", soon, Once
					want := row.other
					if s == Approved {
						want = row.approved
					}
					checkStep(t, r, row.e, want)
				})
			}
		}
	}
}

// checkStep checks one cell of the table, and the invariants of all.
func checkStep(t *testing.T, r Request, e Transition, want any) {
	t.Helper()
	before := deepCopy(r)
	c, err := Step(r, e)
	again, _ := Step(r, e)
	switch {
	case !reflect.DeepEqual(r, before) || !reflect.DeepEqual(c.Before, before):
		t.Fatal("the request was changed in place")
	case !reflect.DeepEqual(c, again):
		t.Fatalf("the same event did two things: %+v and %+v", c, again)
	case c.After.Revision < r.Revision || c.After.Revision > r.Revision+1:
		t.Fatalf("revision %d became %d", r.Revision, c.After.Revision)
	}
	if wanted, ok := want.(error); ok {
		if !errors.Is(err, wanted) {
			t.Fatalf("got %v, %s; want %v", err, c.After.State, wanted)
		}
		if !c.Empty() || !reflect.DeepEqual(c.After, before) || c.Grants != nil {
			t.Fatalf("refused, and yet it changed something: %+v", c)
		}
		return
	}
	state := r.State
	if want != nil {
		state = want.(State)
	}
	if err != nil || c.After.State != state {
		t.Fatalf("got %s, %v; want %s", c.After.State, err, state)
	}
	if c.Settled() != (r.State == Pending && state != Pending) {
		t.Errorf("settled: %v", c.Settled())
	}
	settles := func(r Record) bool { return r.Type == RequestSettled }
	if c.Settled() && (c.After.DecidedAt != e.at() || !slices.ContainsFunc(c.Records, settles)) {
		t.Errorf("settled at %s with %+v", c.After.DecidedAt, c.Records)
	}
	for _, rec := range c.Records {
		if rec.Request != r.ID || rec.At != e.at() || rec.Detail["digest"] != r.Digest.String() {
			t.Errorf("the record does not say what it is about: %+v", rec)
		}
	}
}

func deepCopy(r Request) Request {
	r.Tags, r.Calls, r.Choices = slices.Clone(r.Tags), slices.Clone(r.Calls), slices.Clone(r.Choices)
	r.Options, r.Asked, r.Votes = slices.Clone(r.Options), slices.Clone(r.Asked), slices.Clone(r.Votes)
	return r
}

// What an ending leaves in the row.
func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Request
		e    Transition
		want Request // only the fields that tell
	}{
		{"allowed", permissionRequest(), vote("fay", Allow(Session)),
			Request{State: Approved, Answer: Allow(Session), Scope: Session, DecidedBy: "fay", DecidedVia: "terminal"}},
		{"denied", permissionRequest(), comment(vote("sam", Deny), "keep old/"),
			Request{State: Denied, Answer: Deny, Comment: "keep old/", DecidedBy: "sam", DecidedVia: "terminal"}},
		{"chosen", clarification(), comment(vote("fay", Choose(3)), "or nothing"),
			Request{State: Answered, Answer: Choose(3), Comment: "or nothing", DecidedBy: "fay", DecidedVia: "terminal"}},
		{"answered in words", clarification(), comment(vote("sam", Other), "\tlook at staging first\n"),
			Request{State: Answered, Answer: Other, Comment: "look at staging first", DecidedBy: "sam", DecidedVia: "terminal"}},
		{"chosen in the editor", clarification(), Reply{Answer: Choose(2), At: soon},
			Request{State: Answered, Answer: Choose(2), DecidedVia: ViaEditor}},
		{"gone on in the editor", pauseRequest(), Reply{Answer: Continue, At: soon},
			Request{State: Answered, Answer: Continue, DecidedVia: ViaEditor}},
		{"silence on a question", clarification(), Expire{At: dusk},
			Request{State: Answered, Answer: Choose(1), TimedOut: true, DecidedVia: ViaTimeout}},
		{"three wrong tries", clarification(), Default{By: "fay", Via: "terminal", At: soon},
			Request{State: Answered, Answer: Choose(1), Defaulted: true, DecidedVia: "terminal"}},
		{"silence on a permission", permissionRequest(), Expire{At: dusk.Add(time.Hour)},
			Request{State: Expired, DecidedVia: ViaTimeout}},
		{"silence on a confirm", confirmRequest(), Expire{At: dusk}, Request{State: Expired, DecidedVia: ViaTimeout}},
		{"withdrawn", toolRequest(), Withdraw{By: "fay", Via: "cli", At: soon},
			Request{State: Cancelled, DecidedBy: "fay", DecidedVia: "cli"}},
		{"undeliverable", toolRequest(), GiveUp{Reason: "fay has blocked the bot", At: soon},
			Request{State: Undeliverable, Failure: "fay has blocked the bot"}},
		{"forbidden", toolRequest(), Forbid{Rule: "rule 3", At: soon},
			Request{State: Denied, Failure: "rule 3", DecidedVia: ViaRule}},
	} {
		t.Run("D2/"+c.name, func(t *testing.T) {
			got := after(t, c.r, c.e)
			c.want.DecidedAt = c.e.at()
			told := Request{
				State: got.State, Answer: got.Answer, Scope: got.Scope, Comment: got.Comment, Failure: got.Failure,
				DecidedBy: got.DecidedBy, DecidedVia: got.DecidedVia, DecidedAt: got.DecidedAt,
				TimedOut: got.TimedOut, Defaulted: got.Defaulted,
			}
			if !reflect.DeepEqual(told, c.want) {
				t.Errorf("%s: got %+v, want %+v", c.name, told, c.want)
			}
		})
	}
}

// An answer through an editor is nobody's: the audit names the asker, and there is no vote.
func TestAReplyIsTheAskers(t *testing.T) {
	for _, r := range []Request{clarification(), pauseRequest()} {
		c, err := Step(r, Reply{Answer: r.Options[0].ID, At: soon})
		if err != nil || c.Vote != nil || len(c.After.Votes) > 0 || len(c.Grants) > 0 || c.After.DecidedBy != "" {
			t.Errorf("%s: %v, %+v", r.Kind, err, c)
		}
		for _, rec := range c.Records {
			if rec.Actor != r.Caller.Name || rec.Via != ViaEditor {
				t.Errorf("%s: %+v", r.Kind, rec)
			}
		}
		if got := Result(c.After); got.Error || got.Exit != ExitYes {
			t.Errorf("%s: told as %+v", r.Kind, got)
		}
	}
}

func comment(c Cast, text string) Cast {
	c.Vote.Comment = text
	return c
}
