package terminal_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

// edit brings the copy of a request up to date after an event.
func (p *person) edit(t *testing.T, prompt *connectors.Prompt, e permissions.Transition) {
	t.Helper()
	c, err := permissions.Step(prompt.Request, e)
	if err != nil {
		t.Fatal(err)
	}
	prompt.Request = c.After
	if err := p.Edit(t.Context(), string(c.After.ID), *prompt); err != nil {
		t.Fatalf("Edit = %v", err)
	}
}

// answered hands in a person's answer that did not come through this terminal.
func answered(by string, a permissions.Answer, at time.Time) permissions.Cast {
	return permissions.Cast{Vote: permissions.Vote{By: by, Via: "telegram", Answer: a, At: at}}
}

func TestTwoPeople(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, func(r *permissions.Request) {
		r.Quorum, r.Asked = 2, []string{"fay", "sam", "kim"}
	})
	h := takes(r)
	p.runs(t, h)
	prompt := p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	next := ask(permissions.KindPause, nil)
	waiting := p.isAsked(t, *next, "NEXT2")
	p.edit(t, &prompt, answered("sam", permissions.Allow(permissions.Once), r.CreatedAt))
	p.screen.sees(t, "\n⏳ 1 of 2, allowed by sam\ny allow once")
	prompt.Request.Quorum = 3 // so that one more is needed after fay
	h.put(prompt.Request)
	p.edit(t, &prompt, permissions.Return{At: r.CreatedAt})
	p.types(t, "y\n")
	h.next(t)
	p.screen.sees(t, "⏳ 2 of 3, allowed by sam and you")
	p.screen.asked(t, "NEXT2") // fay has nothing left to say to the first
	prompt.Request = h.row(r.ID)
	p.edit(t, &prompt, answered("kim", permissions.Allow(permissions.Once), r.CreatedAt.Add(41*time.Second)))
	p.screen.sees(t, "K7F3Q  ✅ Allowed once by sam and you and kim · ")
	p.screen.asked(t, "NEXT2")
	p.edit(t, &waiting, permissions.Withdraw{By: "kim", Via: "cli", At: next.CreatedAt})
	p.screen.sees(t, "\n✖ Cancelled by kim")
}

func TestAnsweredThroughAnotherChannel(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, func(r *permissions.Request) {
		r.Quorum, r.Asked = 2, []string{"fay", "sam", "kim"}
	})
	next := ask(permissions.KindPause, nil)
	p.runs(t, takes(r, next))
	prompt := p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.isAsked(t, *next, "NEXT2")
	p.edit(t, &prompt, answered("fay", permissions.Allow(permissions.Once), r.CreatedAt))
	p.screen.sees(t, "⏳ 1 of 2, allowed by you")
	p.screen.asked(t, "NEXT2")
	dropped := permissions.Reroute{Asked: []string{"sam", "kim"}, At: r.CreatedAt} // fay's vote goes with her
	p.edit(t, &prompt, dropped)
	p.edit(t, &prompt, permissions.Reroute{Asked: []string{"sam", "fay"}, At: r.CreatedAt})
	p.types(t, "\n")
	p.screen.asked(t, "K7F3Q") // and is asked again
}

func TestNobodyWaits(t *testing.T) {
	p := atPipe(t, nil)
	first, second := ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil)
	h := takes(first, second)
	p.runs(t, h)
	a := p.isAsked(t, *first, "FRST2")
	p.screen.asked(t, "FRST2")
	p.edit(t, &a, permissions.Leave{At: first.CreatedAt})
	p.screen.sees(t, "nobody is waiting for it just now")
	p.screen.asked(t, "FRST2") // nothing else is asked
	p.edit(t, &a, permissions.Return{At: first.CreatedAt})
	b := p.isAsked(t, *second, "SCND2")
	p.edit(t, &a, permissions.Leave{At: first.CreatedAt})
	p.screen.asked(t, "SCND2") // requests with a waiting caller go first
	p.edit(t, &b, permissions.Expire{At: second.Deadline})
	p.screen.sees(t, "⌛ Expired: nobody answered within 1 h")
	p.screen.asked(t, "FRST2")
	if !strings.Contains(p.screen.String(), "Nobody waits") {
		t.Error("the second card does not say that nobody waits")
	}
}

func TestTheOutcomeOfAnAnswer(t *testing.T) {
	p := atPipe(t, nil)
	used, lost := ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil)
	h := takes(used, lost)
	p.runs(t, h)
	a := p.isAsked(t, *used, "USED2")
	p.screen.asked(t, "USED2")
	p.types(t, "y\n")
	h.next(t)
	b := p.isAsked(t, *lost, "LST22")
	p.screen.asked(t, "LST22")
	p.types(t, "y\n")
	h.next(t)
	at := used.CreatedAt
	a.Request, b.Request = h.row(used.ID), h.row(lost.ID)
	p.edit(t, &a, permissions.Use{At: at})
	p.edit(t, &b, permissions.Lapse{At: at})
	p.screen.sees(t, "LST22  ✅ You allowed this once · "+h.row(lost.ID).DecidedAt.In(time.Local).Format("15:04")+" · was not collected")
	if n := strings.Count(p.screen.String(), "✅"); n != 3 {
		t.Errorf("%d settled lines; want one for each, and one more for what was not collected:\n%s", n, p.screen)
	}
	p.edit(t, &a, permissions.Collect{At: at}) // the end of it was told: nothing more is said
	old := ask(permissions.KindPermission, nil)
	old.State, old.Scope, old.DecidedAt = permissions.Approved, permissions.Once, at
	old.DecidedBy, old.DecidedVia = "sam", "cli"
	gone := connectors.Prompt{Request: *old, Code: "GNE22", To: fay}
	if err := p.Edit(t.Context(), "of an earlier process", gone); err != nil {
		t.Fatal(err)
	}
	gone.Request.VoidAt = at
	if err := p.Edit(t.Context(), "of an earlier process", gone); err != nil {
		t.Fatal(err)
	}
	p.screen.sees(t, "GNE22  ✅ Allowed once by sam · ")
	if n := strings.Count(p.screen.String(), "GNE22"); n != 1 {
		t.Errorf("GNE22 is mentioned %d times; want once, when it was taken back", n)
	}
}

func TestSentTwiceIsAskedOnce(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	p.isAsked(t, *r, "K7F3Q") // before it runs
	p.isAsked(t, *r, "K7F3Q")
	p.runs(t, h)
	p.screen.asked(t, "K7F3Q")
	prompt := p.isAsked(t, *r, "K7F3Q")
	stale := prompt
	p.types(t, "n\n")
	h.next(t)
	p.screen.sees(t, "⛔ You denied this")
	if err := p.Edit(t.Context(), string(r.ID), stale); err != nil { // crossed the answer on its way
		t.Fatal(err)
	}
	prompt.Request = h.row(r.ID)
	if err := p.Edit(t.Context(), string(r.ID), prompt); err != nil {
		t.Fatal(err)
	}
	next := ask(permissions.KindPause, nil)
	p.isAsked(t, *next, "NEXT2")
	p.screen.asked(t, "NEXT2")
	if n := strings.Count(p.screen.String(), "K7F3Q · until "); n != 1 {
		t.Errorf("the card is shown %d times; want once", n)
	}
	if n := strings.Count(p.screen.String(), "⛔"); n != 1 {
		t.Errorf("the end is told %d times; want once", n)
	}
}

func TestSettledBeforeItsTurn(t *testing.T) {
	p := atPipe(t, nil)
	first, second := ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil)
	h := takes(first)
	p.runs(t, h)
	p.isAsked(t, *first, "FRST2")
	b := p.isAsked(t, *second, "SCND2")
	p.screen.asked(t, "FRST2")
	p.edit(t, &b, permissions.Withdraw{By: second.Caller.Name, At: second.CreatedAt})
	late := ask(permissions.KindPermission, nil)
	late.State, late.DecidedBy = permissions.Cancelled, "kim"
	p.isAsked(t, *late, "LATE2") // a copy that is sent after the end
	p.screen.sees(t, "LATE2  ✖ Cancelled by kim")
	p.types(t, "n\n")
	h.next(t)
	if strings.Contains(p.screen.String(), "SCND2") {
		t.Errorf("what was never shown is mentioned:\n%s", p.screen)
	}
}

// A card that took the place of one that went away by itself is answered a second later at the earliest: what was typed before may be
// for the other. That is so of a card that comes later, too, and not of one that follows an answer.
func TestAnAnswerIsNotForTheCardThatTookAnothersPlace(t *testing.T) {
	const early = "Nothing was decided: the card before this one went away just now."
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) {
			var passed atomic.Int64
			begun := time.Now()
			p := sit(t, func(o *terminal.Options) { o.Now = func() time.Time { return begun.Add(time.Duration(passed.Load())) } })
			first, second, third := ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil)
			h := takes(first, second, third)
			p.runs(t, h)
			a := p.isAsked(t, *first, "FRST2")
			p.screen.asked(t, "FRST2")
			b := p.isAsked(t, *second, "SCND2")
			p.edit(t, &a, permissions.Withdraw{By: first.Caller.Name, At: first.CreatedAt})
			p.screen.asked(t, "SCND2")
			p.types(t, "y\n")
			p.screen.sees(t, early)
			h.none(t)
			p.edit(t, &b, permissions.Withdraw{By: second.Caller.Name, At: second.CreatedAt})
			p.screen.until(t, "it is gone", func(all string) bool { return strings.Count(all, "✖ Cancelled") == 2 })
			passed.Add(int64(time.Hour))
			p.isAsked(t, *third, "THRD2")
			p.screen.asked(t, "THRD2")
			p.types(t, "y\n")
			p.screen.until(t, "it is refused again", func(all string) bool { return strings.Count(all, early) == 2 && awaits(all) })
			h.none(t)
			passed.Add(int64(time.Second))
			p.types(t, "y\n")
			if d := h.next(t); d.Request != third.ID {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

// What is said while a line is being typed goes above it, and the line is still there.
func TestALineBegunIsKept(t *testing.T) {
	p := atTerminal(t, nil)
	r := ask(permissions.KindPermission, func(r *permissions.Request) { r.Quorum, r.Asked = 2, []string{"fay", "sam"} })
	h := takes(r)
	p.runs(t, h)
	prompt := p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, "r kéep o")
	p.screen.sees(t, "r kéep o")
	p.edit(t, &prompt, answered("sam", permissions.Allow(permissions.Once), r.CreatedAt))
	p.screen.sees(t, "⏳ 1 of 2, allowed by sam\ny allow once · a this session · n deny · r deny with a reason > r kéep o")
	h.put(prompt.Request)
	p.types(t, "ld/\n")
	if d := h.next(t); d.Comment != "kéep old/" {
		t.Errorf("the reason is %q; want what was typed", d.Comment)
	}
}
