package engine

import (
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// trusts let agents do for a time what they need not ask then.
type trusts struct{ *services }

// trustOffers are the first steps of TrustAgent, and when they were taken.
type trustOffers struct {
	mu sync.Mutex
	at map[trustOffer]time.Time
}

// trustOffer is what a person was told that a second step gives.
type trustOffer struct {
	who, caller, folder string
	span                time.Duration
}

// trustOffered is how long a second step may come after the first.
const trustOffered = 2 * time.Minute

// trustsFrom is how far back a person must have allowed something of an agent that they trust for a while, which says where it works.
const trustsFrom = 24 * time.Hour

// TrustAgent lets an agent do for a while, without asking, what is read completely, stays in the folder in which the person last allowed a
// call of it, needs no network and is not high risk. It takes a second step, sure, within two minutes of the first, which is refused with
// [permissions.CodeRule] and says what would be given. What it gives is a grant.
func (g *trusts) TrustAgent(
	ctx context.Context, id connectors.Identity, name string, span time.Duration, sure bool,
) (permissions.Grant, error) {
	caller, who, err := g.agentOf(ctx, id, name)
	switch {
	case err != nil:
		return permissions.Grant{}, err
	case span < time.Minute || span > permissions.MaxTrust:
		return permissions.Grant{}, permissions.NotTrusted("it is for a minute at least, and two hours at most")
	}
	now := g.clock.Stamp()
	given, err := g.store.ApprovedBy(ctx, who, now.Add(-trustsFrom), maxTaken)
	if err != nil {
		return permissions.Grant{}, shared.Broken(err)
	}
	var basis permissions.Request
	s := g.Settings()
	for _, r := range given {
		if r.Caller.Root() == caller && r.Kind == permissions.KindTool && !r.HighRisk && r.Quorum <= 1 && filepath.IsAbs(r.Cwd) {
			basis = r
		}
	}
	switch {
	case basis.ID == "":
		return permissions.Grant{}, permissions.NotTrusted("you have allowed no call of its tools within a day, which would say where it works")
	case !s.GrantHolds(permissions.Grant{By: who, Rule: permissions.NewGrantedRule(nil, "", permissions.Trusted)}, basis):
		return permissions.Grant{}, permissions.NotTrusted("its name is not proven, or others or several people decide what it asks")
	case holdsHome(filepath.Clean(basis.Cwd)):
		return permissions.Grant{}, permissions.NotTrusted("it works in a home folder, or above")
	}
	if err := g.RefuseAskingAccount(ctx, id, caller); err != nil {
		return permissions.Grant{}, err
	}
	offer := trustOffer{who, basis.Caller.Name, filepath.Clean(basis.Cwd), span}
	if !sure || !g.offers.take(offer, now) {
		g.offers.mu.Lock()
		g.offers.at[offer] = now
		g.offers.mu.Unlock()
		return permissions.Grant{}, permissions.ConfirmTrust(basis.Caller.ProvenName(), offer.folder, permissions.For(span).String())
	}
	c, err := g.registry.Resolve(ctx, basis.ID, permissions.Give{
		Grant: permissions.NewID(now), Rule: permissions.NewGrantedRule(nil, offer.folder, permissions.Trusted), For: span,
		By: who, Via: id.Via, At: now,
	})
	if err != nil {
		return permissions.Grant{}, shared.Broken(permissions.ToRefusal(err))
	}
	return c.Grants[0], nil
}

// take reports whether a first step was taken within trustOffered, and ends it.
func (t *trustOffers) take(o trustOffer, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.at, func(_ trustOffer, at time.Time) bool { return now.Sub(at).Abs() > trustOffered })
	_, offered := t.at[o]
	delete(t.at, o)
	return offered
}

func (t *trustOffers) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.at)
}

// endTrust ends what trusts a caller for a time, or everybody if its name is empty, and tells who gave it what ran. A first step to it
// does not count any more. A failure is logged:
// the grant ends soon by itself.
func (e *services) endTrust(ctx context.Context, c permissions.Caller) {
	e.offers.mu.Lock()
	maps.DeleteFunc(e.offers.at, func(o trustOffer, _ time.Time) bool {
		return c.Name == "" || permissions.Caller{Name: o.caller}.Root() == c.Root()
	})
	e.offers.mu.Unlock()
	now := e.clock.Stamp()
	var grants []permissions.Grant
	var err error
	if c.Name == "" {
		grants, err = e.store.GrantsInForce(ctx, "", now, "", math.MaxInt)
	} else {
		grants, err = e.store.Grants(ctx, c.Name, now)
	}
	for _, g := range grants {
		if g.IsTrust() {
			_, failed := e.store.Revoke(ctx, g.ID, "", "", now, shared.RanMost)
			e.registry.ForgetGrant(g.ID)
			e.registry.NotifyNotices()
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		e.log.Error("end the trust in an agent", "agent", c.Name, "err", err)
	}
}
