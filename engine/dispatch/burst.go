package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

const (
	// burstWithin is the time in which a person gets at most [directory.Limits.MaxCards] messages of requests; a list takes more for
	// as long after its last one.
	burstWithin = 30 * time.Second
	// burstEvery is the shortest time between two edits of a list.
	burstEvery = 3 * time.Second
)

// burst is the newest list of a lane.
type burst struct {
	ref    string
	joined time.Duration // when it last took requests, monotonic
	size   int
}

// Burst returns the list that a message is, as the identity's person sees it.
func (d *Dispatch) Burst(ctx context.Context, id connectors.Identity, ref string) (connectors.Burst, error) {
	person, known := d.dir.Settings().Identify(id)
	if !known {
		return connectors.Burst{}, nil
	}
	return d.BurstOf(ctx, id.Via, person.Name, ref)
}

// BurstOf returns what a message of a person lists, as they see it now; nothing if it is no list of theirs.
func (d *Dispatch) BurstOf(ctx context.Context, via, name, ref string) (connectors.Burst, error) {
	person, _ := d.dir.Settings().Person(name)
	copies, err := d.store.Burst(ctx, via, name, ref)
	if err != nil {
		return connectors.Burst{}, shared.Broken(err)
	}
	b, _, err := d.burstOf(ctx, via, person, copies)
	return b, err
}

// burstOf returns the list of copies, without those whose rows are unreadable, and the copies in it.
func (d *Dispatch) burstOf(
	ctx context.Context, via string, to connectors.Person, copies []permissions.Copy,
) (b connectors.Burst, in []permissions.Copy, err error) {
	b.To = to
	c, _ := d.dir.Channel(via)
	sender, lists := c.(connectors.BurstSender)
	for _, cp := range copies {
		r, all, there, err := d.read(ctx, cp.Request)
		if err != nil {
			return b, nil, shared.Broken(err)
		}
		if !there {
			continue
		}
		p := d.Prompt(ctx, r, cp, to, all)
		opened := cp.Ref != "" && cp.Ref != cp.Burst && !cp.SentAt.IsZero()
		whole := lists && sender.ShowsWhole(p)
		b.Items = append(b.Items, connectors.Item{Prompt: p, Seen: opened || whole, Hidden: lists && !whole && sender.HidesAction(p)})
		in = append(in, cp)
	}
	return b, in, nil
}

// isCrowded reports whether a prompt is listed instead of being sent in a message of its own: it was never shown, and so many others
// that its person got lately still wait.
func (l *lane) isCrowded(ctx context.Context, r permissions.Request, cp permissions.Copy) bool {
	_, lists := l.connector.(connectors.BurstSender)
	most := l.service.dir.Settings().Limits.MaxCards
	maps.DeleteFunc(l.recent, func(_ permissions.ID, at time.Duration) bool { return l.elapsed()-at > burstWithin })
	if !lists || most < 1 || len(l.recent) < most || !l.canBeListed(r, cp) {
		return false
	}
	maps.DeleteFunc(l.recent, func(id permissions.ID, _ time.Duration) bool {
		other, err := l.service.store.Read(ctx, id)
		return err == nil && other.State != permissions.Pending
	})
	return len(l.recent) >= most
}

// canBeListed reports whether a prompt was never shown and can be listed.
func (l *lane) canBeListed(r permissions.Request, cp permissions.Copy) bool {
	return r.State == permissions.Pending && l.isStale(r, cp) && chatOf(cp) == l.chat && cp.Group == "" && cp.SentAt.IsZero() &&
		cp.Ref == "" && cp.Burst == "" && l.heldBackFor(r, cp, nil) == 0
}

// updateList brings the list with cp up to date. A copy that is on none joins the newest, with everything else that is still to be shown
// in this chat; when that is full or old, or nothing on it waits, they begin another. Edits are at least burstEvery apart.
func (l *lane) updateList(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	e, via := l.service, l.connector.Name()
	ref, copies, err := l.listFor(ctx, cp)
	if err != nil {
		return err
	}
	for ref, at := range l.listed {
		if l.elapsed()-at >= burstEvery {
			delete(l.listed, ref)
		}
	}
	if at, lately := l.listed[ref]; lately {
		return &unfinished{errHeldBack, at + burstEvery - l.elapsed()}
	}
	had := len(copies)
	if cp.Burst == "" {
		more, err := l.copiesToList(ctx, r.ID, connectors.MaxBurst-had)
		if err != nil {
			return err
		}
		copies = append(copies, more...)
		slices.SortFunc(copies, func(a, b permissions.Copy) int { return strings.Compare(string(a.Request), string(b.Request)) })
	}
	person, _ := e.dir.Settings().Person(cp.Person)
	lost, _ := e.lost.Load(e.chatAt(cp))
	redrawn, began := e.redrawn.Load(), e.clock.Stamp()
	b, in, err := e.burstOf(ctx, via, person, copies)
	if err != nil {
		return err
	}
	b.Joined = len(copies) - had
	for i, c := range in {
		if _, b.Items[i].Untitled, err = e.titled(ctx, b.Items[i].Request, c); err != nil {
			return err
		}
	}
	b.Begins = func() { l.listing(b, in, false) }
	if ref, err = l.sendList(ctx, ref, b); err != nil {
		l.listing(b, in, true)
	}
	if errors.Is(err, connectors.ErrResend) {
		l.newest = burst{}
		return l.unlist(ctx, in)
	}
	if errors.Is(err, connectors.ErrUnreachable) || err != nil && cp.SentAt.IsZero() && l.remainingTime(cp) <= 0 {
		return l.fail(ctx, r, cp, err.Error())
	}
	if err != nil {
		return err
	}
	l.listed[ref] = l.elapsed()
	if b.Joined > 0 {
		l.newest = burst{ref, l.elapsed(), len(copies)}
	}
	return l.noteList(ctx, ref, b, in, sending{redrawn: redrawn, lost: lost}, began)
}

// listFor returns the list of a copy, or the one that it joins, and what stands on it; none: it begins another. Where nothing waits any
// more, it would stand above newer messages, and make no sound.
func (l *lane) listFor(ctx context.Context, cp permissions.Copy) (ref string, copies []permissions.Copy, err error) {
	if ref = cp.Burst; ref == "" && l.newest.size < connectors.MaxBurst && l.elapsed()-l.newest.joined <= burstWithin {
		ref = l.newest.ref
	}
	if ref == "" {
		return "", nil, nil
	}
	waits := func(c permissions.Copy) bool {
		r, err := l.service.store.Read(ctx, c.Request)
		return err != nil || r.State == permissions.Pending
	}
	copies, err = l.service.store.Burst(ctx, l.connector.Name(), cp.Person, ref)
	if err == nil && cp.Burst == "" && !slices.ContainsFunc(copies, waits) {
		return "", nil, nil
	}
	return ref, copies, err
}

// listing notes that a list begins to be sent, with all of what stands whole in it, or could not be sent.
func (l *lane) listing(b connectors.Burst, in []permissions.Copy, failed bool) {
	began, to := l.service.clock.Stamp(), b.To.Addresses[l.connector.Name()]
	for i, c := range in {
		if b.Items[i].Seen { // else the list has not all of it
			l.attempted(c, func(a *attempt) { a.began, a.to, a.failed = began, to, failed })
		}
	}
}

// noteList notes that a list was sent, or edited, with the copies in it; what is the same of all is in s.
func (l *lane) noteList(
	ctx context.Context, ref string, b connectors.Burst, in []permissions.Copy, s sending, began time.Time,
) error {
	sentAt := began
	var dated time.Time
	if dater, dates := l.connector.(connectors.MessageDater); dates && b.Joined > 0 {
		dated, sentAt = dater.SentTime(ref), l.service.clock.Stamp()
	}
	for i, c := range in {
		if c.Burst != "" && c.Ref != ref { // opened
			continue
		}
		s.Copy, s.was, s.title = c, c.Ref, b.Items[i].Request.OnlyTitle
		s.Ref, s.Burst, s.Shown = ref, ref, b.Items[i].Request.Revision
		if c.Burst == "" {
			s.SentAt, s.ChannelTime, l.recent[c.Request] = sentAt, dated, l.elapsed()
		}
		if err := l.storeSent(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// sendList sends a list, or edits the one that it is.
func (l *lane) sendList(ctx context.Context, ref string, b connectors.Burst) (string, error) {
	sender, lists := l.connector.(connectors.BurstSender)
	switch {
	case !lists: // its connector was another version
		return ref, nil
	case ref == "":
		return sender.SendBurst(ctx, b)
	}
	return ref, sender.EditBurst(ctx, ref, b)
}

// copiesToList returns the copies in this lane that join a list, that of the request first among them, at most so many.
func (l *lane) copiesToList(ctx context.Context, first permissions.ID, most int) (join []permissions.Copy, err error) {
	l.mu.Lock()
	ids := []permissions.ID{first}
	for id := range l.unshown {
		if id != first {
			ids = append(ids, id)
		}
	}
	l.mu.Unlock()
	slices.Sort(ids[1:])
	for _, id := range ids {
		r, copies, _, err := l.service.read(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, cp := range copies {
			if l.canBeListed(r, cp) && len(join) < most {
				join = append(join, cp)
			}
		}
	}
	return join, nil
}

// unlist has everything that waits on a list shown in messages of their own: the list can no longer be edited where its person is.
func (l *lane) unlist(ctx context.Context, copies []permissions.Copy) error {
	for _, cp := range copies {
		if cp.Burst == "" || cp.Ref != cp.Burst {
			continue
		}
		if err := l.resetShown(ctx, cp); err != nil { // Burst stays, so that it joins no other list
			return err
		}
	}
	return nil
}
