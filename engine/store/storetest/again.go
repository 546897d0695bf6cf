package storetest

import (
	"testing"

	"github.com/daycared/daycared/permissions"
)

// Copies of pending requests are shown again, as new messages or edits; settled ones are left alone.
func testShowAgain(t *testing.T, b Backend) {
	s := b.Open(t)
	waits, over := ask(two), ask(func(r *permissions.Request) { r.Reason = "something else" })
	fay, sam := copyFor(waits, "fay", "telegram"), copyFor(waits, "sam", "terminal")
	fay.Button = permissions.NewButton()
	done := copyFor(over, "fay", "telegram")
	waits = open(t, s, waits, fay, sam)
	open(t, s, over, done)
	fay = show(t, s, shown(fay, "m-1", 1))
	show(t, s, shown(sam, "screen-1", 1))
	done = show(t, s, shown(done, "m-2", 1))
	if _, err := s.Apply(t.Context(), over.ID, vote(permissions.Deny)); err != nil {
		t.Fatal(err)
	}
	done.Shown = 2
	show(t, s, done)

	live, err := s.LiveCopies(t.Context(), "telegram", 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what fay sees", live, []permissions.Copy{fay})
	newest := open(t, s, ask(func(r *permissions.Request) { r.Reason = "a third thing" }))
	if live, err = s.LiveCopies(t.Context(), "telegram", 1); err != nil || len(live) != 0 {
		t.Errorf("the newest, %s, is shown nowhere: %v, %v", newest.ID, live, err)
	}
	were, err := s.ShowAgain(t.Context(), "telegram", false)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "shown were", were, []permissions.Copy{fay})
	same(t, "lagging", lagging(t, s, "telegram"), []permissions.ID{waits.ID})
	fay.Shown = 0
	same(t, "to be edited", copies(t, s, waits.ID)[0], fay)
	fay.Shown = 1
	show(t, s, fay)

	if were, err = s.ShowAgain(t.Context(), "telegram", true); err != nil {
		t.Fatal(err)
	}
	same(t, "shown were", were, []permissions.Copy{fay})
	fay.Shown, fay.Ref = 0, ""
	same(t, "to be sent", copies(t, s, waits.ID)[0], fay)
	late := fay
	late.Ref, late.Shown = "m-1", 1 // an edit in flight
	if err := s.MarkShown(t.Context(), late, "m-1"); err != nil {
		t.Fatal(err)
	}
	same(t, "still to be sent", copies(t, s, waits.ID)[0], fay)
	if none, err := s.ShowAgain(t.Context(), "telegram", true); err != nil || len(none) != 0 {
		t.Errorf("what is not shown is shown again: %v, %v", none, err)
	}

	fay.Shown, fay.Ref = 1, "m-9"
	fay = show(t, s, fay)
	if err := s.SendAgain(t.Context(), fay); err != nil {
		t.Fatal(err)
	}
	same(t, "lagging, of one", lagging(t, s, "telegram"), []permissions.ID{waits.ID})
	fay.Shown, fay.Ref = 0, ""
	same(t, "one to be sent", copies(t, s, waits.ID)[0], fay)
	same(t, "the other one", copies(t, s, waits.ID)[1].Ref, "screen-1")

	found, copied, err := s.ByNumber(t.Context(), waits.Number)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "by its number", found.ID, waits.ID)
	same(t, "with its copies", copied, copies(t, s, waits.ID))
	_, _, err = s.ByNumber(t.Context(), waits.Number+100)
	refusedWith(t, err, permissions.CodeUnknown)
}
