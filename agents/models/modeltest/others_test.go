package modeltest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Requests of other programs are read as far as the dialects agree, whatever else they contain.
func TestOthers(t *testing.T) {
	for _, test := range []struct {
		d          Dialect
		body, want string
	}{
		{OpenAI, `{"temperature":1,"tools":[{"function":{"name":"bash"}}],"messages":[{"role":"system"},{"role":"user","content":"hi"}]}`,
			"user hi bash"},
		{OpenAI, `{"messages":[{"role":"tool","content":[{"type":"text","text":"out"}]}]}`, "tool out "},
		{Anthropic, `{"thinking":{},"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`,
			"user hi Bash"},
		{Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":"out"},{"type":"text","text":"note"}]}]}`,
			"tool out\nnote "},
		{Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"no"}]}]}]}`, "tool no "},
		{OpenAI, `{"messages":[]}`, "refused"},
		{OpenAI, `{`, "refused"},
	} {
		s := ServeOthers()
		s.Queue(Say("fine"))
		path := "/chat/completions"
		if test.d == Anthropic {
			path = "/v1/messages"
		}
		answer, err := http.Post(s.URL(test.d)+path, "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		got := "refused"
		if answer.StatusCode == http.StatusOK {
			r := s.Requests()[0]
			got = string(r.Last().Role) + " " + r.Last().Text + " "
			for _, tool := range r.Prompt.Tools {
				got += tool.Name
			}
		}
		if err != nil || got != test.want {
			t.Errorf("%s is read as %q, not %q: %s, %v", test.body, got, test.want, text, err)
		}
		s.Close()
	}
}
