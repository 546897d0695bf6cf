package card

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

const (
	// mostFiles is how many files a summary names.
	mostFiles = 3
	// mostTools is how many tools it names.
	mostTools = 3
)

// change is what is done to one file.
type change struct {
	name           string
	added, removed int // lines
	bytes          int // of a file that is written whole
	whole          bool
}

// Summary is what r is about at a glance, in at most six rows of our own: how many calls, which files with how many
// lines more and less, how long a command and the details are. It is computed from what is asked, never from what is
// said about it, except for a diff in the details, which is named as such. Empty, when the card says as much itself.
func Summary(r permissions.Request) (rows []string) {
	calls := r.ToolCalls()
	if len(calls) > 1 {
		rows = append(rows, countCalls(calls))
	}
	var changes []change
	commands, longest := 0, 0
	for _, c := range calls {
		changes = append(changes, changesOf(c)...)
		if text, ok := command(c); ok && strings.Contains(text, "\n") {
			commands++
			longest = max(longest, len(Lines(text)))
		}
	}
	said := diffs(r.Details)
	rows = append(rows, countFiles(changes)...)
	if len(changes) == 0 {
		rows = append(rows, countFiles(said)...)
	}
	if commands == 1 {
		rows = append(rows, fmt.Sprintf("a command of %d rows", longest))
	} else if commands > 1 {
		rows = append(rows, fmt.Sprintf("%d commands of up to %d rows", commands, longest))
	}
	if n := len(Lines(r.Details)); n > 1 {
		row := fmt.Sprintf("details of %d rows, %d bytes", n, len(r.Details))
		if len(said) > 0 {
			row += ", with a diff of " + total(said)
		}
		rows = append(rows, row)
	}
	return rows
}

// countCalls is how many calls there are of which tools.
func countCalls(calls []permissions.Call) string {
	var tools []string
	times := map[string]int{}
	for _, c := range calls {
		if times[c.Tool]++; times[c.Tool] == 1 {
			tools = append(tools, c.Tool)
		}
	}
	slices.SortStableFunc(tools, func(a, b string) int { return times[b] - times[a] })
	row := fmt.Sprintf("%d calls:", len(calls))
	for i, tool := range tools {
		if i == mostTools {
			return row + fmt.Sprintf(" and %d more tools", len(tools)-i)
		}
		row += fmt.Sprintf(" %s ×%d", named(brief(tool, mostName)), times[tool])
	}
	return row
}

// countFiles are the files, the first by name, and their sum.
func countFiles(changes []change) (rows []string) {
	if len(changes) > 1 {
		row := total(changes)
		if len(changes) > mostFiles {
			row += fmt.Sprintf(", the first %d:", mostFiles)
		}
		rows = append(rows, row)
	}
	for _, c := range changes[:min(len(changes), mostFiles)] {
		row := lines(c) + " in " + named(brief(c.name, mostName))
		if c.whole {
			row += ", written whole, " + plural(c.bytes, "byte")
		}
		rows = append(rows, row)
	}
	return rows
}

// total is how many files there are, and their lines together.
func total(changes []change) string {
	var sum change
	var names []string
	for _, c := range changes {
		sum.added, sum.removed = sum.added+c.added, sum.removed+c.removed
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return plural(len(names), "file") + ", " + lines(sum)
}

func lines(c change) string {
	if c.removed == 0 && c.whole {
		return fmt.Sprintf("+%d", c.added)
	}
	return fmt.Sprintf("+%d −%d", c.added, c.removed)
}

func plural(n int, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// The members by which tools name a file, what is written to it, and what replaces what in it.
var (
	pathMembers    = []string{"path", "file_path", "filename", "file", "notebook_path"}
	contentMembers = []string{"content", "contents", "file_text", "text"}
	editMembers    = [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"old_text", "new_text"}, {"oldText", "newText"}}
)

// changesOf are what a call does to files, as far as its input says so in a way that many tools share.
func changesOf(c permissions.Call) []change {
	var members map[string]any
	if json.Unmarshal(c.Input, &members) != nil {
		var text string
		if json.Unmarshal(c.Input, &text) != nil {
			return nil
		}
		return diffs(text)
	}
	if path, ok := member(members, pathMembers); ok {
		if content, ok := member(members, contentMembers); ok {
			return []change{{name: path, added: countLines(content), bytes: len(content), whole: true}}
		}
		if edited, ok := edits(members); ok {
			edited.name = path
			return []change{edited}
		}
	}
	var all []change
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if text, ok := members[name].(string); ok {
			all = append(all, diffs(text)...)
		}
	}
	return all
}

func member(members map[string]any, names []string) (text string, ok bool) {
	for _, name := range names {
		if text, ok = members[name].(string); ok {
			return text, true
		}
	}
	return "", false
}

// edits are the replacements in an input, one or a list of them.
func edits(members map[string]any) (sum change, ok bool) {
	for _, names := range editMembers {
		before, was := members[names[0]].(string)
		after, is := members[names[1]].(string)
		if was && is {
			return edit(before, after), true
		}
	}
	list, _ := members["edits"].([]any)
	for _, e := range list {
		one, isObject := e.(map[string]any)
		c, found := edits(one)
		if !isObject || !found {
			return change{}, false
		}
		sum.added, sum.removed = sum.added+c.added, sum.removed+c.removed
	}
	return sum, len(list) > 0
}
