package permissions

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"time"
)

// Type is the type of an audit record or an event.
type Type string

// The types that this package writes. The audit and the event stream use these words.
const (
	RequestCreated   Type = "REQUEST_CREATED"
	RequestShown     Type = "REQUEST_SHOWN"
	RequestVoted     Type = "REQUEST_VOTED"
	RequestSettled   Type = "REQUEST_SETTLED"
	RequestUsed      Type = "REQUEST_USED"
	RequestVoided    Type = "REQUEST_VOIDED"
	RequestLapsed    Type = "REQUEST_LAPSED"
	RequestRerouted  Type = "REQUEST_REROUTED"
	RequestExtended  Type = "REQUEST_EXTENDED"
	RequestEscalated Type = "REQUEST_ESCALATED"
	GrantAdded       Type = "GRANT_ADDED"
	GrantRevoked     Type = "GRANT_REVOKED"
	GrantEnded       Type = "GRANT_ENDED"
	DecisionRefused  Type = "DECISION_REFUSED"
	CallDenied       Type = "CALL_DENIED" // by a rule, or because its tool is forbidden; it has no request
	AllStopped       Type = "ALL_STOPPED"
	AllResumed       Type = "ALL_RESUMED"
	TokenCreated     Type = "TOKEN_CREATED"
	TokenRevoked     Type = "TOKEN_REVOKED"
	Paired           Type = "PAIRED"
	Unpaired         Type = "UNPAIRED"
	PairingProposed  Type = "PAIRING_PROPOSED"  // of an unknown account, by a person; nothing is paired yet
	PairingWithdrawn Type = "PAIRING_WITHDRAWN" // before it was confirmed
	AccountSuspended Type = "ACCOUNT_SUSPENDED" // it may belong to somebody else
	PersonLocked     Type = "PERSON_LOCKED"
	PersonUnlocked   Type = "PERSON_UNLOCKED"
	UnlockAsked      Type = "UNLOCK_ASKED"  // by one of the two people needed
	AgentStopped     Type = "AGENT_STOPPED" // by a person, until AgentResumed
	AgentMuted       Type = "AGENT_MUTED"   // too much of it was denied or ignored
	AgentResumed     Type = "AGENT_RESUMED" // after either
	PersonAway       Type = "PERSON_AWAY"   // until the time in the detail, or until they are back
	PersonBack       Type = "PERSON_BACK"   // at that time, or before it by a word
	GroupRenamed     Type = "PLACE_MOVED"   // a group has another id
	AuditPruned      Type = "AUDIT_PRUNED"  // signs off the deleted entries before it
	RowsPruned       Type = "ROWS_PRUNED"   // old requests or tokens were deleted
	RowSuspended     Type = "ROW_SUSPENDED" // again: it was restored by hand to before a restore
	AuditKeyed       Type = "AUDIT_KEYED"   // entries are keyed from here on, and the earlier ones sealed as they were
	// StoreRestored begins the life of a store that was restored from a copy. Its seq leaves a gap for the lost entries;
	// its detail names the entry before the gap and why the store counts as restored.
	StoreRestored     Type = "STORE_RESTORED"
	GrantReinstated   Type = "GRANT_REINSTATED"
	TokenReinstated   Type = "TOKEN_REINSTATED"
	PairingReinstated Type = "PAIRING_REINSTATED"
)

// The types of events of our own agents' sessions. Their records name the session in the detail "session" and the person
// who may see it in "person".
const (
	SessionStatus      Type = "SESSION_STATUS"
	SessionEnded       Type = "SESSION_ENDED"
	RunFinished        Type = "RUN_FINISHED"
	WaitAckEnter       Type = "WAIT_ACK_ENTER"
	AckApproved        Type = "ACK_APPROVED"
	AckRejected        Type = "ACK_REJECTED"
	ToolStarted        Type = "TOOL_STARTED"         // a call begins to run; no event
	ToolFinished       Type = "TOOL_FINISHED"        // once for each call, even one that did not run
	AckDecisionHandled Type = "ACK_DECISION_HANDLED" // once for the allowed calls, and once for the denied ones
)

// Record is one audit entry before the store chains it.
type Record struct {
	Type    Type
	At      time.Time
	Request ID
	Actor   string // a person, "operator", a caller, or empty for the daemon itself
	Via     string
	Detail  map[string]string
}

// RowName is what a record about a grant, a token or a pairing calls it: its id, or the name of the pairing.
func (r Record) RowName() string {
	p := Pairing{Person: r.Detail["person"], Via: r.Detail["via"]}
	return cmp.Or(r.Detail["grant"], r.Detail["id"], p.Name())
}

// Entry is a record in its audit chain. Each writing daemon has its own chain, so that none waits for another; each
// entry contains the hash of the previous one, so that changes and removals are detected.
type Entry struct {
	Chain string
	Seq   int64 // 1, 2, 3 … within the chain
	Prev  Digest
	Hash  Digest
	Record
	Code string // of its request where it is listed, if that is kept; the hash does not cover it
}

// Head is the last entry of a chain, with its extent.
type Head struct {
	Entry
	First   int64 // the seq of the first entry that is kept
	Entries int   // how many are kept; a restored store has gaps
	// Unkeyed is the last entry that was not checked with the audit key: the next one seals the earlier ones as they
	// were. 0: all were checked.
	Unkeyed int64
}

// ComputeHash returns the SHA-256 of everything in e but Hash itself and Code, each field preceded by its length. Times count in
// microseconds.
func (e Entry) ComputeHash() Digest {
	return sha256.Sum256(e.AppendHashed(make([]byte, 0, 512), ListDetail(e.Detail))) // more than most need
}

// ListDetail returns the names of a detail, sorted, each followed by its value.
func ListDetail(detail map[string]string) []string {
	all := make([]string, 0, 2*len(detail))
	for _, name := range slices.Sorted(maps.Keys(detail)) {
		all = append(all, name, detail[name])
	}
	return all
}

// AppendHashed appends what [Entry.ComputeHash] covers in an entry whose detail is that of [ListDetail].
func (e *Entry) AppendHashed(b []byte, detail []string) []byte {
	w := &fields{b}
	w.text(e.Chain)
	w.number(int(e.Seq))
	w.number(len(e.Prev))
	w.b = append(w.b, e.Prev[:]...)
	w.text(string(e.Type))
	w.number(int(e.At.UnixMicro()))
	w.text(string(e.Request), e.Actor, e.Via)
	w.number(len(detail) / 2)
	w.text(detail...)
	return w.b
}
