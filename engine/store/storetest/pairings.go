package storetest

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// testPairings: a person has one account per channel, an account belongs to one person, and changes are audited.
func testPairings(t *testing.T, b Backend) {
	s := b.Open(t)
	fay := permissions.Pairing{Person: "fay", Via: "telegram", Address: "4242", PairedAt: noon}
	sam := permissions.Pairing{Person: "sam", Via: "telegram", Address: "5151", PairedAt: noon.Add(time.Minute)}
	pair := func(p, was permissions.Pairing) {
		t.Helper()
		got, err := s.Pair(t.Context(), p, "operator", "cli")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "what "+p.Person+" had before", got, was)
	}
	all := func(want ...permissions.Pairing) {
		t.Helper()
		got, err := s.Pairings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "all", got, want)
	}
	all()
	pair(sam, permissions.Pairing{})
	pair(fay, permissions.Pairing{})
	all(fay, sam)

	later := fay
	later.PairedAt = noon.Add(time.Hour)
	pair(later, fay) // the same again
	s = b.Reopen(t, s)
	all(fay, sam)

	taken := later
	taken.Address = sam.Address
	_, err := s.Pair(t.Context(), taken, "operator", "cli")
	refusedWith(t, err, permissions.CodeNotYours)
	all(fay, sam)

	phone := later
	phone.Address = "9999"
	pair(phone, fay)
	all(phone, sam)
	kim := fay // a released account is free
	kim.Person = "kim"
	pair(kim, permissions.Pairing{})

	over := noon.Add(2 * time.Hour)
	got, err := s.Unpair(t.Context(), "fay", "telegram", "operator", "cli", over)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "taken away", got, phone)
	for _, name := range []string{"fay", "nobody"} {
		_, err = s.Unpair(t.Context(), name, "telegram", "operator", "cli", over)
		refusedWith(t, err, permissions.CodeUnknown)
	}
	_, err = s.Unpair(t.Context(), "sam", "whatsapp", "operator", "cli", over)
	refusedWith(t, err, permissions.CodeUnknown)
	all(kim, sam)

	record := func(what permissions.Type, p permissions.Pairing, at time.Time, was string) permissions.Record {
		r := permissions.Record{Type: what, At: at, Actor: "operator", Via: "cli",
			Detail: map[string]string{"person": p.Person, "via": p.Via, "address": p.Address}}
		if was != "" {
			r.Detail["was"] = was
		}
		return r
	}
	same(t, "the audit", since(t, s, 0), []permissions.Record{
		record(permissions.Paired, sam, sam.PairedAt, ""), record(permissions.Paired, fay, noon, ""),
		record(permissions.Paired, phone, phone.PairedAt, fay.Address), record(permissions.Paired, kim, noon, ""),
		record(permissions.Unpaired, phone, over, ""),
	})
}
