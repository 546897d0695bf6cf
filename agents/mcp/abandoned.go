package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	maxAbandoned  = 1000          // the maximum number of remembered calls of a caller
	maxCancelled  = 1000          // the maximum number of remembered cancellations of a caller
	keepAbandoned = 2 * time.Hour // longer than a request can wait and its answer is kept
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
	mu        sync.Mutex
	calls     map[string][]abandonedCall
	cancelled map[string][]cancellation
}

// cancellation is a JSON-RPC message that its client cancelled.
type cancellation struct {
	message string
	at      time.Time
}

func newMemory() *memory {
	return &memory{calls: map[string][]abandonedCall{}, cancelled: map[string][]cancellation{}}
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
	keep(m.calls, about.caller, append(m.calls[about.caller], l), maxAbandoned)
}

// take removes and returns the oldest call of a question.
func (m *memory) take(about question) (abandonedCall, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.DeleteFunc(m.calls[about.caller], func(l abandonedCall) bool { return time.Since(l.at) >= keepAbandoned })
	i := slices.IndexFunc(all, func(l abandonedCall) bool { return l.digest == about.digest })
	l := abandonedCall{}
	if i >= 0 {
		l = all[i]
		all = slices.Delete(all, i, i+1)
	}
	keep(m.calls, about.caller, all, maxAbandoned)
	return l, i >= 0
}

// forget removes the calls that waited for a request whose answer was given.
func (m *memory) forget(about question, id permissions.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep(m.calls, about.caller, slices.DeleteFunc(m.calls[about.caller], func(l abandonedCall) bool {
		return l.id == id && l.digest == about.digest
	}), maxAbandoned)
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

// noteCancelled remembers that a caller's message was cancelled.
func (m *memory) noteCancelled(caller, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	recent := slices.DeleteFunc(m.cancelled[caller], func(c cancellation) bool { return time.Since(c.at) > cancelWindow })
	keep(m.cancelled, caller, append(recent, cancellation{message, time.Now()}), maxCancelled)
}

// wasCancelled reports whether a caller's message was cancelled recently.
func (m *memory) wasCancelled(caller, message string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.cancelled[caller], func(c cancellation) bool {
		return c.message == message && time.Since(c.at) <= cancelWindow
	})
}

const (
	storeTime = 10 * time.Second
	// cancelWindow is the maximum time between the two signs of a cancelled HTTP call: the end of its connection, and the
	// notification on another.
	cancelWindow = 5 * time.Second
)

// scheduleCancel schedules the withdrawal of a cancelled call's request; a repeated question prevents it.
func (s *Server) scheduleCancel(l abandonedCall) {
	ctx, done := context.WithTimeout(context.Background(), storeTime)
	defer done()
	if _, err := s.o.Requests.WithdrawLater(ctx, l.caller, l.id, s.o.WithdrawAfter); err != nil {
		s.o.Log.Warn("cancel abandoned request", "request", l.id, "err", err)
	}
}

// handleCancelled handles `cancelled` over HTTP, where it arrives as a separate message. Other clients of the same caller may use
// the same id, so a call that is still waiting is not affected.
func (s *Server) handleCancelled(caller, message string) {
	s.abandoned.noteCancelled(caller, message)
	for _, l := range s.abandoned.of(caller, message, cancelWindow) {
		s.scheduleCancel(l)
	}
}
