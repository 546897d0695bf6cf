package terminal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

func TestTheWholeScreen(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	p := atPipe(t, func(o *terminal.Options) {
		o.Now = func() time.Time { return at }
		o.Heading = func(permissions.Request) string { return "1/5" }
	})
	r := ask(permissions.KindTool, func(r *permissions.Request) {
		r.Agent, r.Claimed = "scribe", false
		r.Reason, r.CreatedAt, r.Deadline = "I need to publish.", at, at.Add(15*time.Minute)
	})
	r.Digest = permissions.Digest{0x4f, 0x3a, 31: 0x91}
	p.runs(t, takes(r))
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, "maybe\n")
	p.screen.until(t, "the hint again", func(all string) bool { return strings.Count(all, " > ") == 2 })
	p.types(t, "r\n")
	p.screen.askedWhy(t)
	p.types(t, "keep old/\n")
	p.screen.sees(t, "You denied this · 14:00 · \"keep old/\"\n")
	want := `1/5 · scribe wants to run a command
  ./publish.sh
│ I need to publish.
proven name
K7F3Q · until 14:15
y allow once · t this exact call, this session · n deny · r deny with a reason > 
Nothing was decided. Type yes (allow once), t or yes session_tool (this exact call, this session), ` +
		`yes 15m (this exact call, for 15 minutes), n (deny), r and a reason (deny and say why).
y allow once · t this exact call, this session · n deny · r deny with a reason > 
reason > 
⛔ You denied this · 14:00 · "keep old/"
`
	if diff := cmp.Diff(want, p.screen.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatADecisionHolds(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindTool, func(r *permissions.Request) { r.HighRisk = true })
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, "y\n")
	p.screen.sees(t, "this is high risk. Type  yes K7F3Q  to allow it.")
	h.none(t)
	p.screen.asked(t, "K7F3Q")
	p.types(t, "yes k7f3q\n")
	want := connectors.Decision{
		Request: r.ID, Answer: permissions.Allow(permissions.Once), Really: true, Shown: r.Digest,
		From: connectors.Identity{Via: terminal.Name, Console: true, UID: permissions.NoUID},
	}
	if diff := cmp.Diff(want, h.next(t)); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsNewerThanItsPrompt(t *testing.T) {
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) {
			p := sit(t, nil)
			first, second := ask(permissions.KindPermission, nil), ask(permissions.KindPause, nil)
			h := takes(first, second)
			p.types(t, "y\ny\n\n") // before anything is asked
			p.runs(t, h)
			p.isAsked(t, *first, "FRST2")
			p.screen.asked(t, "FRST2")
			h.none(t)
			p.isAsked(t, *second, "SCND2")
			p.types(t, "n\n\n\n\n") // the empty lines would continue
			if d := h.next(t); d.Request != first.ID || d.Answer != permissions.Deny {
				t.Fatalf("decided %s of %s; want deny of the first", d.Answer, d.Request)
			}
			p.screen.asked(t, "SCND2")
			h.none(t)
			p.types(t, "\n")
			if d := h.next(t); d.Request != second.ID || d.Answer != permissions.Continue {
				t.Fatalf("decided %s of %s; want continue of the second", d.Answer, d.Request)
			}
		})
	}
}

func TestThreeTries(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindClarification, nil)
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	hints := 0
	for _, line := range []string{"9\n", "\n", "?\n", "what\n", "\x1b\n", strings.Repeat("1", 5000) + "\n"} {
		hints++
		p.screen.until(t, "hint", func(all string) bool { return strings.Count(all, "1 to 3 · o in your own words > ") == hints })
		h.none(t)
		p.types(t, line)
	}
	if d := h.next(t); !d.Default || d.Answer != "" || d.Shown != r.Digest {
		t.Errorf("decided %+v; want the default", d)
	}
	p.screen.sees(t, `⚠ No valid answer in three tries; first option taken · 1 "blog"`)
	if !strings.Contains(p.screen.String(), " asks\n") {
		t.Error("the heading of clarifications is missing")
	}
}

// Words of one's own take a word that says so, on one line or on two; what is none of that is a try as before.
func TestWordsOfOnesOwn(t *testing.T) {
	for _, words := range []string{"o look at staging first", "other: look at staging first", "o", "other:"} {
		t.Run(words, func(t *testing.T) {
			p := atTerminal(t, nil)
			r := ask(permissions.KindClarification, nil)
			h := takes(r)
			p.runs(t, h)
			p.isAsked(t, *r, "K7F3Q")
			p.screen.asked(t, "K7F3Q")
			for i, try := range []string{"look at staging first\n", "other look at staging\n"} {
				p.types(t, try)
				p.screen.until(t, "the hint again", func(all string) bool { return strings.Count(all, "own words > ") == i+2 })
			}
			if !strings.Contains(words, " ") {
				p.types(t, words+"\n")
				p.screen.until(t, "the question for words", func(all string) bool { return strings.HasSuffix(all, "answer > ") })
				p.types(t, "\n")
				p.screen.until(t, "the question again", func(all string) bool {
					return strings.Contains(all, "an answer is one line of text") && strings.HasSuffix(all, "own words > ")
				})
				p.types(t, words+"\n")
				p.screen.until(t, "the question for words", func(all string) bool { return strings.HasSuffix(all, "answer > ") })
				h.none(t)
				words = "look at staging first"
			}
			p.types(t, words+"\n")
			d := h.next(t)
			if d.Answer != permissions.Other || d.Comment != "look at staging first" || d.Default || d.Shown != r.Digest {
				t.Errorf("decided %+v; want the words", d)
			}
			p.screen.sees(t, `✅ You answered · `)
			p.screen.sees(t, ` · "look at staging first"`)
		})
	}
}

func TestAReasonCanBeTakenBack(t *testing.T) {
	p := atTerminal(t, nil)
	r := ask(permissions.KindTool, func(r *permissions.Request) {
		r.Calls, r.Tool, r.Input = []permissions.Call{{N: 1, Tool: "a"}, {N: 2, Tool: "b"}}, "", nil
	})
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	for i, back := range []string{"\n", "\x1b", strings.Repeat("x", 5000) + "\n"} {
		p.types(t, "r #2\n")
		p.screen.askedWhy(t)
		p.types(t, back)
		p.screen.until(t, "the question again", func(all string) bool {
			return strings.Count(all, "a reason is one line of text") == i+1 && strings.HasSuffix(all, "one call > ")
		})
	}
	h.none(t)
	p.types(t, "n #2 because\n")
	p.screen.askedWhy(t)
	p.types(t, "why #2?\n")
	if d := h.next(t); d.Answer != permissions.Deny || d.Call != 2 || d.Comment != "why #2?" {
		t.Errorf("decided %+v; want call 2 denied with the reason", d)
	}
	p.screen.sees(t, "#1 open · #2 denied")
	p.screen.asked(t, "K7F3Q") // there is a call left
}

func TestQuit(t *testing.T) {
	quit := make(chan struct{}, 1)
	p := atPipe(t, func(o *terminal.Options) { o.Quit = func() { quit <- struct{}{} } })
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, " Q \n")
	select {
	case <-quit:
	case <-time.After(patience):
		t.Fatal("q does not quit")
	}
	h.none(t)
}

func TestWhatCannotBeStoredIsSaid(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	h.answer = func(connectors.Decision) (permissions.Request, error) {
		return permissions.Request{}, errors.New("disk \x1b[2J full")
	}
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, "y\n")
	p.screen.sees(t, `Nothing was stored: disk \u{1B}[2J full. Answer again.`)
	p.screen.asked(t, "K7F3Q")
}

func TestAHandlerThatIsCutOff(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	begun, release := make(chan struct{}), make(chan struct{})
	h.answer = func(connectors.Decision) (permissions.Request, error) {
		close(begun)
		<-release
		return permissions.Request{}, errors.New("the end")
	}
	stop := p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, "y\n")
	<-begun
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	<-p.ending
	close(release)
	<-stopped
	if strings.Contains(p.screen.String(), "Answer again") {
		t.Error("asked to answer again at the end")
	}
}

// What the process itself has to say goes among the cards, and what it wants to know it is told.
func TestTheProcessPrintsAmongTheCards(t *testing.T) {
	asking, told, closed := make(chan string, 1), make(chan permissions.State, 1), make(chan struct{})
	p := atPipe(t, func(o *terminal.Options) {
		o.Asking = func(p connectors.Prompt) { asking <- p.Code }
		o.Told = func(r permissions.Request) { told <- r.State }
		o.Closed = func() { close(closed) }
	})
	if !terminal.IsConsole(p.in) || terminal.IsTerminal(p.in) {
		t.Error("a pipe is a console and no terminal")
	}
	if err := p.Say("before it runs"); err != nil {
		t.Fatal(err)
	}
	r, other := ask(permissions.KindPermission, nil), ask(permissions.KindPermission, nil)
	p.runs(t, takes(r))
	p.isAsked(t, *r, "K7F3Q")
	if got := within(t, asking); got != "K7F3Q" {
		t.Errorf("asking about %s; want K7F3Q", got)
	}
	p.screen.sees(t, "before it runs\n")
	if err := p.Say("while it asks"); err != nil {
		t.Fatal(err)
	}
	p.screen.sees(t, " > \nwhile it asks\ny allow once")
	p.types(t, "y\n")
	if got := within(t, told); got != permissions.Approved {
		t.Errorf("told of %s; want approved", got)
	}
	elsewhere := p.isAsked(t, *other, "THR22")
	within(t, asking)
	p.edit(t, &elsewhere, permissions.Expire{At: other.Deadline})
	if got := within(t, told); got != permissions.Expired {
		t.Errorf("told of %s; want expired", got)
	}
	_ = p.hand.Close()
	within(t, closed)
	if terminal.IsConsole(p.in) {
		t.Error("a closed pipe is a console")
	}
}

// within is what comes through a channel in time.
func within[T any](t testing.TB, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return got
}

// On a terminal the title is in bold, however it is wrapped.
func TestTheTitleIsBoldOnATerminal(t *testing.T) {
	p := atTerminal(t, nil)
	r := ask(permissions.KindTool, func(r *permissions.Request) { r.Agent = strings.Repeat("long-name-", 12) })
	p.runs(t, takes(r))
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	title, _, found := strings.Cut(p.screen.String(), "\x1b[0m\n")
	if rows := strings.Split(title, "\n┊ "); !found || len(rows) < 2 || strings.Contains(strings.Join(rows, ""), "\n") ||
		!strings.HasPrefix(title, "\x1b[1m") || !strings.HasSuffix(title, "command") {
		t.Errorf("the screen is %q", p.screen.String())
	}
}
