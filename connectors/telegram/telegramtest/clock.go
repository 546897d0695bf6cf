package telegramtest

import (
	"context"
	"errors"
	"time"
)

// errLate says that the time to wait is over.
var errLate = errors.New("the time is over")

// Now is the server's time: the real one, and what Advance added.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// DatesBack has all messages dated so much before the server's time, as by a Telegram whose clock is behind the machine's.
func (s *Server) DatesBack(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = d
}

// Advance puts the server's clock forward. What waits for a time that has come thereby goes on.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped += d
	s.change()
}

// now is Now with the lock held.
func (s *Server) now() time.Time { return time.Now().Add(s.skipped) }

// change tells all who wait. The lock is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait returns nil as soon as ok, which is called with the lock held, errLate once it is until (which may be zero), or
// the error of ctx.
func (s *Server) wait(ctx context.Context, until time.Time, ok func() bool) error {
	for {
		s.mu.Lock()
		met, changed, left := ok(), s.changed, until.Sub(s.now())
		s.mu.Unlock()
		if met {
			return nil
		}
		if until.IsZero() {
			left = time.Hour
		} else if left <= 0 {
			return errLate
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
