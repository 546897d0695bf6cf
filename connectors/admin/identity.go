package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"os"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// What a caller says about itself besides its account.
const (
	headerKey = "Authorization" // Bearer and the admin key
	headerVia = "Daycared-Via"
	bearer    = "Bearer "
)

// What decided_via says of decisions that come through this door.
const (
	viaCLI      = "cli"
	viaTerminal = "terminal" // an inbox: a prompt on somebody's screen
)

// gate proves who calls.
type gate struct {
	key    [sha256.Size]byte
	hasKey bool
	own    int // the account that runs the daemon
}

func newGate(key Key) gate {
	return gate{key: sha256.Sum256([]byte(key)), hasKey: key != "", own: os.Geteuid()}
}

type identityKey struct{}

// admit proves who makes a call, for every route behind it.
func (g gate) admit(ctx huma.Context, next func(huma.Context)) {
	id := g.identity(wire.PeerUID(ctx.Context()), ctx.Header(headerKey), ctx.Header(headerVia))
	next(huma.WithValue(ctx, identityKey{}, id))
}

// who is who makes the call that ctx is of; nobody, where nothing has been proven.
func who(ctx context.Context) connectors.Identity {
	if id, ok := ctx.Value(identityKey{}).(connectors.Identity); ok {
		return id
	}
	return connectors.Identity{Via: viaCLI, UID: permissions.NoUID}
}

// identity is who calls, given the account at the other end and what the call presents. Only the daemon's own account
// and root can be the operator, and only with the key, which is compared in constant time.
func (g gate) identity(uid int, authorization, via string) connectors.Identity {
	id := connectors.Identity{Via: viaCLI, UID: uid}
	if via == viaTerminal {
		id.Via = viaTerminal
	}
	key, presented := strings.CutPrefix(authorization, bearer)
	digest := sha256.Sum256([]byte(key))
	right := subtle.ConstantTimeCompare(digest[:], g.key[:]) == 1
	id.Operator = g.hasKey && presented && right && (uid == 0 || uid == g.own)
	return id
}
