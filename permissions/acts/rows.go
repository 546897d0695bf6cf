package acts

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/daycared/daycared/permissions"
)

// Row is a part of a command.
type Row struct {
	Text  string
	Risks []Risk // of this part, and Network
}

// Rows breaks the command text of call c of r after each &&, ||, ; and | between its parts, where a newline changes nothing: joined by
// newlines, the rows are the same program. What cannot be read whole is one row.
func Rows(r permissions.Request, c permissions.Call, text string) []Row {
	folder := readInput(c.Input).folderIn(r)
	starts, ends := breaks(text)
	rows := make([]Row, len(starts))
	for i, start := range starts {
		rows[i].Text = text[start:ends[i]]
	}
	unseen := r.Hook != "" && ReadToolUse(r.Hook, c.Tool, c.Input).TypingUnseen
	spent, by := 0, &scripts{made: map[string]string{}}
	found := make([]map[Risk]bool, len(rows))
	for _, a := range ReadCommand(text, folder).Acts {
		i, exact := slices.BinarySearch(starts, a.from)
		if !exact {
			i--
		}
		if found[i] == nil {
			found[i] = map[Risk]bool{}
		}
		f := &finder{root: r.Cwd, found: found[i], work: spent, typing: unseen}
		f.addAct(a, by, 0)
		spent = f.work
	}
	for i := range rows {
		rows[i].Risks = listed(found[i])
		if found[i][Network] {
			rows[i].Risks = append([]Risk{Network}, rows[i].Risks...)
		}
	}
	return rows
}

// breaks returns where the rows of a text begin and end.
func breaks(text string) (starts, ends []int) {
	whole := []int{len(text)}
	if whyNotParsed(text) != "" {
		return []int{0}, whole
	}
	f, err := parsed(text)
	if err != nil {
		return []int{0}, whole
	}
	starts = []int{0}
	for _, end := range operators(f, text) {
		next := end + len(text[end:]) - len(strings.TrimLeft(text[end:], " \t"))
		if next < len(text) && !strings.ContainsRune("\n\\#", rune(text[next])) {
			starts, ends = append(starts, next), append(ends, end)
		}
	}
	if ends = append(ends, len(text)); len(ends) == 1 {
		return starts, ends
	}
	rows := ""
	for i := range starts {
		rows += text[starts[i]:ends[i]] + "\n"
	}
	if again, err := parsed(rows); err != nil || printed(f) != printed(again) {
		return []int{0}, whole
	}
	return starts, ends
}

func parsed(text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
}

// operators returns the ends of the operators between the commands of a file, outside of those that consist of others, and
// outside of lines with a here-document.
func operators(f *syntax.File, text string) (ends []int) {
	documents := map[uint]bool{} // lines
	syntax.Walk(f, func(n syntax.Node) bool {
		if r, is := n.(*syntax.Redirect); is && r.Hdoc != nil {
			documents[r.Pos().Line()] = true
		}
		return true
	})
	add := func(at syntax.Pos, size int) {
		if !documents[at.Line()] {
			ends = append(ends, int(at.Offset())+size)
		}
	}
	var between func(s *syntax.Stmt)
	between = func(s *syntax.Stmt) {
		if n, is := s.Cmd.(*syntax.BinaryCmd); is {
			between(n.X)
			add(n.OpPos, len(n.Op.String()))
			between(n.Y)
		}
	}
	for i, s := range f.Stmts {
		between(s)
		if at := int(s.Semicolon.Offset()); i+1 < len(f.Stmts) && s.Semicolon.IsValid() && text[at] == ';' {
			add(s.Semicolon, 1)
		}
	}
	return ends
}

// printed is a file on as few lines as its here-documents allow.
func printed(f *syntax.File) string {
	var b strings.Builder
	_ = syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, f) // a parsed file can be printed
	return b.String()
}
