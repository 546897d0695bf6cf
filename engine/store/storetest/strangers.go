package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func stranger(account string, at time.Time) permissions.UnknownSender {
	return permissions.UnknownSender{Via: "telegram", Account: account, Name: "Eve\u202e " + account, At: at}
}

func met(t *testing.T, s engine.Store, account string, at time.Time) permissions.UnknownSender {
	t.Helper()
	who := stranger(account, at)
	if err := s.AddUnknownSender(t.Context(), who, "fay"); err != nil {
		t.Fatal(err)
	}
	return who
}

// strangers are the unreported unknown senders, without the store's number.
func strangers(t *testing.T, s engine.Store) permissions.UnknownSenders {
	t.Helper()
	all, err := s.UnknownSenders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func untold(t *testing.T, what string, s engine.Store, toldAt time.Time, want ...permissions.UnknownSender) permissions.UnknownSenders {
	t.Helper()
	got := strangers(t, s)
	numberless := got
	numberless.UpTo = 0
	same(t, what, numberless, permissions.UnknownSenders{List: want, ToldAt: toldAt})
	return got
}

func toldOf(t *testing.T, s engine.Store, n permissions.Notice, all permissions.UnknownSenders, at time.Time) {
	t.Helper()
	if err := s.MarkUnknownSendersTold(t.Context(), n, all, at); err != nil {
		t.Fatal(err)
	}
}

// testStrangers: each is reported once a day, in one notice to the owner, across restarts.
func testStrangers(t *testing.T, b Backend) {
	s := b.Open(t)
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	notice := func(n int) permissions.Notice {
		return permissions.Notice{To: "fay", About: permissions.AboutUnknownSenders, CreatedAt: hour(n)}
	}
	untold(t, "an empty store", s, time.Time{})
	one := met(t, s, "6666", hour(0))
	told(t, "of the first", s, notice(0))
	met(t, s, "6666", hour(1))
	two := met(t, s, "7777", hour(1))
	elsewhere := permissions.UnknownSender{Via: "whatsapp", Account: "6666", At: hour(2)}
	if err := s.AddUnknownSender(t.Context(), elsewhere, "sam"); err != nil {
		t.Fatal(err)
	}
	told(t, "one at a time", s, notice(0))
	s = b.Reopen(t, s)
	all := untold(t, "after a restart", s, time.Time{}, one, two, elsewhere)

	late := met(t, s, "8888", hour(3)) // while the others are being reported
	first := notices(t, s)[0]
	toldOf(t, s, first, all, hour(3))
	told(t, "of who came meanwhile", s, notice(0))
	if again := notices(t, s)[0]; again.ID == first.ID {
		t.Error("the notice that was sent is not struck out")
	}
	s = b.Reopen(t, s)
	met(t, s, "6666", hour(4)) // reported already
	met(t, s, "7777", hour(26))
	untold(t, "who came meanwhile", s, hour(3), late)
	anew := met(t, s, "6666", hour(27)) // a day later
	all = untold(t, "a day later", s, time.Time{}, late, anew)

	toldOf(t, s, notices(t, s)[0], all, time.Time{}) // known people by now
	told(t, "nobody is left", s)
	untold(t, "nobody is left", s, time.Time{})
	back := met(t, s, "8888", hour(28))
	all = untold(t, "forgotten is unknown", s, time.Time{}, back)
	toldOf(t, s, notices(t, s)[0], all, hour(28))
	prune(t, s, permissions.Keep{}, hour(51), 1)
	untold(t, "within the day", s, hour(28))
	prune(t, s, permissions.Keep{}, hour(52).Add(time.Second), 1)
	untold(t, "pruned", s, time.Time{})
	same(t, "the audit", entries(t, s), []permissions.Entry(nil))
}

// testManyStrangers: a flood of them is counted, and fills nothing.
func testManyStrangers(t *testing.T, b Backend) {
	s := b.Open(t)
	const more = 7
	for n := range permissions.MaxUnknownSenders + more {
		met(t, s, strconv.Itoa(n), noon.Add(time.Duration(n)*time.Second))
	}
	met(t, s, "0", noon.Add(time.Hour))
	s = b.Reopen(t, s)
	all := strangers(t, s)
	if len(all.List) != permissions.MaxUnknownSenders || all.More != more || all.Count() != permissions.MaxUnknownSenders+more {
		t.Fatalf("%d are kept and %d counted", len(all.List), all.More)
	}
	same(t, "the last that is kept", all.List[len(all.List)-1].Account, strconv.Itoa(permissions.MaxUnknownSenders-1))
	met(t, s, "late", noon.Add(2*time.Hour))
	toldOf(t, s, notices(t, s)[0], all, noon.Add(3*time.Hour))
	if left := strangers(t, s); len(left.List) != 0 || left.More != 1 {
		t.Errorf("%d are kept and %d counted of one who came meanwhile", len(left.List), left.More)
	}
	if n := len(notices(t, s)); n != 1 {
		t.Errorf("%d notices of one who came meanwhile", n)
	}
	met(t, s, "later", noon.Add(4*time.Hour))
	if left := strangers(t, s); len(left.List) != 1 || left.More != 1 {
		t.Errorf("%d are kept and %d counted; want that there is room again", len(left.List), left.More)
	}
}
