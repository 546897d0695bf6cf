package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Groups returns the groups that routes name, and those that still have pending prompts from earlier settings.
func (d *Dispatch) Groups(ctx context.Context) ([]connectors.Group, error) {
	waiting, err := d.store.Groups(ctx)
	if err != nil {
		return nil, shared.Broken(err)
	}
	var places []connectors.Group
	for _, t := range d.dir.Settings().Routes {
		known := slices.ContainsFunc(places, func(p connectors.Group) bool { return p.Name == t.Group })
		if t.Group != "" && !known {
			places = append(places, connectors.Group{Name: t.Group, Now: d.groupNow(t.Group), Routed: true})
		}
	}
	for _, name := range waiting {
		if !slices.ContainsFunc(places, func(p connectors.Group) bool { return p.Name == name }) {
			places = append(places, connectors.Group{Name: name, Now: d.groupNow(name)})
		}
	}
	return places, nil
}

// RenameGroup records that a group, also in routes, has another id now, and refreshes its prompts.
func (d *Dispatch) RenameGroup(ctx context.Context, was, now string) error {
	channel, via := connectors.GroupChannel(nil), ""
	for _, c := range d.dispatchers {
		if h, is := c.connector.(connectors.GroupChannel); is && h.IsGroup(now) {
			channel, via = h, c.connector.Name()
		}
	}
	if channel == nil || was == now || d.groupNow(now) == was {
		return nil
	}
	news, err := d.store.RenameGroup(ctx, permissions.GroupRename{Was: was, Now: now, At: d.clock.Stamp()}, via)
	if err != nil {
		return shared.Broken(err)
	}
	d.renaming.Lock()
	next := maps.Clone(*d.moves.Load())
	next[was] = now
	d.moves.Store(&next)
	d.renaming.Unlock()
	if !news {
		return nil
	}
	d.log.Warn("group migrated to a new id; update the configuration", "was", was, "now", now)
	_, err = d.Refresh(ctx, via)
	return err
}

// ReadGroups reads which groups have another id now.
func (d *Dispatch) ReadGroups(ctx context.Context) error {
	moves, err := d.store.GroupRenames(ctx)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for _, m := range moves {
		known[m.Was] = m.Now
	}
	d.moves.Store(&known)
	return nil
}

// maxMoves bounds how many renames of one group are followed.
const maxMoves = 10

func (d *Dispatch) groupNow(name string) string {
	moves := *d.moves.Load()
	for range maxMoves {
		next, moved := moves[name]
		if !moved {
			break
		}
		name = next
	}
	return name
}

func (d *Dispatch) quiet(p connectors.Person) bool { return p.Quiet.Hold(d.dir.LocalTime(p)) }

// audience returns the first recipient of r, in the language of all of them or else in English, and whether all of them have quiet hours.
func (d *Dispatch) audience(r permissions.Request) (first connectors.Person, quiet bool) {
	quiet = true
	s := d.dir.Settings()
	for _, name := range r.Asked {
		p, known := s.Person(name)
		if !known {
			continue
		}
		if first.Name == "" {
			first = p
		}
		if p.Language != first.Language {
			first.Language = i18n.English
		}
		quiet = quiet && d.quiet(p)
	}
	return first, quiet && first.Name != ""
}

// answerableInGroup returns the copy of r in its group that can be answered there; ok is false when there is none, or none yet.
func (d *Dispatch) answerableInGroup(ctx context.Context, r permissions.Request) (cp permissions.Copy, ok bool, err error) {
	if r.Group == "" {
		return cp, false, nil
	}
	copies, err := d.store.Copies(ctx, r.ID)
	i := slices.IndexFunc(copies, func(c permissions.Copy) bool {
		return c.Group == r.Group && c.Failed == "" && !c.SentAt.IsZero()
	})
	if err != nil || i < 0 {
		return cp, false, err
	}
	return copies[i], true, nil
}

// inGroupOnly reports whether a person sees r in its group, or is to see it there and is not asked in private.
func (d *Dispatch) inGroupOnly(ctx context.Context, r permissions.Request, who string) (only bool, err error) {
	if r.Group == "" {
		return false, nil
	}
	copies, err := d.store.Copies(ctx, r.ID)
	alone := false
	only = !slices.ContainsFunc(copies, func(cp permissions.Copy) bool { return cp.Person == who }) // asked this moment
	for _, cp := range copies {
		switch {
		case cp.Person != who || cp.Failed != "":
		case cp.Group == "":
			alone = true
		case !shownInGroup(cp, copies).SentAt.IsZero(): // its message, which one who is asked later joins
			return true, err
		case cp.DueAt.After(d.clock.Now().Add(-delayedAfter)):
			only = true
		}
	}
	return only && !alone, err
}

// remindIn reminds all recipients of a group of what is pending there, in one message, unless all have quiet hours.
func (d *Dispatch) remindIn(ctx context.Context, n permissions.Notice) (later time.Duration, err error) {
	notice := connectors.Notice{About: n.About, Group: d.groupNow(n.Group)}
	rows, err := d.store.PendingInGroup(ctx, n.Group, "", shared.Page)
	if err != nil {
		return 0, err
	}
	quiet, via, copies := true, "", []permissions.Copy(nil)
	for _, r := range rows {
		cp, there, err := d.answerableInGroup(ctx, r)
		if err != nil {
			return 0, err
		}
		if !there {
			continue
		}
		to, all := d.audience(r)
		if quiet = quiet && all; notice.To.Name == "" {
			notice.To = to
		}
		notice.Waiting = append(notice.Waiting, d.Prompt(ctx, r, cp, to, nil))
		copies, via = append(copies, cp), cp.Connector
	}
	c, on := d.dir.Channel(via)
	teller, tells := c.(connectors.Notifier)
	switch {
	case !on || !tells:
		return 0, d.store.DeleteNotice(ctx, n.ID)
	case quiet && !n.Urgent:
		return quietStep, nil
	}
	later, news := d.reminderDelay(groupKey(notice.Group), notice)
	switch {
	case !news:
		return 0, d.store.DeleteNotice(ctx, n.ID)
	case later > 0:
		return later, nil
	}
	if err := d.checkLease(ctx); err != nil {
		return 0, err
	}
	brief, done := context.WithTimeout(ctx, tellTime)
	defer done()
	at := d.clock.Elapsed()
	err = teller.Notify(brief, notice)
	if renamed := (*connectors.GroupRenamedError)(nil); errors.As(err, &renamed) {
		return 0, errors.Join(err, d.RenameGroup(ctx, notice.Group, renamed.Now))
	}
	if errors.Is(err, connectors.ErrUnreachable) {
		err = d.abandonCopies(ctx, copies, err.Error())
	}
	if err != nil {
		return 0, err
	}
	d.reminded.Store(groupKey(notice.Group), reminder{at, notice.Waiting})
	return 0, d.store.DeleteNotice(ctx, n.ID)
}

// groupKey is a group among people, whose names have no space.
func groupKey(group string) string { return "group " + group }

// chatKey is a chat of a channel, with its current group id.
type chatKey struct {
	via string
	chat
}

func (d *Dispatch) chatAt(cp permissions.Copy) chatKey {
	at := chatOf(cp)
	at.place = d.groupNow(at.place)
	return chatKey{cp.Connector, at}
}

// ChatLost records why a channel can no longer write to a group or, without a group, to a person. Its pending prompts
// fail, including those being sent, and others are asked at once.
func (d *Dispatch) ChatLost(ctx context.Context, via, person, place, why string) error {
	d.lost.Store(chatKey{via, chat{person, place}}, &why)
	return shared.Broken(d.EveryPending(ctx, func(r permissions.Request) error {
		copies, err := d.store.Copies(ctx, r.ID)
		elsewhere := func(cp permissions.Copy) bool {
			return cp.Connector != via || cp.Failed != "" || d.groupNow(cp.Group) != place || place == "" && cp.Person != person
		}
		return errors.Join(err, d.abandonCopies(ctx, slices.DeleteFunc(copies, elsewhere), why))
	}))
}

// ChatRecovered makes a channel ask a person again to whom it could not write. In a recovered group the prompts are kept
// up to date again; its people have been asked individually meanwhile.
func (d *Dispatch) ChatRecovered(ctx context.Context, via, person, place string) error {
	d.lost.Delete(chatKey{via, chat{person, place}})
	return shared.Broken(d.EveryPending(ctx, func(r permissions.Request) error {
		return d.restoreCopies(ctx, r, func(cp permissions.Copy) bool {
			back := cp.Person == person && cp.Group == "" || place != "" && d.groupNow(cp.Group) == place && !cp.SentAt.IsZero()
			return cp.Connector == via && back
		})
	}))
}

// restoreCopies restores the failed copies of r for which is returns true.
func (d *Dispatch) restoreCopies(ctx context.Context, r permissions.Request, is func(permissions.Copy) bool) error {
	copies, err := d.store.Copies(ctx, r.ID)
	for _, cp := range copies {
		if cp.Failed != "" && err == nil && is(cp) {
			cp.Shown = 0
			err = d.store.MarkShown(ctx, cp, cp.Ref)
		}
	}
	d.Enqueue(r.ID)
	d.reconciler.Enqueue(r.ID)
	return err
}

// abandonCopies fails copies in a chat that can no longer be written to; in a group, the recipients are asked individually.
func (d *Dispatch) abandonCopies(ctx context.Context, copies []permissions.Copy, why string) error {
	for _, cp := range copies {
		cp.Failed = why
		if err := d.store.MarkFailed(ctx, cp); err != nil {
			return err
		}
		d.reconciler.Enqueue(cp.Request)
	}
	return nil
}
