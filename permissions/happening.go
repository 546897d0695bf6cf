package permissions

import "slices"

// The types of events that repeat, in the words of agents' front ends, what another record of the same commit says.
const (
	PermissionApplied Type = "PERMISSION_APPLIED"   // an approval of tags is used
	DialogRequested   Type = "AIC_DIALOG_REQUESTED" // a clarification is asked
	DialogResponded   Type = "AIC_DIALOG_RESPONDED" // by a person, also with what nobody could read
	DialogTimeout     Type = "AIC_TIMEOUT"          // by nobody
)

// Happening is an entry of the audit as front ends follow it: with what they need to know of its request. Its Seq is
// that of the daemon's chain, so it grows in the order of commits, and has gaps where the audit tells what is nobody's
// event.
type Happening struct {
	Entry
	Session string
	Asked   []string // people of the request; nil where there is none
	// About is the request as it is now, where the event is told in its words ([Type.Wordy]); without an ID where that is
	// no longer kept. The audit outlives what was asked in words, and so has none of them.
	About Request
}

// Happenings are the types of audit entries that are events as well.
func Happenings() []Type {
	return []Type{
		RequestCreated, RequestShown, RequestVoted, RequestSettled, RequestUsed, RequestVoided, RequestLapsed,
		RequestRerouted, RequestEscalated, RequestExtended, GrantAdded, GrantRevoked, GrantEnded, AllStopped, AllResumed,
		StoreRestored, GrantReinstated,
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout,
		SessionStatus, RunFinished, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled,
	}
}

// Wordy tells whether events of that type are told in the words of their request.
func (t Type) Wordy() bool {
	return slices.Contains([]Type{PermissionApplied, DialogRequested, DialogResponded, WaitAckEnter}, t)
}

// VisibleTo tells whether a person may see it: what was put to them, what their sessions do, and what is everybody's.
func (h Happening) VisibleTo(person string) bool {
	if h.Detail[ofSession] != "" {
		return h.Detail[ofPerson] == person
	}
	return h.Request == "" || slices.Contains(h.Asked, person)
}

// The details by which a record names its session, and whose that is.
const (
	ofSession = "session"
	ofPerson  = "person"
)

// Located is h with the session that its record names, where it names one.
func (h Happening) Located() Happening {
	if s := h.Detail[ofSession]; s != "" {
		h.Session = s
	}
	return h
}
