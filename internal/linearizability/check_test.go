package linearizability_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// seen is a history by hand: who did what, from when to when, and the reply. Its deadline is at 100.
type seen struct {
	act      act
	who      string
	from, to int64
	told     reply
}

func (s seen) add(h *history, c clock) {
	made := call{from: s.from, to: s.to, reply: s.told}
	if s.told.row.state != absent || s.act == ask {
		made.shown = shown{ID: "r", Deadline: c.start.Round(0).Add(100)}
	}
	d := deed{act: s.act, who: s.who}
	if s.act == allow || s.act == deny {
		d.tap = s.who + "'s"
	}
	h.add(0, d, "r", made)
}

func byHand(keyed bool, quorum int, all []seen, stops ...*episode) *history {
	c := clock{time.Now(), haste}
	h := newHistory(&question{keyed: keyed, quorum: quorum, asked: asked(quorum)}, &switches{clock: c, who: "kim", all: stops})
	h.ids = []string{"r"}
	for _, s := range all {
		s.add(h, c)
	}
	return h
}

// rowOf is a reply's request.
func rowOf(state, by, votes string, more ...string) reply {
	r := row{state: state, by: by, votes: votes}
	for _, m := range more {
		r.used, r.void = r.used || m == "used", r.void || m == "void"
	}
	return reply{word: told, row: r}
}

func said(w word, about reply) reply {
	about.word = w
	return about
}

func TestTheCheckersModel(t *testing.T) {
	var (
		waits  = rowOf(pending, "", "")
		half   = rowOf(pending, "", "fay+")
		yes    = rowOf(approved, "fay", "fay+")
		used   = rowOf(approved, "fay", "fay+", "used")
		no     = rowOf(denied, "sam", "sam-")
		back   = rowOf(approved, "fay", "fay+", "void")
		over   = rowOf(expired, "", "")
		gone   = rowOf(cancelled, "", "")
		opened = seen{ask, "a", 0, 2, waits}
	)
	tests := []struct {
		name   string
		quorum int
		keyed  bool
		holds  bool
		all    []seen
		stops  []*episode
	}{
		{"allowed, used", 1, false, true,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 5, 6, used}}, nil},
		{"handed over at once", 1, false, true,
			[]seen{{ask, "a", 0, 9, used}, {allow, "fay", 3, 4, used}}, nil},
		{"used by two", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 5, 6, used}, {ask, "b", 5, 6, used}}, nil},
		{"used by two, with a key", 1, true, true,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 5, 6, used}, {ask, "b", 5, 6, used}}, nil},
		{"used twice by one", 1, false, true,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 5, 6, used}, {ask, "a", 7, 8, used}}, nil},
		{"two winners", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 9, yes}, {deny, "sam", 3, 9, no}}, nil},
		{"a loser who is told", 1, false, true,
			[]seen{opened, {allow, "fay", 3, 9, said(settled, no)}, {deny, "sam", 3, 9, no}}, nil},
		{"a loser who is told of another", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 9, said(settled, yes)}, {deny, "sam", 3, 9, no}}, nil},
		{"read too early", 1, false, false,
			[]seen{opened, {read, "", 3, 4, no}, {deny, "sam", 5, 6, no}}, nil},
		{"read while it happens", 1, false, true,
			[]seen{opened, {read, "", 3, 6, no}, {deny, "sam", 5, 9, no}, {read, "", 3, 6, waits}}, nil},
		{"read too late", 1, false, false,
			[]seen{opened, {deny, "sam", 3, 4, no}, {read, "", 5, 6, waits}}, nil},
		{"a vote of nobody's", 2, false, false,
			[]seen{opened, {allow, "fay", 3, 4, yes}}, nil},
		{"one of two", 2, false, true,
			[]seen{opened, {allow, "fay", 3, 4, half}, {allow, "fay", 5, 6, half}, {read, "", 7, 8, half}}, nil},
		{"a vote that nobody heard of", 1, false, true,
			[]seen{opened, {deny, "sam", 3, forever, reply{word: lost}}, {read, "", 50, 51, no}}, nil},
		{"and that came to nothing", 1, false, true,
			[]seen{opened, {deny, "sam", 3, forever, reply{word: lost}}, {allow, "fay", 50, 51, yes}}, nil},
		{"counted after its time", 1, false, false,
			[]seen{opened, {allow, "fay", 101, 102, yes}}, nil},
		{"counted across its end", 1, false, true,
			[]seen{opened, {allow, "fay", 99, 102, yes}}, nil},
		{"late too early", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 4, said(late, waits)}}, nil},
		{"late", 1, false, true,
			[]seen{opened, {allow, "fay", 99, 101, said(late, waits)}, {read, "", 102, 103, over}}, nil},
		{"expired too early", 1, false, false,
			[]seen{opened, {read, "", 3, 4, over}}, nil},
		{"cancelled", 1, false, true,
			[]seen{opened, {cancel, "", 3, 4, gone}, {allow, "fay", 5, 6, said(settled, gone)}}, nil},
		{"taken back, then used", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {void, "sam", 5, 6, back}, {ask, "a", 7, 8, used}}, nil},
		{"used, then taken back", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 5, 6, used}, {void, "sam", 7, 8, back}}, nil},
		{"taken back, and told", 1, false, true,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {void, "sam", 5, 6, back},
				{void, "fay", 7, 8, reply{word: noUse}}, {ask, "a", 7, 8, back}}, nil},
		{"not asked, yet counted", 1, false, false,
			[]seen{opened, {allow, "eve", 3, 4, rowOf(approved, "eve", "eve+")}}, nil},
		{"not asked", 1, false, true,
			[]seen{opened, {allow, "eve", 3, 4, reply{word: notYours}}}, nil},
		{"there before it was asked", 1, false, false,
			[]seen{{read, "", 0, 1, waits}, {ask, "a", 2, 3, waits}}, nil},
		{"cancelled by a stop", 1, false, true,
			[]seen{opened, {read, "", 7, 8, rowOf(cancelled, "kim", "")}}, []*episode{{5, 6, forever, forever}}},
		{"not cancelled by a stop", 1, false, false,
			[]seen{opened, {read, "", 7, 8, waits}}, []*episode{{5, 6, forever, forever}}},
		{"decided while all is stopped", 1, false, false,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 7, 8, used}}, []*episode{{5, 6, forever, forever}}},
		{"used after all goes on", 1, false, true,
			[]seen{opened, {allow, "fay", 3, 4, yes}, {ask, "a", 11, 12, used}}, []*episode{{5, 6, 9, 10}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := byHand(test.keyed, test.quorum, test.all, test.stops...).check()
			var found *violation
			if holds := err == nil; holds != test.holds || !holds && !errors.As(err, &found) {
				t.Errorf("holds: %t, %v", holds, err)
			}
			for _, ops := range byHand(test.keyed, test.quorum, test.all, test.stops...).partitions() {
				if holds := porcupine.CheckOperations(model(), bare(ops)); holds != test.holds {
					t.Errorf("without hints it holds: %t", holds)
				}
			}
		})
	}
}

// A violation is reported as text and as a picture.
func TestAViolationIsTold(t *testing.T) {
	_, err := byHand(false, 2, []seen{
		{ask, "call 1", 0, 2e6, rowOf(pending, "", "")},
		{allow, "fay", 50e6, forever, reply{word: lost}},
		{deny, "sam", 60e6, 61e6, reply{word: "what nobody says"}},
	}).check()
	if err == nil {
		t.Fatal("nothing was found")
	}
	text := err.Error()
	for _, part := range []string{
		"request r, asked without a key, 2 of [fay sam kim] have to allow it",
		"0.000ms –      2.000ms  client    0  call 1 asks → the row: pending",
		"…  client 1003  fay allows (tap fay's) → no reply", "sam denies (tap sam's) → what nobody says",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
	path := regexp.MustCompile(`as a picture: (\S+\.html)$`).FindStringSubmatch(text)
	if path == nil {
		t.Fatalf("there is no picture:\n%s", text)
	}
	defer os.Remove(path[1])
	page, err := os.ReadFile(path[1])
	if err != nil || !strings.Contains(string(page), "sam denies") {
		t.Errorf("the picture: %d bytes, %v", len(page), err)
	}
}
