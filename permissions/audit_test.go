package permissions

import (
	"maps"
	"testing"
	"time"
)

func TestEveryFieldOfAnEntryChangesItsHash(t *testing.T) {
	entry := Entry{Chain: "c", Seq: 7, Prev: Digest{1}, Record: Record{
		Type: RequestSettled, At: noon, Request: "01J", Actor: "fay", Via: "terminal",
		Detail: map[string]string{"state": "approved", "answer": "allow_once"},
	}}
	seen := map[Digest]string{entry.ComputeHash(): "nothing"}
	for name, change := range map[string]func(*Entry){
		"chain":          func(e *Entry) { e.Chain = "d" },
		"seq":            func(e *Entry) { e.Seq = 8 },
		"prev":           func(e *Entry) { e.Prev[31] = 1 },
		"type":           func(e *Entry) { e.Type = RequestVoted },
		"time":           func(e *Entry) { e.At = e.At.Add(time.Microsecond) },
		"request":        func(e *Entry) { e.Request = "01K" },
		"actor":          func(e *Entry) { e.Actor = "sam" },
		"via":            func(e *Entry) { e.Via = "cli" },
		"detail":         func(e *Entry) { e.Detail["state"] = "denied" },
		"detail more":    func(e *Entry) { e.Detail["x"] = "" },
		"detail less":    func(e *Entry) { delete(e.Detail, "state") },
		"detail renamed": func(e *Entry) { delete(e.Detail, "state"); e.Detail["stat"] = "eapproved" },
		"bytes moved":    func(e *Entry) { e.Actor, e.Via = "fayt", "erminal" },
		"request moved":  func(e *Entry) { e.Request, e.Actor = "01Jf", "ay" },
	} {
		t.Run("H1/"+name, func(t *testing.T) {
			changed := entry
			changed.Detail = maps.Clone(entry.Detail)
			change(&changed)
			if other, taken := seen[changed.ComputeHash()]; taken {
				t.Errorf("%s hashes like %s", name, other)
			}
			seen[changed.ComputeHash()] = name
		})
	}
	same := entry
	same.Hash, same.At = Digest{9}, entry.At.In(time.FixedZone("", 3600)).Add(time.Nanosecond)
	if same.ComputeHash() != entry.ComputeHash() {
		t.Error("the hash depends on itself, on the zone or on less than a microsecond")
	}
	const written = "sha256:6602892d2ae87946b6f9ef834d98521c3570f80037a67402c43f613951f76f65"
	if got := entry.ComputeHash().String(); got != written {
		t.Errorf("the hash is %s; stores have %s, and must verify for ever", got, written)
	}
}
