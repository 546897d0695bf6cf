package store

import (
	"fmt"
	"testing"
)

// The library that is linked is one that does not damage files, and says so in the form that people are told.
func TestTheLibrarysVersion(t *testing.T) {
	var major, minor, patch int
	if n, err := fmt.Sscanf(LibraryVersion(), "%d.%d.%d", &major, &minor, &patch); n != 3 || err != nil {
		t.Fatalf("%q: %v", LibraryVersion(), err)
	}
	if number := major*1_000_000 + minor*1_000 + patch; number < oldest {
		t.Errorf("%s is older than %s", LibraryVersion(), oldestName)
	}
}

// A write after the end says so, and so does a second end.
func TestAStoreThatIsClosed(t *testing.T) {
	s := newStore(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open(t.Context(), newAsk()); err == nil {
		t.Error("a closed store takes a request")
	}
	if _, err := s.Pulse(t.Context(), s.now()); err == nil {
		t.Error("a closed store is alive")
	}
	if _, _, err := s.Happenings(t.Context(), 0, 1); err == nil {
		t.Error("a closed store tells what happened")
	}
	if _, err := s.Verify(t.Context()); err == nil {
		t.Error("a closed store is verified")
	}
}
