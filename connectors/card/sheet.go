package card

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

const (
	// column is where text begins that follows a label.
	column = 15
	// beside is the least width at which text stands beside its label.
	beside = 40
	// narrowest is the least width that rows are wrapped to.
	narrowest = 24
)

// The signs that begin a row: of the exact action, of what an agent says, and of what did not fit the row before.
const (
	signAction = "┃"
	signWords  = "│"
	signMore   = "┊"
)

// section is what rows of a card are about.
type section uint8

const (
	inRule        section = iota // the rule, with the code
	inWho                        // who asks for what
	inAction                     // the exact action
	inPlace                      // where
	inNeeds                      // what a call needs besides
	inEnvironment                // with which variables
	inReason                     // why, as the agent says
	inMessage                    // what the agent says besides
	inDetails                    // and attaches
	inSummary                    // what we make of it
	inNotes                      // about the card itself
	inTerms                      // how it is decided and until when
)

// row is one row of a card, which has been made visible. text[from:] has the role; what is before it is ours.
type row struct {
	text string
	from int
	role Role
	in   section
}

// sheet collects the rows of a card. Rows are at most width cells wide; a width of 0 wraps nothing.
type sheet struct {
	width int
	short bool // names are shortened, and leads have no body beside them
	cut   bool // a name was
	in    section
	rows  []row
}

func newSheet(width int) *sheet {
	if width = max(width, 0); width > 0 {
		width = max(width, narrowest)
	}
	return &sheet{width: width, rows: make([]row, 0, 16)}
}

// narrow reports whether text does not stand beside its label.
func (s *sheet) narrow() bool { return s.width > 0 && s.width < beside }

// column is where text begins that follows a label, or on a narrow sheet its sign alone.
func (s *sheet) column() int {
	if s.narrow() {
		return 2
	}
	return column
}

func (s *sheet) String() string { return text(s.rows) }

// text is the rows, separated by newlines.
func text(rows []row) string {
	var b strings.Builder
	size := 0
	for _, r := range rows {
		size += len(r.text) + 1
	}
	b.Grow(size)
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.text)
	}
	return b.String()
}

// of are the rows of a section.
func (s *sheet) of(in section) []row {
	from := slices.IndexFunc(s.rows, func(r row) bool { return r.in == in })
	if from < 0 {
		return nil
	}
	to := from
	for to < len(s.rows) && s.rows[to].in == in {
		to++
	}
	return s.rows[from:to]
}

func (s *sheet) add(text string, role Role, from int) {
	s.rows = append(s.rows, row{text, from, role, s.in})
}

// row adds one row in our own words, which may quote others' after its start.
func (s *sheet) row(text string) { s.after(text, "", Ours) }

// after adds one row of a short lead in our own words and text of the role.
func (s *sheet) after(lead, text string, role Role) {
	from := len(lead)
	if text == "" {
		from = 0 // it may end anywhere
	}
	for i, part := range s.wrap(lead+text, s.width, from) {
		if i > 0 {
			part, from = pad("", s.column()-2)+signMore+" "+part, 0
		}
		s.add(part, role, from)
	}
}

// fact adds a label of ours and a short text.
func (s *sheet) fact(label, text string) { s.row(pad(label+" ", s.column()) + text) }

// facts adds a label of ours and texts, each on a row of its own.
func (s *sheet) facts(label string, texts []string) {
	for _, text := range texts {
		s.fact(label, text)
		label = ""
	}
}

// marked adds lines of which every row carries a sign, the first one after the label, or below it on a narrow sheet.
func (s *sheet) marked(label string, role Role, lines []string) {
	s.rows = slices.Grow(s.rows, len(lines))
	if s.narrow() && label != "" && len(lines) > 0 {
		s.row(label)
		label = ""
	}
	from := s.column() - 2 // of the first row; the others belong to the role whole
	for _, line := range lines {
		sign := role.sign()
		for _, part := range s.wrap(line, s.width-s.column()-1, 0) {
			s.add(pad(label, s.column()-2)+sign+" "+part, role, from)
			label, sign, from = "", signMore, 0
		}
	}
}

// lead adds the body after its lead when that makes one row, and else below it, marked.
func (s *sheet) lead(lead, gap string, role Role, body []string) {
	if len(body) == 1 && !s.short {
		one := lead + gap + body[0]
		if s.width == 0 || cells(one) <= s.width {
			s.add(one, role, len(lead+gap))
			return
		}
	}
	if lead != "" {
		s.row(lead)
	}
	if s.short && s.in == inWho {
		s.in = inAction
	}
	s.marked("", role, body)
}

// wrap cuts a line into parts, the first of at most first cells and not ended within its lead, the others so that they
// fit after a sign. Nothing is lost: the parts together are the line.
func (s *sheet) wrap(line string, first, lead int) []string {
	if s.width == 0 {
		return []string{line}
	}
	var parts []string
	for most := first; ; most, lead = s.width-s.column()-1, 0 {
		end := fits(line, most, lead)
		parts = append(parts, line[:end])
		if line = line[end:]; line == "" {
			return parts
		}
	}
}

// fits is how many bytes of line fit into most cells: all, or else up to spaces if there are some, in the second half where a
// row is wide and never before from. No row ends in a space, since nobody would see it; the next one begins with it.
func fits(line string, most, from int) int {
	used, space, last := 0, 0, rune(0)
	for i, c := range line {
		if c == ' ' && last != ' ' && i >= from && (used > most/2 || most < beside) {
			space = i
		}
		if used += cell(c); used > most {
			if space > 0 {
				return space
			}
			return i
		}
		last = c
	}
	return len(line)
}

// Wrap breaks the lines of a text at spaces, so that none is wider than width cells; a word that is wider by itself is
// cut. A width of 0 wraps nothing.
func Wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		for used, space, i := 0, -1, 0; i < len(body); {
			c, size := utf8.DecodeRuneInString(body[i:])
			if used += cell(c); used <= width || i == 0 {
				if c == ' ' {
					space = i
				}
				i += size
				continue
			}
			end, next := i, i // in the middle of a word
			switch {
			case c == ' ':
				next = i + size
			case space > 0:
				end, next = space, space+1
			}
			out.WriteString(body[:end] + "\n")
			body, used, space, i = body[next:], 0, -1, 0
		}
		out.WriteString(body + line[len(strings.TrimSuffix(line, "\n")):])
	}
	return out.String()
}

// pad is label, which is ours, and spaces up to a column.
func pad(label string, to int) string {
	const most = "               " // as many as column
	return label + most[:max(to-len(label), 0)]
}

// Cells is the most cells that a terminal may use for a text.
func Cells(text string) int { return cells(text) }

func cells(text string) (n int) {
	for _, c := range text {
		n += cell(c)
	}
	return n
}

// cell is the most cells that a terminal may use for c: where they differ, the wider one counts, so that no terminal
// wraps a row by itself and starts the next one without its sign.
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
