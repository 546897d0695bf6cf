package runtime

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// askTool is a tool of the runtime's own: it asks people, or speaks to other agents. None of them needs a gate; what is
// forbidden is forbidden all the same.
type askTool struct {
	spec  models.Tool
	check func(input []byte) error
	// question is what people are asked; nil of a tool that does something instead.
	question func(input []byte) (permissions.Request, error)
	// do does it, and says what the model is told.
	do func(ctx context.Context, sh *shift, c Call) (string, error)
}

const (
	permissionName = "request_permission"
	pauseName      = "pause"
)

// askingTools are set in init, since what they do looks at them.
var askingTools []askTool

func init() {
	askingTools = []askTool{
		{spec: models.Tool{Name: permissionName, Description: permissionWords, Schema: schema(permissionSchema)},
			check: checked[permissionInput], question: permission},
		{spec: models.Tool{Name: "ask_user", Description: askWords, Schema: schema(askSchema)},
			check: checked[askInput], question: clarification},
		{spec: models.Tool{Name: pauseName, Description: pauseWords, Schema: schema(pauseSchema)},
			check: checked[pauseInput], question: pauses},
		{spec: models.Tool{Name: "start_agent", Description: startWords, Schema: schema(startSchema)},
			check: checked[startInput], do: start},
		{spec: models.Tool{Name: "message_agent", Description: messageWords, Schema: schema(messageSchema)},
			check: checked[messageInput], do: message},
	}
}

func askingTool(name string) (askTool, bool) {
	for _, t := range askingTools {
		if t.spec.Name == name {
			return t, true
		}
	}
	return askTool{}, false
}

const (
	permissionWords = "Ask your person for a permission that you do not hold, and wait for the answer. " +
		"Permissions are @network, @workspace, @events, @read:/absolute/path and @write:/absolute/path. " +
		"Ask for no more than you need. What you hold already is answered at once."
	askWords = "Ask your person to choose one of two or more options, and wait. " +
		"Without an answer in time the first option is taken; it permits nothing."
	pauseWords = "Stop and let your person look before you go on. mode continue goes on by itself when nobody answers; " +
		"mode confirm needs a yes."

	permissionSchema = `{"type":"object","additionalProperties":false,"required":["reason"],"properties":{
		"permission":{"type":"string","description":"one permission, as in @write:/srv/www"},
		"permissions":{"type":"array","items":{"type":"string"},"description":"several, instead of permission"},
		"reason":{"type":"string","description":"why, for the person: 1 to 2000 characters"},
		"agentId":{"type":"string","description":"an agent that you started and that is to have it, instead of you"},
		"timeout_minutes":{"type":"number","minimum":1,"maximum":60,"description":"how long to wait; 15 without it"}}}`
	askSchema = `{"type":"object","additionalProperties":false,"required":["question","options"],"properties":{
		"question":{"type":"string"},
		"options":{"type":"array","minItems":2,"maxItems":20,"items":{"type":"string"},"description":"the safest first"},
		"details":{"type":"string"}}}`
	pauseSchema = `{"type":"object","additionalProperties":false,"required":["message"],"properties":{
		"message":{"type":"string","description":"what to look at"},
		"details":{"type":"string"},
		"mode":{"type":"string","enum":["continue","confirm"],"description":"continue without it"}}}`
)

// schema is a JSON Schema without the blanks that make it readable here.
func schema(text string) stdjson.RawMessage {
	var b bytes.Buffer
	if err := stdjson.Compact(&b, []byte(text)); err != nil {
		panic(fmt.Sprintf("a schema of ours is no JSON: %v", err))
	}
	return b.Bytes()
}

type permissionInput struct {
	Permission     string   `json:"permission"`
	Permissions    []string `json:"permissions"`
	Reason         string   `json:"reason"`
	AgentID        string   `json:"agentId"`
	TimeoutMinutes *float64 `json:"timeout_minutes"`
}

// valid is what is wrong with an input, besides its shape.
func (in permissionInput) valid() error {
	if (in.Permission == "") == (len(in.Permissions) == 0) {
		return fmt.Errorf("name one permission, or several as permissions")
	}
	if strings.TrimSpace(in.Reason) == "" {
		return fmt.Errorf("reason is missing: say in 1 to %d characters why, for the person", permissions.MaxReason)
	}
	if m := in.TimeoutMinutes; m != nil && (math.IsNaN(*m) || *m < 1 || *m > 60) {
		return fmt.Errorf("timeout_minutes is a number from 1 to 60")
	}
	_, err := in.tags()
	return err
}

func (in permissionInput) tags() ([]permissions.Tag, error) {
	words := in.Permissions
	if in.Permission != "" {
		words = []string{in.Permission}
	}
	return permissions.ParseTags(words)
}

type askInput struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Details  string   `json:"details"`
}

func (in askInput) valid() error {
	return permissions.Request{Kind: permissions.KindClarification, Message: in.Question, Choices: in.Options, Details: in.Details}.Validate()
}

type pauseInput struct {
	Message string `json:"message"`
	Details string `json:"details"`
	Mode    string `json:"mode"`
}

func (in pauseInput) mode() permissions.Mode {
	if in.Mode == "" {
		return permissions.ModeContinue
	}
	return permissions.Mode(in.Mode)
}

func (in pauseInput) valid() error {
	return permissions.Request{Kind: permissions.KindPause, Mode: in.mode(), Message: in.Message, Details: in.Details}.Validate()
}

// decode reads an input strictly.
func decode[T interface{ valid() error }](input []byte) (in T, err error) {
	if err := json.Unmarshal(input, &in, json.RejectUnknownMembers(true)); err != nil {
		return in, fmt.Errorf("this input does not fit the tool: %w", err)
	}
	return in, in.valid()
}

func checked[T interface{ valid() error }](input []byte) error {
	_, err := decode[T](input)
	return err
}

// permission is the question of request_permission.
func permission(input []byte) (permissions.Request, error) {
	in, err := decode[permissionInput](input)
	if err != nil {
		return permissions.Request{}, err
	}
	tags, err := in.tags()
	if err != nil {
		return permissions.Request{}, err
	}
	q := permissions.Request{Kind: permissions.KindPermission, Tags: tags, Reason: in.Reason}
	if m := in.TimeoutMinutes; m != nil {
		q.Patience = time.Duration(*m * float64(time.Minute)).Truncate(time.Second)
	}
	return q, nil
}

func clarification(input []byte) (permissions.Request, error) {
	in, err := decode[askInput](input)
	return permissions.Request{
		Kind: permissions.KindClarification, Message: in.Question, Choices: in.Options, Details: in.Details,
	}, err
}

func pauses(input []byte) (permissions.Request, error) {
	in, err := decode[pauseInput](input)
	return permissions.Request{Kind: permissions.KindPause, Mode: in.mode(), Message: in.Message, Details: in.Details}, err
}

// begin begins a call of a tool of our own: it does something, or it asks.
func (sh *shift) begin(ctx context.Context, c Call, t askTool) error {
	x := sh.execution(c)
	row := agents.Commit{Executions: []agents.Execution{x}}
	if t.do == nil {
		needs, err := sh.lacks(ctx, c)
		if err != nil {
			return err
		}
		return sh.advance(ctx, row, Began{c.N}, Asked{N: c.N, Needs: needs})
	}
	if err := sh.advance(ctx, row, Began{c.N}); err != nil {
		return err
	}
	text, err := t.do(ctx, sh, c)
	if err != nil {
		sh.runtime.log.Debug("what an agent wants of another is not done", "agent", sh.agent.Name, "tool", c.Tool, "err", err)
		text = err.Error()
	}
	return sh.ended(ctx, x, tools.Outcome{Text: text, Error: err != nil}, Ran{N: c.N, Text: text, Error: err != nil})
}

// lacks is what a call asks for that is not held: of a permission of one's own, since what a child holds is the child's.
func (sh *shift) lacks(ctx context.Context, c Call) ([]permissions.Tag, error) {
	if c.Tool != permissionName {
		return nil, nil
	}
	in, err := decode[permissionInput](c.Input)
	if err != nil {
		return nil, err
	}
	tags, err := in.tags()
	if err != nil || in.AgentID != "" {
		return tags, err
	}
	held, err := sh.held(ctx)
	return permissions.Missing(tags, held), err
}
