package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	readWithin = 5 * time.Second // of a body
	// maxEscaped is the maximum escaped length of details of [permissions.MaxDetails] bytes and of [permissions.MaxRows].
	maxEscaped = 2 * (permissions.MaxDetails + permissions.MaxRows)
	maxRead    = wire.MaxBody + maxEscaped
)

// middleware is the outermost middleware of a listener. It keeps browsers out, wherever a proxy or DNS leads them: the host
// must be one of ours that no name server can assign to another, and the origin no other site. The unread part of a
// call has a deadline until [readWhole] has read it: net/http would wait forever for the body of a rejected call.
func middleware(next http.Handler, hosts func(name string) bool) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(readWithin + writeWithin))
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(readWithin))
		}
		switch {
		case !hosts(hostname(r.Host)):
			wrongHost().Write(w)
		case !ownOrigin(r), !ownSite(r.Header.Get("Sec-Fetch-Site")), sameOrigin.Check(r) != nil:
			wire.NewProblem(http.StatusForbidden, "cross-origin", "Browsers are not served here.").Write(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func wrongHost() *wire.Problem {
	return wire.NewProblem(http.StatusMisdirectedRequest, "wrong-host",
		"The host of a call is not one that is served here; at a socket, and on this machine, it is localhost.")
}

// SocketHosts are the hosts of calls to a unix socket.
func SocketHosts(name string) bool { return name == wire.Host || name == "localhost" }

// hostname is a host without port and brackets, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if inner, found := strings.CutPrefix(host, "["); found {
		host = strings.TrimSuffix(inner, "]")
	}
	return strings.ToLower(host)
}

// ownOrigin reports whether a call has no origin, or that of its own target. No page is served here, so no browser
// sends the latter; some MCP clients do.
func ownOrigin(r *http.Request) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	all := r.Header.Values("Origin")
	return len(all) == 0 || len(all) == 1 && (all[0] == "" || strings.EqualFold(all[0], scheme+"://"+r.Host))
}

func ownSite(site string) bool { return site == "" || site == "none" }

// readWhole reads the whole body, which must be bounded JSON, before the handler runs. Then it lifts the deadline, at which
// net/http would end a waiting call.
func readWhole(next http.Handler) http.Handler {
	held := bodies{of: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := ambiguous(r); p != nil {
			w.Header().Set("Connection", "close") // the body was not read
			p.Write(w)
			return
		}
		if r.ContentLength != 0 {
			caller, size := countedAs(r.Context()), bodySize(r)
			if !held.take(caller, size) {
				w.Header().Set("Connection", "close")
				p := wire.NewProblem(http.StatusTooManyRequests, wire.CodeSlowDown, "The bodies of your calls are too large together; wait for some.")
				p.After = time.Second
				p.Write(w)
				return
			}
			defer func() { held.give(caller, size) }()
			body, p := readBody(w, r)
			if p != nil {
				w.Header().Set("Connection", "close")
				p.Write(w)
				return
			}
			held.give(caller, size-len(body))
			size = len(body)
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			r.Body = io.NopCloser(bytes.NewReader(body))
			r.Header.Set("Content-Type", mediaType) // huma compares it letter by letter
		}
		next.ServeHTTP(w, r)
	})
}

// bodySize is how large the body of a call can be.
func bodySize(r *http.Request) int {
	if r.ContentLength < 0 || r.ContentLength > maxRead {
		return maxRead
	}
	return int(r.ContentLength)
}

// maxHeld bounds the bytes of the large bodies of a caller's calls that are answered or wait: a call may hold several times its body. What
// has no large body comes through, since programs of one account may be one caller.
const maxHeld = 64 << 20

// bodies counts the bytes of each caller's bodies.
type bodies struct {
	mu sync.Mutex
	of map[string]int
}

// take counts a body, unless that is too much.
func (b *bodies) take(caller string, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size > wire.MaxBody && b.of[caller]+size > maxHeld {
		return false
	}
	b.of[caller] += size
	return true
}

func (b *bodies) give(caller string, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[caller] -= size; b.of[caller] <= 0 {
		delete(b.of, caller)
	}
}

// ambiguous returns what is wrong with a call of which a part would be ignored: the second of two values, a name without a value, or
// a query that cannot be read; nil if nothing is.
func ambiguous(r *http.Request) *wire.Problem {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalid(http.StatusBadRequest, "The query cannot be read: "+err.Error()+".")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case len(query[name]) > 1:
			return invalid(http.StatusBadRequest, fmt.Sprintf("The query has %q twice; give it once.", name))
		case query[name][0] == "":
			return invalid(http.StatusBadRequest, fmt.Sprintf("The query has %q without a value; give one, or leave it out.", name))
		}
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Last-Event-ID", wire.HeaderCall, wire.HeaderRequest, wire.HeaderStays} {
		if len(r.Header.Values(name)) > 1 {
			return invalid(http.StatusBadRequest, "The header "+name+" is given twice; give it once.")
		}
	}
	return nil
}

// mediaType is that of every body; in calls, letters of either case mean the same (RFC 9110, 8.3.1).
const mediaType = "application/json"

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *wire.Problem) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, named := parameters["charset"]
	switch coding := r.Header.Get("Content-Encoding"); {
	case err != nil || kind != mediaType:
		return nil, invalid(http.StatusUnsupportedMediaType, "The Content-Type of a body is application/json.")
	case named && !strings.EqualFold(charset, "utf-8"):
		return nil, invalid(http.StatusUnsupportedMediaType, "The charset of a body is utf-8.")
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return nil, invalid(http.StatusUnsupportedMediaType, "A body has no Content-Encoding.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRead))
	var tooBig *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &tooBig):
		return nil, invalid(http.StatusRequestEntityTooLarge, "The body is too large: 64 KiB, and details of 1 MiB.")
	case errors.As(err, &network) && network.Timeout():
		return nil, invalid(http.StatusRequestTimeout, "The body did not come in time.")
	case err != nil:
		return nil, invalid(http.StatusBadRequest, "The body could not be read.")
	}
	return body, nil
}

func invalid(status int, detail string) *wire.Problem {
	p := wire.NewProblem(status, string(permissions.CodeInvalid), detail)
	p.Exit = permissions.ExitUsage
	return p
}

// maxBuckets is the number of buckets above which full ones are dropped.
const maxBuckets = 1024

// RateLimiter limits the call rate of each caller, so that none blocks the others. How many people may be asked is limited
// elsewhere. It is safe for concurrent use.
type RateLimiter struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	swept   time.Time
}

// NewRateLimiter allows each caller perSecond calls a second, and bursts of atOnce.
func NewRateLimiter(perSecond float64, atOnce int) *RateLimiter {
	return &RateLimiter{limit: rate.Limit(perSecond), burst: atOnce, buckets: map[string]*rate.Limiter{}}
}

// Take counts a call of name. Over the rate, the error is a [Problem] with status 429 and the delay.
func (p *RateLimiter) Take(name string) error {
	now := time.Now()
	taken := p.bucket(name, now).ReserveN(now, 1)
	wait := taken.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	taken.CancelAt(now)
	problem := wire.NewProblem(http.StatusTooManyRequests, wire.CodeSlowDown, "Too many calls at once; slow down.")
	problem.After = max(wait, time.Millisecond)
	return problem
}

func (p *RateLimiter) bucket(name string, now time.Time) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.buckets) >= maxBuckets && now.Sub(p.swept) >= time.Second {
		p.swept = now
		for name, b := range p.buckets {
			if b.TokensAt(now) >= float64(p.burst) {
				delete(p.buckets, name)
			}
		}
	}
	b := p.buckets[name]
	if b == nil {
		b = rate.NewLimiter(p.limit, p.burst)
		p.buckets[name] = b
	}
	return b
}

// RateLimited limits calls by their peer. Calls that only monitor the daemon ([IsMonitoring]) have a limiter of their own, which the
// others do not use up.
func RateLimited(calls, looks *RateLimiter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pace := calls
			if _, only := IsMonitoring(r); only {
				pace = looks
			}
			if err := pace.Take(PeerName(r.Context())); err != nil {
				wire.ProblemOf(err).Write(w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
