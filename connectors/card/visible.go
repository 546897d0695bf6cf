package card

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/emojishortcodes"
	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

const (
	// mostSpaces is the longest run of spaces that is shown as it is.
	mostSpaces = 8
	// mostMarks is how many combining marks a letter may carry. More of them would reach into other rows.
	mostMarks = 2
)

// blank are code points that the allow-list would keep, although nothing or next to nothing is seen of them.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x030A, Hi: 0x030A, Stride: 1}, // marks that Telegram takes out of what it is sent
		{Lo: 0x0333, Hi: 0x0333, Stride: 1},
		{Lo: 0x033F, Hi: 0x033F, Stride: 1},
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // empty Braille pattern
		{Lo: 0x2D7F, Hi: 0x2D7F, Stride: 1}, // Tifinagh consonant joiner
		{Lo: 0x303F, Hi: 0x303F, Stride: 1}, // ideographic half fill space
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // halfwidth Hangul filler
		{Lo: 0xFFFC, Hi: 0xFFFC, Stride: 1}, // object replacement
	},
	R32: []unicode.Range32{
		{Lo: 0x1107F, Hi: 0x1107F, Stride: 1}, // Brahmi number joiner
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // blank hieroglyphs
		{Lo: 0x16FE4, Hi: 0x16FE4, Stride: 1}, // Khitan filler
		{Lo: 0x1BC9D, Hi: 0x1BC9E, Stride: 1}, // Duployan selector and mark without a shape of their own
		{Lo: 0x1D159, Hi: 0x1D159, Stride: 1}, // null notehead
	},
}

// Visible renders text so that everything in it is seen. Letters, numbers, punctuation, symbols and single spaces stay;
// a letter keeps its first combining marks. Every other code point becomes an escape such as \u{202E}, every byte that
// is not UTF-8 one such as \x{ff}, and a long run of spaces, or one at the end, its length, as in ⟨37 spaces⟩. Of
// several ways to write one character only Unicode's normal form C stays as it is. What was written like one of these,
// or like the mark of a secret, is escaped in turn, so different texts are never rendered alike. The result is one
// line: a newline is escaped.
func Visible(s string) string {
	if plain(s) {
		return s
	}
	return rendered(s, false)
}

// Prose is [Visible] for what is only read and never run, as what agents and people say: an emoji that Unicode recommends
// stays whole, with the joiners, selectors and tags in it.
func Prose(s string) string {
	if plain(s) {
		return s
	}
	return rendered(s, true)
}

func rendered(s string, prose bool) string {
	var b strings.Builder
	b.Grow(len(s) + 16)
	render(&b, s, true, prose)
	return b.String()
}

// Lines is text split at its newlines, each line as [Visible] renders it. Text without any is no line.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Visible(line)
	}
	return lines
}

// plain tells of text that stays as it is for sure: printable ASCII without a backslash and without two spaces in a
// row or one at the end.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == '\\' || c == ' ' && (i+1 == len(s) || s[i+1] == ' ') {
			return false
		}
	}
	return true
}

// render writes s as Visible does, or as Prose; end says that nothing follows it on its row.
func render(b *strings.Builder, s string, end, prose bool) {
	room := 0 // for combining marks
	from := 0 // s[from:i] is the last letter that was kept, with its marks; empty after what was not
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		next := i + size
		emoji := 0
		if prose {
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
			b.WriteString(spaces(n, end && next == len(s)))
			room, from = 0, next
		case ' ' < c && c <= '~' && c != '\\':
			b.WriteByte(byte(c))
			room, from = 0, i
			if 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
				room = mostMarks
			}
		case room > 0 && unicode.In(c, unicode.Mn, unicode.Mc) && !hidden(c) && normal(c, s[from:next]):
			b.WriteRune(c)
			room--
		case !unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S) || hidden(c) || imitates(c, s[next:]) ||
			!normal(c, s[from:next]):
			escape(b, `\u{`, uint64(c))
			room, from = 0, next
		default:
			b.WriteRune(c)
			room, from = 0, i
			if unicode.IsLetter(c) {
				room = mostMarks
			}
		}
		i = next
	}
}

// escape writes what stands for a byte or a code point. No byte that is not UTF-8 is below 0x80, so its digits are two.
func escape(b *strings.Builder, open string, n uint64) {
	digits := strconv.FormatUint(n, 16)
	if open == `\u{` {
		digits = strings.ToUpper(digits)
	}
	b.WriteString(open)
	b.WriteString(digits)
	b.WriteByte('}')
}

// normal tells whether a letter and its marks, of which c is the last, are in Unicode's normal form C.
func normal(c rune, cluster string) bool { return c < 0x300 || norm.NFC.IsNormalString(cluster) }

// spaces are n of them, as they are or counted; those at the end of a row would not be seen.
func spaces(n int, last bool) string {
	switch {
	case n <= mostSpaces && !last:
		return strings.Repeat(" ", n)
	case n == 1:
		return "⟨1 space⟩"
	}
	return fmt.Sprintf("⟨%d spaces⟩", n)
}

// hidden tells of code points that fonts draw as nothing, whatever their category says.
func hidden(c rune) bool {
	return unicode.In(c, blank, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// imitates tells whether c begins something that looks like one of our escapes or marks.
func imitates(c rune, rest string) bool {
	switch c {
	case '\\':
		return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{")
	case '⟨':
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	case '‹':
		return len(rest) >= len(secretWord) && strings.EqualFold(rest[:len(secretWord)], secretWord)
	}
	return false
}

// mostName is how many characters of a name a shortened row has.
const mostName = 40

// named is a name that somebody else chose: as it is if it is one plain word, and else in quotes, so that it cannot run
// on into our words.
func named(name string) string {
	word := name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("._-:/@+#", c)
	})
	if word {
		return name
	}
	return quoted(name)
}

// quoted is somebody's text between quotes.
func quoted(text string) string { return quote(Visible(text)) }

// quote is rendered text between quotes that it cannot close itself.
func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\u{22}`) + `"` }

// brief is text, or so much of its start, and "…", that it is shown in at most so many characters. It is for rows that
// only remind, or that say where the whole is.
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

// shown is the most characters that stand for c on a card.
func shown(c rune) int {
	switch {
	case c == utf8.RuneError, c == '"', c == '\\', c == '⟨', c == '‹':
		return len(`\u{FFFD}`)
	case ' ' <= c && c <= '~':
		return 1
	}
	return utf8.RuneCountInString(Visible(string(c)))
}

// Between FSI and PDI, Unicode's rules (UAX #9) lay text out by itself.
const (
	FSI = "\u2068"
	PDI = "\u2069"
)

// Isolate is text that [Visible] rendered, with each word that is written from right to left laid out by itself, so that
// nothing beside it moves: for channels whose apps follow Unicode's rules. Visible escapes these marks in what others wrote.
func Isolate(text string) string {
	return eachBackward(text, func(b *strings.Builder, word string) { b.WriteString(FSI + word + PDI) })
}

// Spell is text that [Visible] or [Prose] rendered, for a terminal, which may not lay it out as it is read: everything is
// escaped that is written from right to left, and within emoji what is not seen by itself.
func Spell(text string) string {
	return eachBackward(spellEmoji(text), func(b *strings.Builder, word string) {
		for _, c := range word {
			escape(b, `\u{`, uint64(c))
		}
	})
}

// eachBackward copies text, and passes each word that is written from right to left to write.
func eachBackward(text string, write func(b *strings.Builder, word string)) string {
	if ascii(text) {
		return text
	}
	var b strings.Builder
	from := -1 // where a word from right to left began
	for i, c := range text {
		class := classOf(c)
		backward := class == bidi.R || class == bidi.AL || class == bidi.AN || from >= 0 && class == bidi.NSM
		if from >= 0 && !backward {
			write(&b, text[from:i])
			from = -1
		}
		if backward && from < 0 {
			from = i
		}
		if from < 0 {
			_, size := utf8.DecodeRuneInString(text[i:]) // of what is no character, less than of the one that stands for it
			b.WriteString(text[i : i+size])
		}
	}
	if from >= 0 {
		write(&b, text[from:])
	}
	return b.String()
}

// isBackward reports whether anything in text is written from right to left.
func isBackward(text string) bool { return Isolate(text) != text }

func classOf(c rune) bidi.Class {
	p, _ := bidi.LookupRune(c)
	return p.Class()
}

// emojis holds the emoji that Unicode recommends for interchange (UTS #51, RGI) without skin tones and selectors: true is
// a whole one, false the beginning of one.
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
		add(toned) // recommended with skin tones only
	}
	return all
})

// emojiAt is the length in bytes of the emoji of several code points that text[at:] begins with, 0 if there is none. A
// digit or a letter within a word begins none.
func emojiAt(text string, at int) (size int) {
	first, n := utf8.DecodeRuneInString(text[at:])
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	if at+n == len(text) || text[at+n] < 0xE2 || inWord(first) && inWord(before) { // what may follow begins with E2, EF, F0, F3
		return 0
	}
	key := make([]byte, 0, 48)
	styled := true // what came last takes no skin tone and no selector
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

// unseen reports whether c is seen within an emoji only.
func unseen(c rune) bool { return hidden(c) || unicode.In(c, unicode.Cf, unicode.Me) }

// spellEmoji is text that [Prose] rendered, with everything escaped that makes one emoji of several code points: how many
// cells of a terminal it takes cannot be known.
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
