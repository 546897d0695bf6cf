package admin

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

const (
	heartbeat   = 15 * time.Second
	eventWithin = 10 * time.Second // to write one; a reader that does not read is cut off
	// maxLine is the longest line of a stream: a row with its details, escaped.
	maxLine = 16 << 20
)

// event is one server-sent event, of one line of data. Without a kind it only says how far the stream has come.
type event struct{ id, kind, data string }

// sink writes server-sent events.
type sink struct {
	w       io.Writer
	control *http.ResponseController
}

func newSink(w http.ResponseWriter) sink { return sink{w: w, control: http.NewResponseController(w)} }

// streamTo begins the answer that c is of as a stream of events.
func streamTo(c huma.Context) http.ResponseWriter {
	_, w := humago.Unwrap(c)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return w
}

func (s sink) send(e event) error {
	var b bytes.Buffer
	for _, field := range [...]struct{ name, text string }{{"id", e.id}, {"event", e.kind}, {"data", e.data}} {
		if field.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", field.name, field.text)
		}
	}
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

// beat keeps a quiet stream alive.
func (s sink) beat() error { return s.write([]byte(": still here\n\n")) }

func (s sink) write(b []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(eventWithin)) // a writer without deadlines is still a writer
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}

// eventReader reads the little of server-sent events that our streams use: one line a field, comments skipped.
type eventReader struct{ lines *bufio.Scanner }

func newEventReader(r io.Reader) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	return &eventReader{lines: lines}
}

// next is the next event, or the end of the stream as an error.
func (r *eventReader) next() (e event, err error) {
	for r.lines.Scan() {
		name, text, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = text
		case "event":
			e.kind = text
		case "data":
			e.data = text
		case "":
			if e != (event{}) { // the empty line ends an event; after a comment there is none
				return e, nil
			}
		}
	}
	if err := r.lines.Err(); err != nil {
		return event{}, err
	}
	return event{}, io.EOF
}
