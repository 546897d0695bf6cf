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

// abandonedCall is a call that went away, or was answered by somebody who did not hear it.
type abandonedCall struct {
	id      permissions.ID
	call    string // its name at the desk: an approval that was handed to it is its own
	caller  permissions.Caller
	message string // the id of its JSON-RPC message; empty where it is not known
	at      time.Time
}

// memory are those who left without an answer.
type memory struct {
	mu    sync.Mutex
	all   map[question][]abandonedCall
	order []question // one for every leaver ever added and not yet looked at for its age, the oldest first
}

func newMemory() *memory { return &memory{all: map[question][]abandonedCall{}} }

// add remembers one.
func (m *memory) add(about question, l abandonedCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.at = time.Now()
	m.all[about] = append(m.all[about], l)
	m.order = append(m.order, about)
	for len(m.order) > mostLeft {
		m.drop(m.order[0])
		m.order = m.order[1:]
	}
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
func (m *memory) take(about question) (abandonedCall, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.all[about]) > 0 {
		l := m.all[about][0]
		m.drop(about)
		if time.Since(l.at) < keepLeft {
			return l, true
		}
	}
	return abandonedCall{}, false
}

// forget forgets those who waited for a request whose answer has been given.
func (m *memory) forget(about question, id permissions.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rest := slices.DeleteFunc(m.all[about], func(l abandonedCall) bool { return l.id == id })
	if m.all[about] = rest; len(rest) == 0 {
		delete(m.all, about)
	}
}

// of finds those who went for the messages of a caller with that id, within so long.
func (m *memory) of(caller, message string, within time.Duration) (found []abandonedCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for about, list := range m.all {
		for _, l := range list {
			if about.caller == caller && l.message == message && time.Since(l.at) < within {
				found = append(found, l)
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
func (s *Server) leave(about question, l abandonedCall, cancelled func() bool) {
	s.left.add(about, l) // first, so that whoever hears of it meanwhile finds it
	if cancelled() {
		s.regret(l)
	}
}

// regret has the request of a call that was cancelled withdrawn, where nobody comes back for it.
func (s *Server) regret(l abandonedCall) {
	ctx, done := context.WithTimeout(context.Background(), storeTime)
	defer done()
	if _, err := s.o.Desk.Regret(ctx, l.caller, l.id, s.o.Regret); err != nil {
		s.o.Log.Warn("the request of a cancelled call may stand", "request", l.id, "err", err)
	}
}

// heard are the messages that were just said to be cancelled, by their callers and ids, and when.
type heard struct {
	mu  sync.Mutex
	all map[string]time.Time
}

// hearCancelled hears `cancelled` over HTTP, where it comes as a message of its own. It names a call by an id that other
// clients of the same caller may use as well, so a call that goes on waiting is not touched by it.
func (s *Server) hearCancelled(caller, message string) {
	s.heard.hear(caller, message)
	for _, l := range s.left.of(caller, message, together) {
		s.regret(l)
	}
}

// hear notes a message that was just said to be cancelled.
func (h *heard) hear(caller, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, at := range h.all {
		if time.Since(at) > together {
			delete(h.all, name)
		}
	}
	h.all[caller+"\x00"+message] = time.Now()
}

// justHeard reports whether that message was.
func (h *heard) justHeard(caller, message string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, heard := h.all[caller+"\x00"+message]
	return heard && time.Since(at) <= together
}
