// Package openai is a client of OpenAI's Chat Completions, which Ollama, llama.cpp, vLLM, OpenRouter and many others
// speak as well, each a little differently. It fills in what they leave out: call ids, usage, finish reasons. The
// library is used to write requests only: its stream reader accepts only what OpenAI itself sends, loses an error after
// a comment, and fails on the type of an unused field.
//
// Only the configuration determines what is sent and where: the OPENAI_… environment variables are not read.
package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
	"github.com/daycared/daycared/internal/wire"
)

const (
	// Base is OpenAI's address.
	Base = "https://api.openai.com/v1"
	// Window is the default context window in tokens.
	Window = 128_000
)

// New makes a model without sending anything. Without a URL it is [Base], and without Most the provider's default holds. The
// error is about the address or the key, and contains neither.
func New(o provider.ModelOptions) (*provider.Model, error) {
	o.BaseURL, o.Window = cmp.Or(o.BaseURL, Base), cmp.Or(o.Window, Window)
	key := o.Key
	return provider.NewModel(o, func(link *provider.Client) provider.Dialect {
		return &dialect{most: int(o.Most), link: link, client: func(x *provider.Attempt) *openai.Client {
			config := openai.DefaultConfig(string(key))
			config.BaseURL, config.HTTPClient = link.Base(), sender{Attempt: x, model: o.Name}
			return openai.NewClientWithConfig(config)
		}}
	})
}

type dialect struct {
	most   int
	link   *provider.Client
	client func(*provider.Attempt) *openai.Client // a function, so that it is never printed
}

// Request implements [provider.Dialect]. The response is read from the exchange, which also closes it.
func (d *dialect) Request(p models.Prompt) (send func(*provider.Attempt) error, err error) {
	params := d.params(p)
	return func(x *provider.Attempt) error {
		_, err := d.client(x).CreateChatCompletionStream(x.Context(), params)
		return err
	}, nil
}

func (d *dialect) Reading(write func(string)) provider.Reading {
	return &reading{link: d.link, write: write}
}

// sender adds what the library cannot write: a model name that it rejects for this API, an empty result or description.
type sender struct {
	*provider.Attempt
	model string
}

func (s sender) Do(r *http.Request) (*http.Response, error) {
	var body map[string]any
	in := json.NewDecoder(r.Body)
	in.UseNumber()
	if err := in.Decode(&body); err != nil {
		return nil, err
	}
	body["model"] = s.model
	for _, message := range objects(body["messages"]) {
		if message["role"] == "tool" && message["content"] == nil {
			message["content"] = ""
		}
	}
	for _, tool := range objects(body["tools"]) {
		if function, ok := tool["function"].(map[string]any); ok && function["description"] == nil {
			function["description"] = ""
		}
	}
	out, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out)), nil }
	return s.Attempt.Do(r)
}

func objects(list any) []map[string]any {
	var all []map[string]any
	values, _ := list.([]any)
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// params converts a prompt, except for what [sender] adds.
func (d *dialect) params(p models.Prompt) openai.ChatCompletionRequest {
	params := openai.ChatCompletionRequest{StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
	u, err := url.Parse(d.link.Base())
	ours := err == nil && u.Hostname() == "api.openai.com" // which no longer accepts all that others do
	switch {
	case d.most > 0 && ours:
		params.MaxCompletionTokens = d.most
	case d.most > 0:
		params.MaxTokens = d.most //nolint:staticcheck // deprecated at OpenAI alone; most others know no other
	}
	if p.System != "" {
		params.Messages = append(params.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: p.System})
	}
	for _, message := range p.Messages {
		params.Messages = append(params.Messages, messages(message)...)
	}
	for _, t := range p.Tools {
		params.Tools = append(params.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: provider.Schema(t.Schema),
		}})
	}
	return params
}

// messages converts a turn. One without text and calls is left out, since providers refuse it.
func messages(m models.Message) []openai.ChatCompletionMessage {
	var all []openai.ChatCompletionMessage
	switch {
	case m.Role == models.Results:
		for _, r := range m.Results {
			text := r.Text
			if r.Error {
				text = "Error: " + text // the dialect has no error field
			}
			all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: text, ToolCallID: r.ID})
		}
	case m.Role == models.Assistant && (m.Text != "" || len(m.Calls) > 0):
		said := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
		for _, c := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: provider.Name(c.Tool), Arguments: string(provider.Object(c.Input))}})
		}
		all = append(all, said)
	case m.Role == models.User && m.Text != "":
		all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: m.Text})
	}
	return all
}

// chunk is an event of a stream, with the fields that we read.
type chunk struct {
	Error   json.RawMessage
	Choices []struct {
		Index provider.Number
		Delta struct {
			Content, Refusal provider.Text
			ToolCalls        []piece `json:"tool_calls"`
		}
		FinishReason provider.Text `json:"finish_reason"`
	}
	Usage struct {
		Prompt     provider.Number `json:"prompt_tokens"`
		Completion provider.Number `json:"completion_tokens"`
		Total      provider.Number `json:"total_tokens"`
	}
}

type piece struct {
	Index    provider.Number
	ID       provider.Text
	Function struct{ Name, Arguments provider.Text }
}

// reading assembles a reply from the chunks of a stream.
type reading struct {
	link   *provider.Client
	write  func(string)
	text   strings.Builder
	calls  []*call
	usage  models.Usage
	finish provider.Text
}

// call is a call whose input arrives in pieces.
type call struct {
	index     provider.Number
	id, name  string
	arguments strings.Builder
}

// Event processes one event. Fields of unexpected types are ignored; an event that is no object is an error.
func (r *reading) Event(_ string, data []byte) error {
	switch {
	case len(data) == 0:
		return nil
	case bytes.HasPrefix(data, []byte("[DONE]")):
		return io.EOF
	}
	var c chunk
	var odd *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &c); err != nil && (!errors.As(err, &odd) || odd.Field == "") {
		return err
	}
	if err := wire.CheckNames(data); err != nil { // other parsers could read another value
		return err
	}
	if c.Error != nil {
		return r.link.Streamed(data)
	}
	r.chunk(c)
	return nil
}

// chunk processes one chunk. Chunks without a choice carry usage or keep the connection alive.
func (r *reading) chunk(c chunk) {
	if u := c.Usage; u.Total > 0 || u.Prompt > 0 || u.Completion > 0 {
		r.usage = models.Usage{Read: int64(u.Prompt), Written: int64(u.Completion)}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if words := string(choice.Delta.Content + choice.Delta.Refusal); words != "" {
			r.text.WriteString(words)
			r.write(words)
		}
		for _, piece := range choice.Delta.ToolCalls {
			r.piece(piece)
		}
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
	}
}

// piece adds a piece of a call. Some servers give every call the first index: another id starts a new call, and so does
// another name once the arguments are complete.
func (r *reading) piece(p piece) {
	id, name := string(p.ID), string(p.Function.Name)
	var at *call
	for _, c := range r.calls {
		if c.index == p.Index {
			at = c // the last with this index
		}
	}
	other := at == nil || id != "" && at.id != "" && id != at.id ||
		id == "" && name != "" && at.name != "" && json.Valid([]byte(at.arguments.String()))
	if other {
		at = &call{index: p.Index}
		r.calls = append(r.calls, at)
	}
	at.id = cmp.Or(at.id, id)
	if at.name != name { // some repeat it with every piece
		at.name += name
	}
	at.arguments.WriteString(string(p.Function.Arguments))
}

// End returns the reply. A stream without a finish reason and without its end mark broke off.
func (r *reading) End(tail string) (models.Reply, error) {
	done := strings.HasSuffix(tail, "[DONE]")
	reply := models.Reply{Text: r.text.String(), Usage: r.usage, Cut: r.finish == "length"}
	switch {
	case r.finish == "" && !done:
		return reply, r.link.Broken("the reply broke off")
	case r.finish == "error":
		return reply, r.link.Broken("the provider ended the reply with an error")
	case r.finish == "content_filter":
		return reply, r.link.Refused("the provider's filter ended the reply")
	}
	for _, c := range r.calls {
		reply.Calls = append(reply.Calls, models.Call{ID: c.id, Tool: c.name, Input: json.RawMessage(c.arguments.String())})
	}
	return reply, nil
}
