package talk

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/connectors/card"
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
const signs = "✅⛔⌛✖⚠⏸✏⬇✓👍👎💬"

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
