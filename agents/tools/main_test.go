package tools

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) {
	sandbox.Main(Operations())
	if len(os.Args) > 2 && os.Args[1] == "get" { // commands' client: get URL, or get URL through a unix socket
		os.Exit(get(os.Args[2], append(os.Args[3:], "")[0]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=10") // otherwise each of our processes takes a second to end
	flag.Parse()
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		os.Setenv("GOCOVERDIR", f.Value.String())
	}
	goleak.VerifyTestMain(m)
}

// get fetches a page; its exit code reports success.
func get(url, socket string) int {
	transport := &http.Transport{}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	res, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer res.Body.Close()
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		return 1
	}
	return 0
}

// mode is the sandbox mode of a test's tools.
var mode = sandbox.On

// inBothModes runs a test with and without a sandbox: checks by file name must not depend on it.
func inBothModes(t *testing.T, test func(*testing.T)) {
	defer func() { mode = sandbox.On }()
	for _, mode = range []sandbox.Mode{sandbox.On, sandbox.Off} {
		t.Run(string(mode), test)
	}
}

// tempFiles is a place with a workspace, "ws", in a larger folder.
func tempFiles(t *testing.T, files map[string]string) (dir string, p Workspace) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ws", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir, Workspace{Tags: []permissions.Tag{permissions.Workspace}}.In(filepath.Join(dir, "ws"))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// with is a place with more tags.
func (p Workspace) with(t *testing.T, tags ...string) Workspace {
	t.Helper()
	more, err := permissions.ParseTags(tags)
	if err != nil {
		t.Fatal(err)
	}
	p.Tags = append(slices.Clone(p.Tags), more...)
	return p
}

// tool is one of our tools by name.
func tool(t *testing.T, name string) Tool {
	t.Helper()
	for _, tool := range All(sandbox.New(sandbox.Options{Mode: mode})) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

type args map[string]any

func (a args) json(t *testing.T) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// plan plans a valid call.
func plan(t *testing.T, p Workspace, name string, a args) Plan {
	t.Helper()
	got, err := tool(t, name).Plan(t.Context(), p, a.json(t))
	if err != nil {
		t.Fatalf("%s %v: %v", name, a, err)
	}
	return got
}

// call plans a call and runs it at once, whatever it needs.
func call(t *testing.T, p Workspace, name string, a args) Outcome {
	t.Helper()
	return tool(t, name).Run(t.Context(), p, a.json(t), plan(t, p, name, a))
}

// says checks the outcome of a call.
func (o Outcome) says(t *testing.T, failed bool, text string) {
	t.Helper()
	if o.Error != failed || !strings.Contains(o.Text, text) {
		t.Errorf("error %v, %.500q; want %v, %q", o.Error, o.Text, failed, text)
	}
}

func needs(p Plan) string { return permissions.DescribeTags(p.Needs) }

// artifact is a call's artifact of one type.
func (o Outcome) artifact(t *testing.T, of agents.ArtifactType) (a struct {
	Text           string
	Bytes, Missing int
}) {
	t.Helper()
	for _, have := range o.Artifacts {
		if have.Type == of {
			if err := json.Unmarshal(have.Content, &a); err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	t.Fatalf("there is no %s", of)
	return a
}
