package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/permissions"
)

func TestContradictoryFieldsAreRefused(t *testing.T) {
	for _, c := range []struct{ body, words string }{
		{`{"kind":"wish"}`, `unknown kind "wish"`},
		{`{"kind":"permission","permissions":["@network"],"tool":"x"}`, `tool does not belong to kind "permission"`},
		{`{"kind":"permission","permissions":["@network"],"input":{}}`, "input does not belong"},
		{`{"kind":"permission","permissions":["@network"],"calls":[]}`, "calls does not belong"},
		{`{"kind":"permission","permissions":["@network"],"hook":"codex"}`, "hook does not belong"},
		{`{"kind":"permission","permissions":["@network"],"harmless":true}`, "harmless does not belong"},
		{`{"kind":"pause","message":"m","mode":"confirm","affected_path":"/a"}`, "affected_path does not belong"},
		{`{"kind":"permission","permissions":["@network"],"options":["a"]}`, "options does not belong"},
		{`{"kind":"permission","permissions":["@network"],"mode":"confirm"}`, "mode does not belong"},
		{`{"kind":"permission","permissions":["@network"],"message":"m"}`, "but to tool, pause or clarification"},
		{`{"kind":"tool","permissions":["@network"]}`, "permissions does not belong"},
		{`{"kind":"tool","tool":"x","calls":[{"tool":"y"}]}`, "either tool and input, or calls"},
		{`{"kind":"tool","input":{},"calls":[{"tool":"y"}]}`, "either tool and input, or calls"},
		{`{"kind":"pause","message":"m","mode":"confirm","options":["a"]}`, "options does not belong"},
		{`{"kind":"pause","message":"m","mode":"confirm","scope":"once"}`, "but to permission or tool"},
		{`{"kind":"clarification","message":"m","mode":"confirm"}`, "mode does not belong"},
		{`{"kind":"permission","permissions":["@nework"]}`, "@network"},
		{`{"kind":"permission","scope":"week"}`, "unknown scope"},
		{`{"kind":"permission","timeout":"soon"}`, "timeout must be"},
		{`{"kind":"permission","timeout":"999ms"}`, "at least 1s"},
		{`{"kind":"permission","timeout":"-5m"}`, "at least 1s"},
		{`{"kind":"permission","timeout":"999999999999h"}`, "at most 2562047h"},
		{`{"kind":"permission","wait":"51s"}`, "wait must be"},
		{`{"kind":"permission","wait":"-1s"}`, "wait must be"},
		{`{"kind":"permission","wait":"x"}`, "wait must be"},
		{`{"kind":"permission","reason":"` + strings.Repeat("r", MaxBody) + `"}`, "at most 65536 bytes"},
	} {
		var a Ask
		if err := Decode([]byte(c.body), &a); err != nil {
			t.Errorf("%.60s: %v", c.body, err)
			continue
		}
		_, _, err := a.Question()
		var refusal *permissions.Refusal
		if !errors.As(err, &refusal) || refusal.Code != permissions.CodeInvalid || !strings.Contains(refusal.Text, c.words) {
			t.Errorf("%.60s: %v, want a refusal with %q", c.body, err, c.words)
		}
	}
	broken := json.RawMessage(`{"a":1,"a":2}`)
	for _, a := range []Ask{
		{Kind: permissions.KindTool, Tool: "x", Input: broken},
		{Kind: permissions.KindTool, Calls: []AskedCall{{Tool: "x", Input: broken}}},
	} {
		if _, _, err := a.Question(); err == nil {
			t.Errorf("an input with a member twice was taken: %+v", a)
		}
	}
}

func TestAQuestionGoesThereAndBack(t *testing.T) {
	details := strings.Repeat("d", permissions.MaxDetails)
	for _, q := range []permissions.Request{
		{
			Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network, write}, Reason: "r",
			Agent: "deploy-1", Claimed: true, Session: "s", Host: "h", Cwd: "/c", Key: "k", Details: details,
			Widest: permissions.For(time.Hour), WantedTimeout: 90 * time.Second,
		},
		{Kind: permissions.KindTool, Tool: "run_command", Input: json.RawMessage(`{"cmd":"ls"}`)},
		{Kind: permissions.KindTool, Tool: "Edit", Input: json.RawMessage(`{}`), AffectedPath: "/a", Hook: "claude-code", Harmless: true},
		{Kind: permissions.KindTool, Calls: []permissions.Call{
			{N: 1, Tool: "a", Input: json.RawMessage(`null`)}, {N: 2, Tool: "b", Input: json.RawMessage(`[1,2]`)},
		}},
		{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "go?"},
		{Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"}},
	} {
		a := AskOf(q)
		a.Wait = "50s"
		body, err := Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		var read Ask
		if err := Decode(body, &read); err != nil {
			t.Fatal(err)
		}
		back, wait, err := read.Question()
		if err != nil || wait != MaxWait {
			t.Fatalf("%s: wait %s, %v", q.Kind, wait, err)
		}
		scopes := cmp.Comparer(func(a, b permissions.Scope) bool { return a == b })
		tags := cmp.Comparer(func(a, b permissions.Tag) bool { return a == b })
		if diff := cmp.Diff(q, back, scopes, tags, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-asked +read):\n%s", q.Kind, diff)
		}
	}
}

func TestInputIsCanonical(t *testing.T) {
	q, _, err := Ask{Kind: permissions.KindTool, Tool: "x", Input: json.RawMessage(`{"b": 1.50, "a":"\u0041"}`)}.Question()
	if want := `{"a":"A","b":1.50}`; err != nil || string(q.Input) != want {
		t.Errorf("input %s, %v; want %s", q.Input, err, want)
	}
}

func FuzzAskBody(f *testing.F) {
	for _, body := range []string{
		`{"kind":"permission","permissions":["@write:/srv"],"reason":"r","timeout":"15m","scope":"session","wait":"50s"}`,
		`{"kind":"tool","tool":"run_command","input":{"cmd":["ls",{"a":null}],"n":1e9}}`,
		`{"kind":"tool","calls":[{"tool":"a","input":null},{"tool":"b"}],"input":null}`,
		`{"kind":"clarification","message":"\u2028","options":["a","b"]}`,
		`{"kind":"pause","mode":"continue","message":"m","details":"\ud83d\ude00"}`,
		`{"kind":"pause","kind":"tool"}`, `{"Kind":"pause"}`, "\xef\xbb\xbf{}", `[[[[]]]]`, `null`, `{} {}`,
		"{\"kind\":\"\xff\"}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var a Ask
		if err := Decode(body, &a); err != nil {
			return
		}
		again, err := Encode(a)
		if err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		var b Ask
		if err := Decode(again, &b); err != nil {
			t.Fatalf("%s cannot be read again: %v", again, err)
		}
		if diff := cmp.Diff(a, b, raw); diff != "" {
			t.Fatalf("another value (-first +again):\n%s", diff)
		}
		q, _, err := a.Question()
		if err != nil {
			return
		}
		if back, _, err := AskOf(q).Question(); err != nil || back.Kind != q.Kind || back.WantedTimeout != q.WantedTimeout {
			t.Fatalf("asked again: %+v, %v", back, err)
		}
	})
}

// raw compares inputs as JSON, because encoding may remove spaces.
var raw = cmp.Comparer(func(a, b json.RawMessage) bool {
	x, errX := permissions.CanonicalJSON(a)
	y, errY := permissions.CanonicalJSON(b)
	return errX == nil && errY == nil && string(x) == string(y)
})
