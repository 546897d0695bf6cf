package wire

import (
	"net/http"
	"time"
)

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
