package store

import (
	"fmt"
	"testing"
)

// The linked library has no file-damaging bug, and its version has the form that people are shown.
func TestTheLibrarysVersion(t *testing.T) {
	var major, minor, patch int
	if n, err := fmt.Sscanf(LibraryVersion(), "%d.%d.%d", &major, &minor, &patch); n != 3 || err != nil {
		t.Fatalf("%q: %v", LibraryVersion(), err)
	}
	if number := major*1_000_000 + minor*1_000 + patch; number < oldestSQLite {
		t.Errorf("%s is older than %s", LibraryVersion(), oldestName)
	}
}

// A write after Close says so, and so does a second Close.
func TestAStoreThatIsClosed(t *testing.T) {
	s := newStore(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open(t.Context(), newAsk()); err == nil {
		t.Error("a closed store takes a request")
	}
	if _, err := s.Heartbeat(t.Context(), s.now()); err == nil {
		t.Error("a closed store is alive")
	}
	if _, _, err := s.Events(t.Context(), 0, 1); err == nil {
		t.Error("a closed store tells what happened")
	}
	if _, err := s.Verify(t.Context()); err == nil {
		t.Error("a closed store is verified")
	}
}
