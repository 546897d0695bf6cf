package permissions

import "slices"

// Happening is an entry of the audit as front ends follow it: with what they need to know of its request. Its Seq is
// that of the daemon's chain, so it grows in the order of commits, and has gaps where the audit tells what is nobody's
// event.
type Happening struct {
	Entry
	Session string
	Asked   []string // people of the request; nil where there is none
}

// Happenings are the types of audit entries that are events as well.
func Happenings() []Type {
	return []Type{
		RequestCreated, RequestShown, RequestVoted, RequestSettled, RequestUsed, RequestVoided, RequestLapsed,
		RequestRerouted, RequestEscalated, RequestExtended, GrantAdded, GrantRevoked, GrantEnded, AllStopped, AllResumed,
	}
}

// VisibleTo tells whether a person may see it: what was put to them, and what is everybody's.
func (h Happening) VisibleTo(person string) bool {
	return h.Request == "" || slices.Contains(h.Asked, person)
}
