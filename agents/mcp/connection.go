package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/internal/wire"
)

// writeWithin is how long a client may take to read what it is written.
const writeWithin = 30 * time.Second

// lastWords is how long a call may take to end once its connection has, or the daemon stops: then whoever waits is told
// how things stand.
const lastWords = 300 * time.Millisecond

// connection is what is known of the connection that a call came over.
type connection struct {
	gone      func() context.Context // ends when the client has gone; nil where the call's own context says so
	cancelled func() bool            // whether a call that ended just now was cancelled, and not lost
	talks     bool                   // the client can be called over the same connection
	message   string                 // the id of the JSON-RPC message, as JSON; empty where it is not known

	mu      sync.Mutex
	answers []answer // given, and not known to have arrived
}

type answer struct {
	about  question
	leaver abandonedCall
}

// answered notes an answer that is now on its way.
func (v *connection) answered(about question, l abandonedCall) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone != nil {
		v.answers = append(v.answers, answer{about, l})
	}
}

type connectionKey struct{}

func connectionOf(ctx context.Context) *connection {
	if v, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return v
	}
	return &connection{cancelled: func() bool { return false }}
}

// Handler answers POST /mcp, for clients of both eras, without sessions. Whoever stands before it has proven the caller;
// browsers of other sites are refused here as well.
func (s *Server) Handler() http.Handler {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: mostBody,
		DisableLocalhostProtection: s.o.BehindProxy, Logger: s.o.Log,
	})
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
		if err != nil {
			http.Error(w, "The body could not be read, or is too large.", http.StatusRequestEntityTooLarge)
			return
		}
		if err := wire.CheckMessage(body); err != nil && len(body) > 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(malformed(err)) // a client that has gone reads nothing
			return
		}
		caller := s.o.CallerOf(r.Context()).Name
		m := messageOf(body)
		if m.Method == cancelled {
			s.hearCancelled(caller, string(m.Params.Request))
		}
		v := &connection{gone: r.Context, message: string(m.ID)}
		v.cancelled = func() bool { return s.heard.justHeard(caller, v.message) }
		ctx, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(r.Context()), connectionKey{}, v))
		defer cancel()
		defer context.AfterFunc(r.Context(), func() { time.AfterFunc(lastWords, cancel) })()
		inner := r.WithContext(ctx)
		inner.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Set("X-Accel-Buffering", "no")
		out := &slowWriter{ResponseWriter: w, control: http.NewResponseController(w), gone: r.Context().Done()}
		h.ServeHTTP(out, inner)
		if out.lost.Load() {
			s.undelivered(v)
		}
	}))
}

// undelivered remembers those whose answer nobody was there to read: they find it when they ask again.
func (s *Server) undelivered(v *connection) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.answers {
		s.left.add(a.about, a.leaver)
	}
}

// cancelled is the notification of a client that gives a call up.
const cancelled = "notifications/cancelled"

// message is as much of a JSON-RPC message as we look at ourselves.
type message struct {
	ID     jsontext.Value `json:"id"` // of a call
	Method string         `json:"method"`
	Params struct {
		Request jsontext.Value `json:"requestId"` // what is cancelled
	} `json:"params"`
}

func messageOf(body []byte) (m message) {
	_ = json.Unmarshal(body, &m) // what cannot be read is refused by the library
	return m
}

// slowWriter gives every piece of an answer its own time to be written: the whole may take as long as people do. It knows
// when nobody was there any more to read a piece. A client that goes once it has read all is not lost.
type slowWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	gone    <-chan struct{}
	lost    atomic.Bool
}

func (p *slowWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeWithin)) // a test's recorder has none
	select {
	case <-p.gone:
		p.lost.Store(true)
	default:
	}
	n, err := p.ResponseWriter.Write(b)
	if err != nil {
		p.lost.Store(true)
	}
	return n, err
}

// Unwrap is for [http.ResponseController].
func (p *slowWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
