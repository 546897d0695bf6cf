// Package acptest is an agent that speaks the Agent Client Protocol on its standard streams and executes its prompts,
// for tests that execute their own binary again.
package acptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// Name is the first argument of the agent's process.
const Name = "acp-agent"

// Main must be called first by the test binary. It returns if this process is not the agent.
//
// The arguments after [Name] select the agent's behaviour: "forgets" loads no conversation, "newer" speaks another
// version of the protocol, "locked" requires signing in with the method "key", "shy" says so only when prompted, "mute"
// never answers initialize, "broken" exits at once; "modes" offers the modes auto, default, plan and yolo and begins in
// auto, "options" has them as an option, "stuck" refuses to leave auto.
//
// Each line of a prompt is a command:
//
//	say TEXT                 say it
//	call METHOD JSON         call the client and say the result; $S is the session
//	calls METHOD JSON        the same, without waiting
//	note METHOD JSON         notify the client
//	flood N                  say a thousand characters N times
//	wait                     wait until the turn is cancelled
//	deaf                     wait until the end, whatever the client says, also while the lines above are done
//	crash                    exit in the middle
//	remember                 say the session and how many prompts it has had
//	stderr TEXT              write it there
//	stop REASON              end the turn with this reason
//	fail TEXT                answer the prompt with an error
//	expire                   require signing in again
//	mode NAME                enter this mode
func Main() {
	if len(os.Args) < 2 || os.Args[1] != Name {
		return
	}
	like := os.Args[2:]
	if slices.Contains(like, "broken") {
		fmt.Fprintln(os.Stderr, "no key is set")
		os.Exit(3)
	}
	a := &agent{like: like, prompts: map[sdk.SessionId]int{}}
	ready := make(chan struct{})
	conn := sdk.NewConnection(func(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
		<-ready
		return a.answer(ctx, method, params)
	}, os.Stdout, os.Stdin)
	conn.SetLogger(slog.New(slog.DiscardHandler))
	a.conn = conn
	close(ready)
	<-conn.Done()
	os.Exit(0)
}

type agent struct {
	like []string
	conn *sdk.Connection

	mu      sync.Mutex
	signed  int // how many times
	expired bool
	mode    string
	prompts map[sdk.SessionId]int
	cancel  chan struct{} // of the current turn
	jobs    sync.WaitGroup
}

func (a *agent) is(what string) bool { return slices.Contains(a.like, what) }

func (a *agent) answer(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
	switch method {
	case sdk.AgentMethodInitialize:
		if a.is("mute") {
			<-ctx.Done()
		}
		version := sdk.ProtocolVersion(sdk.ProtocolVersionNumber)
		if a.is("newer") {
			version = 2
		}
		return sdk.InitializeResponse{
			ProtocolVersion: version, AgentCapabilities: sdk.AgentCapabilities{LoadSession: !a.is("forgets")},
			AuthMethods: ways(),
		}, nil
	case sdk.AgentMethodAuthenticate:
		return a.signIn(params)
	case sdk.AgentMethodSessionNew:
		if a.is("locked") && !a.isSigned() {
			return nil, sdk.NewAuthRequired(nil)
		}
		id := sdk.SessionId("conversation-" + strconv.Itoa(os.Getpid()))
		a.mu.Lock()
		defer a.mu.Unlock()
		for n := 2; a.prompts[id] > 0; n++ {
			id = sdk.SessionId(fmt.Sprintf("conversation-%d-%d", os.Getpid(), n))
		}
		a.prompts[id] = 1
		a.mode = "auto"
		state, options := a.modes()
		return sdk.NewSessionResponse{SessionId: id, Modes: state, ConfigOptions: options}, nil
	case sdk.AgentMethodSessionSetMode, sdk.AgentMethodSessionSetConfigOption:
		return a.setMode(ctx, params)
	case sdk.AgentMethodSessionLoad:
		return a.load(ctx, params)
	case sdk.AgentMethodSessionPrompt:
		return a.prompt(ctx, params)
	case sdk.AgentMethodSessionCancel:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.cancel != nil {
			close(a.cancel)
			a.cancel = nil
		}
		return nil, nil
	}
	return nil, sdk.NewMethodNotFound(method)
}

// ways are its methods of signing in, one of each kind.
func ways() []sdk.AuthMethod {
	about := "opens a\nbrowser"
	return []sdk.AuthMethod{
		{Agent: &sdk.AuthMethodAgent{Id: "login", Name: "Log in", Description: &about}},
		{Agent: &sdk.AuthMethodAgent{Id: "key", Name: "key"}},
		{EnvVar: &sdk.AuthMethodEnvVarInline{Id: "env", Name: "API key", Vars: []sdk.AuthEnvVar{{Name: "AGENT_KEY"}, {Name: "AGENT_URL"}}}},
		{Terminal: &sdk.AuthMethodTerminalInline{Id: "tui", Name: "In a terminal", Args: []string{"--sign in"}}},
	}
}

func (a *agent) isSigned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.signed > 0 && !a.expired
}

// signIn signs it in with the one method that needs no person.
func (a *agent) signIn(params json.RawMessage) (any, *sdk.RequestError) {
	var in sdk.AuthenticateRequest
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, sdk.NewInvalidParams(err.Error())
	}
	if in.MethodId != "key" {
		return nil, &sdk.RequestError{Code: -32603, Message: "there is no browser"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.signed, a.expired = a.signed+1, false
	return sdk.AuthenticateResponse{}, nil
}

// load restores a conversation of another process from a file, and replays it.
func (a *agent) load(ctx context.Context, params json.RawMessage) (any, *sdk.RequestError) {
	var in sdk.LoadSessionRequest
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, sdk.NewInvalidParams(err.Error())
	}
	if a.is("locked") && !a.isSigned() {
		return nil, sdk.NewAuthRequired(nil)
	}
	text, err := os.ReadFile(string(in.SessionId))
	if err != nil {
		return nil, sdk.NewInvalidParams("there is no such session")
	}
	n, _ := strconv.Atoi(string(text))
	a.mu.Lock()
	a.prompts[in.SessionId] = n
	a.mu.Unlock()
	_ = a.update(ctx, in.SessionId, sdk.UpdateAgentMessageText("what was said long ago"))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = "auto"
	state, options := a.modes()
	return sdk.LoadSessionResponse{Modes: state, ConfigOptions: options}, nil
}

// modes are the offered modes, as modes or as an option. The caller holds the lock.
func (a *agent) modes() (state *sdk.SessionModeState, options []sdk.SessionConfigOption) {
	offered := []string{"auto", "plan", "yolo", "default"}
	if a.is("modes") {
		state = &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(a.mode)}
		for _, m := range offered {
			state.AvailableModes = append(state.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m), Name: m})
		}
	}
	if a.is("options") {
		all := sdk.SessionConfigSelectOptionsUngrouped{}
		for _, m := range offered {
			all = append(all, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m), Name: m})
		}
		options = []sdk.SessionConfigOption{{Select: &sdk.SessionConfigOptionSelect{
			Id: "mode", Name: "Mode", Type: "select", CurrentValue: sdk.SessionConfigValueId(a.mode),
			Options: sdk.SessionConfigSelectOptions{Ungrouped: &all},
		}}}
	}
	return state, options
}

func (a *agent) setMode(ctx context.Context, params json.RawMessage) (any, *sdk.RequestError) {
	var in struct {
		Session sdk.SessionId `json:"sessionId"`
		Mode    string        `json:"modeId"`
		Value   string        `json:"value"`
	}
	if err := json.Unmarshal(params, &in); err != nil || a.is("stuck") {
		return nil, &sdk.RequestError{Code: -32603, Message: "an administrator has fixed the mode"}
	}
	out := a.enter(ctx, in.Session, in.Mode+in.Value)
	if in.Value == "" {
		return sdk.SetSessionModeResponse{}, nil
	}
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: out}, nil
}

// enter enters a mode and reports it.
func (a *agent) enter(ctx context.Context, id sdk.SessionId, mode string) []sdk.SessionConfigOption {
	a.mu.Lock()
	a.mode = mode
	_, options := a.modes()
	a.mu.Unlock()
	u := sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(mode)}}
	if options != nil {
		u = sdk.SessionUpdate{ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: options}}
	}
	_ = a.update(ctx, id, u)
	return options
}

func (a *agent) update(ctx context.Context, id sdk.SessionId, u sdk.SessionUpdate) error {
	return a.conn.SendNotification(ctx, sdk.ClientMethodSessionUpdate, sdk.SessionNotification{SessionId: id, Update: u})
}

func (a *agent) prompt(ctx context.Context, params json.RawMessage) (any, *sdk.RequestError) {
	var in sdk.PromptRequest
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, sdk.NewInvalidParams(err.Error())
	}
	if a.is("shy") && !a.isSigned() {
		return nil, sdk.NewAuthRequired(nil)
	}
	cancel := make(chan struct{})
	a.mu.Lock()
	a.prompts[in.SessionId]++
	_ = os.WriteFile(string(in.SessionId), []byte(strconv.Itoa(a.prompts[in.SessionId])), 0o600)
	a.cancel = cancel
	a.mu.Unlock()
	t := &task{agent: a, id: in.SessionId, cancel: cancel, reason: sdk.StopReasonEndTurn}
	defer a.jobs.Wait()
	text := in.Prompt[0].Text.Text
	if slices.Contains(strings.Fields(text), "deaf") {
		cancel = nil
	}
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := t.do(ctx, verb, rest); err != nil {
			return nil, &sdk.RequestError{Code: -32603, Message: err.Error()}
		}
		select {
		case <-cancel:
			return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
		default:
		}
	}
	a.jobs.Wait()
	return sdk.PromptResponse{StopReason: t.reason}, nil
}

// task is one prompt.
type task struct {
	*agent
	id     sdk.SessionId
	cancel chan struct{}
	reason sdk.StopReason
}

func (t *task) say(ctx context.Context, text string) error {
	return t.update(ctx, t.id, sdk.UpdateAgentMessageText(text))
}

func (t *task) do(ctx context.Context, verb, rest string) error {
	switch verb {
	case "say":
		return t.say(ctx, rest+"\n")
	case "call":
		return t.call(ctx, rest)
	case "calls":
		t.jobs.Go(func() { _ = t.call(ctx, rest) })
	case "note":
		method, params := t.method(rest)
		return t.conn.SendNotification(ctx, method, params)
	case "flood":
		n, err := strconv.Atoi(rest)
		for range n {
			err = errors.Join(err, t.say(ctx, strings.Repeat("x", 999)+" "))
		}
		return err
	case "wait":
		<-t.cancel
	case "deaf":
		<-ctx.Done()
	case "crash":
		os.Exit(4)
	case "remember":
		t.mu.Lock()
		n, mode := t.prompts[t.id], t.mode
		t.mu.Unlock()
		if t.is("modes") || t.is("options") {
			return t.say(ctx, fmt.Sprintf("prompt %d in %s\n", n-1, mode))
		}
		return t.say(ctx, fmt.Sprintf("prompt %d of %s\n", n-1, t.id))
	case "expire":
		t.mu.Lock()
		t.expired = true
		n := t.signed
		t.mu.Unlock()
		return t.say(ctx, fmt.Sprintf("I was signed in %d times\n", n))
	case "mode":
		t.enter(ctx, t.id, rest)
	case "stderr":
		fmt.Fprintln(os.Stderr, rest)
	case "stop":
		t.reason = sdk.StopReason(rest)
	case "fail":
		return errors.New(rest)
	default:
		return t.say(ctx, "I heard: "+strings.TrimSpace(verb+" "+rest)+"\n")
	}
	return nil
}

func (t *task) method(rest string) (string, json.RawMessage) {
	method, params, _ := strings.Cut(rest, " ")
	return method, json.RawMessage(strings.ReplaceAll(params, "$S", string(t.id)))
}

// call calls the client, and says the result.
func (t *task) call(ctx context.Context, rest string) error {
	method, params := t.method(rest)
	out, err := sdk.SendRequest[json.RawMessage](t.conn, ctx, method, params)
	var told *sdk.RequestError
	if errors.As(err, &told) {
		return t.say(ctx, fmt.Sprintf("%s fails: %d %s\n", method, told.Code, told.Message))
	}
	return t.say(ctx, fmt.Sprintf("%s gives %s\n", method, out))
}
