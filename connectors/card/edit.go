package card

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
	"github.com/daycared/daycared/permissions/i18n"
)

// langDiff is the language of a diff.
const langDiff = "diff"

// edit is a call that changes files, as a card shows it.
type edit struct {
	edits.Edit
	edits.Diff
	caller permissions.Caller
	hook   bool   // a hook has read the file
	folder string // of the call
	o      Options
	cut    bool     // there are more rows
	body   []string // the block that says what the call does
}

// editOf returns what call c of r does to files. If brief, only a few rows around each change are shown, as for those calls of our
// own agents whose files we have read ourselves.
func editOf(r permissions.Request, c permissions.Call, brief bool, o Options) (shown edit, ok bool) {
	if o.drawn != nil {
		if shown, ok = o.drawn.edits[sight{c.N, brief}]; ok {
			return shown, true
		}
		defer func() {
			if ok {
				o.drawn.edits[sight{c.N, brief}] = shown
			}
		}()
	}
	if brief {
		if shown, ok = editOf(r, c, false, o); !ok || shown.Whole {
			return shown, ok
		}
		whole := len(shown.Rows)
		shown.Diff = shown.Edit.Diff(c.Rows, true)
		shown.cut = len(shown.Rows) < whole
	} else {
		e, isEdit := edits.Of(c.Tool, c.Input)
		if !isEdit {
			return edit{}, false
		}
		shown = edit{
			Edit: e, Diff: e.Diff(c.Rows, r.Caller.IsOurs() && len(c.Rows) > 0),
			caller: r.Caller, hook: r.Hook != "", folder: r.Cwd, o: o,
		}
	}
	if o.glance {
		shown.Rows = shown.Rows[:min(len(shown.Rows), 2)]
	}
	if !brief || shown.cut {
		shown.body = shown.block()
	}
	return shown, true
}

// toChange says what is done to files.
var toChange = map[string]i18n.Phrase{"edit": "to edit %s", "write": "to write %s", "delete": "to delete %s"}

// affects reports whether path is the file that the input names.
func (e edit) affects(path string) bool {
	name := e.Path
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.folder, name)
	}
	return filepath.Clean(name) == path
}

// name is the path of the file, without the call's folder.
func (e edit) name() string {
	if in, err := filepath.Rel(e.folder, e.Path); filepath.IsAbs(e.Path) && err == nil && filepath.IsLocal(in) {
		return in
	}
	return e.Path
}

// title is what the call does in our words, such as: to edit notes.md +5 −2 (only white space).
func (e edit) title(name func(string) string) string {
	what := codeSpan(name(e.name()))
	if e.Files > 1 {
		what += e.o.Plural(e.Files-1, " and %d other file| and %d other files")
	}
	title := e.o.Sprintf(toChange[e.Verb], what)
	var remarks []string
	for _, r := range []struct {
		text string
		when bool
	}{
		{e.o.Text("new"), e.New}, {e.o.Plural(e.Added, someRows), e.Whole}, {e.o.Text("every place"), e.Every},
		{e.o.Text("only white space"), e.Space}, {e.o.Text("no newline at the end"), e.Unended},
	} {
		if r.when {
			remarks = append(remarks, r.text)
		}
	}
	if !e.Whole {
		title += " " + lines(change{added: e.Added, removed: e.Removed})
	}
	if len(remarks) > 0 {
		title += " (" + strings.Join(remarks, ", ") + ")"
	}
	return title
}

// notes say what the file was, by whose word.
func (e edit) notes() []string {
	var note i18n.Phrase
	switch {
	case e.Told && e.caller.IsOurs():
		return nil
	case e.New && e.hook:
		note = "There is no such file yet, as the hook found."
	case e.New:
		note = "There is no such file yet, as the asker says."
	case e.Told && e.hook:
		note = "Rows of the file as the hook read them."
	case e.Told:
		note = "Rows of the file as the asker says."
	case e.Whole:
		note = "It replaces all that is in the file now."
	default:
		return nil
	}
	return []string{e.o.Text(note)}
}

// document is the whole edit as a file, with the part of its caption between the code and the digest. ok is false if the file would not be
// all of the call.
func (e edit) document() (name, text, caption string, ok bool) {
	if e.Rest != nil {
		return "", "", "", false
	}
	path, rows := Visible(e.Path), slices.Clone(e.body)
	text = strings.Join(e.notes(), "\n")
	if text != "" {
		text += "\n"
	}
	if e.Whole {
		text += fmt.Sprintf("--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n", path, len(rows))
		for i, row := range rows {
			rows[i] = "+" + row
		}
		if e.Unended {
			rows = append(rows, `\ No newline at end of file`)
		}
	} else if !e.Patches() {
		text += fmt.Sprintf("--- %s\n+++ %s\n", path, path)
	}
	counts := lines(change{added: e.Added, removed: e.Removed})
	if base := filepath.Base(e.Path); e.Files == 1 && plainFile().MatchString(base) {
		name = base + ".diff"
	}
	caption = e.o.Sprintf("the whole edit: %s in %s", counts, Visible(brief(e.name(), maxName)))
	return name, text + strings.Join(rows, "\n") + "\n", caption, true
}

// plainFile matches the name of a file that another file can be named after.
var plainFile = lazily(`^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,59}$`)

// block renders the body.
func (e edit) block() []string {
	sign := func(row string) string { // of a row of a diff; it is no part of the words behind it
		if e.Whole || row == "" || strings.IndexByte(`+-@* \`, row[0]) < 0 {
			return ""
		}
		return row[:1]
	}
	rows := wire.Map(e.Rows, func(row string) string { return row[len(sign(row)):] })
	if text := strings.Join(rows, "\n"); text != "" {
		rows = words(text, e.o.source(prose|tabbed))
	}
	for i, row := range e.Rows {
		rows[i] = sign(row) + rows[i]
	}
	return rows
}

// rest are the members of the input that the body does not show.
func (e edit) rest() (rows []string) {
	if e.Rest != nil {
		rows, _ = input(e.Rest, e.o.source(jsonText))
	}
	return rows
}

// changes is how many rows of edits an action has.
func changes(rows []row) (n int) {
	for _, r := range rows {
		if r.lang == langDiff {
			n++
		}
	}
	return n
}

// ends returns the rows of an action that there is room for, and a row about each gap: our own rows, then the ends of each block. Of a
// diff that is the first and the last hunk, and of these the ends of what is removed and of what is added.
func (l Limits) ends(rows []row, room int, in i18n.Language) []row {
	order := byRank(rows)
	kept := func(n int) (some []row) {
		keep := make([]bool, len(rows))
		for _, i := range order[:n] {
			keep[i] = true
		}
		for i := 0; i < len(rows); i++ {
			if keep[i] {
				some = append(some, rows[i])
				continue
			}
			from := i
			for i+1 < len(rows) && !keep[i+1] {
				i++
			}
			gap := row{text: in.Plural(i+1-from, moreRows), in: inAction}
			if n == 0 {
				gap.text = in.Text(labels[inAction]) + ": " + in.Plural(len(rows), someRows)
			}
			some = append(some, gap)
		}
		return some
	}
	n := sort.Search(len(rows), func(n int) bool {
		some := kept(n + 1)
		return l.cost(some) > room || l.Changes > 0 && changes(some) > l.Changes
	})
	if n == 0 && l.cost(kept(0)) > room {
		return nil
	}
	return kept(n)
}

// byRank returns the indices of rows, the most important ones first.
func byRank(rows []row) []int {
	ranks := make([][3]int, len(rows)) // the distance of its hunk from an end, whether it is context, its distance from an end of its run
	for from, to := 0, 0; from < len(rows); from = to {
		for to = from + 1; to < len(rows) && rows[to].role == rows[from].role && rows[to].lang == rows[from].lang; to++ {
		}
		switch block := rows[from:to]; {
		case block[0].role == Ours:
		case block[0].lang == langDiff:
			rankHunks(block, ranks[from:to])
		default:
			for i := range block {
				ranks[from+i][2] = 1 + min(i, len(block)-1-i)
			}
		}
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(ranks[a][:], ranks[b][:]) })
	return order
}

// rankHunks ranks the rows of a diff, see [byRank].
func rankHunks(rows []row, ranks [][3]int) {
	sign := func(i int) byte { return (rows[i].text + " ")[0] }
	var hunks int
	for i := range rows {
		if begins := sign(i) == '@' || sign(i) == '*'; begins && i > 0 {
			hunks++
		}
		ranks[i][0] = hunks
	}
	for from, to := 0, 0; from < len(rows); from = to {
		for to = from + 1; to < len(rows) && sign(to) == sign(from) && ranks[to][0] == ranks[from][0]; to++ {
		}
		for i := from; i < to; i++ {
			if sign(i) == ' ' || sign(i) == '\\' {
				ranks[i][1] = 1
			}
			ranks[i][2] = 1 + min(i-from, to-1-i)
		}
	}
	for i := range ranks {
		ranks[i][0] = min(ranks[i][0], hunks-ranks[i][0])
	}
}
