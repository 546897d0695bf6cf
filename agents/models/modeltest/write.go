package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/daycared/daycared/agents/models"
)

// event is an event of a stream.
type event struct {
	name string // Anthropic's have names
	data any
}

// write writes the answer.
func (s *Server) write(w http.ResponseWriter, r *http.Request, d Dialect, a Answer) {
	switch {
	case a.Fault != nil:
		a.Fault.write(w, d)
		return
	case a.Plain != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, a.Plain)
		return
	case a.Page != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, a.Page)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flush := func() { _ = http.NewResponseController(w).Flush() }
	if a.Raw != "" {
		_, _ = io.WriteString(w, a.Raw)
		return
	}
	a = a.whole()
	events := eventsOf(d, a)
	if d == Gemini && !strings.Contains(r.URL.Path, ":stream") { // one object instead of a stream
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(events[0].data)
		return
	}
	for i, e := range events {
		if i == len(events)/2 {
			flush()
			switch {
			case !s.wait(r.Context(), a.Pause), a.Odd.Short:
				return
			case a.Odd.Cut:
				panic(http.ErrAbortHandler)
			case a.Odd.Error:
				f := Fault{Type: "overloaded_error", Text: "Overloaded"}
				e = event{name: "error", data: f.body(d)}
				writeEvent(w, e)
				return
			}
		}
		if a.Odd.Comments {
			_, _ = io.WriteString(w, ": still here\n\n")
		}
		writeEvent(w, e)
		flush()
	}
}

func eventsOf(d Dialect, a Answer) []event {
	switch d {
	case Anthropic:
		return anthropicEvents(a)
	case Responses:
		return responsesEvents(a)
	case Gemini:
		return geminiEvents(a)
	}
	return openAIEvents(a)
}

func writeEvent(w io.Writer, e event) {
	if e.name != "" {
		fmt.Fprintf(w, "event: %s\n", e.name)
	}
	if text, ok := e.data.(string); ok {
		fmt.Fprintf(w, "data: %s\n\n", text)
		return
	}
	data, err := json.Marshal(e.data)
	if err != nil {
		panic(fmt.Sprintf("modeltest: an event: %v", err))
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
}

// whole fills in an answer's defaults.
func (a Answer) whole() Answer {
	if a.Usage == (models.Usage{}) {
		a.Usage = models.Usage{Read: 10, Written: 5}
	}
	if a.Pieces == 0 {
		a.Pieces = 3
	}
	calls := make([]models.Call, len(a.Calls))
	for i, c := range a.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%s_%d", c.Tool, i)
		}
		calls[i] = c
	}
	a.Calls = calls
	return a
}

// pieces splits a text into n, never within a rune.
func pieces(text string, n int) []string {
	letters := []rune(text)
	var all []string
	for i := range n {
		if piece := letters[len(letters)*i/n : len(letters)*(i+1)/n]; len(piece) > 0 {
			all = append(all, string(piece))
		}
	}
	return all
}
