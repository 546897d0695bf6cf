package permissions

import (
	"slices"
)

// The types of events that repeat, in the terms of agents' front ends, another record of the same commit.
const (
	PermissionApplied Type = "PERMISSION_APPLIED"   // an approval of tags is used
	DialogRequested   Type = "AIC_DIALOG_REQUESTED" // a clarification is asked
	DialogResponded   Type = "AIC_DIALOG_RESPONDED" // by a person, even with an unreadable answer; or it ended without a response
	DialogTimeout     Type = "AIC_TIMEOUT"          // by nobody
)

// Event is an audit entry as front ends follow it, with what they need to know of its request. Its Seq is that of the
// daemon's chain, so it grows in the order of commits, with gaps for entries that are no events.
type Event struct {
	Entry
	Session string
	Asked   []string // people of the request; nil where there is none
	// About is the current request, for events with its text ([Type.HasRequestText]); without an ID if it is no longer stored.
	// The audit contains no request texts, which it outlives.
	About Request
}

// EventTypes returns the types of audit entries that are events as well.
func EventTypes() []Type {
	return []Type{
		RequestCreated, RequestShown, RequestVoted, RequestSettled, RequestUsed, RequestVoided, RequestLapsed,
		RequestRerouted, RequestEscalated, RequestExtended, GrantAdded, GrantRevoked, GrantEnded, AllStopped, AllResumed,
		StoreRestored, GrantReinstated,
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout,
		SessionStatus, SessionEnded, RunFinished, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled, ToolFinished,
	}
}

// HasRequestText reports whether events of that type carry the text of their request.
func (t Type) HasRequestText() bool {
	return slices.Contains([]Type{
		PermissionApplied, DialogRequested, DialogResponded, DialogTimeout, WaitAckEnter, AckApproved, AckRejected, AckDecisionHandled,
	}, t)
}

// VisibleTo reports whether a person may see the event: about requests to them, about their sessions, or public.
func (h Event) VisibleTo(person string) bool {
	if h.Detail[sessionKey] != "" {
		return h.Detail[personKey] == person
	}
	return h.Request == "" || slices.Contains(h.Asked, person)
}

// IsStopOf reports whether the event is a stop of everything, or of that agent of ours.
func (h Event) IsStopOf(c Caller) bool {
	return h.Type == AllStopped || h.Type == AgentStopped && h.Detail["person"] == StopOf(c.Name)
}

// The details by which a record names its session and the session's person.
const (
	sessionKey = "session"
	personKey  = "person"
)

// WithSession returns h with the session that its record names, if any.
func (h Event) WithSession() Event {
	if s := h.Detail[sessionKey]; s != "" {
		h.Session = s
	}
	return h
}
