package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Void takes an approval that was not used back, with the grants that it left behind, by its id or its code. Whoever
// asked may do so too: taking back allows nothing.
func (e *Engine) Void(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error) {
	r, who, err := e.visible(ctx, id, name)
	if err != nil {
		return permissions.Standing{}, err
	}
	c, err := e.registry.Resolve(ctx, r.ID, permissions.Void{By: who, Via: id.Via, At: e.stamp()})
	if err != nil {
		return permissions.Standing{}, broken(permissions.Refused(err))
	}
	return e.Stand(ctx, c.After)
}

// Grants lists the grants in force that came of what was put to this person, and of everything for the operator.
func (e *Engine) Grants(ctx context.Context, id connectors.Identity) ([]permissions.Grant, error) {
	who, err := e.Who(id)
	if err != nil {
		return nil, err
	}
	if id.Operator {
		who = ""
	}
	grants, err := e.store.GrantsInForce(ctx, who, e.clock.Now())
	return e.relied(grants), broken(err)
}

// Revoke takes a grant back and tells what ran under it.
func (e *Engine) Revoke(ctx context.Context, id connectors.Identity, grant permissions.ID) (permissions.Revoked, error) {
	who, err := e.Who(id)
	if err != nil {
		return permissions.Revoked{}, err
	}
	g, err := e.store.Grant(ctx, grant)
	if err != nil {
		return permissions.Revoked{}, broken(err)
	}
	if !id.Operator {
		r, err := e.store.Read(ctx, g.Request)
		if err != nil {
			return permissions.Revoked{}, broken(err)
		}
		if !slices.Contains(r.Asked, who) {
			return permissions.Revoked{}, permissions.UnknownGrant(grant)
		}
	}
	revoked, err := e.store.Revoke(ctx, grant, who, id.Via, e.stamp(), ranMost)
	e.registry.ForgetGrant(grant)
	e.registry.RingNotices()
	return revoked, broken(err)
}

// StopAll cancels everything that is pending, suspends every grant and refuses everything new until Resume. Every
// person may do that.
func (e *Engine) StopAll(ctx context.Context, id connectors.Identity) (cancelled int, err error) {
	who, err := e.Who(id)
	if err != nil {
		return 0, err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	work := context.WithoutCancel(ctx) // who has begun to stop has stopped
	cancelled, err = e.registry.StopAll(work, who, id.Via)
	e.log.Warn("everything was stopped", "by", who, "via", id.Via, "cancelled", cancelled, "err", err)
	return cancelled, errors.Join(broken(err), e.readStop(work))
}

// Resume ends what StopAll began. It is for the operator and for whoever stopped.
func (e *Engine) Resume(ctx context.Context, id connectors.Identity) error {
	who, err := e.Who(id)
	if err != nil {
		return err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	work := context.WithoutCancel(ctx)
	if err := e.store.Resume(work, who, id.Via, id.Operator, e.stamp()); err != nil {
		return broken(err)
	}
	e.log.Warn("everything goes on", "by", who, "via", id.Via)
	return e.readStop(work)
}

// StoppedBy is who stopped everything, or empty.
func (e *Engine) StoppedBy() string {
	if by := e.stopped.Load(); by != nil {
		return *by
	}
	return ""
}

// readStop keeps in memory what the store says.
func (e *Engine) readStop(ctx context.Context) error {
	by, err := e.store.StoppedBy(ctx)
	if err == nil {
		e.noteStop(by)
	}
	return broken(err)
}

func (e *Engine) noteStop(by string) { e.stopped.Store(&by) }

// CreateToken makes a token for an agent; expires is how long it is valid, 0 for ever. The secret is told this once.
func (e *Engine) CreateToken(
	ctx context.Context, id connectors.Identity, name string, expires time.Duration,
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
	who, err := e.Who(id)
	if err != nil {
		return "", permissions.Token{}, err
	}
	secret := permissions.NewSecret()
	hash, _ := secret.Hash()
	now := e.stamp()
	t := permissions.Token{ID: permissions.NewID(now), Name: name, Hash: hash, CreatedAt: now}
	if expires > 0 {
		t.ExpiresAt = now.Add(expires)
	}
	if err := e.store.AddToken(ctx, t, who, id.Via); err != nil {
		return "", permissions.Token{}, broken(err)
	}
	return secret, t, nil
}

// Tokens lists the tokens that are not revoked.
func (e *Engine) Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	tokens, err := e.store.Tokens(ctx)
	return tokens, broken(err)
}

// RevokeToken revokes one token by its id, or all of a name.
func (e *Engine) RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	who, err := e.Who(id)
	if err != nil {
		return nil, err
	}
	tokens, err := e.store.RevokeToken(ctx, name, who, id.Via, e.stamp())
	return tokens, broken(err)
}

// Prove is who asks with a token, over a connection of that account.
func (e *Engine) Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error) {
	hash, ok := secret.Hash()
	if !ok {
		return permissions.Caller{}, permissions.UnknownToken()
	}
	t, err := e.store.Prove(ctx, hash, e.clock.Now())
	if err != nil {
		return permissions.Caller{}, broken(err)
	}
	return t.Caller(uid), nil
}

// Happenings lists at most limit events after seq that this identity may see, and how far it looked: where to go on.
func (e *Engine) Happenings(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) (list []permissions.Happening, seen int64, err error) {
	who, err := e.Who(id)
	if err != nil {
		return nil, after, err
	}
	list, first, err := e.store.Happenings(ctx, after, limit)
	if err != nil {
		return nil, after, broken(err)
	}
	if after > 0 && after < first-1 {
		return nil, after, permissions.Pruned(first)
	}
	seen = after
	if len(list) > 0 {
		seen = list[len(list)-1].Seq
	}
	return slices.DeleteFunc(list, func(h permissions.Happening) bool { return !id.Operator && !h.VisibleTo(who) }), seen, nil
}

// Changed is closed when there may be new ones.
func (e *Engine) Changed() <-chan struct{} { return e.store.Changed() }
