package card

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// maxFiles limits the files that a summary names.
	maxFiles = 3
	// maxTools limits the tools that it names.
	maxTools = 3
)

// change is what is done to one file.
type change struct {
	name           string
	added, removed int // lines
	whole          bool
}

// summary describes r at a glance, in at most six rows of our own: the number of calls, the files with their added and
// removed lines, the length of a command and of the details. It is computed from the action, never from what is said about
// it, except for a diff in the details, which is named as such. It is empty if the card says as much itself. Names are as rows of a card
// have them.
func summary(r permissions.Request, in i18n.Language) (rows []string) {
	calls := r.ToolCalls()
	if len(calls) > 1 {
		rows = append(rows, countCalls(calls, in))
	}
	var changes []change
	commands, longest := 0, 0
	for _, c := range calls {
		changes = append(changes, changesOf(c)...)
		if text, _, _, ok := command(c, r.Reason); ok && strings.Contains(text, "\n") {
			commands++
			longest = max(longest, len(Lines(text)))
		}
	}
	said := diffs(r.Details)
	rows = append(rows, countFiles(changes, in)...)
	if len(changes) == 0 {
		rows = append(rows, countFiles(said, in)...)
	}
	if commands == 1 {
		rows = append(rows, in.Sprintf("a command of %d rows", longest))
	} else if commands > 1 {
		rows = append(rows, in.Sprintf("%d commands of up to %d rows", commands, longest))
	}
	if n := len(Lines(r.Details)); n > 1 {
		row := in.Sprintf("details of %d rows, %d bytes", n, len(r.Details))
		if len(said) > 0 {
			row = in.Sprintf("%s, with a diff of %s", row, total(said, in))
		}
		rows = append(rows, row)
	}
	return rows
}

// countCalls counts the calls by tool.
func countCalls(calls []permissions.Call, in i18n.Language) string {
	var tools []string
	times := map[string]int{}
	for _, c := range calls {
		if times[c.Tool]++; times[c.Tool] == 1 {
			tools = append(tools, c.Tool)
		}
	}
	slices.SortStableFunc(tools, func(a, b string) int { return times[b] - times[a] })
	row := in.Sprintf("%d calls:", len(calls))
	for i, tool := range tools {
		if i == maxTools {
			return row + in.Sprintf(" and %d more tools", len(tools)-i)
		}
		row += fmt.Sprintf(" %s ×%d", Name(tool), times[tool])
	}
	return row
}

// countFiles lists the first files and the total.
func countFiles(changes []change, in i18n.Language) (rows []string) {
	if len(changes) > 1 {
		row := total(changes, in)
		if len(changes) > maxFiles {
			row = in.Sprintf("%s, the first %d:", row, maxFiles)
		}
		rows = append(rows, row)
	}
	for _, c := range changes[:min(len(changes), maxFiles)] {
		row := in.Sprintf("%s in %s", lines(c), Name(c.name))
		if c.whole {
			row = in.Sprintf("%s, written whole", row)
		}
		rows = append(rows, row)
	}
	return rows
}

func total(changes []change, in i18n.Language) string {
	var sum change
	var names []string
	for _, c := range changes {
		sum.added, sum.removed = sum.added+c.added, sum.removed+c.removed
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return in.Plural(len(names), "%d file, %s|%d files, %s", len(names), lines(sum))
}

func lines(c change) string {
	if c.removed == 0 && c.whole {
		return fmt.Sprintf("+%d", c.added)
	}
	return fmt.Sprintf("+%d −%d", c.added, c.removed)
}

// pathMembers are the members by which tools name a file.
var pathMembers = []string{"path", "file_path", "filePath", "absolute_path", "filename", "file", "notebook_path"}

// changesOf returns a call's changes to files, as far as its input states them in a common form.
func changesOf(c permissions.Call) []change {
	if e, ok := edits.Of(c.Tool, c.Input); ok && e.Files == 1 {
		d := e.Diff(c.Rows, true)
		return []change{{name: e.Path, added: d.Added, removed: d.Removed, whole: d.Whole}}
	}
	var members map[string]any
	if json.Unmarshal(c.Input, &members) != nil {
		var text string
		if json.Unmarshal(c.Input, &text) != nil {
			return nil
		}
		return diffs(text)
	}
	var all []change
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if text, ok := members[name].(string); ok {
			all = append(all, diffs(text)...)
		}
	}
	return all
}

// hunk matches the start of a hunk of a unified diff, with its line counts before and after.
var hunk = lazily(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// diffs returns the files of the unified diffs, and of the patches between *** lines, in text. Lines count up to the stated
// end of their hunk.
func diffs(text string) (all []change) {
	if !strings.Contains(text, "@@") && !strings.Contains(text, "*** ") {
		return nil
	}
	lines := strings.Split(text, "\n")
	headed := false // the last file has a name from a git header and no lines yet
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "diff --git "):
			name := ""
			if at := strings.LastIndex(line, " b/"); at >= 0 {
				name = line[at+len(" b/"):]
			}
			all, headed = append(all, change{name: name}), true
		case strings.HasPrefix(line, "--- ") && i+2 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ") &&
			hunk().MatchString(lines[i+2]):
			if !headed {
				all = append(all, change{})
			}
			all[len(all)-1].name, headed = fileName(line, lines[i+1]), false
			i++
		case strings.HasPrefix(line, "@@ ") && len(all) > 0:
			i += all[len(all)-1].hunk(line, lines[i+1:])
		case patched(line) != "":
			all, headed = append(all, change{name: patched(line)}), false
			i += all[len(all)-1].patch(lines[i+1:])
		}
	}
	return all
}

// fileName is the file's name in its two header lines: the new one, unless the file is deleted.
func fileName(before, after string) string {
	name := strings.TrimPrefix(after, "+++ ")
	if strings.HasPrefix(name, "/dev/null") {
		name = strings.TrimPrefix(before, "--- ")
	}
	name, _, _ = strings.Cut(name, "\t")
	return strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")
}

// hunk counts the lines of a hunk and returns their number.
func (c *change) hunk(head string, lines []string) (n int) {
	m := hunk().FindStringSubmatch(head)
	if m == nil {
		return 0
	}
	before, after := count(m[1]), count(m[2])
	for ; n < len(lines) && (before > 0 || after > 0); n++ {
		switch line := lines[n]; {
		case strings.HasPrefix(line, "-"):
			before--
			c.removed++
		case strings.HasPrefix(line, "+"):
			after--
			c.added++
		case line == "", line[0] == ' ':
			before--
			after--
		case line[0] != '\\': // such as: \ No newline at end of file
			return n
		}
	}
	return n
}

// count is a line count in a hunk's header, where none means one.
func count(digits string) int {
	if digits == "" {
		return 1
	}
	n, _ := strconv.Atoi(digits)
	return n
}

// patched is the file's name in a line between ***, or empty.
func patched(line string) string {
	for _, verb := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
		if name, ok := strings.CutPrefix(line, verb); ok {
			return name
		}
	}
	return ""
}

// patch counts the lines up to the next *** and returns their number.
func (c *change) patch(lines []string) (n int) {
	for ; n < len(lines) && !strings.HasPrefix(lines[n], "*** "); n++ {
		switch {
		case strings.HasPrefix(lines[n], "-"):
			c.removed++
		case strings.HasPrefix(lines[n], "+"):
			c.added++
		}
	}
	return n
}
