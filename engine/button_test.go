package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// A button works only for its recipient, on the message that it was sent with; other button data decides nothing.
func TestAButtonIsPressedByWhomItWasSentToWhereItWasSent(t *testing.T) {
	f, s, k := phones()
	settings := team()
	settings.Routes[0].Quorum = 1
	st := newEnv(t, settings, f, s, k)
	call := st.ask(t.Context(), network("deploy"))
	st.shown(s.Memory, 1)
	p := st.shown(f.Memory, 1)
	copies := f.Copies()
	ref := copies[0].Ref
	other := s.Copies()[0]
	if len(p.Button) < 22 || p.Button == other.First.Button {
		t.Fatalf("buttons carry %q and %q", p.Button, other.First.Button)
	}
	press := func(d connectors.Decision, code permissions.Code) {
		t.Helper()
		d.Answer = allow()
		_, err := f.Do(t.Context(), d)
		refused(t, err, code)
	}
	number, random, _ := strings.Cut(p.Button, "-")
	press(connectors.Decision{Button: number + "-" + strings.Repeat("A", len(random)), Ref: ref}, permissions.CodeUnknown)
	press(connectors.Decision{Button: "zzzzz-" + random, Ref: ref}, permissions.CodeUnknown)
	press(connectors.Decision{Button: number + "-", Ref: ref}, permissions.CodeUnknown)
	press(connectors.Decision{Button: "-" + random, Ref: ref}, permissions.CodeUnknown)
	press(connectors.Decision{Button: other.First.Button, Ref: other.Ref}, permissions.CodeUnknown) // of another channel
	press(connectors.Decision{Button: p.Button, Ref: ref, From: s.As}, permissions.CodeUnknown)
	asFay := s.As
	asFay.Via = f.As.Via
	press(connectors.Decision{Button: p.Button, Ref: ref, From: asFay}, permissions.CodeNotYours) // sam, in fay's chat
	press(connectors.Decision{Button: p.Button, Ref: "elsewhere"}, permissions.CodeMoved)
	st.mustBePending(p.Request.ID)
	look, err := st.Preview(t.Context(), connectors.Decision{Button: p.Button, Ref: ref, From: f.As})
	if err != nil || look.Request.ID != p.Request.ID || look.Button != p.Button || look.Ref != ref {
		t.Errorf("fay looks and sees %+v, %v", look, err)
	}
	if _, err := f.Do(t.Context(), connectors.Decision{Button: p.Button, Ref: ref, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Approved {
		t.Error(r.State)
	}
	_, err = st.Preview(t.Context(), connectors.Decision{Button: p.Button, Ref: ref, From: f.As})
	refused(t, err, permissions.CodeSettled)
}

// After a gap in which presses were lost, pending requests are shown again, and one that would end soon gets five
// minutes if its caller waits.
func TestCardsAreShownAgainAfterAGap(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	call := st.ask(t.Context(), network("x"))
	first := st.shown(f.Memory, 1)
	st.waiting(first.Request.ID, 1)
	st.advance(13 * time.Minute)
	were, err := st.ShowAgain(t.Context(), "fays-phone")
	if err != nil || len(were) != 1 || were[0].Ref != f.Copies()[0].Ref || were[0].Button != first.Button {
		t.Fatalf("shown were %+v, %v", were, err)
	}
	again := st.shown(f.Memory, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := f.Wait(ctx, func(c []connectortest.Copy) bool { // as sent, or by the edit that follows at once
		left := c[1].Last.Request.Deadline.Sub(st.now())
		return left > 4*time.Minute && left <= 5*time.Minute
	}); err != nil {
		t.Errorf("it has %s left: %v", f.Copies()[1].Last.Request.Deadline.Sub(st.now()), err)
	}
	for stored := ""; stored != f.Copies()[1].Ref; { // the send is recorded just after
		copies, err := st.rows.Copies(t.Context(), first.Request.ID)
		if err != nil {
			t.Fatal(err)
		}
		stored = copies[0].Ref
	}
	_, err = f.Do(t.Context(), connectors.Decision{Button: first.Button, Ref: were[0].Ref, Answer: allow()})
	refused(t, err, permissions.CodeMoved)
	if _, err := f.Do(t.Context(), connectors.Decision{Button: again.Button, Ref: f.Copies()[1].Ref, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	if none, err := st.ShowAgain(t.Context(), "fays-phone"); err != nil || len(none) != 0 {
		t.Errorf("settled and shown again: %v, %v", none, err)
	}
}

// A refreshed prompt is not sent again.
func TestCardsAreRefreshed(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	st.ask(t.Context(), network("x"))
	st.shown(f.Memory, 1)
	edits := f.Copies()[0].Edits
	were, err := st.Refresh(t.Context(), "fays-phone")
	if err != nil || len(were) != 1 {
		t.Fatalf("%v, %v", were, err)
	}
	if err := f.Wait(t.Context(), func(c []connectortest.Copy) bool { return len(c) == 1 && c[0].Edits > edits }); err != nil {
		t.Error(err)
	}
}

// interrupted is a phone of which the daemon refreshes all cards while the first one is struck out.
type interrupted struct {
	*phone
	meanwhile func()
	edited    chan bool // of settled requests
}

func (i *interrupted) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	if p.Request.State != permissions.Pending {
		i.meanwhile()
		i.edited <- true
	}
	return i.phone.Edit(ctx, ref, p)
}

// A card that is struck out while all cards are refreshed counts as outdated, and is edited once more.
func TestACardThatIsStruckOutWhileAllAreRefreshed(t *testing.T) {
	f := &interrupted{phone: newPhone(fay, "fays-phone"), edited: make(chan bool, 10)}
	st := newEnv(t, usual(), f)
	f.meanwhile = sync.OnceFunc(func() {
		if _, err := st.Refresh(t.Context(), "fays-phone"); err != nil {
			t.Error(err)
		}
	})
	call := st.ask(t.Context(), network("x"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	st.get(call)
	for n := range 2 {
		select {
		case <-f.edited:
		case <-time.After(20 * time.Second):
			t.Fatalf("it was edited %d times", n)
		}
	}
}
