package card

import (
	"regexp"
	"strconv"
	"strings"
)

// hunk begins a part of a unified diff, with how many lines there are before and after.
var hunk = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// diffs are the files of the unified diffs, and of the patches between *** lines, in text. Lines count as far as a hunk
// says that it reaches.
func diffs(text string) (all []change) {
	if !strings.Contains(text, "@@") && !strings.Contains(text, "*** ") {
		return nil
	}
	lines := strings.Split(text, "\n")
	headed := false // the last file has its name from a git header, and no lines yet
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "diff --git "):
			_, name, _ := cutLast(line, " b/")
			all, headed = append(all, change{name: name}), true
		case strings.HasPrefix(line, "--- ") && i+2 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ") &&
			hunk.MatchString(lines[i+2]):
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

// fileName is the name in the two lines that begin a file: the new one, unless the file is deleted.
func fileName(before, after string) string {
	name := strings.TrimPrefix(after, "+++ ")
	if strings.HasPrefix(name, "/dev/null") {
		name = strings.TrimPrefix(before, "--- ")
	}
	name, _, _ = strings.Cut(name, "\t")
	return strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")
}

// hunk counts the lines of a hunk and returns how many there are.
func (c *change) hunk(head string, lines []string) (n int) {
	m := hunk.FindStringSubmatch(head)
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
		case line[0] != '\\': // as in: \ No newline at end of file
			return n
		}
	}
	return n
}

// count is a number of lines in a hunk's head, where none means one.
func count(digits string) int {
	if digits == "" {
		return 1
	}
	n, _ := strconv.Atoi(digits)
	return n
}

// patched is the file that a line between *** begins.
func patched(line string) string {
	for _, verb := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
		if name, ok := strings.CutPrefix(line, verb); ok {
			return name
		}
	}
	return ""
}

// patch counts the lines up to the next *** and returns how many there are.
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

// edit counts the lines in which two texts differ: without those that they begin and end with alike.
func edit(before, after string) change {
	a, b := split(before), split(after)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return change{added: len(b), removed: len(a)}
}

// countLines is how many lines a file of that content has.
func countLines(content string) int { return len(split(content)) }

// split is text in lines; a newline at the end begins no other.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}
