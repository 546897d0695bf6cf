package card

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// narrowest is the minimum width to wrap rows to.
const narrowest = 20

// Signs at the start of rows in plain text: the exact action, an agent's words, and continued rows.
const (
	signAction = "  "
	signWords  = "│ "
	signMore   = "┊ "
)

// section is the subject of rows of a card, in their order.
type section uint8

const (
	inTitle       section = iota // who wants what
	inAction                     // the exact action
	inNeeds                      // what else a call needs
	inEnvironment                // with which variables
	inWarnings                   // of what is not what it looks like
	inReason                     // the agent's reason
	inMessage                    // the agent's message
	inDetails                    // the agent's details
	inTerms                      // how it is decided
	inRecent                     // what the agent did before
	inSummary                    // our summary
	inNotes                      // about the card itself
	inPlace                      // where, and who vouches for the name
	inCode                       // the code and the deadline
)

// row is one row of a card.
type row struct {
	sign string // before it in plain text; empty for our own rows
	text string
	role Role
	lang string // of an action
	in   section
}

// sheet collects the rows of a card. Rows are at most width cells wide; 0 means unlimited.
type sheet struct {
	i18n.Language // of our own rows

	width int
	short bool // names are shortened
	cut   bool // a name was shortened
	few   bool // edits have more rows
	in    section
	rows  []row
}

func newSheet(o Options) *sheet {
	width := max(o.Width, 0)
	if width > 0 {
		width = max(width, narrowest)
	}
	return &sheet{Language: o.Language, width: width, rows: make([]row, 0, 16)}
}

func (s *sheet) String() string { return text(s.rows) }

func text(rows []row) string { return strings.Join(texts(rows), "\n") }

func texts(rows []row) []string {
	return wire.Map(rows, func(r row) string { return r.sign + Plain(r.text) })
}

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

// add adds a row, wrapped to the sheet's width. Continued rows have a sign of their own.
func (s *sheet) add(text string, role Role, lang string) {
	text = translated(text, s.Language)
	r := row{sign: role.sign(), text: text, role: role, lang: lang, in: s.in}
	if s.width > 0 {
		text = s.spelled(Plain(text), role)
		for from := Cells(r.sign); ; from = Cells(signMore) {
			end := fits(text, from, s.width)
			r.text = text[:end]
			if text = text[end:]; text == "" {
				break
			}
			s.rows, r.sign = append(s.rows, r), signMore
		}
	}
	s.rows = append(s.rows, r)
}

// Continued wraps rows of ours that are wider than width cells, so that what they quote begins no row without a sign. A
// width of 0 wraps nothing.
func Continued(text string, width int) string {
	s := newSheet(Options{Width: width})
	for line := range strings.SplitSeq(text, "\n") {
		s.row(line)
	}
	return s.String()
}

// row adds one row in our own words, which may quote others' after its start.
func (s *sheet) row(text string) { s.add(text, Ours, "") }

func (s *sheet) block(role Role, lang string, lines []string) {
	s.rows = slices.Grow(s.rows, len(lines))
	for _, line := range lines {
		s.add(line, role, lang)
	}
}

// spelled is text as a terminal shows it. Terminals differ in the layout of text from right to left, so it is escaped,
// except in an agent's words, where only emoji are.
func (s *sheet) spelled(text string, role Role) string {
	if role == Words {
		return spellEmoji(text)
	}
	return Spell(text)
}

// fits is how many bytes of line, which begins at a cell, fit a row of so many cells: all, or up to a space, which is in the second half of
// a wide row. No row ends in a space, which nobody would see; the next row begins with it.
func fits(line string, from, width int) int {
	at, space, last := from, 0, rune(0)
	for i, c := range line {
		if c == ' ' && last != ' ' && i > 0 && (at-from > (width-from)/2 || width-from < beside) {
			space = i
		}
		if at = cellAfter(at, c); at > width {
			if space > 0 {
				return space
			}
			return i
		}
		last = c
	}
	return len(line)
}

// beside is the minimum width of a row that is only broken in its second half.
const beside = 40

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

// Cells is the maximum number of terminal cells of a text at the start of a row.
func Cells(text string) (n int) {
	for _, c := range text {
		n = cellAfter(n, c)
	}
	return n
}

// tabStop is the distance in cells of the tab stops of terminals.
const tabStop = 8

// cellAfter is the cell after c at a cell of a row.
func cellAfter(at int, c rune) int {
	if c == '\t' {
		return at + tabStop - at%tabStop
	}
	return at + cell(c)
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

// Role says whose words a part of a card are, and so how a channel shows them.
type Role uint8

// The roles.
const (
	Ours   Role = iota
	Title       // line 1, in bold: who wants what
	Action      // the exact action to decide about, as a block that can be copied
	Words       // what an agent says, as a quote
)

// sign begins a row of somebody else's in plain text.
func (r Role) sign() string {
	switch r {
	case Action:
		return signAction
	case Words:
		return signWords
	}
	return ""
}

// Part is one part of a card: rows of one role, separated by newlines.
type Part struct {
	Role Role
	Lang string // of an action that is code: bash, json, diff
	Text string // for Title and Ours with marks around names, see Spans
}

// Spans calls yield for the pieces of a part's text in order. A name is somebody else's, and is shown as code.
func (p Part) Spans(yield func(text string, name bool) bool) {
	for rest, name := p.Text, false; ; name = !name {
		end := nameStart
		if name {
			end = nameEnd
		}
		text, more, found := strings.Cut(rest, end)
		if text != "" && !yield(text, name) || !found {
			return
		}
		rest = more
	}
}

// Marked are the parts of a card of r with a mark before each call that was decided.
func Marked(all []Part, r permissions.Request) []Part {
	all = slices.Clone(all)
	for _, c := range r.Calls {
		sign := "✅ "
		if c.Answer == permissions.Deny {
			sign = "⛔ "
		}
		begin := fmt.Sprintf("#%d ", c.N)
		for i, p := range all {
			at := strings.Index("\n"+p.Text, "\n"+begin)
			if p.Role == Ours && at >= 0 && c.Answer != "" {
				all[i].Text = p.Text[:at] + sign + p.Text[at:]
				break
			}
		}
	}
	return all
}

// parts groups rows.
func parts(rows []row) (all []Part) {
	for from, to := 0, 0; from < len(rows); from = to {
		first, texts := rows[from], []string(nil)
		for to = from; to < len(rows); to++ {
			if r := rows[to]; r.role != first.role || r.lang != first.lang || r.in != first.in {
				break
			}
			texts = append(texts, rows[to].text)
		}
		all = append(all, Part{first.role, first.lang, strings.Join(texts, "\n")})
	}
	return all
}
