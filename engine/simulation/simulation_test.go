package simulation

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// days is how many are lived where SIM_SEEDS does not say.
const days = 6_000

// day lives one day.
func day(t *testing.T, seed uint64, wrong wrong) (w *world) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed)
		s := newShelf(w.now, 1)
		s.wrong = wrong
		w.store, w.judge = s, newJudge(w, s)
		w.live()
	})
	return w
}

// number reads a number of the environment.
func number(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// TestSimulation lives SIM_SEEDS days, from SIM_FIRST on.
func TestSimulation(t *testing.T) {
	first, n := number(t, "SIM_FIRST", 1), number(t, "SIM_SEEDS", days)
	var next, bad, lines, updates atomic.Uint64
	var virtual atomic.Int64
	began := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a quarter less of the processor, for 20 MiB
	t.Run("days", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1); i <= n && bad.Load() < 10; i = next.Add(1) {
					seed := first + i - 1
					w := day(t, seed, wrong{})
					lines.Add(uint64(len(w.trace)))
					updates.Add(w.delivered)
					virtual.Add(int64(w.lasted))
					if len(w.judge.found) > 0 {
						bad.Add(1)
						t.Errorf("seed %d: %s\n\tmake replay SEED=%d tells what happened", seed, strings.Join(w.judge.found, "; "), seed)
					}
				}
			})
		}
	})
	t.Logf("%d days, %.0f hours of them, %d decisions of the driver, %d deliveries of updates; %d days against the promises; %s",
		n, time.Duration(virtual.Load()).Hours(), lines.Load(), updates.Load(), bad.Load(), time.Since(began).Round(time.Second))
}

// oneAtATime has goroutines run one after the other: which of two that are both free to go comes first is not drawn from
// the seed, and the same day needs the same.
func oneAtATime(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestReplay tells what happened on the day of SIM_SEED.
func TestReplay(t *testing.T) {
	oneAtATime(t)
	seed := number(t, "SIM_SEED", 1)
	w := day(t, seed, wrong{})
	t.Logf("seed %d\n%s", seed, strings.Join(w.trace, "\n"))
	for _, found := range w.judge.found {
		t.Errorf("seed %d: %s", seed, found)
	}
}

// TestTheSameSeedIsTheSameDay lives some days twice.
func TestTheSameSeedIsTheSameDay(t *testing.T) {
	oneAtATime(t)
	for seed := uint64(1); seed <= number(t, "SIM_TWICE", 200); seed++ {
		one, other := day(t, seed, wrong{}), day(t, seed, wrong{})
		if one.hash() != other.hash() {
			t.Errorf("seed %d is another day: %s", seed, difference(one, other))
		}
	}
}

// difference is where two days part.
func difference(one, other *world) string {
	for i, line := range one.trace {
		if i >= len(other.trace) {
			return line + " | nothing"
		}
		if line != other.trace[i] {
			return strings.TrimSpace(line) + " | " + strings.TrimSpace(other.trace[i])
		}
	}
	return "nothing | more"
}

// TestTheSameDayOnSQLite lives some days on the real store as well: they are the same.
func TestTheSameDayOnSQLite(t *testing.T) {
	oneAtATime(t)
	for seed := uint64(1); seed <= 16; seed++ {
		one := day(t, seed, wrong{})
		var other *world
		path := filepath.Join(t.TempDir(), "daycared.db")
		synctest.Test(t, func(t *testing.T) {
			other = newWorld(seed)
			s, err := store.Open(t.Context(), store.Options{Path: path, Now: other.now, Log: slog.New(slog.DiscardHandler), LowPriorityWait: -1})
			if err != nil {
				t.Fatal(err)
			}
			other.store = s
			other.live()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		if one.hash() != other.hash() {
			t.Errorf("seed %d is another day: %s", seed, difference(one, other))
		}
	}
}
