package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// wireTap is a stdio client that writes arbitrary messages.
type wireTap struct {
	t    *testing.T
	to   io.Writer
	said chan map[string]any // the server's messages, without progress
}

func (s *env) tap(t *testing.T) *wireTap {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- mcp.New(mcp.Options{
			Requests: s.Engine, CallerOf: func(context.Context) permissions.Caller { return bot }, Log: wiretest.Quiet,
		}).Serve(context.Background(), in, out)
	}()
	tap := &wireTap{t: t, to: toServer, said: make(chan map[string]any, 99)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(fromServer); lines.Scan(); {
			var m map[string]any
			if json.Unmarshal(lines.Bytes(), &m) == nil && m["method"] != "notifications/progress" {
				tap.said <- m
			}
		}
	}()
	t.Cleanup(func() {
		_ = toServer.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = out.Close()
		<-read
	})
	tap.write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	wait(t, "a greeting", tap.said)
	tap.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return tap
}

func (w *wireTap) write(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.to, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wireTap) call(id int, tool, with string) {
	w.t.Helper()
	w.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, with))
}

// answers writes a response, whether or not the server called.
func (w *wireTap) answers(id any, result string) {
	w.t.Helper()
	name, _ := json.Marshal(id)
	w.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, name, result))
}

// TestAnOddLineIsRefusedAndEndsNothing: nor is it answered under another call's id. What waits goes on.
func TestAnOddLineIsRefusedAndEndsNothing(t *testing.T) {
	s := newEnv(t, nil)
	tap := s.tap(t)
	for _, line := range []string{
		`{}`, `[]`, `null`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":null}`, `{"jsonrpc":"2.0","id":1,"method":7}`,
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, `{"jsonrpc":"2.0","id":[1],"method":"ping"}`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1e300,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"error":7}`,
		`[{"jsonrpc":"2.0","id":90,"method":"ping"},{"jsonrpc":"2.0","id":91,"method":"ping"}]`,
		`[{"jsonrpc":"2.0","id":90,"method":"ping"},{"jsonrpc":"2.0","id":90,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":93,"method":"ping","params":{"x":"` + strings.Repeat("x", 20<<20) + `"}}`,
	} {
		tap.write(line)
		m := wait(t, "a refusal", tap.said)
		refusal, _ := m["error"].(map[string]any)
		if m["id"] != nil || refusal["code"] != -32600.0 {
			t.Errorf("%.80s: %v", line, m)
		}
	}
	tap.write(`{"jsonrpc":"2.0","id":"94","method":"ping"}`)
	if m := wait(t, "an answer", tap.said); m["id"] != "94" || m["result"] == nil {
		t.Errorf("a ping is answered by %v", m)
	}
}

// TestAnOddIDIsRefusedOverHTTP: it is not answered under another call's id.
func TestAnOddIDIsRefusedOverHTTP(t *testing.T) {
	s := newEnv(t, nil)
	server := mcp.New(mcp.Options{
		Requests: s.Engine, CallerOf: func(context.Context) permissions.Caller { return bot }, Log: wiretest.Quiet,
	})
	for _, id := range []string{"1.5", "9007199254740993", "-1e300", `{"a":1}`, "[1]", "true"} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"id":null`) {
			t.Errorf("%s: %d %s", id, w.Code, w.Body)
		}
	}
}

const whereTo = `{"question":"where?","options":["blog","mail"]}`

// A stdio client's responses that were not asked for, are repeated or invalid settle nothing.
func TestAHostileEditor(t *testing.T) {
	s := newDialogEnv(t)
	w := s.tap(t)
	stands := func(r permissions.Request) {
		t.Helper()
		w.write(`{"jsonrpc":"2.0","id":77,"method":"ping"}`) // the earlier messages have been read
		if m := wait(t, "a pong", w.said); fmt.Sprint(m["id"]) != "77" {
			t.Fatalf("the server says %v", m)
		}
		if now := s.row(r.ID); now.State != permissions.Pending {
			t.Errorf("%s is %s by way of %s", r.Kind, now.State, now.DecidedVia)
		}
	}
	for tool, with := range map[string]string{
		"request_permission": `{"permission":"@network","reason":"x"}`, "pause": `{"message":"send it?","mode":"confirm"}`,
		"approve_tool": `{"tool_name":"Bash","input":{"command":"ls"}}`,
	} {
		w.call(2, tool, with)
		r := s.pending(1)[0]
		for _, id := range []any{0, 1, 2, 3, "1", "2"} {
			for _, option := range []string{"allow_once", "approve", "yes"} {
				w.answers(id, `{"action":"accept","content":{"answer":"`+option+`"}}`)
			}
		}
		stands(r)
		s.decide(r.ID, permissions.Deny, "")
		if m := wait(t, "a result", w.said); !strings.Contains(fmt.Sprint(m["result"]), "enied") {
			t.Errorf("%s: %v", tool, m)
		}
	}
	for n, said := range []string{
		`{"action":"accept","content":{"answer":"option_3"}}`, `{"action":"accept","content":{"answer":"allow_once"}}`,
		`{"action":"accept","content":{"answer":"other"}}`, `{"action":"accept","content":{"answer":2}}`,
		`{"action":"accept","content":{"answer":"option_2","comment":"x"}}`, `{"action":"accept","content":{}}`,
		`{"action":"accept"}`, `{"action":"ACCEPT","content":{"answer":"option_2"}}`,
		`{"content":{"answer":"option_2"}}`, `{"action":"decline","content":{"answer":"option_2"}}`, `[]`, `"option_2"`,
	} {
		w.call(10+n, "ask_user", whereTo)
		dialog := wait(t, "a dialog", w.said)
		if dialog["method"] != "elicitation/create" {
			t.Fatalf("the server says %v", dialog)
		}
		r := s.pending(1)[0]
		w.answers(dialog["id"], said)
		w.answers(dialog["id"], `{"action":"accept","content":{"answer":"option_2"}}`) // the second response
		stands(r)
		s.decide(r.ID, permissions.Choose(1), "")
		if m := wait(t, "a result", w.said); !strings.Contains(fmt.Sprint(m["result"]), "answer:option_1") {
			t.Errorf("%s: %v", said, m)
		}
	}
}

// A dialog that lost is withdrawn by a notification, and a later response is ignored.
func TestADialogIsWithdrawn(t *testing.T) {
	s := newDialogEnv(t)
	w := s.tap(t)
	w.call(2, "ask_user", whereTo)
	dialog := wait(t, "a dialog", w.said)
	r := s.pending(1)[0]
	s.decide(r.ID, permissions.Choose(1), "")
	withdrawn, result := wait(t, "two messages", w.said), wait(t, "two messages", w.said)
	if withdrawn["method"] == nil {
		withdrawn, result = result, withdrawn
	}
	params, _ := withdrawn["params"].(map[string]any)
	if withdrawn["method"] != "notifications/cancelled" || params["requestId"] != dialog["id"] {
		t.Errorf("the server says %v", withdrawn)
	}
	if !strings.Contains(fmt.Sprint(result["result"]), "decided_by:fay") {
		t.Errorf("the result is %v", result)
	}
	w.call(3, "ask_user", whereTo)
	again := wait(t, "a dialog", w.said)
	w.answers(dialog["id"], `{"action":"accept","content":{"answer":"option_2"}}`)
	next := s.pending(1)[0]
	w.answers(again["id"], `{"action":"accept","content":{"answer":"option_1"}}`)
	wait(t, "a result", w.said)
	if now := s.row(next.ID); now.Answer != permissions.Choose(1) || now.DecidedVia != permissions.ViaEditor {
		t.Errorf("the next one is %+v", now)
	}
}

// bring is a call of the latest revision with the result of a dialog.
func (s *env) bring(tool, with, state, said string) string {
	s.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + with + `,` +
		`"inputResponses":{"answer":` + said + `},"requestState":"` + state + `",` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// stateOf is the state that the server gives a client for its next call.
func stateOf(t *testing.T, text string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, `"requestState":"`)
	state, _, closed := strings.Cut(rest, `"`)
	if !found || !closed || !strings.Contains(text, `"resultType":"input_required"`) {
		t.Fatalf("no dialog in %s", text)
	}
	return state
}

// Over HTTP, a dialog's result counts once, for that dialog only.
func TestAHostileEditorOverHTTP(t *testing.T) {
	const mail, blog = `{"action":"accept","content":{"answer":"option_2"}}`, `{"action":"accept","content":{"answer":"option_1"}}`
	s := newDialogEnv(t)
	first := stateOf(t, s.bring("ask_user", whereTo, "", mail)) // not asked yet: it is asked now
	r := s.pending(1)[0]
	other := stateOf(t, s.bring("ask_user", `{"question":"which?","options":["a","b"]}`, first, mail)) // for another question
	for _, forged := range []string{
		other, string(r.ID), string(r.ID) + ".", strings.ToLower(first), first[:len(first)-2], "." + first, first + "x", "é",
	} {
		if text := s.bring("ask_user", whereTo, forged, mail); stateOf(t, text) != first {
			t.Errorf("%q: %s", forged, text)
		}
	}
	if now := s.row(r.ID); now.State != permissions.Pending {
		t.Fatalf("it is %s", now.State)
	}
	for _, said := range []string{mail, blog, `{"action":"accept","content":{"answer":"option_9"}}`, `{"action":"cancel"}`} {
		text := s.bring("ask_user", whereTo, first, said)
		late := strings.Contains(text, "Too late: already answered in the editor")
		if !strings.Contains(text, `"answer":"option_2"`) || late != (said == blog) {
			t.Errorf("%s: %s", said, text)
		}
	}
	if now := s.row(r.ID); now.Answer != permissions.Choose(2) || now.DecidedVia != permissions.ViaEditor {
		t.Errorf("stored %+v", now)
	}
	denied := make(chan string, 1)
	go func() {
		denied <- s.bring("request_permission", `{"permission":"@network","reason":"x"}`, first,
			`{"action":"accept","content":{"answer":"allow_once"}}`)
	}()
	for _, r := range s.atLeast(2) {
		if r.Kind == permissions.KindPermission {
			s.waits(r.ID, 1)
			s.decide(r.ID, permissions.Deny, "")
		}
	}
	if text := wait(t, "a result", denied); !strings.Contains(text, "Permission denied") {
		t.Errorf("%s", text)
	}
}

// An ambiguous message asks nobody, over HTTP and stdio.
func TestAnAmbiguousEnvelopeAsksNobody(t *testing.T) {
	s := newEnv(t, nil)
	w := s.tap(t)
	call := `"params":{"name":"request_permission","arguments":{"permission":"@network","reason":"x"}}`
	for name, body := range map[string]string{
		"two methods":     `{"jsonrpc":"2.0","id":5,"method":"tools/list","method":"tools/call",` + call + `}`,
		"two of params":   `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{},` + call + `}`,
		"another case":    `{"jsonrpc":"2.0","id":5,"method":"tools/call","Method":"tools/list",` + call + `}`,
		"twice in params": `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",` + call[len(`"params":{`):] + `}`,
		"twice in arguments": `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"approve_tool",` +
			`"arguments":{"tool_name":"Bash","input":{"a":1,"a":2}}}}`,
		"more than a call": `{"jsonrpc":"2.0","id":5,"method":"tools/call",` + call + `} {}`,
	} {
		t.Run("C4/"+name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			transport := &http.Transport{DisableKeepAlives: true}
			answer, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), `"code":-32600`) {
				t.Errorf("over HTTP: %d %s, %v", answer.StatusCode, text, err)
			}
			w.write(body)
			if m := wait(t, "a refusal", w.said); m["id"] != nil || !strings.Contains(fmt.Sprint(m["error"]), "-32600") {
				t.Errorf("on stdio: %v", m)
			}
			s.pending(0)
		})
	}
	w.call(6, "request_permission", `{"permission":"@network","reason":"y"}`) // the connection still works
	s.decide(s.pending(1)[0].ID, permissions.Deny, "")
	if m := wait(t, "a result", w.said); fmt.Sprint(m["id"]) != "6" {
		t.Errorf("%v", m)
	}
}
