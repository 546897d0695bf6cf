package telegramtest

import (
	"context"
	"net/http"
	"time"
)

const (
	maxPoll = 50 // seconds that a poll may hang
	// A poll that asks for the same as the one before is made slower within the first time, and smaller within the
	// second. A second conflict within the first time is told that much later.
	impatient   = 3 * time.Second
	veryShortly = 500 * time.Millisecond
)

// poll is a getUpdates that hangs. ended, once set, is the conflict that ends it, and is told at tell.
type poll struct {
	ended string
	tell  time.Time
}

// Polling returns once a getUpdates hangs, or with the error of ctx.
func (s *Server) Polling(ctx context.Context) error {
	return s.wait(ctx, time.Time{}, func() bool { return s.queue.poll != nil })
}

func (s *Server) getUpdates(ctx context.Context, q *query) (any, *failure) {
	s.mu.Lock()
	u := &s.queue
	if u.webhook != "" {
		tell := u.conflict(s.now())
		s.mu.Unlock()
		return nil, s.conflict(ctx, tell, "Conflict: can't use getUpdates method while webhook is active; "+
			"use deleteWebhook to delete the webhook first")
	}
	var names []string
	if given, err := q.decode("allowed_updates", &names); given && err == nil {
		u.allow(names)
	}
	offset := q.integer("offset", 0)
	limit := q.within("limit", 100, 1, 100)
	wait := time.Duration(q.within("timeout", 0, 0, maxPoll)) * time.Second
	now := s.now()
	if offset == u.lastOffset && now.Before(u.lastPoll.Add(impatient)) {
		wait = max(wait, impatient)
	}
	if offset == u.lastOffset && now.Before(u.lastPoll.Add(veryShortly)) {
		limit = 1
	}
	u.lastOffset, u.lastPoll = offset, now
	u.expire(now)
	u.confirm(offset)
	if wait == 0 || len(u.waiting)+len(u.echoes) > 0 {
		defer s.mu.Unlock()
		defer s.change()
		return u.batch(limit), nil
	}
	s.terminate("Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	own := &poll{}
	u.poll = own
	s.change()
	s.mu.Unlock()
	return s.hang(ctx, own, now.Add(wait), offset, limit)
}

// hang waits until there is something to tell.
func (s *Server) hang(ctx context.Context, own *poll, until time.Time, offset int64, limit int) (any, *failure) {
	u := &s.queue
	err := s.wait(ctx, until, func() bool {
		u.expire(s.now())
		return own.ended != "" || len(u.waiting) > 0
	})
	s.mu.Lock()
	if u.poll == own {
		u.poll = nil
	}
	s.change()
	if own.ended != "" {
		s.mu.Unlock()
		return nil, s.conflict(ctx, own.tell, own.ended)
	}
	defer s.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		return nil, nil // whoever asked has gone: nothing is handed out
	}
	u.confirm(offset)
	return u.batch(limit), nil
}

// terminate ends the poll that hangs. The lock is held.
func (s *Server) terminate(why string) {
	if p := s.queue.poll; p != nil {
		p.ended, p.tell = why, s.queue.conflict(s.now())
		s.queue.poll = nil
	}
}

// conflict is when a conflict of now is told: late, if there was one just before.
func (u *updates) conflict(now time.Time) time.Time {
	if now.Before(u.nextConflict) {
		return now.Add(impatient)
	}
	u.nextConflict = now.Add(impatient)
	return now
}

// conflict is a 409, told at a time.
func (s *Server) conflict(ctx context.Context, tell time.Time, why string) *failure {
	_ = s.wait(ctx, tell, func() bool { return false })
	return &failure{code: http.StatusConflict, description: why}
}

func (s *Server) getWebhookInfo(*query) (any, *failure) {
	u := &s.queue
	u.expire(s.now())
	return object{"url": u.webhook, "has_custom_certificate": false, "pending_update_count": len(u.waiting)}, nil
}

func (s *Server) deleteWebhook(q *query) (any, *failure) {
	s.queue.webhook = ""
	if q.flag("drop_pending_updates") {
		s.queue.waiting, s.queue.echoes = nil, nil
	}
	s.change()
	return true, nil
}
