package storetest

import (
	"testing"
	"time"
)

func testPulse(t *testing.T, b Backend) {
	s := b.Open(t)
	for i, want := range []time.Time{{}, noon} {
		if last, err := s.Heartbeat(t.Context(), time.Time{}); err != nil || !last.Equal(want) {
			t.Errorf("it is known to have run %s, %v; want %s", last, err, want)
		}
		last, err := s.Heartbeat(t.Context(), noon.Add(time.Duration(i)*time.Minute))
		if err != nil || !last.Equal(want) {
			t.Errorf("it last ran %s, %v; want %s", last, err, want)
		}
	}
}
