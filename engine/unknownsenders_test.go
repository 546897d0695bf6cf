package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// writeFromUnknown writes from an unknown account.
func (s *env) writeFromUnknown(account string) {
	s.t.Helper()
	if err := s.NoteUnknownSender(s.t.Context(), permissions.UnknownSender{Via: "telegram", Account: account, Name: "Eve"}); err != nil {
		s.t.Fatal(err)
	}
}

// waitUnknownSenders waits until that many unknown senders are stored that nobody was told of.
func (s *env) waitUnknownSenders(n int) {
	s.t.Helper()
	count := 0
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		met, err := s.rows.UnknownSenders(s.t.Context())
		if count = met.Count(); err == nil && count == n {
			return
		}
		<-time.After(time.Millisecond)
	}
	s.t.Fatalf("%d unknown senders are left to report, not %d", count, n)
}

// lists returns which of some accounts a notice lists.
func lists(n connectors.Notice) string {
	var all []string
	for _, s := range n.UnknownSenders.List {
		all = append(all, s.Account)
	}
	return strings.Join(all, " ")
}

// The owner is told of the first unknown sender at once, and of others within a day after that together, a day later.
func TestTheOwnerIsToldOfUnknownSendersOnceADay(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	st.writeFromUnknown("6666")
	if n := f.notice(t); n.About != permissions.AboutUnknownSenders || !n.Silent || n.To.Name != "fay" || lists(n) != "6666" {
		t.Fatalf("told %+v", n)
	}
	st.waitUnknownSenders(0)
	st.writeFromUnknown("6666") // again
	st.writeFromUnknown("7777")
	st.advance(23 * time.Hour)
	st.writeFromUnknown("8888")
	st.restart(f)
	st.writeFromUnknown("9999")
	st.waitUnknownSenders(3)
	if n := len(f.news); n != 0 {
		t.Fatalf("%d more notices within a day", n)
	}
	st.advance(time.Hour)
	st.writeFromUnknown("7777") // like any notice, it wakes the notifier
	if n := f.notice(t); lists(n) != "7777 8888 9999" {
		t.Errorf("told of %s", lists(n))
	}
	st.waitUnknownSenders(0)
	st.advance(25 * time.Hour)
	st.writeFromUnknown("6666")
	if n := f.notice(t); lists(n) != "6666" || !strings.Contains(said(n), `   6666 · Telegram · calls itself "Eve"`) {
		t.Errorf("told of %s:\n%s", lists(n), said(n))
	}
}

// A clock that was set back delays the notice by a day at most.
func TestUnknownSendersAfterTheClockWasSetBack(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	st.writeFromUnknown("6666")
	f.notice(t)
	st.waitUnknownSenders(0)
	st.setWallClock(-48 * time.Hour)
	st.writeFromUnknown("7777")
	if n := f.notice(t); lists(n) != "7777" {
		t.Errorf("told of %s", lists(n))
	}
}

func TestUnknownSendersAreReportedInTheMorning(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, night(t), f)
	at(t, st, "2027-03-10 23:00")
	st.writeFromUnknown("6666")
	at(t, st, "2027-03-11 05:00")
	st.writeFromUnknown("7777")
	st.waitUnknownSenders(2)
	f.toldNothing(t)
	at(t, st, "2027-03-11 07:00")
	if n := f.notice(t); lists(n) != "6666 7777" {
		t.Errorf("told of %s", lists(n))
	}
}

// A sender who was paired meanwhile is not reported, and alone causes no notice.
func TestAPairedSenderIsNotReported(t *testing.T) {
	f, l := newPhone(fay, "fays-phone"), newPairingChannel()
	st := newEnv(t, night(t), f, l)
	at(t, st, "2027-03-10 23:00")
	st.writeFromUnknown("4242")
	if _, err := st.pair(l, "sam", "4242"); err != nil {
		t.Fatal(err)
	}
	at(t, st, "2027-03-11 07:00")
	st.waitUnknownSenders(0)
	f.toldNothing(t)
	at(t, st, "2027-03-11 23:00")
	st.writeFromUnknown("6666")
	at(t, st, "2027-03-12 08:00")
	if n := f.notice(t); lists(n) != "6666" {
		t.Errorf("told of %s", lists(n))
	}
}

// An undeliverable notice is not kept for ever, and one that fails for now is sent later.
func TestUnknownSendersWithoutAnOwner(t *testing.T) {
	mute := newPhone(sam, "sams-phone") // fay has no channel
	st := newEnv(t, usual(), mute)
	st.writeFromUnknown("6666")
	st.waitUnknownSenders(0)
	mute.toldNothing(t)
}

func TestTheOwnerIsThePersonOfTheDaemonsAccount(t *testing.T) {
	for name, c := range map[string]struct {
		people []connectors.Person
		uid    int
		want   string
	}{
		"the daemon's account":  {[]connectors.Person{fay, sam}, sam.UID, "sam"},
		"the first of the file": {[]connectors.Person{fay, sam}, 1, "fay"},
		"nobody":                {nil, 1, engine.OperatorName},
	} {
		s := engine.Settings{People: c.people, UID: c.uid}
		if got := s.Owner().Name; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
