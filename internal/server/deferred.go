package server

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/internal/aside"
	"github.com/daycared/daycared/internal/wire"
)

// Deferred blocks cheaply, on a small stack, then returns a function that produces the answer, or an error for [Server.Refuse].
type Deferred[O any] func() func() (O, error)

// Resolved is an answer that is available at once.
func Resolved[O any](answer O, err error) (Deferred[O], error) {
	return func() func() (O, error) { return func() (O, error) { return answer, nil } }, err
}

// RegisterDeferred registers an operation on which thousands of calls may wait for people, each for up to [MaxWait]. A
// waiting call costs its connection and its goroutine's stack, so that goroutine does nothing but wait: huma decodes
// the call on another one and leaves the rest to [awaited], which also writes the answer on another one. For the caller
// and in the description it is an operation like any other with the answer O. An error of handle is for [Server.Refuse].
func RegisterDeferred[I, O any](d *Server, o huma.Operation, handle func(context.Context, *I) (Deferred[O], error)) {
	o.Middlewares = append(o.Middlewares, WriteWithin(LongPoll), awaited)
	schema := d.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[O](), true, "")
	o.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	huma.Register(d.API, o, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		wait, err := handle(ctx, in)
		if err != nil {
			return nil, d.Refuse(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			c, _ := ctx.(*awaiting) // from awaited, the last middleware
			c.wait = func() func(http.ResponseWriter) {
				then := wait()
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

	wait func() (write func(http.ResponseWriter)) // nil: already answered
}

// humaContext allows embedding, because the interface has a method Context.
type humaContext = huma.Context

// Unwrap implements the interface of [humago.Unwrap].
func (c *awaiting) Unwrap() huma.Context { return c.humaContext }

// awaited is the middleware of these operations.
func awaited(ctx huma.Context, next func(huma.Context)) {
	c := &awaiting{humaContext: ctx}
	aside.Run(func() { next(c) })
	if c.wait == nil {
		return
	}
	r, w := humago.Unwrap(ctx)
	r.Body = http.NoBody // already read: release it
	write := c.wait()
	aside.Run(func() { write(w) })
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
