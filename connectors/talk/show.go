package talk

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

const (
	tab = "    "
	// mostSpaces is how many spaces in a row are kept, because code is indented.
	mostSpaces = 64
)

// show renders a line without trailing white space.
func show(line string) string { return visible(strings.TrimRight(line, " \t\r")) }

// gaps are wide gaps, as in code.
var gaps = regexp.MustCompile(` {9,}`)

// visible is [card.Prose] for a part of a line, with tabs as spaces.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\t", tab)
	var all strings.Builder
	from := 0
	for _, m := range gaps.FindAllStringIndex(text, -1) {
		if m[1]-m[0] <= mostSpaces {
			all.WriteString(between(text[from:m[0]]))
			all.WriteString(text[m[0]:m[1]])
			from = m[1]
		}
	}
	all.WriteString(between(text[from:]))
	return all.String()
}

// between is [card.Prose] for a text that is not at the end of its line.
func between(text string) string {
	bare := strings.TrimRight(text, " ")
	if gap := len(text) - len(bare); gap <= mostSpaces {
		return card.Prose(bare) + text[len(bare):]
	}
	return card.Prose(text)
}

// signs begin our own rows.
const signs = "✅⛔⌛✖⚠⏸✏⬇✓👍👎"

// ours matches the beginnings of rows of cards and of daycared's other texts.
var ours = regexp.MustCompile(`(?i)^(` +
	`\S+ +(wants|paused:|asks:)|on host|in folder|it (says|needs|takes)\b|high risk|asked since|environment +|until +[0-9]|nobody waits|` +
	`allowed|denied|approved|expired|cancelled|stopped|granted|taken back|ended:|nothing (was|is) |` +
	`[0-9]+ requests? |you are |reply to this message|daycared|sha256\b)`)

// forged reports whether a row looks like one of ours.
func forged(line string) bool {
	line = strings.TrimLeft(line, " ")
	first := []rune(line + "\x00")[0]
	box := func(c rune) bool { return c >= 0x2500 && c <= 0x259F }
	return strings.ContainsRune(signs, first) || strings.ContainsFunc(line, box) ||
		ours.MatchString(norm.NFKC.String(line))
}

// masked hides codes in a text: in any case and width of letters, and with a few characters between them.
func masked(text string, codes map[string]bool) string {
	if len(codes) == 0 {
		return text
	}
	var letters []letter
	for at, c := range text {
		if plain := fold(c); plain != 0 {
			letters = append(letters, letter{plain, at, at + len(string(c))})
		}
	}
	hide := map[int]bool{} // indexes of letters
	for i := range len(letters) - permissions.CodeLength + 1 {
		word := letters[i : i+permissions.CodeLength]
		if codes[spelt(word)] {
			for j := range word {
				hide[i+j] = true
			}
		}
	}
	var all strings.Builder
	from := 0
	for i, l := range letters {
		if hide[i] {
			all.WriteString(text[from:l.start])
			all.WriteString("•")
			from = l.end
		}
	}
	return all.String() + text[from:]
}

// letter is a letter that a code may contain, and its position.
type letter struct {
	plain      byte
	start, end int
}

// mostBetween is how many bytes may be between two letters of a code.
const mostBetween = 12

// spelt joins letters to a word; empty if they are too far apart.
func spelt(letters []letter) string {
	word := make([]byte, len(letters))
	for i, l := range letters {
		if i > 0 && l.start-letters[i-1].end > mostBetween {
			return ""
		}
		word[i] = l.plain
	}
	return string(word)
}

// fold is the capital letter or digit that a character is read as, or 0.
func fold(c rune) byte {
	if c > unicode.MaxASCII {
		plain := norm.NFKD.String(string(c))
		c = []rune(plain)[0]
	}
	switch {
	case c >= 'a' && c <= 'z':
		return byte(c - 'a' + 'A')
	case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return byte(c)
	}
	return 0
}
