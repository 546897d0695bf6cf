package permissions

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"
)

// Type names what a record or an event of the daemon is about.
type Type string

// The types that this package writes. They are the words of the audit and of the event stream.
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
	AllStopped       Type = "ALL_STOPPED"
	AllResumed       Type = "ALL_RESUMED"
	TokenCreated     Type = "TOKEN_CREATED"
	TokenRevoked     Type = "TOKEN_REVOKED"
	Paired           Type = "PAIRED"
	Unpaired         Type = "UNPAIRED"
	AccountSuspended Type = "ACCOUNT_SUSPENDED" // it may be somebody else's by now
	PlaceMoved       Type = "PLACE_MOVED"       // a group has another id
	AuditPruned      Type = "AUDIT_PRUNED"      // what came before was deleted, and this signs it off
	// StoreRestored begins the life of a store that was put back from a copy. Its seq lies above a gap, in which the entries
	// are that were lost; its detail names the entry before the gap and why the store counts as restored.
	StoreRestored     Type = "STORE_RESTORED"
	GrantReinstated   Type = "GRANT_REINSTATED"
	TokenReinstated   Type = "TOKEN_REINSTATED"
	PairingReinstated Type = "PAIRING_REINSTATED"
)

// The types of what sessions of agents of ours do. Their records name the session in the detail "session" and the person
// who may see it in "person".
const (
	SessionStatus      Type = "SESSION_STATUS"
	RunFinished        Type = "RUN_FINISHED"
	WaitAckEnter       Type = "WAIT_ACK_ENTER"
	AckApproved        Type = "ACK_APPROVED"
	AckRejected        Type = "ACK_REJECTED"
	AckDecisionHandled Type = "ACK_DECISION_HANDLED" // once for each decision that had an effect
)

// Record is one row of the audit before the store chains it.
type Record struct {
	Type    Type
	At      time.Time
	Request ID
	Actor   string // a person, "operator", a caller, or empty for the daemon itself
	Via     string
	Detail  map[string]string
}

// Entry is a record in its audit chain. Each writing daemon has a chain of its own, so that none queues for another's
// head; within a chain every entry holds the hash of the one before, so none can be changed or taken out unseen.
type Entry struct {
	Chain string
	Seq   int64 // 1, 2, 3 … within the chain
	Prev  Digest
	Hash  Digest
	Record
}

// Head is the last entry of a chain, and what is kept of that chain.
type Head struct {
	Entry
	First   int64 // the seq of the first entry that is kept
	Entries int   // so many are kept; there are gaps where the store was restored
}

// ComputeHash is the SHA-256 of everything in e but Hash itself, each field preceded by its length. Times count in
// microseconds.
func (e Entry) ComputeHash() Digest {
	w := &fields{}
	w.text(e.Chain)
	w.number(int(e.Seq))
	w.text(string(e.Prev[:]), string(e.Type))
	w.number(int(e.At.UnixMicro()))
	w.text(string(e.Request), e.Actor, e.Via)
	w.number(len(e.Detail))
	for _, k := range slices.Sorted(maps.Keys(e.Detail)) {
		w.text(k, e.Detail[k])
	}
	return sha256.Sum256(w.b)
}
