package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

// eventRecorder is an event handler that records its events.
type eventRecorder struct {
	mu    sync.Mutex
	lines []string
	fails int // how many events fail first
	news  chan struct{}
}

func newEventRecorder() *eventRecorder { return &eventRecorder{news: make(chan struct{}, 1000)} }

func (n *eventRecorder) HandleEvent(_ context.Context, h permissions.Event, r permissions.Request) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fails > 0 {
		n.fails--
		return errors.New("not now")
	}
	n.lines = append(n.lines, fmt.Sprintf("%s %s %s%s", h.Type, r.Reason, h.Detail["to"], h.Detail["state"]))
	n.news <- struct{}{}
	return nil
}

// heard waits for that many events and returns them.
func (n *eventRecorder) heard(t *testing.T, many int) []string {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		n.mu.Lock()
		lines := slices.Clone(n.lines)
		n.mu.Unlock()
		if len(lines) >= many {
			return lines
		}
		select {
		case <-n.news:
		case <-deadline:
			t.Fatalf("it was told only %q", lines)
		}
	}
}

// newEnvWithEvents is owned with an event handler.
func newEnvWithEvents(t *testing.T, w agents.EventHandler, f *phone) *env {
	t.Helper()
	s := owned()
	s.Routes = []engine.Route{{Agents: []string{"*"}, Ask: []string{"fay"}}}
	st := &env{t: t, dir: t.TempDir(), settings: s, eventHandler: w}
	st.people = append(st.people, f)
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

// The handler receives events in order, only of our own agents' requests, and none from before its first start.
func TestEventRelayKeepsTheOrder(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnvWithEvents(t, nil, f)
	st.submit(helper, keyed(network("before"), "0"))
	st.noted(f.Name(), st.shown(f.Memory, 1).Request.ID)
	n := newEventRecorder()
	f = newPhone(fay, "fays-phone")
	st.eventHandler = n
	st.restart(f)
	call := st.ask(t.Context(), network("theirs"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, permissions.Deny)
	st.get(call)
	mine := st.submit(helper, keyed(network("mine"), "1"))
	f.must(t, st.shown(f.Memory, 2).Request.ID, allow())
	st.use(helper, mine.ID, "1")
	want := []string{
		"REQUEST_CREATED mine ", "REQUEST_SHOWN mine fay", "REQUEST_SETTLED mine approved", "REQUEST_USED mine ",
		"PERMISSION_APPLIED mine ",
	}
	if got := n.heard(t, len(want)); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A failed event is delivered again, before any other.
func TestEventRelayRetriesInOrder(t *testing.T) {
	f, n := newPhone(fay, "fays-phone"), newEventRecorder()
	n.fails = 2
	st := newEnvWithEvents(t, n, f)
	st.submit(helper, keyed(network("x"), "1"))
	st.shown(f.Memory, 1)
	want := []string{"REQUEST_CREATED x ", "REQUEST_SHOWN x fay"}
	if got := n.heard(t, 2); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// Events from downtime are delivered afterwards, and one delivered right before a kill may be repeated, in order.
func TestEventRelayCatchesUpAfterDowntime(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnvWithEvents(t, newEventRecorder(), f)
	r := st.submit(helper, keyed(network("x"), "1"))
	st.shown(f.Memory, 1)
	st.stop()
	st.eventHandler = nil
	f = newPhone(fay, "fays-phone")
	st.restart(f)
	f.must(t, r.ID, permissions.Deny)
	n := newEventRecorder()
	st.eventHandler = n
	st.restart(newPhone(fay, "fays-phone"))
	for many := 1; ; many++ {
		lines := n.heard(t, many)
		if lines[many-1] == "REQUEST_SETTLED x denied" {
			break
		}
	}
}

// The foreground agent receives the events of others' requests, and events of deleted requests are skipped.
func TestEventRelaySkipsDeletedRequests(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnvWithEvents(t, nil, f)
	st.eventHandler = newEventRecorder()
	st.restart(f)
	st.stop()
	st.eventHandler = nil
	st.restart(newPhone(fay, "fays-phone"))
	old := st.submit(helper, keyed(network("old"), "1"))
	if err := st.Approvals().Withdraw(t.Context(), helper, old.ID, ""); err != nil {
		t.Fatal(err)
	}
	newest := st.submit(helper, keyed(network("new"), "2"))
	keep := permissions.Keep{Requests: time.Hour}
	if _, err := st.rows.Prune(t.Context(), keep, time.Now().Add(2*time.Hour), 100); err != nil {
		t.Fatal(err)
	}
	n := newEventRecorder()
	st.eventHandler = n
	st.restart(newPhone(fay, "fays-phone"))
	for _, line := range n.heard(t, 1) {
		if !strings.Contains(line, " new ") { // eventually also that it was shown
			t.Errorf("of %s it is told %q", newest.ID, line)
		}
	}
}

// An unreadable row does not block the other events.
func TestEventRelaySkipsUnreadableRequests(t *testing.T) {
	f, n := newPhone(fay, "fays-phone"), newEventRecorder()
	n.fails = 1000
	st := newEnvWithEvents(t, n, f)
	bad := st.submit(helper, keyed(network("bad"), "1"))
	good := st.submit(helper, keyed(network("good"), "2"))
	st.stop()
	storetest.Damage(t, st.path(), bad.Number)
	n = newEventRecorder()
	st.eventHandler = n
	st.restart(newPhone(fay, "fays-phone"))
	if got := n.heard(t, 1)[0]; got != "REQUEST_CREATED good " {
		t.Errorf("of %s it is told %q", good.ID, got)
	}
}

// A stop is delivered as well, although it is about no request.
func TestEventRelayReportsAStop(t *testing.T) {
	n := newEventRecorder()
	st := newEnvWithEvents(t, n, newPhone(fay, "fays-phone"))
	if _, err := st.StopAll(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	if err := st.Resume(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	st.submit(helper, keyed(network("after"), "1"))
	want := []string{"ALL_STOPPED  ", "REQUEST_CREATED after "}
	if got := n.heard(t, 2)[:2]; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestAnAgentsStopIsToldAtOnce to what runs the agents, also when another daemon on the same store stopped it.
func TestAnAgentsStopIsToldAtOnce(t *testing.T) {
	n := newEventRecorder()
	st := newEnvWithEvents(t, n, newPhone(fay, "fays-phone"))
	l, _, err := st.StopAgent(t.Context(), boss, "helper")
	if err != nil || l.Unsaved != nil {
		t.Fatalf("%+v, %v", l, err)
	}
	if got := n.heard(t, 1); !slices.Equal(got, []string{"AGENT_STOPPED  "}) {
		t.Errorf("told %q", got)
	}
	list, err := st.rows.Audit(t.Context(), "", 0, 100)
	if err == nil {
		err = st.ApplyEntries(t.Context(), list)
	}
	if got := n.heard(t, 2); err != nil || !slices.Equal(got[1:], []string{"AGENT_STOPPED  "}) {
		t.Errorf("told %q, %v", got, err)
	}
}
