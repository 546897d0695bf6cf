package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// dispatcher keeps the prompts of one connector up to date: it sends new ones and edits outdated ones. Each chat has its
// own lane, so that a slow or hanging chat delays no other. It works from the rows alone, so changes coalesce and a
// crash loses nothing.
type dispatcher struct {
	*workQueue
	service   *Dispatch
	connector connectors.Connector

	clockLead atomic.Int64 // nanoseconds that the channel's clock is ahead of the machine's, by its last prompt

	mu    sync.Mutex
	lanes map[chat]*lane
}

// chat is where prompts appear: with a person, or in a group.
type chat struct{ person, place string }

// chatOf returns the chat of a copy. All copies in one group are one message.
func chatOf(cp permissions.Copy) chat {
	if cp.Group != "" {
		return chat{place: cp.Group}
	}
	return chat{person: cp.Person}
}

// lane is the work queue of one chat of a connector. New prompts precede edits (see rank); within a rank the least
// recently shown goes first, but of settled requests the newest.
type lane struct {
	*workQueue
	*dispatcher
	chat    chat
	unnoted map[permissions.ID]sending // sent messages that could not be stored yet; used by the worker only

	// What the worker knows of lists, see burst.go: when requests were first shown lately and when each list was edited,
	// monotonic, the newest list, and the copies with a message of their own that have changed since they were listed.
	recent map[permissions.ID]time.Duration
	listed map[string]time.Duration
	newest burst
	opened map[permissions.ID]permissions.Copy

	mu      sync.Mutex                    // guards the fields below
	seen    map[permissions.ID]shownState // of pending requests
	unshown map[permissions.ID]*attempt   // prompts of pending requests
}

// sending is a message that was sent or edited: the copy afterwards, its former message id, and, read before sending,
// the count of refreshes and what [Dispatch.ChatLost] had recorded for the chat.
type sending struct {
	permissions.Copy
	was     string
	redrawn int64
	lost    any
	title   bool // it shows no more than the title
}

// shownState is the content of a prompt's last edit, without its waiters.
type shownState struct {
	at                     time.Duration
	votes, asked, answered int
	deadline               time.Time
}

// attempt is a prompt that was never shown.
type attempt struct {
	since  time.Duration // when it became due, monotonic
	why    string        // the last error
	failed bool          // the last call that sent it has failed
	late   bool          // it was overdue at the last check
	began  time.Time     // when it was sent: it may be on the phone since; zero before
	to     string        // the account that it was sent to then
	named  bool          // this process allocated the message id, so it was not sent before began
	stop   func()        // cancels the call that sends it; nil without one
}

const (
	// presenceEvery is the shortest time between edits that only show who waits.
	presenceEvery = 5 * time.Second
	// lateEvery is the interval of the check for prompts that were not delivered in time.
	lateEvery = 500 * time.Millisecond
	// sendGrace is how long a call may go on sending a prompt after its request has ended: others wait for it.
	sendGrace = 3 * time.Second
)

func newDispatcher(e *Dispatch, c connectors.Connector) *dispatcher {
	return &dispatcher{
		service: e, connector: c, workQueue: newWorkQueue(e.clock.Elapsed, e.log.With("connector", c.Name())), lanes: map[chat]*lane{},
	}
}

func (c *dispatcher) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return c.workQueue.run(ctx, func(ctx context.Context, id permissions.ID) error { return c.assign(ctx, id, group) })
	})
	group.Go(func() error { return c.watch(ctx) })
	return group.Wait()
}

// read returns a request with its copies; there is false if the row is gone, was never opened, or is unreadable.
func (d *Dispatch) read(ctx context.Context, id permissions.ID) (r permissions.Request, copies []permissions.Copy, there bool, err error) {
	if r, err = d.store.Read(ctx, id); err == nil {
		copies, err = d.store.Copies(ctx, id)
	}
	if permissions.AsRefusal(err) != nil || errors.Is(err, permissions.ErrRow) {
		return r, nil, false, nil //nolint:nilerr // gone, never opened, or unreadable
	}
	return r, copies, err == nil, err
}

// assign puts a request into the lanes of its outdated copies, and starts new lanes.
func (c *dispatcher) assign(ctx context.Context, id permissions.ID, group *errgroup.Group) error {
	known := context.WithValue(ctx, permissions.AsKnown{}, true) // each lane reads it again before it shows it
	r, copies, _, err := c.service.read(known, id)
	for _, cp := range copies {
		if !c.isStale(r, cp) {
			continue
		}
		c.mu.Lock()
		l := c.lanes[chatOf(cp)]
		if l == nil {
			l = &lane{
				dispatcher: c, chat: chatOf(cp), workQueue: newWorkQueue(c.elapsed, c.log),
				seen: map[permissions.ID]shownState{}, unshown: map[permissions.ID]*attempt{}, unnoted: map[permissions.ID]sending{},
				recent: map[permissions.ID]time.Duration{}, listed: map[string]time.Duration{}, opened: map[permissions.ID]permissions.Copy{},
			}
			c.lanes[l.chat] = l
			group.Go(func() error { return l.workQueue.run(ctx, l.deliver) })
		}
		c.mu.Unlock()
		l.enqueue(r, shownInGroup(cp, copies), copies)
	}
	return err
}

// isStale reports whether a copy belongs to this connector and is outdated.
func (c *dispatcher) isStale(r permissions.Request, cp permissions.Copy) bool {
	return cp.Connector == c.connector.Name() && cp.Failed == "" && cp.Shown < r.Revision
}

func (l *lane) enqueue(r permissions.Request, cp permissions.Copy, copies []permissions.Copy) {
	as := pendingEdit
	l.mu.Lock()
	switch was, edited := l.seen[r.ID]; {
	case r.State != permissions.Pending:
		if as = settledEdit; l.unshown[r.ID] != nil && l.unshown[r.ID].stop != nil {
			time.AfterFunc(sendGrace, l.unshown[r.ID].stop)
		}
	case cp.SentAt.IsZero():
		as = firstCard
		if l.unshown[r.ID] == nil {
			l.unshown[r.ID] = &attempt{since: l.elapsed() + l.heldBackFor(r, cp, copies)}
		}
	case edited && was.same(r):
		as = presenceEdit
	}
	l.mu.Unlock()
	l.put(r.ID, as)
}

// shownStateOf returns the visible content of a pending request, without its waiters.
func shownStateOf(r permissions.Request) shownState {
	l := shownState{votes: len(r.Votes), asked: len(r.Asked), deadline: r.Deadline}
	for _, c := range r.Calls {
		if c.Answer != "" {
			l.answered++
		}
	}
	return l
}

func (l shownState) same(r permissions.Request) bool {
	is := shownStateOf(r)
	is.at = l.at
	return is == l
}

// deliver brings this lane's copy of one request up to date. An error means that it should be retried.
func (l *lane) deliver(ctx context.Context, id permissions.ID) error {
	if s, sent := l.unnoted[id]; sent {
		if err := l.storeSent(ctx, s); err != nil && permissions.AsRefusal(err) == nil { // a refusal: the row is gone
			return err
		}
		delete(l.unnoted, id)
	}
	r, copies, there, err := l.service.read(ctx, id)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(copies, func(cp permissions.Copy) bool { return l.isStale(r, cp) && chatOf(cp) == l.chat })
	if at >= 0 {
		cp := shownInGroup(copies[at], copies)
		if after := max(l.heldBackFor(r, cp, copies), l.background(r, cp)); after > 0 {
			return &unfinished{errHeldBack, after}
		}
		if err := l.bringUpToDate(ctx, r, cp, copies); err != nil {
			return err
		}
	} else if cp, is := l.opened[id]; is && there {
		if err := l.updateList(ctx, r, cp); err != nil {
			return err
		}
	}
	delete(l.opened, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unshown, id)
	if !there || r.State != permissions.Pending {
		delete(l.seen, id)
	}
	return nil
}

// errHeldBack is the error of a copy that is held back (see phoneDelay).
var errHeldBack = errors.New("prompt held back")

// heldBackFor returns how long a copy is still held back (see phoneDelay and inGroupAt). A copy that is due later than these
// allow was planned before the clock was set back, and is sent.
func (c *dispatcher) heldBackFor(r permissions.Request, cp permissions.Copy, copies []permissions.Copy) time.Duration {
	s := c.service.dir.Settings()
	person, _ := s.Person(cp.Person)
	most := max(followUpWait, phoneDelay(c.connector, person, r))
	if first := s.SingleRecipient(r); cp.Group != "" && slices.ContainsFunc(copies, func(o permissions.Copy) bool {
		return o.Person == first && o.Failed == "" && c.service.inChat(o)
	}) {
		most = r.Timeout()
	}
	ahead := dueInGroup(cp, copies).Sub(c.service.clock.Now())
	if r.State != permissions.Pending || !cp.SentAt.IsZero() || ahead <= 0 || ahead > most {
		return 0
	}
	return max(ahead, minRetry)
}

// dueInGroup is when a copy is due; one in a group, when the first one there is.
func dueInGroup(cp permissions.Copy, copies []permissions.Copy) time.Time {
	due := cp.DueAt
	for _, o := range copies {
		if cp.Group != "" && o.Group == cp.Group && o.Connector == cp.Connector && o.DueAt.Before(due) {
			due = o.DueAt
		}
	}
	return due
}

// background returns how long an edit that would only show who waits is held back.
func (l *lane) background(r permissions.Request, cp permissions.Copy) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, edited := l.seen[r.ID]
	_, screen := l.connector.(connectors.Screen)
	if !edited || screen || cp.Shown == 0 || r.State != permissions.Pending || !was.same(r) {
		return 0
	}
	return max(0, was.at+presenceEvery-l.elapsed())
}

// bringUpToDate sends or edits one copy. When the channel asks to slow down, the rank that failed and everything less
// urgent pauses; new prompts are not delayed by an edit.
func (l *lane) bringUpToDate(ctx context.Context, r permissions.Request, cp permissions.Copy, copies []permissions.Copy) error {
	err := l.service.checkLease(ctx)
	if err == nil {
		err = l.show(ctx, r, cp, copies)
	}
	if err == nil && r.State == permissions.Pending {
		l.dispatcher.Enqueue(r.ID) // the copy may have failed meanwhile and missed the settlement
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	as := pendingEdit
	if cp.SentAt.IsZero() {
		as = firstCard
	} else if err == nil && r.State == permissions.Pending {
		is := shownStateOf(r)
		is.at = l.elapsed()
		l.seen[r.ID] = is
	}
	if a := l.unshown[r.ID]; a != nil && err != nil {
		a.why, a.failed = err.Error(), true
	}
	if after := connectors.RetryAfter(err); after > 0 {
		l.rest(as, after)
		return &unfinished{err, after}
	}
	return err
}

// watch fails the prompts that were not delivered in time, whatever their lane does meanwhile, until ctx ends. After the
// machine slept, each is tried once more before that.
func (c *dispatcher) watch(ctx context.Context) error {
	for timing.Pause(ctx, lateEvery) == nil {
		c.mu.Lock()
		lanes := slices.Collect(maps.Values(c.lanes))
		c.mu.Unlock()
		for _, l := range lanes {
			for id, why := range l.overdue() {
				if err := l.giveUp(ctx, id, why); err != nil && ctx.Err() == nil {
					c.log.Warn("fail overdue prompt: retrying", "request", id, "err", err)
				}
			}
		}
	}
	return nil
}

// overdue returns the prompts that were overdue at the last check too, with the reason.
func (l *lane) overdue() map[permissions.ID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := map[permissions.ID]string{}
	for id, a := range l.unshown {
		late := l.elapsed()-a.since >= l.service.dir.Settings().Approvals.DeliverWithin
		if late && a.late {
			over[id] = cmp.Or(a.why, l.connector.Name()+" does not answer")
		}
		a.late = late
	}
	return over
}

// delayedAfter is how long a due prompt may be on its way before it counts as delayed.
const delayedAfter = 10 * time.Second

// isDelayed reports whether a copy that was never shown is due, and its channel has failed to take it or has not answered.
func (c *dispatcher) isDelayed(cp permissions.Copy) bool {
	c.mu.Lock()
	l := c.lanes[chatOf(cp)]
	c.mu.Unlock()
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.unshown[cp.Request]
	return a != nil && (a.why != "" || l.elapsed()-a.since > delayedAfter)
}

// giveUp fails the copy of an overdue prompt, unless it was shown meanwhile.
func (l *lane) giveUp(ctx context.Context, id permissions.ID, why string) error {
	r, copies, _, err := l.service.read(ctx, id)
	if err != nil {
		return err
	}
	for _, cp := range copies {
		if l.isStale(r, cp) && chatOf(cp) == l.chat && shownInGroup(cp, copies).SentAt.IsZero() && r.State == permissions.Pending {
			if err := l.fail(ctx, r, cp, why); err != nil {
				return err
			}
			break // in a group, this was all of them
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unshown, id)
	return nil
}

// remainingTime is how long a copy that was never shown is still tried, by the stricter clock: the wall clock may be set.
func (l *lane) remainingTime(cp permissions.Copy) time.Duration {
	within := l.service.dir.Settings().Approvals.DeliverWithin
	byWall, passing := cp.DueAt.Add(within).Sub(l.service.clock.Now()), within
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.unshown[cp.Request]; a != nil {
		passing -= l.elapsed() - a.since
	}
	return min(byWall, passing)
}

// shownInGroup returns the shown copy in the group of cp, if any: they are one message, which a new recipient joins.
func shownInGroup(cp permissions.Copy, copies []permissions.Copy) permissions.Copy {
	for _, other := range copies {
		if cp.Group != "" && other.Connector == cp.Connector && other.Group == cp.Group && !other.SentAt.IsZero() {
			return other
		}
	}
	return cp
}

// show sends or edits one copy.
func (l *lane) show(ctx context.Context, r permissions.Request, cp permissions.Copy, copies []permissions.Copy) error {
	e := l.service
	s := sending{was: cp.Ref, redrawn: e.redrawn.Load()}
	s.lost, _ = e.lost.Load(e.chatAt(cp))
	person, shows, err := l.recipient(ctx, r, &cp, copies)
	if err != nil || !shows {
		return err
	}
	if cp.Burst != "" && cp.Ref == cp.Burst || l.isCrowded(ctx, r, cp) {
		return l.updateList(ctx, r, cp)
	}
	prompt := e.Prompt(ctx, r, cp, person, copies)
	if s.title, prompt.Untitled, err = e.titled(ctx, prompt.Request, cp); err != nil {
		return err
	}
	since, again := l.mayBeSentSince(cp), cp.Ref == ""
	namer, names := l.connector.(connectors.MessageIDAllocator)
	if names && again && cp.SentAt.IsZero() && r.State == permissions.Pending { // what is shown again has a Ref once it has come
		cp.Ref = namer.AllocateID(prompt)
		if err := e.store.MarkNamed(ctx, cp); err != nil {
			return err
		}
		prompt.Ref, s.was = cp.Ref, cp.Ref
		l.attempted(cp, func(a *attempt) { a.named = true })
	}
	began := e.clock.Stamp() // before sending: a quick answer may be dated before the send returns
	l.refresh(&prompt, &r, cp, &began)
	switch editor, edits := l.connector.(connectors.Editor); {
	case decidedInPrivate(r, cp, copies):
		cp.Ref, err = l.reportOutcome(ctx, prompt)
	case r.State != permissions.Pending && (cp.Ref == "" || cp.SentAt.IsZero() && since.IsZero()):
		return l.fail(ctx, r, cp, "settled before it was shown")
	case again, names && cp.SentAt.IsZero() && r.State == permissions.Pending:
		if cp.Ref, err = l.send(ctx, cp, prompt, began); names {
			l.attempted(cp, func(a *attempt) { since = a.began }) // whatever an earlier process did
		}
	case edits:
		err = editor.Edit(ctx, cp.Ref, prompt)
		if errors.Is(err, connectors.ErrResend) && cp.Group == "" && r.State == permissions.Pending {
			return l.resetShown(ctx, cp)
		}
		if errors.Is(err, connectors.ErrResend) {
			under := cp
			under.Ref, under.Shown = "", 0 // an answer that arrives before the channel replies then finds a prompt on its way
			if err := e.store.MarkShown(ctx, under, cp.Ref); err != nil {
				return err
			}
			s.was, prompt.Ref = "", ""
			cp.Ref, err = l.connector.Send(ctx, prompt)
		}
	case r.State != permissions.Pending: // a channel that cannot edit sends the outcome as a message of its own
		_, err = l.connector.Send(ctx, prompt)
	}
	if renamed := (*connectors.GroupRenamedError)(nil); errors.As(err, &renamed) {
		return errors.Join(err, e.RenameGroup(ctx, prompt.Group, renamed.Now)) // the retry uses the new id
	}
	if errors.Is(err, connectors.ErrUnreachable) || (err != nil && cp.SentAt.IsZero() && l.remainingTime(cp) <= 0) {
		return l.fail(ctx, r, cp, err.Error())
	}
	if err != nil {
		return err
	}
	s.Copy = cp
	return l.noteArrival(ctx, r, s, since, began)
}

// noteArrival notes a message that was sent or edited by a call that began then, or that may be there since before, and brings its list up
// to date.
func (l *lane) noteArrival(ctx context.Context, r permissions.Request, s sending, since, began time.Time) error {
	if s.SentAt.IsZero() {
		l.recent[r.ID] = l.elapsed()
	}
	if s.was == "" && s.Burst != "" {
		s.SentAt, s.ChannelTime = time.Time{}, time.Time{} // of the list, which has not all of it
	}
	s.Shown = l.shownAt(r)
	s.Copy = l.withSendTime(s.Copy, since, began)
	if err := l.storeSent(ctx, s); err != nil || s.Burst == "" {
		return err
	}
	l.opened[r.ID] = s.Copy
	return l.updateList(ctx, r, s.Copy)
}

// resetShown has a copy shown as if it never had been: what its person saw was another account's, or not all of it.
func (l *lane) resetShown(ctx context.Context, cp permissions.Copy) error {
	cp.SentAt, cp.ChannelTime, cp.DueAt = time.Time{}, time.Time{}, l.service.clock.Stamp()
	err := l.service.store.SendAgain(ctx, cp)
	l.dispatcher.Enqueue(cp.Request) // also after a store failure: the write may have succeeded
	return err
}

// shownAt is the revision that a copy shows which was just sent or edited.
func (l *lane) shownAt(r permissions.Request) int64 {
	if _, follows := l.connector.(connectors.Follower); follows {
		return permissions.ShownAlways
	}
	return r.Revision
}

// recipient returns the person of a copy. If that person can no longer answer, it says so in the message, and unless there is
// something left to show, it ends the copy.
func (l *lane) recipient(
	ctx context.Context, r permissions.Request, cp *permissions.Copy, copies []permissions.Copy,
) (person connectors.Person, shows bool, err error) {
	e := l.service
	person, known := e.dir.Settings().Person(cp.Person)
	left := cp.Ref == "" || r.HasVoted(cp.Person)
	if cp.SentAt.IsZero() {
		left = r.State == permissions.Pending
	}
	lost := e.lacksAccount(person, *cp)
	if out := !known && left || person.Locked != ""; cp.Group == "" && cp.Ref != "" && (lost || out && cp.SentAt.IsZero()) {
		if err := l.markUnanswerable(ctx, cp, e.Prompt(ctx, r, *cp, person, copies)); err != nil {
			return person, false, err
		}
	}
	if !known && cp.Group == "" && left {
		return person, false, l.orphaned(ctx, r, *cp)
	}
	shows = person.Locked != "" && cp.Ref != "" && !cp.SentAt.IsZero() // edit it to show that it can no longer be answered
	if why := e.whyBarred(person, l.connector.Name()); why != nil && cp.Group == "" && !shows {
		e.reconciler.Enqueue(r.ID)
		return person, false, e.closeCopy(ctx, cp, why)
	}
	return person, true, nil
}

// markUnanswerable edits a message that its person can no longer answer to say so. One that an earlier process may have sent is forgotten
// then: if its person can answer again, it is sent anew.
func (l *lane) markUnanswerable(ctx context.Context, cp *permissions.Copy, p connectors.Prompt) error {
	editor, edits := l.connector.(connectors.Editor)
	if !edits {
		return nil
	}
	err := editor.Edit(ctx, cp.Ref, p)
	if err != nil && !errors.Is(err, connectors.ErrUnreachable) && !errors.Is(err, connectors.ErrResend) {
		return err
	}
	if cp.SentAt.IsZero() {
		cp.Ref = ""
		return l.service.store.SendAgain(ctx, *cp)
	}
	return nil
}

// decidedInPrivate reports whether a group, which was not asked yet, is to see who decided r.
func decidedInPrivate(r permissions.Request, cp permissions.Copy, copies []permissions.Copy) bool {
	return r.State != permissions.Pending && r.State != permissions.Cancelled && r.DecidedBy != "" && cp.Group != "" && cp.Ref == "" &&
		dueInGroup(cp, copies).After(r.DecidedAt)
}

// reportOutcome sends a settled prompt without a sound.
func (l *lane) reportOutcome(ctx context.Context, p connectors.Prompt) (ref string, err error) {
	p.Refresh, p.Silent = nil, true
	return l.connector.Send(ctx, p)
}

// send sends a prompt. The call is cancelled some time after its request has ended.
func (l *lane) send(ctx context.Context, cp permissions.Copy, p connectors.Prompt, began time.Time) (ref string, err error) {
	call, stop := context.WithCancel(ctx)
	defer stop()
	_, dates := l.connector.(connectors.MessageDater)
	l.attempted(cp, func(a *attempt) {
		if a.stop = stop; !dates { // else it reports itself when it sends
			a.began, a.to, a.failed = cmp.Or(a.began, began), p.To.Addresses[l.connector.Name()], false
		}
	})
	return l.connector.Send(call, p)
}

// storeSent stores what was sent or edited, even while stopping, and applies what happened meanwhile. When another message
// was taken for the prompt because somebody pressed its buttons, the new one becomes the prompt and the other says so.
// The group may have been renamed, and the person's account changed or suspended.
func (l *lane) storeSent(ctx context.Context, s sending) error {
	e := l.service
	ctx, done := shared.Noting(ctx)
	defer done()
	if e.redrawn.Load() == s.redrawn && !s.title {
		e.noteWhole(ctx, s.Copy)
	}
	err, other := e.store.MarkShown(ctx, s.Copy, s.was), (*permissions.OtherMessageError)(nil)
	switch is := errors.As(err, &other); {
	case is && s.Ref != s.was:
		err = l.replace(ctx, s.Copy, other.Ref)
	case is: // an edit of a former prompt
		return e.withhold(ctx, e.dir.Settings(), []permissions.Copy{s.Copy})
	case err != nil && s.Ref != s.was:
		l.unnoted[s.Request] = s
	}
	if err != nil {
		return err
	}
	if e.redrawn.Load() != s.redrawn {
		again := s.Copy
		again.Shown = 0
		if err := e.store.MarkShown(ctx, again, s.Ref); err != nil {
			return err
		}
		l.dispatcher.Enqueue(s.Request)
	}
	found, lost := e.lost.Load(e.chatAt(s.Copy))
	if why, isText := found.(*string); lost && isText && found != s.lost {
		return e.abandonCopies(ctx, []permissions.Copy{s.Copy}, *why)
	}
	return e.withhold(ctx, e.dir.Settings(), []permissions.Copy{s.Copy})
}

// replace makes the message that was just sent the prompt, where another message is stored as that.
func (l *lane) replace(ctx context.Context, cp permissions.Copy, other string) error {
	if err := l.service.store.MarkShown(ctx, cp, other); err != nil {
		return err
	}
	r, _, there, err := l.service.read(ctx, cp.Request)
	if !there {
		return err
	}
	person, _ := l.service.dir.Settings().Person(cp.Person)
	if editor, edits := l.connector.(connectors.Editor); edits {
		err = editor.Edit(ctx, other, l.service.Prompt(ctx, r, cp, person, nil))
	}
	if err != nil {
		l.log.Warn("edit duplicate prompt: its buttons will report that it is outdated", "request", r.ID, "err", err)
	}
	return nil
}

// errEnded is the error of a prompt that must not be sent when its turn comes: the request is looked at again.
var errEnded = &unfinished{errors.New("prompt no longer to be sent"), minRetry}

// refresh lets the connector rebuild the prompt right before sending it, unless the request has ended or the person may
// no longer be sent anything. It records the request and the time as they are then.
func (l *lane) refresh(p *connectors.Prompt, r *permissions.Request, cp permissions.Copy, began *time.Time) {
	p.Refresh = func(ctx context.Context, begins bool) (connectors.Prompt, error) {
		is, copies, there, err := l.service.read(ctx, r.ID)
		if err != nil {
			return *p, err
		}
		person, known := l.service.dir.Settings().Person(cp.Person)
		barred := cp.Group == "" && (!known || directory.AccountProblem(person, l.connector.Name()) != nil)
		moved := cp.Group == "" && directory.AccountsChanged([]connectors.Person{p.To}, []connectors.Person{person})
		if *r = is; !there || moved || cp.SentAt.IsZero() && (r.State != permissions.Pending || barred) {
			return *p, errEnded
		}
		if *began = l.service.clock.Stamp(); begins {
			to := person.Addresses[l.connector.Name()]
			l.attempted(cp, func(a *attempt) { a.began, a.to, a.failed = cmp.Or(a.began, *began), to, false })
		}
		now := l.service.Prompt(ctx, is, cp, person, copies)
		now.Ref, now.Refresh = p.Ref, p.Refresh
		return now, nil
	}
}

// withSendTime returns a copy with its first send time: the time of the channel's reply if the channel dates messages itself,
// since quick answers are compared with that; else the time of the send.
func (l *lane) withSendTime(cp permissions.Copy, since, began time.Time) permissions.Copy {
	if !cp.SentAt.IsZero() {
		return cp
	}
	cp.SentAt = cmp.Or(since, began)
	if dater, dates := l.connector.(connectors.MessageDater); dates && since.IsZero() {
		cp.ChannelTime = dater.SentTime(cp.Ref)
		l.compareClocks(cp.ChannelTime, began)
	}
	if !cp.ChannelTime.IsZero() {
		cp.SentAt = l.service.clock.Stamp()
	}
	return cp
}

// maxSkew is the clock difference between channel and machine above which it is reported.
const maxSkew = 5 * time.Second

// compareClocks records how far the channel's clock is ahead of the machine's. The channel dated, in whole seconds, a
// Prompt that was sent between began and now.
func (l *lane) compareClocks(dated, began time.Time) {
	ahead := time.Duration(0)
	switch now := l.service.clock.Now(); {
	case dated.IsZero(): // no date
		return
	case dated.After(now.Add(time.Second)):
		ahead = dated.Sub(now)
	case dated.Before(began.Add(-time.Second)):
		ahead = dated.Sub(began)
	}
	l.clockLead.Store(int64(ahead))
}

// skew returns the report on the channel's clock; nil: it agrees with the machine's, or is unknown.
func (c *dispatcher) skew() error {
	ahead, than := time.Duration(c.clockLead.Load()).Round(time.Second), "behind"
	if ahead < 0 {
		than = "ahead of"
	}
	if ahead.Abs() < maxSkew {
		return nil
	}
	return fmt.Errorf("this machine's clock is %v %s that of %s, so deadlines and times on cards are wrong; set the machine's clock",
		ahead.Abs(), than, c.connector.Name())
}

// attempted records something about a prompt that was never shown.
func (l *lane) attempted(cp permissions.Copy, note func(*attempt)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.unshown[cp.Request]; a != nil {
		note(a)
	}
}

// mayBeSentSince returns since when a prompt with an allocated id may have arrived; zero if it cannot have.
func (l *lane) mayBeSentSince(cp permissions.Copy) (at time.Time) {
	if cp.Ref == "" {
		return at
	}
	at = cp.DueAt // an earlier process may have sent it
	l.attempted(cp, func(a *attempt) {
		if a.named {
			at = a.began
		}
	})
	return at
}

// seenWithin is how long a call that sends a prompt may take and its code count as seen. What is sent for longer may never arrive.
const seenWithin = 10 * time.Second

// Sending returns when the call began that sends the first prompt of a copy, if it goes on, and to the account that its person has now:
// who names its code may have seen it. The code alone is told in other places, too, so what an earlier process may have sent counts once
// this one sends it again.
func (d *Dispatch) Sending(cp permissions.Copy) (at time.Time) {
	p, _ := d.dir.Settings().Person(cp.Person)
	d.attempt(cp, func(a attempt) {
		theirs := cp.Group != "" || a.to == p.Addresses[cp.Connector]
		if !a.failed && theirs && d.clock.Now().Sub(a.began) < seenWithin {
			at = a.began
		}
	})
	return at
}

// attempt calls look with what is known of a copy that was not shown yet, if there is something.
func (d *Dispatch) attempt(cp permissions.Copy, look func(attempt)) {
	for _, c := range d.dispatchers {
		c.mu.Lock()
		l := c.lanes[chatOf(cp)]
		c.mu.Unlock()
		if l == nil || c.connector.Name() != cp.Connector || !cp.SentAt.IsZero() {
			continue
		}
		l.mu.Lock()
		if a := l.unshown[cp.Request]; a != nil {
			look(*a)
		}
		l.mu.Unlock()
	}
}

// orphaned keeps the copy of a person who is not configured if they saw nothing of it, if they voted, or if it is to be
// sent again. Soon they are no longer asked; if they are configured again first, it is still theirs.
func (c *dispatcher) orphaned(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	why := cp.Person + " is not configured"
	switch {
	case !cp.SentAt.IsZero():
		return c.fail(ctx, r, cp, why)
	case slices.Contains(r.Asked, cp.Person):
		return &connectors.UnreachableError{Reason: why}
	}
	return nil
}

// fail gives a copy up for good and looks for other recipients. A prompt that was shown counts as reached, whatever
// happens to its channel; but the recipients in a group that can no longer be used are asked individually. An entry of a list that was
// opened was not shown.
func (c *dispatcher) fail(ctx context.Context, r permissions.Request, cp permissions.Copy, why string) error {
	e := c.service
	if cp.Burst != "" && cp.Ref == "" && r.State == permissions.Pending {
		cp.SentAt, cp.ChannelTime, cp.Failed = time.Time{}, time.Time{}, why
		err := e.store.SendAgain(ctx, cp)
		e.reconciler.Enqueue(r.ID)
		return err
	}
	if !cp.SentAt.IsZero() && (cp.Group == "" || r.State != permissions.Pending) {
		cp.Shown = r.Revision // shown once; it is not edited any more
		return e.store.MarkShown(ctx, cp, cp.Ref)
	}
	cp.Failed = why
	err := e.store.MarkFailed(ctx, cp)
	if r.State == permissions.Pending {
		e.reconciler.Enqueue(r.ID) // also after a store failure: the write may have succeeded
	}
	return err
}
