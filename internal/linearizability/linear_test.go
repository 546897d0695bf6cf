package linearizability_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The library of WhatsApp sometimes leaves this behind, with a frame for a closed socket.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.mau.fi/whatsmeow/socket.(*FrameSocket).readPump"))
}

// layouts are how many scenes run at a time, and with how many clients each.
var layouts = []struct{ tables, clients, share int }{
	{8, 8, 6}, {4, 16, 2}, {2, 32, 1}, {1, 64, 1},
}

// usual is the default number of calls.
const usual = 100_000

// mustCome are prefixes of replies that must occur for the run to be meaningful.
var mustCome = []string{
	"allows → the row pending", "allows → the row approved", "allows → the row approved, used", "denies → the row denied",
	"allows → already settled approved", "denies → already settled denied", "allows → already settled expired",
	"allows → not yours", "allows → stopped", "allows → no reply", "allows → unknown",
	"asks → the row pending", "asks → the row approved, used", "asks → the row approved, taken back", "asks → the row denied",
	"asks → the row expired", "asks → stopped", "asks → no reply", "cancels → the row cancelled",
	"cancels → already settled approved", "takes it back → the row approved, taken back", "takes it back → no unused approval",
	"reads → the row pending", "reads → the row approved, used",
}

func TestDecidingIsLinearizable(t *testing.T) {
	t.Run("D4/linearizable", func(t *testing.T) {
		calls, seed := int64(usual), uint64(time.Now().UnixNano())
		if n, err := strconv.ParseInt(os.Getenv("LINEAR_OPS"), 10, 64); err == nil {
			calls = n
		}
		if n, err := strconv.ParseUint(os.Getenv("LINEAR_SEED"), 10, 64); err == nil {
			seed = n
		}
		t.Logf("LINEAR_SEED=%d", seed)
		defer debug.SetGCPercent(debug.SetGCPercent(400)) // saves a fifth of the processor time for 100 MiB
		s := newEnv(t, nil)
		began, all := time.Now(), &tally{}
		k := &switches{clock: s.clock, who: "fay", at: s.people["fay"]}
		until := int64(0)
		for _, l := range layouts {
			until += calls * int64(l.share) / 10
			if err := s.run(t.Context(), l.tables, l.clients, seed+uint64(l.clients), until, all, k); err != nil {
				t.Fatalf("LINEAR_SEED=%d: %v", seed, err)
			}
		}
		for _, what := range mustCome {
			if all.calls.Load() >= usual && !strings.Contains(all.String(), "  "+what) {
				t.Errorf("in %d calls this never came: %s", all.calls.Load(), what)
			}
		}
		if most := 1 + all.requests.Load()/1000; all.undecided.Load() > most {
			t.Errorf("of %d requests no order was found in time, which may be at most %d", all.undecided.Load(), most)
		}
		took := time.Since(began)
		t.Logf("%d calls in %s, %.0f a second\n%s", all.calls.Load(), took.Round(time.Millisecond),
			float64(all.calls.Load())/took.Seconds(), all)
	})
}

// run plays so many scenes concurrently until the number of calls is reached, and returns the first violation.
func (s *env) run(
	ctx context.Context, tables, clients int, seed uint64, until int64, all *tally, k *switches,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	for table := range tables {
		group.Go(func() {
			for n := 0; ctx.Err() == nil && all.calls.Load() < until; n++ {
				name := fmt.Sprintf("%d-%d-%d", clients, table, n)
				h := s.runScenario(ctx, name, seed+uint64(table)<<32+uint64(n), clients, all, k)
				if ctx.Err() != nil {
					return
				}
				undecided, err := h.check()
				if err != nil {
					stop(err)
				}
				all.requests.Add(int64(len(h.met)))
				all.undecided.Add(int64(undecided))
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return k.failed
}

// tally counts calls and replies.
type tally struct {
	calls, requests, undecided atomic.Int64

	mu   sync.Mutex
	came map[string]int // by act
}

func (t *tally) count(d deed, made call) int64 {
	what := string(d.act) + " → " + string(made.reply.word)
	if state := made.reply.row.state; state != absent {
		what += " " + state
	}
	if made.reply.row.used {
		what += ", used"
	}
	if made.reply.row.void {
		what += ", taken back"
	}
	t.mu.Lock()
	if t.came == nil {
		t.came = map[string]int{}
	}
	t.came[what]++
	t.mu.Unlock()
	return t.calls.Add(1)
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("%d requests, %d of them undecided\n", t.requests.Load(), t.undecided.Load())
	for _, what := range slices.Sorted(maps.Keys(t.came)) {
		text += fmt.Sprintf("%8d  %s\n", t.came[what], what)
	}
	return text
}
