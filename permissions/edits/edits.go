// Package edits reads from a tool call's input what the call writes into a file, and shows it as a diff.
//
// The rows of the file around a change come from whoever asks (see [permissions.Rows]) and may be made up. So a [Diff] is always
// computed from the input: the rows can change what stands around it, never what is written.
package edits

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"

	"github.com/daycared/daycared/permissions"
)

// Edit is what a call does to files, by its input.
type Edit struct {
	Path  string          // as the input has it; of a patch, its first file
	Files int             // how many files a patch changes; else 1
	Every bool            // each occurrence of every text is replaced; if only some are, Rest has a list of which
	Rest  json.RawMessage // the members of the input that a [Diff] does not show, as canonical JSON; nil: none

	whole   bool // content replaces the file
	content string
	swaps   []swap
	patch   []string // the rows of a patch
}

// swap is one replacement of a text.
type swap struct {
	before, after string
	every         bool
}

// The members of inputs, by what they hold.
var (
	pathMembers    = []string{"file_path", "filePath", "absolute_path", "path", "notebook_path"}
	contentMembers = []string{"content", "contents", "file_text"}
	beforeMembers  = []string{"old_string", "oldString", "old_str", "old_text", "oldText"}
	afterMembers   = []string{"new_string", "newString", "new_str", "new_text", "newText"}
	everyMembers   = []string{"replace_all", "replaceAll", "allow_multiple"}
	patchMembers   = []string{"command", "patch", "patchText", "input"}
)

// The lower-case names of tools that edit files, of all dialects and of our own agents. What another tool does with such members
// is not known.
var (
	writers   = []string{"write", "write_file", "create", "create_file"}
	editors   = []string{"str_replace_editor", "str_replace_based_edit_tool"} // a member says what they do
	replacers = []string{"edit", "multiedit", "edit_file", "replace", "str_replace", "strreplace", "replace_string_in_file"}
	patchers  = []string{"apply_patch", "applypatch", "patch"}
)

// Of returns what a call of a tool does to files. ok is false if the tool is none that edits files, or its input has another form.
func Of(tool string, input json.RawMessage) (e Edit, ok bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(input, &m) != nil {
		return e, false
	}
	switch tool = strings.ToLower(tool); {
	case slices.Contains(patchers, tool):
		text, found := take[string](m, patchMembers)
		return e.ofPatch(text, m), found && strings.HasPrefix(text, "*** Begin Patch\n")
	case slices.Contains(writers, tool):
		e.content, ok = take[string](m, contentMembers)
		e.whole = true
	case tool == "acp_edit" && len(m) == 2: // of an ACP agent's tools only the kind is known
		if e.content, e.whole = take[string](m, contentMembers); e.whole {
			ok = true
			break
		}
		e.swaps, ok = swapsIn(m)
	case slices.Contains(replacers, tool), tool == "acp_edit":
		e.swaps, ok = swapsIn(m)
	case tool == "multi_replace_string_in_file":
		ok = oneFile(m)
		if ok {
			e.swaps, ok = swapsIn(m)
		}
	case slices.Contains(editors, tool):
		switch command, _ := take[string](m, []string{"command"}); command {
		case "create":
			e.content, ok = take[string](m, contentMembers)
			e.whole = true
		case "str_replace":
			e.swaps, ok = swapsIn(m)
		}
	case tool == "notebookedit": // the source of a cell, of which Rest says which
		source, found := take[string](m, []string{"new_source"})
		e.swaps, ok = []swap{{after: source}}, found
	}
	name, named := take[string](m, pathMembers)
	var every []bool
	for _, s := range e.swaps {
		every = append(every, s.every)
	}
	e.Every = len(every) > 0 && !slices.Contains(every, false)
	if !e.Every && slices.Contains(every, true) { // some do
		m["replace_all"], _ = json.Marshal(every) // cannot fail
	}
	e.Path, e.Files, e.Rest = name, 1, rest(m)
	return e, ok && named && name != ""
}

// ofPatch returns the edit of a patch between *** lines, which is shown as it is.
func (e Edit) ofPatch(text string, m map[string]json.RawMessage) Edit {
	e.patch = strings.Split(text, "\n")
	for _, row := range e.patch {
		if _, name, found := header(row); found {
			if e.Files++; e.Files == 1 {
				e.Path = name
			}
		}
	}
	e.Rest = rest(m)
	return e
}

// header returns the verb and the file of a row of a patch that begins a file.
func header(row string) (verb, name string, found bool) {
	for _, verb := range []string{"Update", "Add", "Delete"} {
		if name, found = strings.CutPrefix(row, "*** "+verb+" File: "); found {
			return verb, name, true
		}
	}
	return "", "", false
}

// swapsIn takes one replacement, or the list "edits" of them.
func swapsIn(m map[string]json.RawMessage) (all []swap, ok bool) {
	if m["edits"] == nil {
		before, found := take[string](m, beforeMembers)
		after, both := take[string](m, afterMembers)
		every, _ := take[bool](m, everyMembers)
		return []swap{{before, after, every}}, found && both
	}
	list, ok := take[[]map[string]json.RawMessage](m, []string{"edits"})
	for _, one := range list {
		if one["edits"] != nil {
			return nil, false
		}
		part, found := swapsIn(one)
		ok = ok && found && len(one) == 0
		all = append(all, part...)
	}
	return all, ok && len(all) > 0
}

// oneFile makes replacements, which are all in one file, the edits of that file, and reports whether they are. What is said of each is
// kept.
func oneFile(m map[string]json.RawMessage) bool {
	list, ok := take[[]map[string]json.RawMessage](m, []string{"replacements"})
	var said []json.RawMessage
	for i, one := range list {
		name := one["filePath"]
		if name == nil || i > 0 && string(name) != string(m["filePath"]) {
			return false
		}
		if m["filePath"] = name; one["explanation"] != nil {
			said = append(said, one["explanation"])
		}
		delete(one, "filePath")
		delete(one, "explanation")
	}
	if len(said) > 0 {
		m["explanations"], _ = json.Marshal(said) // cannot fail: these are JSON
	}
	m["edits"], _ = json.Marshal(list)
	return ok && len(list) > 0
}

// take removes and returns the one of the named members that m has. Of several, none is taken.
func take[T any](m map[string]json.RawMessage, names []string) (value T, ok bool) {
	has := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return m[name] == nil })
	if len(has) != 1 || string(m[has[0]]) == "null" || json.Unmarshal(m[has[0]], &value) != nil {
		return value, false
	}
	delete(m, has[0])
	return value, true
}

// rest is what is left of an input; nil if nothing is.
func rest(m map[string]json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return nil
	}
	text, _ := json.Marshal(m) // cannot fail: the values are JSON
	canonical, err := permissions.CanonicalJSON(text)
	if err != nil {
		return text
	}
	return canonical
}

const (
	// maxGrowth is by how many bytes an edit may lengthen a text that it is applied to: replacements of replacements multiply.
	maxGrowth = 1 << 20
	// maxWork is how many bytes may be read for that.
	maxWork = 256 << 20
)

// apply returns the text after the edit, and how many bytes at its start and end stay as they are. ok is false if the edit does not
// fit the text, or makes far more of it.
func (e Edit) apply(text string) (after string, first, last int, ok bool) {
	if e.whole {
		first = shared(lines(text), lines(e.content))
		a, b := lines(text[first:]), lines(e.content[first:])
		slices.Reverse(a)
		slices.Reverse(b)
		return e.content, first, shared(a, b), true
	}
	first, last = len(text), len(text)
	most, work := len(text)+maxGrowth, 0
	for _, s := range e.swaps {
		n := strings.Count(text, s.before)
		work += len(text)
		switch {
		case s.before == "" && text == "":
			first, last, text = 0, 0, s.after
			continue
		case s.before == "", n == 0, n > 1 && !s.every, work > maxWork, len(text)+n*(len(s.after)-len(s.before)) > most:
			return "", 0, 0, false
		}
		first = min(first, strings.Index(text, s.before))
		last = min(last, len(text)-strings.LastIndex(text, s.before)-len(s.before))
		text = strings.ReplaceAll(text, s.before, s.after)
	}
	return text, first, last, e.patch == nil
}

// unix returns the edit and a text with LF at line ends. Agents' tools edit files with CRLF as if they had LF.
func (e Edit) unix(text string) (Edit, string) {
	lf := func(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
	e.swaps = slices.Clone(e.swaps)
	for i, s := range e.swaps {
		e.swaps[i].before, e.swaps[i].after = lf(s.before), lf(s.after)
	}
	return e, lf(text)
}

// around is how many rows of a file are shown around a change.
const around = udiff.DefaultContextLines

// Around returns what a [Diff] needs of the file before the edit: nothing if the edit does not fit it, or nothing is needed.
func (e Edit) Around(text string, exists bool) []permissions.Rows {
	if !exists {
		return []permissions.Rows{{}}
	}
	if n := strings.Count(text, "\n"); len(e.swaps) > 0 && n == strings.Count(text, "\r\n") {
		e, text = e.unix(text)
	}
	_, first, last, ok := e.apply(text)
	if !ok {
		return nil
	}
	from, to := strings.LastIndexByte(text[:first], '\n')+1, len(text)-last
	if to > 0 && text[to-1] != '\n' {
		to = nextRow(text, to)
	}
	for range around {
		from, to = strings.LastIndexByte(text[:max(from-1, 0)], '\n')+1, nextRow(text, to)
	}
	w := permissions.Rows{First: 1 + strings.Count(text[:from], "\n"), Text: text[from:to]}
	if e.whole {
		w.After = len(lines(text[to:]))
	}
	if len(w.Text) > permissions.MaxRows {
		return nil
	}
	return []permissions.Rows{w}
}

// nextRow is where the row after the one at a position begins.
func nextRow(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// shared is the length of the rows with which both begin.
func shared(a, b []string) (n int) {
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		n += len(a[i])
	}
	return n
}

// lines are the rows of a text with their newlines.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if last := len(all) - 1; all[last] == "" {
		return all[:last]
	}
	return all
}

// Diff is an edit as people see it.
type Diff struct {
	Verb     string   // edit, write or delete
	Rows     []string // of a unified diff without the names of files; of a New file, its content
	Language string   // of Rows as a block of code; empty: none is known
	New      bool     // the file does not exist before
	Whole    bool     // Rows are the content that replaces whatever is there
	Unended  bool     // the content does not end with a newline
	Told     bool     // Rows, or New, depend on what the asker told of the file
	Space    bool     // only white space differs

	Added, Removed int
}

// Diff shows the edit of a file of which was is told, with everything that the input writes or replaces. If brief, only a few rows
// around each change are shown.
func (e Edit) Diff(was []permissions.Rows, brief bool) Diff {
	d := Diff{Verb: "edit", Language: "diff"}
	if e.whole {
		d.Verb = "write"
	}
	switch before, after, skipped, known := e.sides(was); {
	case e.patch != nil:
		d.Verb, d.Rows = e.patchVerb(), e.patch
	case known:
		d.Told = true
		d.Rows = e.hunks(before, after, skipped, brief, true)
	case len(was) == 1 && was[0] == (permissions.Rows{}) && (e.whole || len(e.swaps) == 1 && e.swaps[0].before == ""):
		d.New, d.Told, d.Whole = true, true, true
	case e.whole:
		d.Whole = true
	default:
		for _, s := range e.swaps {
			before := ""
			if s.before != "" {
				before = s.before + "\n"
			}
			d.Rows = append(d.Rows, e.hunks(before, s.after+"\n", 0, brief, false)...)
		}
	}
	if d.Whole {
		text := e.content
		if !e.whole {
			d.Verb, text = "write", e.swaps[0].after
		}
		d.Unended = text != "" && !strings.HasSuffix(text, "\n")
		for _, row := range lines(text) {
			d.Rows = append(d.Rows, strings.TrimSuffix(row, "\n"))
		}
		d.Added, d.Language = len(d.Rows), language(e.Path)
		return d
	}
	var sides [2]strings.Builder
	for _, row := range d.Rows {
		switch {
		case strings.HasPrefix(row, "+"):
			d.Added++
			sides[0].WriteString(row[1:])
		case strings.HasPrefix(row, "-"):
			d.Removed++
			sides[1].WriteString(row[1:])
		}
	}
	d.Space = d.Added+d.Removed > 0 && bare(sides[0].String()) == bare(sides[1].String())
	return d
}

// sides returns the part of the file that is known, before and after the edit, and how many rows precede it.
func (e Edit) sides(was []permissions.Rows) (before, after string, skipped int, known bool) {
	if len(was) != 1 || was[0].First < 1 {
		return "", "", 0, false
	}
	w := was[0]
	if e.whole {
		rows := lines(e.content)
		if w.After > len(rows) || w.First-1 > len(rows)-w.After { // their sum may be too large for a number
			return "", "", 0, false
		}
		before = strings.Join(rows[:w.First-1], "") + w.Text + strings.Join(rows[len(rows)-w.After:], "")
		return before, e.content, 0, true
	}
	after, _, _, known = e.apply(w.Text)
	if !known {
		e, w.Text = e.unix(w.Text)
		after, _, _, known = e.apply(w.Text)
	}
	return w.Text, after, w.First - 1, known
}

// hunks are the rows of a unified diff. Unless brief, what is replaced and what replaces it is shown whole, even where it stays the same.
func (e Edit) hunks(before, after string, skipped int, brief, numbered bool) (rows []string) {
	most := around
	switch {
	case brief:
	case e.whole || !numbered:
		most = strings.Count(before, "\n") + 1
	default:
		for _, s := range e.swaps {
			most = max(most, strings.Count(s.before, "\n")+1, strings.Count(s.after, "\n")+1)
		}
	}
	u, err := udiff.ToUnifiedDiff("", "", before, rowEdits(before, after), most)
	if err != nil || len(u.Hunks) == 0 { // an error is a bug in the library; show everything then
		rows = []string{"@@"}
		for _, side := range slices.Compact([]string{before, after}) {
			for _, row := range lines(side) {
				rows = append(rows, " "+strings.TrimSuffix(row, "\n"))
			}
		}
		return rows
	}
	for _, h := range u.Hunks {
		h.FromLine, h.ToLine = h.FromLine+skipped, h.ToLine+skipped
	}
	rows = strings.Split(strings.TrimSuffix(u.String(), "\n"), "\n")[2:] // without the names
	for i, row := range rows {
		if !numbered && strings.HasPrefix(row, "@@") {
			rows[i] = "@@"
		}
	}
	return rows
}

// rowEdits are the differing rows of two texts. The library stops looking for the shortest difference after a hundred rows, so it gets
// the parts between rows that both texts have once.
func rowEdits(before, after string) (all []udiff.Edit) {
	at, from, to := 0, 0, 0 // where the part begins in before, and in the rows of both
	a, b := lines(before), lines(after)
	for _, same := range append(anchors(a, b), [2]int{len(a), len(b)}) {
		old := strings.Join(a[from:same[0]], "")
		for _, e := range udiff.Lines(old, strings.Join(b[to:same[1]], "")) {
			all = append(all, udiff.Edit{Start: e.Start + at, End: e.End + at, New: e.New})
		}
		if at += len(old); same[0] < len(a) {
			at += len(a[same[0]])
		}
		from, to = same[0]+1, same[1]+1
	}
	return all
}

// anchors are the indices of rows that both lists have once, in the longest sequence that both have in the same order.
func anchors(a, b []string) (all [][2]int) {
	type count struct{ inA, inB, at int }
	rows := map[string]count{}
	for _, row := range a {
		c := rows[row]
		c.inA++
		rows[row] = c
	}
	for i, row := range b {
		c := rows[row]
		c.inB, c.at = c.inB+1, i
		rows[row] = c
	}
	type link struct {
		row  [2]int
		last *link
	}
	var ends []*link // of the best sequence of each length
	for i, row := range a {
		if c := rows[row]; c.inA == 1 && c.inB == 1 {
			n, _ := slices.BinarySearchFunc(ends, c.at, func(l *link, at int) int { return cmp.Compare(l.row[1], at) })
			next := &link{row: [2]int{i, c.at}}
			if n > 0 {
				next.last = ends[n-1]
			}
			if n == len(ends) {
				ends = append(ends, next)
			}
			ends[n] = next
		}
	}
	if len(ends) > 0 {
		for l := ends[len(ends)-1]; l != nil; l = l.last {
			all = append(all, l.row)
		}
	}
	slices.Reverse(all)
	return all
}

// Unified is a change of a text as a unified diff.
func Unified(name, before, after string) string {
	text, err := udiff.ToUnified(name, name, before, rowEdits(before, after), around)
	if err != nil { // a bug in the library; show everything then
		return "-" + before + "\n+" + after + "\n"
	}
	return text
}

// Replaces reports whether the edit is exactly this replacement in a file.
func (e Edit) Replaces(path, before, after string) bool {
	return e.Path == path && len(e.swaps) == 1 && e.swaps[0] == swap{before: before, after: after}
}

// Patches reports whether the edit is a patch between *** lines.
func (e Edit) Patches() bool { return e.patch != nil }

// patchVerb is what all parts of a patch do.
func (e Edit) patchVerb() (verb string) {
	verbs := map[string]string{"Add": "write", "Delete": "delete"}
	for _, row := range e.patch {
		switch one, _, found := header(row); {
		case !found:
		case verb != "" && verb != verbs[one], verbs[one] == "":
			return "edit"
		default:
			verb = verbs[one]
		}
	}
	return cmp.Or(verb, "edit")
}

// bare is a text without white space.
func bare(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return c
	}, text)
}

// languages are the endings of names for which chats know how to show the content. Other endings are somebody's own words.
var languages = strings.Fields("bash c cpp cs css go h html java js json jsx kt lua md php py rb rs sh sql swift toml ts tsx xml yaml yml")

func language(name string) string {
	if ending := strings.TrimPrefix(path.Ext(name), "."); slices.Contains(languages, ending) {
		return ending
	}
	return ""
}
