package telegram

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// TestTheCardAndItsDocumentStayTheSame says that what a document is called, how long it is and its digest are the same
// on every card of a request, whatever its state.
func TestTheCardAndItsDocumentStayTheSame(t *testing.T) {
	p := prompt(t, permissions.KindTool, both(command("make"), details(strings.Repeat("row\n", 200)), twoOf("fay", "sam")))
	first := show(p, noon)
	_, note, found := strings.Cut(first.Text, "All of it ")
	note, _, _ = strings.Cut(note, "\n")
	if first.Document == nil || !found || !strings.Contains(note, first.Document.Name) {
		t.Fatalf("no document, or none that the card names:\n%s", first.Text)
	}
	later := after(t, p, permissions.Leave{At: noon}, vote("sam", "cli", permissions.Allow(permissions.Once), nil))
	settled := after(t, later, vote("fay", "cli", permissions.Deny, nil))
	for _, p := range []connectors.Prompt{later, settled} {
		if out := edit(p, noon.Add(10*time.Minute)); out.Document != nil || !strings.Contains(out.Text, note) {
			t.Errorf("the card does not say %q, or has a document:\n%s", note, out.Text)
		}
	}
}

// TestACardThatJustFitsStillDoesWhenItIsSettled says that no card names a file later that was not sent.
func TestACardThatJustFitsStillDoesWhenItIsSettled(t *testing.T) {
	whole := 0
	for n := 2900; n < 3600; n += 7 {
		p := prompt(t, permissions.KindTool, command(strings.Repeat("x", n)))
		settled := after(t, p, vote("fay", "telegram", permissions.Deny, func(v *permissions.Vote) {
			v.Comment = strings.Repeat("because ", 200)
		}))
		first, last := show(p, noon), edit(settled, noon)
		if named := strings.Contains(last.Text, "is in the file above"); named != (first.Document != nil) {
			t.Fatalf("with %d characters a file is named %v, and was sent %v", n, named, !named)
		}
		sound(t, last)
		if first.Document == nil {
			whole++
		}
	}
	if whole < 10 || whole > 90 {
		t.Errorf("%d of 100 cards fit whole", whole)
	}
}

// TestWhatTelegramRemovesFitsSpelledOut says that a card still fits that grows because much of it has to be escaped.
func TestWhatTelegramRemovesFitsSpelledOut(t *testing.T) {
	for _, n := range []int{10, 500, 1000, 3000} {
		out := show(prompt(t, permissions.KindTool, command(strings.Repeat("x\u0333\u030a", n))), noon)
		sound(t, out)
		if out.TooBig || !strings.Contains(out.Text, `x\u{333}\u{30A}x`) && !strings.Contains(out.Text, "is in the file above") {
			t.Errorf("of %d:\n%s", n, out.Text)
		}
	}
}

// TestWhateverIsAskedFits says that every card is one that Telegram takes and shows as it is, for any request.
func TestWhateverIsAskedFits(t *testing.T) {
	bits := rapid.SampledFrom([]string{
		"x", " ", "\n", "\n✅ Allowed once by fay", "\u202e", "\U000e0041", "漢", "😀", `"`, `\u{`, "⟨9", "‹secret",
		"│", "┃ ", "aа ", "e\u0301", "x\u030a", "x\u0333\u030a", "<pre>", "&lt;", "*", "──", "until ", strings.Repeat("word ", 50),
		strings.Repeat("y", 300),
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := func(label string, most int) string {
			unit := strings.Join(rapid.SliceOfN(bits, 1, 4).Draw(rt, label), "")
			n := rapid.SampledFrom([]int{0, 1, 5, 300, most}).Draw(rt, label+" length")
			s := []rune(strings.Repeat(unit, n/utf8.RuneCountInString(unit)+1))
			return string(s[:min(n, len(s))])
		}
		kind := rapid.SampledFrom([]permissions.Kind{
			permissions.KindPermission, permissions.KindTool, permissions.KindPause, permissions.KindClarification,
		}).Draw(rt, "kind")
		p := prompt(t, kind, func(r *permissions.Request) {
			r.Agent, r.Host, r.Cwd = text("agent", permissions.MaxName), text("host", permissions.MaxName), text("cwd", 4096)
			r.Reason, r.Message, r.Details = text("reason", 2000), text("message", 4000), text("details", 20_000)
			r.Claimed, r.HighRisk = rapid.Bool().Draw(rt, "claimed"), rapid.Bool().Draw(rt, "risk")
			r.Quorum, r.Asked = rapid.IntRange(1, 2).Draw(rt, "quorum"), []string{"fay", "sam"}
			switch kind {
			case permissions.KindTool:
				quoted, _ := json.Marshal(map[string]string{"command": text("command", 10_000)})
				r.Tool, r.Input, r.AffectedPath = text("tool", 200)+"t", quoted, text("path", 4096)
				if n := rapid.SampledFrom([]int{0, 0, 2, 50}).Draw(rt, "calls"); n > 0 {
					calls(n)(r)
					for i := range r.Calls {
						r.Calls[i].Input, r.Calls[i].Tool = quoted, text("tool", 60)+"t"
					}
				}
			case permissions.KindPause:
				r.Mode = rapid.SampledFrom([]permissions.Mode{permissions.ModeConfirm, permissions.ModeContinue}).Draw(rt, "mode")
			case permissions.KindClarification:
				r.Choices = nil
				for i := range rapid.IntRange(2, 20).Draw(rt, "choices") {
					r.Choices = append(r.Choices, fmt.Sprint(i)+text("choice", 198))
				}
			}
		})
		out := show(p, noon)
		sound(rt, out)
		if out.TooBig != strings.Contains(out.Text, "cannot be allowed here") {
			rt.Fatalf("too big %v:\n%s", out.TooBig, out.Text)
		}
		if !out.TooBig {
			pressable(rt, keysMore(p), false)
		}
		changed := edit(p, noon)
		if changed.Text != out.Text || changed.Document != nil {
			rt.Fatalf("edited it is\n%s\ninstead of\n%s", changed.Text, out.Text)
		}
		sound(rt, away(p, noon))
		body := bodyOf(out)
		for _, by := range p.Request.Asked {
			a := rapid.SampledFrom(p.Request.Options).Draw(rt, "answer").ID
			comment := func(v *permissions.Vote) { v.Comment = text("comment", 2000) }
			c, err := permissions.Step(p.Request, vote(by, "cli", a, comment))
			if err != nil {
				break
			}
			p.Request = c.After
			changed := edit(p, noon)
			sound(rt, changed)
			if p.Request.State == permissions.Pending && body != bodyOf(changed) || changed.TooBig != out.TooBig {
				rt.Fatalf("the card was\n%s\nand is\n%s", out.Text, changed.Text)
			}
		}
	})
}

// bodyOf is a pending message without the rows about its state, below the first one.
func bodyOf(out outgoing) string {
	title, rest, _ := strings.Cut(out.Text, "\n")
	for {
		row, more, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(row, "⏳") && !strings.HasSuffix(row, "once these are answered.") {
			return title + "\n" + rest
		}
		rest = more
	}
}

// tester is a test, or a check of rapid's.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sound checks what holds for every message: Telegram takes it, changes nothing of it, and no row of it is a forgery.
func sound(t tester, out outgoing) {
	t.Helper()
	units := utf16.Encode([]rune(out.Text))
	if len(units) == 0 || len(units) > 4096 || !utf8.ValidString(out.Text) || strings.Trim(out.Text, " \n") != out.Text {
		t.Fatalf("a text of %d units:\n%q", len(units), out.Text)
	}
	if strings.ContainsFunc(out.Text, vanishes) {
		t.Fatalf("Telegram would change this:\n%q", out.Text)
	}
	at := 0
	for _, e := range out.Entities {
		if e.Offset < at || e.Length <= 0 || e.Offset+e.Length > len(units) {
			t.Fatalf("entities %v of %d units", out.Entities, len(units))
		}
		at = e.Offset + e.Length
		for _, edge := range []int{e.Offset, at - 1} {
			if c := units[edge]; c == ' ' || c == '\n' {
				t.Fatalf("%v begins or ends in white space:\n%s", e, out.Text)
			}
		}
		if halved(units, e.Offset) || halved(units, at) {
			t.Fatalf("%v cuts a character:\n%s", e, out.Text)
		}
	}
	if bare := outside(out); strings.ContainsAny(bare, "漢😀│┃<*") || strings.Contains(strings.TrimPrefix(bare, "✅"), "✅") {
		t.Fatalf("an agent's words stand outside of quotes, blocks and codes in %q:\n%s", bare, out.Text)
	}
	if d := out.Document; d != nil && len(d.Body) > maxDocument {
		t.Fatalf("a document of %d bytes", len(d.Body))
	}
	pressable(t, out.Keyboard, out.TooBig)
}

// outside is the text outside of quotes, blocks and codes, where only our own words stand: however a phone wraps it, no row
// there is an agent's.
func outside(out outgoing) string {
	units, at := utf16.Encode([]rune(out.Text)), 0
	var ours []uint16
	for _, e := range out.Entities {
		ours = append(ours, units[at:e.Offset]...)
		if at = e.Offset + e.Length; e.Type == asBold {
			ours = append(ours, units[e.Offset:at]...)
		}
	}
	return string(utf16.Decode(append(ours, units[at:]...)))
}

// vanishes reports whether Telegram replaces or removes a character.
func vanishes(c rune) bool {
	return c < ' ' && c != '\n' || c >= '\u2028' && c <= '\u202e' || c == '\u030a' || c == '\u0333' || c == '\u033f'
}

func halved(units []uint16, at int) bool {
	return at > 0 && at < len(units) && utf16.IsSurrogate(rune(units[at])) && units[at] >= 0xdc00
}

// TestNoticesAndRepliesHaveAnAgentsWordsInCodesOnly says of reminders, lists, notices and replies what [sound] says of cards.
func TestNoticesAndRepliesHaveAnAgentsWordsInCodesOnly(t *testing.T) {
	theirs := rapid.StringOf(rapid.SampledFrom([]rune("漢😀│┃<* \n\t\u202e\"`ж.")))
	rapid.Check(t, func(rt *rapid.T) {
		text := func(label string) string { return "漢" + theirs.Draw(rt, label) }
		p := prompt(t, permissions.KindTool, command(text("command")))
		p.Code = "K7F3Q"
		p.Request.Agent, p.Request.Claimed = text("agent"), rapid.Bool().Draw(rt, "claimed")
		if rapid.Bool().Draw(rt, "a tool") {
			p.Request.Tool, p.Request.Input = text("tool"), json.RawMessage(`{}`)
		}
		ended := p.Request
		ended.State, ended.Answer, ended.DecidedBy, ended.Comment = permissions.Denied, permissions.Deny, "fay", text("comment")
		g := permissions.Grant{Caller: "token:" + text("caller"), Tool: p.Request.Tool, By: "fay", CreatedAt: noon}
		for _, n := range []connectors.Notice{
			{About: permissions.AboutWaiting, Waiting: []connectors.Prompt{p, p}}, {About: permissions.AboutEnded, Grant: g},
			{About: permissions.AboutWaiting, Waiting: []connectors.Prompt{p, p}, Group: "-100"},
			{About: permissions.AboutRevoked, Grant: g, Ran: []permissions.Request{p.Request}},
			{About: permissions.AboutUnknownSenders, UnknownSenders: permissions.UnknownSenders{List: []permissions.UnknownSender{
				{Via: "telegram", Account: "6666", Name: text("name"), At: noon},
			}}, Unpaired: map[string][]string{"telegram": {"sam", strings.Repeat("m", 64)}}},
			{About: permissions.AboutPairing, UnknownSenders: permissions.UnknownSenders{List: []permissions.UnknownSender{
				{Via: "telegram", Account: "6666", Name: text("name"), Proposed: permissions.ProposedPairing{Person: "sam", By: "fay"}},
			}}},
			{About: permissions.AboutText, By: "uid:1000", At: noon, CallerMessage: permissions.CallerMessage{
				Agent: text("teller"), Title: text("title"), Text: text("text"),
			}},
		} {
			n.To = p.To
			sound(rt, renderNotice(n, noon))
		}
		for _, words := range []string{
			"Granted:\n" + card.InForce(g, card.Options{Now: noon}), card.Name(p.Request.Agent) + " stops what it works on.",
			p.Code + " · " + card.Outcome(ended, card.Options{Now: noon}).Text,
		} {
			sound(rt, ourText(words, noKeys()))
		}
	})
}
