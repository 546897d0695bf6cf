package main

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGrow: what is grown is in the audit, sealed, and ready to be answered. TestAGrownStoreIsSound of the daemon has it served.
func TestGrow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := grow(t.Context(), dir, crop{settled: 20, pending: 3, asked: "fay", over: time.Hour}); err != nil {
		t.Fatal(err)
	}
	o := store.Options{Path: filepath.Join(dir, "daycared.db"), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const settled, pending = 5, 2 // entries of each: asked, shown, voted on, settled, used
	if heads, err := s.Verify(t.Context()); err != nil || len(heads) != 1 || heads[0].Seq != 20*settled+3*pending {
		t.Errorf("%v, %v", heads, err)
	}
	if waiting, err := s.Pending(t.Context(), "fay", "", 9); err != nil || len(waiting) != 3 {
		t.Errorf("%d wait, %v", len(waiting), err)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
}
