package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// session stores an agent's session before the daemon starts: session AGENT PERSON REQUEST. It sets $SESSION to its id. A
// REQUEST of - means none.
func session(ts *testscript.TestScript, _ bool, args []string) {
	ctx, now, dir := context.Background(), time.Now(), ts.Getenv("DAYCARED_DATA_DIR")
	ts.Check(os.MkdirAll(dir, 0o700))
	s, err := store.Open(ctx, store.Options{
		Path: filepath.Join(dir, storeName), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	a := permissions.AgentSession{
		ID: permissions.NewID(now), Agent: args[0], Person: args[1], Status: permissions.Idle, Model: "qwen3", Tokens: 1234,
		Cost: 56700, Version: 1, CreatedAt: now, ChangedAt: now,
	}
	if args[2] != "-" {
		a.Status, a.Tool, a.Request = permissions.AwaitingUser, "run_command", permissions.ID(args[2])
	}
	ts.Check(s.Commit(ctx, agents.Commit{Session: a}))
	ts.Setenv("SESSION", string(a.ID))
}

func TestCostsAreSaidInTheirCurrency(t *testing.T) {
	for millionths, want := range map[int64]string{0: "-", 56_700: "0.0567", 12_000_050: "12.0000", 1_230_000: "1.2300"} {
		if got := cost(millionths); got != want {
			t.Errorf("%d millionths are %s, want %s", millionths, got, want)
		}
	}
}
