package permissions

import (
	"strings"
	"time"
)

// Lock says that nothing from a person's accounts counts until others unlock them, or that an agent asks nothing, see [StopOf].
type Lock struct {
	Person string // or what [StopOf] returns
	// Accounts are the person's accounts at the time, as the audit names them: telegram:ID, whatsapp:NUMBER, uid:N. They
	// stay locked even if the configuration gives them to others. Of an agent: the people who may end it, besides the operator.
	Accounts   []string
	At         time.Time
	By, Via    string
	Unlocking  []string // who has agreed to end the lock, each with the account: sam (uid:1001)
	OtherNames []string // other names that the configuration now gives to the locked accounts; not stored
	Unsaved    *Record  // the audit record to store with it; nil once it is stored
}

// Locked is the result of locking a person, with what was taken back since a time.
type Locked struct {
	Lock
	Already bool      // they were locked before, and nothing changed
	Voided  []Request // unused approvals, taken back
	Used    []Request // used approvals, and those of which the asker was told, which are taken back; what they allowed has run
	Revoked []Revoked // grants, with what ran under them
}

// stopPrefix begins the Person of the lock of an agent.
const stopPrefix = "agent "

// StopOf is the Person of the lock by which an agent, and whatever it starts, asks nothing. caller is its proven name.
func StopOf(caller string) string { return stopPrefix + Caller{Name: caller}.Root() }

// mutePrefix begins the Person of the lock of a session of an agent.
const mutePrefix = "muted "

// AllSessions stands for every session of a muted agent. One that gives its session this name mutes all of them.
const AllSessions = "*"

// MuteOf is the Person of the lock by which an agent asks nothing in a session, since too much of that was denied or ignored.
func MuteOf(caller, session string) string { return mutePrefix + caller + "\n" + session }

// Muted reports whether l is of an agent that people denied or ignored too often, not one that a person stopped.
func (l Lock) Muted() bool { return strings.HasPrefix(l.Person, mutePrefix) }

// Agent returns the proven name of the agent that asks nothing, or empty for the lock of a person.
func (l Lock) Agent() string {
	for _, prefix := range []string{stopPrefix, mutePrefix} {
		if caller, is := strings.CutPrefix(l.Person, prefix); is {
			caller, _, _ = strings.Cut(caller, "\n")
			return caller
		}
	}
	return ""
}

// AgentName is how people call that agent.
func (l Lock) AgentName() string { return Caller{Name: l.Agent()}.ProvenName() }

// Type is what the audit says of a lock that is in force.
func (l Lock) Type() Type {
	switch {
	case l.Muted():
		return AgentMuted
	case l.Agent() != "":
		return AgentStopped
	}
	return PersonLocked
}

// Record returns the audit record of a lock.
func (l Lock) Record(what Type, by, via string, at time.Time) Record {
	return Record{Type: what, At: at, Actor: by, Via: via, Detail: map[string]string{
		"person": l.Person, "accounts": strings.Join(l.Accounts, ", "), "unlocking": strings.Join(l.Unlocking, ", "),
	}}
}

// LockedOut refuses a locked person.
func LockedOut(person string) *Refusal {
	return refuseIn(CodeLocked, ExitOther,
		"%s is locked: nothing from this account counts until the operator, or two other people, unlock %s.", person, person)
}

// AgentStoppedBy refuses what an agent asks that a person stopped, and the use of what it was allowed.
func AgentStoppedBy(l Lock) *Refusal {
	return refuseIn(CodeStopped, ExitOther, "%s was stopped by %s; nothing is asked until resume.", l.AgentName(), l.By)
}

// Muted refuses what an agent asks after too much of it was denied or ignored.
func Muted(l Lock) *Refusal {
	return refuse(CodeMuted, ExitOther, "%s asked for too much; nothing is asked until a person resumes it.", l.AgentName())
}

// AgentUnsaved says that an agent is stopped, but that this could not be stored, and why.
func AgentUnsaved(l Lock, why string) *Refusal {
	return refuseIn(CodeBroken, ExitOther, "%s is stopped now, but that is not saved: %s; a restart before it is saved forgets it.",
		l.AgentName(), why)
}

// NoAgentNamed refuses a name that is neither a request of the person's nor an agent that may ask them.
func NoAgentNamed(name string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "There is no request and no agent %s that asks you.", quoteName(name))
}

// MaxQuiet is the longest time for which an agent's cards can be silent.
const MaxQuiet = 24 * time.Hour

// NoQuiet refuses a time for which an agent's cards would be silent.
func NoQuiet() *Refusal {
	return refuseIn(CodeInvalid, ExitUsage, "Cards are silent for a minute at least, and 24 hours at most; off ends that.")
}

// AgentNotStopped refuses to resume an agent that is not stopped.
func AgentNotStopped(name string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "%s is not stopped.", quoteName(name))
}

// LockIncomplete is the refusal to say that everything was taken back that a person who is locked has given, and why.
func LockIncomplete(name string, approvals, grants int, why string) *Refusal {
	return refuseIn(CodeBroken, ExitOther, "%s is locked. Taken back: %d unused approvals and %d grants, but there may be more: %s.",
		name, approvals, grants, why)
}

// LockUnsaved says that somebody is locked, that this could not be stored, and why. With others, there may be other daemons on the same
// store, which do not know of it yet.
func LockUnsaved(person, why string, others bool) *Refusal {
	if others {
		return refuseIn(CodeBroken, ExitOther, "%s is locked at this daemon now, but that is not saved: %s; until it is, other daemons on the "+
			"same database do not know of it: lock at one of them. A restart before it is saved forgets it. Nothing was taken back.", person, why)
	}
	return refuseIn(CodeBroken, ExitOther, "%s is locked now, but that is not saved: %s; a restart before it is saved forgets it. "+
		"Nothing was taken back.", person, why)
}

// NotLocked refuses to unlock a person who is not locked.
func NotLocked(person string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "%s is not locked.", quoteName(person))
}

// OperatorUnlocks refuses an unlocking where fewer than two others could agree to it.
func OperatorUnlocks(person string) *Refusal {
	return refuseIn(CodeNotYours, ExitOther, "There are not two people who could agree to this, so only the operator unlocks %s, "+
		"with admin.key in reach.", person)
}
