package api

import (
	"context"
	"net/http"
	"strings"

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

// admit proves the caller for everything behind it, but for who only looks whether the daemon is alive.
func (g gate) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.Health {
			next.ServeHTTP(w, r)
			return
		}
		c, err := g.prove(r.Context(), r.Header.Values(headerToken))
		if err != nil {
			g.door.TurnAway(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
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

// CallerOf is who makes the call that ctx is of, as this door has proven it; somebody without rights, where nobody has
// been.
func CallerOf(ctx context.Context) permissions.Caller {
	if c, ok := ctx.Value(callerKey{}).(permissions.Caller); ok {
		return c
	}
	return permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
}
