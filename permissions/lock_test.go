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

// TestWhomAStopConcerns: that of an agent concerns it and what it starts, and that of everything everybody.
func TestWhomAStopConcerns(t *testing.T) {
	said := func(what Type) (e Event) {
		e.Type, e.Detail = what, map[string]string{"person": StopOf("agent:helper")}
		return e
	}
	for name, want := range map[string]bool{"agent:helper": true, "agent:helper/child": true, "agent:help": false, "uid:1000": false} {
		c := Caller{Name: name}
		if got := said(AgentStopped).IsStopOf(c); got != want {
			t.Errorf("a stop of helper concerns %s: %t", name, got)
		}
		if !said(AllStopped).IsStopOf(c) || said(AgentMuted).IsStopOf(c) {
			t.Errorf("%s is not stopped with everything, or is stopped by what is no stop", name)
		}
	}
}
