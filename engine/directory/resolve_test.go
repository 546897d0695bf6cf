package directory

import (
	"testing"
	"testing/synctest"

	"github.com/daycared/daycared/internal/own"
)

func TestWhereANameLeadsIsUnknownWhereItsFileSystemDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for range 4 {
			_, _ = own.LookUpFor("helper", "/", func() (int, error) { <-answers; return 0, nil })
		}
		if to := linkResolver("helper")("/etc/../srv"); to != "" {
			t.Errorf("it leads to %q", to)
		}
		if to := linkResolver("other")("/etc/../srv"); to != "/srv" {
			t.Errorf("for another agent it leads to %q", to)
		}
	})
}
