package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

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
	s = b.Reopen(t, s)
	all(kim)
	same(t, "the audit", since(t, s, 0), want)
}
