package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	maxLeft  = 1000          // the maximum number of remembered calls of a caller
	maxHeard = 10_000        // the maximum number of remembered cancellations
	keepLeft = 2 * time.Hour // longer than a request can wait and its answer is kept
)

// question identifies what a caller asks, to recognize a repetition.
type question struct {
	caller string
	digest permissions.Digest
}

func questionOf(c permissions.Caller, q permissions.Request) question {
	q.Caller, q.Version = c, permissions.DigestVersion
	return question{c.Name, permissions.ComputeDigest(q)}
}

// abandonedCall is a call that ended without its client receiving the answer.
type abandonedCall struct {
	id      permissions.ID
	call    string // its name in the engine: an approval collected by it belongs to it
	caller  permissions.Caller
	message string // the id of its JSON-RPC message; empty if unknown
	at      time.Time
}

// memory remembers abandoned calls.
type memory struct {
	mu    sync.Mutex
	all   map[question][]abandonedCall
	order map[string][]question // by caller, one entry per added call, oldest first
}

func newMemory() *memory {
	return &memory{all: map[question][]abandonedCall{}, order: map[string][]question{}}
}

// add remembers a call.
func (m *memory) add(about question, l abandonedCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.at = time.Now()
	m.all[about] = append(m.all[about], l)
	m.order[about.caller] = append(m.order[about.caller], about)
	if order := m.order[about.caller]; len(order) > maxLeft {
		m.drop(order[0])
		m.order[about.caller] = order[1:]
	}
}

// drop removes the oldest call of a question. The caller holds the lock.
func (m *memory) drop(about question) {
	if rest := m.all[about]; len(rest) > 1 {
		m.all[about] = rest[1:]
		return
	}
	delete(m.all, about)
}

// take removes and returns the oldest call of a question.
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

// forget removes the calls that waited for a request whose answer was given.
func (m *memory) forget(about question, id permissions.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rest := slices.DeleteFunc(m.all[about], func(l abandonedCall) bool { return l.id == id })
	if m.all[about] = rest; len(rest) == 0 {
		delete(m.all, about)
	}
}

// of returns the calls abandoned within a duration, by caller and message id.
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
	// together is the maximum time between the two signs of a cancelled HTTP call: the end of its connection, and the
	// notification on another.
	together = 5 * time.Second
)

// leave remembers an abandoned call. If it was cancelled, its request is withdrawn unless the client asks again.
func (s *Server) leave(about question, l abandonedCall, cancelled func() bool) {
	s.left.add(about, l) // first, so that a concurrent cancellation finds it
	if cancelled() {
		s.scheduleCancel(l)
	}
}

// scheduleCancel schedules the withdrawal of a cancelled call's request; a repeated question prevents it.
func (s *Server) scheduleCancel(l abandonedCall) {
	ctx, done := context.WithTimeout(context.Background(), storeTime)
	defer done()
	if _, err := s.o.Requests.WithdrawLater(ctx, l.caller, l.id, s.o.WithdrawAfter); err != nil {
		s.o.Log.Warn("cancel abandoned request", "request", l.id, "err", err)
	}
}

// hearCancelled handles `cancelled` over HTTP, where it arrives as a separate message. Other clients of the same caller may use
// the same id, so a call that is still waiting is not affected.
func (s *Server) hearCancelled(caller, message string) {
	s.heard.Add([2]string{caller, message}, time.Now())
	for _, l := range s.left.of(caller, message, together) {
		s.scheduleCancel(l)
	}
}

// justHeard reports whether a caller's message was cancelled recently.
func (s *Server) justHeard(caller, message string) bool {
	at, heard := s.heard.Get([2]string{caller, message})
	return heard && time.Since(at) <= together
}
