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

// Answer is what a request is answered with: a reply, or a fault.
type Answer struct {
	Text   string
	Calls  []models.Call // an id that is empty is given
	Usage  models.Usage  // zero: 10 read and 5 written
	Finish string        // how the provider says why it ended; empty: as fits
	Pieces int           // the texts and the inputs come in so many; 0: 3

	Wait  <-chan struct{} // nothing comes before it is closed
	Pause <-chan struct{} // nothing comes after the first half of the stream before it is closed

	Fault *Fault // there is an error instead
	Raw   string // there is this instead, as a stream of events
	Plain string // there is this instead, as application/json with a 200
	Page  string // there is this instead, as text/html with a 200
	Odd   Odd
}

// Fault is an error as providers answer with.
type Fault struct {
	Status           int
	Type, Code, Text string
	Header           map[string]string
}

// Odd is what servers do that speak a dialect in their own way.
type Odd struct {
	Cut      bool // the connection is cut in the middle of the stream
	Short    bool // the stream ends in its middle, as if that were all
	Error    bool // an event tells of an error in the middle of the stream
	NoUsage  bool // nobody says what was used
	NoIDs    bool // calls have no ids; OpenAI's dialect only
	NoIndex  bool // every call has the index 0; OpenAI's dialect only
	NoFinish bool // nobody says why it ended; OpenAI's dialect only
	NoDone   bool // no [DONE] at the end; OpenAI's dialect only
	NoChoice bool // chunks without a choice in between; OpenAI's dialect only
	Comments bool // lines that keep the connection alive
}

// Say is an answer in words.
func Say(text string) Answer { return Answer{Text: text} }

// Call is an answer that calls one tool. The input is anything that JSON can say.
func Call(tool string, input any) Answer {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("modeltest: the input of %s: %v", tool, err))
	}
	return Answer{Calls: []models.Call{{Tool: tool, Input: raw}}}
}

// Play answers as a model does, such as that of package script, over the wire.
func Play(m models.Model) func(Request) Answer {
	return func(r Request) Answer {
		reply, err := m.Reply(context.Background(), r.Prompt, nil)
		if err != nil {
			return Answer{Fault: &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Text: "modeltest: " + err.Error()}}
		}
		return Answer{Text: reply.Text, Calls: reply.Calls, Usage: reply.Usage}
	}
}

// Busy is a 429, to be tried again after so long.
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

// TooLong is what the providers say of a prompt that is longer than the window.
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
