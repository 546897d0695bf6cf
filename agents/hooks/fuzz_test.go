package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/permissions"
)

// FuzzDialect gives arbitrary bytes to the hooks of all dialects. Unreadable input is denied with a reason, readable input is a
// valid question, and only an approval allows.
func FuzzDialect(f *testing.F) {
	for at, name := range Names() {
		files, err := filepath.Glob(filepath.Join("testdata", name, "*.json"))
		if err != nil || len(files) == 0 {
			f.Fatalf("%s has no files: %v", name, err)
		}
		for _, file := range files {
			input, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint(at), input)
		}
	}
	for _, input := range []string{
		``, `{}`, `null`, `[]`, `{"hook_event_name":"PreToolUse","hook_event_name":"x"}`, "\ufeff{}", `{"hook_event_name":"preToolUse"}`,
		`{"hookName":null,"sessionId":"s","cwd":"/","toolName":"x","toolArgs":"{\"a\":1,\"a\":2}"}`,
		`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls","description":"d"}}`,
		`{"hook_event_name":"beforeMCPExecution","conversation_id":"c","workspace_roots":["/"],"tool_name":"t","tool_input":"{}","url":"u"}`,
	} {
		for at := range dialects {
			f.Add(uint(at), []byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, at uint, input []byte) {
		d := dialects[at%uint(len(dialects))]
		c, err := d.Read(input)
		if err != nil {
			denies(t, c.Reply(Refuse(err)))
			return
		}
		if c.Recall.Via != "" { // it decides nothing
			return
		}
		if nowhere := func(string) string { return "/none" }; c.Harmless(nowhere) && (c.questions != nil || c.event == "PermissionRequest") {
			t.Fatalf("%s leaves what is asked about anyway", d.Name)
		}
		r := c.Request
		if canonical, err := permissions.CanonicalJSON(r.Input); err != nil || !bytes.Equal(canonical, r.Input) {
			t.Fatalf("%s asks about %q, which is not canonical: %v", d.Name, r.Input, err)
		}
		if err := r.Validate(); err != nil || r.Kind != permissions.KindTool || !r.Claimed || r.Hook != c.dialect || r.Session == "" {
			t.Fatalf("%s asks %+v, %v", d.Name, r, err)
		}
		again, err := d.Read(input)
		if diff := cmp.Diff(permissions.ComputeDigest(r), permissions.ComputeDigest(again.Request)); err != nil || diff != "" {
			t.Fatalf("%s reads it as two questions: %v %s", d.Name, err, diff)
		}
		for _, state := range []permissions.State{
			"", permissions.Pending, permissions.Denied, permissions.Expired, permissions.Cancelled, permissions.Undeliverable,
		} {
			r.State = state
			if reply := c.Reply(VerdictOf(r, nil)); !c.quiet {
				denies(t, reply)
			} else if len(reply.Body) > 0 || reply.Exit != 0 {
				t.Fatalf("%s says %q of what nobody has allowed, exit %d", d.Name, reply.Body, reply.Exit)
			}
		}
		if c.quiet {
			return
		}
		r.State = permissions.Approved
		denies(t, c.Reply(VerdictOf(r, context.DeadlineExceeded)))
		reply := c.Reply(VerdictOf(r, nil))
		if silent := c.dialect == "codex" && c.event == "PreToolUse"; silent && len(reply.Body) == 0 && reply.Exit == 0 {
			return
		} else if silent || reply.Exit != 0 || len(words(t, reply)) != 1 || words(t, reply)[0] != "allow" {
			t.Fatalf("%s says of an approval %q, exit %d", d.Name, reply.Body, reply.Exit)
		}
	})
}

// denies checks that a reply denies, with a reason.
func denies(t *testing.T, reply Reply) {
	t.Helper()
	if reply.Exit == exitBlock && reply.Complaint != "" && len(reply.Body) == 0 {
		return
	}
	if said := words(t, reply); reply.Exit != 0 || len(said) != 1 || said[0] != "deny" {
		t.Fatalf("a denial is %q, exit %d", reply.Body, reply.Exit)
	}
}

// verdicts are the members in which agents read a verdict.
var verdicts = []string{"permissionDecision", "decision", "permission", "behavior"}

// words returns the verdicts in a reply.
func words(t *testing.T, reply Reply) (said []string) {
	t.Helper()
	var find func(any)
	find = func(v any) {
		object, _ := v.(map[string]any)
		for name, value := range object {
			if word, is := value.(string); is && slices.Contains(verdicts, name) {
				said = append(said, word)
			}
			find(value)
		}
	}
	var v any
	if err := json.Unmarshal(reply.Body, &v); err != nil {
		t.Fatalf("%q is no JSON: %v", reply.Body, err)
	}
	find(v)
	return said
}
