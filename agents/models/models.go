// Package models declares the language models of our own agents. A [Model] reads a conversation and writes its next
// turn: text and tool calls. It knows nothing of permissions, and none of its calls runs without them.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/daycared/daycared/internal/wire"
)

// Role is the author of a message.
type Role string

// The roles.
const (
	User      Role = "user"      // a person, or daycared itself
	Assistant Role = "assistant" // the model
	Results   Role = "tool"      // results of the previous turn's calls
)

// Message is one turn of a conversation. It is stored as JSON.
type Message struct {
	Role    Role     `json:"role"`
	Text    string   `json:"text,omitempty"`
	Calls   []Call   `json:"calls,omitempty"`   // of an Assistant message
	Results []Result `json:"results,omitempty"` // of a Results message: one per call of the previous turn, in order
}

// Call is a tool call that the model asks for.
type Call struct {
	ID    string          `json:"id"` // the provider's, or ours if it gave none or a duplicate
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"` // always JSON: an object, or a string if the model wrote no object
}

// Result is the result of a call.
type Result struct {
	ID    string `json:"id"` // of its Call
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"`
}

// Tool is the description of a tool for a model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input, an object
}

// Prompt is the input of a model.
type Prompt struct {
	System   string
	Messages []Message // starts with a User message and does not end with an Assistant's
	Tools    []Tool
}

// Reply is what the model wrote.
type Reply struct {
	Text  string
	Calls []Call
	Usage Usage
	Cut   bool // cut off at the token limit
}

// Usage counts tokens, as reported by the provider or estimated.
type Usage struct {
	Read, Written int64
}

// Model generates replies. Implementations are safe for concurrent use.
type Model interface {
	// Name is the model's name in the configuration.
	Name() string
	// Window is the most tokens of a prompt and its reply together.
	Window() int64
	// Cost is the price of the usage, in millionths of the configured currency; 0 without prices.
	Cost(Usage) int64
	// Reply waits for the whole reply and passes text to write as it comes (write may be nil). Transient faults are
	// retried, at the times that the provider names, until ctx ends or the attempts are used up. A broken reply is
	// started again, announced by write(""). Errors are *Error or ctx's.
	Reply(ctx context.Context, p Prompt, write func(words string)) (Reply, error)
}

// Kinds of errors, after retries. Match with [errors.Is].
var (
	ErrTooLong = errors.New("the conversation is longer than the model's window")
	ErrRefused = errors.New("the provider refuses the request")      // the key, the model's name or the request
	ErrAway    = errors.New("the provider does not answer just now") // after all retries
)

// Error is why there is no reply. Its text is for the operator and the person, and contains no key.
type Error struct {
	Kind  error         // one of the above
	Text  string        // the provider's text, at most a few lines
	After time.Duration // when to try again; 0: unknown
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Kind, e.Text) }

// Unwrap returns Kind.
func (e *Error) Unwrap() error { return e.Kind }

// Key is a provider's API key. Empty: none is sent.
type Key = wire.Secret

// Price is per million tokens, in millionths of a currency.
type Price struct {
	Read, Written int64
}

// Cost is the price of the usage in millionths of the currency, rounded up.
func (p Price) Cost(u Usage) int64 {
	const million = 1_000_000
	return (u.Read*p.Read + u.Written*p.Written + million - 1) / million
}
