package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// behindStore is a store that does not know yet what other daemons wrote.
type behindStore struct {
	engine.Store
	behind atomic.Bool
}

func (s *behindStore) CatchUp(ctx context.Context) error {
	if s.behind.Load() {
		return permissions.ErrBroken
	}
	return s.Store.CatchUp(ctx)
}

// TestADaemonThatIsBehindGrantsNothing: it may not know of a lock, of a stop or of a revoked grant.
func TestADaemonThatIsBehindGrantsNothing(t *testing.T) {
	store := &behindStore{}
	settings := owned()
	settings.Routes = usual().Routes
	phone := []connectors.Connector{newPhone(fay, "fays-phone")}
	st := &env{t: t, dir: t.TempDir(), settings: settings, people: phone, through: func(s engine.Store) engine.Store {
		store.Store = s
		return store
	}}
	st.open()
	t.Cleanup(func() { st.stop() })
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
