package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/daycared/daycared/agents/models"
)

// Answer is the response to a request: a reply, or a fault.
type Answer struct {
	Text   string
	Calls  []models.Call // an empty id is filled in
	Usage  models.Usage  // zero: 10 read and 5 written
	Finish string        // the provider's finish reason; empty: the fitting one
	Pieces int           // number of pieces for texts and inputs; 0: 3

	Wait  <-chan struct{} // nothing is sent until it is closed
	Pause <-chan struct{} // only half of the stream is sent until it is closed

	Fault *Fault // instead of a reply
	Raw   string // instead: this stream of events
	Plain string // instead: this, as application/json with status 200
	Page  string // instead: this, as text/html with status 200
	Odd   Deviations
}

// Fault is an error response of a provider.
type Fault struct {
	Status           int
	Type, Code, Text string
	Header           map[string]string
}

// Deviations selects deviations of real servers from the protocol.
type Deviations struct {
	Cut      bool // the connection breaks in the middle of the stream
	Short    bool // the stream ends in the middle without an error
	Error    bool // an error event in the middle of the stream
	NoUsage  bool // no usage is reported
	NoIDs    bool // calls have no ids; OpenAI's dialect only
	NoIndex  bool // every call has the index 0; OpenAI's dialect only
	NoFinish bool // no finish reason; OpenAI's dialect only
	NoDone   bool // no [DONE] at the end; OpenAI's dialect only
	NoChoice bool // chunks without choices; OpenAI's dialect only
	Comments bool // keep-alive comments
}

// Say is a text answer.
func Say(text string) Answer { return Answer{Text: text} }

// Call is an answer that calls one tool. The input is any JSON value.
func Call(tool string, input any) Answer {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("modeltest: the input of %s: %v", tool, err))
	}
	return Answer{Calls: []models.Call{{Tool: tool, Input: raw}}}
}

// Play answers with a model's replies, such as those of package script, over the wire.
func Play(m models.Model) func(Request) Answer {
	return func(r Request) Answer {
		reply, err := m.Reply(context.Background(), r.Prompt, nil)
		if err != nil {
			return Answer{Fault: &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Text: "modeltest: " + err.Error()}}
		}
		return Answer{Text: reply.Text, Calls: reply.Calls, Usage: reply.Usage}
	}
}

// Busy is a 429 with a retry delay.
func Busy(after time.Duration) Answer {
	ms := strconv.FormatInt(after.Milliseconds(), 10)
	return Answer{Fault: &Fault{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Text: "Rate limit reached",
		Header: map[string]string{"Retry-After-Ms": ms}}}
}

// Broken is a 500.
func Broken() Answer {
	return Answer{Fault: &Fault{Status: http.StatusInternalServerError, Type: "api_error", Text: "Internal server error"}}
}

// Overloaded is a 529.
func Overloaded() Answer {
	return Answer{Fault: &Fault{Status: 529, Type: "overloaded_error", Text: "Overloaded"}}
}

// TooLong is the error for a prompt that exceeds the window.
func TooLong(d Dialect) Answer {
	if d == Anthropic {
		return Answer{Fault: &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error",
			Text: "prompt is too long: 215000 tokens > 200000 maximum"}}
	}
	return Answer{Fault: &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "context_length_exceeded",
		Text: "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens."}}
}

// Elsewhere is a redirect.
func Elsewhere(url string) Answer {
	return Answer{Fault: &Fault{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": url}}}
}

// write writes the fault in a dialect.
func (f *Fault) write(w http.ResponseWriter, d Dialect) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(f.body(d))
}

func (f *Fault) body(d Dialect) map[string]any {
	if d == Anthropic {
		return map[string]any{"type": "error", "error": map[string]any{"type": f.Type, "message": f.Text}}
	}
	var code any
	if f.Code != "" {
		code = f.Code
	}
	return map[string]any{"error": map[string]any{"message": f.Text, "type": f.Type, "param": nil, "code": code}}
}
