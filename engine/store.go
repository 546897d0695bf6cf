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
	// Noted strikes out a notice: it was sent, or is nobody's to read any more.
	Noted(ctx context.Context, id permissions.ID) error

	// Met keeps a stranger for the owner to hear of, and a notice to the owner if there is none about strangers yet. One
	// that is kept, or that was told of less than [permissions.StrangersEvery] before s.At, is not kept again.
	Met(ctx context.Context, s permissions.Stranger, owner string) error
	// Strangers gives those whom the owner was not told of yet.
	Strangers(ctx context.Context) (permissions.Strangers, error)
	// ToldOf notes that the owner was told of those strangers at a time, or with the zero time that they are to be
	// forgotten, and strikes out the notice n. For those who came meanwhile there is another.
	ToldOf(ctx context.Context, n permissions.Notice, s permissions.Strangers, at time.Time) error

	// AddToken keeps a token.
	AddToken(ctx context.Context, t permissions.Token, by, via string) error
	// Tokens lists every token that is not revoked, by name.
	Tokens(ctx context.Context) ([]permissions.Token, error)
	// Prove finds the token with that hash and notes, to the minute, that it was used; it refuses with
	// [permissions.CodeToken] one that is unknown, suspended or not valid at now.
	Prove(ctx context.Context, hash permissions.Digest, now time.Time) (permissions.Token, error)
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
	// Lagging lists at most limit requests, after the one named, of which this connector's copy has neither failed nor
	// been shown at the request's revision.
	Lagging(ctx context.Context, connector string, after permissions.ID, limit int) ([]permissions.ID, error)
	// Shown notes that a copy, whose Ref was that before, was sent or edited: its Ref, Shown and SentAt, also of the others
	// in its place. The first time is audited for each person. One that is to be shown anew meanwhile stays so.
	Shown(ctx context.Context, c permissions.Copy, was string) error
	// Named notes the Ref under which a copy that has none is about to be sent.
	Named(ctx context.Context, c permissions.Copy) error
	// Failed notes that a copy will never be shown, or can be answered no more, and why (c.Failed), also of the others in
	// its place.
	Failed(ctx context.Context, c permissions.Copy) error
	// AddCopies adds the copies that are not there yet, to be shown. One in a place where the request stands already joins
	// the message there.
	AddCopies(ctx context.Context, copies []permissions.Copy) error
	// Live lists this connector's copies that people see of the newest pending requests, so many of them at most.
	Live(ctx context.Context, connector string, limit int) ([]permissions.Copy, error)
	// ShowAgain has this connector's copies of pending requests brought up to date, as new ones where anew says so, and
	// returns them as they were.
	ShowAgain(ctx context.Context, connector string, anew bool) ([]permissions.Copy, error)
	// PendingIn lists at most limit pending requests of a place, after the one named (empty: from the first), oldest first.
	PendingIn(ctx context.Context, place string, after permissions.ID, limit int) ([]permissions.Request, error)
	// Places lists where something pending is shown to several people at once.
	Places(ctx context.Context) ([]string, error)
	// Move notes that a place goes by another name now, and tells whether that is news. It is audited.
	Move(ctx context.Context, m permissions.Move, via string) (news bool, err error)
	// Moves lists the places that go by another name now, without their times.
	Moves(ctx context.Context) ([]permissions.Move, error)
	// Unaddressed lists at most limit pending requests, after the one named, of which somebody who is asked has no copy, or
	// one that failed: whether there is another in its stead may not have been looked at.
	Unaddressed(ctx context.Context, after permissions.ID, limit int) ([]permissions.ID, error)
	// Forget prepares a forgetful connector's start: its copies of pending requests are to be sent again, the others
	// are done with.
	Forget(ctx context.Context, connector string) error

	// Record appends to the audit what changed no request.
	Record(ctx context.Context, r permissions.Record) error
	// Audit lists at most limit entries after seq, of the chain given (empty: this daemon's own), oldest first.
	Audit(ctx context.Context, chain string, after int64, limit int) ([]permissions.Entry, error)
	// Happenings lists at most limit entries of the daemon's chain after seq that are events, oldest first, and the
	// first seq that the chain still has: what lies before it was deleted.
	Happenings(ctx context.Context, after int64, limit int) (list []permissions.Happening, first int64, err error)
	// Changed is closed with the next entry of the audit.
	Changed() <-chan struct{}
	// Newest is the time of the newest entry of the audit; zero without one.
	Newest(ctx context.Context) (time.Time, error)
	// Prune deletes at most limit of what is older than keep says at now, and tells whether there may be more.
	Prune(ctx context.Context, keep permissions.Keep, now time.Time, limit int) (more bool, err error)
	// Verify reads every chain from the start, or from where an entry of the chain itself signs off what was deleted,
	// and returns the head of each. The error says at which entry a chain is
	// broken.
	Verify(ctx context.Context) ([]permissions.Head, error)

	// Pulse notes that the daemon runs, and returns when it last did so: zero for never.
	Pulse(ctx context.Context, at time.Time) (last time.Time, err error)
	// Health writes and reads something small. Its error matches [permissions.ErrBroken] and says what to do.
	Health(ctx context.Context) error
}
