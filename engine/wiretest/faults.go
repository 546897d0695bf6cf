package wiretest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// faults is a store whose calls fail while it is told so: those that a call at a socket leads to.
type faults struct {
	engine.Store
	failing atomic.Pointer[error]
}

func (f *faults) set(err error) {
	if err == nil {
		f.failing.Store(nil)
		return
	}
	f.failing.Store(&err)
}

func (f *faults) err() error {
	if err := f.failing.Load(); err != nil {
		return *err
	}
	return nil
}

func unless[T any](f *faults, do func() (T, error)) (v T, err error) {
	if err := f.err(); err != nil {
		return v, err
	}
	return do()
}

func (f *faults) Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	r, err = unless(f, func() (permissions.Request, error) { r, created, err = f.Store.Open(ctx, o); return r, err })
	return r, created, err
}

func (f *faults) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	return unless(f, func() (permissions.Change, error) { return f.Store.Apply(ctx, id, e) })
}

func (f *faults) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	return unless(f, func() (permissions.Request, error) { return f.Store.Read(ctx, id) })
}

func (f *faults) Pending(ctx context.Context, asked string, after permissions.ID, limit int) ([]permissions.Request, error) {
	return unless(f, func() ([]permissions.Request, error) { return f.Store.Pending(ctx, asked, after, limit) })
}

func (f *faults) History(ctx context.Context, of permissions.HistoryQuery) ([]permissions.Request, error) {
	return unless(f, func() ([]permissions.Request, error) { return f.Store.History(ctx, of) })
}

func (f *faults) Copies(ctx context.Context, ids ...permissions.ID) ([]permissions.Copy, error) {
	return unless(f, func() ([]permissions.Copy, error) { return f.Store.Copies(ctx, ids...) })
}

func (f *faults) GrantsInForce(
	ctx context.Context, asked string, now time.Time, after permissions.ID, limit int,
) ([]permissions.Grant, error) {
	return unless(f, func() ([]permissions.Grant, error) { return f.Store.GrantsInForce(ctx, asked, now, after, limit) })
}

func (f *faults) AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error) {
	return unless(f, func() (permissions.AgentSession, error) { return f.Store.AgentSession(ctx, id) })
}

func (f *faults) AgentSessions(
	ctx context.Context, person string, after permissions.ID, limit int,
) ([]permissions.AgentSession, error) {
	return unless(f, func() ([]permissions.AgentSession, error) { return f.Store.AgentSessions(ctx, person, after, limit) })
}

func (f *faults) OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error) {
	return unless(f, func() ([]permissions.AgentSession, error) { return f.Store.OpenSessions(ctx, after, limit) })
}

func (f *faults) Stop(ctx context.Context, by, via string, at time.Time) ([]permissions.Request, error) {
	return unless(f, func() ([]permissions.Request, error) { return f.Store.Stop(ctx, by, via, at) })
}

func (f *faults) Resume(ctx context.Context, by, via string, force bool, at time.Time) error {
	_, err := unless(f, func() (any, error) { return nil, f.Store.Resume(ctx, by, via, force, at) })
	return err
}

func (f *faults) AddToken(ctx context.Context, t permissions.Token, by, via string) error {
	_, err := unless(f, func() (any, error) { return nil, f.Store.AddToken(ctx, t, by, via) })
	return err
}

func (f *faults) Tokens(ctx context.Context) ([]permissions.Token, error) {
	return unless(f, func() ([]permissions.Token, error) { return f.Store.Tokens(ctx) })
}

func (f *faults) VerifyToken(ctx context.Context, hash permissions.Digest, now time.Time) (permissions.Token, error) {
	return unless(f, func() (permissions.Token, error) { return f.Store.VerifyToken(ctx, hash, now) })
}

func (f *faults) Audit(ctx context.Context, chain string, after int64, limit int) ([]permissions.Entry, error) {
	return unless(f, func() ([]permissions.Entry, error) { return f.Store.Audit(ctx, chain, after, limit) })
}

func (f *faults) Verify(ctx context.Context, told ...func(done, all int64)) ([]permissions.Head, error) {
	return unless(f, func() ([]permissions.Head, error) { return f.Store.Verify(ctx, told...) })
}

func (f *faults) Events(ctx context.Context, after int64, limit int) (list []permissions.Event, first int64, err error) {
	list, err = unless(f, func() ([]permissions.Event, error) {
		list, first, err = f.Store.Events(ctx, after, limit)
		return list, err
	})
	return list, first, err
}

func (f *faults) AddCallerMessage(ctx context.Context, n permissions.Notice, most int) error {
	_, err := unless(f, func() (any, error) { return nil, f.Store.AddCallerMessage(ctx, n, most) })
	return err
}

func (f *faults) Health(ctx context.Context) error {
	_, err := unless(f, func() (any, error) { return nil, f.Store.Health(ctx) })
	return err
}
