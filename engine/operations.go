package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/internal/aside"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
)

// Find returns a request of this caller as it is; another caller's is unknown. Reading never uses an approval.
func (e *Engine) Find(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if r.State != permissions.Pending && r.CollectedAt.IsZero() {
		c, err := e.registry.Resolve(ctx, id, permissions.Collect{At: e.clock.Stamp()})
		if err != nil {
			return permissions.RequestView{}, shared.Broken(err)
		}
		r = c.After
	}
	return e.View(ctx, r)
}

// Await is [Engine.Find] once the request is settled, or as it is when ctx ends first.
func (e *Engine) Await(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	if err := e.WaitSettled(ctx, caller, id); err != nil {
		return permissions.RequestView{}, err
	}
	late, done := shared.Noting(ctx)
	defer done()
	if errors.Is(ctx.Err(), context.Canceled) {
		r, err := e.own(late, caller, id) // nobody reads this answer: do not collect it
		if err != nil {
			return permissions.RequestView{}, err
		}
		return e.View(late, r)
	}
	return e.Find(late, caller, id)
}

// WaitSettled returns when [Engine.Await] would. It needs little stack, as [Engine.AskDeferred] does.
func (e *Engine) WaitSettled(ctx context.Context, caller permissions.Caller, id permissions.ID) error {
	var w *registry.Waiter
	var err error
	aside.Run(func() { w, err = e.attach(ctx, caller, id) })
	if err != nil {
		return err
	}
	w.WaitSettled(ctx)
	w.LeaveSoon(leaveGrace)
	return unborne(ctx)
}

// attach registers this caller as a waiting reader.
func (e *Engine) attach(ctx context.Context, caller permissions.Caller, id permissions.ID) (*registry.Waiter, error) {
	work, done := shared.Noting(ctx)
	defer done()
	if _, err := e.own(work, caller, id); err != nil {
		return nil, err
	}
	w, _, err := e.registry.Attach(work, id)
	return w, shared.Broken(err)
}

// Withdraw cancels a request of this caller. A settled one stays as it is, and the error says how it ended.
func (e *Engine) Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	return e.withdraw(ctx, r, "", "")
}

// LeaveOrCancel removes one call of this caller from a request, by the call's own name (empty once it has left), and
// cancels the request when no other call waits for it. See [registry.Registry.LeaveOrCancel].
func (e *Engine) LeaveOrCancel(
	ctx context.Context, caller permissions.Caller, id permissions.ID, call string,
) (permissions.RequestView, error) {
	r, err := e.leaveOrCancel(ctx, caller, id, call, "")
	if err != nil {
		return permissions.RequestView{}, err
	}
	return e.View(ctx, r)
}

// Killed is LeaveOrCancel for a call whose process was ended.
func (e *Engine) Killed(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) error {
	_, err := e.leaveOrCancel(ctx, caller, id, call, permissions.ViaInterrupt)
	return err
}

func (e *Engine) leaveOrCancel(
	ctx context.Context, caller permissions.Caller, id permissions.ID, call, via string,
) (permissions.Request, error) {
	if _, err := e.own(ctx, caller, id); err != nil {
		return permissions.Request{}, err
	}
	if call != "" {
		call = nameOf(caller, call)
	}
	r, err := e.registry.LeaveOrCancel(ctx, id, call, via)
	if err != nil {
		err = shared.Broken(permissions.Refused(err))
	}
	return r, err
}

// Recall withdraws the requests that a caller says need no answer any more, with its reason, and returns how many.
func (e *Engine) Recall(ctx context.Context, caller permissions.Caller, m permissions.Recall) (withdrawn int, err error) {
	if caller.Name == permissions.Anonymous { // it could withdraw the request of another anonymous caller
		return 0, permissions.TokenNeeded()
	}
	for of, id := range e.keptDecisions(caller.Name, m.Session, m.Agent) {
		if r, unread := e.store.Read(ctx, id); m.Tool == "" || unread != nil || m.Matches(r) { // else another call has run
			e.supersede(of, "")
		}
	}
	pending, err := e.store.PendingOfSession(ctx, caller.Name, m.Session)
	for _, id := range pending {
		r, unread := e.store.Read(ctx, id)
		if errors.Is(unread, permissions.ErrRow) || unread == nil && !m.Matches(r) {
			continue
		}
		if err = unread; err == nil {
			_, err = e.registry.Cancel(ctx, id, "", m.Via)
		}
		switch {
		case errors.Is(err, permissions.ErrSettled), errors.Is(err, permissions.ErrLate):
			err = nil
		case err != nil:
			return withdrawn, shared.Broken(err)
		default:
			withdrawn++
		}
	}
	return withdrawn, shared.Broken(err)
}

// nameOf qualifies a call's name with its caller: callers choose their own names.
func nameOf(caller permissions.Caller, call string) string { return caller.Name + "/" + call }

func (e *Engine) own(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Request, error) {
	r, err := e.store.Read(ctx, id)
	if err == nil && r.Caller.Name != caller.Name {
		err = permissions.Unknown(string(id))
	}
	return r, shared.Broken(err)
}

func (e *Engine) withdraw(ctx context.Context, r permissions.Request, by, via string) (permissions.RequestView, error) {
	c, err := e.registry.Cancel(ctx, r.ID, by, via)
	if err != nil {
		return permissions.RequestView{}, shared.Broken(permissions.Refused(err))
	}
	return e.View(ctx, c.After)
}

// Pending lists what awaits an identity's answer, for the operator everything, oldest first.
func (e *Engine) Pending(
	ctx context.Context, id connectors.Identity, after permissions.ID, limit int,
) ([]permissions.RequestView, error) {
	who, err := e.Sees(id)
	if err != nil {
		return nil, err
	}
	rows, err := e.store.Pending(ctx, who, after, limit)
	if err != nil {
		return nil, shared.Unread(err)
	}
	list := make([]permissions.RequestView, 0, len(rows))
	for _, r := range rows {
		standing, err := e.View(ctx, r)
		if err != nil {
			return nil, err
		}
		for i, cp := range standing.Copies {
			standing.Copies[i].SentAt = cmp.Or(cp.SentAt, e.begun(cp)) // a code may be answered before its prompt is confirmed
		}
		list = append(list, standing)
	}
	return list, nil
}

// Show returns one request by its id or its code, to its recipients and to the operator.
func (e *Engine) Show(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	r, _, err := e.visible(ctx, id, name)
	if err != nil {
		return permissions.RequestView{}, err
	}
	return e.View(ctx, r)
}

// Cancel withdraws a pending request, by its id or its code.
func (e *Engine) Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	r, who, err := e.visible(ctx, id, name)
	if err != nil {
		return permissions.RequestView{}, err
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

// Audit lists entries of the audit chain of the daemon, for the operator.
func (e *Engine) Audit(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) ([]permissions.Entry, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	entries, err := e.store.Audit(ctx, "", after, limit)
	return entries, shared.Unread(err)
}

// Verify checks every audit chain, for the operator, and returns the heads.
func (e *Engine) Verify(ctx context.Context, id connectors.Identity) ([]permissions.Head, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	heads, err := e.store.Verify(ctx)
	return heads, shared.Unread(err)
}

// Subscribe follows every committed change.
func (e *Engine) Subscribe(buffer int) *registry.Feed { return e.registry.Subscribe(buffer) }

// View returns a row with its code, its copies and its waiters.
func (e *Engine) View(ctx context.Context, r permissions.Request) (permissions.RequestView, error) {
	copies, err := e.store.Copies(ctx, r.ID)
	if err != nil {
		return permissions.RequestView{}, shared.Broken(err)
	}
	return permissions.RequestView{
		Request: r, Code: e.store.Coder().Encode(r.Number), Copies: copies, Waiting: e.waits(r),
		Editor:   e.Settings().Editable(r) == nil && r.State == permissions.Pending,
		Keyboard: e.Settings().Keyboard(r),
	}, nil
}

// Ready is nil while requests can be stored and answered; the error says what to do.
func (e *Engine) Ready(ctx context.Context) error { return shared.Broken(e.store.Health(ctx)) }

// Events lists at most limit events after seq that this identity may see, and the position from which to continue.
func (e *Engine) Events(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) (list []permissions.Event, seen int64, err error) {
	who, err := e.Who(id)
	if err != nil {
		return nil, after, err
	}
	return e.events(ctx, after, limit, func(h permissions.Event) bool { return id.Operator || h.VisibleTo(who) })
}

func (e *Engine) events(
	ctx context.Context, after int64, limit int, visible func(permissions.Event) bool,
) (list []permissions.Event, seen int64, err error) {
	list, first, err := e.store.Events(ctx, after, limit)
	if err != nil {
		return nil, after, shared.Unread(err)
	}
	if after > 0 && after < first-1 {
		return nil, after, permissions.Pruned(first)
	}
	seen = after
	if len(list) > 0 {
		seen = list[len(list)-1].Seq
	}
	list = slices.DeleteFunc(list, func(h permissions.Event) bool { return h.Type == "" || !visible(h) })
	for i, h := range list {
		if list[i].About, err = e.about(ctx, h); err != nil {
			return nil, after, shared.Unread(err)
		}
	}
	return list, seen, nil
}

// EventsFor is Events for a caller that holds a grant of [permissions.Events] in that session: what the grantors may
// see, and for a grant by the operator, what the recipients may see.
func (e *Engine) EventsFor(
	ctx context.Context, caller permissions.Caller, session, agent string, after int64, limit int,
) (list []permissions.Event, seen int64, err error) {
	if by := e.StoppedBy(); by != "" {
		return nil, after, permissions.Stopped(by)
	}
	grants, err := e.grants(ctx, caller)
	if err == nil {
		grants, err = e.ofAgent(ctx, caller, permissions.Request{Session: session, Agent: agent}, grants)
	}
	var people []string
	for _, g := range grants {
		if !g.Live(caller, session, e.clock.Now()) || !slices.Contains(g.Tags, permissions.Events) {
			continue
		}
		if people = append(people, g.By); g.By == directory.OperatorName && err == nil {
			var r permissions.Request
			r, err = e.store.Read(ctx, g.Request)
			people = append(people, r.Asked...)
		}
	}
	switch {
	case err != nil:
		return nil, after, shared.Unread(err)
	case len(people) == 0:
		return nil, after, permissions.NotHeld(permissions.Events)
	}
	return e.events(ctx, after, limit, func(h permissions.Event) bool { return slices.ContainsFunc(people, h.VisibleTo) })
}

// CountFollow inserts a row for a stream that a caller opens under its grants of [permissions.Events]; it counts as a
// use.
func (e *Engine) CountFollow(ctx context.Context, caller permissions.Caller, session, agent string) error {
	o, err := e.prepare(ctx, caller, permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Events}, Session: session,
		Agent: agent, Claimed: agent != "", Reason: "to follow the events",
	})
	switch {
	case err != nil:
		return err
	case o.Request.State == permissions.Pending: // the grant has ended at this very moment
		o.prompt.giveBack()
		giveBack(o.room)
		return permissions.NotHeld(permissions.Events)
	}
	w, r, _, err := e.registry.Register(ctx, o.Opening)
	if err != nil {
		return e.notOpened(o, err)
	}
	defer w.LeaveSoon(0)
	_, err = e.redeem(ctx, w, "", r)
	return err
}

// about returns the request that h describes, if any; without an ID where it is no longer stored.
func (e *Engine) about(ctx context.Context, h permissions.Event) (permissions.Request, error) {
	if !h.Type.HasWords() || h.Request == "" {
		return permissions.Request{}, nil
	}
	r, err := e.store.Read(ctx, h.Request)
	if permissions.CodeOf(err) == permissions.CodeUnknown || errors.Is(err, permissions.ErrRow) {
		return permissions.Request{}, nil
	}
	return r, err
}

// Changed is closed when there may be new events.
func (e *Engine) Changed() <-chan struct{} { return e.store.Changed() }

// Grants lists the grants in force from requests that this person received, and all of them for the operator.
func (e *Engine) Grants(ctx context.Context, id connectors.Identity) ([]permissions.Grant, error) {
	who, err := e.Sees(id)
	if err != nil {
		return nil, err
	}
	grants, err := e.store.GrantsInForce(ctx, who, e.clock.Now())
	return e.relied(grants), shared.Unread(err)
}

// Revoke revokes a grant and returns what ran under it.
func (e *Engine) Revoke(ctx context.Context, id connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	who, err := e.Who(id)
	if err != nil {
		return permissions.Revoked{}, err
	}
	g, err := e.store.Grant(ctx, grant)
	if err != nil {
		return permissions.Revoked{}, shared.Broken(err)
	}
	if !id.Operator {
		r, err := e.store.Read(ctx, g.Request)
		if err != nil {
			return permissions.Revoked{}, shared.Broken(err)
		}
		if !slices.Contains(r.Asked, who) {
			return permissions.Revoked{}, permissions.UnknownGrant(grant)
		}
	}
	e.forgetDecisions(func(of decisionKey) bool { return of.caller == g.Caller })
	revoked, err := e.store.Revoke(ctx, grant, who, id.Via, e.clock.Stamp(), ranMost)
	e.registry.ForgetGrant(grant)
	e.registry.NotifyNotices()
	return revoked, shared.Broken(err)
}

// Void takes back an unused approval, with the grants that it left, by its id or its code. The asker may do so too:
// taking back allows nothing.
func (e *Engine) Void(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	r, who, err := e.visible(ctx, id, name)
	if err != nil {
		return permissions.RequestView{}, err
	}
	e.forgetDecisions(func(of decisionKey) bool { return of.caller == r.Caller.Name })
	c, err := e.registry.Resolve(ctx, r.ID, permissions.Void{By: who, Via: id.Via, At: e.clock.Stamp()})
	if err != nil {
		return permissions.RequestView{}, shared.Broken(permissions.Refused(err))
	}
	return e.View(ctx, c.After)
}

// StopAll cancels everything pending, suspends every grant and refuses everything new until Resume. Every person may do
// that.
func (e *Engine) StopAll(ctx context.Context, id connectors.Identity) (cancelled int, err error) {
	who, err := e.Who(id)
	if err != nil {
		return 0, err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	return e.stopAll(context.WithoutCancel(ctx), who, id.Via) // once begun, a stop completes
}

// stopAll stops everything. If it cannot be stored it holds nevertheless, and keepLocks retries. The caller holds
// e.steering.
func (e *Engine) stopAll(ctx context.Context, who, via string) (cancelled int, err error) {
	if e.StoppedBy() == "" || who == directory.OperatorName {
		e.noteStop(who, time.Time{}) // first: readers of the audit must find it stopped, and cancelling may take long
	}
	who = e.StoppedBy() // a second stop completes the first one
	e.forgetDecisions(nil)
	cancelled, err = e.registry.StopAll(ctx, who, via)
	e.log.Warn("everything was stopped", "by", who, "via", via, "cancelled", cancelled, "err", err)
	e.stopping = func(context.Context) error { return nil }
	saved, at, unread := e.store.StoppedBy(ctx)
	if saved == who {
		e.noteStop(who, at)
	}
	switch {
	case err == nil:
		return cancelled, nil
	case unread == nil && saved == who:
		return cancelled, permissions.StopLeft(err.Error())
	}
	e.stopping = func(ctx context.Context) error {
		_, err := e.stopAll(ctx, who, via)
		return err
	}
	e.unsaved.Notify()
	return cancelled, permissions.StopUnsaved(err.Error())
}

// Resume ends a stop. It is for the operator and for the person who stopped.
func (e *Engine) Resume(ctx context.Context, id connectors.Identity) error {
	return e.EndStop(ctx, id, time.Time{})
}

// EndStop is [Engine.Resume] for the stop that began at a time, unless that is zero; it leaves another stop in force.
func (e *Engine) EndStop(ctx context.Context, id connectors.Identity, at time.Time) error {
	who, err := e.Who(id)
	if err != nil {
		return err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	work := context.WithoutCancel(ctx)
	switch stop := e.Stop(); {
	case stop.By != "" && stop.By != who && !id.Operator:
		return permissions.NotYours()
	case !at.IsZero() && !stop.At.Equal(at):
		return permissions.OtherStop()
	}
	if err := e.stopping(work); err != nil {
		return err
	}
	if err := e.store.Resume(work, who, id.Via, id.Operator, e.clock.Stamp()); err != nil {
		return shared.Broken(err)
	}
	e.registry.Halt("")
	e.noteStop("", time.Time{})
	close(e.over)
	e.over = make(chan struct{})
	e.log.Warn("resumed", "by", who, "via", id.Via)
	return nil
}

// StoppedBy returns who stopped everything, or empty.
func (e *Engine) StoppedBy() string { return e.Stop().By }

// Stop is the stop in force.
func (e *Engine) Stop() connectors.Stop { return *e.stopped.Load() }

// noteStop records the stop in force. The caller holds e.steering, once the engine runs.
func (e *Engine) noteStop(by string, at time.Time) {
	e.stopped.Store(&connectors.Stop{By: by, At: at, Over: e.over})
}

// CreateToken creates a token for an agent of a person, or of nobody in particular if person is empty. It expires after
// expires; 0: never. The secret is returned only here.
func (e *Engine) CreateToken(
	ctx context.Context, id connectors.Identity, name, person string, expires time.Duration,
) (permissions.Secret, permissions.Token, error) {
	if !id.Operator {
		return "", permissions.Token{}, permissions.OperatorOnly()
	}
	if err := permissions.CheckTokenName(name); err != nil {
		return "", permissions.Token{}, permissions.Invalid(err)
	}
	if expires < 0 {
		return "", permissions.Token{}, permissions.Invalid(errors.New("a token cannot have expired before it is made"))
	}
	if e.Settings().HasAgent(name) {
		return "", permissions.Token{}, permissions.Invalid(fmt.Errorf("%s is an agent of this daemon; write another name", name))
	}
	who, err := e.Who(id)
	if err != nil {
		return "", permissions.Token{}, err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	if person, err = e.Whose(ctx, name, person); err != nil {
		return "", permissions.Token{}, err
	}
	secret := permissions.NewSecret()
	hash, _ := secret.Hash()
	now := e.clock.Stamp()
	t := permissions.Token{ID: permissions.NewID(now), Name: name, Person: person, Hash: hash, CreatedAt: now}
	if expires > 0 {
		t.ExpiresAt = now.Add(expires)
	}
	if err := e.vacate(context.WithoutCancel(ctx), name, who, id.Via); err != nil { // also if the last one expired
		return "", permissions.Token{}, shared.Broken(err)
	}
	if err := e.store.AddToken(ctx, t, who, id.Via); err != nil {
		return "", permissions.Token{}, shared.Broken(err)
	}
	return secret, t, shared.Broken(e.ReadOwners(ctx))
}

// Tokens lists the tokens that are not revoked.
func (e *Engine) Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	tokens, err := e.store.Tokens(ctx)
	return tokens, shared.Unread(err)
}

// RevokeToken revokes one token by its id, or all tokens of a name.
func (e *Engine) RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	who, err := e.Who(id)
	if err != nil {
		return nil, err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	tokens, err := e.store.RevokeToken(ctx, name, who, id.Via, e.clock.Stamp())
	if err != nil {
		return tokens, shared.Broken(err)
	}
	e.mu.Lock()
	for _, t := range tokens {
		for b := range e.bearers[t.Hash] {
			b.end(permissions.UnknownToken())
		}
	}
	e.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	return tokens, shared.Broken(errors.Join(e.ReadOwners(ctx), e.vacate(ctx, tokens[0].Name, who, id.Via)))
}

// vacate clears a name that no token proves any more, for its next holder: it withdraws pending requests and revokes
// grants and unused approvals. The caller holds e.steering.
func (e *Engine) vacate(ctx context.Context, name, who, via string) error {
	now, caller := e.clock.Stamp(), permissions.Token{Name: name}.Caller(permissions.NoUID).Name
	tokens, err := e.store.Tokens(ctx)
	if err != nil || slices.ContainsFunc(tokens, func(t permissions.Token) bool { return t.Name == name && !t.Expired(now) }) {
		return err
	}
	e.forgetDecisions(func(of decisionKey) bool { return of.caller == caller })
	grants, err := e.store.GrantsInForce(ctx, "", now)
	for _, g := range grants {
		if g.Caller != caller {
			continue
		}
		_, failed := e.store.Revoke(ctx, g.ID, who, via, now, ranMost)
		e.registry.ForgetGrant(g.ID)
		err = errors.Join(err, failed)
	}
	left, unread := e.store.Left(ctx, caller, now.Add(-e.Settings().Approvals.RedeemWindow))
	err = errors.Join(err, unread)
	for _, id := range left {
		r, failed := e.store.Read(ctx, id)
		switch {
		case errors.Is(failed, permissions.ErrRow): // it grants nothing
			continue
		case failed != nil:
		case r.State == permissions.Pending:
			_, failed = e.registry.Cancel(ctx, id, who, via)
		case r.State == permissions.Approved:
			_, failed = e.registry.Resolve(ctx, id, permissions.Void{By: who, Via: via, At: now})
		}
		if failed == nil { // an equal question by the next holder does not find the outcome
			_, failed = e.registry.Resolve(ctx, id, permissions.Collect{At: now})
		}
		if !errors.Is(failed, permissions.ErrSettled) && !errors.Is(failed, permissions.ErrLate) && !errors.Is(failed, permissions.ErrNoUse) {
			err = errors.Join(err, failed)
		}
	}
	e.registry.NotifyNotices()
	return err
}

// vacateExpired clears the names whose last token has expired.
func (e *Engine) vacateExpired(ctx context.Context) error {
	e.steering.Lock()
	defer e.steering.Unlock()
	callers, err := e.store.Callers(ctx, e.clock.Stamp())
	for _, caller := range callers {
		if name, is := permissions.TokenName(caller); is {
			err = errors.Join(err, e.vacate(ctx, name, "", permissions.ViaExpiry))
		}
	}
	return err
}

// Prove returns the caller that a token proves, over a connection of that account.
func (e *Engine) Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error) {
	hash, ok := secret.Hash()
	if !ok {
		return permissions.Caller{}, permissions.UnknownToken()
	}
	now := e.clock.Now()
	t, err := e.store.VerifyToken(ctx, hash, now)
	if err != nil {
		return permissions.Caller{}, shared.Broken(err)
	}
	if b, borne := ctx.Value(bearerKey{}).(*bearer); borne && !t.ExpiresAt.IsZero() {
		b.expires = time.AfterFunc(t.ExpiresAt.Sub(now), func() { b.end(permissions.UnknownToken()) })
	}
	return t.Caller(uid), nil
}

// bearer is a running call that presents a token.
type bearer struct {
	context.Context //nolint:containedctx // of the call, which it is a value of

	end     context.CancelCauseFunc
	expires *time.Timer // nil: the token does not expire
}

type bearerKey struct{}

// Bear returns the context of a call that presents a token, for [Engine.Prove] and everything the call does. It ends
// with a refusal when the token is revoked or expires: the call then receives nothing more. The caller calls done after
// the call.
func (e *Engine) Bear(ctx context.Context, secret permissions.Secret) (_ context.Context, done func()) {
	hash, _ := secret.Hash()
	b := &bearer{}
	b.Context, b.end = context.WithCancelCause(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bearers[hash] == nil {
		e.bearers[hash] = map[*bearer]bool{}
	}
	e.bearers[hash][b] = true
	return context.WithValue(b.Context, bearerKey{}, b), func() {
		b.end(nil)
		if b.expires != nil {
			b.expires.Stop()
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if delete(e.bearers[hash], b); len(e.bearers[hash]) == 0 {
			delete(e.bearers, hash)
		}
	}
}

// unborne returns the refusal of a call whose token was revoked or has expired since it was proven, or nil.
func unborne(ctx context.Context) error {
	b, borne := ctx.Value(bearerKey{}).(*bearer)
	if !borne || permissions.CodeOf(context.Cause(b)) != permissions.CodeToken {
		return nil
	}
	return context.Cause(b)
}
