package engine

import (
	"context"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// suggestions give the rules of daycared suggest.
type suggestions struct{ *services }

// GiveRule gives the caller of an approved request a rule, for the operator, who must be a person who could have allowed the request.
func (g *suggestions) GiveRule(
	ctx context.Context, id connectors.Identity, request permissions.ID, allow []string, in string,
) (permissions.Grant, error) {
	who, err := g.Operator(id)
	if err != nil {
		return permissions.Grant{}, err
	}
	r, err := g.store.Read(ctx, request)
	s := g.Settings()
	switch {
	case err != nil:
		return permissions.Grant{}, shared.Broken(err)
	case r.Caller.CameFrom(id.UID) && !s.AllowSameUser:
		return permissions.Grant{}, permissions.OwnAsk(id.UID)
	}
	if why := s.WhyNotGive(r, allow, in); why != "" {
		return permissions.Grant{}, permissions.RuleNotGiven(why)
	}
	now := g.clock.Stamp()
	c, err := g.registry.Resolve(ctx, r.ID, permissions.Give{
		Grant: permissions.NewID(now), Rule: permissions.NewGrantedRule(allow, in, permissions.Suggested), By: who, Via: id.Via, At: now,
	})
	if err != nil {
		return permissions.Grant{}, shared.Broken(permissions.ToRefusal(err))
	}
	return c.Grants[0], nil
}
