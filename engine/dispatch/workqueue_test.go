package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A queue works on new prompts first, then on edits, on those of settled requests with the newest first, and nothing twice;
// a rank that rests delays what is less urgent and nothing else.
func TestWhatIsMoreUrgentIsDoneFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := newWorkQueue(func() time.Duration { return time.Since(start) }, slog.New(slog.DiscardHandler))
		for _, is := range []struct {
			id permissions.ID
			as rank
		}{
			{"seen", presenceEdit}, {"settled first", settledEdit}, {"settled last", settledEdit}, {"voted", pendingEdit},
			{"new", settledEdit}, {"new", firstCard}, {"newer", firstCard}, {"new", firstCard},
		} {
			q.put(is.id, is.as)
		}
		q.rest(pendingEdit, time.Second)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var done []permissions.ID
		var rested time.Duration
		err := q.run(ctx, func(_ context.Context, id permissions.ID) error {
			if done = append(done, id); id == "voted" {
				rested = time.Since(start)
			}
			if len(done) == 6 {
				end()
			}
			return nil
		})
		want := []permissions.ID{"new", "newer", "voted", "settled last", "settled first", "seen"}
		if err != nil || !slices.Equal(done, want) {
			t.Errorf("done %q, want %q, %v", done, want, err)
		}
		if rested != time.Second {
			t.Errorf("an edit was done after %v", rested)
		}
	})
}
