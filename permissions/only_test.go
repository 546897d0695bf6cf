package permissions

import (
	"errors"
	"testing"
)

// TestOnlyOneCall: each call of a step has its outcome, as if it had been asked by itself.
func TestOnlyOneCall(t *testing.T) {
	answered := after(t, stepRequest(), voteOn(1, "fay", Allow(Once)), voteOn(2, "fay", Deny), voteOn(3, "fay", Allow(Once)))
	for n, want := range []string{"Tool write_file approved.", "Tool fetch_url denied by the user."} {
		if got := Result(answered.ForCall(answered.Calls[n])).Text; got != want {
			t.Errorf("call %d: %q, want %q", n+1, got, want)
		}
	}
	expired := after(t, stepRequest(), Expire{At: stepRequest().Deadline})
	if got := expired.ForCall(expired.Calls[1]); got.Tool != "fetch_url" || got.Calls != nil || got.State != Expired {
		t.Errorf("one call of what expired is %+v", got)
	}
	single := toolRequest()
	if got := single.ForCall(Call{Tool: "other"}); got.Tool != single.Tool {
		t.Errorf("a request without calls is %+v", got)
	}
}

// TestACallAnsweredInAStepThatExpiredHasItsAnswer: who answered it, when and why are not lost with the step's time.
func TestACallAnsweredInAStepThatExpiredHasItsAnswer(t *testing.T) {
	no := comment(voteOn(2, "sam", Deny), "not this")
	r := after(t, stepRequest(), voteOn(1, "fay", Allow(Once)), no, Expire{At: stepRequest().Deadline})
	allowed, denied, open := r.ForCall(r.Calls[0]), r.ForCall(r.Calls[1]), r.ForCall(r.Calls[2])
	if allowed.State != Expired || allowed.DecidedBy != "fay" || !allowed.DecidedAt.Equal(r.Calls[0].At) || allowed.Scope != (Scope{}) {
		t.Errorf("the call that was allowed is %+v", allowed)
	}
	if denied.State != Denied || denied.DecidedBy != "sam" || denied.Comment != "not this" {
		t.Errorf("the call that was denied is %+v", denied)
	}
	if open.State != Expired || open.DecidedBy != "" {
		t.Errorf("the call that nobody answered is %+v", open)
	}
	want := "Tool write_file approved. It is not run: another call of the step was not answered in time.\n" +
		"Tool fetch_url denied by the user. sam: \"not this\"\n" + Result(open).Text
	if got := Result(r); got.Text != want || !got.Error || got.Exit != ExitNobody {
		t.Errorf("it is told as %+v, want %s", got, want)
	}
}

// TestACallThatIsNotThereIsRefusedByTheNumberOfCalls: the refusal says how many calls there are.
func TestACallThatIsNotThereIsRefusedByTheNumberOfCalls(t *testing.T) {
	for want, r := range map[string]Request{
		"There is no call 9: this request has 3 calls.":                              stepRequest(),
		"This request is not of several calls; answer it without the number of one.": toolRequest(),
	} {
		_, err := Step(r, voteOn(9, "fay", Allow(Once)))
		if got := AsRefusal(ToRefusal(err)); got == nil || got.Text != want || got.Code != CodeInvalid || !errors.Is(err, ErrNoOption) {
			t.Errorf("it is refused as %v, want %s", err, want)
		}
	}
}

// TestEventsForOnceSayThatNobodyMayFollow: an approval that opens no stream is not reported like one that does.
func TestEventsForOnceSayThatNobodyMayFollow(t *testing.T) {
	r := permissionRequest()
	r.Caller, r.Tags, r.State, r.Scope = Caller{Name: "uid:1000", UID: 1000}, []Tag{Events}, Approved, Once
	want := "Permission granted for events access. For once nobody may follow them: ask for a time, or for your session."
	if got := Result(r).Text; got != want {
		t.Errorf("it is told as %s", got)
	}
	r.Scope = Session
	if got := Result(r).Text; got != "Permission granted for events access." {
		t.Errorf("for a session it is told as %s", got)
	}
	r.Caller = AgentCaller("helper")
	if got := Result(r).Text; got != "Permission granted for events access. None of your tools follows them." {
		t.Errorf("an agent of ours, which has no way to follow them, is told %s", got)
	}
	r.Scope, r.DecidedVia = Once, ViaGrant
	if got := Result(r).Text; got != "Permission already granted for events access. None of your tools follows them." {
		t.Errorf("where it is held already, an agent of ours is told %s", got)
	}
}
