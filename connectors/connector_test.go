package connectors_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
)

type busy time.Duration

func (b busy) Error() string             { return "too much is written" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

func TestWhatErrorsSay(t *testing.T) {
	for _, c := range []struct {
		err  error
		want time.Duration
	}{
		{nil, 0}, {errors.New("x"), 0}, {busy(time.Minute), time.Minute}, {fmt.Errorf("send: %w", busy(3)), 3}, {busy(-1), 0},
	} {
		if got := connectors.RetryAfter(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
	gone := fmt.Errorf("show: %w", &connectors.UnreachableError{Reason: "fay has blocked the bot"})
	if !errors.Is(gone, connectors.ErrUnreachable) || gone.Error() != "show: fay has blocked the bot" {
		t.Errorf("%v", gone)
	}
	if errors.Is(errors.New("fay has blocked the bot"), connectors.ErrUnreachable) {
		t.Error("any error is for good")
	}
	renamed := &connectors.GroupRenamedError{Now: "telegram:-1001"}
	if errors.Is(renamed, connectors.ErrUnreachable) || renamed.Error() != "the group has a new id: telegram:-1001" {
		t.Errorf("%v", renamed)
	}
}

type away chan struct{}

func (away) Error() string                  { return "they are away" }
func (a away) ReadySignal() <-chan struct{} { return a }

func TestReadySignal(t *testing.T) {
	back := make(away)
	if connectors.ReadySignal(nil) != nil || connectors.ReadySignal(errors.New("x")) != nil {
		t.Error("something is awaited")
	}
	if got := connectors.ReadySignal(fmt.Errorf("talk: %w", back)); got != (<-chan struct{})(back) {
		t.Error("it is not what the error gives")
	}
}

func TestHours(t *testing.T) {
	night, noon := connectors.Hours{From: 22 * 60, To: 7 * 60}, connectors.Hours{From: 12 * 60, To: 13 * 60}
	at := func(hour, minute int) time.Time { return time.Date(2026, 11, 21, hour, minute, 0, 0, time.UTC) }
	for _, c := range []struct {
		hours connectors.Hours
		at    time.Time
		held  bool
	}{
		{night, at(21, 59), false}, {night, at(22, 0), true}, {night, at(6, 59), true}, {night, at(7, 0), false},
		{noon, at(12, 30), true}, {noon, at(13, 0), false}, {connectors.Hours{}, at(0, 0), false},
	} {
		if c.hours.Hold(c.at) != c.held {
			t.Errorf("%v at %s: held %v", c.hours, c.at, !c.held)
		}
	}
}

func TestLostAccounts(t *testing.T) {
	var l connectors.LostAccounts
	at := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)
	east := connectors.Person{Name: "fay", Location: time.FixedZone("EET", 7200)}
	l.Note("1", "fay left at {since}", at)
	l.Note("1", "fay left again", at.Add(time.Hour))
	for _, c := range []struct {
		now  time.Time
		want string
	}{
		{at.Add(time.Hour), "fay left at 01:30 EET"}, {at.Add(24 * time.Hour), "fay left at 23 Nov 01:30 EET"},
	} {
		if err := l.Reach("1", east, c.now); !errors.Is(err, connectors.ErrUnreachable) || err.Error() != c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
	if err := l.Reach("2", east, at); err != nil {
		t.Error(err)
	}
	told := 0
	for _, fails := range []error{errors.New("not now"), nil, nil} {
		if err := l.Recover("1", func() error { told++; return fails }); !errors.Is(err, fails) {
			t.Error(err)
		}
	}
	if told != 2 || l.Reach("1", east, at) != nil {
		t.Errorf("told %d times; want until it was taken", told)
	}
}

// Two people never share what one of them is given.
func TestAnAddressIsOnePersons(t *testing.T) {
	fay := connectors.Person{Name: "fay"}.WithAddress("telegram", "7")
	moved := fay.WithAddress("telegram", "8").WithAddress("whatsapp", "+49").WithAlias("whatsapp", "8@lid")
	gone := moved.WithAddress("whatsapp", "")
	for _, c := range []struct {
		who  connectors.Person
		want map[string]string
	}{
		{fay, map[string]string{"telegram": "7"}}, {moved, map[string]string{"telegram": "8", "whatsapp": "+49"}},
		{gone, map[string]string{"telegram": "8"}},
	} {
		if !maps.Equal(c.who.Addresses, c.want) {
			t.Errorf("%v; want %v", c.who.Addresses, c.want)
		}
	}
	if fay.Aliases["whatsapp"] != "" || moved.Aliases["whatsapp"] != "8@lid" {
		t.Errorf("aliases %v, %v", fay.Aliases, moved.Aliases)
	}
}

// A kind of channel says all that others read of it, and its example is an address.
func TestEveryKindOfChannel(t *testing.T) {
	for i, k := range connectors.Kinds {
		if k.Label == "" || k.Description == "" || k.Parse == nil || slices.Contains(connectors.KindNames()[:i], k.Name) {
			t.Errorf("%s: something is missing, or its name is taken", k.Name)
		}
		example := k.Example
		if !k.Number {
			example, _ = strconv.Unquote(k.Example)
		}
		if got, err := k.Parse(example); err != nil || got != example {
			t.Errorf("%s: its example %s is read as %q, %v", k.Name, k.Example, got, err)
		}
		for _, wrong := range []string{"", " ", "@fay", example + "\n", "\u202e" + example} {
			if got, err := k.Parse(wrong); err == nil {
				t.Errorf("%s: %q is read as %q", k.Name, wrong, got)
			}
		}
		if found, ok := connectors.KindOf(k.Name); !ok || found.Label != k.Label {
			t.Errorf("%s is not found", k.Name)
		}
	}
	if _, ok := connectors.KindOf("terminal"); ok {
		t.Error("the terminal has addresses")
	}
}
