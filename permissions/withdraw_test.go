package permissions

import "testing"

// Who cancelled is told on the row only when it was a person; the audit names the caller as well.
func TestWhoCancelled(t *testing.T) {
	for _, c := range []struct{ by, actor string }{{"fay", "fay"}, {"", "uid:1000"}} {
		r := permissionRequest()
		r.Caller = CallerUID(1000)
		change, err := Step(r, Withdraw{By: c.by, At: soon})
		if err != nil {
			t.Fatal(err)
		}
		if got := change.Records[0].Actor; change.After.DecidedBy != c.by || got != c.actor {
			t.Errorf("decided by %q, audited as %q", change.After.DecidedBy, got)
		}
	}
}
