package card

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
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
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // empty Braille pattern
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // halfwidth Hangul filler
	},
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // blank hieroglyphs
		{Lo: 0x1D159, Hi: 0x1D159, Stride: 1}, // null notehead
	},
}

// Visible renders text so that everything in it is seen. Letters, numbers, punctuation, symbols and single spaces stay;
// a letter keeps its first combining marks. Every other code point becomes an escape such as \u{202E}, every byte that
// is not UTF-8 one such as \x{ff}, and a long run of spaces its length, as in ⟨37 spaces⟩. What was written like one of
// these is escaped in turn, so different texts are never rendered alike. The result is one line: a newline is escaped.
func Visible(s string) string {
	var b strings.Builder
	room := 0 // for combining marks
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x{%02x}`, s[i])
			room = 0
		case c == ' ':
			n := len(s[i:]) - len(strings.TrimLeft(s[i:], " "))
			b.WriteString(spaces(n))
			size, room = n, 0
		case unicode.In(c, unicode.Mn, unicode.Mc) && room > 0 && !hidden(c):
			b.WriteRune(c)
			room--
		case !unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S) || hidden(c) || imitates(c, rest):
			fmt.Fprintf(&b, `\u{%X}`, c)
			room = 0
		default:
			b.WriteRune(c)
			room = 0
			if unicode.IsLetter(c) {
				room = mostMarks
			}
		}
		i += size
	}
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

func spaces(n int) string {
	if n <= mostSpaces {
		return strings.Repeat(" ", n)
	}
	return fmt.Sprintf("⟨%d spaces⟩", n)
}

// hidden tells of code points that fonts draw as nothing, whatever their category says.
func hidden(c rune) bool {
	return unicode.In(c, blank, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// imitates tells whether c begins something that looks like one of our escapes.
func imitates(c rune, rest string) bool {
	switch c {
	case '\\':
		return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{")
	case '⟨':
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	}
	return false
}
