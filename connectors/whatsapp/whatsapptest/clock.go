package whatsapptest

import (
	"context"
	"time"
)

// Now is the server's time: the real one, and what Advance added.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Advance puts the server's clock forward: what comes later is stamped later, and what was sent before ages.
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

// wait returns nil as soon as ok, which is called with the lock held, or the error of ctx.
func (s *Server) wait(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		met, changed := ok(), s.changed
		s.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
