package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// lease is how long a call that received "still pending" keeps its place until it asks again.
	lease = 10 * time.Second
	// leaveGrace is how long a disconnected call may take to return before prompts show that nobody waits.
	leaveGrace = time.Second
	// maxBegun bounds how many calls begin at once. Thousands would each hold the memory to store a question, while the
	// store writes one group at a time.
	maxBegun = 32
	// maxShare bounds how many of them are one caller's: a large input takes long to judge.
	maxShare = maxBegun / 2
)

// Ask implements [agents.Asker]: it opens the request, or joins an equal pending one, and waits for the answer. While the store cannot be
// reached, it tries again.
func (e *Engine) Ask(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, error) {
	r, err := e.AskDeferred(ctx, time.Time{}, caller, func() (permissions.Request, error) { return q, nil })
	return *r, err
}

// AskDeferred is [Engine.Ask] for servers with thousands of waiting calls. Requests are large and storing them needs a
// deep stack, so while a call waits it holds no request and almost no stack: everything else runs off the stack. It
// waits until then at most, if that is not zero, which costs less than a deadline of ctx. The function question builds
// the question, again whenever it has to be asked again; its error is returned unchanged. The answer is never nil.
func (e *Engine) AskDeferred(
	ctx context.Context, until time.Time, caller permissions.Caller, question func() (permissions.Request, error),
) (*permissions.Request, error) {
	c := &call{engine: e, until: until, caller: caller, question: question}
	for used := 0; used < maxAnew; {
		switch err := c.askOnce(ctx); {
		case errors.Is(err, registry.ErrUsedElsewhere): // or it is over
			c.anew = true
			used++
		case !errors.Is(err, permissions.ErrAway) || !c.waits(ctx, shared.RetryDelay):
			return c.answer, err
		}
	}
	return new(permissions.Request), permissions.Limit(time.Second)
}

// waits reports whether the call still wants an answer after d.
func (c *call) waits(ctx context.Context, d time.Duration) bool {
	if !c.until.IsZero() && time.Until(c.until) <= d {
		return false
	}
	return timing.Pause(ctx, d) == nil
}

// maxAnew bounds how often one call asks again because another call used the answer.
const maxAnew = 100

// call is one asking call.
type call struct {
	engine   *Engine
	until    time.Time // it waits no longer; zero: as long as its context
	caller   permissions.Caller
	question func() (permissions.Request, error)
	anew     bool // do not look for the request by its id
	name     string
	before   *decisionKey         // set for a hook that runs before another hook of the same call
	waiter   *registry.Waiter     // nil: answered at once
	answer   *permissions.Request // set at the end
}

// askOnce asks and waits.
func (c *call) askOnce(ctx context.Context) (err error) {
	if err := c.engine.store.CatchUp(ctx); err != nil { // which may take long, so no turn is held
		c.answer = new(permissions.Request)
		return shared.Broken(err)
	}
	done, _ := c.engine.shares.Take(context.Background(), c.caller.Name) // here, where a call that waits for its turn is small
	c.engine.beginning <- struct{}{}
	c.engine.aside.Run(func() { err = c.begin(ctx) })
	done()
	if err != nil {
		c.answer = new(permissions.Request)
		return err
	}
	if c.waiter == nil {
		return nil
	}
	c.waiter.WaitSettled(ctx, c.until)
	c.engine.aside.Run(func() { err = c.end(ctx) })
	return err
}

func (c *call) begin(ctx context.Context) error {
	defer func() { <-c.engine.beginning }()
	q, err := c.question()
	if err != nil {
		return err
	}
	if q.Call != "" {
		q.Call = nameOf(c.caller, q.Call)
	}
	if c.anew {
		q.ID = ""
	}
	if err := bearerError(ctx); err != nil {
		return err
	}
	work, done := context.WithTimeout(context.WithoutCancel(ctx), shared.StoreTime)
	defer done()
	if err := c.engine.store.CatchUp(work); err != nil { // the turn may have been waited for
		return shared.Broken(err)
	}
	c.name = q.Call
	switch q.HookStage {
	case permissions.HookBefore:
		c.before = decisionKeyOf(c.caller, q)
	case permissions.HookDenied:
		if c.before = decisionKeyOf(c.caller, q); !c.anew {
			err = c.engine.mayAskRefused(c.before, cmp.Or(q.Call, string(q.ID)))
		}
	}
	if err != nil {
		return err
	}
	if r, found := c.engine.recentDecision(work, c.caller, q); found {
		c.answer = &r
		c.supersede(r.ID)
		return nil
	}
	deadline, limited := ctx.Deadline()
	if !c.until.IsZero() {
		deadline, limited = c.until, true
	}
	reads := q.Call == "" && limited && !deadline.After(time.Now()) // it does not wait, nor come back under a name
	forget := func() {}
	if q.HookStage == permissions.HookDenied && !c.anew { // before anybody sees the request
		forget = c.engine.askedRefused(*c.before, cmp.Or(q.Call, string(q.ID)))
	}
	c.waiter, err = c.engine.place(work, c.caller, q, reads)
	if err != nil {
		forget()
		c.supersede("")
		return err
	}
	c.supersede(c.waiter.ID())
	c.engine.dropCancelled(work, c.waiter.ID())
	return nil
}

// supersede ends what is kept of an earlier answer about the same call, now that a hook asks about it by the request of that id.
func (c *call) supersede(id permissions.ID) {
	if c.before != nil {
		c.engine.supersede(*c.before, id)
	}
}

func (c *call) end(ctx context.Context) error {
	r, err := c.waiter.Wait(ctx)
	over := bearerError(ctx)
	switch {
	case over != nil:
		r, err = c.engine.leave(ctx, c.waiter, c.name, over)
		r = permissions.Request{ID: r.ID}
	case err == nil:
		c.waiter.LeaveSoon(0)
		r, err = c.engine.redeem(ctx, c.waiter, c.name, r)
	case errors.Is(err, registry.ErrUsedElsewhere):
		c.waiter.LeaveSoon(0)
	default:
		r, err = c.engine.leave(ctx, c.waiter, c.name, err)
	}
	c.answer = &r
	if err == nil && c.before != nil {
		c.engine.rememberDecision(*c.before, r)
	}
	return err
}

// unfollowedFor is how long a hook's question that nobody waits for stays pending.
const unfollowedFor = 10 * time.Second

// leave ends the waiting of a call whose ctx is over and returns the request as it is. What a hook asks without a name of its
// call is withdrawn unless another hook soon waits for it: if none does, the agent was interrupted between the two.
func (e *Engine) leave(ctx context.Context, w *registry.Waiter, name string, cause error) (permissions.Request, error) {
	work, done := context.WithTimeout(context.WithoutCancel(ctx), shared.StoreTime)
	defer done()
	r, err := e.store.Read(work, w.ID())
	late := errors.Is(cause, context.DeadlineExceeded)
	switch {
	case err != nil:
		w.LeaveSoon(leaveGrace)
		return r, shared.Broken(err)
	case r.State != permissions.Pending && late: // settled at this very moment, so the waiter is woken
		r, err = w.Wait(work)
		w.LeaveSoon(0)
		if err != nil {
			return r, err
		}
		return e.redeem(ctx, w, name, r)
	case late && name != "":
		w.Park(lease)
	default:
		w.LeaveSoon(leaveGrace)
	}
	if late && name == "" && r.Hook != "" {
		if err := e.scheduleCancel(work, r.ID, unfollowedFor); err != nil {
			return r, err
		}
	}
	return r, cause
}

// place returns the waiter of a call: its own parked one, one at the request whose id it named (which it was told, or
// proposed without seeing the reply), or one at a new request. With reads it takes no approval.
func (e *Engine) place(ctx context.Context, caller permissions.Caller, q permissions.Request, reads bool) (*registry.Waiter, error) {
	if w, parked := e.registry.Rejoin(q.Call); parked {
		if r, err := e.store.Read(ctx, w.ID()); err == nil && asksTheSame(caller, q, r) {
			return w, nil
		}
		w.LeaveSoon(leaveGrace) // a different question under the same name is a different call
	}
	if q.ID == "" {
		return e.open(ctx, caller, q, reads)
	}
	r, err := e.store.Read(ctx, q.ID)
	switch {
	case permissions.CodeOf(err) == permissions.CodeUnknown:
		return e.open(ctx, caller, q, reads)
	case err != nil:
		return nil, shared.Broken(err)
	case r.Caller.Name != caller.Name:
		return nil, permissions.Unknown(string(q.ID))
	case !asksTheSame(caller, q, r):
		return nil, permissions.KeyTaken()
	case e.isTooOld(r), r.AllowedByPolicy(): // what policy let go then may have to be asked about now
		q.ID = ""
		return e.open(ctx, caller, q, reads)
	}
	if reads {
		w, _, err := e.registry.Attach(ctx, q.ID)
		return w, shared.Broken(err)
	}
	w, _, err := e.registry.Join(ctx, q.ID, q.Call)
	return w, shared.Broken(err)
}

// isTooOld reports whether an answer is too old to be found by its request's id. An answer dated in the future, by a wrong
// clock, is.
func (e *Engine) isTooOld(r permissions.Request) bool {
	age := e.clock.Now().Sub(r.DecidedAt)
	return r.State != permissions.Pending &&
		(age >= e.Settings().Approvals.RedeemWindow || age < -time.Minute || !r.LapsedAt.IsZero())
}

// asksTheSame reports whether q asks the same as row r.
func asksTheSame(caller permissions.Caller, q, r permissions.Request) bool {
	q.Caller, q.Version = caller, r.Version
	return q.Normalize() == nil && permissions.ComputeDigest(q) == r.Digest
}

// redeem hands a settled request to its call. The call uses an approval, once, unless it has used it already; when
// another call has used it, the error is [registry.ErrUsedElsewhere]. A call that has left uses nothing, and the
// answer is kept for it.
func (e *Engine) redeem(
	ctx context.Context, w *registry.Waiter, name string, r permissions.Request,
) (permissions.Request, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return r, ctx.Err()
	}
	if r.State != permissions.Approved || !r.VoidAt.IsZero() {
		return e.collect(ctx, r), nil
	}
	if w.Handed() { // with the deciding vote, which was checked
		return r, nil
	}
	if err := e.store.CatchUp(ctx); err != nil {
		return permissions.Request{}, shared.Broken(err)
	}
	if err := e.stillAllowed(r); err != nil {
		return permissions.Request{}, err
	}
	work, done := context.WithTimeout(context.WithoutCancel(ctx), shared.StoreTime)
	defer done()
	c, err := e.registry.Resolve(work, r.ID, permissions.Use{Call: name, At: e.clock.Stamp()})
	switch {
	case err == nil && c.After.VoidAt.IsZero():
		return c.After, nil
	case err == nil: // its basis has ended
		return e.collect(ctx, c.After), nil
	case errors.Is(err, permissions.ErrNoUse) && c.Before.VoidAt.IsZero():
		return r, registry.ErrUsedElsewhere
	case errors.Is(err, permissions.ErrNoUse):
		return e.collect(ctx, c.Before), nil // revoked meanwhile
	}
	return permissions.Request{}, shared.Broken(err)
}

// collect records that the asker was told how r ended, so that an equal question is put to people again. If that fails,
// the asker may be told once more.
func (e *Engine) collect(ctx context.Context, r permissions.Request) permissions.Request {
	if !r.CollectedAt.IsZero() {
		return r
	}
	work, done := context.WithTimeout(context.WithoutCancel(ctx), shared.StoreTime)
	defer done()
	c, err := e.registry.Resolve(work, r.ID, permissions.Collect{At: e.clock.Stamp()})
	if err != nil {
		return r
	}
	return c.After
}

// stillAllowed checks an approval again before it is handed over: the row must be what was shown, and policy may have
// changed since.
func (e *Engine) stillAllowed(r permissions.Request) error {
	if err := e.AgentMayAsk(r.Caller); err != nil {
		return err
	}
	s := e.Settings()
	if r.DecidedVia != permissions.ViaGrant && permissions.ComputeDigest(r) != r.Digest { // else nobody was shown it, see storedDetails
		return permissions.Broken("request " + string(r.ID) + " is not what was approved")
	}
	if v := s.PolicyOf(r.Caller).Evaluate(r, nil, e.clock.Now()); v.Forbidden != "" {
		return permissions.ForbiddenBy(v)
	}
	_, err := e.ownFiles(s, r)
	return err
}

// Begin is [Engine.Ask] without waiting: it returns the request as it is. The call keeps its place for a moment, for an
// Ask with the same Call and the request's id.
func (e *Engine) Begin(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	now, done := context.WithTimeout(ctx, 0)
	defer done()
	r, err := e.Ask(now, caller, q)
	if err != nil && (r.State != permissions.Pending || !errors.Is(err, context.DeadlineExceeded)) {
		return permissions.RequestView{Request: r}, err
	}
	return e.View(ctx, r)
}

// Reply answers a request of this caller through the dialog of the caller's own editor; shown is the digest of what the
// dialog showed. It arrives from the asker's side and proves no identity, so it counts only where the settings allow it,
// and only for answers that permit nothing; [permissions.Step] enforces that too. A settled request stays as it is, and
// the error says how it ended.
func (e *Engine) Reply(
	ctx context.Context, caller permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.RequestView, error) {
	r, err := e.ownRequest(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	d := connectors.Decision{
		From: connectors.Identity{Via: permissions.ViaEditor, UID: caller.UID}, Request: id, Answer: a, Shown: shown,
	}
	if err := e.store.CatchUp(ctx); err != nil {
		return permissions.RequestView{}, shared.Broken(err)
	}
	e.deciding.RLock()
	defer e.deciding.RUnlock()
	if p, _ := e.Settings().Identify(d.From); p.Locked != "" {
		return permissions.RequestView{}, e.auditRefusal(ctx, r, d, caller.Name, permissions.LockedOut(p.Locked))
	}
	if err := e.Settings().Editable(r); err != nil {
		return permissions.RequestView{}, e.auditRefusal(ctx, r, d, caller.Name, err)
	}
	if shown != r.ShownDigest() {
		return permissions.RequestView{}, e.auditRefusal(ctx, r, d, caller.Name, permissions.ShownDiffers())
	}
	c, err := e.registry.Resolve(ctx, id, permissions.Reply{Answer: a, At: e.clock.Stamp()})
	if err != nil {
		return permissions.RequestView{}, e.auditRefusal(ctx, r, d, caller.Name, shared.Broken(permissions.ToRefusal(err)))
	}
	return e.View(ctx, e.collect(ctx, c.After)) // whoever replies is the asker and knows the outcome
}
