package card

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const (
	// column is where text begins that follows a label.
	column = 15
	// narrowest is the least width that rows are wrapped to.
	narrowest = 40
)

// The marks that begin a row: of the exact action, of what an agent says, and of what did not fit the row before.
const (
	markAction = "┃"
	markWords  = "│"
	markMore   = "┊"
)

// sheet collects the rows of a card. Everything given to it has been made visible. Rows are at most width cells wide;
// a width of 0 wraps nothing.
type sheet struct {
	width int
	rows  []string
}

func newSheet(width int) *sheet {
	if width > 0 {
		width = max(width, narrowest)
	}
	return &sheet{width: width}
}

func (s *sheet) String() string { return strings.Join(s.rows, "\n") }

// row adds one row in our own words, which may quote others' after its start.
func (s *sheet) row(text string) {
	for i, part := range s.wrap(text, s.width) {
		if i > 0 {
			part = strings.Repeat(" ", column-2) + markMore + " " + part
		}
		s.rows = append(s.rows, part)
	}
}

// fact adds a label of ours and a short text.
func (s *sheet) fact(label, text string) { s.row(pad(label, column) + text) }

// marked adds lines of which every row carries a mark, the first one after the label.
func (s *sheet) marked(label, mark string, lines []string) {
	for _, line := range lines {
		m := mark
		for _, part := range s.wrap(line, s.width-column-1) {
			s.rows = append(s.rows, pad(label, column-2)+m+" "+part)
			label, m = "", markMore
		}
	}
}

// lead adds the body after its lead when that makes one row, and else below it, marked.
func (s *sheet) lead(lead, gap, mark string, body []string) {
	if len(body) == 1 {
		one := lead + gap + body[0]
		if s.width == 0 || cells(one) <= s.width {
			s.rows = append(s.rows, one)
			return
		}
	}
	if lead != "" {
		s.row(lead)
	}
	s.marked("", mark, body)
}

// wrap cuts a line into parts, the first of at most first cells, the others so that they fit after a mark. Nothing is
// lost: the parts together are the line.
func (s *sheet) wrap(line string, first int) []string {
	if s.width == 0 {
		return []string{line}
	}
	var parts []string
	for most := first; ; most = s.width - column - 1 {
		end := fits(line, most)
		parts = append(parts, line[:end])
		if line = line[end:]; line == "" {
			return parts
		}
	}
}

// fits is how many bytes of line fit into most cells: all, or else up to a space in the second half if there is one.
func fits(line string, most int) int {
	used, space := 0, 0
	for i, c := range line {
		if used += cell(c); used > most {
			if space > 0 {
				return space
			}
			return i
		}
		if c == ' ' && used > most/2 {
			space = i + 1
		}
	}
	return len(line)
}

func pad(label string, to int) string {
	return label + strings.Repeat(" ", max(to-cells(label), 0))
}

func cells(text string) (n int) {
	for _, c := range text {
		n += cell(c)
	}
	return n
}

// cell is the most cells that a terminal may use for c: where they differ, the wider one counts, so that no terminal
// wraps a row by itself and starts the next one without its mark.
func cell(c rune) int {
	if c < 0x80 {
		return 1
	}
	switch width.LookupRune(c).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	if unicode.Is(unicode.So, c) {
		return 2
	}
	return 1
}
