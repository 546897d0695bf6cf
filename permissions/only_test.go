package permissions

import "testing"

// TestOnlyOneCall: each call of a step is told what became of it, as if it had been asked by itself.
func TestOnlyOneCall(t *testing.T) {
	answered := after(t, stepRequest(), voteOn(1, "fay", Allow(Once)), voteOn(2, "fay", Deny), voteOn(3, "fay", Allow(Once)))
	for n, want := range []string{"Tool write_file approved.", "Tool fetch_url denied by the user."} {
		if got := Result(answered.Only(answered.Calls[n])).Text; got != want {
			t.Errorf("call %d: %q, want %q", n+1, got, want)
		}
	}
	expired := after(t, stepRequest(), Expire{At: stepRequest().Deadline})
	if got := expired.Only(expired.Calls[1]); got.Tool != "fetch_url" || got.Calls != nil || got.State != Expired {
		t.Errorf("one call of what expired is %+v", got)
	}
	single := toolRequest()
	if got := single.Only(Call{Tool: "other"}); got.Tool != single.Tool {
		t.Errorf("a request without calls is %+v", got)
	}
}
