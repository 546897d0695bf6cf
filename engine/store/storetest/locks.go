package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// testLanguages: the last one of each person is kept.
func testLanguages(t *testing.T, b Backend) {
	s := b.Open(t)
	for _, put := range [][2]string{{"fay", "de"}, {"kim", "en"}, {"fay", "fr"}} {
		if err := s.PutLanguage(t.Context(), put[0], put[1]); err != nil {
			t.Fatal(err)
		}
	}
	s = b.Reopen(t, s)
	got, err := s.Languages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "languages", got, map[string]string{"fay": "fr", "kim": "en"})
}

// testAbsences: the last one of a person counts until it ends, whatever happens in between.
func testAbsences(t *testing.T, b Backend) {
	s := b.Open(t)
	put := func(what permissions.Type, a permissions.Absence, at time.Time, want ...permissions.Absence) {
		t.Helper()
		if err := s.PutAbsence(t.Context(), a, a.Record(what, "telegram", at)); err != nil {
			t.Fatal(err)
		}
		s = b.Reopen(t, s)
		got, err := s.Absences(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "away", got, want)
	}
	fay := permissions.Absence{Person: "fay", Until: noon.Add(time.Hour), To: "sam", At: noon, Via: "telegram"}
	kim := permissions.Absence{Person: "kim", Until: noon.Add(2 * day), At: noon, Via: "cli"}
	longer := fay
	longer.Until, longer.To = noon.Add(day), ""
	put(permissions.PersonAway, fay, noon, fay)
	put(permissions.PersonAway, kim, noon, fay, kim)
	put(permissions.PersonAway, longer, noon, longer, kim)
	put(permissions.PersonBack, longer, noon, kim)
	put(permissions.PersonAway, fay, noon, fay, kim)
	put(permissions.PersonBack, fay, noon.Add(time.Hour), kim)
	put(permissions.PersonBack, fay, noon.Add(time.Hour), kim) // it has ended
	put(permissions.PersonBack, permissions.Absence{Person: "kim", Until: noon}, noon, kim)
	var ended []string
	for _, r := range since(t, s, 0) {
		if r.Type == permissions.PersonBack {
			ended = append(ended, r.Actor)
		}
	}
	same(t, "ended", ended, []string{"fay", "fay"})
}

// testLocks: a person is locked until unlocked, whatever happens in between, and the agreements to that are kept.
func testLocks(t *testing.T, b Backend) {
	s := b.Open(t)
	all := func(want ...permissions.Lock) {
		t.Helper()
		got, err := s.Locks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "locked", got, want)
	}
	put := func(what permissions.Type, l permissions.Lock, by string, at time.Time) permissions.Record {
		t.Helper()
		r := permissions.Record{Type: what, At: at, Actor: by, Via: "cli", Detail: map[string]string{
			"person": l.Person, "accounts": "telegram:1, uid:1000", "unlocking": strings.Join(l.Unlocking, ", "),
		}}
		same(t, "a record", l.Record(what, by, "cli", at), r)
		if err := s.PutLock(t.Context(), l, r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	all()
	fay := permissions.Lock{Person: "fay", Accounts: []string{"telegram:1", "uid:1000"}, At: noon, By: "sam", Via: "cli"}
	kim := permissions.Lock{Person: "kim", Accounts: fay.Accounts, At: noon, By: "fay", Via: "cli"}
	one := noon.Add(time.Minute)
	agreed := fay
	agreed.Unlocking = []string{"sam"}
	want := []permissions.Record{
		put(permissions.PersonLocked, fay, "sam", noon), put(permissions.PersonLocked, kim, "fay", noon),
		put(permissions.UnlockAsked, agreed, "sam", one),
	}
	s = b.Reopen(t, s)
	all(agreed, kim)
	fay.At = one // locked again: earlier agreements do not count
	want = append(want, put(permissions.PersonLocked, fay, "sam", one))
	all(fay, kim)
	want = append(want, put(permissions.PersonUnlocked, agreed, "operator", one))
	deploy := permissions.Lock{Person: permissions.StopOf("token:deploy"), Accounts: fay.Accounts, At: one, By: "sam", Via: "cli"}
	want = append(want, put(permissions.AgentStopped, deploy, "sam", one))
	s = b.Reopen(t, s)
	all(deploy, kim)
	want = append(want, put(permissions.AgentResumed, deploy, "sam", one))
	s = b.Reopen(t, s)
	all(kim)
	same(t, "the audit", since(t, s, 0), want)
}
