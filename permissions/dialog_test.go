package permissions

import (
	"slices"
	"testing"
)

// Events for agents' front ends are written in the commit that causes them, and only then.
func TestDialogsAndAppliedPermissionsAreTold(t *testing.T) {
	settled := func(more ...Type) []Type { return append([]Type{RequestSettled}, more...) }
	own := vote("fay", Other)
	own.Vote.Comment = "neither"
	for _, c := range []struct {
		name string
		r    Request
		e    Transition
		want []Type
	}{
		{"an option", clarification(), vote("fay", Choose(2)), settled(DialogResponded)},
		{"own words", clarification(), own, settled(DialogResponded)},
		{"in the editor", clarification(), Reply{Answer: Choose(2), At: soon}, settled(DialogResponded)},
		{"a pause goes on in the editor", pauseRequest(), Reply{Answer: Continue, At: soon}, settled()},
		{"three tries", clarification(), Default{By: "fay", Via: "terminal", At: soon}, settled(DialogResponded)},
		{"nobody", clarification(), Expire{At: dusk}, settled(DialogTimeout)},
		{"withdrawn", clarification(), Withdraw{At: soon}, settled(DialogResponded)},
		{"undeliverable", clarification(), GiveUp{At: soon}, settled(DialogResponded)},
		{"nobody is left", clarification(), Reroute{At: soon}, []Type{RequestRerouted, RequestSettled, DialogResponded}},
		{"a pause goes on", pauseRequest(), vote("fay", Continue), settled()},
		{"a pause that nobody saw", pauseRequest(), Expire{At: dusk}, settled()},
		{"used tags", approved(t, permissionRequest(), Once), Use{Call: "a", At: soon}, []Type{RequestUsed, PermissionApplied}},
		{"a used call", approved(t, toolRequest(), Once), Use{Call: "a", At: soon}, []Type{RequestUsed}},
	} {
		change, err := Step(c.r, c.e)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []Type
		for _, r := range change.Records {
			got = append(got, r.Type)
			if r.Request != c.r.ID || r.At != c.e.at() || r.Detail["digest"] != c.r.Digest.String() {
				t.Errorf("%s: %+v", c.name, r)
			}
			reason, is := r.Detail["reason"]
			if ended := change.After.State; is != (r.Type == DialogResponded && ended != Answered) || is && reason != string(ended) {
				t.Errorf("%s: %s with reason %q", c.name, r.Type, reason)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: told %v, want %v", c.name, got, c.want)
		}
	}
}

// A new request is recorded with its dialog, and with its end if it needed no answer.
func TestWhatIsToldOfANewRequest(t *testing.T) {
	settled := func(r Request, s State) Request {
		r.State, r.DecidedAt = s, noon
		return r
	}
	for _, c := range []struct {
		name string
		r    Request
		want []Type
	}{
		{"a question", clarification(), []Type{RequestCreated, DialogRequested}},
		{"a question to nobody", settled(clarification(), Undeliverable),
			[]Type{RequestCreated, DialogRequested, RequestSettled, DialogResponded}},
		{"tags", permissionRequest(), []Type{RequestCreated}},
		{"tags held already", settled(permissionRequest(), Approved), []Type{RequestCreated, RequestSettled}},
	} {
		var got []Type
		for _, r := range Opened(c.r) {
			got = append(got, r.Type)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: told %v, want %v", c.name, got, c.want)
		}
	}
}

// An agent of ours rests, and is never recorded as having left.
func TestOurAgentsNeverLeave(t *testing.T) {
	for _, e := range []Transition{Leave{At: soon}, Return{At: soon}} {
		if c, err := Step(toolRequest(), e); err != nil || !c.Empty() || !c.After.LeftAt.IsZero() {
			t.Errorf("%T: %v, %+v", e, err, c.After)
		}
	}
}

func TestAgentCallers(t *testing.T) {
	s := AgentSession{Agent: "helper/research"}
	if c := s.Caller(); c.Name != "agent:helper/research" || !c.IsOurs() || c.ProvenName() != "helper/research" || c.UID != NoUID {
		t.Errorf("%+v", c)
	}
}
