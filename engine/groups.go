package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Groups returns the groups that routes name, and those that still have pending prompts from earlier settings.
func (e *Engine) Groups(ctx context.Context) ([]connectors.Group, error) {
	waiting, err := e.store.Groups(ctx)
	if err != nil {
		return nil, shared.Broken(err)
	}
	var places []connectors.Group
	for _, t := range e.Settings().Routes {
		known := slices.ContainsFunc(places, func(p connectors.Group) bool { return p.Name == t.Group })
		if t.Group != "" && !known {
			places = append(places, connectors.Group{Name: t.Group, Now: e.groupNow(t.Group), Routed: true})
		}
	}
	for _, name := range waiting {
		if !slices.ContainsFunc(places, func(p connectors.Group) bool { return p.Name == name }) {
			places = append(places, connectors.Group{Name: name, Now: e.groupNow(name)})
		}
	}
	return places, nil
}

// RenameGroup records that a group has another id now, which also applies to routes with the old one, and refreshes its
// prompts.
func (e *Engine) RenameGroup(ctx context.Context, was, now string) error {
	hall, via := connectors.GroupChannel(nil), ""
	for _, c := range e.dispatchers {
		if h, is := c.connector.(connectors.GroupChannel); is && h.IsGroup(now) {
			hall, via = h, c.connector.Name()
		}
	}
	if hall == nil || was == now || e.groupNow(now) == was {
		return nil
	}
	news, err := e.store.RenameGroup(ctx, permissions.GroupRename{Was: was, Now: now, At: e.clock.Stamp()}, via)
	if err != nil {
		return shared.Broken(err)
	}
	e.mu.Lock()
	next := maps.Clone(*e.moves.Load())
	next[was] = now
	e.moves.Store(&next)
	e.mu.Unlock()
	if !news {
		return nil
	}
	e.log.Warn("group migrated to a new id; update the configuration", "was", was, "now", now)
	_, err = e.Refresh(ctx, via)
	return err
}

func (e *Engine) readMoves(ctx context.Context) error {
	moves, err := e.store.GroupRenames(ctx)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for _, m := range moves {
		known[m.Was] = m.Now
	}
	e.moves.Store(&known)
	return nil
}

// mostMoves bounds how many renames of one group are followed.
const mostMoves = 10

// groupNow returns the current id of a group.
func (e *Engine) groupNow(name string) string {
	moves := *e.moves.Load()
	for range mostMoves {
		next, moved := moves[name]
		if !moved {
			break
		}
		name = next
	}
	return name
}

// quiet reports whether a person has quiet hours now.
func (e *Engine) quiet(p connectors.Person) bool { return p.Quiet.Hold(e.Wall(p)) }

// audience returns the first recipient of r, and whether all of them have quiet hours.
func (e *Engine) audience(r permissions.Request) (first connectors.Person, quiet bool) {
	quiet = true
	s := e.Settings()
	for _, name := range r.Asked {
		p, known := s.Person(name)
		if !known {
			continue
		}
		if first.Name == "" {
			first = p
		}
		quiet = quiet && e.quiet(p)
	}
	return first, quiet && first.Name != ""
}

// stands returns the copy of r in its group that can be answered there; ok is false when there is none, or none yet.
func (e *Engine) stands(ctx context.Context, r permissions.Request, who string) (cp permissions.Copy, ok bool, err error) {
	if r.Group == "" {
		return cp, false, nil
	}
	copies, err := e.store.Copies(ctx, r.ID)
	i := slices.IndexFunc(copies, func(c permissions.Copy) bool {
		return c.Group == r.Group && c.Failed == "" && !c.SentAt.IsZero() && (who == "" || c.Person == who)
	})
	if err != nil || i < 0 {
		return cp, false, err
	}
	return copies[i], true, nil
}

// remindIn reminds all recipients of a group of what is pending there, in one message, unless all of them have quiet
// hours.
func (e *Engine) remindIn(ctx context.Context, n permissions.Notice) (later time.Duration, err error) {
	notice := connectors.Notice{About: n.About, Group: e.groupNow(n.Group)}
	rows, err := e.store.PendingInGroup(ctx, n.Group, "", shared.Page)
	if err != nil {
		return 0, err
	}
	quiet, via, copies := true, "", []permissions.Copy(nil)
	for _, r := range rows {
		cp, there, err := e.stands(ctx, r, "")
		if err != nil {
			return 0, err
		}
		if !there {
			continue
		}
		to, all := e.audience(r)
		if quiet = quiet && all; notice.To.Name == "" {
			notice.To = to
		}
		notice.Waiting = append(notice.Waiting, e.prompt(r, cp, to, nil))
		copies, via = append(copies, cp), cp.Connector
	}
	c, on := e.Channel(via)
	teller, tells := c.(connectors.Notifier)
	switch {
	case !on || !tells:
		return 0, e.store.DeleteNotice(ctx, n.ID)
	case quiet && !n.Urgent:
		return quietStep, nil
	}
	brief, done := context.WithTimeout(ctx, tellTime)
	defer done()
	err = teller.Notify(brief, notice)
	if renamed := (*connectors.GroupRenamedError)(nil); errors.As(err, &renamed) {
		return 0, errors.Join(err, e.RenameGroup(ctx, notice.Group, renamed.Now))
	}
	if errors.Is(err, connectors.ErrUnreachable) {
		err = e.abandon(ctx, copies, err.Error())
	}
	if err != nil {
		return 0, err
	}
	return 0, e.store.DeleteNotice(ctx, n.ID)
}

// chatKey is a chat of a channel, with its current group id.
type chatKey struct {
	via string
	chat
}

func (e *Engine) chatAt(cp permissions.Copy) chatKey {
	at := chatOf(cp)
	at.place = e.groupNow(at.place)
	return chatKey{cp.Connector, at}
}

// ChatLost records why a channel can no longer write to a group or, without a group, to a person. Its pending prompts
// fail, including those being sent, and others are asked at once.
func (e *Engine) ChatLost(ctx context.Context, via, person, place, why string) error {
	e.lost.Store(chatKey{via, chat{person, place}}, &why)
	return shared.Broken(e.everyPending(ctx, func(r permissions.Request) error {
		copies, err := e.store.Copies(ctx, r.ID)
		elsewhere := func(cp permissions.Copy) bool {
			return cp.Connector != via || cp.Failed != "" || e.groupNow(cp.Group) != place || place == "" && cp.Person != person
		}
		return errors.Join(err, e.abandon(ctx, slices.DeleteFunc(copies, elsewhere), why))
	}))
}

// ChatRecovered makes a channel ask a person again to whom it could not write. In a recovered group the prompts are kept
// up to date again; its people have been asked individually meanwhile.
func (e *Engine) ChatRecovered(ctx context.Context, via, person, place string) error {
	e.lost.Delete(chatKey{via, chat{person, place}})
	return shared.Broken(e.everyPending(ctx, func(r permissions.Request) error {
		return e.revive(ctx, r, func(cp permissions.Copy) bool {
			back := cp.Person == person && cp.Group == "" || place != "" && e.groupNow(cp.Group) == place && !cp.SentAt.IsZero()
			return cp.Connector == via && back
		})
	}))
}

// revive restores the failed copies of r for which is returns true.
func (e *Engine) revive(ctx context.Context, r permissions.Request, is func(permissions.Copy) bool) error {
	copies, err := e.store.Copies(ctx, r.ID)
	for _, cp := range copies {
		if cp.Failed != "" && err == nil && is(cp) {
			cp.Shown = 0
			err = e.store.MarkShown(ctx, cp, cp.Ref)
		}
	}
	e.enqueue(r.ID)
	e.reconciler.Enqueue(r.ID)
	return err
}

// abandon fails copies in a chat that can no longer be written to; in a group, the recipients are asked individually.
func (e *Engine) abandon(ctx context.Context, copies []permissions.Copy, why string) error {
	for _, cp := range copies {
		cp.Failed = why
		if err := e.store.MarkFailed(ctx, cp); err != nil {
			return err
		}
		e.reconciler.Enqueue(cp.Request)
	}
	return nil
}
