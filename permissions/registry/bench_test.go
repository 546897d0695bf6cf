package registry

import (
	"context"
	"crypto/rand"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// instant is a store that commits at once. It forgets settled requests, and stores nothing that is kept elsewhere.
type instant struct {
	*memory
	elsewhere bool
	committed time.Time // the time of the last change
}

func (s *instant) Open(_ context.Context, o permissions.Opening) (permissions.Request, bool, error) {
	if !s.elsewhere {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rows[o.Request.ID] = o.Request
	}
	return o.Request, true, nil
}

func (s *instant) Apply(_ context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := permissions.Step(s.rows[id], e)
	delete(s.rows, id)
	s.committed = time.Now()
	return c, err
}

func newInstant(elsewhere bool) (*Registry, *instant) {
	s, began := &instant{memory: newMemory(), elsewhere: elsewhere}, time.Now()
	clock := timing.Clock{Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }}
	return New(s, clock, redeemWindow, slog.New(slog.DiscardHandler)), s
}

// BenchmarkWake measures from the end of the commit to the return of its Wait, on another goroutine. It alternates with
// the minimal registry, from the beginning of its waiting to the end.
func BenchmarkWake(b *testing.B) {
	g, s := newInstant(false)
	ids := make(chan permissions.ID, 1)
	var deciding sync.WaitGroup
	deciding.Go(func() {
		for id := range ids {
			if _, err := g.Resolve(b.Context(), id, vote("fay", permissions.Allow(permissions.Once))); err != nil {
				b.Error(err)
			}
		}
	})
	least := newLeast()
	r := theirs(permissionRequest())
	r.Deadline = time.Now().Add(time.Hour)
	r.CreatedAt = r.Deadline.Add(-time.Hour)
	var ours, bare []time.Duration
	for b.Loop() {
		r.ID = permissions.NewID(time.Now())
		w, _, _, err := g.Register(b.Context(), permissions.Opening{Request: r}, false)
		if err != nil {
			b.Fatal(err)
		}
		ids <- r.ID
		if got, err := w.Wait(b.Context()); err != nil || got.State != permissions.Approved {
			b.Fatal(got.State, err)
		}
		ours = append(ours, time.Since(s.committed))
		w.Leave(b.Context())

		began := time.Now()
		if state := least.wait(r.ID); state != permissions.Approved {
			b.Fatal(state)
		}
		bare = append(bare, time.Since(began))
	}
	close(ids)
	least.close()
	deciding.Wait()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(middle(ours).Nanoseconds()), "wake-ns")
	b.ReportMetric(float64(middle(bare).Nanoseconds()), "bare-ns")
	b.ReportMetric(float64(middle(ours))/float64(middle(bare)), "ratio")
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// least is a minimal registry without a store, rules or texts: a map of channels, and a timer for each waiter.
type least struct {
	mu    sync.Mutex
	waits map[permissions.ID]chan permissions.State
	ids   chan permissions.ID
	done  chan struct{}
}

func newLeast() *least {
	l := &least{waits: map[permissions.ID]chan permissions.State{}, ids: make(chan permissions.ID, 1), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for id := range l.ids {
			l.mu.Lock()
			c := l.waits[id]
			delete(l.waits, id)
			l.mu.Unlock()
			c <- permissions.Approved
		}
	}()
	return l
}

func (l *least) enter(id permissions.ID) (chan permissions.State, *time.Timer) {
	c := make(chan permissions.State, 1)
	l.mu.Lock()
	l.waits[id] = c
	l.mu.Unlock()
	return c, time.NewTimer(time.Hour)
}

func (l *least) wait(id permissions.ID) permissions.State {
	c, timer := l.enter(id)
	defer timer.Stop()
	l.ids <- id
	select {
	case state := <-c:
		return state
	case <-timer.C:
		return permissions.Expired
	}
}

func (l *least) close() {
	close(l.ids)
	<-l.done
}

// The most of the process's memory that may be kept for a request with and without a waiter, in bytes.
const (
	maxHeld      = 512
	maxUnwatched = 128
)

// BenchmarkPending measures what the process keeps for each request with and without a waiter, besides its row in the
// store and the goroutine of the caller; alternately what the minimal registry keeps.
func BenchmarkPending(b *testing.B) {
	for _, many := range []int{10_000, 100_000} {
		b.Run("waiting-"+strconv.Itoa(many), func(b *testing.B) {
			var waiting, alone, bare []float64
			for b.Loop() {
				waiting = append(waiting, weight(many, func() any { return throng(b, many, true) }))
				alone = append(alone, weight(many, func() any { return throng(b, many, false) }))
				bare = append(bare, weight(many, func() any {
					l := &least{waits: map[permissions.ID]chan permissions.State{}}
					timers := make([]*time.Timer, 0, many)
					for range many {
						_, timer := l.enter(permissions.NewID(time.Now()))
						timers = append(timers, timer)
					}
					b.Cleanup(func() {
						for _, t := range timers {
							t.Stop()
						}
					})
					return l
				}))
			}
			b.ReportMetric(0, "ns/op")
			slices.Sort(waiting)
			slices.Sort(alone)
			slices.Sort(bare)
			b.ReportMetric(waiting[len(waiting)/2], "B/waiting")
			b.ReportMetric(alone[len(alone)/2], "B/nobody-waits")
			b.ReportMetric(bare[len(bare)/2], "B/bare")
			b.ReportMetric(waiting[len(waiting)/2]/maxHeld, "of-512-B")
			b.ReportMetric(alone[len(alone)/2]/maxUnwatched, "unwatched-of-128-B")
		})
	}
}

// weight returns how many bytes each of many leaves on the heap.
func weight(many int, do func() any) float64 {
	before := heap()
	kept := do()
	after := heap()
	runtime.KeepAlive(kept)
	return (float64(after) - float64(before)) / float64(many)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // the first has emptied the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// throng is a registry with that many requests, each with a named waiting call, or without.
func throng(b *testing.B, many int, waited bool) *Registry {
	g, _ := newInstant(true)
	r := theirs(toolRequest())
	r.Deadline = time.Now().Add(15 * time.Minute)
	for range many {
		var err error
		r.ID = permissions.NewID(time.Now())
		if waited {
			r.Call = r.Caller.Name + "/" + rand.Text()
			_, _, _, err = g.Register(b.Context(), permissions.Opening{Request: r}, false)
		} else {
			_, _, err = g.Open(b.Context(), permissions.Opening{Request: r})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return g
}
