package registry

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

const crowd = 64

// together runs f in many goroutines that start at the same time, and waits for them.
func together(f func(i int)) {
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range crowd {
		done.Go(func() {
			start.Wait()
			f(i)
		})
	}
	start.Done()
	done.Wait()
}

// Many decide one request with many waiters: there is one decision, and every waiter receives it.
func TestManyResolveOneRequest(t *testing.T) {
	t.Run("D4/racing answers", func(t *testing.T) {
		m := newRoom()
		var waiters [crowd]*Waiter
		var id permissions.ID
		for i := range waiters {
			var r permissions.Request
			waiters[i], r = m.ask(t, m.fresh(nil))
			id = r.ID
		}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		var won, lost, got, elsewhere, used atomic.Int32
		together(func(i int) {
			events := []permissions.Transition{
				permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall()}},
				permissions.Cast{Vote: permissions.Vote{By: "sam", Answer: permissions.Allow(permissions.Once), At: m.wall()}},
			}
			c, err := m.Resolve(ctx, id, events[i%len(events)])
			switch {
			case err == nil && c.Settled():
				won.Add(1)
			case errors.Is(err, permissions.ErrSettled):
				lost.Add(1)
			default:
				t.Errorf("got %v, %+v", err, c)
			}
			r, err := waiters[i].Wait(ctx)
			switch {
			case err == nil && r.State == permissions.Approved:
				got.Add(1)
			case errors.Is(err, ErrUsedElsewhere):
				elsewhere.Add(1)
			default:
				t.Errorf("rang with %s, %v", r.State, err)
			}
			if _, err := m.Resolve(ctx, id, permissions.Use{Call: strconv.Itoa(i), At: m.wall()}); err == nil {
				used.Add(1)
			} else if !errors.Is(err, permissions.ErrNoUse) {
				t.Errorf("use: %v", err)
			}
			waiters[i].Leave(ctx)
		})
		if won.Load() != 1 || lost.Load() != crowd-1 || got.Load() != 1 || elsewhere.Load() != crowd-1 || used.Load() != 1 {
			t.Errorf("won %d, lost %d, got it %d, elsewhere %d, used %d",
				won.Load(), lost.Load(), got.Load(), elsewhere.Load(), used.Load())
		}
		if m.Waiting(id) != 0 {
			t.Errorf("%d still wait", m.Waiting(id))
		}
	})
}

// Calls come, park, return and leave while the request is decided and the clock runs: everybody who waits to the end is
// woken, an approval for once is used by one call at most, and no waiter is left.
func TestManyComeAndGo(t *testing.T) {
	for round := range 20 {
		m := newRoom()
		run, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- m.Run(run) }()
		feed := m.Subscribe(10 * crowd)
		keep, r := m.ask(t, m.fresh(nil))
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		var used atomic.Int32
		together(func(i int) {
			if i == crowd/2 {
				m.decide(t, r.ID, []permissions.Answer{permissions.Allow(permissions.Once), permissions.Deny}[round%2])
				return
			}
			q := m.fresh(func(q *permissions.Request) { q.Call = strconv.Itoa(i) })
			w, row, _, err := m.Register(ctx, permissions.Opening{Request: q}, false)
			if err != nil {
				t.Errorf("register: %v", err)
				return
			}
			if row.ID != r.ID { // it came after the decision and asks again
				w.Leave(ctx)
				return
			}
			switch i % 4 {
			case 0:
				w.Leave(ctx)
				return
			case 1:
				w.Park(time.Minute)
				back, ok := m.Rejoin(q.Call)
				if !ok || back != w {
					t.Errorf("the place of %d is gone", i)
					return
				}
			}
			got, err := w.Wait(ctx)
			if err != nil && !errors.Is(err, ErrUsedElsewhere) || got.State == permissions.Pending {
				t.Errorf("%d rang with %s, %v", i, got.State, err)
			}
			if err == nil && got.State == permissions.Approved {
				if _, err := m.Resolve(ctx, got.ID, permissions.Use{Call: q.Call, At: m.wall()}); err == nil {
					used.Add(1)
				}
			}
			w.Leave(ctx)
		})
		if _, err := keep.Wait(ctx); err != nil {
			t.Errorf("whoever waited from the start got %v", err)
		}
		keep.Leave(ctx)
		if used.Load() > 1 || m.Waiting(r.ID) != 0 {
			t.Errorf("used %d times, %d still wait", used.Load(), m.Waiting(r.ID))
		}
		feed.Close()
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		end()
	}
}

// The row says that nobody waits exactly if nobody does, whoever came and left last.
func TestThePresenceThatIsStoredIsTheLast(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	first.Leave(t.Context())
	for range 20 {
		stay := make(chan *Waiter, crowd)
		together(func(i int) {
			w, _, err := m.Attach(t.Context(), r.ID)
			if err != nil {
				t.Error(err)
				return
			}
			if i%8 == 0 {
				stay <- w
				return
			}
			w.Leave(t.Context())
		})
		close(stay)
		if !m.store.row(r.ID).LeftAt.IsZero() {
			t.Fatal("some wait, and the row says that nobody does")
		}
		for w := range stay {
			w.Leave(t.Context())
		}
		if m.store.row(r.ID).LeftAt.IsZero() {
			t.Fatal("nobody waits, and the row says that somebody does")
		}
	}
}
