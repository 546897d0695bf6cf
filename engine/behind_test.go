package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// behindStore is a store that does not know yet what other daemons wrote, or cannot be reached.
type behindStore struct {
	engine.Store
	behind, away atomic.Bool
	tries        chan struct{} // of callers, while it is away
}

func (s *behindStore) CatchUp(ctx context.Context) error {
	switch {
	case s.away.Load():
		s.tries <- struct{}{}
		return fmt.Errorf("%w: %w", permissions.ErrBroken, permissions.ErrAway)
	case s.behind.Load():
		return permissions.ErrBroken
	}
	return s.Store.CatchUp(ctx)
}

// openBehind starts a daemon on such a store.
func openBehind(t *testing.T) (*env, *behindStore) {
	t.Helper()
	store := &behindStore{tries: make(chan struct{}, 1000)}
	settings := owned()
	settings.Routes = usual().Routes
	phone := []connectors.Connector{newPhone(fay, "fays-phone")}
	st := &env{t: t, dir: t.TempDir(), settings: settings, people: phone, through: func(s engine.Store) engine.Store {
		store.Store = s
		return store
	}}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st, store
}

// TestAQuestionWaitsUntilTheStoreCanBeReached; one that waits no longer is told when to try again.
func TestAQuestionWaitsUntilTheStoreCanBeReached(t *testing.T) {
	st, store := openBehind(t)
	store.away.Store(true)
	_, begun := st.Begin(t.Context(), self, network("begun"))
	_, late := st.AskDeferred(t.Context(), time.Now(), self, func() (permissions.Request, error) { return network("late"), nil })
	for _, err := range []error{begun, late} {
		refused(t, err, permissions.CodeBroken)
		if permissions.AsRefusal(err).After <= 0 {
			t.Errorf("nobody is told when to try again: %v", err)
		}
	}
	for len(store.tries) > 0 {
		<-store.tries
	}
	waiting := st.ask(t.Context(), network("waits"))
	gone, leave := context.WithCancel(t.Context())
	left := st.ask(gone, network("left"))
	for range 4 { // at least one of them has tried again
		select {
		case <-store.tries:
		case <-time.After(20 * time.Second):
			t.Fatal("nobody tries again")
		}
	}
	leave()
	if a := <-left; a.err == nil {
		t.Errorf("a call that has left was answered: %+v", a.r)
	}
	store.away.Store(false)
	yes := connectors.Decision{
		From: connectors.Identity{Via: "cli", UID: fay.UID}, Request: st.pending(1)[0].ID, Answer: permissions.Allow(permissions.Once),
	}
	if _, err := st.OnPermission(t.Context(), yes); err != nil {
		t.Fatal(err)
	}
	if r := st.get(waiting); r.State != permissions.Approved || r.Reason != "waits" {
		t.Errorf("%s is %s", r.Reason, r.State)
	}
}

// TestADaemonThatIsBehindGrantsNothing: it may not know of a lock, of a stop or of a revoked grant.
func TestADaemonThatIsBehindGrantsNothing(t *testing.T) {
	st, store := openBehind(t)
	waiting := st.ask(t.Context(), network("waits"))
	pending := st.pending(1)[0]
	kept, _ := st.askAndLeave(self, network("kept")) // it stops waiting
	yes := connectors.Decision{
		From: connectors.Identity{Via: "cli", UID: fay.UID}, Request: kept.ID, Answer: permissions.Allow(permissions.Once),
	}
	if _, err := st.OnPermission(t.Context(), yes); err != nil {
		t.Fatal(err)
	}
	session := st.submit(helper, keyed(network("of a session"), "1"))
	yes.Request = session.ID
	if _, err := st.OnPermission(t.Context(), yes); err != nil {
		t.Fatal(err)
	}
	yes.Request = pending.ID
	store.behind.Store(true)
	for name, do := range map[string]func() error{
		"an answer":     func() error { _, err := st.OnPermission(t.Context(), yes); return err },
		"a question":    func() error { _, err := st.Ask(t.Context(), self, network("new")); return err },
		"what was kept": func() error { _, err := st.Ask(t.Context(), self, network("kept")); return err },
		"what is read":  func() error { _, err := st.Find(t.Context(), self, kept.ID); return err },
		"an agent of ours": func() error {
			_, err := st.Approvals().Evaluate(t.Context(), helper, keyed(network("of a session"), "2"))
			return err
		},
		"what it uses": func() error { _, err := st.Approvals().Use(t.Context(), helper, session.ID, "1"); return err },
		"an editor": func() error {
			_, err := st.Reply(t.Context(), self, pending.ID, permissions.Deny, permissions.Digest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, do(), permissions.CodeBroken) })
	}
	store.behind.Store(false)
	if _, err := st.OnPermission(t.Context(), yes); err != nil {
		t.Error(err)
	}
	if r := st.get(waiting); r.State != permissions.Approved {
		t.Errorf("it is %s", r.State)
	}
	if r, err := st.Find(t.Context(), self, kept.ID); err != nil || r.Request.State != permissions.Approved {
		t.Errorf("%s, %v", r.Request.State, err)
	}
}
