package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// ClaudeAsks is Claude Code's own tool for asking the person.
const ClaudeAsks = "AskUserQuestion"

// question is one question of [ClaudeAsks].
type question struct {
	Question    string
	Options     []struct{ Label, Description string }
	MultiSelect bool
}

var errNoQuestion = errors.New("the input of AskUserQuestion has no questions")

// ClaudeQuestions returns the questions in an input of [ClaudeAsks], each with its options and nothing of who asks.
func ClaudeQuestions(input json.RawMessage) ([]permissions.Request, error) {
	var in struct{ Questions []question }
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return nil, errNoQuestion
	}
	all := make([]permissions.Request, len(in.Questions))
	for i, q := range in.Questions {
		all[i].Kind = permissions.KindClarification
		var says strings.Builder
		says.WriteString(q.Question)
		for _, o := range q.Options {
			all[i].Choices = append(all[i].Choices, o.Label)
			if o.Description != "" {
				fmt.Fprintf(&says, "\n- %s: %s", o.Label, o.Description)
			}
		}
		if q.MultiSelect {
			says.WriteString(permissions.SeveralAnswers)
		}
		all[i].Message = says.String()
		if err := all[i].Validate(); err != nil {
			return nil, fmt.Errorf("a question of AskUserQuestion cannot be asked: %w", err)
		}
	}
	return all, nil
}

// ClaudeAnswered is an input of [ClaudeAsks] with the answers to its questions, in their order, as Claude Code's own dialog gives them.
func ClaudeAnswered(input json.RawMessage, answers []string) (json.RawMessage, error) {
	var in struct{ Questions []question }
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
