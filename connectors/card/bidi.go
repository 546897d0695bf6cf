package card

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

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
