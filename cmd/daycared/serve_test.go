package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// serving is a command line whose daemon runs in this process, in its own folders.
func serving(t *testing.T, stderr *watched) *CLI {
	t.Helper()
	run, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	file := filepath.Join(run, "config.yaml")
	if err := os.WriteFile(file, []byte("connectors: {terminal: {enabled: false}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &CLI{In: null, Out: stderr, Err: stderr, UID: os.Getuid(), Environ: []string{
		"HOME=" + run, "DAYCARED_CONFIG=" + file, "DAYCARED_DATA_DIR=" + filepath.Join(run, "data"),
		"DAYCARED_API_AGENT_SOCKET=" + filepath.Join(run, "agent"), "DAYCARED_API_ADMIN_SOCKET=" + filepath.Join(run, "admin"),
	}}
}

// watched records what is written, and calls a function of on when its text first appears.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   map[string]func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	for text, act := range w.on {
		if strings.Contains(w.text.String(), text) {
			delete(w.on, text)
			act()
		}
	}
	return len(p), nil
}

// A SIGHUP during the start does not end the daemon: it reloads the configuration after the start.
func TestReloadDuringTheStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr := &watched{}
	stderr.on = map[string]func(){
		"people can be reached only while their inbox is open": func() { // a warning, logged before anything is opened
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		},
		"configuration read again": stop,
	}
	if code := serving(t, stderr).Run(ctx, []string{"serve"}); code != 0 || len(stderr.on) > 0 {
		t.Errorf("exit code %d, and said is:\n%s", code, stderr.text.String())
	}
}

var errPart = errors.New("this part fails")

type failingPart struct{ connectors.Connector }

func (failingPart) Run(context.Context) error { return errPart }

// If a part of the daemon fails, the daemon ends with that error.
func TestServeEndsWhenAPartFails(t *testing.T) {
	c := serving(t, &watched{})
	cfg, paths, err := c.load()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := openDataDir(paths.DataDir, c.UID, "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(t.Context(), c, cfg, paths, slog.New(slog.DiscardHandler), nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	d.parts = append(d.parts, failingPart{})
	if err := d.serve(t.Context(), c, nil, nil); !errors.Is(err, errPart) {
		t.Errorf("the daemon ended with %v, want %v", err, errPart)
	}
}

// The machine's service is recognized as the daemon of its configuration by every account, whatever that account's data
// directory.
func TestTheServiceIsTheDaemonOfItsConfiguration(t *testing.T) {
	theirs := config.Paths{DataDir: "/home/fay/.local/state/daycared"}
	for _, try := range []struct {
		daemon, file, data string
		want               bool
	}{
		{config.SystemFile, config.SystemFile, "/var/lib/daycared", true},
		{config.SystemFile, config.SystemFile, theirs.DataDir, true},
		{"/srv/c.yaml", "/srv/c.yaml", theirs.DataDir, true},
		{"/srv/c.yaml", "/srv/c.yaml", "/srv/data", false},
		{"/srv/c.yaml", config.SystemFile, theirs.DataDir, false},
		{"", "", "/var/lib/daycared", false},
	} {
		s := admin.Status{Daemon: admin.Daemon{Config: wire.OrNull(try.daemon), DataDir: try.data}}
		if got := serves(s, &config.Config{File: try.file}, theirs); got != try.want {
			t.Errorf("%+v: %v", try, got)
		}
	}
}

// A service manager may start the next daemon before the end of the last one is noticed: the last one is gone all the same.
func TestStopIsDoneWhenTheNextDaemonRuns(t *testing.T) {
	stderr := &watched{}
	c := serving(t, stderr)
	_, paths, err := c.load()
	if err != nil {
		t.Fatal(err)
	}
	next, err := openDataDir(paths.DataDir, c.UID, "")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	daemon := admin.NewClient(paths.AdminSocket, paths.AdminKey)
	defer daemon.Close()
	last := admin.Daemon{PID: os.Getpid() + 1, DataDir: paths.DataDir}
	if err := c.waitForEnd(t.Context(), daemon, last, time.Second); err != nil {
		t.Error(err)
	}
	if want := fmt.Sprintf("a new one, pid %d, runs already", os.Getpid()); !strings.Contains(stderr.text.String(), want) {
		t.Errorf("said is %q, want %q", stderr.text.String(), want)
	}
}

// A failing daemon is not mistaken for a request that is no longer kept.
func TestAuditSaysThatTheDaemonFails(t *testing.T) {
	daemon := admin.NewClient(filepath.Join(t.TempDir(), "admin"), "")
	defer daemon.Close()
	told, err := lru.New[permissions.ID, permissions.RequestView](1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lookUp(t.Context(), daemon, told, "K7F3Q"); !errors.Is(err, client.ErrUnreachable) || told.Len() > 0 {
		t.Errorf("%d are remembered, %v", told.Len(), err)
	}
}

// TestADaemonSaysHowFarAMigrationIs at the agents' socket, until it serves.
func TestADaemonSaysHowFarAMigrationIs(t *testing.T) {
	run, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(run)
	d := &daemon{cfg: &config.Config{}, paths: config.Paths{AgentSocket: filepath.Join(run, "agent")}, log: slog.New(slog.DiscardHandler)}
	asks, err := client.New(client.Options{Socket: d.paths.AgentSocket})
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close()
	for _, done := range []int64{1, 2} {
		d.migrating("steps done", done, 3)
		if err := asks.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(%d of 3 steps done)", done)) {
			t.Errorf("it says: %v", err)
		}
	}
	d.stopNotReady()
	if err := asks.Ready(t.Context()); !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("then: %v", err)
	}
}
