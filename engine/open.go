package engine

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/registry"
)

// coolDown is how long a question that was denied twice is not asked again.
const coolDown = 10 * time.Minute

// maxUnrouted bounds how many callers without a route are logged.
const maxUnrouted = 1000

// open registers a waiter for a new question. When a grant that it was to run under is revoked at that very moment, it
// is drafted again.
func (e *Engine) open(ctx context.Context, caller permissions.Caller, q permissions.Request, reads bool) (*registry.Waiter, error) {
	for range maxAnew {
		w, err := e.tryOpen(ctx, caller, q, reads)
		if !grantRevoked(err) {
			return w, err
		}
	}
	return nil, permissions.Limit(time.Second)
}

// grantRevoked reports whether a grant that the draft rests on was revoked at that very moment.
func grantRevoked(err error) bool { return permissions.CodeOf(err) == permissions.CodeUnknown }

// opening is a drafted row that is about to be inserted.
type opening struct {
	permissions.Opening
	settings    *directory.Settings
	prompt      reservation
	storage     []reservation // in the store
	unreachable string        // why people cannot be reached, if too few can
}

// tryOpen drafts the row, registers the waiter and inserts the row.
func (e *Engine) tryOpen(ctx context.Context, caller permissions.Caller, q permissions.Request, reads bool) (*registry.Waiter, error) {
	o, err := e.prepare(ctx, caller, q)
	if err != nil {
		return nil, err
	}
	if reads && q.Hook != "" { // or a kill before the hook leaves would leave the request pending; see leave
		o.Wait = permissions.Wait{Kind: permissions.WaitCancelled, Until: e.clock.Now().Add(unfollowedFor)}
	}
	w, stored, created, err := e.registry.Register(ctx, o.Opening, reads)
	if err != nil {
		return nil, e.openingError(o, err)
	}
	if _, err := e.completeOpening(ctx, o, stored, created); err != nil {
		w.LeaveSoon(leaveGrace)
		return nil, err
	}
	return w, nil
}

// prepare drafts the row and plans its copies.
func (e *Engine) prepare(ctx context.Context, caller permissions.Caller, q permissions.Request) (opening, error) {
	s := e.Settings()
	grants, err := e.grants(ctx, caller)
	if err == nil {
		grants, err = e.withoutOtherAgents(ctx, caller, q, grants)
	}
	if err != nil {
		return opening{}, shared.Broken(err)
	}
	if q.Harmless && q.Key == "" { // else it is refused
		if q.Harmless, err = e.trustsHook(ctx, s, caller, q); err != nil {
			return opening{}, shared.Broken(err)
		}
	}
	r, err := e.draft(s, caller, q, grants, true)
	if err != nil {
		e.noteUnrouted(caller, err)
		return opening{}, err
	}
	if r.State == permissions.Pending {
		if r, err = e.applyFatigue(ctx, s, r, q.Widest); err != nil {
			return opening{}, shared.Broken(err)
		}
	}
	if !caller.IsOurs() {
		if r.Foreground, err = e.Front(ctx, r.Asked); err != nil {
			return opening{}, err
		}
	}
	room, full := e.reserveStorage(s, r)
	if full > 0 && r.State != permissions.Pending {
		return opening{}, permissions.Limit(full, "requests_per_hour", "bytes_per_hour")
	}
	prompt, exhausted := e.reserve(s, r)
	exhausted = max(exhausted, full)
	var told []permissions.Record
	if absence, due := s.Absence(r, r.CreatedAt); due && r.State == permissions.Pending {
		c, err := permissions.Step(r, absence)
		if err != nil {
			return opening{}, permissions.Invalid(err)
		}
		r, told = c.After, c.Records
		r.Revision = 1
	}
	copies, unreachable := e.Plan(s, r, nil)
	if e.IsSender() && e.CountReached(s, r, copies) < r.Quorum && len(r.EscalateTo) > 0 { // waiting would be pointless
		r.Asked, r.EscalateTo, r.EscalateAt = append(r.Asked, r.EscalateTo...), nil, time.Time{}
		copies, unreachable = e.Plan(s, r, nil)
	}
	s.LeaveOutLocked(&r)
	rest := coolDown
	if caller.IsOurs() { // they have a rule of their own: the third denial in a row ends the asking
		rest = 0
	}
	return opening{settings: s, prompt: prompt, storage: room, unreachable: unreachable, Opening: permissions.Opening{
		Request: r, Copies: copies, Records: told, RedeemWindow: s.Approvals.RedeemWindow,
		PerCaller: s.Limits.PendingPerCaller, Total: s.Limits.PendingTotal, CoolDown: rest,
		PromptPause: exhausted,
	}}, nil
}

// trustsHook reports whether the daemon accepts a hook's word that a call is harmless: the call reads so here too (symlinks are not
// resolved), its route needs one answer and accepts a keyboard, and people have not denied the call.
func (e *Engine) trustsHook(ctx context.Context, s *directory.Settings, caller permissions.Caller, q permissions.Request) (bool, error) {
	q.Caller = caller
	folder := filepath.Clean(q.Cwd)
	if caller.IsOurs() || q.Kind != permissions.KindTool || len(q.Calls) > 0 || q.Normalize() != nil ||
		q.HookStage != "" && q.HookStage != permissions.HookBefore || !filepath.IsAbs(folder) || holdsHome(folder) {
		return false, nil //nolint:nilerr // a call that has no canonical form is not believed
	}
	route, found := s.RouteOf(q)
	w := acts.Workspace{Root: folder, Resolve: filepath.Clean}
	if !found || route.Quorum > 1 || route.NoKeyboard || !w.HarmlessCall(q.Hook, q.Tool, q.Input, folder) {
		return false, nil
	}
	denied, err := e.store.DeniedBefore(ctx, q, e.clock.Now().Add(-coolDown))
	return err == nil && !denied, err
}

// holdsHome reports whether a folder is by its name a home folder, or above one, so no project's.
func holdsHome(folder string) bool {
	return slices.Contains([]string{"/", "/root", "/home", "/Users"}, folder) ||
		slices.Contains([]string{"/home", "/Users"}, filepath.Dir(folder))
}

// noteUnrouted logs a caller without a route, once until the configuration changes.
func (e *Engine) noteUnrouted(caller permissions.Caller, err error) {
	if permissions.CodeOf(err) != permissions.CodeNoRoute {
		return
	}
	e.mu.Lock()
	told := e.unrouted[caller.Name] || len(e.unrouted) == maxUnrouted
	if !told {
		e.unrouted[caller.Name] = true
	}
	e.mu.Unlock()
	if !told {
		e.log.Warn("request refused: no route for this caller", "caller", caller.Name)
	}
}

// completeOpening completes the opening of the stored row and returns it as it is then: a request that reaches too few people
// ends.
func (e *Engine) completeOpening(
	ctx context.Context, o opening, stored permissions.Request, created bool,
) (permissions.Request, error) {
	if !created {
		giveBack(o.storage)
	}
	if !created || stored.State != permissions.Pending {
		o.prompt.giveBack() // nobody is prompted
		if !created && stored.Key != "" && stored.DecidedVia == permissions.ViaGrant && o.Request.State == permissions.Pending {
			return permissions.Request{}, permissions.RevokedBasis() // what the key finds would be asked about by now
		}
		return stored, nil
	}
	if why := e.AgentMayAsk(stored.Caller); why != nil { // it was stopped at that very moment, perhaps without seeing this one
		if _, err := e.registry.Cancel(ctx, stored.ID, "", ""); err != nil && !errors.Is(err, permissions.ErrSettled) {
			return permissions.Request{}, shared.Broken(err)
		}
		return permissions.Request{}, why
	}
	if err := e.SendUnfollowed(ctx, o.Copies); err != nil {
		e.log.Warn("send what nobody follows any more: it is shown when an inbox opens", "request", stored.ID, "err", err)
	}
	if !e.IsSender() || e.CountReached(o.settings, stored, o.Copies) >= stored.Quorum {
		return stored, nil // the daemon that sends gives it up
	}
	c, err := e.registry.Resolve(ctx, stored.ID, permissions.GiveUp{Reason: o.unreachable, Asked: stored.Asked, At: e.clock.Stamp()})
	if err != nil && !errors.Is(err, permissions.ErrSettled) {
		return permissions.Request{}, shared.Broken(err)
	}
	return c.After, nil
}

// openingError returns why a row was not inserted. After a store failure it may exist nevertheless, and reach too few
// people.
func (e *Engine) openingError(o opening, err error) error {
	o.prompt.giveBack()
	giveBack(o.storage)
	if errors.Is(err, permissions.ErrBroken) {
		e.Reconsider(o.Request.ID)
	}
	return shared.Broken(err)
}

// reservation is what was taken from a caller's bucket. The zero reservation took nothing.
type reservation struct {
	taken *rate.Reservation
	at    time.Time // it can only be given back as of this time
}

func (r reservation) giveBack() {
	if r.taken != nil {
		r.taken.CancelAt(r.at)
	}
}

func giveBack(all []reservation) {
	for _, r := range all {
		r.giveBack()
	}
}

// take takes n tokens from a bucket. If fewer are left, exhausted is how long until there are enough.
func (e *Engine) take(bucket *rate.Limiter, n int) (taken reservation, exhausted time.Duration) {
	taken = reservation{at: e.clock.Now()}
	taken.taken = bucket.ReserveN(taken.at, n)
	if wait := taken.taken.DelayFrom(taken.at); wait > 0 {
		taken.giveBack()
		return reservation{}, min(wait, time.Hour)
	}
	return taken, 0
}

// reserve takes a prompt token if r would prompt anybody. If none is left, exhausted is how long until there is one:
// until then, r may still join a pending request, or find its answer.
func (e *Engine) reserve(s *directory.Settings, r permissions.Request) (taken reservation, exhausted time.Duration) {
	if r.State != permissions.Pending || s.Limits.PromptsPerMinute <= 0 {
		return reservation{}, 0
	}
	return e.take(limiter(e, e.prompts, r.Caller.Root(), s.Limits.PromptsPerMinute, time.Minute), 1)
}

// takeAutoTokens takes a token for each unasked call from the caller's bucket of the call's pattern and rate. It returns the rate of the
// first bucket that is empty, and 0 if none is. The patterns count, not the matching tools, so that inventing names gains nothing.
func (e *Engine) takeAutoTokens(s *directory.Settings, caller permissions.Caller, auto []permissions.AutoCall) (beyond int) {
	var taken []reservation
	for _, call := range auto {
		of, n := s.Limits.Rate(call.Tool)
		if n <= 0 {
			continue
		}
		one, wait := e.take(limiter(e, e.auto, [3]string{caller.Root(), call.Pattern, of}, n, time.Minute), 1)
		if wait > 0 {
			giveBack(taken)
			return n
		}
		taken = append(taken, one)
	}
	return 0
}

// reserveStorage takes the room that r needs in the store from the caller's hourly limits, whatever settles it.
func (e *Engine) reserveStorage(s *directory.Settings, r permissions.Request) (taken []reservation, exhausted time.Duration) {
	size := len(r.Input) + len(r.Details) + len(r.Message) + len(r.Reason)
	for _, c := range r.Calls {
		size += len(c.Input)
	}
	for _, c := range r.ToolCalls() {
		size += c.RowBytes()
	}
	for _, b := range []struct {
		of      map[string]*rate.Limiter
		most, n int
	}{{e.rows, s.Limits.RequestsPerHour, 1}, {e.bytes, s.Limits.BytesPerHour, size}} {
		if b.most <= 0 {
			continue
		}
		one, wait := e.take(limiter(e, b.of, r.Caller.Root(), b.most, time.Hour), b.n)
		if wait > 0 {
			giveBack(taken)
			return nil, wait
		}
		taken = append(taken, one)
	}
	return taken, 0
}

// grants returns a caller's grants that may be used, or the refusal of one that is stopped, without those that only a clock that was
// set back keeps in force.
func (e *Engine) grants(ctx context.Context, caller permissions.Caller) ([]permissions.Grant, error) {
	if err := e.AgentMayAsk(caller); err != nil {
		return nil, err
	}
	all, err := e.store.Grants(ctx, caller.Name, e.clock.Now())
	if all = e.grantsInForce(all); err != nil {
		return all, err
	}
	return all, e.addGivers(ctx, all)
}

// addGivers adds to grants who gave them, if that may have been several people.
func (e *Engine) addGivers(ctx context.Context, all []permissions.Grant) error {
	if !e.Settings().HasQuorumRoute() {
		return nil
	}
	for i, g := range all {
		if g.Rule != "" { // it says so itself
			continue
		}
		r, err := e.store.Read(ctx, g.Request)
		if err != nil && !errors.Is(err, permissions.ErrRow) {
			return err
		}
		all[i].Several = r.GiversOf(g)
	}
	return nil
}

// withoutOtherAgents leaves out the session grants of other agents of the same caller: agents that are not ours name their session
// themselves.
func (e *Engine) withoutOtherAgents(
	ctx context.Context, caller permissions.Caller, q permissions.Request, grants []permissions.Grant,
) (own []permissions.Grant, err error) {
	q.Caller = caller
	_ = q.Normalize() // an invalid input is refused by draft
	for _, g := range grants {
		if g.Session != "" && g.Session == q.Session && !caller.IsOurs() {
			r, err := e.store.Read(ctx, g.Request)
			switch {
			case errors.Is(err, permissions.ErrRow):
				continue // its agent is unknown
			case err != nil:
				return nil, err
			case r.Agent != q.Agent:
				continue
			}
		}
		own = append(own, g)
	}
	return own, nil
}

func (e *Engine) grantsInForce(all []permissions.Grant) []permissions.Grant {
	return slices.DeleteFunc(all, func(g permissions.Grant) bool { return !e.registry.InForce(g, e.clockSetBack) })
}
