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

// Request is what was asked, whichever way it was said.
type Request struct {
	Dialect Dialect
	Model   string
	Most    int64 // tokens that the reply may have; 0: not said
	Prompt  models.Prompt
	Header  http.Header
	Body    []byte
}

// Last is the newest message.
func (r Request) Last() models.Message { return r.Prompt.Messages[len(r.Prompt.Messages)-1] }

// Server is a provider. It is safe for concurrent use.
type Server struct {
	http *httptest.Server
	over chan struct{}

	mu       sync.Mutex
	queue    []Answer
	answer   func(Request) Answer
	requests []Request
	came     chan struct{} // closed and made anew with each request
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := Serve()
	t.Cleanup(s.Close)
	return s
}

// Serve starts a server that whoever started it closes.
func Serve() *Server {
	return serve(native, func(d Dialect) parser {
		if d == OpenAI {
			return parseOpenAI
		}
		return parseAnthropic
	})
}

// parser reads a request, or says what is wrong with it.
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

// Close ends the server, with what it still answers. It is called once.
func (s *Server) Close() {
	close(s.over)
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL is the base of a dialect, as the configuration has it.
func (s *Server) URL(d Dialect) string {
	if d == OpenAI || d == Responses {
		return s.http.URL + "/v1"
	}
	return s.http.URL
}

// Queue adds what is answered next, in this order.
func (s *Server) Queue(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, answers...)
}

// Answer says what is answered whenever the queue is empty. It is called by many goroutines.
func (s *Server) Answer(f func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Requests are those that came, also those that were answered with a fault, but not those that were refused.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Await waits until n requests have come since the server began, and returns the nth.
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

// take keeps a request and finds its answer.
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

// wait waits for a channel of an answer; nil is open.
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
