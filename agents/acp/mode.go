package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/internal/wire"
)

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
		m.offered = wire.Each(state.AvailableModes, func(mode sdk.SessionMode) string { return string(mode.Id) })
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
	m.offered = wire.Each(all, func(one sdk.SessionConfigSelectOption) string { return string(one.Value) })
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

// wanted is the required mode: the configured one, else the first known to ask, else the initial one. It is empty for
// an agent without modes.
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

// begins sets the required mode for the conversation.
func (s *session) begins(ctx context.Context, id sdk.SessionId, m modes) error {
	want, err := m.wanted(s.mode)
	if err != nil {
		return err
	}
	s.mutex().Lock()
	s.conversation, s.modes, s.want = id, m, want
	s.mutex().Unlock()
	if m.now == want {
		return nil
	}
	return s.setMode(ctx)
}

// inMode fails if the agent left the permitted modes and does not return.
func (s *session) inMode(ctx context.Context) error {
	s.mutex().Lock()
	strays := s.inForbiddenMode()
	s.mutex().Unlock()
	if !strays {
		return nil
	}
	return s.setMode(ctx)
}

// setMode sets the required mode, and fails if the agent stays in another.
func (s *session) setMode(ctx context.Context) (err error) {
	s.mutex().Lock()
	id, m, want := s.conversation, s.modes, s.want
	s.mutex().Unlock()
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
	if told, is := errors.AsType[*sdk.RequestError](err); is && !unsigned(err) {
		return wrongMode(fmt.Sprintf("it is in the mode %q, and does not change to %q: %s", m.now, want, told.Message))
	}
	if err != nil {
		return err
	}
	s.mutex().Lock()
	defer s.mutex().Unlock()
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

// watch records the mode of an update. If the agent leaves the permitted modes, its turn ends.
func (c *client) watch(note sdk.SessionNotification) {
	now := ""
	if u := note.Update.CurrentModeUpdate; u != nil {
		now = string(u.CurrentModeId)
	} else if u := note.Update.ConfigOptionUpdate; u != nil {
		now = modesOf(nil, u.ConfigOptions).now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now == "" || note.SessionId != c.conversation {
		return
	}
	c.modes.now = now
	if c.turn != nil && c.inForbiddenMode() {
		select {
		case c.turn.strayed <- wrongMode(fmt.Sprintf("it went into the mode %q by itself, where it may act without asking", now)):
		default: // the turn is ending already
		}
	}
}
