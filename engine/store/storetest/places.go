package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

const place = "telegram:-1001/7"

func in(place string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Group = place }
}

// gathered are copies in the group of r, with their shared button.
func gathered(r permissions.Request, people ...string) (all []permissions.Copy) {
	for _, person := range people {
		c := copyFor(r, person, "telegram")
		c.Group, c.Button, c.DueAt = r.Group, "random", noon
		all = append(all, c)
	}
	return all
}

// testPlaceCopies: copies in one group are one message.
func testPlaceCopies(t *testing.T, b Backend) {
	s := b.Open(t)
	r := ask(three, in(place))
	both := gathered(r, "fay", "sam")
	alone := copyFor(r, "fay", "terminal")
	open(t, s, r, append(both, alone)...)
	before := len(entries(t, s))
	sent := shown(both[1], "-1001:5", 1)
	if err := s.MarkShown(t.Context(), sent, ""); err != nil {
		t.Fatal(err)
	}
	both[0] = shown(both[0], "-1001:5", 1)
	same(t, "sent once, seen by both", copies(t, s, r.ID), []permissions.Copy{both[0], alone, sent})
	if n := len(entries(t, s)) - before; n != 2 {
		t.Errorf("%d records; want one for each of them", n)
	}

	joins := gathered(r, "kim")[0]
	joins.Button, joins.DueAt = "another", noon.Add(time.Hour)
	if err := s.AddCopies(t.Context(), []permissions.Copy{joins}); err != nil {
		t.Fatal(err)
	}
	joins.Ref, joins.Button, joins.DueAt = sent.Ref, sent.Button, sent.DueAt
	same(t, "kim joins the message", copies(t, s, r.ID), []permissions.Copy{both[0], alone, joins, sent})
	same(t, "which is to be shown to kim", lagging(t, s, "telegram"), []permissions.ID{r.ID})
	before = len(entries(t, s))
	again := shown(sent, "-1001:5", 2)
	again.SentAt = noon.Add(time.Minute)
	if err := s.MarkShown(t.Context(), again, "-1001:5"); err != nil {
		t.Fatal(err)
	}
	for _, c := range copies(t, s, r.ID) {
		at := noon.Add(time.Second)
		if c.Person == "kim" {
			at = again.SentAt
		}
		if c.Group != "" && (c.Shown != 2 || c.Ref != "-1001:5" || !c.SentAt.Equal(at)) {
			t.Errorf("%s has %+v", c.Person, c)
		}
	}
	if n := len(entries(t, s)) - before; n != 1 {
		t.Errorf("%d records; want that of kim", n)
	}
	elsewhere(t, s.MarkShown(t.Context(), shown(sent, "-1001:9", 3), "another"), "-1001:5")
	same(t, "what another message says is not noted", copies(t, s, r.ID)[0].Ref, "-1001:5")

	failed := sent
	failed.Failed = "the bot was removed from the group"
	if err := s.MarkFailed(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	own := copyFor(r, "fay", "telegram")
	if err := s.AddCopies(t.Context(), []permissions.Copy{own}); err != nil {
		t.Fatal(err)
	}
	for _, c := range copies(t, s, r.ID) {
		if (c.Failed != "") != (c.Group != "") || (c.Group != "" && c.SentAt.IsZero()) {
			t.Errorf("after it failed: %+v", c)
		}
	}
	same(t, "fay has one of her own besides", len(copies(t, s, r.ID)), 5)
	same(t, "to be shown", lagging(t, s, "telegram"), []permissions.ID{r.ID})
}

// testPlaces: pending requests by group, and the groups' names.
func testPlaces(t *testing.T, b Backend) {
	s := b.Open(t)
	first := open(t, s, ask(in(place)))
	open(t, s, ask(numbered(1)))
	other := open(t, s, ask(numbered(2), in("telegram:-5")))
	second := open(t, s, ask(numbered(3), in(place)))
	settled := open(t, s, ask(numbered(4), in("telegram:-6")))
	apply(t, s, settled.ID, allow())
	list := func(s engine.Store, after permissions.ID, limit int) []permissions.ID {
		t.Helper()
		found, err := s.PendingInGroup(t.Context(), place, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		return ids(found)
	}
	same(t, "in one place", list(s, "", 9), []permissions.ID{first.ID, second.ID})
	same(t, "a page", list(s, "", 1), []permissions.ID{first.ID})
	same(t, "the next", list(s, first.ID, 9), []permissions.ID{second.ID})
	_, err := s.PendingInGroup(t.Context(), place, "01J0000000000000000000NONE", 1)
	refusedWith(t, err, permissions.CodeUnknown)

	move := permissions.GroupRename{Was: "telegram:-5", Now: "telegram:-1005", At: noon}
	for i, want := range []bool{true, false} {
		news, err := s.RenameGroup(t.Context(), move, "telegram")
		if err != nil || news != want {
			t.Errorf("time %d: news is %v, %v", i, news, err)
		}
	}
	last := entries(t, s)[len(entries(t, s))-1]
	same(t, "audited", last.Record, permissions.Record{
		Type: permissions.GroupRenamed, At: noon, Via: "telegram", Detail: map[string]string{"was": move.Was, "now": move.Now},
	})
	move.Now = "telegram:-1006"
	if news, err := s.RenameGroup(t.Context(), move, "telegram"); err != nil || !news {
		t.Errorf("moved again: %v, %v", news, err)
	}
	s = b.Reopen(t, s)
	places, err := s.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "where something waits", places, []string{place, "telegram:-5"})
	moves, err := s.GroupRenames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "moves", moves, []permissions.GroupRename{{Was: move.Was, Now: move.Now}})
	same(t, "a row keeps the name it was asked by", read(t, s, other.ID).Group, "telegram:-5")
}

// testPlaceNotices: a group has one reminder, besides those of its people.
func testPlaceNotices(t *testing.T, b Backend) {
	s := b.Open(t)
	for n := range 2 {
		r := open(t, s, ask(patient, in(place), numbered(n)))
		apply(t, s, r.ID, permissions.Remind{At: r.Reminders[0]})
	}
	var people, places []string
	for _, n := range notices(t, s) {
		if people = append(people, n.To); n.Group != "" {
			places = append(places, n.Group)
		}
	}
	slices.Sort(people) // simultaneous ones have no order
	same(t, "who is told", people, []string{"", "fay"})
	same(t, "where", places, []string{place})
}
