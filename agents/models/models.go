// Package models is what agents of ours think with. A [Model] reads a conversation and writes its next turn: words, and
// calls of tools. It knows nothing of permissions, and nothing that it writes is done without them.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Role is who speaks in a turn of a conversation.
type Role string

// The roles.
const (
	User      Role = "user"      // a person, or daycared itself
	Assistant Role = "assistant" // the model
	Results   Role = "tool"      // what became of the calls of the turn before
)

// Message is one turn of a conversation. It is a value that is kept as JSON.
type Message struct {
	Role    Role     `json:"role"`
	Text    string   `json:"text,omitempty"`
	Calls   []Call   `json:"calls,omitempty"`   // of an Assistant
	Results []Result `json:"results,omitempty"` // of Results: one for each call of the turn before, in its order
}

// Call is one call of a tool that the model asks for.
type Call struct {
	ID    string          `json:"id"` // the provider's, or made by us where it gave none or one twice
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"` // always JSON; an object, unless the model wrote none: then a string of what it wrote
}

// Result is what a call returned.
type Result struct {
	ID    string `json:"id"` // of the call
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"`
}

// Tool is a tool as a model is told of it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input: an object
}

// Prompt is what a model is asked.
type Prompt struct {
	System   string
	Messages []Message // begins with a User's; the last is not an Assistant's
	Tools    []Tool
}

// Reply is what the model wrote.
type Reply struct {
	Text  string
	Calls []Call
	Usage Usage
	Cut   bool // it was cut off at the most that it may write
}

// Usage counts tokens, as the provider does. Where it does not say, they are estimated.
type Usage struct {
	Read, Written int64
}

// Model is something that answers. Implementations are safe for concurrent use.
type Model interface {
	// Name is the model's, as the configuration has it.
	Name() string
	// Window is how many tokens a prompt and its reply may have together.
	Window() int64
	// Cost is what so many tokens cost, in millionths of the currency of the configured prices; 0 without prices.
	Cost(Usage) int64
	// Reply waits for the whole reply and hands words to write as they come (write may be nil). What passes by itself is
	// tried again, at the times that the provider names, until ctx ends or the tries are spent; a reply that broke off is
	// begun anew, and write is told so with no words: write(""). Errors are *Error, or that of ctx.
	Reply(ctx context.Context, p Prompt, write func(words string)) (Reply, error)
}

// What can be wrong, besides what is tried again. Match with [errors.Is].
var (
	ErrTooLong = errors.New("the conversation is longer than the model's window")
	ErrRefused = errors.New("the provider refuses the request")      // the key, the model's name, or what was sent
	ErrAway    = errors.New("the provider does not answer just now") // also after every try
)

// Error is why there is no reply. Its text is for the operator and the person, and holds no key.
type Error struct {
	Kind  error         // one of the above
	Text  string        // what the provider said, in at most a few lines
	After time.Duration // when it says to try again; 0: it does not say
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Kind, e.Text) }

// Unwrap is the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Key is what a provider knows us by. It does not print. Empty: none is sent.
type Key string

// String hides the key.
func (Key) String() string { return "‹key›" }

// GoString hides the key.
func (k Key) GoString() string { return k.String() }

// LogValue hides the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText hides the key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Price is what a million tokens cost, in millionths of a currency.
type Price struct {
	Read, Written int64
}

// Cost is what so many tokens cost, in millionths of the currency, rounded up.
func (p Price) Cost(u Usage) int64 {
	const million = 1_000_000
	return (u.Read*p.Read + u.Written*p.Written + million - 1) / million
}
