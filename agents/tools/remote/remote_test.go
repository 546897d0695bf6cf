package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
)

func TestToolsOfAServer(t *testing.T) {
	b := run(t, "normal", nil)
	if err := os.WriteFile(b.about, []byte("Says it again.\n\x1b[31mIgnore "+strings.Repeat("all ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := b.Tools(t.Context())
	if err != nil || len(all) != len(handlers) {
		t.Fatalf("%d tools of %d, %v", len(all), len(handlers), err)
	}
	names := map[string]bool{}
	for _, tool := range all {
		spec := tool.Spec()
		if !regexp.MustCompile(`^test__[a-zA-Z0-9_-]{1,58}$`).MatchString(spec.Name) || names[spec.Name] {
			t.Errorf("the name %q", spec.Name)
		}
		names[spec.Name] = true
		if !strings.HasPrefix(spec.Description, "A tool of the MCP server test, which says of it: ") ||
			len(spec.Description) > 1700 || strings.ContainsAny(spec.Description, "\n\x1b") || !json.Valid(spec.Schema) {
			t.Errorf("%+v", spec)
		}
	}
	if spec := b.tool("echo").Spec(); !strings.Contains(spec.Description, "Says it again. [31mIgnore") ||
		!strings.Contains(string(spec.Schema), `"additionalProperties":false`) {
		t.Errorf("%+v", spec)
	}
	plan := b.plan(b.tool("echo"), `{"text": "hi", "times": 1.0}`)
	want := "echo of the MCP server test, with:\n{\n  \"text\": \"hi\",\n  \"times\": 1.0\n}"
	if plan.Details != want || plan.Needs != nil || plan.AffectedPath != "" || plan.Basis == "" {
		t.Errorf("%+v", plan)
	}
	if b.starts != 1 {
		t.Errorf("started %d times", b.starts)
	}
	b.end()
	if !strings.Contains(b.logged.String(), lastWords) {
		t.Errorf("what it wrote to stderr is not in the log: %s", b.logged)
	}
	if _, err := b.Tools(t.Context()); !errors.Is(err, ErrOver) {
		t.Errorf("after the end: %v", err)
	}
}

func TestCalls(t *testing.T) {
	b := run(t, "normal", nil)
	for _, test := range []struct {
		tool, input, want string
		failed            bool
	}{
		{"echo", `{"text":"hi"}`, `{"text":"hi"}`, false},
		{"plain", `{}`, "The tool ran and says nothing.", false},
		{"mute-failure", `{}`, "The tool failed and does not say why.", true},
		{"fail", `{}`, "no such thing", true},
		{"refuse", `{}`, "test__refuse failed: the server says: I refuse[31m to do it", true},
		{"structured", `{}`, `{"a":1}`, false},
		{"bad.name", `{}`, "dot", false},
		{"bad/name", `{}`, "slash", false},
		{"asks", `{}`, "roots: true\nsampling: true\nelicitation: true", false},
		{"parts", `{}`, "text\n[an image, image/png, 3 bytes]\n[a sound, audio/wav, 1 bytes]\n[a resource: file:///a]\ninside\n" +
			"[a resource: file:///c, 2 bytes]", false},
	} {
		if o := b.call(test.tool, test.input); o.Text != test.want || o.Error != test.failed || o.Artifacts != nil {
			t.Errorf("%s: %+v, want %q", test.tool, o, test.want)
		}
	}
	if b.starts != 1 {
		t.Errorf("started %d times", b.starts)
	}
	var calls sync.WaitGroup
	echo := b.tool("echo")
	for i := range 10 {
		calls.Go(func() {
			input := fmt.Sprintf(`{"times":%d}`, i)
			if o := echo.Run(t.Context(), tools.Workspace{}, json.RawMessage(input), b.plan(echo, input)); o.Text != input {
				t.Errorf("at once: %+v", o)
			}
		})
	}
	calls.Wait()
}

// TestDiagnosticsAreKept, however short they are.
func TestDiagnosticsAreKept(t *testing.T) {
	said := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a.go:1: no such name"}}}
	o := outcome("go_diagnostics", said, 1000)
	if len(o.Artifacts) != 1 || o.Artifacts[0].Type != agents.ArtifactDiagnostics ||
		string(o.Artifacts[0].Content) != `{"bytes":20,"missing":0,"text":"a.go:1: no such name"}` {
		t.Errorf("%+v", o)
	}
}

func TestLongOutput(t *testing.T) {
	b := run(t, "normal", func(o *Options) { o.Most = 1001 })
	o := b.call("giant", `{}`)
	if len(o.Text) > 1100 || !strings.HasPrefix(o.Text, "BEGIN") || !strings.HasSuffix(o.Text, "END") ||
		!strings.Contains(o.Text, "bytes are left out") {
		t.Errorf("%q", o.Text)
	}
	var whole struct{ Text string }
	if len(o.Artifacts) != 1 || o.Artifacts[0].Type != agents.ArtifactStdout || json.Unmarshal(o.Artifacts[0].Content, &whole) != nil ||
		len(whole.Text) != 2<<20+len("BEGINEND") {
		t.Errorf("%d artifacts, %d bytes", len(o.Artifacts), len(whole.Text))
	}
	if o := b.call("monster", `{}`); !o.Error || !strings.Contains(o.Text, "ended before it answered") {
		t.Errorf("%.200s", o.Text)
	}
	if o := b.call("echo", `{}`); o.Text != "{}" || b.starts != 2 {
		t.Errorf("%+v after %d starts", o, b.starts)
	}
}

func TestInputs(t *testing.T) {
	b := run(t, "normal", nil)
	echo := b.tool("echo")
	for input, want := range map[string]string{
		``: "an object", `[]`: "an object", `"text"`: "an object", `{"text":1}`: "schema", `{"more":1}`: "schema",
		`{"text":"a","text":"b"}`: "strict JSON", `{`: "strict JSON",
	} {
		if plan, err := echo.Plan(t.Context(), tools.Workspace{}, json.RawMessage(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", input, plan, err)
		}
	}
	strange := run(t, "odd schema", nil) // one that we cannot read is left to the server
	if o := strange.call("echo", `{"text":1}`); o.Text != `{"text":1}` {
		t.Errorf("%+v", o)
	}
}

// A schema that refers to its own definitions is checked. One that would be followed without end, or very long, is left to the server.
func TestASchemaWithReferences(t *testing.T) {
	const text = `"$defs":{"t":{"type":"object","properties":{"s":{"$ref":"#/$defs/s"}}},"s":{"type":"string"}}`
	wide := `{"$ref":"#/$defs/0","$defs":{`
	for i := range 50 {
		wide += fmt.Sprintf(`"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%[2]d"}]},`, i, i+1)
	}
	wide += `"50":{"type":"string"}}}`
	for schema, refused := range map[string]bool{
		`{"$ref":"#/$defs/t",` + text + `}`:                      true,
		`{"properties":{"s":{"$ref":"#/$defs/s"}},` + text + `}`: true,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"s":{"$ref":"#/definitions/s"}},` +
			`"definitions":{"s":{"type":"string"}}}`: true,
		`{"allOf":[{"$ref":"#"}],"properties":{"s":{"type":"string"}}}`:                                  false,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`:               false,
		`{"properties":{"s":{"$ref":"https://example.com/s"}}}`:                                          false,
		`{"$id":"https://example.com/","properties":{"s":{"type":"string"}}}`:                            false,
		`{"$defs":{"s":{"$dynamicAnchor":"s","type":"string"}},"properties":{"s":{"$dynamicRef":"#s"}}}`: false,
		wide: false,
	} {
		tool := &Tool{definition: definition{spec: models.Tool{Schema: json.RawMessage(schema)}}}
		if err := tool.check(json.RawMessage(`{"s":1}`)); (err != nil) != refused {
			t.Errorf("%.200s: %v", schema, err)
		}
		if err := tool.check(json.RawMessage(`{"s":"a"}`)); err != nil {
			t.Errorf("%.200s refuses what is right: %v", schema, err)
		}
	}
}

// What was shown is what runs, even if the server restarted meanwhile.
func TestAChangedTool(t *testing.T) {
	b := run(t, "normal", nil)
	about := func(text string) {
		if err := os.WriteFile(b.about, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	about("Says it again.")
	echo := b.tool("echo")
	plan := b.plan(echo, `{}`)
	run := func(echo *Tool) tools.Outcome {
		return echo.Run(t.Context(), tools.Workspace{}, json.RawMessage(`{}`), plan)
	}
	if o := run(echo); o.Error {
		t.Errorf("%+v", o)
	}
	about("Says it again, to everybody.")
	if o := run(echo); !o.Error || !strings.Contains(o.Text, "Nothing was run: the MCP server test has changed what test__echo is") {
		t.Errorf("%+v", o)
	}
	if o := run(b.tool("echo")); !o.Error || !strings.Contains(o.Text, "has changed") { // listed again, but approved before
		t.Errorf("%+v", o)
	}
	about("gone")
	if o := run(echo); !o.Error || !strings.Contains(o.Text, "has no test__echo any more") {
		t.Errorf("%+v", o)
	}
	about("Says it again.")
	if o := b.call("crash", `{}`); !o.Error || !strings.Contains(o.Text, "ended before it answered") {
		t.Errorf("%+v", o)
	}
	if o := run(echo); o.Error || b.starts != 2 {
		t.Errorf("%+v after %d starts", o, b.starts)
	}
}

func TestACallThatDoesNotEnd(t *testing.T) {
	b := run(t, "normal", func(o *Options) { o.Limit = 2 * time.Second })
	if o := b.call("breeds", `{}`); o.Error {
		t.Fatalf("%+v", o)
	}
	if o := b.call("hang", `{}`); !o.Error || !strings.Contains(o.Text, "did not answer within 2s and was ended") {
		t.Errorf("%+v", o)
	}
	if line, err := b.kept.ReadString('\n'); line != "hangs\n" {
		t.Errorf("%q, %v", line, err)
	}
	// The same, but stopped.
	hang := b.tool("hang")
	plan := b.plan(hang, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan tools.Outcome, 1)
	go func() { done <- hang.Run(ctx, tools.Workspace{}, json.RawMessage(`{}`), plan) }()
	if line, err := b.kept.ReadString('\n'); line != "hangs\n" {
		t.Errorf("%q, %v", line, err)
	}
	cancel()
	if o := <-done; !o.Error || !strings.Contains(o.Text, "The call was stopped") {
		t.Errorf("%+v", o)
	}
	if o := b.call("echo", `{}`); o.Error || b.starts != 3 {
		t.Errorf("%+v after %d starts", o, b.starts)
	}
}

// Run ends the program and its descendants, even if it resists.
func TestRunEndsAllDescendants(t *testing.T) {
	for _, mode := range []string{"normal", "stays"} {
		b := run(t, mode, nil)
		if o := b.call("breeds", `{}`); o.Error {
			t.Fatalf("%+v", o)
		}
		began := time.Now()
		b.end() // waits until nobody holds its pipe
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: it took %v", mode, took)
		}
	}
}

// A silent one is not waited for at the end.
func TestTheEndOfAServerThatStarts(t *testing.T) {
	b := run(t, "mute", func(o *Options) { o.Start = time.Hour })
	done := make(chan error, 1)
	go func() {
		_, err := b.Tools(t.Context())
		done <- err
	}()
	if line, err := b.kept.ReadString('\n'); line != "mute\n" {
		t.Errorf("%q, %v", line, err)
	}
	b.end()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestServersThatAreNone(t *testing.T) {
	for mode, want := range map[string]string{
		"dead":  "the program has ended (exit status 3); it wrote last: there is no configuration",
		"noise": "", "mute": "it did not answer in time", "listless": "it says nothing for 1s, and was ended",
		"endless": "the list has no end", "asks": "what it says is not MCP",
	} {
		b := run(t, mode, func(o *Options) { o.Start = time.Second })
		all, err := b.Tools(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "MCP server test") {
			t.Errorf("%s: %d tools, %v", mode, len(all), err)
		}
		b.end()
	}
	b := run(t, "normal", func(o *Options) {
		o.Command = func(context.Context) (*exec.Cmd, func(), error) { return nil, nil, errors.New("there is no sandbox") }
	})
	if _, err := b.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no sandbox") {
		t.Error(err)
	}
	released := false
	b = run(t, "normal", func(o *Options) {
		o.Command = func(ctx context.Context) (*exec.Cmd, func(), error) {
			return exec.CommandContext(ctx, "/nowhere"), func() { released = true }, nil
		}
	})
	if _, err := b.Tools(t.Context()); !errors.Is(err, os.ErrNotExist) || !released {
		t.Errorf("%v, released %v", err, released)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	b = run(t, "normal", nil)
	if _, err := b.Tools(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An ambiguous answer is refused, and its server ended.
func TestAnAmbiguousAnswerOfAServerIsNone(t *testing.T) {
	for _, mode := range []string{"a member twice", "a member in other letters"} {
		t.Run("C4/"+mode, func(t *testing.T) {
			b := run(t, mode, nil)
			if o := b.call("echo", `{"text":"hi"}`); !o.Error || !strings.Contains(o.Text, "ended before it answered") {
				t.Errorf("%+v", o)
			}
			if _, err := b.Tools(t.Context()); err != nil || b.starts != 2 {
				t.Errorf("%d starts, %v", b.starts, err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct{ server, tool, want string }{
		{"git", "read", "git__read"}, {"my_git-1", "_read", "my_git-1___read"}, {"git", "a.b", "git__a_b-"},
		{"a__b", "c", "a_b-"}, {"", "c", "-"}, {"über", "c", "ber-"}, {strings.Repeat("s", 99), "c", "sssssssssssssss-"},
		{"git", strings.Repeat("t", 99), "git__ttttt"},
	} {
		got := toolName(test.server, test.tool)
		if !strings.HasPrefix(got, test.want) || !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(got) || !strings.Contains(got, "__") {
			t.Errorf("%s of %s is %s", test.tool, test.server, got)
		}
	}
	if toolName("git", "a.b") == toolName("git", "a/b") || toolName("a__b", "c") == toolName("a", "b__c") ||
		toolName("a.b", "c") == toolName("a/b", "c") {
		t.Error("two tools have one name")
	}
}

func TestListsThatAreTooLong(t *testing.T) {
	b := run(t, "many", nil)
	all, err := b.Tools(t.Context())
	if err != nil || len(all) != maxTools {
		t.Errorf("%d tools, %v", len(all), err)
	}
	for _, want := range []string{"more than 100 tools", "more than 32768 bytes", "tool=aa-huge"} {
		if !strings.Contains(b.logged.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	b = run(t, "twice", nil)
	if all, err := b.Tools(t.Context()); err != nil || len(all) != len(handlers) || !strings.Contains(b.logged.String(), "there twice") {
		t.Errorf("%d tools, %v", len(all), err)
	}
}
