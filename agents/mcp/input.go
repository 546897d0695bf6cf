package mcp

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// mostBody is the most bytes of one message: details of [permissions.MaxDetails], escaped, and all else.
const mostBody = 2*permissions.MaxDetails + 2*wire.MaxBody

// input is what a call of a tool that asks was given.
type input interface {
	// question is the request that it asks for, without who asks and from where.
	question() (permissions.Request, error)
}

// extra are the members that every question may have.
type extra struct {
	Details string   `json:"details"`
	Minutes *float64 `json:"timeout_minutes"`
	Key     string   `json:"key"`
}

func (e extra) add(q *permissions.Request) error {
	q.Details, q.Key = e.Details, e.Key
	if e.Minutes == nil {
		return nil
	}
	if m := *e.Minutes; !(m >= 1 && m <= 60) {
		return errors.New("timeout_minutes must be a number from 1 to 60")
	}
	q.Patience = time.Duration(*e.Minutes * float64(time.Minute)).Truncate(time.Millisecond)
	return nil
}

type permissionInput struct {
	extra
	Permission  *string  `json:"permission"`
	Permissions []string `json:"permissions"`
	Reason      string   `json:"reason"`
	Agent       string   `json:"agentId"`
}

func (in permissionInput) question() (q permissions.Request, err error) {
	tags := in.Permissions
	if in.Permission != nil {
		if tags != nil {
			return q, errors.New("give either permission or permissions")
		}
		tags = []string{*in.Permission}
	}
	q = permissions.Request{Kind: permissions.KindPermission, Reason: in.Reason, Agent: in.Agent}
	if q.Tags, err = permissions.ParseTags(tags); err != nil {
		return q, err
	}
	return q, in.add(&q)
}

type choiceInput struct {
	extra
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

func (in choiceInput) question() (permissions.Request, error) {
	q := permissions.Request{Kind: permissions.KindClarification, Message: in.Question, Choices: in.Options}
	return q, in.add(&q)
}

type pauseInput struct {
	extra
	Message string           `json:"message"`
	Mode    permissions.Mode `json:"mode"`
}

func (in pauseInput) question() (permissions.Request, error) {
	q := permissions.Request{Kind: permissions.KindPause, Mode: in.Mode, Message: in.Message}
	return q, in.add(&q)
}

type awaitInput struct {
	ID permissions.ID `json:"id"`
}

type approveInput struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"input"`
	Use   string          `json:"tool_use_id"` // names the call to whoever makes it, and nothing to us
}

func (in approveInput) question() (q permissions.Request, err error) {
	q = permissions.Request{Kind: permissions.KindTool, Tool: in.Tool}
	if q.Input, err = permissions.CanonicalJSON(in.Input); err != nil {
		return q, err
	}
	if !strings.HasPrefix(string(q.Input), "{") {
		return q, errors.New("input must be the tool's input, an object")
	}
	return q, nil
}

// read reads the arguments of a call strictly: every name once and exactly as the schema has it, and nothing unknown.
func read[In any](arguments json.RawMessage) (in In, err error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if string(arguments) == "null" {
		return in, errors.New("the arguments are no object")
	}
	return in, wire.Decode(arguments, &in)
}
