package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// sendNotices sends the stored notices until ctx ends: at once, or after the quiet hours of their person. Failures are
// retried when the channel says so, or a little later.
func (d *Dispatch) sendNotices(ctx context.Context) error {
	t := &noticeSender{e: d, rests: map[permissions.ID]time.Duration{}, busy: map[chat]bool{}, wake: timing.NewSignal()}
	defer t.work.Wait()
	for ctx.Err() == nil {
		wait, err := t.sendDue(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Warn("send notices: retrying", "err", err)
			wait = min(wait, shared.RetryMost)
		}
		select {
		case <-ctx.Done():
		case <-d.registry.Noticed():
		case <-t.wake:
		case <-time.After(wait):
		}
	}
	return nil
}

// noticeSender sends notices, one after the other in each chat, so that a hanging chat delays no other.
type noticeSender struct {
	e    *Dispatch
	work sync.WaitGroup
	wake timing.Signal // a chat is done

	mu    sync.Mutex
	busy  map[chat]bool
	rests map[permissions.ID]time.Duration // when a deferred notice is due, monotonic
}

// tellTime bounds one call of a channel.
const tellTime = 10 * time.Second

// quietStep bounds the notifier's sleep during quiet hours, since the clock may be set meanwhile.
const quietStep = time.Second

// sendDue starts sending what is due and returns how long to wait for the rest.
func (t *noticeSender) sendDue(ctx context.Context) (wait time.Duration, err error) {
	wait = shared.Idle
	t.mu.Lock()
	busy := maps.Clone(t.busy) // before listing: what is sent meanwhile is not sent again
	t.mu.Unlock()
	var all []permissions.Notice
	for after := permissions.ID(""); ; {
		notices, err := t.e.store.Notices(ctx, after, shared.Page)
		if err != nil {
			return wait, err
		}
		if all = append(all, notices...); len(notices) < shared.Page {
			break
		}
		after = notices[len(notices)-1].ID
	}
	due := map[chat][]permissions.Notice{}
	now := t.e.clock.Elapsed()
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.rests, func(_ permissions.ID, until time.Duration) bool { return until <= now })
	for _, n := range all {
		at := chat{person: n.To, place: n.Group}
		if until, resting := t.rests[n.ID]; resting {
			wait = min(wait, until-now)
		} else if !busy[at] {
			due[at] = append(due[at], n)
		}
	}
	for at, notices := range due {
		t.busy[at] = true
		t.work.Go(func() { t.sendInChat(ctx, at, notices) })
	}
	return wait, nil
}

func (t *noticeSender) sendInChat(ctx context.Context, at chat, notices []permissions.Notice) {
	for _, n := range notices {
		at := t.e.clock.Elapsed()
		later, err := t.e.deliverNotice(ctx, n)
		if err != nil {
			at = t.e.clock.Elapsed()
		}
		if again := connectors.RetryAfter(err); again > 0 {
			t.e.log.Info("notice deferred", "about", n.About, "delay", again, "err", err)
			later = again
		} else if err != nil && ctx.Err() == nil {
			level := slog.LevelWarn
			if _, expected := errors.AsType[connectors.ReadySignaler](err); expected {
				level = slog.LevelDebug
			}
			t.e.log.Log(ctx, level, "send notice: retrying", "about", n.About, "err", err)
			later = shared.RetryMost
		}
		if later > 0 {
			t.mu.Lock()
			t.rests[n.ID] = at + later
			t.mu.Unlock()
		}
	}
	t.mu.Lock()
	delete(t.busy, at)
	t.mu.Unlock()
	t.wake.Notify()
}

// deliverNotice sends one notice, or returns how long it has to wait. A notice that is pointless or undeliverable is deleted.
func (d *Dispatch) deliverNotice(ctx context.Context, n permissions.Notice) (later time.Duration, err error) {
	if n.Group != "" {
		return d.remindIn(ctx, n)
	}
	person, known := d.dir.Settings().Person(n.To)
	if !known {
		return 0, d.store.DeleteNotice(ctx, n.ID)
	}
	now := d.dir.LocalTime(person)
	if person.Quiet.Hold(now) && !n.Urgent {
		return quietStep, nil // the clock may be set, and hours change length with daylight saving
	}
	if n.About == permissions.AboutUnknownSenders {
		return d.notifyUnknownSenders(ctx, n, person)
	}
	notice := connectors.Notice{To: person, About: n.About, By: n.By}
	if n.About == permissions.AboutQuiet {
		if later, err := d.digest(ctx, n, &notice); later > 0 || err != nil {
			return later, err
		}
	}
	there, err := d.fill(ctx, n, &notice)
	if err != nil {
		return 0, err
	}
	later, news := d.reminderDelay(n.To, notice)
	if !there || !news {
		return 0, d.store.DeleteNotice(ctx, n.ID)
	}
	if later > 0 {
		return later, nil
	}
	if err := d.announce(ctx, n, notice); err != nil {
		return 0, err
	}
	return 0, d.store.DeleteNotice(ctx, n.ID)
}

// remindEvery is the shortest time between two reminders of one person, or in one group.
const remindEvery = time.Minute

// reminder is the last reminder of a person, or in a group: when, monotonic, and of what.
type reminder struct {
	at time.Duration
	of []connectors.Prompt
}

// reminderDelay returns how long a reminder has to wait for the previous one; news is false if that one named everything that
// is still pending. Other notices never wait.
func (d *Dispatch) reminderDelay(who string, n connectors.Notice) (later time.Duration, news bool) {
	was, sent := d.reminded.Load(who)
	last, _ := was.(reminder)
	if later = last.at + remindEvery - d.clock.Elapsed(); !sent || later <= 0 || n.About != permissions.AboutWaiting {
		return 0, true
	}
	return later, slices.ContainsFunc(n.Waiting, func(p connectors.Prompt) bool {
		return !slices.ContainsFunc(last.of, func(q connectors.Prompt) bool {
			return q.Request.ID == p.Request.ID && (n.Group == "" || len(q.Request.Asked) == len(p.Request.Asked))
		})
	})
}

// announce sends a notice if anybody can receive it. An error means that it should be retried.
func (d *Dispatch) announce(ctx context.Context, n permissions.Notice, notice connectors.Notice) error {
	err := d.sendNotice(ctx, notice)
	if err == nil && n.About == permissions.AboutWaiting {
		d.reminded.Store(n.To, reminder{d.clock.Elapsed(), notice.Waiting})
	}
	if err == nil || !errors.Is(err, connectors.ErrUnreachable) {
		return err
	}
	d.log.Info("notice undeliverable", "about", n.About, "to", n.To)
	return nil
}

// fill adds the notice's subject from the current rows; there is false when nothing is left to say.
func (d *Dispatch) fill(ctx context.Context, n permissions.Notice, notice *connectors.Notice) (there bool, err error) {
	switch n.About {
	case permissions.AboutWaiting:
		notice.Waiting, err = d.waitingFor(ctx, notice.To)
		return len(notice.Waiting) > 0, err
	case permissions.AboutEnded, permissions.AboutRevoked:
		notice.Grant, err = d.store.Grant(ctx, n.Subject)
		if permissions.AsRefusal(err) != nil {
			return false, nil // no longer stored
		}
		if err == nil && (n.About == permissions.AboutRevoked || notice.Grant.IsTrust()) {
			notice.Ran, err = d.store.RanUnder(ctx, n.Subject, shared.RanMost)
		}
		return true, err
	}
	if n.About == permissions.AboutPairing {
		s, open, err := d.dir.Proposal(ctx, string(n.Subject))
		notice.UnknownSenders.List = []permissions.UnknownSender{s}
		return open && err == nil, err
	}
	if n.About == permissions.AboutMuted {
		for id := range strings.FieldsSeq(n.CallerMessage.Text) {
			r, err := d.store.Read(ctx, permissions.ID(id))
			switch {
			case err == nil && slices.Contains(r.Asked, n.To):
				notice.Ran = append(notice.Ran, r)
			case err != nil && permissions.AsRefusal(err) == nil && !errors.Is(err, permissions.ErrRow):
				return false, err
			}
		}
		return true, nil
	}
	if isFromCaller(n) {
		notice.CallerMessage, notice.At, notice.Silent = n.CallerMessage, n.CreatedAt, n.CallerMessage.Silent
		notice.Codes, err = shared.Codes(ctx, d.store)
	}
	return true, err
}

// isFromCaller reports whether a notice was sent by a caller.
func isFromCaller(n permissions.Notice) bool {
	return slices.Contains(permissions.CallerSubjects(), n.About)
}

// CheckNotifiable returns why a person cannot receive a notice; nil if a channel may accept it, now or later.
func (d *Dispatch) CheckNotifiable(p connectors.Person) error {
	why := p.Name + " has no channel that takes notices"
	for _, name := range d.channels(p) {
		c, on := d.dir.Channel(name)
		if _, tells := c.(connectors.Notifier); !on || !tells {
			continue
		}
		err := checkReachable(c, p)
		if err == nil {
			return nil
		}
		why = err.Error()
	}
	return permissions.CannotNotify(why)
}

// waitingFor returns what awaits one person's answer, except for what a group is reminded of, and
// for what others can decide while the person is away.
func (d *Dispatch) waitingFor(ctx context.Context, to connectors.Person) ([]connectors.Prompt, error) {
	rows, err := d.store.Pending(ctx, to.Name, "", shared.Page)
	if err != nil {
		return nil, err
	}
	var waiting []connectors.Prompt
	for _, r := range rows {
		if away, enough := d.dir.Settings().Away(r, d.clock.Now()); enough && isAmong(away, to.Name) || d.isSilenced(to.Name, r) {
			continue
		}
		if elsewhere, err := d.inGroupOnly(ctx, r, to.Name); err != nil {
			return nil, err
		} else if elsewhere {
			continue
		}
		if !slices.ContainsFunc(r.Votes, func(v permissions.Vote) bool { return v.By == to.Name && v.Call == 0 }) {
			waiting = append(waiting, connectors.Prompt{Request: r, To: to, Code: d.store.Coder().Encode(r.Number)})
		}
	}
	return waiting, nil
}

// sendNotice sends a notice through the person's first channel that accepts it, and on every screen as well. If there is none,
// the error matches [connectors.ErrUnreachable]; a temporary failure counts only while nobody else accepted it.
func (d *Dispatch) sendNotice(ctx context.Context, n connectors.Notice) error {
	said, away := false, error(nil)
	for _, name := range d.channels(n.To) {
		c, on := d.dir.Channel(name)
		teller, tells := c.(connectors.Notifier)
		_, screen := c.(connectors.Screen)
		if !on || !tells || (said && !screen) || checkReachable(c, n.To) != nil {
			continue
		}
		aimed, err := d.forChannel(ctx, n, name)
		if err != nil {
			return err
		}
		if err := d.checkLease(ctx); err != nil {
			return err
		}
		brief, done := context.WithTimeout(ctx, tellTime)
		err = teller.Notify(brief, aimed)
		done()
		said = said || err == nil
		if err != nil && !errors.Is(err, connectors.ErrUnreachable) {
			away = err
		}
	}
	switch {
	case said:
		return nil
	case away != nil:
		return away
	}
	return &connectors.UnreachableError{Reason: n.To.Name + " has no channel that takes notices"}
}

// forChannel returns a notice as that channel may show it, with the message id there of each request of a reminder, so that the reminder
// can point to it.
func (d *Dispatch) forChannel(ctx context.Context, n connectors.Notice, connector string) (connectors.Notice, error) {
	n.Waiting, n.Ran = slices.Clone(n.Waiting), slices.Clone(n.Ran)
	if n.Grant.ID != "" {
		n.Grant = d.ShownGrants(ctx, []permissions.Grant{n.Grant}, connector)[0]
	}
	for i := range n.Ran {
		n.Ran[i] = d.dir.Settings().Shown(n.Ran[i], connector)
	}
	for i := range n.Waiting {
		p := &n.Waiting[i]
		copies, err := d.store.Copies(ctx, p.Request.ID)
		if err != nil {
			return n, err
		}
		p.Request = d.dir.Settings().Shown(p.Request, connector)
		p.Ref = ""
		for _, cp := range copies {
			if cp.Person == n.To.Name && cp.Connector == connector && cp.Group == "" {
				p.Ref = cp.Ref
			}
		}
	}
	return n, nil
}

// ShownGrants returns grants as a channel may show them: without paths where it shows no more than titles of the requests that they
// come from, or may have shown no more of those that are not kept any longer.
func (d *Dispatch) ShownGrants(ctx context.Context, all []permissions.Grant, channel string) []permissions.Grant {
	s := d.dir.Settings()
	if !s.HidesIn(channel) {
		return all
	}
	all = slices.Clone(all)
	for i, g := range all {
		if r, err := d.store.Read(ctx, g.Request); err != nil || s.Shown(r, channel).OnlyTitle {
			all[i] = g.Title()
		}
	}
	return all
}

// channels returns the channel names of a person in order: those that they named, then every screen; without names, all.
func (d *Dispatch) channels(p connectors.Person) []string {
	names := slices.Clone(p.Via)
	for _, c := range d.dispatchers {
		_, screen := c.connector.(connectors.Screen)
		if name := c.connector.Name(); (screen || len(p.Via) == 0) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// NoteUnknownSender records that an unknown account wrote. The owner is told at once, or a day after the last such notice.
func (d *Dispatch) NoteUnknownSender(ctx context.Context, s permissions.UnknownSender) error {
	if d.dir.IsKnown(s) { // also if locked
		return nil
	}
	s.At = d.clock.Stamp()
	noting, done := shared.Noting(ctx)
	defer done()
	if err := d.store.AddUnknownSender(noting, s, d.dir.Settings().Owner().Name); err != nil {
		return shared.Broken(err)
	}
	d.registry.NotifyNotices()
	return nil
}

// notifyUnknownSenders sends the owner the notice of unknown senders, or returns how long it has to wait.
func (d *Dispatch) notifyUnknownSenders(
	ctx context.Context, n permissions.Notice, owner connectors.Person,
) (later time.Duration, err error) {
	now := d.clock.Stamp() // before they are read: whoever writes until the notice is due is in it
	met, err := d.store.UnknownSenders(ctx)
	if err != nil {
		return 0, err
	}
	left := met.ToldAt.Add(permissions.UnknownSendersEvery).Sub(now)
	if !met.ToldAt.IsZero() && left > 0 && left <= permissions.UnknownSendersEvery { // else the clock was set back
		return min(left, shared.Idle), nil
	}
	notice := connectors.Notice{To: owner, About: n.About, UnknownSenders: met, Silent: true}
	notice.UnknownSenders.List = slices.DeleteFunc(slices.Clone(met.List), d.dir.IsKnown)
	notice.Unpaired = map[string][]string{}
	for _, s := range notice.UnknownSenders.List {
		notice.Unpaired[s.Via] = d.dir.Unpaired(s.Via)
	}
	if len(notice.UnknownSenders.List) == 0 {
		return 0, d.store.MarkUnknownSendersTold(ctx, n, met, time.Time{})
	}
	if err := d.announce(ctx, n, notice); err != nil {
		return 0, err
	}
	return 0, d.store.MarkUnknownSendersTold(ctx, n, met, now)
}
