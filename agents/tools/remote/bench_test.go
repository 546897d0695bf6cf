package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	if mode := os.Getenv(modeEnv); mode != "" {
		os.Exit(serveTest(mode))
	}
	goleak.VerifyTestMain(m)
}

// bench is a running server with its traces.
type bench struct {
	*Server
	t      *testing.T
	end    func()        // ends Run and waits
	kept   *bufio.Reader // its programs' output; ends when all are gone
	about  string        // a file
	starts int
	logged *buffer
}

// buffer is a log.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func run(t *testing.T, mode string, change func(*Options)) *bench {
	t.Helper()
	dir := t.TempDir()
	kept := filepath.Join(dir, keptName)
	if err := syscall.Mkfifo(kept, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(kept, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(kept, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, kept: bufio.NewReader(r), about: filepath.Join(dir, aboutName), logged: &buffer{}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	walls := sandbox.New(sandbox.Options{})
	o := Options{Name: "test", Log: slog.New(slog.NewTextHandler(b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Command: func(ctx context.Context) (*exec.Cmd, func(), error) {
			b.starts++
			within := sandbox.Policy{Read: []string{self}, Write: []string{dir}, Env: []string{modeEnv + "=" + mode, placeEnv + "=" + dir}}
			return walls.Command(ctx, within, self)
		}}
	if change != nil {
		change(&o)
	}
	b.Server = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	var once sync.Once
	b.end = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			_ = w.Close()
			if _, err := io.ReadAll(b.kept); err != nil { // it ends when the last process does
				t.Error(err)
			}
			_ = r.Close()
		})
	}
	t.Cleanup(func() {
		b.end()
		if t.Failed() {
			t.Log(b.logged)
		}
	})
	return b
}

// tool is one of the server's, by its own name.
func (b *bench) tool(name string) *Tool {
	b.t.Helper()
	all, err := b.Tools(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, t := range all {
		if t := t.(*Tool); t.definition.name == name {
			return t
		}
	}
	b.t.Fatalf("there is no tool %s among %d", name, len(all))
	return nil
}

func (b *bench) plan(t *Tool, input string) tools.Plan {
	b.t.Helper()
	plan, err := t.Plan(b.t.Context(), tools.Workspace{}, json.RawMessage(input))
	if err != nil {
		b.t.Fatal(err)
	}
	return plan
}

func (b *bench) call(name, input string) tools.Outcome {
	b.t.Helper()
	t := b.tool(name)
	return t.Run(b.t.Context(), tools.Workspace{}, json.RawMessage(input), b.plan(t, input))
}
