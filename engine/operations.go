package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Find returns a request of this caller as it is; another caller's is unknown. Reading never uses an approval. One that nobody has used is
// judged again, as when it is handed over, since whoever asked acts on what is read; and it is told for as long as it is kept.
func (e *Engine) Find(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	r, err := e.ownRequest(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if r.State == permissions.Approved && r.UsedAt.IsZero() && r.VoidAt.IsZero() {
		if err := e.store.CatchUp(ctx); err != nil {
			return permissions.RequestView{}, shared.Broken(err)
		}
		if by := e.StoppedBy(); by != "" {
			return permissions.RequestView{}, permissions.Stopped(by)
		}
		if err := e.stillAllowed(r); err != nil {
			return permissions.RequestView{}, err
		}
		if r.LapsedAt.IsZero() && !caller.IsOurs() && e.isTooOld(r) {
			return permissions.RequestView{}, permissions.ApprovalOver()
		}
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
	if err := e.WaitSettled(ctx, time.Time{}, caller, id); err != nil {
		return permissions.RequestView{}, err
	}
	late, done := shared.Noting(ctx)
	defer done()
	if errors.Is(ctx.Err(), context.Canceled) {
		r, err := e.ownRequest(late, caller, id) // nobody reads this answer: do not collect it
		if err != nil {
			return permissions.RequestView{}, err
		}
		return e.View(late, r)
	}
	return e.Find(late, caller, id)
}

// Withdraw cancels a request of this caller. A settled one stays as it is, and the error says how it ended.
func (e *Engine) Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error) {
	r, err := e.ownRequest(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	return e.withdraw(ctx, r, "", "")
}

// LeaveOrCancel removes one call of this caller from a request, by the call's own name (empty once it has left), and
// cancels the request when no other call waits for it. See [registry.Registry.LeaveOrCancel]. A call that joined a request may
// still name the id that it proposed for one of its own. via is [permissions.ViaInterrupt] for a call whose process was
// ended, else empty.
func (e *Engine) LeaveOrCancel(
	ctx context.Context, caller permissions.Caller, id permissions.ID, call, via string,
) (permissions.RequestView, error) {
	_, err := e.ownRequest(ctx, caller, id)
	if call != "" {
		call = nameOf(caller, call)
	}
	if joined := e.registry.RequestOf(call); joined != "" && permissions.CodeOf(err) == permissions.CodeUnknown {
		id, err = joined, nil
	}
	if err != nil {
		return permissions.RequestView{}, err
	}
	r, err := e.registry.LeaveOrCancel(ctx, id, call, via)
	if err != nil {
		return permissions.RequestView{}, shared.Broken(permissions.ToRefusal(err))
	}
	return e.View(ctx, r)
}

// Recall withdraws the requests that a caller says need no answer any more, with its reason, and returns how many. It
// ends approvals of them that nobody has collected, too, and at the end of a session what was allowed for it.
func (e *Engine) Recall(ctx context.Context, caller permissions.Caller, m permissions.Recall) (withdrawn int, err error) {
	if caller.Name == permissions.Anonymous { // it could withdraw the request of another anonymous caller
		return 0, permissions.TokenNeeded()
	}
	for of, id := range e.keptDecisions(caller.Name, m.Session, m.Agent) {
		if r, unread := e.store.Read(ctx, id); m.Tool == "" || unread != nil || m.Matches(r) { // else another call has run
			e.supersede(of, "")
		}
	}
	lists := []func(context.Context, string, string) ([]permissions.ID, error){
		e.store.PendingOfSession, e.store.KeptOfSession, // in this order: what is allowed meanwhile is kept then
	}
	for _, list := range lists {
		ids, err := list(ctx, caller.Name, m.Session)
		if err != nil {
			return withdrawn, shared.Broken(err)
		}
		for _, id := range ids {
			r, err := e.store.Read(ctx, id)
			switch {
			case errors.Is(err, permissions.ErrRow) || err == nil && !m.Matches(r):
				continue
			case err != nil:
			case r.State == permissions.Pending:
				if _, err = e.registry.Cancel(ctx, id, "", m.Via); err == nil {
					withdrawn++
				}
			default: // what was allowed meanwhile allows no other call, and is not told to one
				_, err = e.registry.Resolve(ctx, id, permissions.Void{Via: m.Via, At: e.clock.Stamp()})
				if err == nil {
					_, err = e.registry.Resolve(ctx, id, permissions.Collect{At: e.clock.Stamp()})
				}
			}
			settled := errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) || errors.Is(err, permissions.ErrNoUse)
			if err != nil && !settled {
				return withdrawn, shared.Broken(err)
			}
		}
	}
	if m.Via == permissions.ViaSessionEnd && m.Tool == "" {
		err = e.endGrantsOf(ctx, caller.Name, m.Session)
	}
	return withdrawn, err
}

// endGrantsOf ends what was allowed for a session of a caller, or without a caller of any agent of ours in it.
func (e *Engine) endGrantsOf(ctx context.Context, caller, session string) error {
	ended, err := e.store.EndSessionGrants(ctx, caller, session, e.clock.Stamp())
	for _, g := range ended {
		e.registry.ForgetGrant(g.ID)
	}
	return shared.Broken(err)
}

// nameOf qualifies a call's name with its caller: callers choose their own names.
func nameOf(caller permissions.Caller, call string) string { return caller.Name + "/" + call }

func (e *Engine) withdraw(ctx context.Context, r permissions.Request, by, via string) (permissions.RequestView, error) {
	c, err := e.registry.Cancel(ctx, r.ID, by, via)
	if err != nil {
		return permissions.RequestView{}, shared.Broken(permissions.ToRefusal(err))
	}
	return e.View(ctx, c.After)
}

// Cancel withdraws a pending request, by its id or its code.
func (e *Engine) Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	r, who, err := e.FindVisible(ctx, id, name)
	if err != nil {
		return permissions.RequestView{}, err
	}
	return e.withdraw(ctx, r, who, id.Via)
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
	q := permissions.Request{
		Kind: permissions.KindPermission, Caller: caller, Session: session, Agent: agent, Tags: []permissions.Tag{permissions.Events},
	}
	if err == nil {
		grants, err = e.withoutOtherAgents(ctx, caller, q, grants)
	}
	var people []string
	for _, g := range grants {
		if !g.Live(caller, session, e.clock.Now()) || !slices.Contains(g.Tags, permissions.Events) || !e.Settings().GrantHolds(g, q) {
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

// CountFollow inserts a row for a stream that a caller opens under its grants of [permissions.Events], as a use.
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
		giveBack(o.storage)
		return permissions.NotHeld(permissions.Events)
	}
	w, r, _, err := e.registry.Register(ctx, o.Opening, false)
	if err != nil {
		return e.openingError(o, err)
	}
	defer w.LeaveSoon(0)
	_, err = e.redeem(ctx, w, "", r)
	return err
}

// Grants lists at most limit grants in force after one, oldest first: from requests that this person received, and all of them for the
// operator.
func (e *Engine) Grants(ctx context.Context, id connectors.Identity, after permissions.ID, limit int) ([]permissions.Grant, error) {
	who, err := e.MaySeeRequestsOf(id)
	if err != nil {
		return nil, err
	}
	for {
		grants, err := e.store.GrantsInForce(ctx, who, e.clock.Now(), after, limit)
		more := err == nil && len(grants) == limit
		if more {
			after = grants[limit-1].ID
		}
		if grants = e.grantsInForce(grants); len(grants) > 0 || !more {
			if err == nil {
				err = addCodes(ctx, e.store, grants, func(g *permissions.Grant) (permissions.ID, *string) { return g.Request, &g.Code })
			}
			if err == nil {
				err = e.addGivers(ctx, grants)
			}
			for i, g := range grants {
				grants[i].Suspended = e.suspends(g)
			}
			return e.ShownGrants(ctx, grants, id.Via), shared.Unread(err)
		}
	}
}

// suspends returns why nothing may be done under a grant in force just now; empty: it may.
func (e *Engine) suspends(g permissions.Grant) string {
	if by := e.StoppedBy(); by != "" {
		return fmt.Sprintf("everything is stopped by %s until: daycared resume", by)
	}
	for _, l := range e.StoppedAgents() {
		if l.Person == permissions.StopOf(g.Caller) {
			return fmt.Sprintf("%s is stopped until: daycared resume %[1]s", l.AgentName())
		}
	}
	left := g.By + " is not configured"
	for _, name := range g.Givers() {
		switch p, known := e.Settings().Person(name); {
		case p.Locked != "":
			return directory.AccountProblem(p, "").Error()
		case known:
			left = ""
		}
	}
	return cmp.Or(left, directory.WhyNoMore(g))
}

// Revoke revokes a grant and returns what ran under it.
func (e *Engine) Revoke(ctx context.Context, id connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	who, err := e.Who(id)
	if err != nil {
		return permissions.Revoked{}, err
	}
	if len(grant) < permissions.IDLength {
		grants, err := e.Grants(ctx, id, "", math.MaxInt)
		if err != nil {
			return permissions.Revoked{}, err
		}
		var ids []permissions.ID
		for _, g := range grants {
			ids = append(ids, g.ID)
		}
		if grant, err = permissions.ResolveID(string(grant), ids); err != nil {
			return permissions.Revoked{}, err
		}
	}
	g, err := e.store.Grant(ctx, grant)
	var missing []permissions.Record
	if err != nil {
		if missing, err = e.FindMissing(ctx, err, permissions.GrantRevoked, string(grant)); err != nil {
			return permissions.Revoked{}, shared.Broken(err)
		}
		g.ID, g.Request = permissions.ID(missing[0].RowName()), missing[0].Request
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
	e.forgetDecisions(func(of decisionKey) bool { return of.caller == g.Caller || len(missing) > 0 })
	if len(missing) > 0 {
		err := e.CloseMissing(ctx, id, who, missing)
		e.registry.ForgetGrant(g.ID)
		return permissions.Revoked{}, err
	}
	revoked, err := e.store.Revoke(ctx, grant, who, id.Via, e.clock.Stamp(), shared.RanMost)
	e.registry.ForgetGrant(grant)
	e.registry.NotifyNotices()
	revoked.Grant = e.ShownGrants(ctx, []permissions.Grant{revoked.Grant}, id.Via)[0]
	for i, r := range revoked.Ran {
		revoked.Ran[i] = e.Settings().Shown(r, id.Via)
	}
	return revoked, shared.Broken(err)
}

// Void takes back an unused approval, with its grants, by its id or code. The asker may do so too: it allows nothing.
func (e *Engine) Void(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	r, who, err := e.FindVisible(ctx, id, name)
	if err != nil {
		return permissions.RequestView{}, err
	}
	e.forgetDecisions(func(of decisionKey) bool { return of.caller == r.Caller.Name })
	c, err := e.registry.Resolve(ctx, r.ID, permissions.Void{By: who, Via: id.Via, At: e.clock.Stamp()})
	if err != nil {
		return permissions.RequestView{}, shared.Broken(permissions.ToRefusal(err))
	}
	view, err := e.View(ctx, c.After)
	view.Request = e.Settings().Shown(view.Request, id.Via)
	return view, err
}

func (e *services) ownRequest(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Request, error) {
	r, err := e.store.Read(ctx, id)
	if err == nil && r.Caller.Name != caller.Name {
		err = permissions.Unknown(string(id))
	}
	return r, shared.Broken(err)
}
