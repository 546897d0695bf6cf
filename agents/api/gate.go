package api

import (
	"context"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// The header in which an agent presents its token, and the one scheme that is understood there.
const (
	headerToken = "Authorization"
	bearer      = "Bearer"
)

// gate proves who asks: whom the token says, where a call presents one, and else the account that the kernel says is at
// the other end. A call that presents anything is that or nobody: it never falls back to the account.
type gate struct {
	desk Desk
	door *wire.Door
}

type callerKey struct{}

// admit proves the caller for every route behind it.
func (g gate) admit(ctx huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(ctx)
	c, err := g.prove(ctx.Context(), r.Header.Values(headerToken))
	if err != nil {
		g.door.TurnAway(ctx, err)
		return
	}
	next(huma.WithValue(ctx, callerKey{}, c))
}

func (g gate) prove(ctx context.Context, presented []string) (permissions.Caller, error) {
	uid := wire.PeerUID(ctx)
	if len(presented) == 0 {
		return permissions.CallerUID(uid), nil
	}
	scheme, text, _ := strings.Cut(presented[0], " ")
	secret := permissions.Secret(text)
	if _, ok := secret.Hash(); !ok || !strings.EqualFold(scheme, bearer) || len(presented) > 1 {
		return permissions.Caller{}, permissions.UnknownToken()
	}
	return g.desk.Prove(ctx, secret, uid)
}

// caller is who makes the call that ctx is of; somebody without rights, where nobody has been proven.
func caller(ctx context.Context) permissions.Caller {
	if c, ok := ctx.Value(callerKey{}).(permissions.Caller); ok {
		return c
	}
	return permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
}
