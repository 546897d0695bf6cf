package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Store is the truth: requests, copies, grants and the audit. Every write is durable when its method returns nil.
type Store interface {
	permissions.Store
	ChatStore
	ResidentStore

	// Coder gives requests their codes. Its key belongs to the store and does not change while it is open.
	Coder() permissions.Coder
	// ByCode finds the newest request that has the code, or refuses with [permissions.CodeUnknown].
	ByCode(ctx context.Context, code string) (permissions.Request, error)
	// Pending lists at most limit pending requests created after the one named (empty: from the first), oldest first;
	// asked, if not empty, keeps only what was put to that person.
	Pending(ctx context.Context, asked string, after permissions.ID, limit int) ([]permissions.Request, error)
	// CountPending is how many requests are pending.
	CountPending(ctx context.Context) (int, error)
	// Grants lists the grants of a caller that are neither revoked, suspended nor over at now.
	Grants(ctx context.Context, caller string, now time.Time) ([]permissions.Grant, error)

	// Tell keeps what a caller (n.By) has a person told, to be sent, in place of what is still to be sent to them about the same
	// session of the same agent. Where so many of the caller's are still to be sent it refuses with [permissions.CodeLimit].
	Tell(ctx context.Context, n permissions.Notice, most int) error

	// GrantsInForce lists every grant that is neither revoked nor over at now, oldest first, also those suspended; asked, if not empty, keeps
	// only those whose request was put to that person.
	GrantsInForce(ctx context.Context, asked string, now time.Time) ([]permissions.Grant, error)
	// Grant gives one grant, or refuses with [permissions.CodeUnknown].
	Grant(ctx context.Context, id permissions.ID) (permissions.Grant, error)
	// Revoke takes a grant back and leaves a notice for everybody else who allowed it. It returns the grant as it was
	// and at most limit of the requests that it made unnecessary to ask, the newest first. A grant that is revoked
	// already stays as it is.
	Revoke(ctx context.Context, id permissions.ID, by, via string, at time.Time, limit int) (permissions.Revoked, error)
	// Ran lists at most limit of the requests that a grant made unnecessary to ask, the newest first.
	Ran(ctx context.Context, grant permissions.ID, limit int) ([]permissions.Request, error)

	// StoppedBy is who stopped everything, or empty.
	StoppedBy(ctx context.Context) (string, error)
	// Resume ends what Stop began. Without a stop it changes nothing. It refuses whoever did not stop, unless force.
	Resume(ctx context.Context, by, via string, force bool, at time.Time) error

	// Notices lists at most limit notices that are still to be sent, after the one named, oldest first.
	Notices(ctx context.Context, after permissions.ID, limit int) ([]permissions.Notice, error)
	// DeleteNotice strikes out a notice: it was sent, or is nobody's to read any more.
	DeleteNotice(ctx context.Context, id permissions.ID) error

	// AddUnknownSender keeps a stranger for the owner to hear of, and a notice to the owner if there is none about strangers yet. One
	// that is kept, or that was told of less than [permissions.UnknownSendersEvery] before s.At, is not kept again.
	AddUnknownSender(ctx context.Context, s permissions.UnknownSender, owner string) error
	// UnknownSenders gives those whom the owner was not told of yet.
	UnknownSenders(ctx context.Context) (permissions.UnknownSenders, error)
	// MarkUnknownSendersTold notes that the owner was told of those strangers at a time, or with the zero time that they are to be
	// forgotten, and strikes out the notice n. For those who came meanwhile there is another.
	MarkUnknownSendersTold(ctx context.Context, n permissions.Notice, s permissions.UnknownSenders, at time.Time) error

	// AddToken keeps a token. One of nobody's in particular, where the last of its name was somebody's, is refused with
	// [permissions.CodeInvalid].
	AddToken(ctx context.Context, t permissions.Token, by, via string) error
	// Tokens lists every token that is not revoked, by name.
	Tokens(ctx context.Context) ([]permissions.Token, error)
	// VerifyToken finds the token with that hash and notes, to the minute, that it was used; it refuses with
	// [permissions.CodeToken] one that is unknown, suspended or not valid at now.
	VerifyToken(ctx context.Context, hash permissions.Digest, now time.Time) (permissions.Token, error)
	// Left are the requests of a caller that whoever asks in its name would find: those that are pending, approvals that were not
	// used, and what was settled since a time and not collected.
	Left(ctx context.Context, caller string, since time.Time) ([]permissions.ID, error)
	// RevokeToken revokes one token by its id, or all of a name, and returns them. None is refused with
	// [permissions.CodeUnknown].
	RevokeToken(ctx context.Context, name, by, via string, at time.Time) ([]permissions.Token, error)

	// Pair keeps a pairing in place of the person's earlier one, and returns that: its Address is empty where there was
	// none. The account of another person is refused with [permissions.CodeNotYours]; the same pairing again changes
	// nothing. A suspension of the account ends in the same commit.
	Pair(ctx context.Context, p permissions.Pairing, by, via string) (was permissions.Pairing, err error)
	// Pairings lists every pairing, by person.
	Pairings(ctx context.Context) ([]permissions.Pairing, error)
	// Unpair takes a person's account at a channel away and returns it, or refuses with [permissions.CodeUnknown].
	// An account that is suspended stays so, whoever names it next.
	Unpair(ctx context.Context, person, channel, by, via string, at time.Time) (permissions.Pairing, error)
	// Suspend notes that an account, which is the person who's, may be somebody else's since a time, until it is paired
	// again. It is audited; the same again changes nothing.
	Suspend(ctx context.Context, via, address, who string, at time.Time) error
	// Suspensions lists the accounts that are suspended.
	Suspensions(ctx context.Context) ([]permissions.Suspension, error)

	// Locks lists the people who are locked, those too whose row was changed behind the store's back.
	Locks(ctx context.Context) ([]permissions.Lock, error)
	// PutLock keeps a lock in place of what was kept before, or ends it, as the record of that says.
	PutLock(ctx context.Context, l permissions.Lock, r permissions.Record) error
	// ApprovedBy lists at most limit of the approvals that were not taken back and that a person helped to give since a time,
	// those first that were not used.
	ApprovedBy(ctx context.Context, person string, since time.Time, limit int) ([]permissions.Request, error)

	// Suspended lists what opens nothing since the store was restored.
	Suspended(ctx context.Context) (permissions.Suspended, error)
	// Reinstate has what is suspended open again what it opened: grants and tokens by their ids, pairings by
	// [permissions.Pairing.Name]; without names, everything. It returns what it was. Where one of the names is nothing that
	// is suspended, nothing is reinstated: refused with [permissions.CodeUnknown].
	Reinstate(ctx context.Context, names []string, by, via string, at time.Time) (permissions.Suspended, error)

	// ByNumber finds the request of that number with its copies, or refuses with [permissions.CodeUnknown].
	ByNumber(ctx context.Context, number int64) (permissions.Request, []permissions.Copy, error)
	// Copies lists the copies of a request.
	Copies(ctx context.Context, id permissions.ID) ([]permissions.Copy, error)
	// StaleCopies lists at most limit requests, after the one named, of which this connector's copy has neither failed nor
	// been shown at the request's revision.
	StaleCopies(ctx context.Context, connector string, after permissions.ID, limit int) ([]permissions.ID, error)
	// MarkShown notes that a copy, whose Ref was that before, was sent or edited: its Ref, Shown and SentAt, also of the others
	// in its place. The first time is audited for each person. One that is to be shown anew meanwhile stays so, and so does
	// one that is known as another message, which an [permissions.ElsewhereError] says.
	MarkShown(ctx context.Context, c permissions.Copy, was string) error
	// MarkNamed notes the Ref under which a copy that has none is about to be sent.
	MarkNamed(ctx context.Context, c permissions.Copy) error
	// MarkFailed notes that a copy will never be shown, or can be answered no more, and why (c.Failed), also of the others in
	// its place.
	MarkFailed(ctx context.Context, c permissions.Copy) error
	// AddCopies adds the copies that are not there yet, to be shown. One in a place where the request stands already joins
	// the message there.
	AddCopies(ctx context.Context, copies []permissions.Copy) error
	// LiveCopies lists this connector's copies that people see of the newest pending requests, so many of them at most.
	LiveCopies(ctx context.Context, connector string, limit int) ([]permissions.Copy, error)
	// ShowAgain has this connector's copies of pending requests brought up to date, as new ones where anew says so, and
	// returns them as they were.
	ShowAgain(ctx context.Context, connector string, anew bool) ([]permissions.Copy, error)
	// PendingInGroup lists at most limit pending requests of a place, after the one named (empty: from the first), oldest first.
	PendingInGroup(ctx context.Context, place string, after permissions.ID, limit int) ([]permissions.Request, error)
	// Groups lists where something pending is shown to several people at once.
	Groups(ctx context.Context) ([]string, error)
	// RenameGroup notes that a place goes by another name now, and reports whether that is news. It is audited.
	RenameGroup(ctx context.Context, m permissions.GroupRename, via string) (news bool, err error)
	// GroupRenames lists the places that go by another name now, without their times.
	GroupRenames(ctx context.Context) ([]permissions.GroupRename, error)
	// RequestsWithoutCopies lists at most limit pending requests, after the one named, of which somebody who is asked has no copy, or
	// one that failed: whether there is another in its stead may not have been looked at.
	RequestsWithoutCopies(ctx context.Context, after permissions.ID, limit int) ([]permissions.ID, error)
	// ForgetCopies prepares a forgetful connector's start: its copies of pending requests are to be sent again, the others
	// are done with.
	ForgetCopies(ctx context.Context, connector string) error

	// KeepWait keeps a wait for as long as its request is pending, in place of the one of the same request, kind and call.
	KeepWait(ctx context.Context, w permissions.Wait) error
	// DropWait forgets the wait of the same request, kind and call.
	DropWait(ctx context.Context, w permissions.Wait) error
	// Waits lists what is kept.
	Waits(ctx context.Context) ([]permissions.Wait, error)

	// Record appends to the audit what changed no request.
	Record(ctx context.Context, r permissions.Record) error
	// Audit lists at most limit entries after seq, of the chain given (empty: this daemon's own), oldest first.
	Audit(ctx context.Context, chain string, after int64, limit int) ([]permissions.Entry, error)
	// Events lists at most limit entries of the daemon's chain after seq that are events, oldest first, and the
	// first seq that the chain still has: what lies before it was deleted.
	Events(ctx context.Context, after int64, limit int) (list []permissions.Event, first int64, err error)
	// Changed is closed with the next entry of the audit.
	Changed() <-chan struct{}
	// NewestTime is the time of the newest entry of the audit; zero without one.
	NewestTime(ctx context.Context) (time.Time, error)
	// Prune deletes at most limit of what is older than keep says at now, and reports whether there may be more.
	Prune(ctx context.Context, keep permissions.Keep, now time.Time, limit int) (more bool, err error)
	// Verify reads every chain from the start, or from where an entry of the chain itself signs off what was deleted,
	// and returns the head of each. The error says at which entry a chain is
	// broken.
	Verify(ctx context.Context) ([]permissions.Head, error)

	// Heartbeat notes that the daemon runs, unless at is zero, and returns when it last did so: zero for never.
	Heartbeat(ctx context.Context, at time.Time) (last time.Time, err error)
	// Health writes and reads something small. Its error matches [permissions.ErrBroken] and says what to do.
	Health(ctx context.Context) error
}

// ChatStore keeps what people and agents of ours tell each other until it is where it should be.
type ChatStore interface {
	// AddMessage keeps a message for its agent. The key of one that is kept already changes nothing. When so many wait for the
	// agent it refuses with [permissions.CodeLimit]. One with a HeardAt is kept by its key alone.
	AddMessage(ctx context.Context, m permissions.Message, most int) error
	// HasMessage reports whether a message or an order of that key was taken.
	HasMessage(ctx context.Context, key string) (bool, error)
	// UndeliveredMessages lists at most limit messages that an agent does not have yet, oldest first.
	UndeliveredMessages(ctx context.Context, agent string, limit int) ([]permissions.Message, error)
	// MarkDelivered notes that the agent has a message, and forgets its words.
	MarkDelivered(ctx context.Context, number int64, at time.Time) error

	// AddAgentMessage keeps an utterance. The key of one of the same agent's changes nothing. When so many of the agent's are still to
	// be sent it refuses with [permissions.CodeLimit].
	AddAgentMessage(ctx context.Context, u permissions.AgentMessage, most int) error
	// UnsentAgentMessages lists at most limit utterances of an agent's of which something is still to be sent, oldest first.
	UnsentAgentMessages(ctx context.Context, agent string, limit int) ([]permissions.AgentMessage, error)
	// MarkAgentMessageSent notes that u.Sent of an utterance's messages were sent by now, the last as ref (empty: it was not sent), and
	// with done that this was all; then its words are forgotten. Of an agent's messages the last thousand are known.
	MarkAgentMessageSent(ctx context.Context, u permissions.AgentMessage, ref string, done bool, at time.Time) error
	// Author is the agent that the message of that name in a channel is from; empty where that is not known.
	Author(ctx context.Context, via, ref string) (agent string, err error)

	// Foreground is the agent that a person chose in a channel; empty for none.
	Foreground(ctx context.Context, person, via string) (agent string, err error)
	// SetForeground has a person talk to an agent in the channel of the bond.
	SetForeground(ctx context.Context, b permissions.Binding) error

	// PendingNumbers are those of every request that is pending.
	PendingNumbers(ctx context.Context) ([]int64, error)
}

// ResidentStore keeps what agents of ours ask and do, as far as the engine has to do with it.
type ResidentStore interface {
	// Keyed finds the request of a key of this caller's that is still in use, settled or not. The keys of agents of ours
	// are, for as long as there are rows.
	Keyed(ctx context.Context, caller, key string) (r permissions.Request, found bool, err error)
	// PendingOfSession are the pending requests of a caller's session; without a caller, of agents of ours, whichever of them
	// asked.
	PendingOfSession(ctx context.Context, caller, session string) ([]permissions.ID, error)
	// EndSessionGrants notes of the grants of a session of an agent of ours that they are over, and returns those that
	// were in force. Nobody is told.
	EndSessionGrants(ctx context.Context, session string, now time.Time) ([]permissions.Grant, error)

	// AgentSession gives a session, or refuses with [permissions.CodeUnknown].
	AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error)
	// AgentSessions lists at most limit sessions of a person's (empty: everybody's), also what has ended, after the one
	// named (empty: from the first), by id.
	AgentSessions(ctx context.Context, person string, after permissions.ID, limit int) ([]permissions.AgentSession, error)
	// SetDebug switches whether each state of a session's run is logged. Its version stays the same.
	SetDebug(ctx context.Context, id permissions.ID, on bool) error
	// ExecutionsOf lists at most limit calls of a session after the one with that ID, by ID.
	ExecutionsOf(ctx context.Context, session permissions.ID, after int64, limit int) ([]permissions.Execution, error)
	// ArtifactsOf lists at most limit artifacts of a session after the one with that ID, by ID: those of one execution, or of the
	// whole session where that is 0.
	ArtifactsOf(ctx context.Context, session permissions.ID, execution, after int64, limit int) ([]permissions.Artifact, error)
	// OpenSessions lists at most limit sessions that have not ended, after the one named (empty: from the first), by id.
	OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error)

	// Cursor is how far in the daemon's chain a follower of that name has come. One that is new begins behind the newest
	// entry.
	Cursor(ctx context.Context, name string) (seq int64, err error)
	// SetCursor keeps how far a follower has come.
	SetCursor(ctx context.Context, name string, seq int64) error
}
