package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/models"
)

// Fault is why an attempt gave no reply.
type Fault struct {
	Transient bool          // transient: worth a retry
	After     time.Duration // when to try again; 0: unknown
	Text      string        // contains no key and no address
	kind      error
}

func (f *Fault) Error() string { return f.Text }

// Broken is the fault of an invalid stream.
func (l *Client) Broken(text string) *Fault {
	return &Fault{Transient: true, Text: l.sanitize(text), kind: models.ErrAway}
}

// Refused is the fault of a reply that the provider declines.
func (l *Client) Refused(text string) *Fault {
	return &Fault{Text: l.sanitize(text), kind: models.ErrRefused}
}

// Streamed is the fault in an error event of a stream.
func (l *Client) Streamed(event []byte) *Fault {
	said := read(event)
	status, _ := strconv.Atoi(said.code)
	switch said.kind {
	case "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "billing_error":
		status = cmp.Or(status, http.StatusBadRequest)
	}
	return l.fault(cmp.Or(status, http.StatusServiceUnavailable), nil, said)
}

// answered is the fault in a response.
func (l *Client) answered(status int, header http.Header, body []byte) *Fault {
	said := read(body)
	if status == http.StatusOK { // some servers report errors with status 200
		if said.text == "" {
			return l.noStream("application/json")
		}
		return l.Streamed(body)
	}
	return l.fault(status, header, said)
}

func (l *Client) noStream(kind string) *Fault {
	return l.Broken(fmt.Sprintf("the answer is %s, which is no stream of events", kind))
}

// fault classifies by status, by the provider's retry hints, and by each dialect's text for a prompt that is too long.
func (l *Client) fault(status int, header http.Header, said said) *Fault {
	f := &Fault{kind: models.ErrRefused, After: after(header, time.Now())}
	words := cmp.Or(said.text, http.StatusText(status), "no reason")
	f.Text = l.sanitize(fmt.Sprintf("%d: %s", status, words))
	switch {
	case status >= 300 && status < 400:
		f.Text = fmt.Sprintf("%d: it sends requests elsewhere; the base URL has to be the last address itself", status)
		return f
	case status == http.StatusRequestEntityTooLarge || status != http.StatusTooManyRequests && said.tooLong():
		f.kind = models.ErrTooLong
		return f
	case said.code == "insufficient_quota" || said.kind == "insufficient_quota":
		return f // a 429 that waiting does not fix
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		f.kind, f.Transient = models.ErrAway, true
	}
	switch header.Get("X-Should-Retry") {
	case "true":
		f.kind, f.Transient = models.ErrAway, true
	case "false":
		f.Transient = false
	}
	return f
}

// said is the content of an error body in any dialect.
type said struct{ text, code, kind string }

// tooLongWords matches OpenAI, vLLM, llama.cpp, OpenRouter and Anthropic.
var tooLongWords = regexp.MustCompile(`(?i)context.length|context.window|context.size|maximum context|prompt is too long|` +
	`exceed(s|ed)? (the )?(available )?context|input is too long|too many (input )?tokens`)

func (s said) tooLong() bool {
	return s.code == "context_length_exceeded" || s.kind == "exceed_context_size_error" || tooLongWords.MatchString(s.text)
}

func read(body []byte) said {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if err := json.Unmarshal(body, &outer); err != nil {
		if page := strings.TrimSpace(string(body)); page != "" && page[0] != '<' && page[0] != '{' {
			return said{text: page}
		}
		return said{}
	}
	var inner struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    string          `json:"type"`
	}
	var text string
	if json.Unmarshal(outer.Error, &text) != nil {
		_ = json.Unmarshal(outer.Error, &inner) // if it is an object
	}
	var detail string
	_ = json.Unmarshal(outer.Detail, &detail) // FastAPI's, possibly a list
	code := strings.Trim(string(inner.Code), `"`)
	if code == "null" {
		code = ""
	}
	return said{text: cmp.Or(inner.Message, text, outer.Message, detail), code: code, kind: inner.Type}
}

// after is the delay in the headers: milliseconds, seconds or a date.
func after(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	for _, row := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := h.Get(row.name)
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case err == nil && n >= 0 && n <= float64(most/row.unit):
			return time.Duration(n * float64(row.unit))
		case err == nil && n > 0, errors.Is(err, strconv.ErrRange):
			return most
		}
		if at, err := http.ParseTime(text); err == nil && at.After(now) {
			return min(at.Sub(now), most)
		}
	}
	return 0
}
