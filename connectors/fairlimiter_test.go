package connectors

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// Tokens go to whoever was served least recently, never faster than the rate; who gives up is skipped.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, began := NewFairLimiter(rate.Every(time.Second), 1), time.Now()
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		wait := func(ctx context.Context, who string) {
			all.Go(func() {
				if turns.Wait(ctx, who) == nil {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprint(who, int(time.Since(began).Seconds())))
				}
			})
			synctest.Wait()
		}
		brief, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		for _, who := range []string{"a", "a", "a", "b"} {
			wait(t.Context(), who)
		}
		wait(brief, "c")
		<-time.After(1500 * time.Millisecond)
		wait(t.Context(), "d")
		all.Wait()
		if want := []string{"a0", "b1", "d2", "a3", "a4"}; !slices.Equal(got, want) {
			t.Errorf("the turns were %v; want %v", got, want)
		}
		if len(turns.waiting) > 0 {
			t.Errorf("%v wait", turns.waiting)
		}
	})
}
