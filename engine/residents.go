package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// approvals is the side of the engine for our own agents, without anything that decides.
type approvals struct{ engine *Engine }

var _ agents.Approvals = approvals{}

// Approvals returns the interface through which our own agents ask without waiting.
func (e *Engine) Approvals() agents.Approvals { return approvals{e} }

var (
	errNoKey     = errors.New("a request of our own agent needs a key")
	errNoCall    = errors.New("the use of an approval needs a call name")
	errNoSession = errors.New("a session needs a name")
)

func (c approvals) Evaluate(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Verdict, error) {
	if err := c.engine.store.CatchUp(ctx); err != nil {
		return permissions.Verdict{}, shared.Broken(err)
	}
	if by := c.engine.StoppedBy(); by != "" {
		return permissions.Verdict{}, permissions.Stopped(by)
	}
	grants, err := c.engine.grants(ctx, caller)
	if err != nil {
		return permissions.Verdict{}, shared.Broken(err)
	}
	r, err := c.engine.draft(c.engine.Settings(), caller, q, grants, false)
	if err != nil {
		return permissions.Verdict{}, err
	}
	v := permissions.Verdict{Ask: r.State == permissions.Pending, Held: r.Held, Grants: r.Grants}
	for _, ruled := range r.Ruled {
		v.Ruling = ruled
	}
	for _, g := range grants {
		if slices.Contains(r.Grants, g.ID) {
			v.Scope = permissions.Narrowest(v.Scope, g.Scope())
		}
	}
	return v, nil
}

func (c approvals) Forbids(caller permissions.Caller, tool string) bool {
	asked := permissions.Request{Kind: permissions.KindTool, Caller: caller, Tool: tool}
	return c.engine.Settings().PolicyOf(caller).Evaluate(asked, nil, c.engine.clock.Now()).Forbidden != ""
}

func (c approvals) OverRate(caller permissions.Caller, q permissions.Request) bool {
	s := c.engine.Settings()
	q.Caller = caller
	return c.engine.takeAutoTokens(s, caller, s.PolicyOf(caller).Evaluate(q, nil, c.engine.clock.Now()).Auto) > 0
}

func (c approvals) Held(ctx context.Context, caller permissions.Caller, session string) ([]permissions.Tag, error) {
	e := c.engine
	if by := e.StoppedBy(); by != "" {
		return nil, permissions.Stopped(by)
	}
	grants, err := e.grants(ctx, caller)
	if err != nil {
		return nil, shared.Broken(err)
	}
	s := e.Settings()
	held := slices.Clone(s.Holdings[caller.Name])
	for _, g := range grants {
		if !g.Live(caller, session, e.clock.Now()) {
			continue
		}
		for _, t := range permissions.Missing(g.Tags, held) {
			if s.GrantHolds(g, permissions.Request{Kind: permissions.KindPermission, Caller: caller, Session: session, Tags: []permissions.Tag{t}}) {
				held = append(held, t)
			}
		}
	}
	return held, nil
}

func (c approvals) Submit(
	ctx context.Context, caller permissions.Caller, q permissions.Request, told ...permissions.Record,
) (permissions.Request, error) {
	if q.Key == "" {
		return permissions.Request{}, permissions.Invalid(errNoKey)
	}
	for range maxAnew {
		r, err := c.findOrOpen(ctx, caller, q, told)
		if !grantRevoked(err) {
			return r, err
		}
	}
	return permissions.Request{}, permissions.Limit(time.Second)
}

// findOrOpen finds the row of the key, or opens it.
func (c approvals) findOrOpen(
	ctx context.Context, caller permissions.Caller, q permissions.Request, told []permissions.Record,
) (permissions.Request, error) {
	e := c.engine
	r, found, err := e.store.ByKey(ctx, caller.Name, q.Key)
	switch {
	case err != nil:
		return permissions.Request{}, shared.Broken(err)
	case found && !asksTheSame(caller, q, r):
		return permissions.Request{}, permissions.KeyTaken()
	case found:
		return r, nil
	}
	q.Call = ""
	o, err := e.prepare(ctx, caller, q)
	if err != nil {
		return permissions.Request{}, err
	}
	o.Records = append(o.Records, told...)
	r, created, err := e.registry.Open(ctx, o.Opening)
	if err != nil {
		return permissions.Request{}, e.openingError(o, err)
	}
	return e.completeOpening(ctx, o, r, created)
}

func (c approvals) Find(ctx context.Context, caller permissions.Caller, key string) (permissions.Request, bool, error) {
	r, found, err := c.engine.store.ByKey(ctx, caller.Name, key)
	return r, found, shared.Broken(err)
}

// Read implements [agents.Approvals]. The answer counts as collected: the session continues with it.
func (c approvals) Read(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Request, error) {
	s, err := c.engine.Find(ctx, caller, id)
	return s.Request, err
}

// Use implements [agents.Approvals]. One call stands for all calls of a step.
func (c approvals) Use(
	ctx context.Context, caller permissions.Caller, id permissions.ID, call string,
) (permissions.Request, error) {
	e := c.engine
	if call == "" {
		return permissions.Request{}, permissions.Invalid(errNoCall)
	}
	r, err := e.ownRequest(ctx, caller, id)
	if err != nil {
		return permissions.Request{}, err
	}
	if r.State == permissions.Approved && r.VoidAt.IsZero() {
		if err := e.store.CatchUp(ctx); err != nil {
			return permissions.Request{}, shared.Broken(err)
		}
		if err := c.stillHeld(ctx, r); err != nil {
			return permissions.Request{}, err
		}
	}
	if usedByAnother(r, call) {
		return permissions.Request{}, permissions.ToRefusal(permissions.ErrNoUse)
	}
	change, err := e.registry.Resolve(ctx, id, permissions.Use{Call: call, At: e.clock.Stamp()})
	if err == nil && usedByAnother(change.After, call) { // another call was faster
		err = permissions.ErrNoUse
	}
	if err != nil {
		return permissions.Request{}, shared.Broken(permissions.ToRefusal(err))
	}
	if !change.After.VoidAt.IsZero() { // its basis has ended
		return permissions.Request{}, permissions.RevokedBasis()
	}
	return change.After, nil
}

// usedByAnother reports whether an approval for once went to another call: a key finds it again, but it is used once.
func usedByAnother(r permissions.Request, call string) bool {
	return !r.UsedAt.IsZero() && r.Scope == permissions.Once && r.UsedCall != call
}

// stillHeld checks an approval again before its use: see stillAllowed; what was held must still be held.
func (c approvals) stillHeld(ctx context.Context, r permissions.Request) error {
	e := c.engine
	if err := e.stillAllowed(r); err != nil {
		return err
	}
	grants, err := e.grants(ctx, r.Caller)
	if err != nil {
		return shared.Broken(err)
	}
	now := e.Settings().PolicyOf(r.Caller).Evaluate(r, grants, e.clock.Now())
	unasked := r.DecidedVia == permissions.ViaGrant
	if len(permissions.Missing(r.Held, now.Held)) > 0 || unasked && now.Ask {
		return permissions.RevokedBasis()
	}
	return nil
}

func (c approvals) Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID, by string) error {
	if _, err := c.engine.ownRequest(ctx, caller, id); err != nil {
		return err
	}
	return c.cancel(ctx, id, by)
}

func (c approvals) cancel(ctx context.Context, id permissions.ID, by string) error {
	_, err := c.engine.registry.Cancel(ctx, id, by, "")
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) {
		return nil
	}
	return shared.Broken(err)
}

func (c approvals) Tell(ctx context.Context, caller permissions.Caller, about permissions.About, t permissions.CallerMessage) error {
	_, err := c.engine.Tell(ctx, caller, "", about, t)
	return err
}

// EndSession implements [agents.Approvals]. Pending requests are cancelled first, so that nothing more is granted.
func (c approvals) EndSession(ctx context.Context, caller permissions.Caller, session string) error {
	if session == "" || !caller.IsOurs() {
		return permissions.Invalid(errNoSession)
	}
	e := c.engine
	pending, err := e.store.PendingOfSession(ctx, "", session)
	if err != nil {
		return shared.Broken(err)
	}
	for _, id := range pending {
		if err := c.cancel(ctx, id, ""); err != nil && !errors.Is(err, permissions.ErrRow) { // such a request allows nothing anyway
			return err
		}
	}
	return e.endGrantsOf(ctx, "", session)
}
