package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// The header in which an agent presents its token, and the only accepted scheme.
const (
	headerToken = "Authorization"
	bearer      = "Bearer"
)

// gate authenticates callers: by the token, if the call presents one, otherwise by the peer account of the socket. A call with
// an invalid token is rejected; it never falls back to the account.
type gate struct {
	requests Requests
	srv      *server.Server
	pace     *pace
	// remote marks the gate of the TCP listener, where only a token identifies a caller.
	remote bool
	// anonymous reports whether callers from this machine that present no token over TCP are admitted; nil: never.
	anonymous func() bool
}

// pace limits how often calls are admitted. The limiters are separate, so that health checks, different agents and
// unauthenticated calls cannot use up each other's budget.
type pace struct {
	peers   *server.RateLimiter // per connecting peer, whatever caller it claims to be
	callers *server.RateLimiter // per authenticated caller
	health  *server.RateLimiter // health checks, per peer
}

// The rates, in calls per second, and the bursts. Waiting needs far less: one call in 50 s.
const (
	callsPerSecond, callsAtOnce = 500, 2000
	looksPerSecond, looksAtOnce = 20, 100
	peersToCallers              = 4 // several callers may share a peer address
)

func newPace(perSecond int) *pace {
	atOnce := callsAtOnce
	if perSecond <= 0 {
		perSecond = callsPerSecond
	} else {
		atOnce = perSecond
	}
	return &pace{
		peers:   server.NewRateLimiter(float64(peersToCallers*perSecond), peersToCallers*atOnce),
		callers: server.NewRateLimiter(float64(perSecond), atOnce),
		health:  server.NewRateLimiter(looksPerSecond, looksAtOnce),
	}
}

type callerKey struct{}

// admit authenticates the caller for the routes behind it, except for health checks.
func (g gate) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		alive, looks := server.IsMonitoring(r)
		peers := g.pace.peers
		if looks {
			peers = g.pace.health
		}
		if err := peers.Take(server.PeerName(ctx)); err != nil {
			g.srv.Reject(w, err)
			return
		}
		if alive {
			next.ServeHTTP(w, r)
			return
		}
		presented := r.Header.Values(headerToken)
		if len(presented) > 0 {
			var done func()
			ctx, done = g.requests.Bear(ctx, secretOf(presented))
			defer done()
		}
		c, err := g.prove(ctx, presented, looks)
		if err == nil && !looks {
			err = g.pace.callers.Take(c.Name)
		}
		if err != nil {
			g.srv.Reject(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(server.CountAs(context.WithValue(ctx, callerKey{}, c), c.Name)))
	})
}

func (g gate) prove(ctx context.Context, presented []string, looks bool) (permissions.Caller, error) {
	uid := server.PeerUID(ctx)
	switch {
	case len(presented) > 0:
	case !g.remote:
		return permissions.CallerUID(uid), nil
	case g.anonymous != nil && g.anonymous() && uid == permissions.AnyUID && !looks:
		return permissions.Caller{Name: permissions.Anonymous, UID: uid}, nil
	default:
		return permissions.Caller{}, permissions.TokenNeeded()
	}
	return g.requests.Prove(ctx, secretOf(presented), uid)
}

// secretOf returns the secret of a header that presents a token; empty, which authenticates nobody, if it presents none.
func secretOf(presented []string) permissions.Secret {
	scheme, text, _ := strings.Cut(presented[0], " ")
	if !strings.EqualFold(scheme, bearer) || len(presented) > 1 {
		return ""
	}
	return permissions.Secret(text)
}

// CallerOf returns the caller that the server authenticated for the call of ctx; without one, a caller without rights.
func CallerOf(ctx context.Context) permissions.Caller {
	if c, ok := ctx.Value(callerKey{}).(permissions.Caller); ok {
		return c
	}
	return permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
}
