package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// ClaudeAsks is Claude Code's own tool for asking the person.
const ClaudeAsks = "AskUserQuestion"

// question is one question of an agent's own tool for asking the person.
type question struct {
	Question    string
	Options     []struct{ Label, Description string }
	MultiSelect bool // Claude Code and Gemini CLI
	Multiple    bool // opencode
	Type        string
}

// asked is the input of such a tool: questions, or in Copilot CLI a message with a form.
type asked struct {
	Questions []question

	Message         string
	RequestedSchema struct{ Properties map[string]field }
}

// field is a field of a form, in JSON Schema. Its choices are in one of these members.
type field struct {
	Title, Description, Type string
	Enum, EnumNames          []string
	OneOf                    []titled
	Items                    struct {
		Enum  []string
		AnyOf []titled
	}
}

type titled struct{ Title string }

// all returns the questions of the input, each field of a form as one, by the names of the fields.
func (in asked) all() []question {
	all := in.Questions
	for _, name := range slices.Sorted(maps.Keys(in.RequestedSchema.Properties)) {
		f := in.RequestedSchema.Properties[name]
		text := cmp.Or(f.Title, name)
		if f.Description != "" {
			text += ": " + f.Description
		}
		q := question{Question: strings.TrimSpace(in.Message + "\n" + text), Multiple: f.Type == "array"}
		for _, t := range append(f.OneOf, f.Items.AnyOf...) {
			q.offer(t.Title)
		}
		if len(f.EnumNames) != len(f.Enum) {
			f.EnumNames = f.Enum
		}
		q.offer(append(f.EnumNames, f.Items.Enum...)...)
		if f.Type == "boolean" {
			q.offer("Yes", "No")
		}
		all = append(all, q)
	}
	return all
}

func (q *question) offer(labels ...string) {
	for _, l := range labels {
		q.Options = append(q.Options, struct{ Label, Description string }{Label: l})
	}
}

var errNoQuestion = errors.New("the input has no questions")

// Questions returns the questions in an input of an agent's own tool for asking the person, each with its options and nothing of who asks.
func Questions(input json.RawMessage) ([]permissions.Request, error) {
	var in asked
	if json.Unmarshal(input, &in) != nil {
		return nil, errNoQuestion
	}
	questions := in.all()
	if len(questions) == 0 {
		return nil, errNoQuestion
	}
	all := make([]permissions.Request, len(questions))
	for i, q := range questions {
		all[i].Kind = permissions.KindClarification
		if q.Type == "yesno" { // Gemini CLI
			q.offer("Yes", "No")
		}
		var says strings.Builder
		says.WriteString(q.Question)
		for _, o := range q.Options {
			all[i].Choices = append(all[i].Choices, o.Label)
			if o.Description != "" {
				fmt.Fprintf(&says, "\n- %s: %s", o.Label, o.Description)
			}
		}
		if q.MultiSelect || q.Multiple {
			says.WriteString(permissions.SeveralAnswers)
		}
		all[i].Message = says.String()
		if err := all[i].Validate(); err != nil {
			return nil, fmt.Errorf("a question cannot be asked: %w", err)
		}
	}
	return all, nil
}

// ClaudeAnswered is an input of [ClaudeAsks] with the answers to its questions, in their order, as Claude Code's own dialog gives them.
func ClaudeAnswered(input json.RawMessage, answers []string) (json.RawMessage, error) {
	var in asked
	members, said := map[string]json.RawMessage{}, map[string]string{}
	if err := errors.Join(json.Unmarshal(input, &in), json.Unmarshal(input, &members)); err != nil {
		return nil, err
	}
	for i, answer := range answers {
		said[in.Questions[i].Question] = answer
	}
	members["answers"], _ = json.Marshal(said) // texts
	return json.Marshal(members)
}

// AnswersText tells the model the answers to the questions of an input, in their order.
func AnswersText(input json.RawMessage, answers []string) (string, error) {
	var in asked
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	text, questions := "The people who were asked have answered; the tool itself did not run. ", in.all()
	for i, answer := range answers {
		text += fmt.Sprintf("%q: %q. ", questions[i].Question, answer)
	}
	return text + "Go on with that, and do not ask again.", nil
}
