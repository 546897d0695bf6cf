package server

import (
	"context"
	"net/http"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/internal/aside"
	"github.com/daycared/daycared/internal/wire"
)

// Deferred blocks cheaply, on a small stack, then returns a function that produces the answer, or an error for [Server.Refuse].
// It calls begun once it needs what was read of the call no more, so that the next call is read.
type Deferred[O any] func(begun func()) func() (O, error)

// Resolved is an answer that is available at once.
func Resolved[O any](answer O, err error) (Deferred[O], error) {
	return func(func()) func() (O, error) { return func() (O, error) { return answer, nil } }, err
}

// RegisterDeferred registers an operation on which thousands of calls may wait for people, each for up to [MaxWait]. A
// waiting call costs its connection and its goroutine's stack, so that goroutine does nothing but wait: huma decodes
// the call on another one and leaves the rest to [Server.awaited], which also writes the answer on another one. For the caller
// and in the description it is an operation like any other with the answer O. An error of handle is for [Server.Refuse].
func RegisterDeferred[I, O any](d *Server, o huma.Operation, handle func(context.Context, *I) (Deferred[O], error)) {
	o.Middlewares = append(o.Middlewares, d.awaited, WriteWithin(LongPoll))
	schema := d.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[O](), true, "")
	o.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	huma.Register(d.API, o, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		wait, err := handle(ctx, in)
		if err != nil {
			return nil, d.Refuse(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			c, _ := ctx.(*awaiting) // from awaited
			c.wait = func(begun func()) func(http.ResponseWriter) {
				then := wait(begun)
				return func(w http.ResponseWriter) {
					answer, err := then()
					d.answer(w, answer, err)
				}
			}
		}}, nil
	})
}

// awaiting is a call that huma has decoded, and what is left to do: wait, then write the answer.
type awaiting struct {
	humaContext

	wait func(begun func()) (write func(http.ResponseWriter)) // nil: already answered
}

// humaContext allows embedding, because the interface has a method Context.
type humaContext = huma.Context

// Unwrap implements the interface of [humago.Unwrap].
func (c *awaiting) Unwrap() huma.Context { return c.humaContext }

// awaited is the middleware of these operations. A call that has no slot yet costs its connection and its body.
func (d *Server) awaited(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	s := &slot{of: d.beginning, caller: countedAs(r.Context())}
	if err := s.take(r.Context()); err != nil {
		d.Reject(w, err)
		return
	}
	defer s.leave()
	c := &awaiting{humaContext: ctx}
	d.beginning.aside.Run(func() { next(c) })
	wait := c.wait
	if c = nil; wait == nil {
		return
	}
	r.Body = http.NoBody // already read: release it
	write := wait(s.leave)
	s.leave()
	d.beginning.aside.Run(func() { write(w) })
}

// maxBeginning is how many of these calls are decoded and begun at once. More would each hold a parsed body and a deep stack, while
// the store writes one group at a time.
const maxBeginning = 32

// beginning are the slots of calls that are being decoded and begun.
type beginning struct {
	slots   chan struct{}
	callers *aside.Shares // each may have half of them
	aside   aside.Pool
	mu      sync.Mutex
	tidy    *time.Timer // returns memory after a burst
	last    time.Time   // when it last did
}

func newBeginning() *beginning {
	return &beginning{slots: make(chan struct{}, maxBeginning), callers: aside.NewShares(maxBeginning / 2), aside: aside.NewPool()}
}

// After a burst of calls, its memory is returned to the system, because the runtime itself keeps it for minutes. That costs one
// collection, so it happens once no call has waited for its turn for tidyAfter, and at most once in tidyEvery.
const tidyAfter, tidyEvery = time.Second, 10 * time.Second

// slot is the turn of one call.
type slot struct {
	of     *beginning
	caller string
	done   func() // ends the share of its caller
	held   bool
}

// take waits until it is the call's turn, or ctx ends.
func (s *slot) take(ctx context.Context) (err error) {
	if s.done, err = s.of.callers.Take(ctx, s.caller); err != nil {
		return err
	}
	select {
	case s.of.slots <- struct{}{}:
	default:
		select {
		case s.of.slots <- struct{}{}:
			s.of.tidySoon()
		case <-ctx.Done():
			s.done()
			return ctx.Err()
		}
	}
	s.held = true
	return nil
}

// leave gives the turn to the next call. It may be called more than once.
func (s *slot) leave() {
	if s.held {
		s.held = false
		<-s.of.slots
		s.done()
		s.done = nil // a call that waits holds it no longer
	}
}

// tidySoon plans [debug.FreeOSMemory] for when the burst is over to which a waiting call belongs.
func (b *beginning) tidySoon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	after := max(tidyAfter, tidyEvery-time.Since(b.last))
	if b.tidy != nil {
		b.tidy.Reset(after)
		return
	}
	b.tidy = time.AfterFunc(after, func() {
		b.mu.Lock()
		b.last = time.Now()
		b.mu.Unlock()
		debug.FreeOSMemory()
	})
}

// answer writes an answer outside huma, in the same way.
func (d *Server) answer(w http.ResponseWriter, answer any, err error) {
	var line []byte
	if err == nil {
		line, err = wire.Encode(answer)
	}
	if err != nil {
		d.Reject(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(line, '\n')) // the caller may be gone
}

// Stream allows h to take any time, as an event stream or a long poll does: the caller has 20 seconds to read each
// write, instead of the whole answer.
func Stream(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &streamWriter{ResponseWriter: w, control: http.NewResponseController(w)}
		s.rest()
		defer s.hurry() // net/http writes the end after h
		h.ServeHTTP(s, r)
	})
}

// streamWriter has a deadline only during writes. [http.ResponseController] can unwrap it.
type streamWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *streamWriter) hurry() { _ = w.control.SetWriteDeadline(time.Now().Add(writeWithin)) }

func (w *streamWriter) rest() { _ = w.control.SetWriteDeadline(time.Time{}) }

// Write implements [http.ResponseWriter].
func (w *streamWriter) Write(b []byte) (int, error) {
	w.hurry()
	defer w.rest()
	return w.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher].
func (w *streamWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush for [http.ResponseController], which prefers it.
func (w *streamWriter) FlushError() error {
	w.hurry()
	defer w.rest()
	return w.control.Flush()
}

// Unwrap returns the underlying writer.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
