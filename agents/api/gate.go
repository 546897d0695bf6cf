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
// the other end of a socket. A call that presents anything is that or nobody: it never falls back to the account.
type gate struct {
	desk Requests
	door *wire.Server
	pace *pace
	// remote is the gate of the TCP listener, where no account is known and only a token proves anything.
	remote bool
	// anonymous lets those in there who present nothing, if they come from this machine.
	anonymous bool
}

// pace is how often calls may come. The buckets are apart, so that looking after the daemon does not cost those who ask
// their turn, nor one agent another, nor what proves nothing those who do.
type pace struct {
	peers   *wire.RateLimiter // each connection's other end, whoever it says it is
	callers *wire.RateLimiter // each proven caller
	health  *wire.RateLimiter // each who looks after the daemon, by the other end
}

// The paces, in calls a second and at once. They are far from what waiting takes, which is one call in 50 s.
const (
	callsPerSecond, callsAtOnce = 500, 2000
	looksPerSecond, looksAtOnce = 20, 100
	peersToCallers              = 4 // several callers may come from one place
)

func newPace(perSecond int) *pace {
	atOnce := callsAtOnce
	if perSecond <= 0 {
		perSecond = callsPerSecond
	} else {
		atOnce = perSecond
	}
	return &pace{
		peers:   wire.NewRateLimiter(float64(peersToCallers*perSecond), peersToCallers*atOnce),
		callers: wire.NewRateLimiter(float64(perSecond), atOnce),
		health:  wire.NewRateLimiter(looksPerSecond, looksAtOnce),
	}
}

type callerKey struct{}

// admit proves the caller for everything behind it, but for who only looks whether the daemon is alive.
func (g gate) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		alive, looks := wire.IsMonitoring(r)
		peers := g.pace.peers
		if looks {
			peers = g.pace.health
		}
		if err := peers.Take(wire.PeerName(ctx)); err != nil {
			g.door.Reject(w, err)
			return
		}
		if alive {
			next.ServeHTTP(w, r)
			return
		}
		presented := r.Header.Values(headerToken)
		if len(presented) > 0 {
			var done func()
			ctx, done = g.desk.Bear(ctx, secretOf(presented))
			defer done()
		}
		c, err := g.prove(ctx, presented, looks)
		if err == nil && !looks {
			err = g.pace.callers.Take(c.Name)
		}
		if err != nil {
			g.door.Reject(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callerKey{}, c)))
	})
}

func (g gate) prove(ctx context.Context, presented []string, looks bool) (permissions.Caller, error) {
	uid := wire.PeerUID(ctx)
	switch {
	case len(presented) > 0:
	case !g.remote:
		return permissions.CallerUID(uid), nil
	case g.anonymous && uid == permissions.AnyUID && !looks:
		return permissions.Caller{Name: permissions.Anonymous, UID: uid}, nil
	default:
		return permissions.Caller{}, permissions.TokenNeeded()
	}
	return g.desk.Prove(ctx, secretOf(presented), uid)
}

// secretOf is the secret in a header that presents a token; empty, which proves nothing, where there is none.
func secretOf(presented []string) permissions.Secret {
	scheme, text, _ := strings.Cut(presented[0], " ")
	if !strings.EqualFold(scheme, bearer) || len(presented) > 1 {
		return ""
	}
	return permissions.Secret(text)
}

// CallerOf is who makes the call that ctx is of, as this door has proven it; somebody without rights, where nobody has
// been.
func CallerOf(ctx context.Context) permissions.Caller {
	if c, ok := ctx.Value(callerKey{}).(permissions.Caller); ok {
		return c
	}
	return permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
}
