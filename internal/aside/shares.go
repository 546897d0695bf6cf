package aside

import (
	"context"
	"sync"
)

// Shares bounds how many calls of each caller are worked on at once, so that one caller does not hold up the others.
type Shares struct {
	most int
	mu   sync.Mutex
	of   map[string]*share
}

type share struct {
	slots chan struct{}
	users int // calls that are worked on, and those that wait for it
}

// NewShares allows each caller so many calls at once.
func NewShares(most int) *Shares { return &Shares{most: most, of: map[string]*share{}} }

// Take waits until a call of a caller may be worked on, or ctx ends; done ends that.
func (s *Shares) Take(ctx context.Context, caller string) (done func(), err error) {
	s.mu.Lock()
	one := s.of[caller]
	if one == nil {
		one = &share{slots: make(chan struct{}, s.most)}
		s.of[caller] = one
	}
	one.users++
	s.mu.Unlock()
	select {
	case one.slots <- struct{}{}:
		return func() {
			<-one.slots
			s.left(caller, one)
		}, nil
	case <-ctx.Done():
		s.left(caller, one)
		return func() {}, ctx.Err()
	}
}

func (s *Shares) left(caller string, one *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.of, caller)
	}
}
