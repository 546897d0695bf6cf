package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/daycared/daycared/agents/models"
)

// strictly decodes JSON and refuses unknown keys.
func strictly(data []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(out)
}

var (
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	callID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// check verifies what both dialects require.
func (r Request) check(stream bool) error {
	switch {
	case r.Model == "":
		return errors.New("no model is named")
	case !stream:
		return errors.New("the reply is not to be streamed")
	case len(r.Prompt.Messages) == 0:
		return errors.New("there is no message")
	case r.Prompt.Messages[0].Role != models.User:
		return errors.New("the first message is not a user's")
	case r.Last().Role == models.Assistant:
		return errors.New("the last message is the assistant's")
	}
	names := map[string]bool{}
	for _, t := range r.Prompt.Tools {
		if !toolName.MatchString(t.Name) || names[t.Name] {
			return fmt.Errorf("the name of the tool %q does not match %v, or is there twice", t.Name, toolName)
		}
		names[t.Name] = true
		if err := checkSchema(t.Schema); err != nil {
			return fmt.Errorf("the schema of the tool %s: %w", t.Name, err)
		}
	}
	ids := map[string]bool{}
	for i, m := range r.Prompt.Messages {
		if err := r.checkMessage(i, m, ids); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	return nil
}

// checkMessage verifies one message, and that the next message answers each call exactly once.
func (r Request) checkMessage(i int, m models.Message, ids map[string]bool) error {
	var next []models.Result
	if i+1 < len(r.Prompt.Messages) && r.Prompt.Messages[i+1].Role == models.Results {
		next = r.Prompt.Messages[i+1].Results
	}
	switch {
	case m.Role == models.User && m.Text == "", m.Role == models.Assistant && m.Text == "" && len(m.Calls) == 0:
		return errors.New("it is empty")
	case m.Role == models.Assistant && len(next) != len(m.Calls):
		return fmt.Errorf("%d calls are followed by %d results", len(m.Calls), len(next))
	case m.Role == models.Results && (i == 0 || r.Prompt.Messages[i-1].Role != models.Assistant):
		return errors.New("results without calls")
	}
	answered := map[string]int{}
	for _, result := range next {
		answered[result.ID]++
	}
	for _, c := range m.Calls {
		var object map[string]any
		switch {
		case ids[c.ID] || c.ID == "" || r.Dialect == Anthropic && !callID.MatchString(c.ID):
			return fmt.Errorf("the id %q of a call is there twice, or is none", c.ID)
		case !toolName.MatchString(c.Tool):
			return fmt.Errorf("the name of the tool %q in the call %s does not match %v", c.Tool, c.ID, toolName)
		case answered[c.ID] != 1:
			return fmt.Errorf("the call %s has %d results", c.ID, answered[c.ID])
		case json.Unmarshal(c.Input, &object) != nil || object == nil:
			return fmt.Errorf("the input of the call %s is not an object", c.ID)
		}
		ids[c.ID] = true
	}
	return nil
}

func checkSchema(raw json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if object, ok := doc.(map[string]any); !ok || object["type"] != "object" || object["properties"] == nil {
		return errors.New("it is not that of an object with properties")
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return err
	}
	_, err = c.Compile("mem:///schema.json")
	return err
}
