package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	mostLeft = 10_000        // who left and is remembered
	keepLeft = 2 * time.Hour // longer than any request waits and its answer is kept
)

// question is what somebody asks, by which they are known when they ask it again.
type question struct {
	caller string
	digest permissions.Digest
}

func questionOf(c permissions.Caller, q permissions.Request) question {
	q.Caller, q.Version = c, permissions.DigestVersion
	return question{c.Name, permissions.ComputeDigest(q)}
}

// leaver is a call that went away, or was answered by somebody who did not hear it.
type leaver struct {
	id      permissions.ID
	call    string // its name at the desk: an approval that was handed to it is its own
	caller  permissions.Caller
	message string // the id of its JSON-RPC message; empty where it is not known
	n       uint64 // tells two that are alike apart
	at      time.Time
}

// memory are those who left without an answer.
type memory struct {
	mu    sync.Mutex
	all   map[question][]leaver
	added uint64
	order []question // one for every leaver ever added and not yet looked at for its age, the oldest first
}

func newMemory() *memory { return &memory{all: map[question][]leaver{}} }

// add remembers one, and gives it its number.
func (m *memory) add(about question, l leaver) leaver {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.added++
	l.n, l.at = m.added, time.Now()
	m.all[about] = append(m.all[about], l)
	m.order = append(m.order, about)
	for len(m.order) > mostLeft {
		m.drop(m.order[0])
		m.order = m.order[1:]
	}
	return l
}

// drop forgets the longest gone of those who asked that. The lock is held.
func (m *memory) drop(about question) {
	if rest := m.all[about]; len(rest) > 1 {
		m.all[about] = rest[1:]
		return
	}
	delete(m.all, about)
}

// take finds the one that went longest ago, for a call that asks the same.
func (m *memory) take(about question) (leaver, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.all[about]) > 0 {
		l := m.all[about][0]
		m.drop(about)
		if time.Since(l.at) < keepLeft {
			return l, true
		}
	}
	return leaver{}, false
}

// forget forgets those who waited for a request whose answer has been given.
func (m *memory) forget(about question, id permissions.ID) {
	m.strike(about, func(l leaver) bool { return l.id == id })
}

// claim forgets one, and tells whether it was still there: whoever comes back takes its place.
func (m *memory) claim(about question, one leaver) bool {
	return m.strike(about, func(l leaver) bool { return l.n == one.n })
}

func (m *memory) strike(about question, gone func(leaver) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.all[about])
	rest := slices.DeleteFunc(m.all[about], gone)
	if m.all[about] = rest; len(rest) == 0 {
		delete(m.all, about)
	}
	return len(rest) < before
}

// of finds those who went for the messages of a caller with that id, within so long.
func (m *memory) of(caller, message string, within time.Duration) (found []regret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for about, list := range m.all {
		for _, l := range list {
			if about.caller == caller && l.message == message && time.Since(l.at) < within {
				found = append(found, regret{about: about, leaver: l})
			}
		}
	}
	return found
}

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
	more  permissions.Bell
}

func newRegrets() *regrets {
	return &regrets{heard: map[string]time.Time{}, more: permissions.NewBell()}
}

func (g *regrets) add(r regret) {
	g.mu.Lock()
	g.queue = append(g.queue, r)
	g.mu.Unlock()
	g.more.Ring()
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
