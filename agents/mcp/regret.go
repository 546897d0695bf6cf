package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	storeTime = 10 * time.Second
	// together is how far apart the two signs of a cancelled call over HTTP may come: the end of its connection, and the
	// notification on another.
	together = 5 * time.Second
)

// leave remembers a call that went away. One that was cancelled takes its request with it, if nobody comes back.
func (s *Server) leave(about question, l leaver, cancelled bool) {
	l = s.left.add(about, l)
	if cancelled {
		s.regrets.add(regret{about: about, leaver: l, due: time.Now().Add(s.o.Regret)})
	}
}

// regret is a call that its client cancelled.
type regret struct {
	about  question
	leaver leaver
	due    time.Time
}

// regrets wait for their time, the first come first.
type regrets struct {
	mu    sync.Mutex
	queue []regret
	heard map[string]time.Time // when the message of a caller was said to be cancelled
	more  chan struct{}
}

func newRegrets() *regrets {
	return &regrets{heard: map[string]time.Time{}, more: make(chan struct{}, 1)}
}

func (g *regrets) add(r regret) {
	g.mu.Lock()
	g.queue = append(g.queue, r)
	g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
}

func (g *regrets) next() (r regret, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return r, false
	}
	r, g.queue = g.queue[0], g.queue[1:]
	return r, true
}

// run carries regrets out as their time comes, until ctx ends.
func (g *regrets) run(ctx context.Context, carryOut func(context.Context, regret)) {
	for {
		r, ok := g.next()
		wait := g.more
		var due <-chan time.Time
		if ok {
			wait, due = nil, time.After(time.Until(r.due))
		}
		select {
		case <-wait:
		case <-due:
			carryOut(ctx, r)
		case <-ctx.Done():
			return
		}
	}
}

// carryOut cancels the request of a call that was cancelled, where nobody has come back for it.
func (s *Server) carryOut(ctx context.Context, r regret) {
	if !s.left.claim(r.about, r.leaver) {
		return // somebody has joined it again, here
	}
	ctx, done := context.WithTimeout(ctx, storeTime)
	defer done()
	standing, err := s.o.Desk.Find(ctx, r.leaver.caller, r.leaver.id)
	if err == nil && standing.Request.State == permissions.Pending && standing.Waiting == 0 {
		_, err = s.o.Desk.Withdraw(ctx, r.leaver.caller, r.leaver.id)
	}
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn("the request of a cancelled call may stand", "request", r.leaver.id, "err", err)
	}
}

// hearCancelled hears `cancelled` over HTTP, where it comes as a message of its own. It names a call by an id that other
// clients of the same caller may use as well, so a call that goes on waiting is not touched by it.
func (s *Server) hearCancelled(caller, message string) {
	s.regrets.hear(caller, message)
	for _, r := range s.left.of(caller, message, together) {
		r.due = time.Now().Add(s.o.Regret)
		s.regrets.add(r)
	}
}

// hear notes a message that was just said to be cancelled.
func (g *regrets) hear(caller, message string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, at := range g.heard {
		if time.Since(at) > together {
			delete(g.heard, name)
		}
	}
	g.heard[caller+"\x00"+message] = time.Now()
}

// justHeard tells whether that message was.
func (g *regrets) justHeard(caller, message string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, heard := g.heard[caller+"\x00"+message]
	return heard && time.Since(at) <= together
}
