package mcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// The texts that models read are here and in agents/schema. They say when to use a tool, what its outcomes mean, and that a
// client timeout is not an answer.

const instructions = `daycared asks the people answerable for you, in the chat they have open, and waits for their answer.
Ask with request_permission before you do something that needs their consent, ask_user when a choice is theirs, and pause
when they should look before you go on. A call may take many minutes: that is a person thinking. If your own client gives
up waiting, call the same tool again with the same arguments: you find your place, and nobody is asked twice.
No answer is never a yes. A denial is final: read its reason, and do something else.`

// tool is one tool as clients see it, and what a call of it does.
type tool struct {
	name, title, says string
	schema            []byte
	free              bool // its results have a shape of their own
	call              func(context.Context, *Server, *mcp.CallToolRequest) *mcp.CallToolResult
}

// tools returns the asking tools, which all servers share, and the ones of this package.
func tools() (all []tool) {
	for _, t := range schema.AskingTools {
		all = append(all, tool{name: t.Name, title: t.Title, says: t.Says, schema: t.Schema(), call: asks(t)})
		if t.Name == schema.AskUser {
			all = append(all, tool{name: askPerson, title: t.Title, says: t.Says, schema: t.Schema(), call: asks(t)})
		}
	}
	return append(all, tool{
		name: "await_request", title: "Wait for an earlier request", schema: schema.Of[awaitInput](), call: await,
		says: "Wait for the answer to a request of yours that is still open, by the id that its result had. Asks nobody again.",
	}, tool{
		name: approveTool, title: "Approve a tool call", schema: schema.Of[approveInput](), call: approve, free: true,
		says: "For agent programs, not for models: asks a person whether one tool call may run, and answers with JSON text, " +
			`{"behavior":"allow","updatedInput":…} or {"behavior":"deny","message":…}. Claude Code calls it with ` +
			"--permission-prompt-tool mcp__daycared__approve_tool.",
	})
}

// askPerson is the alias of ask_user for clients that hide ours behind a tool of the same name: without a person at it, Gemini
// CLI refuses any tool of that name.
const askPerson = "ask_person"

// called lists ask_user under a name that the client does not hide, and maps it back.
func called(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, r)
		hidden, name := askPerson, schema.AskUser
		if session, is := r.GetSession().(*mcp.ServerSession); is && session.InitializeParams() != nil {
			if who := session.InitializeParams().ClientInfo; who != nil && strings.HasPrefix(who.Name, "gemini-cli") {
				hidden, name = name, hidden
			}
		}
		switch told := result.(type) {
		case *mcp.InitializeResult:
			told.Instructions = strings.ReplaceAll(told.Instructions, schema.AskUser, name)
		case *mcp.ListToolsResult:
			told.Tools = slices.DeleteFunc(slices.Clone(told.Tools), func(t *mcp.Tool) bool { return t.Name == hidden })
		}
		return result, err
	}
}

// ToolNames returns the names of all tools. Each of them only asks or waits for an answer.
func ToolNames() []string {
	return wire.Each(tools(), func(t tool) string { return t.name })
}

const approveTool = "approve_tool"

// outcome is the schema of what stands beside the sentence.
//
//go:embed outcome.json
var outcome []byte

// maxBody is the maximum size of a message in bytes: details of [permissions.MaxDetails], escaped, and everything else.
const maxBody = 2*permissions.MaxDetails + 2*wire.MaxBody

type awaitInput struct {
	ID permissions.ID `json:"id" need:"yes" size:"1..64" say:"the id of the request"`
}

type approveInput struct {
	Tool  string          `json:"tool_name" need:"yes" size:"1..200" say:"the tool that is to run"`
	Input json.RawMessage `json:"input" need:"yes" say:"its input, which people are shown whole"`
	Use   string          `json:"tool_use_id" say:"the caller's own id of the call"` // unused
}

func (in approveInput) question() (q permissions.Request, err error) {
	q = permissions.Request{Kind: permissions.KindTool, Tool: in.Tool}
	q.Input, err = permissions.CanonicalJSON(in.Input)
	return q, err
}
