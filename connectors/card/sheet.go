package card

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/daycared/daycared/internal/wire"
)

const (
	// column is where text after a label begins.
	column = 15
	// beside is the minimum width for text beside its label.
	beside = 40
	// narrowest is the minimum width to wrap rows to.
	narrowest = 24
)

// Signs at the start of rows: the exact action, an agent's words, and continued rows.
const (
	signAction = "┃"
	signWords  = "│"
	signMore   = "┊"
)

// section is the subject of rows of a card.
type section uint8

const (
	inRule        section = iota // the rule with the code
	inWho                        // who asks for what
	inAction                     // the exact action
	inPlace                      // where
	inNeeds                      // what else a call needs
	inEnvironment                // with which variables
	inReason                     // the agent's reason
	inMessage                    // the agent's message
	inDetails                    // the agent's details
	inSummary                    // our summary
	inNotes                      // about the card itself
	inTerms                      // how and until when it is decided
)

// row is one rendered row of a card. text[from:] has the role; what is before it is ours.
type row struct {
	text string
	from int
	role Role
	in   section
}

// sheet collects the rows of a card. Rows are at most width cells wide; 0 means unlimited.
type sheet struct {
	width int
	short bool // names are shortened, and leads have no body beside them
	cut   bool // a name was shortened
	in    section
	rows  []row
}

func newSheet(width int) *sheet {
	if width = max(width, 0); width > 0 {
		width = max(width, narrowest)
	}
	return &sheet{width: width, rows: make([]row, 0, 16)}
}

// narrow reports whether texts are below their labels.
func (s *sheet) narrow() bool { return s.width > 0 && s.width < beside }

// column is where text after a label begins, or on a narrow sheet after its sign.
func (s *sheet) column() int {
	if s.narrow() {
		return 2
	}
	return column
}

func (s *sheet) String() string { return text(s.rows) }

// text joins rows with newlines.
func text(rows []row) string { return strings.Join(texts(rows), "\n") }

func texts(rows []row) []string { return wire.Each(rows, func(r row) string { return r.text }) }

// of returns the rows of a section.
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

// spelled is text as this sheet shows it. Terminals differ in the layout of text from right to left, so on them it is
// escaped, except in an agent's words, where only emoji are.
func (s *sheet) spelled(text string, role Role) string {
	switch {
	case s.width == 0:
		return text
	case role == Words:
		return spellEmoji(text)
	}
	return Spell(text)
}

// after adds one row: a short lead in our own words and text of a role.
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

// facts adds a label of ours and texts in rows of their own.
func (s *sheet) facts(label string, texts []string) {
	for _, text := range texts {
		s.fact(label, text)
		label = ""
	}
}

// marked adds lines with a sign on every row, the first after the label or, on a narrow sheet, below it.
func (s *sheet) marked(label string, role Role, lines []string) {
	s.rows = slices.Grow(s.rows, len(lines))
	if s.narrow() && label != "" && len(lines) > 0 {
		s.row(label)
		label = ""
	}
	from := s.column() - 2 // of the first row; the others belong to the role completely
	for _, line := range lines {
		sign := role.sign()
		for _, part := range s.wrap(s.spelled(line, role), s.width-s.column()-1, 0) {
			s.add(pad(label, s.column()-2)+sign+" "+part, role, from)
			label, sign, from = "", signMore, 0
		}
	}
}

// lead adds the body beside its lead if both fit one row, otherwise below it, marked.
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

// wrap cuts a line into parts, the first of at most first cells and not within its lead, the others with room for a sign.
// The parts together are the line.
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

// fits is how many bytes of line fit most cells: all, or up to a space, which is in the second half of a wide row and never
// before from. No row ends in a space, which nobody would see; the next row begins with it.
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

// Wrap breaks lines wider than width cells at spaces and indents the rest by hang more than the line. A wider word stays
// whole on a row of its own, so that it can be copied. A width of 0 wraps nothing.
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

// cutAt returns what fits of a line, up to a space inside it, and the rest without that space.
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
			if used > width { // the first word alone is too long
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

// pad is a label of ours with spaces up to a column.
func pad(label string, to int) string {
	const most = "               " // as many as column
	return label + most[:max(to-len(label), 0)]
}

// Cells is the maximum number of terminal cells of a text.
func Cells(text string) (n int) {
	for _, c := range text {
		n += cell(c)
	}
	return n
}

// cell is the maximum number of terminal cells of c. If terminals differ, the wider one counts, so that none wraps a row by
// itself and begins the next one without its sign.
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

// Role says whose words a part of a text are.
type Role uint8

// The roles. A person's name or path with our words around it is ours.
const (
	Ours   Role = iota
	Action      // the exact action to decide about
	Words       // what an agent says
)

// Mark is a part of a text with one role: bytes Start to End, exclusive, of the UTF-8 text. Marks are in order, do not
// overlap and cover the text, and adjacent ones differ in role. A mark over several rows includes their signs and newlines.
type Mark struct {
	Role       Role
	Start, End int
}

// sign begins a row of somebody else's words.
func (r Role) sign() string {
	if r == Action {
		return signAction
	}
	return signWords
}

// marks returns the marks of the text of rows.
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
