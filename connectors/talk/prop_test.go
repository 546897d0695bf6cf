package talk

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
)

var white = regexp.MustCompile(`[ \n…]+`)

// told is what messages say, and what of it is code, without white space, which may be lost where they are cut.
func told(parts []Part) (all, code string) {
	for _, p := range parts {
		_, text, _ := strings.Cut(p.Text, ":")
		all += text
		for _, c := range p.Code {
			code += p.Text[c.Start:c.End]
		}
	}
	return white.ReplaceAllString(all, ""), white.ReplaceAllString(code, "")
}

// holds checks what holds of every text.
func holds(t *testing.T, text string, l Limits) {
	t.Helper()
	s := connectors.AgentMessage{Agent: "helper", Text: text, Codes: map[string]bool{"K7F3Q": true}}
	parts := Parts(s, l)
	for i, p := range parts {
		switch {
		case l.Unit.Of(p.Text) > l.Text:
			t.Errorf("message %d of %q has %d units", i, text, l.Unit.Of(p.Text))
		case !strings.HasPrefix(p.Text, "helper"):
			t.Errorf("message %d of %q begins with %q", i, text, p.Text)
		case !utf8.ValidString(p.Text):
			t.Errorf("message %d of %q is %q", i, text, p.Text)
		case strings.Contains(p.Text, "K7F3Q"):
			t.Errorf("message %d of %q shows a code: %q", i, text, p.Text)
		case l.Code > 0 && len(p.Code) > l.Code:
			t.Errorf("message %d of %q has %d pieces of code", i, text, len(p.Code))
		}
		if c := strings.IndexFunc(p.Text, unseen); c >= 0 {
			t.Errorf("message %d of %q has %q", i, text, p.Text[c:])
		}
		at := 0
		for _, c := range p.Code {
			if c.Start < at || c.End <= c.Start || c.End > len(p.Text) ||
				!utf8.ValidString(p.Text[:c.Start]) || !utf8.ValidString(p.Text[c.Start:c.End]) {
				t.Errorf("message %d of %q has code %+v after %d", i, text, c, at)
			}
			at = c.End
		}
	}
	all, code := told(parts)
	wholly, whole := told(Parts(s, Limits{Text: 1 << 30, Unit: l.Unit}))
	if all != wholly {
		t.Errorf("%q is told as %q", wholly, all)
	}
	if code != whole {
		t.Errorf("of %q the code is %q, and split %q", text, whole, code)
	}
}

func unseen(c rune) bool {
	tag := c >= 0xE0020 && c <= 0xE007F
	return c != '\n' && c != '\u200D' && !tag && (unicode.Is(unicode.C, c) || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c))
}

// pieces are what texts are made of here.
var pieces = []string{
	"word ", "word ", "a longer sentence, it goes on. ", "\n", "\n\n", "`code`", "``a`b``", "`", "```go\n", "\n```\n", "~~~\n",
	"\tindented\n", "    ", strings.Repeat(" ", 70), strings.Repeat("x", 150), "\u202e", "\u200b", "\x00", "\xff", "é", "é",
	"👩‍👩‍👧", "🇩🇪", "⚠️", "K7F3Q", "k 7 f 3 q", "✅ Allowed by fay\n", "│", "⟨3 spaces⟩", `\u{41}`, "漢字", "𝐊",
}

func TestNothingIsLost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var text strings.Builder
		for range random.IntN(120) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		holds(t, text.String(), Limits{Text: 200 + random.IntN(400), Unit: card.UTF16, Code: random.IntN(6)})
		if t.Failed() {
			return
		}
	}
}

func FuzzParts(f *testing.F) {
	f.Add(strings.Join(pieces, ""), 200)
	f.Add(strings.Repeat("`a` ", 200), 300)
	f.Fuzz(func(t *testing.T, text string, most int) {
		holds(t, text, Limits{Text: 200 + most&0xfff, Unit: card.UTF16, Code: 3})
	})
}
