package engine

import (
	"context"
	"slices"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

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
