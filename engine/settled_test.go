package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// An asker that repeats a question receives an uncollected outcome, also after a restart, once: people are not asked
// again what they have answered.
func TestTheSameQuestionFindsItsOutcome(t *testing.T) {
	settle := func(a permissions.Answer) func(*testing.T, *env, permissions.ID) {
		return func(t *testing.T, st *env, id permissions.ID) {
			t.Helper()
			d := connectors.Decision{Request: id, Answer: a, From: fayAt("memory")}
			if _, err := st.OnPermission(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
	question := permissions.Request{Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"}}
	for _, c := range []struct {
		name string
		q    permissions.Request
		ends func(*testing.T, *env, permissions.ID)
		want permissions.State
	}{
		{"D1/allowed", network("x"), settle(allow()), permissions.Approved},
		{"D1/denied", network("x"), settle(permissions.Deny), permissions.Denied},
		{"D1/answered", question, settle(permissions.Choose(2)), permissions.Answered},
		{"D1/cancelled by a person", network("x"), func(t *testing.T, st *env, id permissions.ID) {
			t.Helper()
			if _, err := st.Cancel(t.Context(), fayAt("memory"), string(id)); err != nil {
				t.Fatal(err)
			}
		}, permissions.Cancelled},
	} {
		for _, restarts := range []bool{false, true} {
			name := c.name
			if restarts {
				name += ", after a restart"
			}
			t.Run(name, func(t *testing.T) {
				m := connectortest.NewMemory(fayAt("memory"), nil)
				st := newEnv(t, usual(), m)
				ctx, leave := context.WithCancel(t.Context())
				gone := st.ask(ctx, c.q)
				id := st.shown(m, 1).Request.ID
				st.waiting(id, 1)
				leave()
				<-gone
				st.waiting(id, 0)
				c.ends(t, st, id)
				if restarts {
					m = connectortest.NewMemory(fayAt("memory"), nil)
					st.restart(m)
				}
				if r := st.get(st.ask(t.Context(), c.q)); r.ID != id || r.State != c.want {
					t.Fatalf("told is %s of %s, not %s of %s", r.State, r.ID, c.want, id)
				}
				st.ask(t.Context(), c.q) // asked again once its outcome was collected
				if again := st.pending(1)[0]; again.ID == id {
					t.Error("it was told twice")
				}
			})
		}
	}
}

// An asker that withdrew its question asks again.
func TestWhatWasWithdrawnIsAskedAnew(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, leave := context.WithCancel(t.Context())
	gone := st.ask(ctx, network("x"))
	id := st.shown(m, 1).Request.ID
	leave()
	<-gone
	if _, err := st.Withdraw(t.Context(), self, id); err != nil {
		t.Fatal(err)
	}
	st.ask(t.Context(), network("x"))
	if again := st.pending(1)[0]; again.ID == id {
		t.Error("it was told of what it withdrew")
	}
}

// failing is a store some of whose calls fail.
type failing struct {
	engine.Store
	pending func() bool
	copies  func(permissions.ID)                  // is called before they are read
	read    func(context.Context, permissions.ID) // is called after it was read
	apply   func(permissions.Transition) bool
}

func (f failing) Pending(ctx context.Context, who string, after permissions.ID, limit int) ([]permissions.Request, error) {
	if f.pending != nil && f.pending() {
		return nil, errors.Join(permissions.ErrBroken, errors.New("it cannot be read"))
	}
	return f.Store.Pending(ctx, who, after, limit)
}

func (f failing) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	r, err := f.Store.Read(ctx, id)
	if f.read != nil {
		f.read(ctx, id)
	}
	return r, err
}

func (f failing) Copies(ctx context.Context, ids ...permissions.ID) ([]permissions.Copy, error) {
	if f.copies != nil {
		f.copies(ids[0])
	}
	return f.Store.Copies(ctx, ids...)
}

func (f failing) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	if f.apply != nil && f.apply(e) {
		return permissions.Change{}, errors.Join(permissions.ErrBroken, errors.New("it cannot be written"))
	}
	return f.Store.Apply(ctx, id, e)
}

// The vote of a person who was just removed does not count, even before the rows are re-routed.
func TestTheVoteOfWhoWasRemovedJustNowIsDropped(t *testing.T) {
	f, s, k := phones()
	settings := team()
	settings.Routes[0].Escalate.To = nil
	st := &env{t: t, dir: t.TempDir(), settings: settings, people: []connectors.Connector{f, s, k}}
	lists := make(chan bool, 1)
	lists <- true
	st.through = func(rows engine.Store) engine.Store {
		return failing{Store: rows, pending: func() bool { works := <-lists; lists <- works; return !works }}
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	st.ask(t.Context(), network("deploy"))
	id := st.shown(f.Memory, 1).Request.ID
	st.shown(s.Memory, 1)
	f.must(t, id, allow())
	<-lists
	lists <- false
	next := settings
	next.People = []connectors.Person{sam, kim}
	next.Routes = append([]engine.Route{}, settings.Routes...)
	next.Routes[0].Ask = []string{"sam", "kim"}
	st.Configure(next)
	if r := s.must(t, id, allow()); r.State != permissions.Pending || len(r.Votes) != 1 || r.Votes[0].By != "sam" {
		t.Errorf("%s with the votes %v", r.State, r.Votes)
	}
}

// Two reloads in a row, each of which replaces everybody who is asked, do not end the request, even if the reconciler
// reads it as the first left it and the settings as the second did.
func TestTwoReloadsThatReplaceWhoIsAskedEndNothing(t *testing.T) {
	f, s, k := phones()
	settings := team()
	asking := func(p connectors.Person) engine.Settings {
		next := settings
		next.People, next.Routes = []connectors.Person{p}, []engine.Route{{Ask: []string{p.Name}}}
		return next
	}
	st := &env{t: t, dir: t.TempDir(), settings: asking(fay), people: []connectors.Connector{f, s, k}}
	var fails atomic.Bool
	second := sync.OnceFunc(func() {
		fails.Store(true) // nothing is re-routed again
		st.Configure(asking(kim))
	})
	st.through = func(rows engine.Store) engine.Store {
		return failing{Store: rows, pending: fails.Load, copies: func(id permissions.ID) {
			if r, err := rows.Read(t.Context(), id); err == nil && slices.Equal(r.Asked, []string{"sam"}) {
				second()
			}
		}}
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	call := st.ask(t.Context(), network("deploy"))
	id := st.shown(f.Memory, 1).Request.ID
	st.Configure(asking(sam))
	st.shown(k.Memory, 1)
	k.must(t, id, allow())
	if r := st.get(call); r.State != permissions.Approved {
		t.Errorf("it is %s: %s", r.State, r.Failure)
	}
}

// An approval whose use cannot be stored is not handed over.
func TestAnApprovalWhoseUseCannotBeStoredIsNone(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{m}}
	st.through = func(rows engine.Store) engine.Store {
		return failing{Store: rows, apply: func(e permissions.Transition) bool { _, uses := e.(permissions.Use); return uses }}
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	ctx, leave := context.WithCancel(t.Context())
	q := network("x")
	q.ID = permissions.NewID(time.Now())
	gone := st.ask(ctx, q)
	id := st.shown(m, 1).Request.ID
	st.waiting(id, 1)
	leave()
	<-gone
	st.waiting(id, 0)
	if _, err := st.OnPermission(t.Context(), connectors.Decision{Request: id, Answer: allow(), From: fayAt("memory")}); err != nil {
		t.Fatal(err)
	}
	r, err := st.Ask(t.Context(), self, q)
	refused(t, err, permissions.CodeBroken)
	if r.State == permissions.Approved {
		t.Errorf("it is handed over all the same: %s", r.State)
	}
}
