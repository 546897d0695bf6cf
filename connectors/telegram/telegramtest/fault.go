package telegramtest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

type faultKind int

const (
	none faultKind = iota
	refusal
	brokenPage
	resetBefore
	replyLost
	hang
	slow
	late
)

// Fault is one way in which a call fails. The zero Fault is none.
type Fault struct {
	kind  faultKind
	name  string
	code  int
	text  string
	after time.Duration
	until <-chan struct{}
}

// String names the fault, for messages of tests.
func (f Fault) String() string { return f.name }

// TooManyRequests refuses the call with 429 and parameters.retry_after, rounded up to whole seconds.
func TooManyRequests(after time.Duration) Fault {
	return Fault{kind: refusal, name: "too many requests", code: http.StatusTooManyRequests, after: after}
}

// Refuse refuses the call with a code and a description of the Bot API.
func Refuse(code int, description string) Fault {
	return Fault{kind: refusal, name: "refused", code: code, text: description}
}

// InternalError answers 500 with an HTML page.
func InternalError() Fault {
	return Fault{kind: brokenPage, name: "internal error", code: http.StatusInternalServerError}
}

// BadGateway answers 502 with an HTML page.
func BadGateway() Fault {
	return Fault{kind: brokenPage, name: "bad gateway", code: http.StatusBadGateway}
}

// Reset resets the connection before anything is done.
func Reset() Fault { return Fault{kind: resetBefore, name: "reset"} }

// ReplyLost does what is asked, and resets the connection instead of answering.
func ReplyLost() Fault { return Fault{kind: replyLost, name: "reply lost"} }

// Hang does nothing and does not answer until the client gives up.
func Hang() Fault { return Fault{kind: hang, name: "hang"} }

// Slow does and answers after a time of the server's clock.
func Slow(after time.Duration) Fault { return Fault{kind: slow, name: "slow", after: after} }

// Late does what is asked at once, and answers when until is closed.
func Late(until <-chan struct{}) Fault { return Fault{kind: late, name: "late", until: until} }

// faults are what is to come.
type faults struct {
	planned []plan
	rate    float64
	kinds   []Fault
	rand    *rand.Rand
}

type plan struct {
	method string
	left   int
	fault  Fault
}

// FailNext makes the next n calls of a method fail, of any method for the empty name; all further ones for n < 0, until
// n = 0 ends that. Plans for the same calls follow each other.
func (s *Server) FailNext(method string, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n != 0 {
		s.faults.planned = append(s.faults.planned, plan{method, n, f})
		return
	}
	s.faults.planned = slices.DeleteFunc(s.faults.planned, func(p plan) bool { return p.method == method })
}

// FailRate makes a share p of all calls for which nothing is planned fail, each in one of the ways given. The choice
// follows from the seed and the order of calls. A p of 0 ends that.
func (s *Server) FailRate(p float64, seed uint64, kinds ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.rate, s.faults.kinds, s.faults.rand = p, kinds, rand.New(rand.NewPCG(seed, 0))
}

// next is the fault of a call that has just come.
func (f *faults) next(method string) Fault {
	for i, p := range f.planned {
		if p.method != "" && p.method != method {
			continue
		}
		if f.planned[i].left--; f.planned[i].left == 0 {
			f.planned = slices.Delete(f.planned, i, i+1)
		}
		return p.fault
	}
	if len(f.kinds) > 0 && f.rand.Float64() < f.rate {
		return f.kinds[f.rand.IntN(len(f.kinds))]
	}
	return Fault{}
}

// fail fails the n-th call, and reports whether that was all. After it, a call is still to be done.
func (s *Server) fail(e *era, f Fault, n int, w http.ResponseWriter, r *http.Request) bool {
	switch f.kind {
	case refusal:
		refused := &failure{code: f.code, description: f.text}
		if f.code == http.StatusTooManyRequests && f.text == "" {
			refused.retryAfter = int((f.after + time.Second - 1) / time.Second)
			refused.description = fmt.Sprintf("Too Many Requests: retry after %d", refused.retryAfter)
		}
		s.refuse(n, refused, w)
	case brokenPage:
		s.end(n, f.code, "")
		page(w, f.code)
	case resetBefore:
		s.end(n, 0, "")
		e.reset(w)
	case hang:
		<-r.Context().Done()
		s.end(n, 0, "")
	case slow:
		s.mu.Lock()
		until := s.now().Add(f.after)
		s.mu.Unlock()
		_ = s.wait(r.Context(), until, func() bool { return false })
		if r.Context().Err() == nil {
			return false
		}
		s.end(n, 0, "")
	default:
		return false
	}
	return true
}
