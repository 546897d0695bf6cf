package linearizability_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	stopEvery = 2000 // calls
	stopFor   = 100  // calls
	keepStops = 16
)

// switches presses the stop now and then, and records its effects.
type switches struct {
	clock clock
	who   string
	at    *caller

	resumeAt atomic.Int64 // at which call; 0: not stopped

	mu     sync.Mutex
	all    []*episode // newest last
	failed error
}

// episode is one stop and its resume. What has not ended yet ends [forever].
type episode struct{ from, to, again, resumed int64 }

// count stops or resumes when it is time, at the n-th call.
func (s *switches) count(ctx context.Context, n int64) {
	if n%stopEvery == 0 {
		e := &episode{s.clock.read(), forever, forever, forever}
		s.mu.Lock()
		s.all = append(s.all[max(0, len(s.all)-keepStops):], e)
		s.mu.Unlock()
		s.press(ctx, "/v1/stop-all", &e.to)
		s.resumeAt.Store(n + stopFor)
	}
	if at := s.resumeAt.Load(); at > 0 && n >= at && s.resumeAt.CompareAndSwap(at, 0) {
		s.mu.Lock()
		e := s.all[len(s.all)-1]
		e.again = s.clock.read()
		s.mu.Unlock()
		s.press(ctx, "/v1/resume", &e.resumed)
	}
}

func (s *switches) press(ctx context.Context, path string, over *int64) {
	made := s.at.do(ctx, "POST", path, nil, struct{}{}, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if made.reply.word != told {
		s.failed = fmt.Errorf("%s: %s", path, made.reply)
	}
	*over = made.to
}

// between returns the stops that a request from one time to another may have seen.
func (s *switches) between(begun, over int64) (deeds []deed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.all {
		if e.from > over || e.resumed < begun {
			continue
		}
		n++
		deeds = append(deeds,
			deed{act: halts, who: s.who, from: e.from, to: e.to, hints: hints{stop: n}}, deed{act: ends, who: s.who, from: e.from, to: e.to})
		if e.again != forever {
			deeds = append(deeds, deed{act: resumes, from: e.again, to: e.resumed, hints: hints{stop: n}})
		}
	}
	return deeds
}
