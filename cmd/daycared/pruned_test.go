package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

// pruned creates a store whose audit has only the entries 5 and 6.
func pruned(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, now, dir := context.Background(), time.Now(), ts.Getenv("DAYCARED_DATA_DIR")
	ts.Check(os.MkdirAll(dir, 0o700))
	s, err := store.Open(ctx, store.Options{
		Path: filepath.Join(dir, storeName), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	old := now.AddDate(-2, 0, 0)
	for _, at := range []time.Time{old, old, old, old, now} {
		ts.Check(s.Record(ctx, permissions.Record{Type: permissions.DecisionRefused, At: at}))
	}
	_, err = s.Prune(ctx, permissions.Keep{Audit: now.Sub(now.AddDate(-1, 0, 0))}, now, 9)
	ts.Check(err)
}

// putback restores tables from a backup to the store of a stopped daemon.
func putback(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.Getenv("DAYCARED_DATA_DIR"), storeName)
	ts.Check(storetest.PutBack(context.Background(), path, ts.MkAbs(args[0]), args[1:]...))
}

// change runs SQL on the store, bypassing the daemon.
func change(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.Getenv("DAYCARED_DATA_DIR"), storeName)
	ts.Check(storetest.Change(context.Background(), path, args...))
}
