package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// ours makes a request one of our own agents', in its session.
func ours(agent, session string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Caller, r.Session = permissions.AgentCaller(agent), session }
}

// testOwnKeys: the key of our own agent's request finds it in any state; another agent's key does not.
func testOwnKeys(t *testing.T, b Backend) {
	late := noon.Add(30 * day)
	for name, end := range map[string]func(s engine.Store, r permissions.Request){
		"pending": func(engine.Store, permissions.Request) {},
		"denied":  func(s engine.Store, r permissions.Request) { apply(t, s, r.ID, vote(permissions.Deny)) },
		"lapsed": func(s engine.Store, r permissions.Request) {
			apply(t, s, r.ID, allow())
			apply(t, s, r.ID, permissions.Lapse{At: late})
		},
		"taken back": func(s engine.Store, r permissions.Request) {
			apply(t, s, r.ID, allow())
			apply(t, s, r.ID, permissions.Void{By: "fay", At: late})
		},
		"its grant revoked": func(s engine.Store, r permissions.Request) {
			c := apply(t, s, r.ID, vote(permissions.Allow(permissions.Session)))
			if _, err := s.Revoke(t.Context(), c.Grants[0].ID, "fay", "cli", late, 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			r := open(t, s, ask(ours("helper", "s-1"), keyed("step 1")))
			end(s, r)
			s = b.Reopen(t, s)
			o := opening(ask(ours("helper", "s-1"), keyed("step 1"), at(late)))
			again, created, err := s.Open(t.Context(), o)
			if err != nil || created || again.ID != r.ID {
				t.Errorf("created %v, %s, %v", created, again.ID, err)
			}
			got, found, err := s.ByKey(t.Context(), "agent:helper", "step 1")
			if err != nil || !found {
				t.Fatalf("found %v, %v", found, err)
			}
			same(t, "by its key", got, read(t, s, r.ID))
			if _, found, err := s.ByKey(t.Context(), "agent:coder", "step 1"); found || err != nil {
				t.Errorf("another's: %v, %v", found, err)
			}
			o.Request.Reason = "another"
			o.Request.Digest, o.Request.ID = permissions.ComputeDigest(o.Request), permissions.NewID(late)
			_, _, err = s.Open(t.Context(), o)
			refusedWith(t, err, permissions.CodeKeyTaken)
		})
	}
}

// testLapsedOfOurs: an approval that our own agent collects late is still used.
func testLapsedOfOurs(t *testing.T, b Backend) {
	s := b.Open(t)
	r := open(t, s, ask(ours("helper", "s-1"), keyed("step 1")))
	apply(t, s, r.ID, allow())
	late := noon.Add(day)
	apply(t, s, r.ID, permissions.Lapse{At: late})
	if c := apply(t, s, r.ID, permissions.Use{Call: "step 1", At: late}); c.After.UsedCall != "step 1" {
		t.Errorf("%+v", c.After)
	}
}

// testEndSession: only the session's grants end with it, each recorded once.
func testEndSession(t *testing.T, b Backend) {
	s := b.Open(t)
	mine := grant(t, s, permissions.Session, ask(ours("helper", "s-1")))
	childs := grant(t, s, permissions.Session, ask(ours("helper/research", "s-1")))
	others := []permissions.Grant{
		grant(t, s, permissions.Session, ask(ours("helper", "s-2"))),
		grant(t, s, permissions.For(15*time.Minute), ask(ours("helper", "s-1"), numbered(1))),
		grant(t, s, permissions.Session, ask(func(r *permissions.Request) { r.Session = "s-1" })),
		grant(t, s, permissions.Session, ask(func(r *permissions.Request) { r.Caller.Name, r.Session = "agentless", "s-1" })),
	}
	before := len(entries(t, s))
	for i, want := range []int{2, 0} {
		ended, err := s.EndSessionGrants(t.Context(), "", "s-1", tapped)
		if err != nil || len(ended) != want {
			t.Errorf("time %d: %d ended, %v", i, len(ended), err)
		}
	}
	for _, other := range others {
		list, err := s.Grants(t.Context(), other.Caller, tapped)
		if err != nil || !slices.ContainsFunc(list, func(g permissions.Grant) bool { return g.ID == other.ID }) {
			t.Errorf("that of %s, session %q, is over, %v", other.Caller, other.Session, err)
		}
	}
	all := entries(t, s)[before:]
	told := map[string]bool{}
	for _, e := range all {
		told[e.Detail["grant"]] = e.Type == permissions.GrantEnded
	}
	if len(all) != 2 || !told[string(mine.ID)] || !told[string(childs.ID)] {
		t.Errorf("audited %+v", all)
	}
	if n := len(notices(t, s)); n != 0 {
		t.Errorf("%d notices", n)
	}
	r := open(t, s, ask(ours("helper", "s-1"), numbered(2)))
	asked := open(t, s, ask(ours("helper/research", "s-1"), numbered(3)))
	settled := open(t, s, ask(ours("helper", "s-1"), numbered(4)))
	apply(t, s, settled.ID, allow())
	open(t, s, ask(ours("helper", "s-2"), numbered(5)))
	open(t, s, ask(numbered(6)))
	waiting, err := s.PendingOfSession(t.Context(), "", "s-1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what waits", waiting, []permissions.ID{r.ID, asked.ID})
	if waiting, err = s.PendingOfSession(t.Context(), asked.Caller.Name, "s-1"); err != nil {
		t.Fatal(err)
	}
	same(t, "what waits of one", waiting, []permissions.ID{asked.ID})
}

// testCursors: a follower continues where it was; a new one starts at the end.
func testCursors(t *testing.T, b Backend) {
	s := b.Open(t)
	cursor := func(name string, want int64) {
		t.Helper()
		if got, err := s.Cursor(t.Context(), name); err != nil || got != want {
			t.Errorf("%s is at %d, %v; want %d", name, got, err, want)
		}
	}
	cursor("first", 0)
	open(t, s, ask())
	s = b.Reopen(t, s)
	cursor("first", 0)
	cursor("second", 1)
	if err := s.SetCursor(t.Context(), "first", 17); err != nil {
		t.Fatal(err)
	}
	s = b.Reopen(t, s)
	cursor("first", 17)
	cursor("second", 1)
	if n := len(entries(t, s)); n != 1 {
		t.Errorf("%d entries", n)
	}
}
