package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

// TestWhatDoesNotAnswerAtTheStart: a workspace keeps its own agent from working and nothing else; a file that the start needs is named.
func TestWhatDoesNotAnswerAtTheStart(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, key, file := filepath.Join(dir, "ws"), filepath.Join(dir, "key"), filepath.Join(dir, "c.yaml")
	if err := errors.Join(os.Mkdir(ws, 0o700), os.WriteFile(key, []byte("secret"), 0o600), os.WriteFile(file, []byte(
		"agents:\n- {name: helper, workspace: "+ws+", read: ["+ws+"], model: {provider: anthropic, name: m, api_key_file: "+key+"}}\n"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for _, silent := range []string{ws, key, file} {
			for range 4 {
				_ = own.Do(silent, func() error { <-answers; return nil })
			}
		}
		paths := config.Paths{DataDir: filepath.Join(dir, "data"), AdminKey: filepath.Join(dir, "data/admin.key")}
		if _, err := settings(cfg, paths, os.Getuid()); err != nil {
			t.Errorf("the settings: %v", err)
		}
		in := (&CLI{}).inspection(cfg, paths, accountOf(os.Getuid()))
		in.agent(cfg.Agents[0], "agents.0")
		var said []string
		for _, o := range in.found {
			said = append(said, o.Text)
		}
		want := "agents.workspace: the file system of " + ws + " does not answer, so helper cannot work; restart daycared when it does\n" +
			"agent helper: model.api_key_file: " + key + " cannot be read (" + key + ": its file system does not answer); " +
			"let the daemon's account read it, or name another file"
		if got := strings.Join(said, "\n"); got != want || in.found[0].fatal || !in.found[1].fatal {
			t.Errorf("it says %s", got)
		}
		if _, err := config.Load(file, nil); !errors.Is(err, own.ErrSilent) {
			t.Errorf("a configuration that does not answer: %v", err)
		}
		if _, err := api.LoadCertificate(file, file); !errors.Is(err, own.ErrSilent) {
			t.Errorf("a certificate that does not answer: %v", err)
		}
		head := func(context.Context) (string, int64, permissions.Digest, error) {
			return "c", 1, permissions.Digest{}, nil
		}
		heads := newPublisher(config.Heads{To: file}, head, nil)
		if err := heads.publish(t.Context(), time.Now()); !errors.Is(err, own.ErrSilent) || heads.told != 0 {
			t.Errorf("a file for heads that does not answer: %v, %d", err, heads.told)
		}
	})
}
