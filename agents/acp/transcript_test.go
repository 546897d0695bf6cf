package acp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions/acts"
)

func nothing(string) string { return "" }

// tell passes updates to a transcript.
func tell(updates ...sdk.SessionUpdate) *transcript {
	t := newTranscript()
	for _, u := range updates {
		t.take(u, nil, nothing)
	}
	return t
}

// Text in the middle of a turn is sent up to the end of a paragraph; the rest comes with what follows.
func TestTextInTheMiddleOfATurn(t *testing.T) {
	tr := tell(sdk.UpdateAgentMessageText("one"), sdk.StartToolCall("a", "Look"), sdk.UpdateAgentMessageText("tw"))
	if got := tr.takeUnsent(false); got != "one\n\n· Look" {
		t.Errorf("it says %q", got)
	}
	tr.take(sdk.UpdateAgentMessageText("o"), nil, nothing)
	if got := tr.takeUnsent(true); got != "two" {
		t.Errorf("it says %q", got)
	}
	if got := tr.takeUnsent(true); got != "" {
		t.Errorf("it says %q again", got)
	}
}

// The text is bounded, whatever an agent reports and however long its names are.
func TestBoundedTranscript(t *testing.T) {
	tr := newTranscript()
	for i := range 2000 {
		tr.take(sdk.StartToolCall(sdk.ToolCallId(fmt.Sprint(i)), strings.Repeat("é", 5000)), nil, nothing)
	}
	text := tr.takeUnsent(true)
	if lines := strings.Count(text, "\n"); len(text) > maxUnsaid || lines != maxSteps || !strings.HasSuffix(text, "· …") {
		t.Errorf("it has %d bytes in %d lines, and ends %q", len(text), lines, text[len(text)-20:])
	}
	if len(tr.calls) > maxCalls || tr.kept > maxKept || len(tr.order) != len(tr.calls) {
		t.Errorf("%d calls of %d bytes are kept", len(tr.calls), tr.kept)
	}
	huge := strings.Repeat("x", maxKept)
	for i := range 3 {
		tr.take(sdk.StartToolCall(sdk.ToolCallId(fmt.Sprint("huge", i)), "Huge", sdk.WithStartContent([]sdk.ToolCallContent{
			sdk.ToolDiffContent("p", huge), sdk.ToolContent(sdk.TextBlock("y")), sdk.ToolDiffContent("p", "a", "b"),
		}), sdk.WithStartLocations([]sdk.ToolCallLocation{{Path: "/p"}})), nil, nothing)
	}
	if len(tr.calls) != 1 {
		t.Errorf("%d calls of %d bytes are kept", len(tr.calls), tr.kept)
	}
	entries := make([]sdk.PlanEntry, 100)
	for i := range entries {
		entries[i] = sdk.PlanEntry{Content: strings.Repeat("long ", 1000)}
	}
	tr.take(sdk.UpdatePlan(entries...), nil, nothing)
	if text := tr.takeUnsent(true); len(text) > maxUnsaid || !strings.Contains(text, "… and 60 more") {
		t.Errorf("the plan has %d bytes", len(text))
	}
}

// A later update of a call overrides earlier fields, and keeps the rest.
func TestCallsOverEachOther(t *testing.T) {
	tr := newTranscript()
	tr.take(sdk.StartToolCall("a", "Edit", sdk.WithStartKind(sdk.ToolKindEdit)), []byte(`{"x":1}`), nothing)
	status, title := sdk.ToolCallStatusInProgress, "Edit more"
	tr.take(sdk.SessionUpdate{ToolCallUpdate: &sdk.SessionToolCallUpdate{
		ToolCallId: "a", Status: &status, Title: &title, Kind: sdk.Ptr(sdk.ToolKindDelete),
	}}, nil, nothing)
	got := tr.known(toolCall{ID: "a"})
	if got.Title != "Edit more" || got.Kind != sdk.ToolKindDelete || string(got.Input) != `{"x":1}` || got.Status != status {
		t.Errorf("it is known as %+v", got)
	}
	if text := tr.takeUnsent(true); text != "· Edit (edit)" {
		t.Errorf("it says %q", text)
	}
}

func TestBlocks(t *testing.T) {
	text := sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Text: "inside", Uri: "file:///a"}}
	for _, test := range []struct {
		block sdk.ContentBlock
		want  string
	}{
		{sdk.TextBlock("words"), "words"},
		{sdk.ResourceLinkBlock("a", "file:///a"), "file:///a"},
		{sdk.ResourceBlock(text), "inside"},
		{sdk.ImageBlock("aGk=", "image/png"), "[an image]"},
		{sdk.AudioBlock("aGk=", "audio/wav"), "[a sound]"},
		{sdk.ContentBlock{}, ""},
	} {
		if got := block(test.block); got != test.want {
			t.Errorf("%+v is %q, want %q", test.block, got, test.want)
		}
	}
	for _, test := range []struct {
		call toolCall
		want string
	}{
		{toolCall{}, "a call"}, {toolCall{Kind: sdk.ToolKindRead}, "read"}, {toolCall{Title: "A\nB"}, "A B"},
		{toolCall{Title: "A", Kind: sdk.ToolKindOther}, "A"}, {toolCall{Title: "A", Kind: sdk.ToolKindRead}, "A (read)"},
	} {
		if got := name(test.call); got != test.want {
			t.Errorf("%+v is called %q, want %q", test.call, got, test.want)
		}
	}
}

// A title longer than a reason is complete in the details; an input too long to show is not asked about.
func TestLongQuestions(t *testing.T) {
	title := strings.Repeat("é", 3000)
	q, err := asking{}.question(toolCall{Title: title}, "", nothing)
	if err != nil || !strings.Contains(q.Details, title) || len([]rune(q.Reason)) != 2000 {
		t.Errorf("it asks with a reason of %d characters, %v", len([]rune(q.Reason)), err)
	}
	if _, err := (asking{}).question(toolCall{Input: make([]byte, 2<<20)}, "", nothing); err == nil {
		t.Error("an input of 2 MiB is asked about")
	}
}

// An error's data is shown if it is text.
func TestDetail(t *testing.T) {
	for _, test := range []struct {
		data any
		want string
	}{
		{nil, ""}, {"text", ": text"}, {map[string]any{"details": "why"}, ": why"}, {map[string]any{"error": 7}, ""}, {7, ""},
	} {
		if got := detail(test.data); got != test.want {
			t.Errorf("%v is %q, want %q", test.data, got, test.want)
		}
	}
	if got := (&refused{text: "no"}).Error(); got != "no" {
		t.Errorf("it reads %q", got)
	}
}

// Updates are removed from an agent's output before what follows them is read; the rest is unchanged.
func TestLines(t *testing.T) {
	received := (&wire.Unanswered{Most: 1}).Received
	const other = `{"jsonrpc":"2.0","id":1,"method":"session/update"}` + "\n" + `{"result":"session/update"}` + "\n" +
		"no json session/update\n"
	ready := make(chan struct{})
	close(ready)
	var updates []string
	in := `{"method":"session/update","params":{"n":1}}` + "\n" + other + `{"method":"session/update","params":{"n":2}}` + "\n" + "the end"
	got, err := io.ReadAll(newLines(strings.NewReader(in), ready, func(p json.RawMessage) { updates = append(updates, string(p)) }, received))
	if err != nil || string(got) != other+"the end" || strings.Join(updates, " ") != `{"n":1} {"n":2}` {
		t.Errorf("it reads %q and takes out %q, %v", got, updates, err)
	}
	endless := io.MultiReader(strings.NewReader("{"), zeros{})
	if _, err := io.ReadAll(newLines(endless, ready, nil, received)); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("an endless line ends with %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "a-b_c.d/e": "a-b_c.d/e", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "é": "'é'", "a\nb": "'a\nb'", "~": "'~'",
	} {
		if got := acts.Quote(word); got != want {
			t.Errorf("%q is %s, want %s", word, got, want)
		}
	}
}
