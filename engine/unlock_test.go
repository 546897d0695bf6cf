package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// unlocked votes to unlock fay, and checks whether she is unlocked then.
func unlocked(t *testing.T, st *env, who connectors.Identity, want bool) {
	t.Helper()
	if _, over, err := st.Unlock(t.Context(), who, "fay"); err != nil || over != want {
		t.Fatalf("unlocked by %+v: %v, %v", who, over, err)
	}
}

func TestWhoUnlocks(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(st *env)
		who    []connectors.Identity
		want   []bool // whether she is unlocked then
		code   permissions.Code
	}{
		{"A8/the operator", nil, []connectors.Identity{operator}, []bool{true}, ""},
		{"A8/two others", nil, []connectors.Identity{samAt, kimAt}, []bool{false, true}, ""},
		{"A8/one other twice", nil, []connectors.Identity{samAt, samAt}, []bool{false, false}, ""},
		{"A8/nobody here", nil, []connectors.Identity{{Via: "cli", UID: 4711}}, []bool{false}, permissions.CodeNotYours},
		{
			"A8/fewer than two others", func(st *env) { st.lock(operator, "kim") },
			[]connectors.Identity{samAt}, []bool{false}, permissions.CodeNotYours,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s, k := phones()
			st := newEnv(t, known(), f, s, k)
			st.lock(samAt, "fay")
			if c.before != nil {
				c.before(st)
			}
			for i, who := range c.who {
				_, over, err := st.Unlock(t.Context(), who, "fay")
				if c.code != "" {
					refused(t, err, c.code)
				} else if err != nil {
					t.Fatal(err)
				}
				if over != c.want[i] || slices.Contains(st.locked(), "fay") == over {
					t.Errorf("after %d: %v, locked are %v", i+1, over, st.locked())
				}
			}
		})
	}
	t.Run("A8/two others of whom one is locked by now", func(t *testing.T) {
		s := known()
		lee := connectors.Person{Name: "lee", UID: 5000}
		s.People = append(s.People, lee)
		st := newEnv(t, s, newPhone(fay, "fays-phone"))
		st.lock(kimAt, "fay")
		unlocked(t, st, samAt, false)
		st.lock(kimAt, "sam")
		st.restart(newPhone(fay, "fays-phone"))
		unlocked(t, st, kimAt, false) // sam's vote does not count
		unlocked(t, st, connectors.Identity{Via: "cli", UID: lee.UID}, true)
	})
	t.Run("A8/two others of whom one was locked in between", func(t *testing.T) {
		s := known()
		s.People = append(s.People, connectors.Person{Name: "lee", UID: 5000})
		st := newEnv(t, s, newPhone(fay, "fays-phone"))
		st.lock(kimAt, "fay")
		unlocked(t, st, samAt, false)
		st.lock(kimAt, "sam")
		if _, over, err := st.Unlock(t.Context(), operator, "sam"); err != nil || !over {
			t.Fatal(over, err)
		}
		unlocked(t, st, kimAt, false) // sam's earlier vote does not count again
		unlocked(t, st, samAt, true)
	})
	t.Run("A8/two others of whom one had no account in between", func(t *testing.T) {
		s := known()
		st := newEnv(t, s, newPhone(fay, "fays-phone"))
		st.lock(kimAt, "fay")
		unlocked(t, st, samAt, false)
		next := s
		next.People = slices.Clone(s.People)
		next.People[1].UID = permissions.NoUID
		st.Configure(next)
		st.Configure(s)
		unlocked(t, st, kimAt, false) // sam's earlier vote does not count again
		unlocked(t, st, samAt, true)
	})
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("A2/two others by one account, restart %v", restart), func(t *testing.T) {
			s := known()
			st := newEnv(t, s, newPhone(fay, "fays-phone"))
			st.lock(kimAt, "fay")
			unlocked(t, st, samAt, false)
			next := s
			next.People = slices.Clone(s.People)
			next.People[1].UID, next.People[2].UID = next.People[2].UID, next.People[1].UID
			if st.settings = next; restart {
				st.restart(newPhone(fay, "fays-phone"))
			} else {
				st.Configure(next)
			}
			unlocked(t, st, samAt, false) // now the account of kim
			unlocked(t, st, kimAt, true)
		})
	}
	t.Run("A8/somebody who is not locked", func(t *testing.T) {
		st := newEnv(t, known(), newPhone(fay, "fays-phone"))
		_, _, err := st.Unlock(t.Context(), operator, "fay")
		refused(t, err, permissions.CodeUnknown)
		_, err = st.Lock(t.Context(), operator, "zoe", time.Time{})
		refused(t, err, permissions.CodeUnknown)
	})
}

// TestALockUnderAnotherName is ended by the person's name at the time of the lock or by their current one, and is listed
// with both.
func TestALockUnderAnotherName(t *testing.T) {
	for _, name := range []string{"fay", "fae"} {
		t.Run("A8/"+name, func(t *testing.T) {
			s := known()
			st := newEnv(t, s, newPhone(fay, "fays-phone"))
			st.lock(samAt, "fay")
			next := s
			next.People = slices.Clone(s.People)
			next.People[0].Name, next.Routes = "fae", usual().Routes
			st.Configure(next)
			if l := st.Locks(); len(l) != 1 || l[0].Person != "fay" || !slices.Equal(l[0].OtherNames, []string{"fae"}) {
				t.Errorf("locked are %+v", l)
			}
			if l, over, err := st.Unlock(t.Context(), operator, name); err != nil || !over || l.Person != "fay" {
				t.Errorf("unlocked is %+v, %v, %v", l, over, err)
			}
			if who, err := st.Who(fayAt("cli")); err != nil || who != "fae" || len(st.Locks()) > 0 {
				t.Errorf("she is %q, %v, and locked are %v", who, err, st.locked())
			}
		})
	}
	t.Run("A8/two locks of one person", func(t *testing.T) {
		s := known()
		st := newEnv(t, s, newPhone(fay, "fays-phone"))
		st.lock(samAt, "fay")
		next := s
		next.People = slices.Clone(s.People)
		next.People[0].Name = "fae"
		st.Configure(next)
		st.lock(samAt, "fae")
		for _, want := range []string{"fae", "fay"} {
			if l, over, err := st.Unlock(t.Context(), operator, "fae"); err != nil || !over || l.Person != want {
				t.Errorf("unlocked is %+v, %v, %v", l, over, err)
			}
		}
		if len(st.Locks()) > 0 {
			t.Errorf("locked are %v", st.locked())
		}
	})
}

// TestAnUnlockRevivesNoVote: votes from before the lock do not count after it, however soon the person is unlocked.
func TestAnUnlockRevivesNoVote(t *testing.T) {
	f, o, k := phones()
	s := known()
	s.Limits = engine.Limits{}
	st := newEnv(t, s, f, o, k)
	const many = 150
	var last permissions.ID
	for i := range many {
		last = st.submit(self, keyed(network(fmt.Sprint("x", i)), fmt.Sprint(i))).ID
	}
	st.shown(f.Memory, many)
	st.shown(o.Memory, many)
	f.must(t, last, allow())
	st.lock(operator, "fay")
	unlocked(t, st, operator, true)
	r, err := st.rows.Read(t.Context(), last)
	if err != nil || r.State != permissions.Pending || len(r.Votes) != 0 {
		t.Fatalf("%s with %v, %v", r.State, r.Votes, err)
	}
	if r := o.must(t, last, allow()); r.State != permissions.Pending {
		t.Errorf("it is %s by %s", r.State, r.DecidedBy)
	}
}
