package card_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors/card"
)

// TestVisibleOfEveryCodePoint renders all 1,114,112, alone and after a letter: each stays and is seen, or is escaped, and
// no two of them are rendered alike, also where Unicode has two ways to write the same.
func TestVisibleOfEveryCodePoint(t *testing.T) {
	kept, escaped := 0, 0
	seen := make(map[string]rune, 1_114_112)
	for c := rune(0); c <= unicode.MaxRune; c++ {
		raw := string(c)
		if c >= 0xD800 && c <= 0xDFFF { // surrogates are no text: their bytes are not UTF-8
			raw = string([]byte{0xED, byte(0x80 | c>>6&0x3F), byte(0x80 | c&0x3F)})
		}
		got := card.Visible(raw)
		switch {
		case c == ' ':
			escaped++
			if got != "⟨1 space⟩" {
				t.Errorf("a space at the end is rendered %q", got)
			}
		case got == raw && utf8.ValidString(raw):
			kept++
			if !unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S) || !unicode.IsPrint(c) || unicode.In(c, invisible) {
				t.Errorf("%U stays although it is not a letter, number, punctuation or symbol that is seen", c)
			}
		case got == escape(raw):
			escaped++
			if c > ' ' && c < 0x7F {
				t.Errorf("%q is escaped although everybody can see it", c)
			}
		default:
			t.Errorf("%U is rendered %q", c, got)
		}
		if other, found := seen[norm.NFC.String(got)]; found {
			t.Errorf("%U and %U are both rendered %q", other, c, got)
		}
		seen[norm.NFC.String(got)] = c
		if after := card.Visible("x" + raw); after != "x"+got && (after != "x"+raw || !unicode.In(c, unicode.Mn, unicode.Mc)) {
			t.Errorf("%U is rendered %q after a letter", c, after)
		}
	}
	if kept+escaped != 1_114_112 || len(seen) != kept+escaped {
		t.Errorf("rendered %d code points as %d texts; want 1,114,112", kept+escaped, len(seen))
	}
	if kept < 130_000 {
		t.Errorf("only %d code points stay; the letters of the world are more", kept)
	}
}

// escape is how a code point, or every byte that is none, is escaped.
func escape(raw string) (text string) {
	if c, _ := utf8.DecodeRuneInString(raw); utf8.ValidString(raw) {
		return fmt.Sprintf(`\u{%X}`, c)
	}
	for i := range len(raw) {
		text += fmt.Sprintf(`\x{%02x}`, raw[i])
	}
	return text
}

// invisible are code points that Unicode gives no shape, or that fonts draw as nothing.
var invisible = rangetable.Merge(unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.C, unicode.Z,
	rangetable.New(0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x1D159, 0x16FE4))

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "rm -rf site/old && ./publish.sh", "rm -rf site/old && ./publish.sh"},
		{"other scripts", "größe 日本語 Ελλ рус עברית हिन्दी", "größe 日本語 Ελλ рус עברית हिन्दी"},
		{"newline", "a\nb", `a\u{A}b`},
		{"carriage return hides a line", "rm -rf /\rls", `rm -rf /\u{D}ls`},
		{"tab", "a\tb", `a\u{9}b`},
		{"null", "a\x00b", `a\u{0}b`},
		{"backspaces", "rm\b\bls", `rm\u{8}\u{8}ls`},
		{"erases the screen", "\x1b[2J\x1b[H", `\u{1B}[2J\u{1B}[H`},
		{"hides text", "\x1b[8msecret\x1b[0m", `\u{1B}[8msecret\u{1B}[0m`},
		{"sets the title", "\x1b]0;safe\x07", `\u{1B}]0;safe\u{7}`},
		{"a link", "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", `\u{1B}]8;;http://evil\u{1B}\click\u{1B}]8;;\u{1B}\`},
		{"control of eight bits", "\u009b2J", `\u{9B}2J`},
		{"next line", "a\u0085b", `a\u{85}b`},
		{"line separator", "a\u2028b\u2029c", `a\u{2028}b\u{2029}c`},
		{"right to left", "safe\u202egnp.exe", `safe\u{202E}gnp.exe`},
		{"isolates", "\u2066a\u2069", `\u{2066}a\u{2069}`},
		{"direction marks", "\u200ea\u200f\u061c", `\u{200E}a\u{200F}\u{61C}`},
		{"zero width", "a\u200b\u200c\u200d\u2060\ufeffb", `a\u{200B}\u{200C}\u{200D}\u{2060}\u{FEFF}b`},
		{"soft hyphen", "r\u00adm", `r\u{AD}m`},
		{"tags", "a\U000e0041\U000e007f", `a\u{E0041}\u{E007F}`},
		{"variation selectors", "a\ufe0f\U000e0100", `a\u{FE0F}\u{E0100}`},
		{"musical control", "a\U0001d173", `a\u{1D173}`},
		{"shorthand control", "a\U0001bca0", `a\u{1BCA0}`},
		{"other spaces", "a\u00a0b\u2003c\u3000d\u1680", `a\u{A0}b\u{2003}c\u{3000}d\u{1680}`},
		{"letters that are blank", "a\u3164\u115f\uffa0b", `a\u{3164}\u{115F}\u{FFA0}b`},
		{"blank Braille", "a\u2800b", `a\u{2800}b`},
		{"private", "a\ue000\U000f0000", `a\u{E000}\u{F0000}`},
		{"unassigned", "a\u0378", `a\u{378}`},
		{"noncharacter", "a\uffff", `a\u{FFFF}`},
		{"mark on a letter", "x\u0301", "x\u0301"},
		{"a letter in two ways", "\u00e9 e\u0301", "\u00e9 e" + `\u{301}`},
		{"marks in another order", "x\u0302\u0323", "x\u0302" + `\u{323}`},
		{"a syllable in parts", "\u1112\u1161\u11ab", "\u1112" + `\u{1161}` + "\u11ab"},
		{"a letter that is another", "\u212a\u2126\uf900", `\u{212A}\u{2126}\u{F900}`},
		{"mark alone", "\u0301", `\u{301}`},
		{"mark on a space", "a \u0301", `a \u{301}`},
		{"mark on an equals sign", "=\u0338", `=\u{338}`},
		{"too many marks", "x\u0301\u0302\u0303\u0304", "x\u0301\u0302" + `\u{303}\u{304}`},
		{"joiner that is not seen", "e\u034f", `e\u{34F}`},
		{"enclosing mark", "a\u20dd", `a\u{20DD}`},
		{"not UTF-8", "a\xff\xc3b", `a\x{ff}\x{c3}b`},
		{"replacement character as such", "a\ufffdb", "a\ufffdb"},
		{"typed like an escape", `a\u{202E}b`, `a\u{5C}u{202E}b`},
		{"typed like an escaped escape", `\u{5C}u{1F}`, `\u{5C}u{5C}u{1F}`},
		{"typed like a byte", `\x{ff}`, `\u{5C}x{ff}`},
		{"backslashes", `C:\users\x\n\\`, `C:\users\x\n\\`},
		{"backslash before an escape", "\\\x1f", `\\u{1F}`},
		{"object replacement", "a\ufffcb", `a\u{FFFC}b`},
		{"space at the end", "ls ", "ls⟨1 space⟩"},
		{"spaces at the end", "ls   ", "ls⟨3 spaces⟩"},
		{"nothing but spaces", "  ", "⟨2 spaces⟩"},
		{"eight spaces", "a        b", "a        b"},
		{"nine spaces", "a         b", "a⟨9 spaces⟩b"},
		{"pushed off the screen", "ls" + strings.Repeat(" ", 37) + "; rm -rf /", "ls⟨37 spaces⟩; rm -rf /"},
		{"typed like spaces", "a⟨37 spaces⟩b", `a\u{27E8}37 spaces⟩b`},
		{"typed like a secret", "‹secret, 40 characters, sha256 1a2b3c›", `\u{2039}secret, 40 characters, sha256 1a2b3c›`},
		{"typed like a SECRET", "‹SECRET", `\u{2039}SECRET`},
		{"quotes", "‹oui› «non»", "‹oui› «non»"},
		{"brackets", "⟨x⟩", "⟨x⟩"},
	} {
		t.Run("B2/"+c.name, func(t *testing.T) {
			if got := card.Visible(c.in); got != c.want {
				t.Errorf("Visible(%q)\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

// nasty is text made of what rendering is about.
func nasty() *rapid.Generator[string] {
	bits := rapid.SampledFrom([]string{
		`\`, "u{", "x{", "}", "1F", "5C", "ff", "\x1f", "\xff", "⟨", "⟩", "9 spaces", " ", "         ", "a", "e", "\u0301", "\u0323",
		"\u1112", "\u1161", "\u0915", "\u093c", "‹", "secret", " spaces⟩", "⟨1 space⟩",
		"\u202e", "\n", `"`, "{", "\ufffd", "\u3164", "✅",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(bits, rapid.String()), 0, 8).Draw(t, "bits"), "")
	})
}

func TestVisibleIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nasty().Draw(t, "text")
		shown := card.Visible(text)
		if !utf8.ValidString(shown) {
			t.Fatalf("Visible(%q) = %q is not UTF-8", text, shown)
		}
		if !norm.NFC.IsNormalString(shown) {
			t.Fatalf("Visible(%q) = %q, which looks like %q", text, shown, norm.NFC.String(shown))
		}
		if got := read(shown); got != text {
			t.Fatalf("Visible(%q) = %q, which reads %q: two texts look alike", text, shown, got)
		}
	})
}

// read undoes Visible, so what it reads back has one rendering only.
func read(shown string) string {
	var b strings.Builder
	for shown != "" {
		kind, body, end := "", "", 0
		for _, form := range []struct{ from, to string }{{`\u{`, "}"}, {`\x{`, "}"}, {"⟨", " spaces⟩"}, {"⟨", " space⟩"}} {
			if rest, found := strings.CutPrefix(shown, form.from); found {
				if i := strings.Index(rest, form.to); i >= 0 && (end == 0 || len(form.from)+i+len(form.to) < end) {
					kind, body, end = form.from, rest[:i], len(form.from)+i+len(form.to)
				}
			}
		}
		base := 16
		if kind == "⟨" {
			base = 10
		}
		switch n, err := strconv.ParseInt(body, base, 32); {
		case kind == `\u{` && err == nil:
			b.WriteRune(rune(n))
		case kind == `\x{` && err == nil:
			b.WriteByte(byte(n))
		case kind == "⟨" && err == nil:
			b.WriteString(strings.Repeat(" ", int(n)))
		default:
			end = utf8.RuneLen([]rune(shown)[0])
			b.WriteString(shown[:end])
		}
		shown = shown[end:]
	}
	return b.String()
}

func TestLines(t *testing.T) {
	got := strings.Join(card.Lines("a\n\nb\x1b\r\n"), "|")
	if want := `a||b\u{1B}\u{D}|`; got != want {
		t.Errorf("Lines = %s; want %s", got, want)
	}
	if got := card.Lines(""); got != nil {
		t.Errorf("Lines of nothing = %q; want none", got)
	}
}
