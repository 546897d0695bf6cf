package card_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/connectors/card"
)

// FuzzVisible: whatever is shown can be seen, and reads back as the text that it is of; so no two texts look alike,
// but for emoji in what is only read.
func FuzzVisible(f *testing.F) {
	for _, text := range []string{
		"", " ", "a  ", "a         b", "a⟨9 spaces⟩b", "⟨⟨1 space⟩", `\`, `\\u{1F}`, `\u{5C}u{1F}`, `\x{ff}`, "\xff", "\xed\xa0\x80",
		"\x1b[2J", "\u202egnp", "e\u0301", "\u00e9", "\u0301", "x\u0302\u0323", "\u1112\u1161\u11ab", "\u212a", "‹secret, 1", "‹\u200bsecret",
		"=\u0338", "\u0915\u093c", "\U000e0041", "a\u034f\u0301", "\ufffd", "\ufeff", "ᄀ\u1161\u11a8", "\u0344", "\u2126",
	} {
		f.Add(text, text)
	}
	f.Add("a b", "a\u00a0b")
	for _, text := range []string{"👩‍💻❤️", england, "1️⃣#\uFE0F", "#\u20E3", "a\u200Db\uFE0F", "❤\u200D❤\uFE0F\u200D🔥", "xℹ️", "👍🏽\u200D"} {
		f.Add(text, strings.ReplaceAll(text, "\uFE0F", ""))
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		shown := card.Visible(one)
		switch {
		case !utf8.ValidString(shown) || !norm.NFC.IsNormalString(shown):
			t.Fatalf("Visible(%q) = %q looks like something else", one, shown)
		case strings.ContainsFunc(shown, hiddenOnScreen):
			t.Fatalf("Visible(%q) = %q hides something", one, shown)
		case read(shown) != one:
			t.Fatalf("Visible(%q) = %q reads %q", one, shown, read(shown))
		case one != two && card.Visible(two) == shown:
			t.Fatalf("%q and %q are both shown as %q", one, two, shown)
		}
		switch prose := card.Prose(one); {
		case !utf8.ValidString(prose) || !norm.NFC.IsNormalString(prose):
			t.Fatalf("Prose(%q) = %q looks like something else", one, prose)
		case hidesOutsideEmoji(prose):
			t.Fatalf("Prose(%q) = %q hides something", one, prose)
		case read(prose) != one || read(card.Spell(prose)) != one:
			t.Fatalf("Prose(%q) = %q reads %q, and in a terminal %q", one, prose, read(prose), read(card.Spell(prose)))
		case hidesOutsideEmoji(shown) || strings.ContainsFunc(card.Spell(prose), hiddenOnScreen):
			t.Fatalf("%q is shown as %q, or %q in a terminal, and hides something", one, shown, card.Spell(prose))
		}
		if lines := card.Lines(one); strings.ContainsFunc(strings.Join(lines, ""), hiddenOnScreen) {
			t.Fatalf("Lines(%q) = %q hide something", one, lines)
		}
	})
}
