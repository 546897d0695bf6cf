package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/daycared/daycared/agents/models/provider"
)

// sender sends the library's request, with what the library cannot write: a model whose name it takes for one that may not
// be asked like this, a result or a description that is empty.
type sender struct {
	*provider.Exchange
	model string
}

// Do is called by the library.
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
	return s.Exchange.Do(r)
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
