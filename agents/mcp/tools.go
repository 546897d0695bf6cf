package mcp

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// What models read is here and in schemas. It says when to use a tool, what its outcomes mean, and that a timeout of
// their own is no answer.

const instructions = `daycared asks the people answerable for you, in the chat they have open, and waits for their answer.
Ask with request_permission before you do something that needs their consent, ask_user when a choice is theirs, and pause
when they should look before you go on. A call may take many minutes: that is a person thinking. If your own client gives
up waiting, call the same tool again with the same arguments: you find your place, and nobody is asked twice.
No answer is never a yes. A denial is final: read its reason, and do something else.`

// tool is one tool as clients see it, and what a call of it does.
type tool struct {
	name, title, says string
	free              bool // of the shape of results that the others promise
	call              func(context.Context, *Server, *mcp.CallToolRequest) *mcp.CallToolResult
}

var tools = []tool{
	{
		name: "request_permission", title: "Ask for permission",
		call: asks[permissionInput],
		says: "Ask a person for permissions and wait for the answer. Use it before anything that reaches beyond your own folder: " +
			"the network, files elsewhere. What is held already is granted at once, without asking anybody. " +
			`"Permission granted" means you may go on; "denied" is a person's answer and final, with their reason if they gave one; ` +
			"an error means that nobody said yes, so do not go on.",
	},
	{
		name: "ask_user", title: "Ask a person to choose", call: asks[choiceInput],
		says: "Let a person choose between options, and wait. Use it when you cannot know what they want; put the safest option first: " +
			"it is taken when nobody answers in time, and the result says so. The result is the option, or the person's own words. " +
			"A choice is not a permission for anything: use request_permission for that.",
	},
	{
		name: "pause", title: "Pause for a person", call: asks[pauseInput],
		says: `Stop until a person has looked. Mode "continue" goes on by itself when nobody answers in time; mode "confirm" is a ` +
			`yes-or-no question that never answers itself. "Interrupted by the user" means: stop what you are doing.`,
	},
	{
		name: "await_request", title: "Wait for an earlier request", call: await,
		says: "Wait for the answer to a request of yours that is still open, by the id that its result had. Asks nobody again.",
	},
	{
		name: "approve_tool", title: "Approve a tool call", call: approve, free: true,
		says: "For agent programs, not for models: asks a person whether one tool call may run, and answers with JSON text, " +
			`{"behavior":"allow","updatedInput":…} or {"behavior":"deny","message":…}. Claude Code calls it with ` +
			"--permission-prompt-tool mcp__daycared__approve_tool.",
	},
}

// schemas are those of the inputs, by the names of the tools, and that of what stands beside the sentence. They have no
// oneOf at their top: some models' interfaces refuse that.
//
//go:embed schemas/*.json
var schemas embed.FS

// schema is the one of that name.
func schema(name string) json.RawMessage {
	text, err := schemas.ReadFile("schemas/" + name + ".json")
	if err != nil {
		panic(err) // a file of our own, the same in every run
	}
	return text
}

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
