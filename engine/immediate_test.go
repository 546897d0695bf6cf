package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

const (
	// usualDecisions is the number of decisions in a run of the benchmark, unless DECISIONS says otherwise.
	usualDecisions = 5000
	// askersAtOnce is the number of concurrent askers, each asking again as soon as it is answered.
	askersAtOnce = 200
	// channels is the number of people, each in a channel of their own that shows prompts one after the other.
	channels = 8
	// slowestFinger is the longest delay between a prompt and its answer; the shortest is none.
	slowestFinger = 2 * time.Millisecond
	// hungAfter is when a question counts as never answered.
	hungAfter = time.Minute
)

// TestWhoDecidesAtOnceIsHeard answers every prompt within two milliseconds, twice at once, with allow and deny: one
// answer counts, the one that was told so, and the asker gets the same.
func TestWhoDecidesAtOnceIsHeard(t *testing.T) {
	r := newBenchEnv(t)
	r.run(10 * askersAtOnce)
	if r.hung.Load()+r.doubled.Load()+r.lost.Load() > 0 {
		t.Errorf("hung %d, doubled %d, lost %d", r.hung.Load(), r.doubled.Load(), r.lost.Load())
	}
	if len(r.both) != 2 {
		t.Errorf("in the end there was only %v", r.both)
	}
	if _, err := r.rows.Verify(t.Context()); err != nil {
		t.Errorf("the audit: %v", err)
	}
}

// BenchmarkImmediate does the same DECISIONS times, all in one store, and counts the errors.
func BenchmarkImmediate(b *testing.B) {
	many := usualDecisions
	if n, err := strconv.Atoi(os.Getenv("DECISIONS")); err == nil {
		many = n
	}
	r := newBenchEnv(b)
	b.Run("part", func(b *testing.B) {
		began, done := time.Now(), 0
		for b.Loop() {
			r.run(many)
			done += many
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(done), "decisions")
		b.ReportMetric(float64(done)/time.Since(began).Seconds(), "decisions/s")
		b.ReportMetric(float64(r.hung.Swap(0)), "hung")
		b.ReportMetric(float64(r.doubled.Swap(0)), "doubled")
		b.ReportMetric(float64(r.lost.Swap(0)), "lost")
	})
}

// benchEnv is an engine over a real store whose people answer at once, twice.
type benchEnv struct {
	*engine.Engine
	t       testing.TB
	rows    *store.Store
	fingers sync.WaitGroup
	number  atomic.Int64

	hung, doubled, lost atomic.Int64

	mu      sync.Mutex
	told    map[permissions.ID]permissions.Request // what askers were told
	counted map[permissions.ID]permissions.State   // what people were told counts
	both    map[permissions.State]int              // the number of each outcome
}

func newBenchEnv(t testing.TB) *benchEnv {
	t.Helper()
	rows, err := wiretest.OpenStore(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "store.db"), Now: time.Now, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	r := &benchEnv{t: t, rows: rows, both: map[permissions.State]int{}}
	s := usual()
	s.People, s.Routes = nil, nil
	var all []connectors.Connector
	for i := range channels {
		p := connectors.Person{Name: fmt.Sprint("p", i), User: fmt.Sprint("p", i), UID: fayUID + i, Location: time.UTC}
		s.People = append(s.People, p)
		s.Routes = append(s.Routes, engine.Route{Tools: []string{toolOf(i)}, Ask: []string{p.Name}})
		all = append(all, &instantChannel{benchEnv: r, person: p})
	}
	s.Limits = engine.Limits{PendingPerCaller: 10 * askersAtOnce, PendingTotal: 10 * askersAtOnce, PromptsPerMinute: 1 << 40}
	r.Engine = engine.New(engine.Options{
		Store: rows, Settings: s, Now: time.Now, Log: quiet(),
	})
	r.Connect(all...)
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func toolOf(channel int) string { return fmt.Sprint("tool_", channel) }

// instantChannel is the channel of one person.
type instantChannel struct {
	*benchEnv
	person connectors.Person
}

var _ connectors.ReachabilityChecker = (*instantChannel)(nil)

func (q *instantChannel) Name() string { return "phone-" + q.person.Name }

func (q *instantChannel) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (q *instantChannel) Reach(p connectors.Person) error {
	if p.Name != q.person.Name {
		return &connectors.UnreachableError{Reason: p.Name + " has another telephone"}
	}
	return nil
}

// Send answers a prompt twice at once.
func (q *instantChannel) Send(_ context.Context, p connectors.Prompt) (string, error) {
	if p.Request.State != permissions.Pending {
		return string(p.Request.ID), nil
	}
	for _, a := range []permissions.Answer{permissions.Allow(permissions.Once), permissions.Deny} {
		q.fingers.Add(1)
		time.AfterFunc(rand.N(slowestFinger), func() {
			defer q.fingers.Done()
			q.press(connectors.Decision{
				Request: p.Request.ID, Answer: a, From: connectors.Identity{Via: q.Name(), UID: q.person.UID},
			})
		})
	}
	return string(p.Request.ID), nil
}

func (r *benchEnv) press(d connectors.Decision) {
	row, err := r.OnPermission(context.Background(), d)
	var refusal *permissions.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Code == permissions.CodeSettled:
		return
	case err != nil:
		r.t.Errorf("%s of %s: %v", d.Answer, d.Request, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.counted[d.Request]; twice {
		r.doubled.Add(1)
	}
	r.counted[d.Request] = row.State
}

// run asks that many questions and checks each of them afterwards.
func (r *benchEnv) run(many int) {
	r.t.Helper()
	r.told, r.counted = map[permissions.ID]permissions.Request{}, map[permissions.ID]permissions.State{}
	last := r.number.Load() + int64(many)
	var asking sync.WaitGroup
	for range askersAtOnce {
		asking.Go(func() {
			for r.t.Context().Err() == nil {
				n := r.number.Add(1)
				if n > last {
					return
				}
				r.ask(n)
			}
		})
	}
	asking.Wait()
	r.number.Store(last)
	r.fingers.Wait()
	for id, told := range r.told {
		r.look(id, told)
	}
	if missing := many - len(r.told) - int(r.hung.Load()); missing > 0 {
		r.lost.Add(int64(missing))
	}
}

func (r *benchEnv) ask(n int64) {
	ctx, done := context.WithTimeout(r.t.Context(), hungAfter)
	defer done()
	q := permissions.Request{Kind: permissions.KindTool, Tool: toolOf(int(n % channels)), Input: fmt.Appendf(nil, `{"number":%d}`, n)}
	row, err := r.Ask(ctx, self, q)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.hung.Add(1)
		return
	case err != nil:
		r.t.Errorf("ask: %v", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[row.ID] = row
	r.both[row.State]++
}

// look compares what the asker was told, what the person was told and what is stored.
func (r *benchEnv) look(id permissions.ID, told permissions.Request) {
	row, err := r.rows.Read(r.t.Context(), id)
	if err != nil {
		r.t.Error(err)
	}
	if len(row.Votes) > 1 {
		r.doubled.Add(1)
	}
	handed := row.State != permissions.Approved || !row.UsedAt.IsZero()
	if row.State != told.State || row.State != r.counted[id] || len(row.Votes) == 0 || !handed {
		r.lost.Add(1)
	}
}
