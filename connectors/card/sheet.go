package card

import (
	"slices"
	"strings"
	"unicode"

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

// spelled is text as it stands on this sheet: terminals lay out text from right to left in their own ways or not at all, so
// there it is escaped, but for what an agent says, in which only emoji are.
func (s *sheet) spelled(text string, role Role) string {
	switch {
	case s.width == 0:
		return text
	case role == Words:
		return spellEmoji(text)
	}
	return Spell(text)
}

// after adds one row of a short lead in our own words and text of the role.
func (s *sheet) after(lead, text string, role Role) {
	lead, text = s.spelled(lead, Ours), s.spelled(text, role)
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
		for _, part := range s.wrap(s.spelled(line, role), s.width-s.column()-1, 0) {
			s.add(pad(label, s.column()-2)+sign+" "+part, role, from)
			label, sign, from = "", signMore, 0
		}
	}
}

// lead adds the body after its lead when that makes one row, and else below it, marked.
func (s *sheet) lead(lead, gap string, role Role, body []string) {
	if len(body) == 1 && !s.short {
		lead := s.spelled(lead, Ours)
		one := lead + gap + s.spelled(body[0], role)
		if s.width == 0 || Cells(one) <= s.width {
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

// Wrap breaks the lines of a text that are wider than width cells at spaces; what follows is set in by hang more than the
// line begins. A word that is wider stands alone and whole, so that it can be copied. A width of 0 wraps nothing.
func Wrap(text string, width, hang int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for row := range strings.Lines(text) {
		line, ended := strings.CutSuffix(row, "\n")
		words := strings.TrimLeft(line, " ")
		indent := len(line) - len(words)
		below := strings.Repeat(" ", min(indent+hang, width/3))
		if Cells(line) > width {
			line = line[:min(indent, width/3)] + words
		}
		for {
			head, rest := cutAt(line, width)
			b.WriteString(head)
			if rest == "" {
				break
			}
			b.WriteByte('\n')
			line = below + rest
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// cutAt is as much of a line as fits, up to a space that is not at its beginning, and the rest without that space.
func cutAt(line string, width int) (head, rest string) {
	if Cells(line) <= width {
		return line, ""
	}
	start := len(line) - len(strings.TrimLeft(line, " "))
	cut, used := -1, 0
	for i, c := range line {
		if c == ' ' && i > start {
			if cut >= 0 && used > width {
				break
			}
			cut = i
			if used > width { // the first word is too long by itself
				break
			}
		}
		used += cell(c)
	}
	if cut < 0 {
		return line, ""
	}
	return strings.TrimRight(line[:cut], " "), strings.TrimLeft(line[cut:], " ")
}

// pad is label, which is ours, and spaces up to a column.
func pad(label string, to int) string {
	const most = "               " // as many as column
	return label + most[:max(to-len(label), 0)]
}

// Cells is the most cells that a terminal may use for a text.
func Cells(text string) (n int) {
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

// Role is whose words a part of a text are.
type Role uint8

// The roles. Words that we put beside somebody's name or path, and the name, are ours.
const (
	Ours   Role = iota
	Action      // the exact action that is decided about
	Words       // what an agent says
)

// Mark says whose words a part of a text are: those from the byte Start up to, not including, the byte End of the UTF-8
// text. Marks come in order, do not overlap, leave nothing out, and two beside each other differ in role. Where a part
// fills several rows, the mark holds them whole, with the signs that begin them and the newlines between them.
type Mark struct {
	Role       Role
	Start, End int
}

// sign begins a row that somebody else's words fill.
func (r Role) sign() string {
	if r == Action {
		return signAction
	}
	return signWords
}

// marks are those of the text of rows.
func marks(rows []row) (all []Mark) {
	at := 0
	add := func(role Role, n int) {
		switch last := len(all) - 1; {
		case n == 0:
		case last >= 0 && all[last].Role == role:
			all[last].End += n
		default:
			all = append(all, Mark{role, at, at + n})
		}
		at += n
	}
	for i, r := range rows {
		if i > 0 && r.from == 0 {
			add(r.role, 1) // the newline
		} else if i > 0 {
			add(Ours, 1)
		}
		add(Ours, r.from)
		add(r.role, len(r.text)-r.from)
	}
	return all
}
