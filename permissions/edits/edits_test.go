package edits_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
	"github.com/daycared/daycared/permissions/edits/editstest"
)

// call is a call of a tool, and what it does to a file.
type call struct {
	tool  string
	input map[string]any
	run   func(file string) (string, bool)
}

func replacing(old, fresh string, every bool) func(string) (string, bool) {
	return func(file string) (string, bool) {
		switch n := strings.Count(file, old); {
		case old == "" && file == "":
			return fresh, true
		case old == "" || n == 0 || n > 1 && !every:
			return "", false
		}
		return strings.ReplaceAll(file, old, fresh), true
	}
}

// calls are the same replacement in each dialect, and the same new content.
func calls(old, fresh, content string, every bool) []call {
	swap, write := replacing(old, fresh, every), func(string) (string, bool) { return content, true }
	two := func(file string) (string, bool) {
		file, ok := replacing(old, fresh, every)(file)
		if !ok {
			return "", false
		}
		return replacing("b\n", "B\n", true)(file)
	}
	return []call{
		{"Edit", map[string]any{"file_path": "/f", "old_string": old, "new_string": fresh, "replace_all": every}, swap},
		{"replace", map[string]any{"file_path": "/f", "old_string": old, "new_string": fresh, "allow_multiple": every}, swap},
		{"edit", map[string]any{"filePath": "/f", "oldString": old, "newString": fresh, "replaceAll": every}, swap},
		{"edit_file", map[string]any{"path": "/f", "old_text": old, "new_text": fresh, "replace_all": every}, swap},
		{"MultiEdit", map[string]any{"file_path": "/f", "edits": []any{
			map[string]any{"old_string": old, "new_string": fresh, "replace_all": every},
			map[string]any{"old_string": "b\n", "new_string": "B\n", "replace_all": true},
		}}, two},
		{"Write", map[string]any{"file_path": "/f", "content": content}, write},
		{"write_file", map[string]any{"path": "/f", "content": content}, write},
		{"write", map[string]any{"filePath": "/f", "content": content}, write},
		{"create", map[string]any{"path": "/f", "file_text": content}, write},
		{"create_file", map[string]any{"filePath": "/f", "content": content}, write},
		{"Write", map[string]any{"file_path": "/f", "contents": content}, write},
		{"str_replace_editor", map[string]any{"command": "create", "path": "/f", "file_text": content}, write},
		{"str_replace_editor", map[string]any{
			"command": "str_replace", "path": "/f", "old_str": old, "new_str": fresh,
		}, replacing(old, fresh, false)},
		{"edit", map[string]any{"path": "/f", "old_str": old, "new_str": fresh}, replacing(old, fresh, false)},
		{"acp_edit", map[string]any{"file_path": "/f", "old_string": old, "new_string": fresh}, replacing(old, fresh, false)},
		{"acp_edit", map[string]any{"path": "/f", "content": content}, write},
		{"acp_edit", map[string]any{"filePath": "/f", "content": content}, write},
		{"multi_replace_string_in_file", map[string]any{"replacements": []any{
			map[string]any{"filePath": "/f", "oldString": old, "newString": fresh},
		}}, replacing(old, fresh, false)},
		{"StrReplace", map[string]any{"path": "/f", "old_string": old, "new_string": fresh, "replace_all": every}, swap},
		{"replace_string_in_file", map[string]any{"filePath": "/f", "oldString": old, "newString": fresh}, replacing(old, fresh, false)},
	}
}

func (c call) edit(t *testing.T) edits.Edit {
	t.Helper()
	raw, err := json.Marshal(c.input)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := edits.Of(c.tool, raw)
	if rest := string(e.Rest); !ok || e.Path != "/f" || rest != "" && (c.tool != "MultiEdit" || rest != `{"replace_all":[false,true]}`) {
		t.Fatalf("%s %s is read as %#v", c.tool, raw, e)
	}
	return e
}

func text(g *rand.Rand, most int) string {
	var b strings.Builder
	for range g.IntN(most) {
		b.WriteString([]string{
			"a", "b", "\n", "\n", "c\n", "\tx := 1\n", "b\n", "é 👨‍👩‍👧\n", "--- a\n", "+++ b\n", "@@ -1 +1 @@\n", "  ",
		}[g.IntN(12)])
	}
	return b.String()
}

// part returns a piece of a text.
func part(g *rand.Rand, text string) string {
	all := []rune(text)
	from := g.IntN(len(all) + 1)
	return string(all[from : from+g.IntN(len(all)-from+1)])
}

// rewritten is a text with another middle.
func rewritten(text, middle string) string {
	all := []rune(text)
	return string(all[:len(all)/3]) + middle + string(all[len(all)/2:])
}

// TestTheDiffGivesTheFile: whatever an edit of a dialect does to a file, patch does with the rows that are shown.
func TestTheDiffGivesTheFile(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(1, 2))
	ran := map[string]int{}
	for range 1000 {
		file := text(g, 40)
		if g.IntN(4) == 0 {
			file = text(g, 400)
		}
		for _, c := range calls(part(g, file), part(g, text(g, 12)), rewritten(file, text(g, 9)), g.IntN(2) == 0) {
			want, runs := c.run(file)
			e := c.edit(t)
			was := e.Around(file, true)
			if !runs {
				if was != nil {
					t.Fatalf("%s %v does not fit %q, and rows of it are told: %v", c.tool, c.input, file, was)
				}
				continue
			}
			ran[c.tool]++
			for _, brief := range []bool{true, false} {
				d := e.Diff(was, brief)
				if !d.Told || d.Whole {
					t.Fatalf("%s %v of %q is no diff of the file: %q", c.tool, c.input, file, d.Rows)
				}
				rows := d.Rows
				if want == file {
					rows = nil
				}
				got, err := editstest.Apply(file, rows)
				if err != nil || got != want {
					t.Fatalf("%s %q of %q: the diff gives %q, %v, not %q: %q", c.tool, fmt.Sprint(c.input), file, got, err, want, rows)
				}
			}
			if strings.Count(was[0].Text, "\n") > strings.Count(file, "\n")+1 {
				t.Fatalf("more is told than there is: %v", was)
			}
		}
	}
	for _, c := range calls("a", "b", "", false) {
		if ran[c.tool] < 200 {
			t.Errorf("%s was tried %d times only", c.tool, ran[c.tool])
		}
	}
}

// TestWhatIsToldHidesNothing: whatever rows somebody makes up, the diff has every row that the input writes.
func TestWhatIsToldHidesNothing(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		old, fresh := text(g, 12), text(g, 12)
		for _, c := range calls(old, fresh, fresh, g.IntN(2) == 0) {
			told := []permissions.Rows{{First: g.IntN(9), Text: text(g, 30) + old + text(g, 30), After: g.IntN(5)}}
			if g.IntN(3) == 0 {
				told[0].Text = text(g, 30) + fresh + text(g, 30)
			}
			d := c.edit(t).Diff(told, false)
			for row := range strings.Lines(fresh) {
				row = strings.TrimSpace(row)
				if strings.Contains(row, "b") { // the second of several edits changes it
					continue
				}
				if !slices.ContainsFunc(d.Rows, func(shown string) bool { return strings.Contains(shown, row) }) {
					t.Fatalf("%s %q with %v does not show %q: %q", c.tool, fmt.Sprint(c.input), told, row, d.Rows)
				}
			}
		}
	}
}

// TestWithoutTheFileItIsTheReplacement: where nothing is known of the file, all rows of both texts are shown, and no numbers.
func TestWithoutTheFileItIsTheReplacement(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		old, fresh := text(g, 30), text(g, 30)
		d := calls(old, fresh, fresh, false)[0].edit(t).Diff(nil, false)
		var before, after []string
		for _, row := range d.Rows {
			switch row[0] {
			case ' ':
				before, after = append(before, row[1:]), append(after, row[1:])
			case '-':
				before = append(before, row[1:])
			case '+':
				after = append(after, row[1:])
			case '@': // each hunk begins with a row of its own
				if row != "@@" {
					t.Fatalf("a row with numbers, of a file that is not known: %q", row)
				}
			default:
				t.Fatalf("a row %q", row)
			}
		}
		if strings.Join(before, "\n") != old || strings.Join(after, "\n") != fresh || d.Told {
			t.Fatalf("%q to %q is shown as\n%s", old, fresh, strings.Join(d.Rows, "\n"))
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	const file = "package cart\n\nfunc Total() int {\n\tsum := 0\n\tfor {\n\t\tsum++\n\t}\n\treturn sum\n}\n"
	for _, c := range []struct {
		name, tool, input, file string
		told                    bool
		want                    edits.Diff
	}{
		{
			"an edit", "Edit", `{"file_path":"/s/cart.go","old_string":"sum := 0","new_string":"sum := 1"}`, file, true,
			edits.Diff{Verb: "edit", Language: "diff", Told: true, Added: 1, Removed: 1, Rows: []string{
				"@@ -1,7 +1,7 @@", " package cart", " ", " func Total() int {", "-\tsum := 0", "+\tsum := 1", " \tfor {", " \t\tsum++", " \t}",
			}},
		},
		{
			"white space", "replace", `{"file_path":"/s/cart.go","old_string":"\t\tsum++","new_string":"\tsum++"}`, file, true,
			edits.Diff{Verb: "edit", Language: "diff", Told: true, Space: true, Added: 1, Removed: 1, Rows: []string{
				"@@ -3,7 +3,7 @@", " func Total() int {", " \tsum := 0", " \tfor {", "-\t\tsum++", "+\tsum++", " \t}", " \treturn sum", " }",
			}},
		},
		{
			"a new file", "Write", `{"file_path":"/s/a.go","content":"package a\n\nvar x int"}`, "", true,
			edits.Diff{Verb: "write", Language: "go", New: true, Whole: true, Told: true, Unended: true, Added: 3,
				Rows: []string{"package a", "", "var x int"}},
		},
		{
			"a new file by an edit", "Edit", `{"file_path":"/s/a.md","old_string":"","new_string":"# A\n"}`, "", true,
			edits.Diff{Verb: "write", Language: "md", New: true, Whole: true, Told: true, Added: 1, Rows: []string{"# A"}},
		},
		{
			"a whole file of which nothing is known", "write_file", `{"file_path":"/s/a.exe","content":"x\n","mode":"0755"}`, "", false,
			edits.Diff{Verb: "write", Whole: true, Added: 1, Rows: []string{"x"}},
		},
		{
			"a patch", "apply_patch", `{"command":"*** Begin Patch\n*** Add File: a.go\n+x\n*** End Patch"}`, "", false,
			edits.Diff{Verb: "write", Language: "diff", Added: 1, Rows: []string{
				"*** Begin Patch", "*** Add File: a.go", "+x", "*** End Patch",
			}},
		},
		{
			"a patch that deletes", "apply_patch", `{"input":"*** Begin Patch\n*** Delete File: a.go\n*** End Patch"}`, "", false,
			edits.Diff{Verb: "delete", Language: "diff", Rows: []string{"*** Begin Patch", "*** Delete File: a.go", "*** End Patch"}},
		},
		{
			"CRLF", "Edit", `{"file_path":"/s/a","old_string":"a\nb","new_string":"a\nB"}`, "a\r\nb\r\n", true,
			edits.Diff{Verb: "edit", Language: "diff", Told: true, Added: 1, Removed: 1, Rows: []string{"@@ -1,2 +1,2 @@", " a", "-b", "+B"}},
		},
		{
			"one row of CRLF becomes two", "edit_file", `{"path":"/s/a","old_text":"a","new_text":"1\n2"}`, "a\r\nb\r\n", true,
			edits.Diff{Verb: "edit", Language: "diff", Told: true, Added: 2, Removed: 1, Rows: []string{"@@ -1,2 +1,3 @@", "-a", "+1", "+2", " b"}},
		},
		{
			"CRLF, whole", "Write", `{"file_path":"/s/a","content":"a\r\nB\r\n"}`, "a\r\nb\r\n", true,
			edits.Diff{Verb: "write", Language: "diff", Told: true, Added: 1, Removed: 1, Rows: []string{
				"@@ -1,2 +1,2 @@", " a\r", "-b\r", "+B\r",
			}},
		},
		{
			"a file becomes empty", "Write", `{"file_path":"/s/a","content":""}`, "a\nb\n", true,
			edits.Diff{Verb: "write", Language: "diff", Told: true, Removed: 2, Rows: []string{"@@ -1,2 +0,0 @@", "-a", "-b"}},
		},
		{
			"a patch of two new files", "apply_patch", `{"input":"*** Begin Patch\n*** Add File: a\n+x\n*** Add File: b\n+y\n"}`, "", false,
			edits.Diff{Verb: "write", Language: "diff", Added: 2, Rows: []string{
				"*** Begin Patch", "*** Add File: a", "+x", "*** Add File: b", "+y", "",
			}},
		},
		{
			"a patch, of a file that is known", "apply_patch", `{"input":"*** Begin Patch\n*** Delete File: a\n"}`, "a\n", true,
			edits.Diff{Verb: "delete", Language: "diff", Rows: []string{"*** Begin Patch", "*** Delete File: a", ""}},
		},
		{
			"a patch that adds and deletes", "apply_patch", `{"input":"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n"}`, "", false,
			edits.Diff{Verb: "edit", Language: "diff", Added: 1, Rows: []string{
				"*** Begin Patch", "*** Add File: a", "+x", "*** Delete File: b", "",
			}},
		},
		{
			"a patch that updates", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n+x\n"}`, "", false,
			edits.Diff{Verb: "edit", Language: "diff", Added: 1, Rows: []string{"*** Begin Patch", "*** Update File: a", "+x", ""}},
		},
		{
			"a cell of a notebook", "NotebookEdit", `{"cell_id":"c7","edit_mode":"replace","new_source":"x = 1","notebook_path":"/s/a.ipynb"}`,
			"{}", true, edits.Diff{Verb: "edit", Language: "diff", Added: 1, Rows: []string{"@@", "+x = 1"}},
		},
		{
			"several without the file", "MultiEdit",
			`{"file_path":"/s/a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}`, "", false,
			edits.Diff{Verb: "edit", Language: "diff", Added: 2, Removed: 2, Rows: []string{"@@", "-a", "+b", "@@", "-c", "+d"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, ok := edits.Of(c.tool, json.RawMessage(c.input))
			if !ok {
				t.Fatal("it is no edit")
			}
			var was []permissions.Rows
			if c.told {
				was = e.Around(c.file, c.file != "")
			}
			got := e.Diff(was, false)
			if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", c.want) {
				t.Errorf("got  %#v\nwant %#v", got, c.want)
			}
		})
	}
}

// TestWhatAnEditChanges: the files, the occurrences and the members that a diff does not show are those of the input.
func TestWhatAnEditChanges(t *testing.T) {
	t.Parallel()
	const two = "*** Begin Patch\\n*** Update File: a\\n+x\\n*** Delete File: b\\n"
	for _, c := range []struct {
		tool, input, path, rest string
		files                   int
		every, patches          bool
	}{
		{"Write", `{"file_path":"/a","content":"x"}`, "/a", "", 1, false, false},
		{"Write", `{"file_path":"/a","content":"x","b":{"z":"<","y":1}}`, "/a", `{"b":{"y":1,"z":"<"}}`, 1, false, false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y"}`, "/a", "", 1, false, false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","replace_all":true}`, "/a", "", 1, true, false},
		{"apply_patch", `{"input":"` + two + `"}`, "a", "", 2, false, true},
		{"apply_patch", `{"input":"` + two + `","also":1}`, "a", `{"also":1}`, 2, false, true},
	} {
		e, ok := edits.Of(c.tool, json.RawMessage(c.input))
		if !ok || e.Path != c.path || string(e.Rest) != c.rest || e.Files != c.files || e.Every != c.every || e.Patches() != c.patches {
			t.Errorf("%s %s is read as %+v, %t", c.tool, c.input, e, ok)
		}
	}
}

// TestReplacesIsExact: an edit is not taken for one of another file, of another text, or of more.
func TestReplacesIsExact(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]bool{
		`{"file_path":"/a","old_string":"x","new_string":"y"}`:                                                 true,
		`{"file_path":"/b","old_string":"x","new_string":"y"}`:                                                 false,
		`{"file_path":"/a","old_string":"x","new_string":"z"}`:                                                 false,
		`{"file_path":"/a","old_string":"z","new_string":"y"}`:                                                 false,
		`{"file_path":"/a","old_string":"x","new_string":"y","replace_all":true}`:                              false,
		`{"file_path":"/a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"c","new_string":"d"}]}`: false,
		`{"file_path":"/a","edits":[{"old_string":"x","new_string":"y"}]}`:                                     true,
	} {
		if e, ok := edits.Of("MultiEdit", json.RawMessage(input)); !ok || e.Replaces("/a", "x", "y") != want {
			t.Errorf("%s replaces x by y in /a: %t, %t", input, !want, ok)
		}
	}
}

// TestAroundTellsThreeRows: what is told of a file are the rows that change, and three on each side, empty ones too.
func TestAroundTellsThreeRows(t *testing.T) {
	t.Parallel()
	const file = "1\n\n\n\nchange\n\n\n\n9\n"
	for name, c := range map[string]struct {
		tool, input, file string
		want              permissions.Rows
	}{
		"a replacement": {"Edit", `{"file_path":"/a","old_string":"change","new_string":"x"}`, file,
			permissions.Rows{First: 2, Text: file[2 : len(file)-2]}},
		"a whole file": {"Write", `{"file_path":"/a","content":"1\n\n\n\nx\n\n\n\n9\n"}`, file,
			permissions.Rows{First: 2, Text: file[2 : len(file)-2], After: 1}},
		"replacements that leave its length": {
			"Edit", `{"file_path":"/a","old_string":"a","new_string":"b","replace_all":true}`, strings.Repeat("a", permissions.MaxRows),
			permissions.Rows{First: 1, Text: strings.Repeat("a", permissions.MaxRows)},
		},
		"more than may be told": {
			"Edit", `{"file_path":"/a","old_string":"c","new_string":"b"}`, strings.Repeat("a", permissions.MaxRows) + "c", permissions.Rows{},
		},
	} {
		e, ok := edits.Of(c.tool, json.RawMessage(c.input))
		var want []permissions.Rows
		if c.want.First > 0 {
			want = []permissions.Rows{c.want}
		}
		if got := e.Around(c.file, true); !ok || !slices.Equal(got, want) {
			t.Errorf("of %s %.200q is told", name, fmt.Sprint(got))
		}
	}
}

// TestALongDiffIsTheShortest: a few rows that differ in a long file are shown as those rows, and nothing that both have.
func TestALongDiffIsTheShortest(t *testing.T) {
	t.Parallel()
	var before, after []string
	for i := range 2000 {
		before = append(before, fmt.Sprintln("row", i))
		if i%7 == 0 {
			before = append(before, fmt.Sprintln("old", i))
			after = append(after, fmt.Sprintln("new", i*i))
		}
		after = append(after, fmt.Sprintln("row", i))
	}
	input, err := json.Marshal(map[string]string{"file_path": "/a", "content": strings.Join(after, "")})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := edits.Of("Write", input)
	if d := e.Diff(e.Around(strings.Join(before, ""), true), true); !d.Told || d.Added != 286 || d.Removed != 286 {
		t.Errorf("%d rows are added and %d removed, not 286 and 286", d.Added, d.Removed)
	}
}

// TestWhatIsReplacedIsShownWhole: the last row of what is replaced is shown where rows before it are told that are like those that go.
func TestWhatIsReplacedIsShownWhole(t *testing.T) {
	t.Parallel()
	e, _ := edits.Of("Edit", json.RawMessage(`{"file_path":"/a","old_string":"a\na\na\na\nb","new_string":"b"}`))
	d := e.Diff([]permissions.Rows{{First: 1, Text: strings.Repeat("a\n", 8) + "b\n"}}, false)
	if want := []string{"@@ -1,9 +1,5 @@", "-a", "-a", "-a", "-a", " a", " a", " a", " a", " b"}; !slices.Equal(d.Rows, want) {
		t.Errorf("got  %q\nwant %q", d.Rows, want)
	}
	e, _ = edits.Of("Edit", json.RawMessage(`{"file_path":"/a","old_string":"b","new_string":"a\na\na\na\nb"}`))
	d = e.Diff([]permissions.Rows{{First: 1, Text: strings.Repeat("a\n", 4) + "b\n"}}, false)
	if want := []string{"@@ -1,5 +1,9 @@", "+a", "+a", "+a", "+a", " a", " a", " a", " a", " b"}; !slices.Equal(d.Rows, want) {
		t.Errorf("got  %q\nwant %q", d.Rows, want)
	}
}

func TestUnified(t *testing.T) {
	t.Parallel()
	const want = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
	if got := edits.Unified("a", "1\n2\n", "1\n3\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOnlyKnownToolsEdit: a tool that is called otherwise, or an input with more than a form has, is not taken for an edit.
func TestOnlyKnownToolsEdit(t *testing.T) {
	t.Parallel()
	for tool, input := range map[string]string{
		"mcp__site__publish": `{"path":"/a","content":"x"}`,
		"Write":              `{"file_path":"/a","content":"x","contents":"y"}`,
		"write":              `{"file_path":"/a"}`,
		"Edit":               `{"file_path":"/a","old_string":"x"}`,
		"edit":               `{"file_path":"/a","path":"/b","old_string":"x","new_string":"y"}`,
		"MultiEdit":          `{"file_path":"/a","edits":[{"old_string":"a","new_string":"b","also":1}]}`,
		"multiedit":          `{"file_path":"/a","edits":[]}`,
		"apply_patch":        `{"command":"rm -rf /"}`,
		"replace":            `[]`,
		"str_replace_editor": `{"command":"insert","path":"/a","insert_line":1,"new_str":"x"}`,
	} {
		if e, ok := edits.Of(tool, json.RawMessage(input)); ok {
			t.Errorf("%s %s is an edit: %#v", tool, input, e)
		}
	}
	e, ok := edits.Of("write_file", json.RawMessage(`{"content":"x","mode":"0777","path":"/a"}`))
	if !ok || string(e.Rest) != `{"mode":"0777"}` {
		t.Errorf("what is left is %s, %t", e.Rest, ok)
	}
}

// TestRowsThatNoFileHas: H/whatever an asker says of the file that it replaces, the edit is shown.
func TestRowsThatNoFileHas(t *testing.T) {
	e, _ := edits.Of("Write", json.RawMessage(`{"file_path":"/a","content":"a\n"}`))
	for _, w := range []permissions.Rows{
		{First: 1<<62 + 1, Text: "a\n", After: 1 << 62}, {First: math.MaxInt, After: 1}, {First: 1, After: math.MaxInt},
		{First: 3}, {First: 2, After: 1},
	} {
		if d := e.Diff([]permissions.Rows{w}, false); d.Told || !slices.Equal(d.Rows, []string{"a"}) {
			t.Errorf("of %+v, %q is shown", w, d.Rows)
		}
	}
}

// TestAnEditThatMakesMuchOfLittle: H/replacements of what others have put there multiply. Nothing is made of a file that would become far
// longer, by whoever reads or draws it; the edit is shown as it was asked. Of many replacements in a long file, the time is bounded.
func TestAnEditThatMakesMuchOfLittle(t *testing.T) {
	multiply := func(n int, before, after string) string {
		one, _ := json.Marshal(map[string]any{"old_string": before, "new_string": after, "replace_all": true})
		return `{"file_path":"/a","edits":[` + strings.TrimSuffix(strings.Repeat(string(one)+",", n), ",") + `]}`
	}
	for name, c := range map[string]struct{ input, file string }{
		"of a word":                   {multiply(6, "a", strings.Repeat("a", 20)), "a\n"},
		"in a long file":              {multiply(1, "a", strings.Repeat("b", 100)), strings.Repeat("a", 256<<10-1) + "\n"},
		"many of them in a long file": {multiply(800, "a", "a"), strings.Repeat("a\n", 4<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := edits.Of("MultiEdit", json.RawMessage(c.input))
			if !ok {
				t.Fatal("it is no edit")
			}
			if was := e.Around(c.file, true); was != nil {
				t.Errorf("%d parts of the file are shown", len(was))
			}
			if d := e.Diff([]permissions.Rows{{First: 1, Text: c.file}}, false); d.Told || len(d.Rows) == 0 {
				t.Errorf("it is applied, in %d rows", len(d.Rows))
			}
		})
	}
	for _, c := range []struct { // the bounds themselves
		input, file string
		fits        bool
	}{
		{multiply(1, "a", strings.Repeat("b", 1<<20+1)), "a\n", true},
		{multiply(1, "a", strings.Repeat("b", 1<<20+2)), "a\n", false},
		{multiply(64, "a", "a"), "a" + strings.Repeat("\n", 4<<20-1), true},
		{multiply(65, "a", "a"), "a" + strings.Repeat("\n", 4<<20-1), false},
	} {
		e, ok := edits.Of("MultiEdit", json.RawMessage(c.input))
		if was := e.Around(c.file, true); !ok || (was != nil) != c.fits {
			t.Errorf("an input of %d bytes fits a file of %d: %t", len(c.input), len(c.file), was != nil)
		}
	}
	e, _ := edits.Of("MultiEdit", json.RawMessage(multiply(1, "a", "b"))) // which makes it no longer
	if d := e.Diff([]permissions.Rows{{First: 1, Text: strings.Repeat("a", 600<<10)}}, false); !d.Told {
		t.Error("replacements that leave the length are not shown in the file")
	}
	e, _ = edits.Of("MultiEdit", json.RawMessage(multiply(3, "a", "aa")))
	if d := e.Diff([]permissions.Rows{{First: 1, Text: "a\n"}}, false); !d.Told || d.Rows[len(d.Rows)-1] != "+"+strings.Repeat("a", 8) {
		t.Errorf("of a few replacements it says %q", d.Rows)
	}
	if _, ok := edits.Of("MultiEdit", json.RawMessage(`{"file_path":"/a","edits":[{"edits":[{"old_string":"a","new_string":"b"}]}]}`)); ok {
		t.Error("edits in edits are an edit")
	}
}

// TestWhatIsNoKnownEditIsNone: what would be a diff of something else is none: an ACP edit with more than a path and a content, which
// may append, and replacements in several files. What each replacement says is kept.
func TestWhatIsNoKnownEditIsNone(t *testing.T) {
	for input, tool := range map[string]string{
		`{"path":"/f","content":"x","mode":"append"}`: "acp_edit",
		`{"content":"x","file_text":"y"}`:             "acp_edit",
		`{"replacements":[{"filePath":"/f","oldString":"a","newString":"b"},` +
			`{"filePath":"/g","oldString":"a","newString":"b"}]}`: "multi_replace_string_in_file",
		`{"replacements":[]}`: "multi_replace_string_in_file",
		`{"replacements":[{"oldString":"a","newString":"b"}],"filePath":"/f"}`: "multi_replace_string_in_file",
		`{"replacements":[{"filePath":"/f","oldString":"a"}]}`:                 "multi_replace_string_in_file",
	} {
		if e, ok := edits.Of(tool, json.RawMessage(input)); ok {
			t.Errorf("%s %s is read as %#v", tool, input, e)
		}
	}
	e, ok := edits.Of("multi_replace_string_in_file", json.RawMessage(`{"explanation":"why","replacements":[`+
		`{"filePath":"/f","oldString":"a","newString":"b","explanation":"one"},{"filePath":"/f","oldString":"c","newString":"d"}]}`))
	if d := e.Diff(nil, false); !ok || e.Path != "/f" || d.Added != 2 || string(e.Rest) != `{"explanation":"why","explanations":["one"]}` {
		t.Errorf("it is read as %#v", e)
	}
}
