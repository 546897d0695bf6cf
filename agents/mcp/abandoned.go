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
	maxHeard = 1000          // the maximum number of remembered cancellations of a caller
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
	digest  permissions.Digest
	at      time.Time
}

// memory remembers abandoned calls and cancelled messages, each caller's apart, oldest first.
type memory struct {
	mu    sync.Mutex
	calls map[string][]abandonedCall
	heard map[string][]cancellation
}

// cancellation is a JSON-RPC message that its client cancelled.
type cancellation struct {
	message string
	at      time.Time
}

func newMemory() *memory {
	return &memory{calls: map[string][]abandonedCall{}, heard: map[string][]cancellation{}}
}

// keep stores the newest limit of a caller's entries.
func keep[T any](all map[string][]T, caller string, entries []T, limit int) {
	if all[caller] = entries[max(0, len(entries)-limit):]; len(entries) == 0 {
		delete(all, caller)
	}
}

func (m *memory) add(about question, l abandonedCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.at, l.digest = time.Now(), about.digest
	keep(m.calls, about.caller, append(m.calls[about.caller], l), maxLeft)
}

// take removes and returns the oldest call of a question.
func (m *memory) take(about question) (abandonedCall, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.DeleteFunc(m.calls[about.caller], func(l abandonedCall) bool { return time.Since(l.at) >= keepLeft })
	i := slices.IndexFunc(all, func(l abandonedCall) bool { return l.digest == about.digest })
	l := abandonedCall{}
	if i >= 0 {
		l = all[i]
		all = slices.Delete(all, i, i+1)
	}
	keep(m.calls, about.caller, all, maxLeft)
	return l, i >= 0
}

// forget removes the calls that waited for a request whose answer was given.
func (m *memory) forget(about question, id permissions.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep(m.calls, about.caller, slices.DeleteFunc(m.calls[about.caller], func(l abandonedCall) bool {
		return l.id == id && l.digest == about.digest
	}), maxLeft)
}

// of returns the calls abandoned within a duration, by caller and message id.
func (m *memory) of(caller, message string, within time.Duration) (found []abandonedCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.calls[caller] {
		if l.message == message && time.Since(l.at) < within {
			found = append(found, l)
		}
	}
	return found
}

// hear remembers that a caller's message was cancelled.
func (m *memory) hear(caller, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	recent := slices.DeleteFunc(m.heard[caller], func(c cancellation) bool { return time.Since(c.at) > together })
	keep(m.heard, caller, append(recent, cancellation{message, time.Now()}), maxHeard)
}

// hasHeard reports whether a caller's message was cancelled recently.
func (m *memory) hasHeard(caller, message string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.heard[caller], func(c cancellation) bool {
		return c.message == message && time.Since(c.at) <= together
	})
}

const (
	storeTime = 10 * time.Second
	// together is the maximum time between the two signs of a cancelled HTTP call: the end of its connection, and the
	// notification on another.
	together = 5 * time.Second
)

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
	s.left.hear(caller, message)
	for _, l := range s.left.of(caller, message, together) {
		s.scheduleCancel(l)
	}
}
