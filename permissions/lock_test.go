package permissions

import "testing"

// TestALockIsAuditedByWhatItHolds: a person, an agent, or a session of one.
func TestALockIsAuditedByWhatItHolds(t *testing.T) {
	for held, want := range map[string]struct {
		what  Type
		agent string
	}{
		"sam": {PersonLocked, ""}, StopOf("agent:helper/child"): {AgentStopped, "helper"}, MuteOf("token:deploy", "s1"): {AgentMuted, "deploy"},
	} {
		if l := (Lock{Person: held}); l.Type() != want.what || l.AgentName() != want.agent {
			t.Errorf("%q: %s of %q", held, l.Type(), l.AgentName())
		}
	}
}
