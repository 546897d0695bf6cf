package simulation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// world is one day. The driver's goroutine owns all but what mu guards, and what it guards the others touch only while
// they are let through the gate.
type world struct {
	seed     uint64
	draw     *rand.Rand
	weather  weather
	settings engine.Settings
	store    engine.Store
	judge    *judge // nil: on SQLite, whose commits nobody sees
	life     *life
	lives    int
	askers   []*asker
	updates  []*update // that channels still have to deliver
	trace    []string
	began    time.Time

	drafted   time.Time     // when a request last was
	delivered uint64        // updates
	lasted    time.Duration // the day, by the clock that cannot be set

	mu       sync.Mutex
	channels []*channel
	ahead    time.Duration // of the bubble's clock, on the wall
	aged     time.Duration // beyond the bubble's clock
	names    map[permissions.ID]string
	codes    map[string]string // what a code names
	ambigu   map[cardAt]int    // cards that may have been sent without its being known
	fresh    []string          // for the trace
}

// life is one process of the daemon.
type life struct {
	*engine.Engine
	gate   *gate
	ctx    context.Context //nolint:containedctx // its end is the end of the process
	cancel func()
	group  sync.WaitGroup
	up     bool // it has recovered; the world's lock
	failed error
}

var people = []connectors.Person{
	{Name: "fay", UID: 1, Addresses: map[string]string{"alpha": "1", "beta": "+491"}, Via: []string{"alpha", "beta"}, Location: time.UTC},
	{Name: "sam", UID: permissions.NoUID, Addresses: map[string]string{"alpha": "2", "beta": "+492"}, Location: time.UTC},
	{Name: "kim", UID: permissions.NoUID, Addresses: map[string]string{"beta": "+493"}, Via: []string{"beta"}, Location: time.UTC},
}

const (
	most   = time.Minute     // that anything waits
	window = 2 * time.Minute // for which an answer is kept
	span   = 40 * time.Second
)

var workspace = func() permissions.Tag {
	t, err := permissions.ParseTag("@write:/srv/www")
	if err != nil {
		panic(err)
	}
	return t
}()

// settings has everything at a pace at which a day is short.
func settings() engine.Settings {
	both := engine.Route{Tags: []permissions.Tag{workspace}, Ask: []string{"fay", "sam"}, Quorum: 2}
	later := engine.Route{Kinds: []permissions.Kind{permissions.KindTool}, Ask: []string{"fay"}}
	later.Escalate.Moment, later.Escalate.To = engine.Moment{Percent: 50}, []string{"kim"}
	return engine.Settings{
		UID: 1, People: people, Routes: []engine.Route{both, later, {Ask: []string{"fay", "sam"}}},
		Approvals: engine.Approvals{
			Timeout: most, MaxTimeout: most, ClarificationTimeout: 30 * time.Second, DeliverWithin: 15 * time.Second,
			RedeemWindow: window, Scopes: []permissions.Scope{permissions.Once, permissions.For(span)},
			Remind: []engine.Moment{{Percent: 80}},
		},
		Policy: permissions.Policy{Gated: []string{"write_file"}},
		Limits: engine.Limits{PendingPerCaller: 20, PromptsPerMinute: 1000, PendingTotal: 1000},
	}
}

// maxLines is what no day comes to that comes to rest.
const maxLines = 20_000

func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, draw: rand.New(rand.NewPCG(seed, 0x6461796361726564)), settings: settings(), began: time.Now(),
		channels: []*channel{
			{name: "alpha", gone: map[string]bool{}}, {name: "beta", named: true, gone: map[string]bool{}},
			{name: "gamma", bound: true, gone: map[string]bool{}},
		},
		names: map[permissions.ID]string{}, codes: map[string]string{}, ambigu: map[cardAt]int{},
	}
	w.weather = forecast(w.draw)
	return w
}

// now is the clock on the wall, elapsed the one that cannot be set.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) elapsed() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.began) + w.aged
}

// name gives a request that was opened its name in the trace.
func (w *world) name(r permissions.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("r%d", r.Number)
	w.names[r.ID], w.codes[w.store.Coder().Encode(r.Number)] = name, name
}

func (w *world) nameOf(id permissions.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name := w.names[id]; name != "" {
		return name
	}
	return "what is not there"
}

func (w *world) coded(code string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[code]
}

func (w *world) unsure(at cardAt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ambigu[at]++
}

// say adds a line to the trace that came of something else than a decision of the driver.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh = append(w.fresh, "      "+fmt.Sprintf(format, args...))
}

// note adds a decision of the driver to the trace.
func (w *world) note(format string, args ...any) {
	at := w.elapsed().Round(time.Millisecond)
	w.trace = append(w.trace, fmt.Sprintf("%8.3f ", at.Seconds())+fmt.Sprintf(format, args...))
	if len(w.trace) == maxLines {
		panic(fmt.Sprintf("seed %d does not come to rest:\n%s", w.seed, strings.Join(w.trace[maxLines-100:], "\n")))
	}
}

// rest waits until everything has come to rest, and adds to the trace what came of it.
func (w *world) rest() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.fresh)
	w.trace = append(w.trace, w.fresh...)
	w.fresh = nil
}

// settle lets everything through that stands at the gate, one after the other, as the seed says.
func (w *world) settle() {
	for w.rest(); w.life != nil; w.rest() {
		if !w.life.running() {
			w.bury("it ended by itself")
			return
		}
		c := w.choose()
		if c == nil {
			break
		}
		w.let(c)
	}
	if w.judge != nil {
		w.judge.look()
	}
}

// choose draws who goes next; nil when there is nobody.
func (w *world) choose() *crossing {
	now := int64(time.Since(w.began))
	at := slices.DeleteFunc(w.life.gate.at(), func(c *crossing) bool { return c.until > now })
	if len(at) == 0 {
		return nil
	}
	return at[w.draw.IntN(len(at))]
}

// let decides what becomes of a call.
func (w *world) let(c *crossing) {
	if strings.HasPrefix(c.what, "list the grants of ") { // then a request is drafted, whose id begins with the millisecond
		now := time.Now()
		if now.Sub(w.drafted) < time.Millisecond {
			c.until, c.apart = int64(time.Since(w.began)+time.Millisecond), true
			return
		}
		w.drafted = now
	}
	if c.until == 0 {
		if d := w.weather.delay(w.draw, c.side); d > 0 {
			w.disturb()
			w.note("%s IS HELD for %s", c.what, d)
			for _, o := range w.life.gate.take(c) {
				o.until = int64(time.Since(w.began) + d)
				w.life.gate.back(o)
			}
			return
		}
	}
	v := w.weather.fault(w.draw, c.side)
	if v != passes || (c.until != 0 && !c.apart) {
		w.disturb()
	}
	w.note("%s%s", c.what, v)
	l := w.life
	all := l.gate.take(c)
	if v != kills && v != killsAfter {
		for _, o := range all {
			o.goes <- v
		}
		return
	}
	l.gate.close()
	for i, o := range all {
		if i > 0 {
			v = buried
		}
		o.goes <- v
	}
	w.rest()
	w.bury("killed")
}

// disturb says that what happens now may hold up what is due.
func (w *world) disturb() {
	if w.judge != nil {
		w.judge.disturbed = w.elapsed()
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	for end := time.Now().Add(d); ; {
		w.settle()
		left := time.Until(end)
		if left <= 0 {
			return
		}
		var arrived chan struct{}
		if w.life != nil {
			arrived = w.life.gate.arrived
			left = min(left, w.held())
		}
		timer := time.NewTimer(left)
		select {
		case <-arrived:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// held is until when the next call is held back.
func (w *world) held() time.Duration {
	soonest, now := time.Hour, int64(time.Since(w.began))
	for _, c := range w.life.gate.at() {
		if c.until > now {
			soonest = min(soonest, time.Duration(c.until-now))
		}
	}
	return soonest
}

// holds reports whether some call is held back.
func (w *world) holds() bool { return w.life != nil && w.held() < time.Hour }

// start starts the daemon, and waits until it has recovered or failed to.
func (w *world) start() {
	w.lives++
	w.note("START, life %d", w.lives)
	w.disturb()
	g := newGate()
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{gate: g, ctx: ctx, cancel: cancel}
	var lines []connectors.Connector
	for _, c := range w.channels {
		lines = append(lines, c.connect(w, g))
	}
	l.Engine = engine.New(engine.Options{
		Store: &disk{Store: w.store, w: w, gate: g}, Settings: w.settings,
		Now: w.now, Elapsed: w.elapsed, Log: slog.New(slog.DiscardHandler),
	})
	l.Connect(lines...)
	w.mu.Lock()
	w.life = l
	w.mu.Unlock()
	l.group.Go(func() {
		err := l.Recover(ctx)
		w.mu.Lock()
		l.up, l.failed = err == nil, err
		w.mu.Unlock()
		if err == nil {
			_ = l.Run(ctx)
		}
	})
	for w.life == l && !w.ready() {
		w.pass(10 * time.Millisecond)
	}
	w.disturb()
}

func (w *world) ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life != nil && w.life.up
}

// running reports whether the process is there: one that could not recover ends.
func (l *life) running() bool { return l.failed == nil }

// bury ends what is left of a life.
func (w *world) bury(how string) {
	l := w.life
	w.note("THE DAEMON IS DEAD: %s", how)
	w.disturb()
	l.gate.close()
	l.cancel()
	w.mu.Lock()
	w.life = nil
	w.mu.Unlock()
	l.group.Wait()
	if w.judge != nil && w.judge.shelf.wrong.forgets {
		w.judge.shelf.rows = w.judge.before
	}
	w.rest()
}

// stop ends the daemon as a signal does.
func (w *world) stop() {
	w.note("STOP")
	l := w.life
	w.disturb()
	l.cancel()
	for w.settle(); w.life == l && len(l.gate.at()) > 0; {
		w.pass(100 * time.Millisecond)
	}
	if w.life == l {
		w.bury("stopped")
	}
}

// hash is of everything that happened.
func (w *world) hash() [32]byte { return sha256.Sum256([]byte(strings.Join(w.trace, "\n"))) }
