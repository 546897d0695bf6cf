package telegramtest

import (
	"context"
	"maps"
	"time"
)

// Call is one call that the server received. The token is in none of it.
type Call struct {
	At     time.Time
	Method string            // as it was called, if there is no such method
	Params map[string]string // texts, and JSON in texts
	Files  map[string]int    // bytes
	Fault  Fault             // that it met
	// Ended is when it was answered or cut off, zero before. Code is the HTTP status of the answer, 0 without one.
	Ended       time.Time
	Code        int
	Description string // of a refusal
}

// Calls are all calls so far, in the order in which they came.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// AwaitCalls returns once enough of the calls so far is true, or with the error of ctx. enough must not keep them, nor
// call the server.
func (s *Server) AwaitCalls(ctx context.Context, enough func([]Call) bool) error {
	return s.wait(ctx, time.Time{}, func() bool { return enough(s.calls) })
}

// begin notes a call and returns its place.
func (s *Server) begin(method string, q *query, f Fault) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Call{At: s.now(), Method: method, Params: maps.Clone(q.values), Files: map[string]int{}, Fault: f}
	for name, file := range q.files {
		c.Files[name] = len(file.bytes)
	}
	s.calls = append(s.calls, c)
	s.change()
	return len(s.calls) - 1
}

// end notes how the n-th call ended.
func (s *Server) end(n, code int, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.calls[n]
	c.Ended, c.Code, c.Description = s.now(), code, description
	s.change()
}
