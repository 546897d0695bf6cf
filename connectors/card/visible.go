package card

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/emojishortcodes"
	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"

	"github.com/daycared/daycared/internal/wire"
)

const (
	// maxSpaces is the longest run of spaces that is shown as it is.
	maxSpaces = 8
	// maxIndented and maxTabs are the longest indentations that are shown as they are in a row of a diff.
	maxIndented, maxTabs = 40, 10
	// maxMarks limits the combining marks of a letter. More would reach into other rows.
	maxMarks = 2
)

// blank are code points in allowed categories that show nothing or next to nothing: marks that Telegram removes, Hangul fillers, the empty
// Braille pattern, the Tifinagh consonant joiner, the ideographic half fill space, object replacement, the Brahmi number joiner, blank
// hieroglyphs, the Khitan filler, the Duployan selector and mark without a visible form, and the null notehead.
var blank = rangetable.New(0x030A, 0x0333, 0x033F, 0x115F, 0x1160, 0x2800, 0x2D7F, 0x303F, 0x3164, 0xFFA0, 0xFFFC, 0x1107F,
	0x13441, 0x13442,
	0x16FE4, 0x1BC9D, 0x1BC9E, 0x1D159)

// Visible renders text so that everything in it can be seen. Letters, numbers, punctuation, symbols and single spaces stay;
// a letter keeps its first combining marks. Every other code point becomes an escape such as \u{202E}, every byte that is
// not UTF-8 one such as \x{ff}, and a long run of spaces, or one at the end, its length, as in ⟨37 spaces⟩. Of several
// encodings of a character only Unicode's normal form C stays as it is. Text that looks like one of these, or like a masked
// secret, is escaped itself, so different texts are never rendered alike. The result is one line: a newline is escaped.
func Visible(s string) string { return rendered(s, 0) }

// Prose is [Visible] for text that is only read and never run, such as what agents and people say: an emoji that Unicode
// recommends stays complete, with its joiners, selectors and tags.
func Prose(s string) string { return rendered(s, prose) }

func rendered(s string, src source) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	render(&b, s, true, src)
	return b.String()
}

// Lines returns the lines of text, each rendered by [Visible]. An empty text has none.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return wire.Map(strings.Split(text, "\n"), Visible)
}

// plain reports whether text certainly stays as it is: printable ASCII without a backslash, two spaces in a row or one at
// the end.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == '\\' || c == ' ' && (i+1 == len(s) || s[i+1] == ' ') {
			return false
		}
	}
	return true
}

// render writes s like Visible or, if src has them, like Prose and with tabs; end means that nothing follows it on its row.
func render(b *strings.Builder, s string, end bool, src source) {
	room := 0 // for combining marks
	from := 0 // s[from:i] is the last letter that was kept, with its marks; empty after anything else
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		next := i + size
		emoji := 0
		if src&prose != 0 {
			emoji = emojiAt(s, i)
		}
		switch {
		case emoji > 0:
			next = i + emoji
			b.WriteString(s[i:next])
			room, from = 0, next
		case c == utf8.RuneError && size == 1:
			escape(b, `\x{`, uint64(s[i]))
			room, from = 0, next
		case c == ' ':
			n := len(s[i:]) - len(strings.TrimLeft(s[i:], " "))
			next = i + n
			if src&tabbed != 0 && i == 0 && n <= maxIndented && next < len(s) {
				b.WriteString(s[:next])
			} else {
				b.WriteString(spaces(n, end && next == len(s)))
			}
			room, from = 0, next
		case c == '\t' && src&tabbed != 0 && shortTabs(s[i:], end):
			b.WriteByte('\t')
			room, from = 0, next
		case ' ' < c && c <= '~' && c != '\\':
			b.WriteByte(byte(c))
			room, from = 0, i
			if 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
				room = maxMarks
			}
		case room > 0 && unicode.In(c, unicode.Mn, unicode.Mc) && !Hidden(c) && normal(c, s[from:next]):
			b.WriteRune(c)
			room--
		case !unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S) || Hidden(c) || imitates(c, s[next:]) ||
			!normal(c, s[from:next]):
			escape(b, `\u{`, uint64(c))
			room, from = 0, next
		default:
			b.WriteRune(c)
			room, from = 0, i
			if unicode.IsLetter(c) {
				room = maxMarks
			}
		}
		i = next
	}
}

// shortTabs reports whether the tabs at the start of rest are few, and not at the end of a row, where nobody would see them.
func shortTabs(rest string, end bool) bool {
	after := strings.TrimLeft(rest, "\t")
	return len(rest)-len(after) <= maxTabs && (!end || strings.TrimLeft(after, " ") != "")
}

// escape writes the escape of a byte or a code point. Bytes that are not UTF-8 are at least 0x80, so they have two digits.
func escape(b *strings.Builder, open string, n uint64) {
	digits := strconv.FormatUint(n, 16)
	if open == `\u{` {
		digits = strings.ToUpper(digits)
	}
	b.WriteString(open)
	b.WriteString(digits)
	b.WriteByte('}')
}

// normal reports whether a letter and its marks, the last of which is c, are in Unicode's normal form C.
func normal(c rune, cluster string) bool { return c < 0x300 || norm.NFC.IsNormalString(cluster) }

// spaces shows n spaces, as they are or counted; at the end of a row they would be invisible.
func spaces(n int, last bool) string {
	switch {
	case n <= maxSpaces && !last:
		return strings.Repeat(" ", n)
	case n == 1:
		return "⟨1 space⟩"
	}
	return fmt.Sprintf("⟨%d spaces⟩", n)
}

// Hidden reports whether fonts draw nothing for c, whatever its category.
func Hidden(c rune) bool {
	return unicode.In(c, blank, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// imitates reports whether c begins something that looks like one of our escapes or marks.
func imitates(c rune, rest string) bool {
	switch c {
	case '\\':
		return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{")
	case '⟨':
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	case '‹':
		return slices.ContainsFunc(maskedWords, func(word string) bool {
			return len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word)
		})
	}
	return false
}

// maxName limits a name in a shortened row, in characters.
const maxName = 40

// quoteName is a name that somebody else chose. Unless it is one plain word it is quoted, so that it cannot be mistaken for our
// words.
func quoteName(name string) string {
	if name != "" && !quotable(name) {
		return name
	}
	return quoted(name)
}

// quotable reports whether a text is more than one plain word.
func quotable(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c >= 0x80 || notInWord(c) && !strings.ContainsRune("._-:/@+#", c) })
}

// Name is somebody's name in a text of ours, marked, see [Part.Spans].
func Name(name string) string { return codeSpan(quoteName(brief(name, maxName))) }

// Names in our own rows stand between these two, which [Visible] escapes in other people's text, until a channel shows them
// as code: see [Part.Spans].
const nameStart, nameEnd = "\x0e", "\x0f"

// codeSpan is a name, rendered already, as a row of ours has it.
func codeSpan(name string) string {
	if name == "" {
		return ""
	}
	return nameStart + name + nameEnd
}

// Plain is a text of ours with marks, see [Part.Spans], as plain text: what is marked stands in quotes, unless it is one
// plain word or in quotes already.
func Plain(text string) string {
	if !strings.Contains(text, nameStart) {
		return text
	}
	var b strings.Builder
	for piece, name := range (Part{Text: text}).Spans {
		if inner := strings.TrimSuffix(strings.TrimPrefix(piece, `"`), `"`); name && quotable(piece) &&
			(len(inner) != len(piece)-2 || strings.Contains(inner, `"`)) {
			piece = quote(piece)
		}
		b.WriteString(piece)
	}
	return b.String()
}

// maxBare limits a name in a title that is not shown as code, in characters.
const maxBare = 24

// inTitleName is a name in a title: one short and plain word as it is, and anything else as code.
func inTitleName(name string) string {
	shown := quoteName(name)
	if shown != name || len(name) > maxBare || !inWord(rune(name[0])) {
		return codeSpan(shown)
	}
	return name
}

// quoted is somebody's text in quotes.
func quoted(text string) string { return quote(Visible(text)) }

// quote puts rendered text in quotes, which it cannot close itself.
func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\u{22}`) + `"` }

// brief shortens text to at most that many characters as shown, with "…" at the end if it was cut. It is for rows that only
// remind or point to the complete text.
func brief(text string, most int) string {
	used, cut := 0, 0
	for i, c := range text {
		if used < most {
			cut = i
		}
		if used += shown(c); used > most {
			return strings.TrimRight(text[:cut], "\u200D") + "…"
		}
	}
	return text
}

// shown is the maximum number of characters that a card shows for c.
func shown(c rune) int {
	switch {
	case c == utf8.RuneError, c == '"', c == '\\', c == '⟨', c == '‹':
		return len(`\u{FFFD}`)
	case ' ' <= c && c <= '~':
		return 1
	}
	return utf8.RuneCountInString(Visible(string(c)))
}

// FSI and PDI isolate the layout of the text between them (UAX #9).
const (
	FSI = "\u2068"
	PDI = "\u2069"
)

// Isolate isolates each right-to-left word of a text rendered by [Visible], so that nothing beside it moves: for channels
// whose apps follow Unicode's rules. Visible escapes these marks in other people's text.
func Isolate(text string) string {
	return eachBackward(text, func(b *strings.Builder, word string) { b.WriteString(FSI + word + PDI) })
}

// Spell prepares a text rendered by [Visible] or [Prose] for a terminal, which may lay it out differently: right-to-left
// text is escaped, and so are the invisible parts of emoji.
func Spell(text string) string {
	return eachBackward(spellEmoji(text), func(b *strings.Builder, word string) {
		for _, c := range word {
			escape(b, `\u{`, uint64(c))
		}
	})
}

// eachBackward copies text and passes each right-to-left word to write.
func eachBackward(text string, write func(b *strings.Builder, word string)) string {
	if ascii(text) {
		return text
	}
	var b strings.Builder
	from := -1 // start of a right-to-left word
	for i, c := range text {
		p, _ := bidi.LookupRune(c)
		class := p.Class()
		backward := class == bidi.R || class == bidi.AL || class == bidi.AN || from >= 0 && class == bidi.NSM
		if from >= 0 && !backward {
			write(&b, text[from:i])
			from = -1
		}
		if backward && from < 0 {
			from = i
		}
		if from < 0 {
			_, size := utf8.DecodeRuneInString(text[i:]) // an invalid byte is shorter than its replacement character
			b.WriteString(text[i : i+size])
		}
	}
	if from >= 0 {
		write(&b, text[from:])
	}
	return b.String()
}

// isBackward reports whether text has anything that is written from right to left.
func isBackward(text string) bool { return Isolate(text) != text }

// emojis has the emoji that Unicode recommends for interchange (UTS #51, RGI) without skin tones and selectors: true for a
// complete one, false for a prefix of one.
var emojis = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	add := func(emoji string) {
		emoji = strings.ReplaceAll(emoji, "\uFE0F", "")
		all[emoji] = true
		for end := range emoji {
			if !all[emoji[:end]] {
				all[emoji[:end]] = false
			}
		}
	}
	for emoji := range emojishortcodes.GetMap() {
		add(emoji)
	}
	for _, toned := range []string{"👨\u200D🤝\u200D👨", "👩\u200D🤝\u200D👨", "👩\u200D🤝\u200D👩", "🫱\u200D🫲"} {
		add(toned) // only recommended with skin tones
	}
	return all
})

// emojiAt is the length in bytes of the emoji of several code points at text[at:], or 0. A digit or letter inside a word
// begins none.
func emojiAt(text string, at int) (size int) {
	first, n := utf8.DecodeRuneInString(text[at:])
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	if at+n == len(text) || text[at+n] < 0xE2 || inWord(first) && inWord(before) { // what may follow begins with E2, EF, F0 or F3
		return 0
	}
	key := make([]byte, 0, 48)
	styled := true // the last code point takes no skin tone and no selector
	for i, c := range text[at:] {
		if !styled && (c == '\uFE0F' || c >= 0x1F3FB && c <= 0x1F3FF) {
			styled = true
		} else {
			key = utf8.AppendRune(key, c)
			styled = unseen(c) || c >= 0x1F1E6 && c <= 0x1F1FF // half a flag
		}
		whole, begins := emojis()[string(key)]
		if !begins {
			break
		}
		if whole && i > 0 {
			size = i + utf8.RuneLen(c)
		}
	}
	return size
}

func inWord(c rune) bool { return unicode.In(c, unicode.L, unicode.N) }

// unseen reports whether c is only allowed inside an emoji.
func unseen(c rune) bool { return Hidden(c) || unicode.In(c, unicode.Cf, unicode.Me) }

// spellEmoji escapes what joins several code points to one emoji in a text rendered by [Prose], because the emoji's width
// in terminals is unknown.
func spellEmoji(text string) string {
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if unseen(c) {
			escape(&b, `\u{`, uint64(c))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
