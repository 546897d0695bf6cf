// Package dispatch shows people what they are asked and told. The dispatchers (dispatcher.go, workqueue.go) keep one prompt
// in every chat up to date, the reconciler (reconciler.go) decides who needs one, and the notifier (notifier.go) sends
// everything else; burst.go lists many prompts in one message. Changed settings re-route pending requests, and what was shown is shown
// again (refresh.go); groups.go knows the chats that several people share or that were lost, views.go what waits for a person and what
// channels report.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// Store keeps the copies of requests and the notices.
type Store interface {
	// Read is that of [registry.Store]; Coder and PendingNumbers are as the agents' hosts need them.
	Read(ctx context.Context, id permissions.ID) (permissions.Request, error)
	Coder() permissions.Coder
	PendingNumbers(ctx context.Context) ([]int64, error)
	// ByCode finds the newest request that has the code, or refuses with [permissions.CodeUnknown].
	ByCode(ctx context.Context, code string) (permissions.Request, error)
	// Pending lists at most limit pending requests created after the one named (empty: from the first; -N: the last N), oldest first;
	// asked, if not empty, keeps only those with that recipient.
	Pending(ctx context.Context, asked string, after permissions.ID, limit int) ([]permissions.Request, error)
	// RecentActivity returns what the caller of r did before it; Last has only what was put to that person.
	RecentActivity(ctx context.Context, r permissions.Request, person string) (permissions.RecentActivity, error)
	// CountPending returns how many requests are pending.
	CountPending(ctx context.Context) (int, error)
	// Grant returns one grant, or refuses with [permissions.CodeUnknown].
	Grant(ctx context.Context, id permissions.ID) (permissions.Grant, error)
	// RanUnder lists at most limit of the requests that ran under a grant, newest first.
	RanUnder(ctx context.Context, grant permissions.ID, limit int) ([]permissions.Request, error)

	// Notices lists at most limit unsent notices, after the one named, oldest first.
	Notices(ctx context.Context, after permissions.ID, limit int) ([]permissions.Notice, error)
	// DeleteNotice deletes a notice that was sent or has become pointless.
	DeleteNotice(ctx context.Context, id permissions.ID) error

	// AddUnknownSender stores an unknown sender, and a notice to the owner if none is pending. A sender that is stored,
	// or that the owner was told of less than [permissions.UnknownSendersEvery] before s.At, is not added.
	AddUnknownSender(ctx context.Context, s permissions.UnknownSender, owner string) error
	// UnknownSenders returns those whom the owner was not told of yet.
	UnknownSenders(ctx context.Context) (permissions.UnknownSenders, error)
	// MarkUnknownSendersTold records when the owner was told of those unknown senders, or with the zero time forgets
	// them, and deletes the notice n. Senders that were added meanwhile get a new one.
	MarkUnknownSendersTold(ctx context.Context, n permissions.Notice, s permissions.UnknownSenders, at time.Time) error

	// Copies lists the copies of requests, by request.
	Copies(ctx context.Context, ids ...permissions.ID) ([]permissions.Copy, error)
	// StaleCopies lists at most limit requests, after the one named, whose copy at this connector has neither failed nor
	// been shown at the request's revision.
	StaleCopies(ctx context.Context, connector string, after permissions.ID, limit int) ([]permissions.ID, error)
	// MarkShown records that a copy with the Ref was has been sent or edited: its Ref, Shown and SentAt, and those of
	// the other copies in its group. The first time is audited for each person. A copy that is to be shown again
	// meanwhile stays so, and so does a copy that is known as another message, which a [permissions.OtherMessageError]
	// reports.
	MarkShown(ctx context.Context, c permissions.Copy, was string) error
	// MarkNamed records the Ref under which a copy without one is about to be sent.
	MarkNamed(ctx context.Context, c permissions.Copy) error
	// MarkFailed records that a copy will never be shown, or can no longer be answered, and why (c.Failed), for all
	// copies in its group.
	MarkFailed(ctx context.Context, c permissions.Copy) error
	// AddCopies adds the missing copies, to be shown. A copy in a group that has the request already joins the message
	// there.
	AddCopies(ctx context.Context, copies []permissions.Copy) error
	// LiveCopies lists this connector's shown copies of at most limit of the newest pending requests.
	LiveCopies(ctx context.Context, connector string, limit int) ([]permissions.Copy, error)
	// ShowAgain marks this connector's copies of pending requests as outdated, or with anew as not sent, and returns
	// them as they were.
	ShowAgain(ctx context.Context, connector string, anew bool) ([]permissions.Copy, error)
	// Burst lists the copies of a person that a message of a connector lists, in the order of their requests.
	Burst(ctx context.Context, connector, person, ref string) ([]permissions.Copy, error)
	// SendAgain marks a copy as not sent.
	SendAgain(ctx context.Context, c permissions.Copy) error
	// PendingInGroup lists at most limit pending requests of a group, after the one named (empty: from the first),
	// oldest first.
	PendingInGroup(ctx context.Context, place string, after permissions.ID, limit int) ([]permissions.Request, error)
	// Groups lists the groups with pending requests.
	Groups(ctx context.Context) ([]string, error)
	// RenameGroup records that a group has another id, and reports whether that is news. It is audited.
	RenameGroup(ctx context.Context, m permissions.GroupRename, via string) (news bool, err error)
	// GroupRenames lists the renames, without their times.
	GroupRenames(ctx context.Context) ([]permissions.GroupRename, error)
	// RequestsWithoutCopies lists at most limit pending requests, after the one named, of which a recipient has no copy,
	// or a failed one that may not have been replaced.
	RequestsWithoutCopies(ctx context.Context, after permissions.ID, limit int) ([]permissions.ID, error)
	// Cursor and SetCursor keep a number by a name; without one, it is that of the newest entry of the audit.
	Cursor(ctx context.Context, name string) (int64, error)
	SetCursor(ctx context.Context, name string, n int64) error
	// ForgetCopies prepares the start of a connector that forgets: its copies of pending requests are to be sent again,
	// the others are final.
	ForgetCopies(ctx context.Context, connector string) error
}

// Config are the parts of a [Dispatch].
type Config struct {
	Store     Store
	Directory *directory.Directory
	Registry  *registry.Registry
	Clock     timing.Clock
	Log       *slog.Logger
	// History lists what is settled, for digests.
	History func(context.Context, permissions.HistoryQuery) ([]permissions.Request, error)
	// AwaitLease returns true when this daemon is the one of several that sends, and false when its context ends before that; nil: there are
	// no others.
	AwaitLease func(context.Context) bool
	// CheckLease returns nil while that is so, and is called before each message and edit.
	CheckLease func(context.Context) error
}

// Dispatch sends prompts and notices to people. It is safe for concurrent use.
type Dispatch struct {
	store       Store
	dir         *directory.Directory
	registry    *registry.Registry
	clock       timing.Clock
	log         *slog.Logger
	dispatchers []*dispatcher
	reconciler  *reconciler
	changed     timing.Signal                     // the settings changed
	moved       atomic.Bool                       // the changed settings gave a person another account
	redrawn     atomic.Int64                      // counts the refreshes of all prompts
	renaming    sync.Mutex                        // one change of moves at a time
	moves       atomic.Pointer[map[string]string] // groups that have another id now
	lost        sync.Map                          // by chatKey: why a chat cannot be written to, one *string per call of ChatLost
	reminded    sync.Map                          // by person, or [groupKey]: the last [reminder]
	lately      recentCache
	approved    approvals
	titles      titles
	quieted     sync.Map // by quietKey: the notice of the digest
	history     func(context.Context, permissions.HistoryQuery) ([]permissions.Request, error)
	awaitLease  func(context.Context) bool  // nil: there are no other daemons
	checkLease  func(context.Context) error // see Config.CheckLease
	isSender    atomic.Bool                 // this daemon is the one that sends
	missed      timing.Signal               // other daemons changed copies or notices
}

// New makes a service without channels. It starts nothing: call [Dispatch.Connect], [Dispatch.ReadGroups], then
// [Dispatch.Run].
func New(c Config) *Dispatch {
	d := &Dispatch{
		store: c.Store, dir: c.Directory, registry: c.Registry, clock: c.Clock, log: c.Log, changed: timing.NewSignal(),
		history: c.History, awaitLease: c.AwaitLease, checkLease: c.CheckLease, missed: timing.NewSignal(),
	}
	d.isSender.Store(d.awaitLease == nil)
	d.moves.Store(&map[string]string{})
	d.changed.Notify() // the settings may have changed while the daemon was down
	d.reconciler = &reconciler{service: d, workQueue: newWorkQueue(c.Clock.Elapsed, c.Log)}
	return d
}

// Connect adds channels, in the order in which people are asked there.
func (d *Dispatch) Connect(channels ...connectors.Connector) {
	for _, c := range channels {
		d.dispatchers = append(d.dispatchers, newDispatcher(d, c))
	}
}

// IsSender reports whether this daemon sends, or another one on the same database does. Who does not cannot know whom a request reaches.
func (d *Dispatch) IsSender() bool { return d.isSender.Load() }

// NoteMissed says that other daemons have changed something about which no entry of the audit is.
func (d *Dispatch) NoteMissed() { d.missed.Notify() }

// catchUpMissed looks for what other daemons have changed, at most once in a while, until ctx ends.
func (d *Dispatch) catchUpMissed(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.missed:
		}
		if err := d.CatchUp(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("list stale prompts: retrying", "err", err)
			d.missed.Notify()
		}
		_ = timing.Pause(ctx, shared.RetryDelay) // the loop checks ctx
	}
}

// Run keeps prompts up to date and sends notices until ctx ends, once no other daemon does.
func (d *Dispatch) Run(ctx context.Context) error {
	if d.awaitLease != nil {
		if !d.awaitLease(ctx) {
			return nil
		}
		d.isSender.Store(true)
		d.changed.Notify() // what this daemon did not follow until now
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.catchUpMissed(ctx) })
	group.Go(func() error { return d.follow(ctx) })
	if d.awaitLease == nil { // else they may wait for another daemon
		group.Go(func() error { return d.noteAbsence(ctx) })
	}
	group.Go(func() error { return d.reroute(ctx) })
	group.Go(func() error { return d.followAbsences(ctx) })
	group.Go(func() error { return d.sendNotices(ctx) })
	group.Go(func() error { return d.reconciler.run(ctx, d.reconciler.reconcile) })
	for _, c := range d.dispatchers {
		group.Go(func() error { return c.run(ctx) })
	}
	return group.Wait()
}

// Reconsider looks soon whether a request reaches enough people.
func (d *Dispatch) Reconsider(id permissions.ID) {
	if d.IsSender() {
		d.reconciler.Enqueue(id)
	}
}

// ForgetShown prepares the start of channels that forget what they showed. What people follow by themselves they may follow elsewhere.
func (d *Dispatch) ForgetShown(ctx context.Context) error {
	for _, c := range d.dispatchers {
		_, follows := c.connector.(connectors.Follower)
		if _, forgets := c.connector.(connectors.EphemeralChannel); forgets && (d.awaitLease == nil || !follows) {
			if err := d.store.ForgetCopies(ctx, c.connector.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow passes every change to the dispatchers and the reconciler. After an overflow of the feed it rescans the rows.
func (d *Dispatch) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		feed := d.registry.Subscribe(feedBuffer)
		err := d.CatchUp(ctx)
		if err == nil {
			d.relay(ctx, feed)
		}
		feed.Close()
		if err != nil && ctx.Err() == nil {
			d.log.Error("list stale prompts: retrying", "err", err)
			_ = timing.Pause(ctx, shared.RetryDelay) // the loop checks ctx
		}
	}
	return nil
}

// feedBuffer is how many changes a feed holds before it overflows.
const feedBuffer = 4096

func (d *Dispatch) relay(ctx context.Context, feed *registry.Feed) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, open := <-feed.C:
			if !open {
				return
			}
			d.Enqueue(r.ID)
			if r.State == permissions.Pending && r.Revision > 1 { // the recipients may have changed
				d.reconciler.Enqueue(r.ID)
			}
		}
	}
}

// AllReceivedUntil returns until when everything that people did has arrived; zero while a channel does not know.
func (d *Dispatch) AllReceivedUntil(stops bool) time.Time {
	at := d.clock.Now()
	for _, c := range d.dispatchers {
		if h, knows := c.connector.(connectors.ReceiptTracker); knows {
			if until := h.ReceivedUntil(stops); until.Before(at) {
				at = until
			}
		}
	}
	return at
}
