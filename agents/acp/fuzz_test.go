package acp

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// FuzzAsking passes arbitrary parameters to session/request_permission: people see all of the agent's options and the
// exact input, and the agent gets an option that allows only if people allowed.
func FuzzAsking(f *testing.F) {
	for _, params := range []string{
		`{}`, `null`, `{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}`,
		`{"sessionId":"s","toolCall":{"toolCallId":"c","title":"Do it","kind":"execute","rawInput":{"b":1,"a":12345678901234567890},` +
			`"locations":[{"path":"/srv/a","line":3}],"content":[{"type":"diff","path":"/srv/a","oldText":"x\n","newText":"y\n"},` +
			`{"type":"content","content":{"type":"text","text":"words"}},{"type":"terminal","terminalId":"t"}]},` +
			`"options":[{"optionId":"o2","kind":"allow_always","name":"Always"},{"optionId":"o1","kind":"allow_once","name":"Allow"},` +
			`{"optionId":"o3","kind":"reject_once","name":"Reject"}]}`,
		`{"toolCall":{"kind":"run_command","rawInput":null},"options":[{"optionId":"a","kind":"allow_always","name":"✅"}]}`,
		`{"toolCall":{"rawInput":"ls"},"options":[{"optionId":"a","kind":"reject_always"},{"optionId":"a","kind":"allow_once"}]}`,
		`{"toolCall":{"rawInput":{"a":1,"a":2}},"options":[{"optionId":"a","kind":"ALLOW_ONCE"}]}`,
		`{"toolCall":{"title":"\u202e\n"},"ToolCall":{"title":"x"},"options":[{"optionId":"","kind":"allow_once"}]}`,
	} {
		f.Add([]byte(params))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		in, err := decode[asking](params)
		if err != nil || in.check() != nil {
			return
		}
		q, err := in.question(in.ToolCall, "", nothing)
		if err != nil {
			return
		}
		if !strings.HasPrefix(q.Tool, "acp_") || q.Widest != permissions.SessionTool || !utf8.ValidString(q.Reason+q.Details) {
			t.Fatalf("%q asks %+v", params, q)
		}
		if in.ToolCall.hasInput() && !bytes.Contains(params, q.Input) && !bytes.Contains(q.Input, []byte(acts.FilesMember)) {
			t.Fatalf("%q asks about the input %q", params, q.Input)
		}
		kinds := map[sdk.PermissionOptionId]sdk.PermissionOptionKind{"": "none"}
		once := slices.ContainsFunc(in.Options, func(o sdk.PermissionOption) bool { return o.Kind == sdk.PermissionOptionKindAllowOnce })
		for _, o := range in.Options {
			kinds[o.OptionId] = o.Kind
			if !once && !strings.Contains(q.Details, "("+strings.ToValidUTF8(string(o.Kind), "\uFFFD")+")") {
				t.Fatalf("%q does not tell that it offers %s:\n%s", params, o.Kind, q.Details)
			}
		}
		if len(kinds) != len(in.Options)+1 {
			t.Fatalf("%q has options that cannot be told apart", params)
		}
		for _, state := range []permissions.State{
			"", permissions.Pending, permissions.Approved, permissions.Denied, permissions.Expired, permissions.Cancelled,
		} {
			for _, scope := range []permissions.Scope{{}, permissions.Once, permissions.SessionTool} {
				id, _ := in.choose(permissions.Request{State: state, Scope: scope})
				kind := kinds[id]
				allowed := state == permissions.Approved
				if id != "" && allowed != (kind == sdk.PermissionOptionKindAllowOnce) ||
					kind == sdk.PermissionOptionKindAllowAlways {
					t.Fatalf("%q is answered %s (%s), and it is %s for %s", params, id, kind, state, scope)
				}
			}
		}
	})
}

// FuzzTranscript reads an agent's lines: exactly the updates are removed, and their text is bounded, whatever their
// order and whenever it is taken.
func FuzzTranscript(f *testing.F) {
	update := func(text string) string {
		return `{"method":"session/update","params":{"sessionId":"s","update":` + text + `}}` + "\n"
	}
	say := update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"wörds "}}`)
	call := update(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"Look\nat it","kind":"read","status":"pending"}`)
	done := update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","content":[` +
		`{"type":"diff","path":"/a","oldText":null,"newText":"x"},{"type":"terminal","terminalId":"t"}]}`)
	plan := update(`{"sessionUpdate":"plan","entries":[{"content":"one","priority":"high","status":"completed"}]}`)
	for _, text := range []string{
		"", "\n\n", say, say + call + say, call + done, plan + say + plan, done, strings.Repeat(call, 3), "the end without a line",
		`{"id":1,"method":"session/update","params":{}}` + "\n", `{"result":"session/update"}` + "\n" + say,
		`{"method":"session/request_permission"}` + "\n",
		`{"method":"session/update","method":"x"}` + "\n", update(`{"sessionUpdate":"unknown"}`), update(`null`), "\xff session/update\n",
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800"}}`),
	} {
		f.Add([]byte(text), uint8(0))
		f.Add([]byte(text), uint8(7))
	}
	ready := make(chan struct{})
	close(ready)
	f.Fuzz(func(t *testing.T, written []byte, when uint8) {
		heard, taken := newTranscript(), 0
		rest, err := io.ReadAll(newLines(bytes.NewReader(written), ready, func(params json.RawMessage) {
			taken++
			var note sdk.SessionNotification
			if json.Unmarshal(params, &note) != nil || note.Validate() != nil {
				return
			}
			heard.take(note.Update, nil, nothing)
			if when&(1<<(taken%8)) != 0 {
				bounded(t, heard, false)
			}
		}, func([]byte) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		bounded(t, heard, true)
		if text := heard.takeUnsent(true); text != "" {
			t.Fatalf("%q is said twice", text)
		}
		left := 0
		for _, line := range bytes.SplitAfter(written, []byte("\n")) {
			if bytes.HasPrefix(rest, line) {
				rest = rest[len(line):]
				continue
			}
			if json.Valid(line) && wire.CheckEnvelope(line) != nil {
				continue // ambiguous
			}
			left++
			if !bytes.Contains(line, []byte("session/update")) || !json.Valid(line) {
				t.Fatalf("%q is taken out", line)
			}
		}
		if len(rest) > 0 || left != taken {
			t.Fatalf("of %q, %d lines are taken out, %d updates are taken, and %q is left over", written, left, taken, rest)
		}
	})
}

// An ambiguous message is ignored, and nobody is asked.
func TestAmbiguousLinesArePassedOver(t *testing.T) {
	for name, line := range map[string]string{
		"two methods":  `{"jsonrpc":"2.0","id":1,"method":"x","method":"session/request_permission","params":{}}`,
		"another case": `{"jsonrpc":"2.0","id":1,"Method":"session/request_permission","params":{}}`,
		"two ids":      `{"jsonrpc":"2.0","id":1,"id":2,"method":"session/update","params":{}}`,
	} {
		t.Run("C4/"+name, func(t *testing.T) {
			ready := make(chan struct{})
			close(ready)
			next := `{"jsonrpc":"2.0","id":3,"method":"y"}` + "\n"
			l := newLines(strings.NewReader(line+"\n"+next), ready, func(json.RawMessage) { t.Error("it was taken") },
				func([]byte) error { return nil })
			if text, err := io.ReadAll(l); err != nil || string(text) != next {
				t.Errorf("read %q, %v", text, err)
			}
		})
	}
}

// bounded checks the text, and that the counted size is correct.
func bounded(t *testing.T, heard *transcript, all bool) {
	t.Helper()
	text := heard.takeUnsent(all)
	if !utf8.ValidString(text) || len(text) > maxUnsaid+maxSteps*(maxEntry+20)+200 {
		t.Fatalf("it says %d bytes: %.100q", len(text), text)
	}
	size, kept := 0, 0
	for _, p := range heard.parts {
		size += len(p.text)
	}
	for _, c := range heard.calls {
		kept += c.size()
	}
	if size != heard.size || kept != heard.kept || len(heard.order) != len(heard.calls) {
		t.Fatalf("it keeps %d bytes and %d of calls, and counts %d and %d", size, kept, heard.size, heard.kept)
	}
}
