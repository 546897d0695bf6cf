package wire

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// codeSlowDown says that a call came too soon after too many others: nothing was done, and it may be made again.
const codeSlowDown = "slow-down"

// mostBuckets is how many buckets there may be before the full ones are let go.
const mostBuckets = 1024

// Pace bounds how often each caller may call, so that none of them keeps the daemon from the others. It is about calls;
// how many people may be asked is bounded elsewhere. It is safe for concurrent use.
type Pace struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	swept   time.Time
}

// NewPace lets everybody make that many calls a second, and so many at once.
func NewPace(perSecond float64, atOnce int) *Pace {
	return &Pace{limit: rate.Limit(perSecond), burst: atOnce, buckets: map[string]*rate.Limiter{}}
}

// Take counts a call of that name. Its error is a [Problem] with status 429 that says when to come back.
func (p *Pace) Take(name string) error {
	now := time.Now()
	taken := p.bucket(name, now).ReserveN(now, 1)
	wait := taken.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	taken.CancelAt(now)
	problem := NewProblem(http.StatusTooManyRequests, codeSlowDown, "Too many calls at once; slow down.")
	problem.after = max(wait, time.Millisecond)
	return problem
}

func (p *Pace) bucket(name string, now time.Time) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.buckets) >= mostBuckets && now.Sub(p.swept) >= time.Second {
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

// Paced lets calls through at a pace by who is at the other end of the connection: those that only look after the daemon
// ([Looks]) at one of their own, which the others do not use up.
func Paced(calls, looks *Pace) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pace := calls
			if _, only := Looks(r); only {
				pace = looks
			}
			if err := pace.Take(PeerName(r.Context())); err != nil {
				ProblemOf(err).write(w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
