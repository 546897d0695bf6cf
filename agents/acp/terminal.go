package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// terminal is a command that runs for the agent. Its output is available once it has ended.
type terminal struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once it has ended and the fields below are set
	output string
	cut    bool
	exit   *int
}

const (
	maxTerminals = 32   // concurrent terminals of an agent
	commandTime  = 3600 // time limit of a command in seconds
	usualOutput  = 64 << 10
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// createTerminal is terminal/create. It answers once the command runs, which may be after somebody allowed it.
func (c *client) createTerminal(ctx context.Context, params json.RawMessage) (any, error) {
	in, err := decode[sdk.CreateTerminalRequest](params)
	if err != nil {
		return nil, err
	}
	t, err := c.currentTurn(in.SessionId)
	if err != nil {
		return nil, err
	}
	input, err := c.command(in)
	if err != nil {
		return nil, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	// The command ends with the turn or its program, not with the call.
	life, cancel := t.during(context.WithoutCancel(ctx))
	term := &terminal{cancel: cancel, done: make(chan struct{})}
	id, err := c.open(term)
	if err != nil {
		cancel()
		return nil, err
	}
	runs, failed := make(chan struct{}), make(chan error, 1)
	c.jobs.Go(func() {
		defer cancel()
		o, err := c.use(life, t, c.tools["run_command"], input, func() { close(runs) })
		term.take(o, in.OutputByteLimit)
		close(term.done)
		failed <- err
	})
	select {
	case <-runs:
		return sdk.CreateTerminalResponse{TerminalId: id}, nil
	case err = <-failed:
	case <-ctx.Done(): // nobody would get the answer, so nothing is run
		cancel()
		<-term.done
		err = ctx.Err()
	}
	c.forget(id)
	return nil, err
}

// command is the input of run_command. A command without arguments is a whole shell line; words are quoted.
func (c *client) command(in sdk.CreateTerminalRequest) (json.RawMessage, error) {
	line := in.Command
	if strings.TrimSpace(line) == "" {
		return nil, errors.New("there is no command")
	}
	if len(in.Args) > 0 {
		line = strings.Join(wire.Map(append([]string{in.Command}, in.Args...), acts.Quote), " ")
	}
	var sets []string
	for _, v := range in.Env {
		if !variable.MatchString(v.Name) {
			return nil, fmt.Errorf("%q is no name of a variable", v.Name)
		}
		sets = append(sets, "export "+v.Name+"="+acts.Quote(v.Value))
	}
	if len(sets) > 0 {
		line = strings.Join(sets, "\n") + "\n" + line
	}
	input := map[string]any{"command": line, "timeout": commandTime, "write": []string{"."}}
	if cwd := wire.Value(in.Cwd); cwd != "" && cwd != c.place.Workspace {
		input["cwd"] = cwd
	}
	if slices.Contains(c.place.Tags, permissions.Network) { // the agent has it too
		input["network"] = true
	}
	return marshal(input)
}

// take keeps the end of a command's output, of at most so many bytes.
func (t *terminal) take(o tools.Outcome, most *int) {
	var text strings.Builder
	for _, a := range o.Artifacts {
		var stream struct {
			Text    string `json:"text"`
			Missing int    `json:"missing"`
		}
		if a.Type != agents.ArtifactStdout && a.Type != agents.ArtifactStderr || json.Unmarshal(a.Content, &stream) != nil {
			continue
		}
		text.WriteString(stream.Text)
		t.cut = t.cut || stream.Missing > 0
	}
	t.output, t.exit = text.String(), o.Exit
	if t.exit == nil && o.Error { // it never ran
		t.output += o.Text
	}
	limit := usualOutput
	if most != nil {
		limit = max(0, min(*most, 2*usualOutput))
	}
	if over := len(t.output) - limit; over > 0 {
		for over < len(t.output) && !utf8.RuneStart(t.output[over]) {
			over++
		}
		t.output, t.cut = t.output[over:], true
	}
}

func (t *terminal) status() *sdk.TerminalExitStatus {
	s := &sdk.TerminalExitStatus{ExitCode: t.exit}
	if t.exit == nil || *t.exit < 0 || *t.exit == 128+9 { // killed
		killed := "SIGKILL"
		s.ExitCode, s.Signal = nil, &killed
	}
	return s
}

func (c *client) open(t *terminal) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.terminals) == maxTerminals {
		return "", fmt.Errorf("there are %d terminals; release one first", maxTerminals)
	}
	c.opened++
	id = "terminal-" + strconv.Itoa(c.opened)
	if c.terminals == nil {
		c.terminals = map[string]*terminal{}
	}
	c.terminals[id] = t
	return id, nil
}

func (c *client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.terminals, id)
}

// onTerminal is a method about the terminal that its parameters name. Those of an earlier turn remain readable.
func onTerminal(do func(*client, context.Context, *terminal, string) (any, error)) method {
	return func(c *client, ctx context.Context, params json.RawMessage) (any, error) {
		in, err := decode[sdk.TerminalOutputRequest](params)
		if err == nil {
			_, err = c.currentTurn(in.SessionId)
		}
		if err != nil && !errors.Is(err, errOver) {
			return nil, err
		}
		c.mu.Lock()
		t, ok := c.terminals[in.TerminalId]
		c.mu.Unlock()
		if !ok {
			return nil, sdk.NewInvalidParams(map[string]any{"error": "there is no such terminal"})
		}
		return do(c, ctx, t, in.TerminalId)
	}
}

func (*client) terminalOutput(_ context.Context, t *terminal, _ string) (any, error) {
	if !closed(t.done) {
		return sdk.TerminalOutputResponse{}, nil
	}
	return sdk.TerminalOutputResponse{Output: t.output, Truncated: t.cut, ExitStatus: t.status()}, nil
}

func (*client) waitForExit(ctx context.Context, t *terminal, _ string) (any, error) {
	select {
	case <-t.done:
		s := t.status()
		return sdk.WaitForTerminalExitResponse{ExitCode: s.ExitCode, Signal: s.Signal}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// killTerminal is terminal/kill: the output stays.
func (*client) killTerminal(_ context.Context, t *terminal, _ string) (any, error) {
	t.cancel()
	return sdk.KillTerminalResponse{}, nil
}

func (c *client) releaseTerminal(_ context.Context, t *terminal, id string) (any, error) {
	t.cancel()
	c.forget(id)
	return sdk.ReleaseTerminalResponse{}, nil
}

// shown is what people see of a terminal: the end of its output.
func (c *client) shown(id string) string {
	c.mu.Lock()
	t, ok := c.terminals[id]
	c.mu.Unlock()
	switch {
	case !ok:
		return "(it is gone)"
	case !closed(t.done):
		return "(it runs)"
	}
	text := t.output
	if over := len(text) - maxShown/2; over > 0 {
		text = "… " + strings.ToValidUTF8(text[over:], "")
	}
	return text
}

func (c *client) readFile(ctx context.Context, params json.RawMessage) (any, error) {
	text, err := file(ctx, c, params, c.read, func(in sdk.ReadTextFileRequest) (sdk.SessionId, map[string]any) {
		input := map[string]any{"path": in.Path}
		if in.Line != nil {
			input["offset"] = *in.Line
		}
		if in.Limit != nil {
			input["limit"] = *in.Limit
		}
		return in.SessionId, input
	})
	return sdk.ReadTextFileResponse{Content: text}, err
}

func (c *client) writeFile(ctx context.Context, params json.RawMessage) (any, error) {
	_, err := file(ctx, c, params, c.tools["write_file"], func(in sdk.WriteTextFileRequest) (sdk.SessionId, map[string]any) {
		return in.SessionId, map[string]any{"path": in.Path, "content": in.Content}
	})
	return sdk.WriteTextFileResponse{}, err
}

// file answers a call about a file with one of our tools; of returns its session and the tool's input.
func file[T any](
	ctx context.Context, c *client, params json.RawMessage, tool tools.Tool, of func(T) (sdk.SessionId, map[string]any),
) (string, error) {
	in, err := decode[T](params)
	if err != nil {
		return "", err
	}
	session, input := of(in)
	t, err := c.currentTurn(session)
	if err != nil {
		return "", err
	}
	ctx, done := t.during(ctx)
	defer done()
	text, err := marshal(input)
	if err != nil {
		return "", err
	}
	o, err := c.use(ctx, t, tool, text, nil)
	if err == nil && o.Error {
		err = errors.New(o.Text)
	}
	return o.Text, err
}

func marshal(v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return permissions.CanonicalJSON(text)
}
