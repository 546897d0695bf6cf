package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	strict "github.com/go-json-experiment/json"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// gate decides what an agent may do: people, through the daemon.
type gate interface {
	// held are the tags that the agent holds now, besides those of its place.
	held(ctx context.Context, session string) ([]permissions.Tag, error)
	// allow returns q settled, and used if approved. When ctx ends first, it withdraws q and returns ctx's error. If
	// nobody is asked, the error is a *permissions.Refusal.
	allow(ctx context.Context, q permissions.Request) (permissions.Request, error)
	// note stores the result of a call that the agent wanted run, and sets its time.
	note(ctx context.Context, x agents.Execution, artifacts []agents.Artifact)
	stamp() time.Time
}

// client is our end of the connection to an agent's program.
type client struct {
	gate  gate
	place tools.Workspace
	read  tools.Tool            // read_file for programs
	tools map[string]tools.Tool // ours, by name
	log   *slog.Logger

	mu           sync.Mutex
	conversation sdk.SessionId // the current one, by the agent's id
	modes        modes         // last reported for the conversation
	title        string        // likewise
	want         string        // the required mode
	turn         *turn         // nil: none
	terminals    map[string]*terminal
	opened       int // number of terminals so far

	jobs sync.WaitGroup // running terminals
}

// turn is one prompt and everything that follows from it.
type turn struct {
	session       string // the daemon's session id
	prompt        string
	n             int // from 1
	over          chan struct{}
	end           func()     // closes over once
	forbiddenMode chan error // why it ends, if the agent entered a forbidden mode
	transcript    *transcript

	mu      sync.Mutex
	calls   int
	allowed []allowed
}

// allowed is a call that people let the agent run itself.
type allowed struct {
	agents.Execution
	of toolCall
}

// ended are the rows of the calls that the agent ran itself, with the results that it reported.
func (t *turn) ended(at time.Time) (all []agents.Execution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.allowed {
		x.Ended = at
		switch t.transcript.known(x.of).Status {
		case sdk.ToolCallStatusCompleted:
			x.Success = true
		case sdk.ToolCallStatusFailed:
			x.Error = "The agent says that this failed."
		default:
			x.Error = "The agent did not say how this went."
		}
		all = append(all, x.Execution)
	}
	return all
}

func newTurn(session string, n int) *turn {
	t := &turn{session: session, n: n, over: make(chan struct{}), forbiddenMode: make(chan error, 1), transcript: newTranscript()}
	t.end = sync.OnceFunc(func() { close(t.over) })
	return t
}

// key returns the key and number of the turn's next question.
func (t *turn) key() (key string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	return t.session + "/" + strconv.Itoa(t.n) + "/" + strconv.Itoa(t.calls), t.calls
}

// during is ctx, cancelled at the end of the turn as well.
func (t *turn) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-t.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// method handles one method that agents call.
type method func(c *client, ctx context.Context, params json.RawMessage) (any, error)

var methods = map[string]method{
	sdk.ClientMethodSessionRequestPermission: (*client).requestPermission,
	sdk.ClientMethodFsReadTextFile:           (*client).readFile,
	sdk.ClientMethodFsWriteTextFile:          (*client).writeFile,
	sdk.ClientMethodTerminalCreate:           (*client).createTerminal,
	sdk.ClientMethodTerminalOutput:           onTerminal((*client).terminalOutput),
	sdk.ClientMethodTerminalWaitForExit:      onTerminal((*client).waitForExit),
	sdk.ClientMethodTerminalKill:             onTerminal((*client).killTerminal),
	sdk.ClientMethodTerminalRelease:          onTerminal((*client).releaseTerminal),
}

// answer handles a call or notification of the agent. Updates come through [client.update].
func (c *client) answer(ctx context.Context, name string, params json.RawMessage) (any, *sdk.RequestError) {
	do, known := methods[name]
	if !known {
		c.log.Debug("unknown method of an acp agent refused", "method", name)
		return nil, sdk.NewMethodNotFound(name)
	}
	out, err := do(c, ctx, params)
	var told *sdk.RequestError
	switch refusal := permissions.AsRefusal(err); {
	case err == nil:
		return out, nil
	case errors.As(err, &told):
		return nil, told
	case ctx.Err() != nil || errors.Is(err, errOver):
		return nil, sdk.NewRequestCancelled(nil)
	case refusal != nil:
		return nil, &sdk.RequestError{Code: codeRefused, Message: refusal.Text}
	}
	return nil, &sdk.RequestError{Code: codeRefused, Message: wire.Plain(err).Error()}
}

// codeRefused answers a call that is not allowed or failed: JSON-RPC's internal error, since the protocol has no code
// of its own. The message is for the model.
const codeRefused = -32603

var errOver = errors.New("there is no turn any more that this belongs to")

// currentTurn is the turn that a call belongs to.
func (c *client) currentTurn(conversation sdk.SessionId) (*turn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conversation == "" || conversation != c.conversation {
		return nil, sdk.NewInvalidParams(map[string]any{"error": "there is no such session"})
	}
	if c.turn == nil || c.inForbiddenMode() { // the mode change ends it
		return nil, errOver
	}
	return c.turn, nil
}

func (c *client) setTurn(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = t
}

// update processes what the agent reports of its work. Unknown updates are ignored.
func (c *client) update(params json.RawMessage) {
	var note sdk.SessionNotification
	err := wire.CheckNames(params)
	if err == nil {
		err = json.Unmarshal(params, &note)
	}
	if err == nil {
		err = note.Validate()
	}
	if err != nil {
		c.log.Debug("invalid update of an acp agent ignored", "err", err)
		return
	}
	c.watch(note)
	t, err := c.currentTurn(note.SessionId)
	if err != nil {
		return // a loaded conversation is replayed from its beginning
	}
	var inputs struct {
		Update struct {
			Input json.RawMessage `json:"rawInput"`
		} `json:"update"`
	}
	_ = json.Unmarshal(params, &inputs) // parsed once already
	t.transcript.take(note.Update, inputs.Update.Input, c.shown)
}

// decode parses a call's parameters: each name once, and spelled exactly.
func decode[T any](params json.RawMessage) (in T, err error) {
	if err := strict.Unmarshal(params, &in); err != nil {
		return in, sdk.NewInvalidParams(map[string]any{"error": permissions.PlainJSON(err).Error()})
	}
	return in, nil
}

// use runs one of our tools for the agent, after asking. began, if not nil, is called once the tool may run.
func (c *client) use(
	ctx context.Context, t *turn, tool tools.Tool, input json.RawMessage, began func(),
) (tools.Outcome, error) {
	place, q, plan, err := c.plan(ctx, t, tool, input)
	if err != nil {
		return tools.Outcome{}, err
	}
	x := agents.Execution{Step: t.n, Tool: q.Tool, Arguments: q.Input, AffectedPath: q.AffectedPath, Began: c.gate.stamp()}
	q.Key, x.Call = t.key()
	answer, err := c.gate.allow(ctx, q)
	if err == nil && (answer.State != permissions.Approved || !answer.VoidAt.IsZero()) {
		err = errors.New(permissions.Result(answer).Text)
	}
	if err != nil {
		x.Error, x.Ended = short(wire.Plain(err).Error(), permissions.MaxReason), c.gate.stamp()
		c.gate.note(ctx, x, nil)
		return tools.Outcome{}, err
	}
	place.Tags, x.Began = append(place.Tags, plan.Needs...), c.gate.stamp()
	if began != nil {
		began()
	}
	c.gate.note(ctx, x, nil)
	o := tool.Run(ctx, place, q.Input, plan)
	x.Success, x.Exit, x.Ended = !o.Error, o.Exit, c.gate.stamp()
	if o.Error {
		x.Error = short(o.Text, permissions.MaxReason)
	}
	for i := range o.Artifacts {
		o.Artifacts[i].Step, o.Artifacts[i].Call = x.Step, x.Call
	}
	c.gate.note(ctx, x, o.Artifacts)
	return o, nil
}

// plan is what a call would do, as people are asked about it.
func (c *client) plan(
	ctx context.Context, t *turn, tool tools.Tool, input json.RawMessage,
) (place tools.Workspace, q permissions.Request, plan tools.Plan, err error) {
	if input, err = permissions.CanonicalJSON(input); err != nil {
		return place, q, plan, err
	}
	place = c.place
	granted, err := c.gate.held(ctx, t.session)
	if err != nil {
		return place, q, plan, err
	}
	var bare tools.Plan // without grants
	if len(granted) > 0 {
		bare, _ = tool.Plan(ctx, place, input)
	}
	place.Tags = append(append([]permissions.Tag{}, place.Tags...), granted...)
	if plan, err = tool.Plan(ctx, place, input); err != nil {
		return place, q, plan, fmt.Errorf("%s: %w", tool.Spec().Name, err)
	}
	return place, permissions.Request{
		Kind: permissions.KindTool, Session: t.session, Cwd: place.Workspace, Folder: place.Folder(), Step: t.n,
		SessionTitle: c.titled(), LastPrompt: t.prompt,
		Tool: tool.Spec().Name, Input: input, AffectedPath: plan.AffectedPath, Details: plan.Details, Rows: plan.Was,
		Tags: slices.Concat(plan.Needs, permissions.Missing(bare.Needs, plan.Needs)),
	}, plan, nil
}
