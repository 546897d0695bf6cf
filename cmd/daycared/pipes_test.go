package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/internal/wire"
)

// TestPipesAreNotRead: a pipe in place of a configured file does not block the daemon.
func TestPipesAreNotRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &CLI{}
	for name, read := range map[string]func() error{
		"token":        func() error { _, err := readSecret(pipe, "a token"); return err },
		"admin key":    func() error { _, _, err := adminKey(pipe); return err },
		"instructions": func() error { _, err := agentInstructions(config.Agent{InstructionsFile: pipe}); return err },
		"script": func() error {
			_, err := c.model(config.Agent{Model: config.AgentModel{Provider: config.Script, File: pipe}}, nil)
			return err
		},
		"certificate": func() error { _, err := api.LoadCertificate(pipe, pipe); return err },
		"certificates": func() error {
			_, err := wire.NewRemoteClient("https://daycared.example", wire.RemoteOptions{CAFile: pipe})
			return err
		},
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
