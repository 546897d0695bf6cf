package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func copyFor(r permissions.Request, person, connector string) permissions.Copy {
	return permissions.Copy{Request: r.ID, Person: person, Connector: connector}
}

// shown is a copy after its connector sent it.
func shown(c permissions.Copy, ref string, revision int64) permissions.Copy {
	c.Ref, c.Shown, c.SentAt = ref, revision, noon.Add(time.Second)
	return c
}

func show(t *testing.T, s engine.Store, c permissions.Copy) permissions.Copy {
	t.Helper()
	was := ""
	for _, old := range copies(t, s, c.Request) {
		if old.Person == c.Person && old.Connector == c.Connector {
			was = old.Ref
		}
	}
	if err := s.MarkShown(t.Context(), c, was); err != nil {
		t.Fatal(err)
	}
	return c
}

func copies(t *testing.T, s engine.Store, id permissions.ID) []permissions.Copy {
	t.Helper()
	all, err := s.Copies(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func lagging(t *testing.T, s engine.Store, connector string) []permissions.ID {
	t.Helper()
	all, err := s.StaleCopies(t.Context(), connector, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func testCopies(t *testing.T, b Backend) {
	s := b.Open(t)
	r := ask(two)
	fay, sam := copyFor(r, "fay", "terminal"), copyFor(r, "sam", "telegram")
	fay.DueAt = noon.Add(123456 * time.Microsecond)
	open(t, s, r, fay, sam)
	same(t, "at first", copies(t, s, r.ID), []permissions.Copy{fay, sam})

	before := len(entries(t, s))
	named := fay
	named.Ref = "about to be sent"
	for _, name := range []string{named.Ref, "another name"} { // the first stays
		if err := s.MarkNamed(t.Context(), permissions.Copy{Request: r.ID, Person: "fay", Connector: "terminal", Ref: name}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "named", copies(t, s, r.ID), []permissions.Copy{named, sam})
	fay = show(t, s, shown(fay, "screen-1", 1))
	sam.Failed = "sam has blocked the bot"
	if err := s.MarkFailed(t.Context(), sam); err != nil {
		t.Fatal(err)
	}
	same(t, "shown and failed", copies(t, s, r.ID), []permissions.Copy{fay, sam})
	fay.Shown = 2
	show(t, s, fay)
	same(t, "edited", copies(t, s, r.ID), []permissions.Copy{fay, sam})
	kim := show(t, s, shown(copyFor(r, "kim", "telegram"), "m-7", 2))
	same(t, "asked later", copies(t, s, r.ID), []permissions.Copy{fay, kim, sam})

	var told []permissions.Record
	for _, e := range entries(t, s)[before:] {
		told = append(told, e.Record)
	}
	same(t, "the audit of what was shown", told, []permissions.Record{
		{
			Type: permissions.RequestShown, At: fay.SentAt, Request: r.ID, Via: "terminal",
			Detail: map[string]string{"to": "fay"},
		},
		{
			Type: permissions.RequestShown, At: kim.SentAt, Request: r.ID, Via: "telegram",
			Detail: map[string]string{"to": "kim"},
		},
	})
	refusedWith(t, s.MarkShown(t.Context(), permissions.Copy{Request: "01J0000000000000000000NONE"}, ""), permissions.CodeUnknown)
	if got := copies(t, s, "01J0000000000000000000NONE"); len(got) != 0 {
		t.Errorf("copies of no request: %v", got)
	}
}

func testLagging(t *testing.T, b Backend) {
	s := b.Open(t)
	var made []permissions.Request
	for n := range 4 {
		r := ask(two, numbered(n))
		made = append(made, open(t, s, r, copyFor(r, "fay", "terminal"), copyFor(r, "sam", "telegram")))
	}
	bare := open(t, s, ask(about("no copies")))
	want := func(when, connector string, wanted ...permissions.ID) {
		t.Helper()
		same(t, when+", "+connector, lagging(t, s, connector), wanted)
	}
	want("at first", "terminal", ids(made)...)
	want("at first", "telegram", ids(made)...)
	want("at first", "whatsapp")

	show(t, s, shown(copyFor(made[0], "fay", "terminal"), "screen", 1))
	want("the first shown", "terminal", ids(made[1:])...)
	want("the first shown elsewhere", "telegram", ids(made)...)
	page, err := s.StaleCopies(t.Context(), "terminal", made[1].ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a page of one", page, []permissions.ID{made[2].ID})

	failed := copyFor(made[1], "fay", "terminal")
	failed.Failed = "no console"
	if err := s.MarkFailed(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	want("the second failed", "terminal", ids(made[2:])...)
	apply(t, s, made[0].ID, allow())
	apply(t, s, made[1].ID, allow())
	apply(t, s, bare.ID, allow())
	want("two voted on", "terminal", made[0].ID, made[2].ID, made[3].ID)
	show(t, s, shown(copyFor(made[0], "fay", "terminal"), "screen", 2))
	want("the vote shown", "terminal", ids(made[2:])...)
	show(t, s, shown(copyFor(made[0], "sam", "telegram"), "m-1", 1))
	want("shown as it was before", "telegram", ids(made)...)
	apply(t, s, made[2].ID, vote(permissions.Deny))
	want("one settled", "terminal", ids(made[2:])...)
	_, err = s.StaleCopies(t.Context(), "terminal", "01J0000000000000000000NONE", 1)
	refusedWith(t, err, permissions.CodeUnknown)
}

func testForget(t *testing.T, b Backend) {
	s := b.Open(t)
	shownTo := func(n int) permissions.Request {
		r := ask(numbered(n))
		return open(t, s, r, copyFor(r, "fay", "terminal"), copyFor(r, "fay", "telegram"))
	}
	waiting, settled, unseen := shownTo(1), shownTo(2), shownTo(3)
	onScreen := show(t, s, shown(copyFor(waiting, "fay", "terminal"), "screen-1", 1))
	inChat := show(t, s, shown(copyFor(waiting, "fay", "telegram"), "m-1", 1))
	show(t, s, shown(copyFor(settled, "fay", "terminal"), "screen-2", 1))
	apply(t, s, settled.ID, allow())
	apply(t, s, unseen.ID, allow())
	before := len(entries(t, s))

	if err := s.ForgetCopies(t.Context(), "terminal"); err != nil {
		t.Fatal(err)
	}
	same(t, "to be shown again", lagging(t, s, "terminal"), []permissions.ID{waiting.ID})
	same(t, "what others have to do", lagging(t, s, "telegram"), []permissions.ID{settled.ID, unseen.ID})
	onScreen.Ref, onScreen.Shown = "", 0 // seen once: the time of the first sending is kept
	same(t, "the copies of what waits", copies(t, s, waiting.ID), []permissions.Copy{inChat, onScreen})
	for _, c := range copies(t, s, unseen.ID) {
		if (c.Failed != "") != (c.Connector == "terminal") {
			t.Errorf("the %s copy that was never shown: failed %q", c.Connector, c.Failed)
		}
	}
	show(t, s, shown(onScreen, "screen-9", 1))
	same(t, "after it was shown again", lagging(t, s, "terminal"), []permissions.ID{})
	if n := len(entries(t, s)); n != before {
		t.Errorf("showing again was audited %d times", n-before)
	}
}

func testAddCopies(t *testing.T, b Backend) {
	s := b.Open(t)
	r := ask(two)
	fay, kim := copyFor(r, "fay", "terminal"), copyFor(r, "kim", "telegram")
	open(t, s, r, fay)
	fay = show(t, s, shown(fay, "screen-1", 1))
	same(t, "before", lagging(t, s, "telegram"), []permissions.ID{})

	again := copyFor(r, "fay", "terminal")
	again.DueAt, kim.DueAt = noon.Add(time.Minute), noon.Add(time.Minute)
	before := len(entries(t, s))
	for range 2 {
		if err := s.AddCopies(t.Context(), []permissions.Copy{again, kim}); err != nil {
			t.Fatal(err)
		}
		same(t, "what was there stays", copies(t, s, r.ID), []permissions.Copy{fay, kim})
	}
	same(t, "to be shown", lagging(t, s, "telegram"), []permissions.ID{r.ID})
	kim = show(t, s, shown(kim, "m-1", 1))
	same(t, "when it is shown counts from the same time", copies(t, s, r.ID), []permissions.Copy{fay, kim})
	same(t, "shown", lagging(t, s, "telegram"), []permissions.ID{})
	if n := len(entries(t, s)) - before; n != 1 {
		t.Errorf("%d records, want that of showing it", n)
	}
	if err := s.AddCopies(t.Context(), nil); err != nil {
		t.Errorf("none: %v", err)
	}
	none := []permissions.Copy{copyFor(r, "sam", "telegram"), {Request: "01J0000000000000000000NONE"}}
	refusedWith(t, s.AddCopies(t.Context(), none), permissions.CodeUnknown)
	same(t, "all or none", copies(t, s, r.ID), []permissions.Copy{fay, kim})
}

func testUnaddressed(t *testing.T, b Backend) {
	s := b.Open(t)
	var made []permissions.Request
	for n := range 4 {
		r := ask(two, patient, numbered(n))
		made = append(made, open(t, s, r, copyFor(r, "fay", "terminal"), copyFor(r, "fay", "telegram")))
	}
	list := func(after permissions.ID, limit int) []permissions.ID {
		t.Helper()
		found, err := s.RequestsWithoutCopies(t.Context(), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	same(t, "sam has none", list("", 9), ids(made))
	same(t, "a page", list(made[0].ID, 2), ids(made[1:3]))
	failed := copyFor(made[0], "sam", "telegram")
	failed.Failed = "blocked" // it failed again
	if err := s.AddCopies(t.Context(), []permissions.Copy{failed, copyFor(made[1], "sam", "telegram")}); err != nil {
		t.Fatal(err)
	}
	apply(t, s, made[2].ID, vote(permissions.Deny))
	same(t, "one has one, one is settled", list("", 9), []permissions.ID{made[0].ID, made[3].ID})
	apply(t, s, made[1].ID, permissions.Escalate{At: noon.Add(5 * time.Minute)})
	same(t, "more are asked", list("", 9), []permissions.ID{made[0].ID, made[1].ID, made[3].ID})
	all := open(t, s, ask(two, patient, numbered(4)), copyFor(made[0], "fay", "terminal"), copyFor(made[0], "sam", "terminal"))
	same(t, "everybody has one", list(made[3].ID, 9), []permissions.ID(nil))
	blocked := failed
	blocked.Request = all.ID
	if err := s.AddCopies(t.Context(), []permissions.Copy{blocked}); err != nil {
		t.Fatal(err)
	}
	same(t, "a screen is not the next channel", list(made[3].ID, 9), []permissions.ID{all.ID})
	_, err := s.RequestsWithoutCopies(t.Context(), "01J0000000000000000000NONE", 1)
	refusedWith(t, err, permissions.CodeUnknown)
}

// testAskedAgainAfterFailing: failed copies are tried again for people who are asked again, and for nobody else.
func testAskedAgainAfterFailing(t *testing.T, b Backend) {
	later := noon.Add(2 * time.Minute)
	s := b.Open(t)
	r := ask(two, patient)
	failed := func(person, connector string) permissions.Copy {
		c := copyFor(r, person, connector)
		c.Failed = "blocked"
		return c
	}
	fay, sam, kim := failed("fay", "telegram"), failed("sam", "telegram"), failed("kim", "telegram")
	screen := copyFor(r, "sam", "terminal")
	open(t, s, r, fay, sam, screen, kim)
	all := []permissions.Copy{fay, kim, sam, screen}
	apply(t, s, r.ID, permissions.Reroute{Asked: []string{"fay"}, EscalateTo: []string{"kim", "sam"}, At: later})
	same(t, "asked no longer", copies(t, s, r.ID), all)
	apply(t, s, r.ID, permissions.Reroute{Asked: []string{"fay", "sam"}, EscalateTo: []string{"kim"}, At: later})
	same(t, "asked again", copies(t, s, r.ID), []permissions.Copy{fay, kim, screen})
	apply(t, s, r.ID, permissions.Escalate{At: later})
	same(t, "asked at last", copies(t, s, r.ID), []permissions.Copy{fay, screen})
}

// elsewhere checks that nothing was recorded, because the copy is another message.
func elsewhere(t *testing.T, err error, ref string) {
	t.Helper()
	if other := (*permissions.OtherMessageError)(nil); !errors.As(err, &other) || other.Ref != ref {
		t.Errorf("noted: %v", err)
	}
}

// testWhileSending: a copy that was shown since it was read is not marked as failed, one that was pressed before its
// channel dated it is dated then, and recording a reference shows nothing.
func testWhileSending(t *testing.T, b Backend) {
	s := b.Open(t)
	r := ask(two)
	fay := copyFor(r, "fay", "telegram")
	open(t, s, r, fay)
	before := len(entries(t, s))
	if err := s.MarkShown(t.Context(), fay, ""); err != nil {
		t.Fatal(err)
	}
	same(t, "not shown yet", copies(t, s, r.ID), []permissions.Copy{fay})
	if n := len(entries(t, s)); n != before {
		t.Error("it is audited as shown")
	}
	pressed := show(t, s, shown(fay, "m-1", 0))
	late := fay
	late.Failed = "it took too long"
	if err := s.MarkFailed(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	same(t, "pressed, and not given up", copies(t, s, r.ID), []permissions.Copy{pressed})
	pressed.Shown, pressed.ChannelTime = 1, noon.Add(time.Minute)
	if err := s.MarkShown(t.Context(), pressed, ""); err != nil { // as read before sending
		t.Fatal(err)
	}
	same(t, "dated", copies(t, s, r.ID), []permissions.Copy{pressed})
	other := pressed
	other.Ref = "m-2"
	elsewhere(t, s.MarkShown(t.Context(), other, ""), "m-1")
	same(t, "known as another message", copies(t, s, r.ID), []permissions.Copy{pressed})
}

// testBurst: a list is found by its message, its connector and its person, in the order of its requests; a copy stays on it when it
// gets a message of its own, until it is listed nowhere.
func testBurst(t *testing.T, b Backend) {
	s := b.Open(t)
	var want []permissions.Copy
	for _, reason := range []string{"one", "another"} {
		r := ask(two, func(r *permissions.Request) { r.Reason = reason })
		open(t, s, r, copyFor(r, "fay", "telegram"), copyFor(r, "sam", "telegram"), copyFor(r, "fay", "whatsapp"))
		for _, c := range []permissions.Copy{copyFor(r, "fay", "telegram"), copyFor(r, "sam", "telegram"), copyFor(r, "fay", "whatsapp")} {
			c.Burst = "1:2"
			c = show(t, s, shown(c, "1:2", 1))
			if c.Person == "fay" && c.Connector == "telegram" {
				want = append(want, c)
			}
		}
	}
	slices.SortFunc(want, func(a, b permissions.Copy) int { return strings.Compare(string(a.Request), string(b.Request)) })
	list := func(what, ref string, want []permissions.Copy) {
		t.Helper()
		all, err := s.Burst(t.Context(), "telegram", "fay", ref)
		if err != nil {
			t.Fatal(err)
		}
		same(t, what, all, want)
	}
	list("the list", "1:2", want)
	list("another message", "1:3", nil)
	list("no message", "", nil)
	opened := want[1]
	if err := s.SendAgain(t.Context(), opened); err != nil {
		t.Fatal(err)
	}
	want[1].Ref, want[1].Shown = "", 0
	list("about to be opened", "1:2", want)
	want[1] = shown(want[1], "1:9", 1)
	want[1].SentAt = noon.Add(time.Minute) // its own message is later than the list
	if err := s.MarkShown(t.Context(), want[1], ""); err != nil {
		t.Fatal(err)
	}
	list("opened", "1:2", want)
	alone := want[0]
	alone.Burst, alone.Ref = "", "1:4"
	if err := s.MarkShown(t.Context(), alone, "1:2"); err != nil {
		t.Fatal(err)
	}
	list("without the one that is alone now", "1:2", want[1:])
}
