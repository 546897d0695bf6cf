package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestRestoreAfterADeathWhileWriting kills the daemon during its writes, restores a backup that was made during writes too, and
// finds every request from before the backup, and an intact chain.
func TestRestoreAfterADeathWhileWriting(t *testing.T) {
	l := newLoop(t)
	l.begin()
	var mu sync.Mutex
	var stored []permissions.ID // in the order of their confirmation
	write := func(writer int) {
		for i := 0; l.ctx.Err() == nil; i++ {
			s, err := l.agents.Begin(l.ctx, permissions.Request{
				Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: fmt.Sprintf("%d-%d", writer, i),
			})
			if err != nil {
				return // the daemon is dead
			}
			mu.Lock()
			stored = append(stored, s.Request.ID)
			mu.Unlock()
			_, _ = l.agents.Cancel(l.ctx, s.Request.ID)
		}
	}
	known := func() []permissions.ID {
		mu.Lock()
		defer mu.Unlock()
		return stored[:len(stored):len(stored)]
	}
	atLeast := func(n int) {
		l.await("requests", func(context.Context) error {
			if len(known()) < n {
				return fmt.Errorf("%d of %d are stored", len(known()), n)
			}
			return nil
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(l.binary, append(args, "--config", filepath.Join(l.dir, "c.yaml"))...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("daycared %v: %v\n%s", args, err, out)
		}
	}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { write(w) })
	}
	atLeast(20)
	saved := known()
	backup := filepath.Join(l.dir, "backup.db")
	run("backup", backup)
	atLeast(len(known()) + 20)
	l.kill()
	writers.Wait()
	run("restore", backup)
	l.rise("")
	for _, id := range saved {
		if _, err := l.people.Show(l.ctx, string(id)); err != nil {
			t.Errorf("request %s of the backup: %v", id, err)
		}
	}
	last := known()[len(known())-1]
	if _, err := l.people.Show(l.ctx, string(last)); err == nil {
		t.Error("the newest request, which the backup cannot have, is there")
	}
	heads, err := l.people.Verify(l.ctx)
	if err != nil || len(heads) != 1 || heads[0].Seq < 1_000_000 {
		t.Errorf("the audit: %v, %v", heads, err)
	}
	newer, err := l.people.Audit(l.ctx, heads[0].Seq-1, 1)
	if err != nil || len(newer) != 1 {
		t.Errorf("after the gap: %v, %v", newer, err)
	}
}
