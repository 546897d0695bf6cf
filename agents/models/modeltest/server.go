package modeltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/daycared/daycared/agents/models"
)

// Dialect is a wire format.
type Dialect string

// The dialects.
const (
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"
)

// Request is a parsed request of any dialect.
type Request struct {
	Dialect Dialect
	Model   string
	Most    int64 // most reply tokens; 0: not set
	Prompt  models.Prompt
	Header  http.Header
	Body    []byte
}

// Last is the newest message.
func (r Request) Last() models.Message { return r.Prompt.Messages[len(r.Prompt.Messages)-1] }

// Server is a fake provider. It is safe for concurrent use.
type Server struct {
	http *httptest.Server
	over chan struct{}

	mu       sync.Mutex
	queue    []Answer
	answer   func(Request) Answer
	requests []Request
	came     chan struct{} // closed and replaced with each request
}

// New starts a server that is closed when the test ends.
func New(t testing.TB) *Server {
	s := Serve()
	t.Cleanup(s.Close)
	return s
}

// Serve starts a server that the caller closes.
func Serve() *Server {
	return serve(native, func(d Dialect) parser {
		if d == OpenAI {
			return parseOpenAI
		}
		return parseAnthropic
	})
}

// parser parses a request, or returns what is wrong with it.
type parser func(http.Header, []byte) (Request, error)

// native are the paths of the dialects that our own models speak.
var native = map[Dialect]string{OpenAI: "POST /v1/chat/completions", Anthropic: "POST /v1/messages"}

func serve(paths map[Dialect]string, in func(Dialect) parser) *Server {
	s := &Server{over: make(chan struct{}), came: make(chan struct{})}
	mux := http.NewServeMux()
	for d, path := range paths {
		mux.HandleFunc(path, s.serve(d, in(d)))
	}
	s.http = httptest.NewServer(mux)
	return s
}

// Close closes the server and its open responses. It is called once.
func (s *Server) Close() {
	close(s.over)
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL is the base URL of a dialect for the configuration.
func (s *Server) URL(d Dialect) string {
	if d == OpenAI || d == Responses {
		return s.http.URL + "/v1"
	}
	return s.http.URL
}

// Queue appends the next answers.
func (s *Server) Queue(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, answers...)
}

// Answer sets the function that answers when the queue is empty. It must be safe for concurrent use.
func (s *Server) Answer(f func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Requests returns the accepted requests, including those answered with a fault.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Await waits until n requests have come, and returns the nth.
func (s *Server) Await(ctx context.Context, n int) (Request, error) {
	for {
		s.mu.Lock()
		requests, came := s.requests, s.came
		s.mu.Unlock()
		if len(requests) >= n {
			return requests[n-1], nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for request %d, after %d: %w", n, len(requests), ctx.Err())
		}
	}
}

// take stores a request and finds its answer.
func (s *Server) take(r Request) Answer {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	close(s.came)
	s.came = make(chan struct{})
	var next *Answer
	if len(s.queue) > 0 {
		next, s.queue = &s.queue[0], s.queue[1:]
	}
	answer := s.answer
	s.mu.Unlock()
	switch {
	case next != nil:
		return *next
	case answer != nil:
		return answer(r)
	}
	return Answer{Fault: &Fault{Status: http.StatusBadRequest, Text: "modeltest: no answer is left"}}
}

func (s *Server) serve(d Dialect, parse parser) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		request, err := parse(r.Header, body)
		if err == nil && r.Header.Get("Content-Type") != "application/json" {
			err = errors.New("the content type is not JSON")
		}
		if err != nil {
			(&Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Text: "modeltest: " + err.Error()}).write(w, d)
			return
		}
		request.Header, request.Body = r.Header.Clone(), body
		a := s.take(request)
		if !s.wait(r.Context(), a.Wait) {
			return
		}
		s.write(w, r, d, a)
	}
}

// wait waits until an answer's channel is closed; nil counts as closed.
func (s *Server) wait(ctx context.Context, c <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	case <-s.over:
	case <-ctx.Done():
	}
	return false
}
