package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions/edits"
)

// Limits of what is kept of one turn.
const (
	maxUnsaid = 16 << 10 // unsaid bytes; they fit one message
	maxSteps  = 40       // action lines between two texts
	maxEntry  = 200      // bytes per line of a plan
	maxShown  = 4 << 10  // bytes per diff or terminal
	maxCalls  = 500      // tool calls remembered
	maxKept   = 8 << 20  // bytes of these
)

// transcript collects an agent's output of a turn until it is sent. It is safe for concurrent use.
type transcript struct {
	mu      sync.Mutex
	parts   []part
	size    int    // bytes of parts
	left    int    // bytes left out
	plan    string // to be sent
	last    string // the last plan, sent or not
	calls   map[sdk.ToolCallId]toolCall
	order   []sdk.ToolCallId // of calls, oldest first
	kept    int              // approximate bytes of calls
	hasText bool             // it said something
}

// part is a paragraph: the agent's text, or lines about its actions.
type part struct {
	text  string
	steps int // number of lines; 0: text that may continue
}

func newTranscript() *transcript { return &transcript{calls: map[sdk.ToolCallId]toolCall{}} }

// take adds an update. input is the raw input of a tool call; shown returns what a terminal shows.
func (t *transcript) take(u sdk.SessionUpdate, input []byte, shown func(string) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case u.AgentMessageChunk != nil:
		t.addText(block(u.AgentMessageChunk.Content))
	case u.Plan != nil:
		t.setPlan(u.Plan.Entries)
	case u.ToolCall != nil:
		c := u.ToolCall
		t.addCall(toolCall{
			ID: c.ToolCallId, Title: c.Title, Kind: c.Kind, Status: c.Status, Input: input, Content: c.Content, Locations: c.Locations,
		}, shown)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		t.addCall(toolCall{
			ID: c.ToolCallId, Title: wire.Value(c.Title), Kind: wire.Value(c.Kind), Status: wire.Value(c.Status), Input: input,
			Content: c.Content, Locations: c.Locations,
		}, shown)
	}
}

func (t *transcript) addText(text string) {
	if text == "" {
		return
	}
	t.hasText = true
	if last := len(t.parts) - 1; last < 0 || t.parts[last].steps > 0 {
		t.parts = append(t.parts, part{})
	}
	t.add(text)
}

// add appends to the last part as far as there is room.
func (t *transcript) add(text string) {
	room := max(0, maxUnsaid-t.size)
	if len(text) > room {
		t.left += len(text) - room
		text = text[:room]
	}
	t.parts[len(t.parts)-1].text += text
	t.size += len(text)
}

func (t *transcript) step(line string) {
	last := len(t.parts) - 1
	if last < 0 || t.parts[last].steps == 0 {
		t.parts = append(t.parts, part{steps: 1})
		t.add(line)
		return
	}
	switch t.parts[last].steps++; {
	case t.parts[last].steps <= maxSteps:
		t.add("\n" + line)
	case t.parts[last].steps == maxSteps+1:
		t.add("\n· …")
	}
}

// setPlan replaces the plan; only the last one is sent.
func (t *transcript) setPlan(entries []sdk.PlanEntry) {
	marks := map[sdk.PlanEntryStatus]string{
		sdk.PlanEntryStatusCompleted: "[x]", sdk.PlanEntryStatusInProgress: "[>]",
	}
	lines := []string{"Plan:"}
	for i, e := range entries {
		if i == maxSteps {
			lines = append(lines, fmt.Sprintf("… and %d more", len(entries)-i))
			break
		}
		lines = append(lines, cmp.Or(marks[e.Status], "[ ]")+" "+short(oneLine(e.Content), maxEntry))
	}
	t.plan = strings.Join(lines, "\n")
	t.last = strings.Join(lines[1:], "\n")
}

// withPlan is a call with its plan in the input, if it asks to leave the mode in which the agent plans: the plan that the call shows, or
// else the last one that the agent reported.
func (t *transcript) withPlan(c toolCall) toolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Kind != sdk.ToolKindSwitchMode || c.hasInput() {
		return c
	}
	plan := t.last
	for _, part := range c.Content {
		if part.Content != nil && part.Content.Content.Text != nil {
			plan = part.Content.Content.Text.Text
			break
		}
	}
	if strings.TrimSpace(plan) == "" {
		return c
	}
	input, err := json.Marshal(map[string]string{"plan": strings.ToValidUTF8(plan, "\uFFFD")})
	if err == nil {
		c.Input = input
	}
	return c
}

// addCall adds a tool call's update, with a line when it starts, when it fails, and with what it changed or printed when it is done.
func (t *transcript) addCall(c toolCall, shown func(string) string) {
	before, known := t.calls[c.ID]
	c = c.mergedInto(before)
	t.remember(c)
	if !known {
		t.step("· " + name(c))
	}
	if before.Status == c.Status {
		return
	}
	switch c.Status {
	case sdk.ToolCallStatusFailed:
		t.step("· failed: " + name(c))
	case sdk.ToolCallStatusCompleted:
		for _, one := range c.Content {
			if one.Diff != nil || one.Terminal != nil {
				t.step(short(content(one, shown), maxShown))
			}
		}
	}
}

// remember keeps a call for later updates. The oldest are dropped.
func (t *transcript) remember(c toolCall) {
	if old, known := t.calls[c.ID]; known {
		t.kept -= old.size()
	} else {
		t.order = append(t.order, c.ID)
	}
	t.calls[c.ID] = c
	t.kept += c.size()
	for len(t.order) > 1 && (len(t.order) > maxCalls || t.kept > maxKept) {
		t.kept -= t.calls[t.order[0]].size()
		delete(t.calls, t.order[0])
		t.order = slices.Delete(t.order, 0, 1)
	}
}

func (c toolCall) size() int {
	n := len(c.ID) + len(c.Title) + len(c.Input)
	for _, one := range c.Content {
		switch {
		case one.Diff != nil:
			n += len(wire.Value(one.Diff.OldText)) + len(one.Diff.NewText)
		case one.Content != nil:
			n += len(block(one.Content.Content))
		}
	}
	for _, at := range c.Locations {
		n += len(at.Path)
	}
	return n
}

// known is a call merged with its earlier updates.
func (t *transcript) known(c toolCall) toolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.mergedInto(t.calls[c.ID])
}

// takeUnsent removes and returns what is to be sent now. Text that may continue stays, unless all.
func (t *transcript) takeUnsent(all bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var texts []string
	if t.plan != "" {
		texts, t.plan = append(texts, t.plan), ""
	}
	var stays []part
	if last := len(t.parts) - 1; !all && last >= 0 && t.parts[last].steps == 0 {
		stays = []part{t.parts[last]}
		t.parts = t.parts[:last]
	}
	for _, p := range t.parts {
		if text := strings.TrimSpace(strings.ToValidUTF8(p.text, "\uFFFD")); text != "" {
			texts = append(texts, text)
		}
	}
	if t.left > 0 {
		texts = append(texts, fmt.Sprintf("[%d more bytes are left out here]", t.left))
	}
	t.parts, t.size, t.left = stays, 0, 0
	for _, p := range stays {
		t.size += len(p.text)
	}
	return strings.Join(texts, "\n\n")
}

// spoke reports whether the agent said anything.
func (t *transcript) spoke() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasText
}

func name(c toolCall) string {
	title := short(oneLine(c.Title), 200)
	switch {
	case title == "" && c.Kind == "":
		return "a call"
	case title == "":
		return string(c.Kind)
	case c.Kind == "" || c.Kind == sdk.ToolKindOther:
		return title
	}
	return title + " (" + short(oneLine(string(c.Kind)), 20) + ")"
}

func content(c sdk.ToolCallContent, shown func(string) string) string {
	switch {
	case c.Diff != nil:
		return edits.Unified(c.Diff.Path, wire.Value(c.Diff.OldText), c.Diff.NewText)
	case c.Terminal != nil:
		return "terminal " + c.Terminal.TerminalId + ":\n" + shown(c.Terminal.TerminalId)
	case c.Content != nil:
		return block(c.Content.Content)
	}
	return ""
}

func block(b sdk.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.ResourceLink != nil:
		return b.ResourceLink.Uri
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return b.Resource.Resource.TextResourceContents.Text
	case b.Image != nil:
		return "[an image]"
	case b.Audio != nil:
		return "[a sound]"
	}
	return ""
}

func place(at sdk.ToolCallLocation) string {
	if at.Line != nil {
		return fmt.Sprintf("%s, line %d", at.Path, *at.Line)
	}
	return at.Path
}

// short is a text cut to at most so many bytes of valid UTF-8.
func short(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
