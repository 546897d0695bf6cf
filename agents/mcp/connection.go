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
)

// writeWithin is the time limit for writing one piece of a response.
const writeWithin = 30 * time.Second

// finishWithin bounds how long a call runs after its connection ended or the daemon began to stop; it returns the current state.
const finishWithin = 300 * time.Millisecond

type connection struct {
	gone         func() context.Context // ends when the client has gone; nil if the call's context does
	cancelled    func() bool            // whether a call that just ended was cancelled rather than lost
	acceptsCalls bool                   // the client accepts calls on the same connection
	message      string                 // the id of the JSON-RPC message, as JSON; empty if unknown

	mu      sync.Mutex
	answers []answer // sent, delivery not confirmed
}

type answer struct {
	about question
	call  abandonedCall
}

// answered records an answer that is being sent.
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

// Handler serves POST /mcp, for clients of both protocol eras, without sessions. The caller must be authenticated before it; it
// rejects cross-site browser requests itself.
func (s *Server) Handler() http.Handler {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: s.o.BehindProxy, Logger: s.o.Log,
	})
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "The body could not be read, or is too large.", http.StatusRequestEntityTooLarge)
			return
		}
		if err := checkMessage(body); err != nil && len(body) > 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(malformed(err)) // the client may have gone
			return
		}
		caller := s.o.CallerOf(r.Context()).Name
		var m message
		_ = json.Unmarshal(body, &m) // the library rejects what cannot be read
		if m.Method == cancelled {
			s.handleCancelled(caller, string(m.Params.Request))
		}
		v := &connection{gone: r.Context, message: string(m.ID)}
		v.cancelled = func() bool { return s.abandoned.wasCancelled(caller, v.message) }
		ctx, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(r.Context()), connectionKey{}, v))
		defer cancel()
		defer context.AfterFunc(r.Context(), func() { time.AfterFunc(finishWithin, cancel) })()
		inner := r.WithContext(ctx)
		inner.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Set("X-Accel-Buffering", "no")
		out := &slowWriter{ResponseWriter: w, control: http.NewResponseController(w), gone: r.Context().Done()}
		h.ServeHTTP(out, inner)
		if !out.lost.Load() {
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, a := range v.answers { // not delivered: a repeated question finds them
			s.abandoned.add(a.about, a.call)
		}
	}))
}

// cancelled is the notification by which a client cancels a call.
const cancelled = "notifications/cancelled"

// message is the part of a JSON-RPC message that this package reads itself.
type message struct {
	ID     jsontext.Value `json:"id"` // of a call
	Method string         `json:"method"`
	Params struct {
		Request jsontext.Value `json:"requestId"` // the cancelled call
	} `json:"params"`
}

// slowWriter sets a new write deadline for each piece of a response, since the whole may take as long as people do. It records
// whether a write failed. A client that disconnects after the last piece does not count.
type slowWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	gone    <-chan struct{}
	lost    atomic.Bool
}

func (p *slowWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeWithin)) // best effort: test recorders have no deadlines
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

// Unwrap supports [http.ResponseController].
func (p *slowWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
