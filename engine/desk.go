package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/aside"
	"github.com/daycared/daycared/permissions"
)

// Find gives a request of this caller's, as it stands; another's is unknown to it. Reading never uses an approval.
func (e *Engine) Find(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error) {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return permissions.Standing{}, err
	}
	if r.State != permissions.Pending && r.CollectedAt.IsZero() {
		c, err := e.registry.Resolve(ctx, id, permissions.Collect{At: e.stamp()})
		if err != nil {
			return permissions.Standing{}, broken(err)
		}
		r = c.After
	}
	return e.Stand(ctx, r)
}

// Await is [Engine.Find] once the request is settled, or, when ctx ends first, as it stands then.
func (e *Engine) Await(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error) {
	if err := e.Linger(ctx, caller, id); err != nil {
		return permissions.Standing{}, err
	}
	late, done := noting(ctx)
	defer done()
	if errors.Is(ctx.Err(), context.Canceled) {
		r, err := e.own(late, caller, id) // nobody reads this answer: it is not collected
		if err != nil {
			return permissions.Standing{}, err
		}
		return e.Stand(late, r)
	}
	return e.Find(late, caller, id)
}

// Linger returns when [Engine.Await] would. It needs little of a stack, as [Engine.Put] does.
func (e *Engine) Linger(ctx context.Context, caller permissions.Caller, id permissions.ID) error {
	var w *permissions.Waiter
	var err error
	aside.Do(func() { w, err = e.attach(ctx, caller, id) })
	if err != nil {
		return err
	}
	w.Linger(ctx)
	w.LeaveSoon(leaveGrace)
	return nil
}

// attach makes this caller a reader who waits.
func (e *Engine) attach(ctx context.Context, caller permissions.Caller, id permissions.ID) (*permissions.Waiter, error) {
	work, done := noting(ctx)
	defer done()
	if _, err := e.own(work, caller, id); err != nil {
		return nil, err
	}
	w, _, err := e.registry.Attach(work, id)
	return w, broken(err)
}

// Withdraw cancels a request of this caller's. One that is settled stays as it is, and the error says how it ended.
func (e *Engine) Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error) {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return permissions.Standing{}, err
	}
	return e.withdraw(ctx, r, "", "")
}

// Forgo takes one call of this caller's from a request, by the call's own name for itself (empty once it has left), and
// cancels the request when no other call waits for it. See [permissions.Registry.Forgo].
func (e *Engine) Forgo(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) (permissions.Standing, error) {
	if _, err := e.own(ctx, caller, id); err != nil {
		return permissions.Standing{}, err
	}
	if call != "" {
		call = nameOf(caller, call)
	}
	r, err := e.registry.Forgo(ctx, id, call)
	if err != nil {
		return permissions.Standing{}, broken(permissions.Refused(err))
	}
	return e.Stand(ctx, r)
}

// nameOf is a call's name here: callers choose their own.
func nameOf(caller permissions.Caller, call string) string { return caller.Name + "/" + call }

func (e *Engine) own(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Request, error) {
	r, err := e.store.Read(ctx, id)
	if err == nil && r.Caller.Name != caller.Name {
		err = permissions.Unknown(string(id))
	}
	return r, broken(err)
}

func (e *Engine) withdraw(ctx context.Context, r permissions.Request, by, via string) (permissions.Standing, error) {
	c, err := e.registry.Cancel(ctx, r.ID, by, via)
	if err != nil {
		return permissions.Standing{}, broken(permissions.Refused(err))
	}
	return e.Stand(ctx, c.After)
}

// Who is the name of the person that an identity is, or a refusal.
func (e *Engine) Who(id connectors.Identity) (string, error) {
	p, err := e.Person(id)
	return p.Name, err
}

// Person is who an identity is, or a refusal.
func (e *Engine) Person(id connectors.Identity) (connectors.Person, error) {
	p, known := e.settings.Load().identify(id)
	switch {
	case p.Locked != "":
		return connectors.Person{}, permissions.LockedOut(p.Locked)
	case !known:
		return connectors.Person{}, permissions.Nobody(id.UID)
	}
	return p, nil
}

// Pending lists what waits for an identity's answer, the operator everything, oldest first.
func (e *Engine) Pending(
	ctx context.Context, id connectors.Identity, after permissions.ID, limit int,
) ([]permissions.Standing, error) {
	who, err := e.Who(id)
	if err != nil {
		return nil, err
	}
	if id.Operator {
		who = ""
	}
	rows, err := e.store.Pending(ctx, who, after, limit)
	if err != nil {
		return nil, broken(err)
	}
	list := make([]permissions.Standing, 0, len(rows))
	for _, r := range rows {
		standing, err := e.Stand(ctx, r)
		if err != nil {
			return nil, err
		}
		for i, cp := range standing.Copies {
			standing.Copies[i].SentAt = cmp.Or(cp.SentAt, e.begun(cp)) // a code may be answered before its card is confirmed
		}
		list = append(list, standing)
	}
	return list, nil
}

// Show gives one request by its id or its code, to those it was put to and to the operator.
func (e *Engine) Show(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error) {
	r, _, err := e.visible(ctx, id, name)
	if err != nil {
		return permissions.Standing{}, err
	}
	return e.Stand(ctx, r)
}

// Cancel withdraws a pending request, by its id or its code.
func (e *Engine) Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error) {
	r, who, err := e.visible(ctx, id, name)
	if err != nil {
		return permissions.Standing{}, err
	}
	return e.withdraw(ctx, r, who, id.Via)
}

func (e *Engine) visible(ctx context.Context, id connectors.Identity, name string) (permissions.Request, string, error) {
	who, err := e.Who(id)
	if err != nil {
		return permissions.Request{}, "", err
	}
	ref, code := permissions.ID(name), ""
	if len(name) == permissions.CodeLength {
		ref, code = "", name
	}
	r, err := e.named(ctx, ref, code)
	if err == nil && !id.Operator && !slices.Contains(r.Asked, who) {
		err = permissions.Unknown(name)
	}
	return r, who, err
}

// Audit lists entries of the daemon's own chain, for the operator.
func (e *Engine) Audit(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) ([]permissions.Entry, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	entries, err := e.store.Audit(ctx, "", after, limit)
	return entries, broken(err)
}

// Verify checks every audit chain, for the operator, and returns their heads.
func (e *Engine) Verify(ctx context.Context, id connectors.Identity) ([]permissions.Head, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	heads, err := e.store.Verify(ctx)
	return heads, broken(err)
}

// Subscribe follows every committed change.
func (e *Engine) Subscribe(buffer int) *permissions.Feed { return e.registry.Subscribe(buffer) }

// Stand is a row with its code, its copies and who waits.
func (e *Engine) Stand(ctx context.Context, r permissions.Request) (permissions.Standing, error) {
	copies, err := e.store.Copies(ctx, r.ID)
	if err != nil {
		return permissions.Standing{}, broken(err)
	}
	return permissions.Standing{
		Request: r, Code: e.store.Coder().Encode(r.Number), Copies: copies, Waiting: e.waits(r),
		Editor: e.settings.Load().editable(r) == nil && r.State == permissions.Pending,
	}, nil
}

// Ready is nil while requests can be stored and answered; the error says what to do.
func (e *Engine) Ready(ctx context.Context) error { return broken(e.store.Health(ctx)) }
