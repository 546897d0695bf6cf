package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	// stopTime is how long an agent may take to end a cancelled turn before its program is killed. An order has to take
	// effect within two seconds.
	stopTime      = 1200 * time.Millisecond
	progressEvery = 20 * time.Second
)

// prompt runs one turn, and tells the person its outcome.
func (a *Agent) prompt(ctx context.Context, t *turn, text string) error {
	a.working(true)
	defer a.working(false)
	said, told := 0, ""
	say := func(text string) error {
		if text == "" {
			return nil
		}
		said++
		told += text + "\n"
		return a.say(ctx, fmt.Sprintf("%s/%d/%d", t.session, t.n, said), text)
	}
	reply, err := a.runTurn(ctx, t, text, say)
	if ctx.Err() != nil {
		return ctx.Err() // the daemon ends: the next start reports the outcome
	}
	ordered := closed(t.over)
	if err := say(t.finalMessage(reply, err, ordered)); err != nil {
		return err
	}
	t.end() // open questions are withdrawn, and closed before the turn's end is reported
	a.waitForQuestions()
	return a.row.change(ctx, func(s *permissions.AgentSession, c *agents.Commit) {
		c.Executions = t.ended(a.stamp())
		switch {
		case ordered:
			a.endTurn(s, c, agents.Interrupted, agents.ReasonStopped)
		case err != nil:
			a.endTurn(s, c, agents.Failed, "agent")
		default:
			a.endTurn(s, c, agents.Done, "")
		}
		if told != "" {
			c.Artifacts = []agents.Artifact{note(agents.ArtifactAssistantMessage, s.ID, t.n, told, a.stamp())}
		}
	})
}

// finalMessage is what is still to be said after a turn, with how it ended.
func (t *turn) finalMessage(reason sdk.StopReason, err error, ordered bool) string {
	said, end := t.transcript.takeUnsent(true), ending(reason, err, ordered, t.transcript.spoke())
	if said == "" || end == "" {
		return said + end
	}
	return said + "\n\n" + end
}

// runTurn starts what is needed, and runs one turn. say tells people what happens meanwhile.
func (a *Agent) runTurn(ctx context.Context, t *turn, text string, say func(string) error) (sdk.StopReason, error) {
	if _, err := a.held(ctx, t.session); err != nil { // after a stop nothing is started either
		return "", err
	}
	brief, done := t.during(ctx)
	defer done()
	s, err := a.ready(brief, t.session)
	if err != nil {
		return "", err
	}
	reason, err := s.ask(ctx, t, text, say)
	if told, is := errors.AsType[*refused](err); is && told.code == codeSignIn {
		a.stopProgram() // another program notices a sign-in by hand
	}
	return reason, err
}

// ask prompts the agent and waits for the end of its turn.
func (s *session) ask(ctx context.Context, t *turn, text string, say func(string) error) (sdk.StopReason, error) {
	if closed(t.over) { // stopped before it was prompted
		return sdk.StopReasonCancelled, nil
	}
	s.setTurn(t)
	defer s.setTurn(nil)
	if err := s.inMode(ctx); err != nil {
		return "", s.why(ctx, err)
	}
	conversation := s.now()
	brief, done := context.WithCancel(ctx)
	defer done()
	came := later(s.process, func() (sdk.PromptResponse, error) {
		return signedIn[sdk.PromptResponse](brief, s.process, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
			SessionId: conversation, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)},
		})
	})
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	over, strayed := t.over, error(nil)
	var late, again <-chan time.Time
	end := func() {
		over, late, again = nil, time.After(stopTime), time.After(stopTime/4)
		s.tell(ctx, sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: conversation})
	}
	for {
		select {
		case r := <-came:
			if strayed != nil {
				return "", strayed
			}
			if r.err != nil {
				return "", s.why(ctx, r.err)
			}
			return r.out.StopReason, nil
		case <-over:
			end()
		case strayed = <-t.forbiddenMode:
			end()
		case <-again: // the first update may be faster than the prompt
			again = time.After(stopTime / 4)
			s.tell(ctx, sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: conversation})
		case <-late:
			s.shutDown()
			return "", cmp.Or(s.run.Left(), errUnresponsive)
		case <-tick.C:
			if err := say(t.transcript.takeUnsent(false)); err != nil {
				return "", err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

var errUnresponsive = errors.New("it did not stop, so its program was ended")

func (c *client) now() sdk.SessionId {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conversation
}

// ending is how a turn ended, if the person would not know.
func ending(reason sdk.StopReason, err error, ordered, spoke bool) string {
	var told *refused
	var mode wrongMode
	switch {
	case errors.Is(err, sandbox.ErrLeft):
		return "My program " + sandbox.Left(err) + " Write, and it is started anew."
	case errors.Is(err, errUnresponsive):
		return "I did not stop when I was told to, so my program was ended. Write, and it is started anew."
	case permissions.CodeOf(err) == permissions.CodeStopped:
		return allStopped
	case ordered:
		return ""
	case errors.As(err, &told) && told.code == codeSignIn:
		return "I cannot go on: " + told.text + "."
	case errors.As(err, &told):
		return "I cannot go on: my program answers: " + told.text
	case errors.As(err, &mode):
		return "I cannot go on: " + string(mode) + "."
	case err != nil:
		return "I cannot go on: " + wire.Plain(err).Error() + ". Write, and it is started anew."
	case reason == sdk.StopReasonMaxTokens:
		return "I stop here: this takes more tokens than I may use. Tell me to go on."
	case reason == sdk.StopReasonMaxTurnRequests:
		return "I stop here: this takes more steps than I may make at once. Tell me to go on."
	case reason == sdk.StopReasonRefusal:
		return "I stop here: I do not want to do that."
	case reason == sdk.StopReasonCancelled:
		return "I stop here: something that I needed was not allowed."
	case !spoke:
		return "I am done."
	}
	return ""
}

const allStopped = "I stop here: everything was stopped, or I alone. I go on when that is resumed and you write again."

// ready returns the program with the conversation of the session of that id, starting both if needed.
func (a *Agent) ready(ctx context.Context, id string) (*session, error) {
	s := a.running.Load()
	if s != nil && !s.alive() {
		a.stopProgram()
		s = nil
	}
	if s == nil {
		started, err := a.o.Program.start(ctx, a)
		if err != nil {
			return nil, a.startFailed(ctx, err)
		}
		s = started
		a.running.Store(s)
	}
	was, err := a.row.step()
	if err != nil {
		return nil, err
	}
	if was.Conversation != "" && s.now() == was.Conversation {
		return s, nil
	}
	limited, done := context.WithTimeout(ctx, a.o.Program.patience())
	defer done()
	begun, err := s.beginConversation(limited, a.o.Program.conversation(), was.Conversation)
	if err != nil {
		err = a.startFailed(ctx, s.why(ctx, err))
		a.stopProgram() // its state is unknown, so the next message gets a new one
		return nil, err
	}
	if begun == was.Conversation {
		return s, nil
	}
	if was.Conversation != "" { // permissions for the session were for the lost conversation
		if err := a.approvals.EndSession(ctx, a.caller(), id); err != nil {
			return nil, err
		}
	}
	was.Conversation = begun
	return s, a.row.change(ctx, func(row *permissions.AgentSession, _ *agents.Commit) { row.Step = was.encode() })
}

// beginConversation begins a conversation, or continues one if the agent can.
func (s *session) beginConversation(ctx context.Context, how sdk.NewSessionRequest, before sdk.SessionId) (sdk.SessionId, error) {
	id, m := before, modes{}
	if before != "" && s.capabilities.LoadSession {
		loaded, err := signedIn[sdk.LoadSessionResponse](ctx, s.process, sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{
			SessionId: before, Cwd: how.Cwd, McpServers: how.McpServers,
		})
		if err != nil && (ctx.Err() != nil || !s.alive() || needsSignIn(err)) {
			return "", err
		}
		if err != nil { // it no longer has the conversation
			s.log.Debug("load conversation: starting a new one", "err", err)
			id = ""
		}
		m = modesOf(loaded.Modes, loaded.ConfigOptions)
	} else {
		id = ""
	}
	if id == "" {
		begun, err := signedIn[sdk.NewSessionResponse](ctx, s.process, sdk.AgentMethodSessionNew, how)
		if err != nil {
			return "", err
		}
		id, m = begun.SessionId, modesOf(begun.Modes, begun.ConfigOptions)
	}
	if id == "" {
		return "", errors.New("it gives its session no id")
	}
	return id, s.requireMode(ctx, id, m)
}

// startFailed is why the agent cannot be started, with what to do about it.
func (a *Agent) startFailed(ctx context.Context, err error) error {
	var told *refused
	var mode wrongMode
	switch {
	case errors.Is(err, sandbox.ErrLeft):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &told) && told.code == codeSignIn:
		return told
	case errors.As(err, &mode):
		return mode
	}
	return fmt.Errorf("%w. It reaches its workspace, and what read, write, network and env of %q in the configuration name: "+
		"add what it lacks there, and start daycared again", err, a.o.Name)
}

// askingModes are the modes in which known agents ask before they act, then those in which they only plan; the first
// that an agent offers is used. "default" is that of claude-agent-acp and gemini --acp, "read-only" that of codex-acp.
var askingModes = []string{"default", "read-only", "plan"}

// Asks reports whether known agents ask before they act in this mode.
func Asks(mode string) bool { return slices.Contains(askingModes, mode) }

// modes are those that an agent offers for a conversation. The zero value means none.
type modes struct {
	now     string
	offered []string
	option  sdk.SessionConfigId // the option's id; empty: a mode of the protocol
}

// modesOf reads the modes of an agent's answer, from either of two places.
func modesOf(state *sdk.SessionModeState, options []sdk.SessionConfigOption) (m modes) {
	if state != nil {
		m.now = string(state.CurrentModeId)
		m.offered = wire.Map(state.AvailableModes, func(mode sdk.SessionMode) string { return string(mode.Id) })
		return m
	}
	o := modeOption(options)
	if o == nil {
		return m
	}
	m.now, m.option = string(o.CurrentValue), o.Id
	all := wire.Value(o.Options.Ungrouped)
	for _, group := range wire.Value(o.Options.Grouped) {
		all = append(all, group.Options...)
	}
	m.offered = wire.Map(all, func(one sdk.SessionConfigSelectOption) string { return string(one.Value) })
	return m
}

func modeOption(options []sdk.SessionConfigOption) *sdk.SessionConfigOptionSelect {
	for _, o := range options {
		if s := o.Select; s != nil && (s.Category != nil && *s.Category == sdk.SessionConfigOptionCategoryMode || s.Id == "mode") {
			return s
		}
	}
	return nil
}

// wanted is the required mode: the configured one, else the first known to ask, else the initial one; empty without modes.
func (m modes) wanted(configured string) (string, error) {
	switch {
	case configured != "" && len(m.offered) == 0:
		return "", wrongMode(fmt.Sprintf("it offers no modes; leave mode: %s out of its entry in the configuration", configured))
	case configured != "" && !slices.Contains(m.offered, configured):
		return "", wrongMode(fmt.Sprintf("it offers no mode %q; write one of these as mode of its entry in the configuration: %s",
			configured, strings.Join(m.offered, ", ")))
	case configured != "":
		return configured, nil
	}
	for _, mode := range askingModes {
		if slices.Contains(m.offered, mode) {
			return mode, nil
		}
	}
	return m.now, nil
}

// wrongMode is why an agent is not prompted, or its turn ended: it is in a mode in which it may act without asking.
type wrongMode string

func (e wrongMode) Error() string { return string(e) }

// requireMode sets the required mode for the conversation.
func (s *session) requireMode(ctx context.Context, id sdk.SessionId, m modes) error {
	want, err := m.wanted(s.mode)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.conversation, s.modes, s.want, s.title = id, m, want, ""
	s.mu.Unlock()
	if m.now == want {
		return nil
	}
	return s.setMode(ctx)
}

// inMode fails if the agent left the permitted modes and does not return.
func (s *session) inMode(ctx context.Context) error {
	s.mu.Lock()
	strays := s.inForbiddenMode()
	s.mu.Unlock()
	if !strays {
		return nil
	}
	return s.setMode(ctx)
}

// setMode sets the required mode, and fails if the agent stays in another.
func (s *session) setMode(ctx context.Context) (err error) {
	s.mu.Lock()
	id, m, want := s.conversation, s.modes, s.want
	s.mu.Unlock()
	if m.option == "" {
		_, err = signedIn[sdk.SetSessionModeResponse](ctx, s.process, sdk.AgentMethodSessionSetMode,
			sdk.SetSessionModeRequest{SessionId: id, ModeId: sdk.SessionModeId(want)})
	} else {
		var out sdk.SetSessionConfigOptionResponse
		out, err = signedIn[sdk.SetSessionConfigOptionResponse](ctx, s.process, sdk.AgentMethodSessionSetConfigOption,
			sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{
				SessionId: id, ConfigId: m.option, Value: sdk.SessionConfigValueId(want),
			}})
		if now := modesOf(nil, out.ConfigOptions).now; err == nil && now != want {
			return wrongMode(fmt.Sprintf("it is in the mode %q, and does not change to %q", now, want))
		}
	}
	if told, is := errors.AsType[*sdk.RequestError](err); is && !needsSignIn(err) {
		return wrongMode(fmt.Sprintf("it is in the mode %q, and does not change to %q: %s", m.now, want, told.Message))
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.modes.now == m.now { // else it has reported another meanwhile
		s.modes.now = want
	}
	if s.inForbiddenMode() {
		return wrongMode(fmt.Sprintf("it is in the mode %q, and does not change to %q", s.modes.now, want))
	}
	return nil
}

// inForbiddenMode reports whether the agent is in a mode in which it may act without asking. The caller holds the lock.
func (c *client) inForbiddenMode() bool {
	return c.modes.now != c.want && !slices.Contains(askingModes, c.modes.now)
}

// titled is the conversation's title, as the agent has last said.
func (c *client) titled() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.title
}

// watch records the mode and the title of an update. If the agent leaves the permitted modes, its turn ends.
func (c *client) watch(note sdk.SessionNotification) {
	now := ""
	if u := note.Update.CurrentModeUpdate; u != nil {
		now = string(u.CurrentModeId)
	} else if u := note.Update.ConfigOptionUpdate; u != nil {
		now = modesOf(nil, u.ConfigOptions).now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := note.Update.SessionInfoUpdate; u != nil && u.Title != nil && note.SessionId == c.conversation {
		c.title = *u.Title
	}
	if now == "" || note.SessionId != c.conversation {
		return
	}
	c.modes.now = now
	if c.turn != nil && c.inForbiddenMode() {
		select {
		case c.turn.forbiddenMode <- wrongMode(fmt.Sprintf("it went into the mode %q by itself, where it may act without asking", now)):
		default: // the turn is ending already
		}
	}
}
