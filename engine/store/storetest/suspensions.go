package storetest

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// testSuspensions: an account is suspended once, until it is paired again, and a pairing keeps the channel's other name
// of the account.
func testSuspensions(t *testing.T, b Backend) {
	s := b.Open(t)
	fay := permissions.Pairing{Person: "fay", Via: "whatsapp", Address: "+491", Alias: "1@lid", PairedAt: noon}
	pair := func(p, was permissions.Pairing) {
		t.Helper()
		got, err := s.Pair(t.Context(), p, "operator", "cli")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "what was before", got, was)
		kept, err := s.Pairings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "what is kept", kept, []permissions.Pairing{p})
	}
	suspend := func(via, address string, at time.Time) {
		t.Helper()
		if err := s.Suspend(t.Context(), via, address, "fay", at); err != nil {
			t.Fatal(err)
		}
	}
	all := func(want ...permissions.Suspension) {
		t.Helper()
		got, err := s.Suspensions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "suspended", got, want)
	}
	record := func(what permissions.Type, p permissions.Pairing, more ...string) permissions.Record {
		r := permissions.Record{Type: what, At: p.PairedAt, Actor: "operator", Via: "cli",
			Detail: map[string]string{"person": p.Person, "via": p.Via, "address": p.Address, "alias": p.Alias}}
		for i := 0; i < len(more); i += 2 {
			r.Detail[more[i]] = more[i+1]
		}
		return r
	}
	lost := func(via, address string, at time.Time) permissions.Record {
		return permissions.Record{Type: permissions.AccountSuspended, At: at, Actor: "fay", Via: via,
			Detail: map[string]string{"person": "fay", "via": via, "address": address}}
	}
	all()
	pair(fay, permissions.Pairing{})
	other := fay // the same account under another name
	other.Alias, other.PairedAt = "2@lid", noon.Add(time.Minute)
	pair(other, fay)

	one, two := noon.Add(2*time.Minute), noon.Add(3*time.Minute)
	suspend("whatsapp", "+491", one)
	suspend("whatsapp", "+491", two) // the same again
	suspend("telegram", "4242", two)
	s = b.Reopen(t, s)
	telegram := permissions.Suspension{Via: "telegram", Address: "4242", At: two}
	all(telegram, permissions.Suspension{Via: "whatsapp", Address: "+491", At: one})

	taken := other
	taken.Person = "sam"
	_, err := s.Pair(t.Context(), taken, "operator", "cli")
	refusedWith(t, err, permissions.CodeNotYours)
	all(telegram, permissions.Suspension{Via: "whatsapp", Address: "+491", At: one})

	again := other // nothing else changed
	again.PairedAt = noon.Add(4 * time.Minute)
	pair(again, other)
	all(telegram)

	over := noon.Add(5 * time.Minute)
	suspend("whatsapp", "+491", over)
	if _, err := s.Unpair(t.Context(), "fay", "whatsapp", "operator", "cli", over); err != nil {
		t.Fatal(err)
	}
	all(telegram, permissions.Suspension{Via: "whatsapp", Address: "+491", At: over})
	unpaired := again
	unpaired.PairedAt = over
	same(t, "the audit", since(t, s, 0), []permissions.Record{
		record(permissions.Paired, fay), record(permissions.Paired, other),
		lost("whatsapp", "+491", one), lost("telegram", "4242", two),
		record(permissions.Paired, again, "suspension", "ended"),
		lost("whatsapp", "+491", over), record(permissions.Unpaired, unpaired),
	})
}
