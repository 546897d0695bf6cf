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
	// mostSpaces is how many spaces in a row are shown as they are: code is indented.
	mostSpaces = 64
)

// show is a line as it is shown. What is white at its end is left out.
func show(line string) string { return visible(strings.TrimRight(line, " \t\r")) }

// gaps are wide, and code has them.
var gaps = regexp.MustCompile(` {9,}`)

// visible is [card.Prose] of a part of a line, with tabs as spaces.
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

// between is [card.Prose] of what something follows, or nothing but white did.
func between(text string) string {
	bare := strings.TrimRight(text, " ")
	if gap := len(text) - len(bare); gap <= mostSpaces {
		return card.Prose(bare) + text[len(bare):]
	}
	return card.Prose(text)
}

// signs begin rows of ours.
const signs = "✅⛔⌛✖⚠⏸✏⬇✓👍👎"

// ours are the beginnings of rows of cards and of what daycared says.
var ours = regexp.MustCompile(`(?i)^(` +
	`\S+ +(wants|paused:|asks:)|on host|in folder|it (says|needs|takes)\b|high risk|asked since|environment +|until +[0-9]|nobody waits|` +
	`allowed|denied|approved|expired|cancelled|stopped|granted|taken back|ended:|nothing (was|is) |` +
	`[0-9]+ requests? |you are |reply to this message|daycared|sha256\b)`)

// forged tells of a row that looks like one of ours.
func forged(line string) bool {
	line = strings.TrimLeft(line, " ")
	first := []rune(line + "\x00")[0]
	box := func(c rune) bool { return c >= 0x2500 && c <= 0x259F }
	return strings.ContainsRune(signs, first) || strings.ContainsFunc(line, box) ||
		ours.MatchString(norm.NFKC.String(line))
}

// masked is text without the codes: in whatever case and width of letters, and with a few signs or gaps between the
// letters.
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
	hide := map[int]bool{} // letters
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

// letter is one that a code may have, and where it is in a text.
type letter struct {
	plain      byte
	start, end int
}

// mostBetween is how many bytes may be between two letters of a code.
const mostBetween = 12

// spelt is the word that letters are; empty where they are too far apart.
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

// fold is the capital letter or the digit that a character is read as, or 0.
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
