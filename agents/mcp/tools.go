package mcp

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What models read. It says when to use a tool, what its outcomes mean, and that a timeout of their own is no answer.

const instructions = `daycared asks the people answerable for you, in the chat they have open, and waits for their answer.
Ask with request_permission before you do something that needs their consent, ask_user when a choice is theirs, and pause
when they should look before you go on. A call may take many minutes: that is a person thinking. If your own client gives
up waiting, call the same tool again with the same arguments: you find your place, and nobody is asked twice.
No answer is never a yes. A denial is final: read its reason, and do something else.`

// tool is one tool as clients see it, and what a call of it does.
type tool struct {
	name, title, says string
	input, output     json.RawMessage // JSON Schema; output nil: none is promised
	call              func(*Server, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult
}

var tools = []tool{
	{
		name: "request_permission", title: "Ask for permission", input: requestPermission, output: outcome,
		call: asks[permissionInput],
		says: "Ask a person for permissions and wait for the answer. Use it before anything that reaches beyond your own folder: " +
			"the network, files elsewhere. What is held already is granted at once, without asking anybody. " +
			`"Permission granted" means you may go on; "denied" is a person's answer and final, with their reason if they gave one; ` +
			"an error means that nobody said yes, so do not go on.",
	},
	{
		name: "ask_user", title: "Ask a person to choose", input: askUser, output: outcome, call: asks[choiceInput],
		says: "Let a person choose between options, and wait. Use it when you cannot know what they want; put the safest option first: " +
			"it is taken when nobody answers in time, and the result says so. The result is the option, or the person's own words. " +
			"A choice is not a permission for anything: use request_permission for that.",
	},
	{
		name: "pause", title: "Pause for a person", input: pause, output: outcome, call: asks[pauseInput],
		says: `Stop until a person has looked. Mode "continue" goes on by itself when nobody answers in time; mode "confirm" is a ` +
			`yes-or-no question that never answers itself. "Interrupted by the user" means: stop what you are doing.`,
	},
	{
		name: "await_request", title: "Wait for an earlier request", input: awaitRequest, output: outcome, call: (*Server).await,
		says: "Wait for the answer to a request of yours that is still open, by the id that its result had. Asks nobody again.",
	},
	{
		name: "approve_tool", title: "Approve a tool call", input: approveTool, call: (*Server).approve,
		says: "For agent programs, not for models: asks a person whether one tool call may run, and answers with JSON text, " +
			`{"behavior":"allow","updatedInput":…} or {"behavior":"deny","message":…}. Claude Code calls it with ` +
			"--permission-prompt-tool mcp__daycared__approve_tool.",
	},
}

var requestPermission = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["reason"],"properties":{
"permission":{"type":"string","description":"One permission: @network, @workspace, @events, @read:/absolute/path or @write:/absolute/path. Write includes read; a folder includes all in it."},
"permissions":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":50,"description":"Several permissions, asked as one question. Give either this or permission."},
"reason":{"type":"string","minLength":1,"maxLength":2000,"description":"Why you need it and what you will do with it, in a sentence or two. The person reads exactly this."},
"agentId":{"type":"string","maxLength":200,"description":"The name of the agent that needs it, if that is one you started and not you. Shown as your claim."},
` + common + `}}`)

var askUser = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["question","options"],"properties":{
"question":{"type":"string","minLength":1,"maxLength":4000,"description":"The question, in full: the person does not see your conversation."},
"options":{"type":"array","items":{"type":"string","minLength":1,"maxLength":200},"minItems":2,"maxItems":20,"uniqueItems":true,"description":"What to choose between, the safest first."},
` + common + `}}`)

var pause = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["message","mode"],"properties":{
"message":{"type":"string","minLength":1,"maxLength":4000,"description":"What to look at, and what comes next."},
"mode":{"type":"string","enum":["continue","confirm"],"description":"continue: go on by itself when nobody answers; confirm: a yes or no, which silence never is."},
` + common + `}}`)

// Schemas have no oneOf at their top: some models' interfaces refuse that.

// common are the members that every question may have.
const common = `"details":{"type":"string","description":"All that the person should see besides, such as a diff or a command, whole. At most 1 MiB."},
"timeout_minutes":{"type":"number","minimum":1,"maximum":60,"description":"How long people have to answer. Leave it out unless it is urgent or can wait."},
"key":{"type":"string","minLength":1,"maxLength":200,"description":"A name of your own for this very question, such as a job's number: asking again with it finds the same request and its answer."}`

var awaitRequest = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{
"id":{"type":"string","minLength":1,"maxLength":64,"description":"The id of the request."}}}`)

var approveTool = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["tool_name","input"],"properties":{
"tool_name":{"type":"string","minLength":1,"maxLength":200,"description":"The tool that is to run."},
"input":{"type":"object","description":"Its input, which people are shown whole."},
"tool_use_id":{"type":"string","description":"The caller's own id of the call."}}}`)

// outcome is what stands beside the sentence.
var outcome = json.RawMessage(`{"type":"object","required":["state","answer","scope","id","digest","comment","decided_by","result"],"properties":{
"state":{"type":"string","enum":["pending","approved","denied","answered","expired","cancelled","undeliverable"]},
"answer":{"type":["string","null"],"description":"allow_once and the like, deny, continue, interrupt, other, or option_1, option_2 … in your order"},
"scope":{"type":["string","null"]},
"id":{"type":"string","description":"for await_request"},
"digest":{"type":"string"},
"comment":{"type":["string","null"],"description":"the person's own words"},
"decided_by":{"type":["string","null"],"description":"null: nobody"},
"result":{"type":"string","description":"the outcome in a sentence"}}}`)
