package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAGrownStoreIsSound: the output of tools/grow is a valid store of the current schema.
func TestAGrownStoreIsSound(t *testing.T) {
	l := newLoop(t)
	grow := filepath.Join(l.dir, "grow")
	if out, err := exec.Command("go", "build", "-o", grow, "../../tools/grow").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for range 2 { // once into a new store, once into an existing one
		if out, err := exec.Command(grow, "-settled", "30", "-pending", "2", filepath.Join(l.dir, "data")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	l.begin()
	if out, err := exec.Command(grow, "-settled", "1", filepath.Join(l.dir, "data")).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "a daemon runs on ") {
		t.Errorf("beside a daemon: %v\n%s", err, out)
	}
	for command, says := range map[string]string{
		"audit verify": "verified", "doctor": "the daemon takes questions", "pending": "network access",
	} {
		args := append([]string{"--config", filepath.Join(l.dir, "c.yaml")}, strings.Fields(command)...)
		out, err := exec.Command(l.binary, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), says) || strings.Contains(string(out), "wrong  ") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if list, err := l.people.List(l.ctx, "", 0); err != nil || len(list) != 4 {
		t.Errorf("%d wait, %v", len(list), err)
	}
	if log, err := exec.Command(l.binary, "--config", filepath.Join(l.dir, "c.yaml"), "audit", "--json").Output(); err != nil ||
		strings.Count(string(log), `"REQUEST_USED"`) != 60 {
		t.Errorf("%d were used, %v", strings.Count(string(log), `"REQUEST_USED"`), err)
	}
}
