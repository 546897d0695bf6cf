package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// disk is the store as one life of the daemon has it: every call stops at the gate. What the engine calls of the store and
// is not here goes straight through, and never fails.
type disk struct {
	engine.Store
	w    *world
	gate *gate
}

// broken is what a store says that cannot write, or whose answer got lost.
type broken struct{}

func (broken) Error() string        { return "the disk is full; free some space" }
func (broken) Is(target error) bool { return target == permissions.ErrBroken }

func full() error { return broken{} }

func (d *disk) read(ctx context.Context, what string, do func(ctx context.Context) error) error {
	return d.call(ctx, reading, what, do)
}

func (d *disk) write(ctx context.Context, what string, do func(ctx context.Context) error) error {
	return d.call(ctx, writing, what, do)
}

func (d *disk) call(ctx context.Context, at side, what string, do func(ctx context.Context) error) error {
	_, _, err := through(ctx, d.gate, at, what, full, func() (struct{}, error) {
		return struct{}{}, do(context.WithoutCancel(ctx))
	})
	return err
}

func (d *disk) Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	if d.w.judge != nil {
		d.w.judge.asked(o.Request.ID)
	}
	err = d.write(ctx, "open what "+o.Request.Caller.Name+" asks, "+topic(o.Request), func(ctx context.Context) error {
		r, created, err = d.Store.Open(ctx, o)
		if err == nil {
			d.w.name(r)
		}
		return err
	})
	if err != nil {
		return permissions.Request{}, false, err
	}
	return r, created, nil
}

// topic is what the question of a request is called in the trace.
func topic(r permissions.Request) string { return r.Reason + r.Message }

func (d *disk) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (c permissions.Change, err error) {
	var inner error
	err = d.write(ctx, "apply "+event(e)+" to "+d.w.nameOf(id), func(ctx context.Context) error {
		c, inner = d.Store.Apply(ctx, id, e)
		return inner
	})
	if err != nil && inner == nil { // it never came back
		return permissions.Change{}, err
	}
	return c, err
}

// event is an event in words, without its time.
func event(e permissions.Transition) string {
	switch e := e.(type) {
	case permissions.Cast:
		used := ""
		if e.Use != nil {
			used = ", used at once"
		}
		return fmt.Sprintf("%s by %s (%s%s)", e.Vote.Answer, e.Vote.By, e.Vote.Key, used)
	case permissions.Use:
		return "a use by " + e.Call
	}
	return fmt.Sprintf("%T", e)[len("permissions."):]
}

func (d *disk) Read(ctx context.Context, id permissions.ID) (r permissions.Request, err error) {
	err = d.read(ctx, "read "+d.w.nameOf(id), func(ctx context.Context) error {
		r, err = d.Store.Read(ctx, id)
		return err
	})
	return r, err
}

func (d *disk) Due(ctx context.Context, now time.Time, redeem time.Duration, limit int) (due []permissions.Due, next time.Time, err error) {
	err = d.read(ctx, "look what is due", func(ctx context.Context) error {
		due, next, err = d.Store.Due(ctx, now, redeem, limit)
		return err
	})
	return due, next, err
}

func (d *disk) EndGrants(ctx context.Context, now time.Time, limit int) (ended []permissions.Grant, next time.Time, err error) {
	err = d.write(ctx, "end grants", func(ctx context.Context) error {
		ended, next, err = d.Store.EndGrants(ctx, now, limit)
		return err
	})
	return ended, next, err
}

func (d *disk) EndGrantsNow(ctx context.Context, ids []permissions.ID, now time.Time) (ended []permissions.Grant, err error) {
	err = d.write(ctx, "end grants now", func(ctx context.Context) error {
		ended, err = d.Store.EndGrantsNow(ctx, ids, now)
		return err
	})
	return ended, err
}

func (d *disk) ByNumber(ctx context.Context, n int64) (r permissions.Request, copies []permissions.Copy, err error) {
	err = d.read(ctx, fmt.Sprintf("find number %d", n), func(ctx context.Context) error {
		r, copies, err = d.Store.ByNumber(ctx, n)
		return err
	})
	return r, copies, err
}

func (d *disk) ByCode(ctx context.Context, code string) (r permissions.Request, err error) {
	err = d.read(ctx, "find code "+d.w.coded(code), func(ctx context.Context) error {
		r, err = d.Store.ByCode(ctx, code)
		return err
	})
	return r, err
}

func (d *disk) Copies(ctx context.Context, ids ...permissions.ID) (copies []permissions.Copy, err error) {
	err = d.read(ctx, "read the copies of "+d.w.nameOf(ids[0]), func(ctx context.Context) error {
		copies, err = d.Store.Copies(ctx, ids...)
		return err
	})
	return copies, err
}

func (d *disk) StaleCopies(ctx context.Context, connector string, after permissions.ID, limit int) (ids []permissions.ID, err error) {
	err = d.read(ctx, "list what lags at "+connector, func(ctx context.Context) error {
		ids, err = d.Store.StaleCopies(ctx, connector, after, limit)
		return err
	})
	return ids, err
}

func (d *disk) RequestsWithoutCopies(ctx context.Context, after permissions.ID, limit int) (ids []permissions.ID, err error) {
	err = d.read(ctx, "list who has no copy", func(ctx context.Context) error {
		ids, err = d.Store.RequestsWithoutCopies(ctx, after, limit)
		return err
	})
	return ids, err
}

func (d *disk) Pending(ctx context.Context, asked string, after permissions.ID, limit int) (all []permissions.Request, err error) {
	err = d.read(ctx, "list what is pending of "+asked, func(ctx context.Context) error {
		all, err = d.Store.Pending(ctx, asked, after, limit)
		return err
	})
	return all, err
}

func (d *disk) Grants(ctx context.Context, caller string, now time.Time) (all []permissions.Grant, err error) {
	err = d.read(ctx, "list the grants of "+caller, func(ctx context.Context) error {
		all, err = d.Store.Grants(ctx, caller, now)
		return err
	})
	return all, err
}

func (d *disk) GrantsInForce(
	ctx context.Context, asked string, now time.Time, after permissions.ID, limit int,
) (all []permissions.Grant, err error) {
	err = d.read(ctx, "list the grants in force", func(ctx context.Context) error {
		all, err = d.Store.GrantsInForce(ctx, asked, now, after, limit)
		return err
	})
	return all, err
}

// MarkShown also counts what was sent and could not be noted: nobody can know then, and it may be sent again.
func (d *disk) MarkShown(ctx context.Context, c permissions.Copy, was string) error {
	at := cardAt{c.Request, c.Person, c.Connector}
	what := fmt.Sprintf("note that %s shows %s %d of %s", c.Connector, c.Person, c.Shown, d.w.nameOf(c.Request))
	_, done, err := through(ctx, d.gate, writing, what, full, func() (struct{}, error) {
		return struct{}{}, d.Store.MarkShown(context.WithoutCancel(ctx), c, was)
	})
	if !done {
		d.w.unsure(at)
	}
	return err
}

func (d *disk) MarkNamed(ctx context.Context, c permissions.Copy) error {
	what := fmt.Sprintf("name what %s shows %s of %s", c.Connector, c.Person, d.w.nameOf(c.Request))
	return d.write(ctx, what, func(ctx context.Context) error {
		return d.Store.MarkNamed(ctx, c)
	})
}

func (d *disk) MarkFailed(ctx context.Context, c permissions.Copy) error {
	what := fmt.Sprintf("note that %s shows %s nothing of %s", c.Connector, c.Person, d.w.nameOf(c.Request))
	return d.write(ctx, what, func(ctx context.Context) error {
		return d.Store.MarkFailed(ctx, c)
	})
}

func (d *disk) AddCopies(ctx context.Context, copies []permissions.Copy) error {
	what := fmt.Sprintf("add %d copies of %s", len(copies), d.w.nameOf(copies[0].Request))
	return d.write(ctx, what, func(ctx context.Context) error {
		return d.Store.AddCopies(ctx, copies)
	})
}

func (d *disk) Notices(ctx context.Context, after permissions.ID, limit int) (all []permissions.Notice, err error) {
	err = d.read(ctx, "list notices", func(ctx context.Context) error {
		all, err = d.Store.Notices(ctx, after, limit)
		return err
	})
	slices.SortFunc(all, func(a, b permissions.Notice) int { // of one moment, in an order that no random number makes
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.To, b.To), cmp.Compare(a.About, b.About))
	})
	return all, err
}

func (d *disk) DeleteNotice(ctx context.Context, id permissions.ID) error {
	return d.write(ctx, "strike out a notice", func(ctx context.Context) error { return d.Store.DeleteNotice(ctx, id) })
}

func (d *disk) Record(ctx context.Context, r permissions.Record) error {
	return d.write(ctx, fmt.Sprintf("record %s of %s", r.Type, d.w.nameOf(r.Request)), func(ctx context.Context) error {
		return d.Store.Record(ctx, r)
	})
}

func (d *disk) Heartbeat(ctx context.Context, at time.Time) (last time.Time, err error) {
	err = d.write(ctx, "pulse", func(ctx context.Context) error {
		last, err = d.Store.Heartbeat(ctx, at)
		return err
	})
	return last, err
}

func (d *disk) NewestTime(ctx context.Context) (at time.Time, err error) {
	err = d.read(ctx, "look at the newest entry", func(ctx context.Context) error {
		at, err = d.Store.NewestTime(ctx)
		return err
	})
	return at, err
}

func (d *disk) StoppedBy(ctx context.Context) (by string, at time.Time, err error) {
	err = d.read(ctx, "look who stopped", func(ctx context.Context) error {
		by, at, err = d.Store.StoppedBy(ctx)
		return err
	})
	return by, at, err
}

func (d *disk) ForgetCopies(ctx context.Context, connector string) error {
	return d.write(ctx, "forget what "+connector+" showed", func(ctx context.Context) error { return d.Store.ForgetCopies(ctx, connector) })
}

func (d *disk) Grant(ctx context.Context, id permissions.ID) (g permissions.Grant, err error) {
	err = d.read(ctx, "read a grant", func(ctx context.Context) error {
		g, err = d.Store.Grant(ctx, id)
		return err
	})
	return g, err
}

func (d *disk) RanUnder(ctx context.Context, id permissions.ID, limit int) (ran []permissions.Request, err error) {
	err = d.read(ctx, "list what ran under a grant", func(ctx context.Context) error {
		ran, err = d.Store.RanUnder(ctx, id, limit)
		return err
	})
	return ran, err
}

func (d *disk) Revoke(
	ctx context.Context, id permissions.ID, by, via string, at time.Time, limit int,
) (revoked permissions.Revoked, err error) {
	err = d.write(ctx, "revoke a grant", func(ctx context.Context) error {
		revoked, err = d.Store.Revoke(ctx, id, by, via, at, limit)
		return err
	})
	return revoked, err
}

func (d *disk) Stop(ctx context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error) {
	err = d.write(ctx, "stop everything", func(ctx context.Context) error {
		cancelled, err = d.Store.Stop(ctx, by, via, at)
		return err
	})
	return cancelled, err
}

func (d *disk) Resume(ctx context.Context, by, via string, force bool, at time.Time) error {
	return d.write(ctx, "resume", func(ctx context.Context) error { return d.Store.Resume(ctx, by, via, force, at) })
}
