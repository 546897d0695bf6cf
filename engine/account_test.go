package engine_test

import (
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestAnAccountIsNeverTwoPeople: a person whose accounts are swapped with another's does not vote for both.
func TestAnAccountIsNeverTwoPeople(t *testing.T) {
	for name, c := range map[string]struct {
		by   connectors.Identity
		swap func(a, b *connectors.Person)
	}{
		"an account of the machine": {
			connectors.Identity{Via: "cli", UID: fayUID}, func(a, b *connectors.Person) { a.UID, b.UID = b.UID, a.UID },
		},
		"a telegram account": {
			connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: fayID},
			swap("telegram"),
		},
		"a number": {
			dialled(number, ""), swap("whatsapp"),
		},
		"the account of the daemon": {
			connectors.Identity{Via: "cli", UID: 0, Operator: true}, func(a, b *connectors.Person) { a.UID, b.UID = b.UID, a.UID },
		},
	} {
		for _, restart := range []bool{false, true} {
			when := map[bool]string{false: " by a reload", true: " while the daemon is away"}[restart]
			t.Run("A2/"+name+when, func(t *testing.T) {
				s := known()
				s.UID = fayUID
				st := newEnv(t, s, newPhone(fay, "fays-phone"), newPhone(sam, "sams-phone"))
				id := st.submit(self, keyed(network("deploy"), "1")).ID
				votes := func() permissions.Request {
					t.Helper()
					r, err := st.OnPermission(t.Context(), connectors.Decision{From: c.by, Request: id, Answer: allow()})
					if err != nil || r.State != permissions.Pending || len(r.Votes) != 1 {
						t.Fatalf("%s with %v, %v", r.State, r.Votes, err)
					}
					return r
				}
				if r := votes(); r.Votes[0].By != "fay" {
					t.Fatalf("the first vote is %+v", r.Votes)
				}
				next := s
				next.People = slices.Clone(s.People)
				c.swap(&next.People[0], &next.People[1])
				if st.settings = next; restart {
					st.restart(newPhone(fay, "fays-phone"), newPhone(sam, "sams-phone"))
				} else {
					st.Configure(next)
				}
				if r := votes(); r.Votes[0].By != "sam" {
					t.Errorf("the second vote is %+v", r.Votes)
				}
				st.Configure(s)
				if r := votes(); r.Votes[0].By != "fay" {
					t.Errorf("the third vote is %+v", r.Votes)
				}
			})
		}
	}
}

// TestAVoteThatDroppedWithItsAccount is reported: on every prompt, and by a reminder to its person. A vote from an
// account that its person still has, or that is only suspended, stays.
func TestAVoteThatDroppedWithItsAccount(t *testing.T) {
	f, o, k := phones()
	s := known()
	st := newEnv(t, s, f, o, k)
	id := st.submit(self, keyed(network("deploy"), "1")).ID
	st.shown(f.Memory, 1)
	st.shown(o.Memory, 1)
	f.must(t, id, allow())
	st.edited(o.Memory, 1, func(p connectors.Prompt) bool { return len(p.Request.Votes) == 1 })
	change := func(how func(p *connectors.Person)) engine.Settings {
		next := s
		next.People = slices.Clone(s.People)
		how(&next.People[0])
		return next
	}
	st.Configure(change(func(p *connectors.Person) { *p = p.WithAddress("telegram", "4243") }))
	if r := o.must(t, id, allow()); r.State != permissions.Approved {
		t.Errorf("with another account of hers it is %s, votes %v", r.State, r.Votes)
	}
	id = st.submit(self, keyed(network("deploy again"), "2")).ID
	st.shown(o.Memory, 2)
	f.must(t, id, allow())
	st.edited(o.Memory, 2, func(p connectors.Prompt) bool { return len(p.Request.Votes) == 1 })
	st.Configure(change(func(p *connectors.Person) { p.UID = 4711 }))
	st.edited(o.Memory, 2, func(p connectors.Prompt) bool { return len(p.Request.Votes) == 0 })
	if n := f.notice(t); n.About != permissions.AboutWaiting {
		t.Errorf("she is told %q", said(n))
	}
	if r := o.must(t, id, allow()); r.State != permissions.Pending {
		t.Errorf("after one of two: %s", r.State)
	}
}

// TestAVoteFromASuspendedAccount stays: the account was its person's when it voted.
func TestAVoteFromASuspendedAccount(t *testing.T) {
	s := numbered()
	s.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}}
	w, o := newNumberChannel(), newPhone(sam, "sams-phone")
	st := newEnv(t, s, w, o)
	id := st.submit(self, keyed(network("deploy"), "1")).ID
	st.shown(w.Memory, 1)
	st.shown(o.Memory, 1)
	if _, err := w.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.suspend("whatsapp", number)
	if r := o.must(t, id, allow()); r.State != permissions.Approved {
		t.Errorf("it is %s with %+v", r.State, r.Votes)
	}
}

// swap exchanges the addresses of two people in a channel.
func swap(via string) func(a, b *connectors.Person) {
	return func(a, b *connectors.Person) {
		was := a.Addresses[via]
		*a, *b = a.WithAddress(via, b.Addresses[via]), b.WithAddress(via, was)
	}
}
