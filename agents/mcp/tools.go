package mcp

import (
	"context"
	"embed"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
