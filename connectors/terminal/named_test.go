package terminal_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// What the card on the screen asks can be answered as in a chat.
func TestAnswersByCode(t *testing.T) {
	for _, c := range []struct {
		line   string
		kind   permissions.Kind
		change func(*permissions.Request)
		want   connectors.Decision
	}{
		{"K7F3Q yes", permissions.KindPermission, nil, connectors.Decision{Answer: permissions.Allow(permissions.Once)}},
		{"allow k7f3q session", permissions.KindPermission, nil,
			connectors.Decision{Answer: permissions.Allow(permissions.Session)}},
		{"K7F3Q no because not now", permissions.KindTool, nil,
			connectors.Decision{Answer: permissions.Deny, Comment: "not now"}},
		{"K7F3Q yes", permissions.KindTool, func(r *permissions.Request) { r.HighRisk = true },
			connectors.Decision{Answer: permissions.Allow(permissions.Once), Really: true}},
		{"YES K7F3Q RUN", permissions.KindTool, func(r *permissions.Request) { r.HighRisk = true },
			connectors.Decision{Answer: permissions.Allow(permissions.Once), Really: true}},
		{"yes K7F3Q run", permissions.KindTool, func(r *permissions.Request) { r.HighRisk = true },
			connectors.Decision{Answer: permissions.Allow(permissions.Once), Really: true}},
		{"continue K7F3Q", permissions.KindPause, nil, connectors.Decision{Answer: permissions.Continue}},
		{"K7F3Q interrupt", permissions.KindPause, nil, connectors.Decision{Answer: permissions.Interrupt}},
		{"K7F3Q MAIL", permissions.KindClarification, nil, connectors.Decision{Answer: permissions.Choose(2)}},
		{"K7F3Q other: neither", permissions.KindClarification, nil,
			connectors.Decision{Answer: permissions.Other, Comment: "neither"}},
		{"other k7f3q 2", permissions.KindClarification, nil,
			connectors.Decision{Answer: permissions.Other, Comment: "2"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			p := atPipe(t, nil)
			r := ask(c.kind, c.change)
			h := takes(r)
			p.runs(t, h)
			p.isAsked(t, *r, "K7F3Q")
			p.screen.asked(t, "K7F3Q")
			p.types(t, c.line+"\n")
			d := h.next(t)
			if d.Request != r.ID || d.Shown != r.Digest || d.Answer != c.want.Answer || d.Comment != c.want.Comment ||
				d.Really != c.want.Really || !d.From.Console {
				t.Errorf("decided %+v; want %+v", d, c.want)
			}
		})
	}
}

// A card that was not on the screen is shown before it is decided about, and what was there comes back.
func TestWhatWasNotShownIsShownFirst(t *testing.T) {
	p := atPipe(t, nil)
	first, second := ask(permissions.KindPermission, nil), ask(permissions.KindTool, nil)
	h := takes(first, second)
	p.runs(t, h)
	p.isAsked(t, *first, "FRST2")
	p.isAsked(t, *second, "SCND2")
	p.known(t)
	p.screen.asked(t, "FRST2")
	p.types(t, "yes SCND2\n")
	p.screen.sees(t, "SCND2 has not been shown to you yet; look at it first.")
	p.screen.asked(t, "SCND2")
	h.none(t)
	p.types(t, "no FRST2 because of it\n") // shown before, and not on the screen now
	if d := h.next(t); d.Request != first.ID || d.Answer != permissions.Deny || d.Comment != "of it" {
		t.Errorf("decided %+v; want the first denied", d)
	}
	p.screen.sees(t, "FRST2  ⛔ You denied this")
	p.screen.asked(t, "SCND2")
	p.types(t, "yes SCND2\n")
	if d := h.next(t); d.Request != second.ID || d.Answer != permissions.Allow(permissions.Once) {
		t.Errorf("decided %+v; want the second allowed", d)
	}
	third := ask(permissions.KindPause, nil)
	p.isAsked(t, *third, "THRD2")
	p.screen.asked(t, "THRD2")
	if n := strings.Count(p.screen.String(), "FRST2 · until "); n != 1 {
		t.Errorf("the first card is shown %d times; want once", n)
	}
}

func TestSeveralAtOnce(t *testing.T) {
	p := atPipe(t, nil)
	first, second, risky := ask(permissions.KindPermission, nil), ask(permissions.KindTool, nil), ask(permissions.KindTool,
		func(r *permissions.Request) { r.HighRisk = true })
	h := takes(first, second, risky)
	p.runs(t, h)
	p.isAsked(t, *first, "FRST2")
	p.isAsked(t, *second, "SCND2")
	p.isAsked(t, *risky, "R5SKY")
	p.known(t)
	p.screen.asked(t, "FRST2")
	for _, code := range []string{"SCND2", "R5SKY"} {
		p.types(t, "yes "+code+"\n")
		p.screen.asked(t, code)
	}
	p.types(t, "yes FRST2 R5SKY\n")
	p.screen.sees(t, "R5SKY is high risk and takes a message of its own: yes R5SKY or no R5SKY.")
	h.none(t)
	p.screen.asked(t, "R5SKY")
	p.types(t, "yes FRST2 SCND2\n")
	for _, r := range []*permissions.Request{first, second} {
		if d := h.next(t); d.Request != r.ID || d.Answer != permissions.Allow(permissions.Once) {
			t.Errorf("decided %+v; want %s allowed", d, r.ID)
		}
	}
	p.screen.sees(t, "SCND2  ✅ You allowed this once")
	p.screen.until(t, "the hint again", awaits)
	p.types(t, "yes r5sky\n")
	if d := h.next(t); d.Request != risky.ID || !d.Really {
		t.Errorf("decided %+v; want the high risk allowed", d)
	}
}

// An allowance that is not enough yet can become a denial, when its card has left the screen.
func TestAnAllowanceBecomesADenial(t *testing.T) {
	p := atPipe(t, nil)
	first := ask(permissions.KindPermission, func(r *permissions.Request) { r.Quorum, r.Asked = 2, []string{"fay", "sam"} })
	second := ask(permissions.KindPermission, nil)
	h := takes(first, second)
	p.runs(t, h)
	p.isAsked(t, *first, "FRST2")
	p.screen.asked(t, "FRST2")
	p.types(t, "y\n")
	h.next(t)
	p.screen.sees(t, "1 of 2, allowed by you")
	p.isAsked(t, *second, "SCND2")
	p.screen.asked(t, "SCND2")
	p.types(t, "no FRST2\n")
	if d := h.next(t); d.Request != first.ID || d.Answer != permissions.Deny {
		t.Errorf("decided %+v; want the first denied", d)
	}
	p.screen.sees(t, "FRST2  ⛔ You denied this")
	p.screen.until(t, "the hint again", awaits)
}

func TestLinesThatOnlyNameACode(t *testing.T) {
	p := atPipe(t, nil)
	r, gone := ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil)
	gone.State, gone.DecidedBy = permissions.Cancelled, "kim"
	h := takes(r, gone)
	settle := h.answer
	h.answer = func(d connectors.Decision) (permissions.Request, error) {
		if d.Code == "GNE22" && d.Request == "" {
			d.Request = gone.ID
		}
		return settle(d)
	}
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	for i, c := range []struct{ line, says string }{
		{"don't allow K7F3Q", "Nothing was decided: an answer is a whole message and nothing else."},
		{"yes K7F3Q but change the date", "Nothing was decided: an answer is a whole message and nothing else."},
		{"yes K7F3Q session_tool", "Nothing was decided"},
		{"yes ZZZZ9", "Nothing was decided: nothing that waits for you has the code ZZZZ9."},
		{"yes GNE22", "GNE22  Too late: cancelled at "},
		{"maybe", "Nothing was decided. Type yes"},
	} {
		p.screen.until(t, "the hint again", func(all string) bool { return strings.Count(all, " > ") == i+1 })
		p.types(t, c.line+"\n")
		p.screen.sees(t, c.says)
	}
	p.screen.until(t, "the hint again", awaits)
	if got := h.row(r.ID); got.State != permissions.Pending {
		t.Errorf("the request is %s; want pending", got.State)
	}
}

// A line about another card is no try at a clarification; one about the clarification itself is.
func TestTriesByCode(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindClarification, nil)
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	for i, line := range []string{"yes ZZZZ9", "yes ZZZZ9", "yes ZZZZ9", "K7F3Q 9", "K7F3Q none", "K7F3Q 0"} {
		p.screen.until(t, "the hint again", func(all string) bool { return strings.Count(all, "1 to 3 · o in your own words > ") == i+1 })
		p.types(t, line+"\n")
	}
	for {
		if d := h.next(t); d.Code == "" { // the others only look up a code
			if !d.Default {
				t.Errorf("decided %+v; want the default after three tries", d)
			}
			return
		}
	}
}

// A card masks secrets; s shows it again with them.
func TestShowsTheCardAgain(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	p := atPipe(t, nil)
	r := ask(permissions.KindTool, func(r *permissions.Request) {
		r.Input = []byte(`{"command":"curl -H 'PRIVATE-TOKEN: ` + secret + `' https://example.org"}`)
	})
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	if strings.Contains(p.screen.String(), secret) {
		t.Error("the card shows the secret")
	}
	p.types(t, "s\n")
	p.screen.until(t, "the card again", func(all string) bool { return strings.Count(all, "K7F3Q · until ") == 2 && awaits(all) })
	if shown := strings.NewReplacer("\n", "", "┊", "", " ", "").Replace(p.screen.String()); !strings.Contains(shown, secret) {
		t.Errorf("the secret is not shown:\n%s", p.screen)
	}
	h.none(t)
}

func TestTellsANotice(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, nil)
	stop := p.runs(t, takes(r))
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	n := connectors.Notice{To: fay, About: permissions.AboutStopped, By: "sam"}
	if err := p.Notify(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	p.screen.sees(t, " > \n⛔ Everything was stopped by sam; nothing is asked until resume.\ny allow once")
	stop()
	if err := p.Notify(t.Context(), n); err == nil || errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Tell = %v after the end of Run; want an error for now", err)
	}
	closed := atPipe(t, nil)
	_ = closed.hand.Close()
	if err := closed.Notify(context.Background(), n); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Tell = %v at a closed console; want that it is gone", err)
	}
}

// What is said in several lines stays together: the hint is written once more, below all of them.
func TestSeveralLinesAreSaidAsOne(t *testing.T) {
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) {
			p := sit(t, nil)
			r := ask(permissions.KindPermission, nil)
			p.runs(t, takes(r))
			p.isAsked(t, *r, "K7F3Q")
			p.screen.asked(t, "K7F3Q")
			if err := p.Say("one\ntwo\nthree"); err != nil {
				t.Fatal(err)
			}
			p.screen.sees(t, " > \none\ntwo\nthree\ny allow once")
		})
	}
}

// Answers that are none are counted aloud: how many are left, and what comes then.
func TestWrongTriesAreCountedAloud(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindClarification, nil)
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	for i, c := range [][2]string{
		{"?", "Answers that are none count: 3 tries, then 1 \"blog\" is taken."},
		{"hm", "\nNo option (2 tries left, then 1 \"blog\" is taken). Type a number from 1 to 3"},
		{"K7F3Q 9", "\nNo option (1 try left, then 1 \"blog\" is taken). "},
		{"well", "No valid answer in three tries; first option taken"},
	} {
		p.screen.until(t, "the hint", func(all string) bool { return strings.Count(all, "own words > ") == i+1 })
		p.types(t, c[0]+"\n")
		p.screen.sees(t, c[1])
	}
}

// Of several people who are asked, one person's wrong tries end the question for nobody else: their own prompt closes.
func TestThreeTriesOfOneOfSeveralCloseOnlyThatPrompt(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindClarification, func(r *permissions.Request) { r.Asked = []string{"fay", "sam"} })
	h := takes(r)
	p.runs(t, h)
	prompt := p.isAsked(t, *r, "K7F3Q")
	for i, c := range [][2]string{
		{"mail?", "\nNo option (2 tries left, then it is left to sam; if nobody answers in time, 1 \"blog\" is taken). "},
		{"hm", "\nNo option (1 try left, then it is left to sam; if nobody answers in time, 1 \"blog\" is taken). "},
		{"well", "\nNo option in three tries: it is now left to sam; if nobody answers in time, 1 \"blog\" is taken."},
	} {
		p.screen.until(t, "the hint", func(all string) bool { return strings.Count(all, "own words > ") == i+1 })
		p.types(t, c[0]+"\n")
		p.screen.sees(t, c[1])
	}
	h.none(t)
	p.edit(t, &prompt, permissions.Leave{At: r.CreatedAt}) // news of it does not bring it back
	next := ask(permissions.KindPause, nil)
	p.isAsked(t, *next, "NEXT2")
	p.screen.asked(t, "NEXT2")
	p.types(t, "K7F3Q 2\n")
	if d := h.next(t); d.Request != r.ID || d.Answer != permissions.Choose(2) {
		t.Errorf("decided %+v", d)
	}
	if n := strings.Count(p.screen.String(), "own words > "); n != 3 {
		t.Errorf("it was asked %d times", n)
	}
}
