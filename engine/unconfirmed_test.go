package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// unconfirmed is a store that does one thing and reports a failure nevertheless, once.
type unconfirmed struct {
	engine.Store
	what atomic.Pointer[string]
	full atomic.Bool // nothing can be recorded as shown
}

func (u *unconfirmed) lose(what string) { u.what.Store(&what) }

func (u *unconfirmed) confirm(what string, err error) error {
	if lost := u.what.Load(); err == nil && lost != nil && *lost == what {
		u.what.Store(nil)
		return permissions.ErrBroken
	}
	return err
}

func (u *unconfirmed) Open(ctx context.Context, o permissions.Opening) (permissions.Request, bool, error) {
	r, created, err := u.Store.Open(ctx, o)
	return r, created, u.confirm("open", err)
}

func (u *unconfirmed) AddCopies(ctx context.Context, copies []permissions.Copy) error {
	return u.confirm("add copies", u.Store.AddCopies(ctx, copies))
}

func (u *unconfirmed) MarkShown(ctx context.Context, c permissions.Copy, was string) error {
	if u.full.Load() {
		return permissions.ErrBroken
	}
	return u.confirm("shown", u.Store.MarkShown(ctx, c, was))
}

func (u *unconfirmed) MarkFailed(ctx context.Context, c permissions.Copy) error {
	return u.confirm("failed", u.Store.MarkFailed(ctx, c))
}

// unsure is an env over a store that does not confirm one thing.
func unsure(t *testing.T, what string, s engine.Settings, m *connectortest.Memory) *env {
	t.Helper()
	st := &env{t: t, dir: t.TempDir(), settings: s, people: []connectors.Connector{m}}
	st.through = func(rows engine.Store) engine.Store {
		u := &unconfirmed{Store: rows}
		u.lose(what)
		return u
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

// ends waits until the first request is in that state.
func (s *env) ends(in permissions.State) {
	s.t.Helper()
	var state permissions.State
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		changed := s.rows.Changed()
		r, _, err := s.rows.ByNumber(s.t.Context(), 1)
		if state = r.State; err == nil && state == in {
			return
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatalf("it is %q, not %s", state, in)
}

// A request that was opened although the store failed is shown, or given up, like any other.
func TestARequestThatTheStoreDidNotConfirm(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := unsure(t, "open", usual(), m)
	if _, err := st.Ask(t.Context(), self, network("x")); !errors.As(err, new(*permissions.Refusal)) {
		t.Fatal(err)
	}
	st.shown(m, 1)

	m = connectortest.NewMemory(fayAt("memory"), nil)
	m.FailReach(blocked)
	st = unsure(t, "open", usual(), m)
	if _, err := st.Ask(t.Context(), self, network("x")); !errors.As(err, new(*permissions.Refusal)) {
		t.Fatal(err)
	}
	st.ends(permissions.Undeliverable)
}

// A failed copy is acted on, whether or not the store confirmed it.
func TestAFailureThatTheStoreDidNotConfirm(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	m.FailSend(-1, blocked)
	st := unsure(t, "failed", usual(), m)
	call := st.ask(t.Context(), network("x"))
	if r := st.get(call); r.State != permissions.Undeliverable {
		t.Errorf("it is %s", r.State)
	}
}

// Copies that were added although the store failed are shown.
func TestCopiesThatTheStoreDidNotConfirm(t *testing.T) {
	s := usual()
	s.Routes[0].Escalate.Moment, s.Routes[0].Escalate.To = engine.Moment{Percent: 90}, []string{"sam"}
	m := connectortest.NewMemory(fayAt("memory"), nil)
	m.FailFor("fay", -1, blocked)
	st := unsure(t, "add copies", s, m)
	call := st.ask(t.Context(), network("x"))
	if p := st.shown(m, 1); p.To.Name != "sam" {
		t.Errorf("it is shown to %s", p.To.Name)
	}
	if _, err := st.Withdraw(t.Context(), self, st.pending(1)[0].ID); err != nil {
		t.Fatal(err)
	}
	st.get(call)
}

// A prompt that was unknown until its button was pressed is edited, whether or not the store confirmed it.
func TestACardWhoseDiscoveryTheStoreDidNotConfirm(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	u := &unconfirmed{}
	st := &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{m}}
	st.through = func(rows engine.Store) engine.Store {
		u.Store = rows
		u.full.Store(true)
		return u
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	ctx, leave := context.WithCancel(t.Context())
	call := st.ask(ctx, network("x"))
	if err := m.Wait(t.Context(), func(c []connectortest.Copy) bool { return len(c) == 1 }); err != nil {
		t.Fatal(err)
	}
	m.FailSend(-1, errors.New("away"))
	r := st.pending(1)[0]
	leave()
	st.restart(m) // as after a crash: only the daemon that sent it knew
	if _, err := st.Withdraw(t.Context(), self, r.ID); err != nil {
		t.Fatal(err)
	}
	<-call
	for given := false; !given; { // it was settled before it was shown, as far as is known
		copies, err := st.rows.Copies(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if given = copies[0].Failed != ""; !given {
			<-time.After(20 * time.Millisecond)
		}
	}
	u.full.Store(false)
	u.lose("shown")
	card := m.Copies()[0]
	tap := connectors.Decision{
		Button: card.First.Button, Ref: card.Ref, From: fayAt("memory"), Answer: permissions.Allow(permissions.Once),
	}
	_, err := st.OnPermission(t.Context(), tap)
	refused(t, err, permissions.CodeBroken)
	_, err = st.OnPermission(t.Context(), tap)
	refused(t, err, permissions.CodeSettled)
	st.edited(m, 1, func(p connectors.Prompt) bool { return p.Request.State == permissions.Cancelled })
}

// A prompt that was sent while the store failed is recorded as soon as the store recovers, and not sent again.
func TestACardThatTheStoreCouldNotNote(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	u := &unconfirmed{}
	st := &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{m}}
	st.through = func(rows engine.Store) engine.Store {
		u.Store = rows
		u.full.Store(true)
		return u
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	call := st.ask(t.Context(), network("x"))
	if err := m.Wait(t.Context(), func(c []connectortest.Copy) bool { return len(c) == 1 }); err != nil {
		t.Fatal(err)
	}
	r := st.pending(1)[0]
	if _, err := st.Withdraw(t.Context(), self, r.ID); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	u.full.Store(false)
	st.edited(m, 1, func(p connectors.Prompt) bool { return p.Request.State == permissions.Cancelled })
	if copies, err := st.rows.Copies(t.Context(), r.ID); err != nil || len(copies) != 1 || copies[0].Ref == "" || copies[0].Failed != "" {
		t.Errorf("noted as %+v, %v", copies, err)
	}
	if sent := m.Copies(); len(sent) != 1 {
		t.Errorf("it was sent %d times", len(sent))
	}
}
