package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// damagedStore is a store in which the seal of one request is invalid.
type damagedStore struct {
	engine.Store
	bad atomic.Value
}

func (d *damagedStore) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	if d.bad.Load() == id {
		return permissions.Request{}, &store.Error{What: "request " + string(id), Advice: "see daycared audit verify", Row: true}
	}
	return d.Store.Read(ctx, id)
}

func (d *damagedStore) Verify(ctx context.Context, told ...func(done, all int64)) ([]permissions.Head, error) {
	if bad := d.bad.Load(); bad != nil {
		return nil, fmt.Errorf("verify the audit: request %s does not carry the seal", bad)
	}
	return d.Store.Verify(ctx, told...)
}

// newDamagedEnv is an env over such a store.
func newDamagedEnv(t *testing.T, people ...connectors.Connector) (*env, *damagedStore) {
	t.Helper()
	rows := &damagedStore{}
	st := &env{t: t, dir: t.TempDir(), settings: usual(), people: people, through: func(s engine.Store) engine.Store {
		rows.Store = s
		return rows
	}}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st, rows
}

// TestADamagedApprovalKeepsNobodyFromAsking: D9/its session grant opens nothing, and people are asked.
func TestADamagedApprovalKeepsNobodyFromAsking(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st, rows := newDamagedEnv(t, f)
	r := st.approved(f.Memory, tagged("s1", "@network"), permissions.Allow(permissions.Session), false)
	rows.bad.Store(r.ID)
	call := st.ask(t.Context(), tagged("s1", "@network"))
	again := st.shown(f.Memory, 2)
	if again.Request.ID == r.ID {
		t.Error("the damaged one is shown")
	}
	if _, err := f.Do(t.Context(), connectors.Decision{Button: again.Button, Ref: f.Copies()[1].Ref, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Approved {
		t.Error(r.State)
	}
}

// TestADamagedRequestKeepsNoCardFromBeingShownAgain: D9/the other prompts of a channel that was away are sent again at
// once.
func TestADamagedRequestKeepsNoCardFromBeingShownAgain(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st, rows := newDamagedEnv(t, f)
	st.ask(t.Context(), network("x"))
	bad := st.shown(f.Memory, 1)
	st.ask(t.Context(), network("y"))
	good := st.shown(f.Memory, 2)
	rows.bad.Store(bad.Request.ID)
	were, err := st.ShowAgain(t.Context(), f.Name())
	if err != nil || len(were) != 1 || were[0].Request.ID != good.Request.ID {
		t.Errorf("shown were %+v, %v", were, err)
	}
	st.shown(f.Memory, 3)
}

// TestALockSaysThatRowsMayBeMissing: A8/no --since takes back a row that was modified while its person is locked.
func TestALockSaysThatRowsMayBeMissing(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st, rows := newDamagedEnv(t, f)
	since := st.now()
	r := st.approved(f.Memory, tagged("s1", "@network"), permissions.Allow(permissions.Session), false)
	rows.bad.Store(r.ID)
	_, err := st.Lock(t.Context(), operator, "fay", since)
	refused(t, err, permissions.CodeBroken)
	const want = "fay is locked. Taken back: 0 unused approvals and 1 grants, but there may be more: verify the audit: request"
	if !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("it says %v", err)
	}
	if locks := st.Locks(); len(locks) != 1 {
		t.Errorf("locks: %v", locks)
	}
}
