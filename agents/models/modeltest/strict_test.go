package modeltest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a strict provider refuses, in both dialects.
func TestStrict(t *testing.T) {
	const (
		schema = `{"type":"object","properties":{}}`
		openAI = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
		claude = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
		user   = `{"role":"user","content":"x"},`
		answer = `,{"role":"tool","content":"x","tool_call_id":"a"}`
		result = `{"type":"tool_result","tool_use_id":"a"}`
		call   = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]}`
		use    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]}`
	)
	in := func(messages string) string { return `{"model":"m","stream":true,"messages":[` + messages + `]}` }
	tool := func(tools string) string { return strings.Replace(openAI, `"model"`, `"tools":`+tools+`,"model"`, 1) }
	to := func(messages string) string {
		return `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}` + messages + `]}`
	}
	for _, test := range []struct {
		d          Dialect
		body, want string
	}{
		{OpenAI, openAI, ""}, {Anthropic, claude, ""},
		{OpenAI, `{`, "unexpected EOF"}, {Anthropic, `{`, "unexpected EOF"},
		{OpenAI, strings.Replace(openAI, `"model"`, `"temper":1,"model"`, 1), "unknown field"},
		{OpenAI, strings.Replace(openAI, `true`, `false`, 1), "streamed"},
		{OpenAI, strings.Replace(openAI, `"m"`, `""`, 1), "no model"},
		{OpenAI, in(``), "no message"},
		{OpenAI, in(`{"role":"user","content":""}`), "empty"},
		{OpenAI, in(`{"role":"user"}`), "no content"},
		{OpenAI, in(`{"role":"robot","content":"x"}`), "not possible"},
		{OpenAI, in(`{"role":"assistant","content":"x"}`), "not a user's"},
		{OpenAI, in(user + `{"role":"assistant","content":"x"}`), "assistant's"},
		{OpenAI, in(user + call + `,{"role":"user","content":"x"}`), "1 calls are followed by 0 results"},
		{OpenAI, in(user + call + `,{"role":"tool","content":"x","tool_call_id":"b"}`), "0 results"},
		{OpenAI, in(user + `{"role":"tool","content":"x","tool_call_id":"b"}`), "results without calls"},
		{OpenAI, in(user + strings.Replace(call, "{}", "[]", 1) + answer), "not an object"},
		{OpenAI, in(user + strings.Replace(call, `"a"`, `""`, 1) + `,{"role":"tool","content":"x"}`), "is none"},
		{OpenAI, in(user + strings.Replace(call, "function", "other", 1)), "a call of type"},
		{OpenAI, in(user + strings.Replace(call, `"x"`, `"../x"`, 1) + answer), "the name of the tool"},
		{OpenAI, tool(`[{"type":"odd"}]`), "a tool of type"},
		{OpenAI, tool(`[{"type":"function","function":{"name":"a.b"}}]`), "the name of the tool"},
		{OpenAI, tool(`[{"type":"function","function":{"name":"a","parameters":{}}}]`), "the schema"},
		{OpenAI, tool(`[{"type":"function","function":{"name":"a","parameters":` +
			strings.Replace(schema, "{}", `{"a":{"type":"odd"}}`, 1) + `}}]`), "the schema"},
		{Anthropic, strings.Replace(claude, `"max_tokens":9,`, ``, 1), "max_tokens"},
		{Anthropic, strings.Replace(claude, `"text":"hi"`, `"text":""`, 1), "no text"},
		{Anthropic, strings.Replace(claude, `"model"`, `"system":[{"type":"odd"}],"model"`, 1), "system"},
		{Anthropic, to(`,{"role":"user","content":[{"type":"text","text":"hi"}]}`), "alternate"},
		{Anthropic, to(`,{"role":"assistant","content":[]}`), "0 blocks"},
		{Anthropic, to(`,{"role":"assistant","content":[{"type":"tool_result"}]}`), "not possible here"},
		{Anthropic, to(`,` + use + `,{"role":"user","content":[{"type":"text","text":"x"},` + result + `]}`), "not possible here"},
		{Anthropic, to(`,` + use +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"odd"}]}]}`), "no text"},
		{Anthropic, to(`,` + strings.Replace(use, `"a"`, `"a.b"`, 1) +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a.b"}]}`), "is none"},
		{Anthropic, to(`,` + use + `,{"role":"user","content":[` + result + `]}`), ""},
	} {
		s := New(t)
		s.Queue(Say("hi"))
		if got := post(t, s, test.d, test.body, nil); test.want != "" && !strings.Contains(got, test.want) ||
			test.want == "" && !strings.Contains(got, "event-stream") {
			t.Errorf("%s %s:\n%s\nwant %s", test.d, test.body, got, test.want)
		}
	}
	s := New(t)
	for header, want := range map[string]string{"Authorization": "bearer", "Content-Type": "JSON"} {
		if got := post(t, s, OpenAI, openAI, map[string]string{header: "odd"}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", header, got)
		}
	}
	for header, want := range map[string]string{"Authorization": "bearer", "Anthropic-Version": "required"} {
		if got := post(t, s, Anthropic, claude, map[string]string{header: "odd"}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", header, got)
		}
	}
	if got := post(t, s, OpenAI, openAI, nil); !strings.Contains(got, "no answer is left") {
		t.Errorf("when nothing is to be said: %s", got)
	}
}

// post sends a body and returns the kind and the text of the answer.
func post(t *testing.T, s *Server, d Dialect, body string, header map[string]string) string {
	t.Helper()
	path := map[Dialect]string{OpenAI: "/chat/completions", Anthropic: "/v1/messages"}[d]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(d)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Get("Content-Type") + " " + string(text)
}
