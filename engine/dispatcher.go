package engine

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
	"github.com/daycared/daycared/permissions"
)

// dispatcher brings the copies of one connector up to date: it shows what was never shown, and edits what is older than
// its request. Each chat has a lane of its own, so that one that is slow or hangs holds up no other; the dispatcher sorts
// requests into them. It works from the rows alone, so changes coalesce by themselves and a crash loses nothing.
type dispatcher struct {
	*workQueue
	engine    *Engine
	connector connectors.Connector

	ahead atomic.Int64 // nanoseconds that the channel's clock is ahead of the machine's, as far as its last card shows

	mu    sync.Mutex
	lanes map[chat]*lane
}

// chat is where requests are shown: to a person, or in a place.
type chat struct{ person, place string }

// chatOf is where a copy is shown: those in one place are one message.
func chatOf(cp permissions.Copy) chat {
	if cp.Group != "" {
		return chat{place: cp.Group}
	}
	return chat{person: cp.Person}
}

// lane is what one chat of a connector is still to be shown, one after the other: cards before edits (see rank), and of
// each rank what was shown least recently, but of what is settled the newest.
type lane struct {
	*workQueue
	*dispatcher
	chat    chat
	unnoted map[permissions.ID]sending // messages that were sent, which the store could not be told yet; the worker's own

	mu      sync.Mutex                  // guards what is below
	seen    map[permissions.ID]look     // of what is pending
	unshown map[permissions.ID]*attempt // cards of what is pending
}

// sending is a message that was sent, or edited: its copy as it is then, by which name it was known before, and, as they
// were before, how often everything was to be brought up to date and what was told of its chat by [Engine.ChatLost].
type sending struct {
	permissions.Copy
	was     string
	redrawn int64
	lost    any
}

// look is what a card was last edited to, but for who waits.
type look struct {
	at                     time.Duration
	votes, asked, answered int
	deadline               time.Time
}

// attempt is a card that was never shown.
type attempt struct {
	since time.Duration // it is to be shown, by the time that passes
	why   string        // it is not shown yet
	late  bool          // it was so at the last look
	began time.Time     // it went out: since then it may be on the phone; zero before
	named bool          // by this process, so that it did not go out before began
	stop  func()        // ends the call that sends it; nil while there is none
}

const (
	// presenceEvery is how often at most a card is edited only because somebody began to wait, or left.
	presenceEvery = 5 * time.Second
	// lateEvery is how often it is looked for cards that were to be shown within a time that is over.
	lateEvery = 500 * time.Millisecond
	// lastWord is how long the call that sends a card goes on once its request is over: other cards wait for it.
	lastWord = 3 * time.Second
)

func newDispatcher(e *Engine, c connectors.Connector) *dispatcher {
	return &dispatcher{
		engine: e, connector: c, workQueue: newWorkQueue(e.clock.Elapsed, e.log.With("connector", c.Name())), lanes: map[chat]*lane{},
	}
}

// run shows and edits until ctx ends.
func (c *dispatcher) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return c.workQueue.run(ctx, func(ctx context.Context, id permissions.ID) error { return c.sort(ctx, id, group) })
	})
	group.Go(func() error { return c.watch(ctx) })
	return group.Wait()
}

// read gives a request with its copies, as a queue needs them: there is false for one that is gone, or was not opened.
func (e *Engine) read(ctx context.Context, id permissions.ID) (r permissions.Request, copies []permissions.Copy, there bool, err error) {
	if r, err = e.store.Read(ctx, id); err == nil {
		copies, err = e.store.Copies(ctx, id)
	}
	if permissions.AsRefusal(err) != nil || errors.Is(err, permissions.ErrRow) {
		return r, nil, false, nil //nolint:nilerr // it is gone, was not opened, or is not used
	}
	return r, copies, err == nil, err
}

// sort puts a request into the lanes whose copies of it are not up to date, and starts those that are new.
func (c *dispatcher) sort(ctx context.Context, id permissions.ID, group *errgroup.Group) error {
	r, copies, _, err := c.engine.read(ctx, id)
	for _, cp := range copies {
		if !c.lags(r, cp) {
			continue
		}
		c.mu.Lock()
		l := c.lanes[chatOf(cp)]
		if l == nil {
			l = &lane{
				dispatcher: c, chat: chatOf(cp), workQueue: newWorkQueue(c.elapsed, c.log),
				seen: map[permissions.ID]look{}, unshown: map[permissions.ID]*attempt{}, unnoted: map[permissions.ID]sending{},
			}
			c.lanes[l.chat] = l
			group.Go(func() error { return l.workQueue.run(ctx, l.deliver) })
		}
		c.mu.Unlock()
		l.take(r, eldest(cp, copies))
	}
	return err
}

// lags reports whether a copy is one of this connector's that is not up to date.
func (c *dispatcher) lags(r permissions.Request, cp permissions.Copy) bool {
	return cp.Connector == c.connector.Name() && cp.Failed == "" && cp.Shown < r.Revision
}

// take puts a request among those to be shown here.
func (l *lane) take(r permissions.Request, cp permissions.Copy) {
	as := pendingEdit
	l.mu.Lock()
	switch was, edited := l.seen[r.ID]; {
	case r.State != permissions.Pending:
		if as = settledEdit; l.unshown[r.ID] != nil && l.unshown[r.ID].stop != nil {
			time.AfterFunc(lastWord, l.unshown[r.ID].stop)
		}
	case cp.SentAt.IsZero():
		as = firstCard
		if l.unshown[r.ID] == nil {
			l.unshown[r.ID] = &attempt{since: l.elapsed() + l.early(r, cp)}
		}
	case edited && was.same(r):
		as = presenceEdit
	}
	l.mu.Unlock()
	l.put(r.ID, as)
}

// lookOf is what there is to see of a pending request, but for who waits.
func lookOf(r permissions.Request) look {
	l := look{votes: len(r.Votes), asked: len(r.Asked), deadline: r.Deadline}
	for _, c := range r.Calls {
		if c.Answer != "" {
			l.answered++
		}
	}
	return l
}

func (l look) same(r permissions.Request) bool {
	is := lookOf(r)
	is.at = l.at
	return is == l
}

// deliver brings this lane's copy of one request up to date. An error means that it should be tried again.
func (l *lane) deliver(ctx context.Context, id permissions.ID) error {
	if s, sent := l.unnoted[id]; sent {
		if err := l.note(ctx, s); err != nil && permissions.AsRefusal(err) == nil { // which is of a row that is gone
			return err
		}
		delete(l.unnoted, id)
	}
	r, copies, there, err := l.engine.read(ctx, id)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(copies, func(cp permissions.Copy) bool { return l.lags(r, cp) && chatOf(cp) == l.chat })
	if at >= 0 {
		cp := eldest(copies[at], copies)
		if after := max(l.early(r, cp), l.background(r, cp)); after > 0 {
			return &unfinished{errEarly, after}
		}
		if err := l.bringUpToDate(ctx, r, cp, copies); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unshown, id)
	if !there || r.State != permissions.Pending {
		delete(l.seen, id)
	}
	return nil
}

// errEarly is why a copy is not up to date that is held back.
var errEarly = errors.New("kept from a phone for now")

// early is how long a copy is still held back (see hold). One that lies further ahead than its person wants was planned
// before the clock was set back, and is shown.
func (c *dispatcher) early(r permissions.Request, cp permissions.Copy) time.Duration {
	ahead := cp.Since.Sub(c.engine.clock.Now())
	person, _ := c.engine.settings.Load().person(cp.Person)
	if r.State != permissions.Pending || !cp.SentAt.IsZero() || ahead <= 0 || ahead > hold(c.connector, person, r) {
		return 0
	}
	return max(ahead, retryLeast)
}

// background is how long an edit is still held back that would only show who waits.
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

// bringUpToDate shows one copy: the error is why it is not up to date. Where the channel wants to be left alone, so it is, by what
// failed and what is less urgent; cards that were never shown are not held up by an edit.
func (l *lane) bringUpToDate(ctx context.Context, r permissions.Request, cp permissions.Copy, copies []permissions.Copy) error {
	err := l.show(ctx, r, cp, copies)
	if err == nil && r.State == permissions.Pending {
		l.dispatcher.Enqueue(r.ID) // the copy may have been given up meanwhile, and not been looked at when the request was settled
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	as := pendingEdit
	if cp.SentAt.IsZero() {
		as = firstCard
	} else if err == nil && r.State == permissions.Pending {
		is := lookOf(r)
		is.at = l.elapsed()
		l.seen[r.ID] = is
	}
	if a := l.unshown[r.ID]; a != nil && err != nil {
		a.why = err.Error()
	}
	if after := connectors.RetryAfter(err); after > 0 {
		l.rest(as, after)
		return &unfinished{err, after}
	}
	return err
}

// watch gives up, until ctx ends, the cards that were not shown within the time that they had, whatever their lane does
// meanwhile. After a time in which the machine slept, each is tried before that.
func (c *dispatcher) watch(ctx context.Context) error {
	for permissions.Pause(ctx, lateEvery) == nil {
		c.mu.Lock()
		lanes := slices.Collect(maps.Values(c.lanes))
		c.mu.Unlock()
		for _, l := range lanes {
			for id, why := range l.overdue() {
				if err := l.giveUp(ctx, id, why); err != nil && ctx.Err() == nil {
					c.log.Warn("a card that was not shown in time cannot be given up just now", "request", id, "err", err)
				}
			}
		}
	}
	return nil
}

// overdue are the cards that have been late since the last look, with why they were not shown.
func (l *lane) overdue() map[permissions.ID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := map[permissions.ID]string{}
	for id, a := range l.unshown {
		late := l.elapsed()-a.since >= l.engine.settings.Load().Approvals.DeliverWithin
		if late && a.late {
			over[id] = cmp.Or(a.why, l.connector.Name()+" does not answer")
		}
		a.late = late
	}
	return over
}

// giveUp fails the copy of a card that is late, unless it was shown meanwhile.
func (l *lane) giveUp(ctx context.Context, id permissions.ID, why string) error {
	r, copies, _, err := l.engine.read(ctx, id)
	if err != nil {
		return err
	}
	for _, cp := range copies {
		if l.lags(r, cp) && chatOf(cp) == l.chat && eldest(cp, copies).SentAt.IsZero() && r.State == permissions.Pending {
			if err := l.fail(ctx, r, cp, why); err != nil {
				return err
			}
			break // of a place, it was all of them
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unshown, id)
	return nil
}

// patience is for how long a copy that was never shown is still tried, by the clock that has less of it.
func (l *lane) patience(cp permissions.Copy) time.Duration {
	within := l.engine.settings.Load().Approvals.DeliverWithin
	byWall, passing := cp.Since.Add(within).Sub(l.engine.clock.Now()), within
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.unshown[cp.Request]; a != nil {
		passing -= l.elapsed() - a.since
	}
	return min(byWall, passing)
}

// eldest is the copy in the place of cp that was shown, if one was: they are one message, which somebody may have joined.
func eldest(cp permissions.Copy, copies []permissions.Copy) permissions.Copy {
	for _, other := range copies {
		if cp.Group != "" && other.Connector == cp.Connector && other.Group == cp.Group && !other.SentAt.IsZero() {
			return other
		}
	}
	return cp
}

// show sends or edits one copy.
func (l *lane) show(ctx context.Context, r permissions.Request, cp permissions.Copy, copies []permissions.Copy) error {
	e := l.engine
	s, err := sending{was: cp.Ref, redrawn: e.redrawn.Load()}, error(nil)
	s.lost, _ = e.lost.Load(e.chatAt(cp))
	person, known := e.settings.Load().person(cp.Person)
	left := cp.Ref == "" || r.HasVoted(cp.Person)
	if cp.SentAt.IsZero() {
		left = r.State == permissions.Pending
	}
	if !known && cp.Group == "" && left {
		return l.orphaned(ctx, r, cp)
	}
	shows := person.Locked != "" && cp.Ref != "" && !cp.SentAt.IsZero() // that it can no longer be answered
	if why := suspended(person, l.connector.Name()); why != nil && cp.Group == "" && !shows {
		return e.abandon(ctx, []permissions.Copy{cp}, why.Error())
	}
	prompt := e.prompt(r, cp, person, copies)
	since := l.went(cp)
	namer, names := l.connector.(connectors.MessageIDAllocator)
	if names && cp.Ref == "" && r.State == permissions.Pending {
		cp.Ref = namer.AllocateID(prompt)
		if err := e.store.MarkNamed(ctx, cp); err != nil {
			return err
		}
		prompt.Ref, s.was = cp.Ref, cp.Ref
		l.attempted(cp, func(a *attempt) { a.named = true })
	}
	began := e.stamp() // a quick answer is dated before the channel says that the card was sent, never before this
	l.refresh(&prompt, &r, cp, &began)
	switch editor, edits := l.connector.(connectors.Editor); {
	case r.State != permissions.Pending && (cp.Ref == "" || cp.SentAt.IsZero() && since.IsZero()):
		return l.fail(ctx, r, cp, "settled before it was shown")
	case cp.Ref == "", names && cp.SentAt.IsZero() && r.State == permissions.Pending:
		cp.Ref, err = l.send(ctx, cp, prompt, began)
	case edits:
		if err = editor.Edit(ctx, cp.Ref, prompt); errors.Is(err, connectors.ErrResend) {
			under := cp
			under.Ref, under.Shown = "", 0 // what is pressed or written before the channel answers finds that a card is on its way
			if err := e.store.MarkShown(ctx, under, cp.Ref); err != nil {
				return err
			}
			s.was, prompt.Ref = "", ""
			cp.Ref, err = l.connector.Send(ctx, prompt)
		}
	case r.State != permissions.Pending: // a channel that cannot edit is told the end in a message of its own
		_, err = l.connector.Send(ctx, prompt)
	}
	if renamed := (*connectors.GroupRenamedError)(nil); errors.As(err, &renamed) {
		return errors.Join(err, e.RenameGroup(ctx, prompt.Group, renamed.Now)) // and is tried again by that name
	}
	if errors.Is(err, connectors.ErrUnreachable) || (err != nil && cp.SentAt.IsZero() && l.tooLate(cp)) {
		return l.fail(ctx, r, cp, err.Error())
	}
	if err != nil {
		return err
	}
	cp.Shown = r.Revision
	s.Copy = l.dated(cp, since, began)
	return l.note(ctx, s)
}

// send sends a card, at most until its request has been over for some time.
func (l *lane) send(ctx context.Context, cp permissions.Copy, p connectors.Prompt, began time.Time) (ref string, err error) {
	call, stop := context.WithCancel(ctx)
	defer stop()
	_, dates := l.connector.(connectors.MessageDater)
	l.attempted(cp, func(a *attempt) {
		if a.stop = stop; !dates { // else it says itself when it goes out
			a.began = cmp.Or(a.began, began)
		}
	})
	return l.connector.Send(call, p)
}

// note tells the store what was sent or edited, also while stopping, and makes up for what happened meanwhile. When
// another message was taken for the card, since somebody pressed its buttons, the new one is it, and the other says so; a
// place may be called something else by now, and somebody may have another account, or one that is suspended.
func (l *lane) note(ctx context.Context, s sending) error {
	e := l.engine
	ctx, done := noting(ctx)
	defer done()
	err, other := e.store.MarkShown(ctx, s.Copy, s.was), (*permissions.ElsewhereError)(nil)
	switch is := errors.As(err, &other); {
	case is && s.Ref != s.was:
		err = l.replace(ctx, s.Copy, other.Ref)
	case is: // an edit of what was a card
		return e.withhold(ctx, e.settings.Load(), []permissions.Copy{s.Copy})
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
	}
	found, lost := e.lost.Load(e.chatAt(s.Copy))
	if why, isText := found.(*string); lost && isText && found != s.lost {
		return e.abandon(ctx, []permissions.Copy{s.Copy}, *why)
	}
	return e.withhold(ctx, e.settings.Load(), []permissions.Copy{s.Copy})
}

// replace has what was just sent be the card, where another message is known as that.
func (l *lane) replace(ctx context.Context, cp permissions.Copy, other string) error {
	if err := l.engine.store.MarkShown(ctx, cp, other); err != nil {
		return err
	}
	r, _, there, err := l.engine.read(ctx, cp.Request)
	if !there {
		return err
	}
	person, _ := l.engine.settings.Load().person(cp.Person)
	if editor, edits := l.connector.(connectors.Editor); edits {
		err = editor.Edit(ctx, other, l.engine.prompt(r, cp, person, nil))
	}
	if err != nil {
		l.log.Warn("a card that was sent twice is not up to date; whoever presses its buttons is told", "request", r.ID, "err", err)
	}
	return nil
}

// errOver is why a card is not sent whose turn it is: what becomes of it is looked at anew.
var errOver = &unfinished{errors.New("it is not to be sent any more"), retryLeast}

// refresh has the prompt made anew when it is the turn of its card, unless the request has ended or its person may be sent
// nothing any more. It notes the request as it is by then, and when that was.
func (l *lane) refresh(p *connectors.Prompt, r *permissions.Request, cp permissions.Copy, began *time.Time) {
	p.Refresh = func(ctx context.Context) (connectors.Prompt, error) {
		is, copies, there, err := l.engine.read(ctx, r.ID)
		if err != nil {
			return *p, err
		}
		person, known := l.engine.settings.Load().person(cp.Person)
		barred := cp.Group == "" && (!known || suspended(person, l.connector.Name()) != nil)
		moved := cp.Group == "" && readdressed([]connectors.Person{p.To}, []connectors.Person{person})
		if *r = is; !there || moved || cp.SentAt.IsZero() && (r.State != permissions.Pending || barred) {
			return *p, errOver
		}
		*began = l.engine.stamp()
		l.attempted(cp, func(a *attempt) { a.began = cmp.Or(a.began, *began) })
		now := l.engine.prompt(is, cp, person, copies)
		now.Ref, now.Refresh = p.Ref, p.Refresh
		return now, nil
	}
}

// dated is a copy with when it was sent first: when its channel answered, if that dates it by itself, so that quick answers are
// compared with that; else when it went out.
func (l *lane) dated(cp permissions.Copy, since, began time.Time) permissions.Copy {
	if !cp.SentAt.IsZero() {
		return cp
	}
	cp.SentAt = cmp.Or(since, began)
	if dater, dates := l.connector.(connectors.MessageDater); dates && since.IsZero() {
		cp.Dated = dater.SentTime(cp.Ref)
		l.compareClocks(cp.Dated, began)
	}
	if !cp.Dated.IsZero() {
		cp.SentAt = l.engine.stamp()
	}
	return cp
}

// mostSkew is how much the clocks of a channel and of the machine may differ before it is said.
const mostSkew = 5 * time.Second

// compareClocks notes how much the channel's clock is ahead of the machine's: it dated, in whole seconds, a card that was sent
// between began and now.
func (l *lane) compareClocks(dated, began time.Time) {
	ahead := time.Duration(0)
	switch now := l.engine.clock.Now(); {
	case dated.IsZero(): // it said nothing
		return
	case dated.After(now.Add(time.Second)):
		ahead = dated.Sub(now)
	case dated.Before(began.Add(-time.Second)):
		ahead = dated.Sub(began)
	}
	l.ahead.Store(int64(ahead))
}

// skew is what there is to say of the channel's clock; nil: it agrees with the machine's, or has not shown.
func (c *dispatcher) skew() error {
	ahead, than := time.Duration(c.ahead.Load()).Round(time.Second), "behind"
	if ahead < 0 {
		than = "ahead of"
	}
	if ahead.Abs() < mostSkew {
		return nil
	}
	return fmt.Errorf("this machine's clock is %v %s that of %s, so deadlines and times on cards are wrong; set the machine's clock",
		ahead.Abs(), than, c.connector.Name())
}

// attempted notes something of a card that was never shown.
func (l *lane) attempted(cp permissions.Copy, note func(*attempt)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.unshown[cp.Request]; a != nil {
		note(a)
	}
}

// went is since when a card that was named may have arrived; zero if it has not.
func (l *lane) went(cp permissions.Copy) (at time.Time) {
	if cp.Ref == "" {
		return at
	}
	at = cp.Since // where an earlier process may have sent it
	l.attempted(cp, func(a *attempt) {
		if a.named {
			at = a.began
		}
	})
	return at
}

// begun is when the first card of a copy went out whose channel has not said yet that it took it: it may be on the phone.
// It is zero for any other copy, one that was named before included, which a life before this may have sent.
func (e *Engine) begun(cp permissions.Copy) (at time.Time) {
	if cp.Ref != "" {
		return at
	}
	for _, c := range e.dispatchers {
		c.mu.Lock()
		l := c.lanes[chatOf(cp)]
		c.mu.Unlock()
		if l == nil || c.connector.Name() != cp.Connector || !cp.SentAt.IsZero() {
			continue
		}
		l.mu.Lock()
		if a := l.unshown[cp.Request]; a != nil {
			at = a.began
		}
		l.mu.Unlock()
	}
	return at
}

// orphaned leaves the copy of somebody who is not in the configuration as it is, if they saw nothing of it, if they voted, or if
// it is to be sent anew: they are soon asked no longer, and when they are put back, even now, it is theirs again.
func (c *dispatcher) orphaned(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	why := cp.Person + " is nobody here"
	switch {
	case !cp.SentAt.IsZero():
		return c.fail(ctx, r, cp, why)
	case slices.Contains(r.Asked, cp.Person):
		return &connectors.UnreachableError{Reason: why}
	}
	return nil
}

// tooLate reports whether a channel that is away has been tried long enough, by either clock: the one on the wall may be
// set.
func (l *lane) tooLate(cp permissions.Copy) bool { return l.patience(cp) <= 0 }

// fail gives a copy up for good, and looks who else can be reached. What was shown once counts as reached, whatever
// happens to its channel; but those who were to answer in a place where nobody can any more are asked by themselves.
func (c *dispatcher) fail(ctx context.Context, r permissions.Request, cp permissions.Copy, why string) error {
	e := c.engine
	if !cp.SentAt.IsZero() && (cp.Group == "" || r.State != permissions.Pending) {
		cp.Shown = r.Revision // seen once; it will not be edited any more
		return e.store.MarkShown(ctx, cp, cp.Ref)
	}
	cp.Failed = why
	err := e.store.MarkFailed(ctx, cp)
	if r.State == permissions.Pending {
		e.reconciler.Enqueue(r.ID) // also where the store failed: it may have noted it
	}
	return err
}
