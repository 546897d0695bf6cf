package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/edits"
)

// asking is session/request_permission, with the tool call's input unparsed.
type asking struct {
	Session  sdk.SessionId          `json:"sessionId"`
	ToolCall toolCall               `json:"toolCall"`
	Options  []sdk.PermissionOption `json:"options"`
}

// toolCall is what the agent reports of a call that it makes or wants to make.
type toolCall struct {
	ID        sdk.ToolCallId         `json:"toolCallId"`
	Title     string                 `json:"title"`
	Kind      sdk.ToolKind           `json:"kind"`
	Status    sdk.ToolCallStatus     `json:"status"`
	Input     jsontext.Value         `json:"rawInput"`
	Content   []sdk.ToolCallContent  `json:"content"`
	Locations []sdk.ToolCallLocation `json:"locations"`
}

// mergedInto is a call with the fields of an update.
func (c toolCall) mergedInto(before toolCall) toolCall {
	c.Title, c.Kind, c.Status = cmp.Or(c.Title, before.Title), cmp.Or(c.Kind, before.Kind), cmp.Or(c.Status, before.Status)
	if !c.hasInput() {
		c.Input = before.Input
	}
	if len(c.Content) == 0 {
		c.Content = before.Content
	}
	if len(c.Locations) == 0 {
		c.Locations = before.Locations
	}
	return c
}

// hasInput reports whether the input says anything; without one, the title is what the call does.
func (c toolCall) hasInput() bool {
	text := strings.Join(strings.Fields(string(c.Input)), "")
	return text != "" && text != "null" && text != "{}"
}

var kinds = []sdk.ToolKind{
	sdk.ToolKindRead, sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove, sdk.ToolKindSearch, sdk.ToolKindExecute,
	sdk.ToolKindThink, sdk.ToolKindFetch, sdk.ToolKindSwitchMode,
}

// tool is the name for policy and routes, from the call's kind; never that of our tools, whatever the agent's title.
func (c toolCall) tool() string {
	if slices.Contains(kinds, c.Kind) {
		return "acp_" + string(c.Kind)
	}
	return "acp_other"
}

// requestPermission makes people decide what the agent asks its user.
func (c *client) requestPermission(ctx context.Context, params json.RawMessage) (any, error) {
	in, err := decode[asking](params)
	if err != nil {
		return nil, err
	}
	t, err := c.currentTurn(in.Session)
	switch {
	case errors.Is(err, errOver):
		return outcome("", nil), nil
	case err != nil:
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	ctx, done := t.during(ctx)
	defer done()
	q, err := in.question(t.transcript.withPlan(t.transcript.known(in.ToolCall)), c.place.Workspace, c.shown)
	if err != nil {
		return nil, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	q.Session, q.Cwd, q.Folder, q.Step = t.session, c.place.Workspace, c.place.Folder(), t.n
	q.SessionTitle, q.LastPrompt = c.titled(), t.prompt
	x := agents.Execution{Step: t.n, Tool: q.Tool}
	if x.Arguments, err = permissions.CanonicalJSON(q.Input); err != nil {
		return nil, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	q.Key, x.Call = t.key()
	answer, err := c.gate.allow(ctx, q)
	if x.Began = c.gate.stamp(); err == nil && answer.State == permissions.Approved && answer.VoidAt.IsZero() {
		t.mu.Lock()
		t.allowed = append(t.allowed, allowed{x, toolCall{ID: in.ToolCall.ID}})
		t.mu.Unlock()
	} else if x.Ended = x.Began; err != nil {
		x.Error = short(wire.Plain(err).Error(), permissions.MaxReason)
	} else {
		x.Error = permissions.Result(answer).Text
	}
	c.gate.note(ctx, x, nil)
	if err != nil {
		c.log.Debug("permission of an acp agent refused", "err", err)
		if refusal := permissions.AsRefusal(err); refusal != nil && ctx.Err() == nil {
			return outcome(in.pick(rejections...), map[string]any{metaReason: refusal.Text}), nil
		}
		return outcome("", nil), nil
	}
	if ctx.Err() != nil { // it was stopped at the same moment
		return outcome("", nil), nil
	}
	return outcome(in.choose(answer)), nil
}

// metaReason is where an answer has a denial's reason: the protocol has no field for it.
const metaReason = "daycared/reason"

// check refuses a question that cannot be answered unambiguously.
func (in asking) check() error {
	if len(in.Options) == 0 {
		return errors.New("there is nothing to choose from")
	}
	for i, o := range in.Options {
		if o.OptionId == "" || slices.ContainsFunc(in.Options[:i], func(p sdk.PermissionOption) bool { return p.OptionId == o.OptionId }) {
			return errors.New("each option needs an optionId of its own")
		}
	}
	return nil
}

// question is the request for people. call is what is known of the call so far, and folder where it is.
func (in asking) question(call toolCall, folder string, terminal func(string) string) (permissions.Request, error) {
	title := strings.ToValidUTF8(call.Title, "\uFFFD")
	input := json.RawMessage(call.Input)
	if !call.hasInput() {
		var err error
		if input, err = json.Marshal(map[string]string{"title": title}); err != nil {
			return permissions.Request{}, err
		}
	}
	input, err := call.withFiles(input, folder)
	if err != nil {
		return permissions.Request{}, err
	}
	if len(input) > permissions.MaxDetails {
		return permissions.Request{}, fmt.Errorf("the input has %d bytes, more than people can be shown", len(input))
	}
	q := permissions.Request{
		Kind: permissions.KindTool, Tool: call.tool(), Input: input, Reason: permissions.Brief(title, permissions.MaxReason),
		// A longer permission than the program's lifetime, or one by the clock, would exceed the agent's own options.
		Widest: permissions.SessionTool,
	}
	plan, _ := q.Plan()
	if plan != "" {
		q.Widest = permissions.Once
	}
	var details strings.Builder
	if utf8.RuneCountInString(title) > permissions.MaxReason {
		fmt.Fprintf(&details, "%s\n\n", title)
	}
	for i, at := range call.Locations {
		if i == 0 {
			details.WriteString("It names:\n")
		}
		details.WriteString("  " + place(at) + "\n")
	}
	edit, _ := edits.Of(call.tool(), input)
	for _, c := range call.Content {
		if c.Diff != nil && edit.Replaces(c.Diff.Path, wire.Value(c.Diff.OldText), c.Diff.NewText) {
			continue // people are shown the input as a diff
		}
		if text := content(c, terminal); plan == "" || text != plan {
			details.WriteString(text + "\n")
		}
	}
	details.WriteString(in.offers(plan != ""))
	q.Details, q.AffectedPath = strings.ToValidUTF8(details.String(), "\uFFFD"), call.file()
	return q, nil
}

// file is the only file that a call changes, as far as the agent says; empty if there are several.
func (c toolCall) file() (name string) {
	if !slices.Contains([]sdk.ToolKind{sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove}, c.Kind) {
		return ""
	}
	all := c.files()
	if len(all) != 1 || len(all[0]) > permissions.MaxTagPath {
		return ""
	}
	return strings.ToValidUTF8(all[0], "\uFFFD")
}

// files are the files of the places and changes that a call reports.
func (c toolCall) files() []string {
	all := wire.Map(c.Locations, func(at sdk.ToolCallLocation) string { return at.Path })
	for _, part := range c.Content {
		if part.Diff != nil {
			all = append(all, part.Diff.Path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// withFiles is an input with the files that a call reports and the input does not name: what is allowed is judged by the input.
func (c toolCall) withFiles(input json.RawMessage, folder string) (json.RawMessage, error) {
	_, named := acts.Suspected(c.tool(), input)
	named = append(named, acts.ReadToolUse(permissions.HookACP, c.tool(), input).Names...)
	others := slices.DeleteFunc(c.files(), func(file string) bool {
		return slices.ContainsFunc(named, func(name string) bool { return filepath.Clean(acts.Under(folder, name)) == filepath.Clean(file) })
	})
	if len(others) == 0 {
		return input, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil || members == nil {
		members = map[string]json.RawMessage{"input": input}
	}
	list, err := json.Marshal(others)
	if err != nil {
		return nil, err
	}
	members[acts.FilesMember] = list
	return json.Marshal(members)
}

// offers tells people the agent's options if it does not offer to do just this once, which is all that can be allowed here; and the one
// that is chosen, where that says how the agent goes on: after a plan, or among several of the kind.
func (in asking) offers(plan bool) string {
	var once []string
	for _, o := range in.Options {
		if o.Kind == sdk.PermissionOptionKindAllowOnce {
			once = append(once, o.Name)
		}
	}
	switch {
	case len(once) > 1, plan && len(once) > 0:
		return fmt.Sprintf("To allow it chooses the agent's option %q.", once[0])
	case len(once) > 0:
		return ""
	}
	all := wire.Map(in.Options, func(o sdk.PermissionOption) string { return fmt.Sprintf("%q (%s)", o.Name, o.Kind) })
	return "It cannot be allowed here, since the agent does not offer to do just this once. It offers: " + strings.Join(all, ", ")
}

var rejections = []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways}

// pick is the first option of the first offered kind; empty: none.
func (in asking) pick(kinds ...sdk.PermissionOptionKind) sdk.PermissionOptionId {
	for _, k := range kinds {
		for _, o := range in.Options {
			if o.Kind == k {
				return o.OptionId
			}
		}
	}
	return ""
}

// choose is the agent's option for an answer; empty: its question is cancelled, which allows nothing. A longer
// permission covers this exact call, is kept here and answers the next equal question: the agent gets allow_once,
// because its allow_always would let it do more without asking.
func (in asking) choose(r permissions.Request) (sdk.PermissionOptionId, map[string]any) {
	switch {
	case r.State == permissions.Approved && r.VoidAt.IsZero():
		return in.pick(sdk.PermissionOptionKindAllowOnce), nil
	case r.State == permissions.Denied && r.Comment != "":
		return in.pick(rejections...), map[string]any{metaReason: r.Comment}
	case r.State == permissions.Denied:
		return in.pick(rejections...), nil
	}
	return "", nil
}

// outcome is our answer on the wire.
func outcome(id sdk.PermissionOptionId, meta map[string]any) sdk.RequestPermissionResponse {
	out := sdk.RequestPermissionResponse{Meta: meta}
	if id == "" {
		out.Outcome = sdk.NewRequestPermissionOutcomeCancelled()
	} else {
		out.Outcome = sdk.NewRequestPermissionOutcomeSelected(id)
	}
	return out
}
