package wire

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/daycared/daycared/internal/aside"
)

// Later waits for an answer, which should need little of a stack, and returns what then gives it: the answer, or why there
// is none, for [Door.Refuse].
type Later[O any] func() func() (O, error)

// Now is an answer that is there already.
func Now[O any](answer O, err error) (Later[O], error) {
	return func() func() (O, error) { return func() (O, error) { return answer, nil } }, err
}

// RegisterLater registers an operation on which thousands of calls may wait for people at a time, each for up to
// [MaxWait]. What a call costs meanwhile is its connection and the stack of its goroutine, so that one does nothing but
// wait: huma reads the call aside, leaves the rest to [awaited] instead of writing an answer, and that has it written aside,
// too. To the caller and in the description it is an operation like any other that answers with O. An error of handle is
// for [Door.Refuse].
func RegisterLater[I, O any](d *Door, o huma.Operation, handle func(context.Context, *I) (Later[O], error)) {
	o.Middlewares = append(o.Middlewares, WriteWithin(LongPoll), awaited)
	schema := d.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[O](), true, "")
	o.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	huma.Register(d.API, o, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		wait, err := handle(ctx, in)
		if err != nil {
			return nil, d.Refuse(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			c, _ := ctx.(*awaiting) // from awaited, which is the last of the middlewares
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

// awaiting is a call that huma reads, and what is left to be done for it then: to wait, and to write the answer.
type awaiting struct {
	humaContext

	wait func() (write func(http.ResponseWriter)) // nil: it has been answered already
}

// humaContext is a name under which it can be embedded, since it has a method Context.
type humaContext = huma.Context

// Unwrap is for [humago.Unwrap].
func (c *awaiting) Unwrap() huma.Context { return c.humaContext }

// awaited is the middleware of such an operation.
func awaited(ctx huma.Context, next func(huma.Context)) {
	c := &awaiting{humaContext: ctx}
	aside.Do(func() { next(c) })
	if c.wait == nil {
		return
	}
	r, w := humago.Unwrap(ctx)
	r.Body = http.NoBody // it has been read, and need not be kept
	write := c.wait()
	aside.Do(func() { write(w) })
}

// answer writes an answer outside huma, as huma does.
func (d *Door) answer(w http.ResponseWriter, answer any, err error) {
	var line []byte
	if err == nil {
		line, err = Encode(answer)
	}
	if err != nil {
		d.TurnAway(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(line, '\n')) // the caller may have gone, and then nobody reads it
}

// Stream lets h take its time, as a stream of events or a long poll does: whoever reads the answer has 20 seconds for
// each piece of it, instead of for the whole. h need not know of it.
func Stream(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &streamWriter{ResponseWriter: w, control: http.NewResponseController(w)}
		s.rest()
		defer s.hurry() // net/http writes the end after h
		h.ServeHTTP(s, r)
	})
}

// streamWriter has a deadline only while it writes. [http.ResponseController] finds the connection below it.
type streamWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *streamWriter) hurry() { _ = w.control.SetWriteDeadline(time.Now().Add(writeWithin)) }

func (w *streamWriter) rest() { _ = w.control.SetWriteDeadline(time.Time{}) }

// Write is that of [http.ResponseWriter].
func (w *streamWriter) Write(b []byte) (int, error) {
	w.hurry()
	defer w.rest()
	return w.ResponseWriter.Write(b)
}

// Flush is that of [http.Flusher].
func (w *streamWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush for [http.ResponseController], which asks for it first.
func (w *streamWriter) FlushError() error {
	w.hurry()
	defer w.rest()
	return w.control.Flush()
}

// Unwrap gives what it writes to.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
