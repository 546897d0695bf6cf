package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func revoke(t *testing.T, s engine.Store, g permissions.Grant) {
	t.Helper()
	if _, err := s.Revoke(t.Context(), g.ID, "fay", "cli", tapped.Add(time.Second), 1); err != nil {
		t.Fatal(err)
	}
}

// ends ends every timed grant.
func ends(t *testing.T, s engine.Store, _ permissions.Grant) {
	t.Helper()
	if ended, _, err := s.EndGrants(t.Context(), tapped.Add(15*time.Minute), 9); err != nil || len(ended) == 0 {
		t.Fatalf("ended %v, %v", ended, err)
	}
}

func nothing(*testing.T, engine.Store, permissions.Grant) {}

// testUsedAfterItsGrant: an approval lasts no longer than the grant that it created. An unused one is revoked, a used one refused.
func testUsedAfterItsGrant(t *testing.T, b Backend) {
	soon, over := tapped.Add(time.Minute), tapped.Add(15*time.Minute)
	for name, c := range map[string]struct {
		change func(*testing.T, engine.Store, permissions.Grant)
		at     time.Time
		holds  bool
	}{
		"in force":           {nothing, soon, true},
		"to the last moment": {nothing, over.Add(-time.Microsecond), true},
		"over":               {nothing, over, false},
		"noted to be over":   {ends, soon, false},
		"revoked":            {revoke, soon, false},
		"not yet":            {nothing, tapped.Add(-time.Microsecond), false},
	} {
		for _, used := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", used before"}[used], func(t *testing.T) {
				s := b.Open(t)
				g := grant(t, s, permissions.For(15*time.Minute), ask())
				if used {
					apply(t, s, g.Request, permissions.Use{Call: "call-1", At: tapped})
				}
				c.change(t, s, g)
				r, before := read(t, s, g.Request), len(entries(t, s))
				change, err := s.Apply(t.Context(), r.ID, permissions.Use{Call: "call-1", At: c.at})
				records := since(t, s, before)
				switch {
				case c.holds:
					if err != nil || change.After.UsedAt.IsZero() || !change.After.VoidAt.IsZero() {
						t.Errorf("it cannot be used: %v, %+v", err, change.After)
					}
				case used:
					if !errors.Is(err, permissions.ErrNoUse) || len(records) != 0 {
						t.Errorf("it was used again: %v, %v", err, records)
					}
					same(t, "the row beside the refusal", change.After, r)
				default:
					step, _ := permissions.Step(r, permissions.Void{At: c.at})
					if err != nil || len(records) == 0 {
						t.Fatalf("%v, %v", err, records)
					}
					same(t, "the row after it", change.After, step.After)
					same(t, "the record", records[0], step.Records[0])
					_, err := s.Apply(t.Context(), r.ID, permissions.Use{At: tapped})
					if !errors.Is(err, permissions.ErrNoUse) {
						t.Errorf("it was used after all: %v", err)
					}
				}
				same(t, "the row read", read(t, s, r.ID), change.After)
			})
		}
	}
}

// testUsedWithOneGrantLeft: one grant in force is enough for a step that created several.
func testUsedWithOneGrantLeft(t *testing.T, b Backend) {
	s := b.Open(t)
	r := open(t, s, ask(step))
	made := apply(t, s, r.ID, vote(permissions.Allow(permissions.SessionTool))).Grants
	if len(made) != 2 {
		t.Fatalf("%d grants", len(made))
	}
	revoke(t, s, made[0])
	if c := apply(t, s, r.ID, permissions.Use{At: tapped}); c.After.UsedAt.IsZero() {
		t.Error("one that is in force does not count")
	}
	revoke(t, s, made[1])
	if _, err := s.Apply(t.Context(), r.ID, permissions.Use{At: tapped}); !errors.Is(err, permissions.ErrNoUse) {
		t.Errorf("none is in force: %v", err)
	}
}

// testUsedWithoutWhatItRestsOn: people answered a part of the question, because a grant answered the rest.
func testUsedWithoutWhatItRestsOn(t *testing.T, b Backend) {
	s := b.Open(t)
	g := grant(t, s, permissions.For(15*time.Minute), ask())
	partly := func(n int) permissions.Request {
		r := ask(numbered(n))
		r.Grants = []permissions.ID{g.ID}
		open(t, s, r)
		return apply(t, s, r.ID, allow()).After
	}
	first, second, late := partly(1), partly(2), partly(3)
	if n := readGrant(t, s, g.ID).Used; n != 0 {
		t.Errorf("what nobody has used yet counts: %d", n)
	}
	for range 2 { // the second is a retry
		if c := apply(t, s, first.ID, permissions.Use{Call: "call-1", At: tapped}); !c.After.VoidAt.IsZero() {
			t.Fatal("what it rests on is in force")
		}
	}
	same(t, "what ran under it", ids(ran(t, s, g, 9)), []permissions.ID{first.ID})
	if n := readGrant(t, s, g.ID).Used; n != 1 {
		t.Errorf("used %d times", n)
	}
	if c := apply(t, s, late.ID, permissions.Use{At: tapped.Add(15 * time.Minute)}); !c.Voided() {
		t.Error("it was over, and the approval is used")
	}
	resting := func(n int) permissions.Request {
		return open(t, s, ask(numbered(n), func(r *permissions.Request) { r.Grants = []permissions.ID{g.ID} }))
	}
	handed, pending := resting(4), resting(5)
	if c := apply(t, s, handed.ID, handing(allow())); !c.ApprovedAndUsed() {
		t.Errorf("what it rests on is in force, and it is not used: %+v", c.After)
	}
	same(t, "what ran under it", ids(ran(t, s, g, 9)), []permissions.ID{handed.ID, first.ID})
	revoke(t, s, g)
	c := apply(t, s, second.ID, permissions.Use{At: tapped})
	if !c.Voided() || !c.After.UsedAt.IsZero() {
		t.Errorf("it was revoked, and the approval is used: %+v", c.After)
	}
	if c := apply(t, s, pending.ID, handing(allow())); c.After.State != permissions.Approved || c.ApprovedAndUsed() {
		t.Errorf("it was revoked, and what is allowed now is used with it: %+v", c.After)
	}
	_, err := s.Apply(t.Context(), first.ID, permissions.Use{Call: "call-1", At: tapped})
	if !errors.Is(err, permissions.ErrNoUse) {
		t.Errorf("used once more: %v", err)
	}
	if n := readGrant(t, s, g.ID).Used; n != 2 {
		t.Errorf("what was taken back counts: %d", n)
	}
	verified(t, s)
}

// testKeyOfWhatIsOver: no key finds an approval that is over, whatever the clock or the window says later.
func testKeyOfWhatIsOver(t *testing.T, b Backend) {
	of := func(e permissions.Transition) func(*testing.T, engine.Store, permissions.Grant) {
		return func(t *testing.T, s engine.Store, g permissions.Grant) { apply(t, s, g.Request, e) }
	}
	for name, c := range map[string]struct {
		change func(*testing.T, engine.Store, permissions.Grant)
		finds  bool
	}{
		"in force": {nothing, true},
		"ended":    {ends, false},
		"revoked":  {revoke, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			g := grant(t, s, permissions.For(15*time.Minute), ask(keyed("own")))
			held := open(t, s, ask(keyed("held"), about("held"), under(tapped, g)))
			c.change(t, s, g)
			for want, again := range map[permissions.ID]permissions.Request{
				g.Request: ask(keyed("own"), at(tapped)), held.ID: ask(keyed("held"), about("held"), at(tapped)),
			} {
				got, created, err := s.Open(t.Context(), opening(again))
				if err != nil || created == c.finds || (got.ID == want) != c.finds {
					t.Errorf("key %q: created %v, %v", again.Key, created, err)
				}
			}
		})
	}
	for name, change := range map[string]func(*testing.T, engine.Store, permissions.Grant){
		"lapsed": of(permissions.Lapse{At: tapped.Add(redeem)}), "taken back": of(permissions.Void{By: "fay", At: tapped}),
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			first := open(t, s, ask(keyed("k")))
			apply(t, s, first.ID, allow())
			change(t, s, permissions.Grant{Request: first.ID})
			for _, behind := range []string{"FALSE", "TRUE"} { // so does its state
				got, created, err := s.Open(t.Context(), opening(ask(keyed("k"), at(tapped))))
				if err != nil || !created || got.ID == first.ID {
					t.Fatalf("key_live %s: created %v, %v", behind, created, err)
				}
				b.Exec(t, s, `UPDATE requests SET key_live = FALSE`)
				b.Exec(t, s, `UPDATE requests SET key_live = TRUE WHERE id = '`+string(first.ID)+`'`)
			}
		})
	}
}
