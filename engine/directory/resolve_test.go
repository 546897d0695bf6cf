package directory

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestWhereANameLeadsIsUnknownWhereItsFileSystemDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for range 4 {
			looks.Run("helper", new(atomic.Uint64), func() { <-answers })
		}
		if to := resolving("helper")("/etc/../srv"); to != "" {
			t.Errorf("it leads to %q", to)
		}
		if to := resolving("other")("/etc/../srv"); to != "/srv" {
			t.Errorf("for another agent it leads to %q", to)
		}
	})
}
