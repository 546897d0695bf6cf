package dispatch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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

// absent is the error of a person who may open an inbox.
type absent struct{ error }

// ReadySignal is nil, as of an inbox that is not awaited.
func (absent) ReadySignal() <-chan struct{} { return nil }

// Nothing is wrong while a person's inbox is closed for a moment: only other failures that come again are warned about.
func TestWhoIsAwayForAMomentIsNoWarning(t *testing.T) {
	for why, want := range map[error]slog.Level{absent{errors.New("away")}: slog.LevelDebug, errors.New("broken"): slog.LevelWarn} {
		var said bytes.Buffer
		q := newWorkQueue(func() time.Duration { return 0 }, slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})))
		q.finish(t.Context(), "x", firstCard, why)
		q.finish(t.Context(), "x", firstCard, why)
		if _, last, _ := strings.Cut(said.String(), "\n"); !strings.Contains(last, "level="+want.String()) {
			t.Errorf("%v is logged as %s", why, last)
		}
	}
}
