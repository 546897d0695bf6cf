package tools

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/schema/schematest"
)

// Every tool refuses an invalid input, in words for a model.
func TestStrictInputs(t *testing.T) {
	_, p := tempFiles(t, map[string]string{"ws/a": "x"})
	for _, c := range []struct{ tool, input, says string }{
		{"read_file", ``, `"path" is missing`},
		{"read_file", `null`, "must be a JSON object"},
		{"read_file", `[]`, "must be a JSON object"},
		{"read_file", `{"path":"a"} {}`, "no JSON object that can be read"},
		{"read_file", "\xef\xbb\xbf{}", "must be a JSON object"},
		{"read_file", `{"path":"a","path":"b"}`, "no JSON object that can be read"},
		{"read_file", "{\"path\":\"\xff\"}", "no JSON object that can be read"},
		{"read_file", `{"Path":"a"}`, `read_file has no "Path"; did you mean "path"?`},
		{"read_file", `{"path":"a","ofset":1}`, `read_file has no "ofset"; did you mean "offset"?`},
		{"read_file", `{"path":7}`, "path must be text"},
		{"read_file", `{"path":"a","limit":"7"}`, "limit must be a whole number"},
		{"read_file", `{"path":"a","limit":1e99}`, "limit must be a whole number"},
		{"list_files", `{"glob":"[a"}`, "is no glob"},
		{"search_files", `{}`, `"pattern" is missing`},
		{"search_files", `{"pattern":"(?<x"}`, "no regular expression"},
		{"search_files", `{"pattern":"x","glob":"{a"}`, "is no glob"},
		{"write_file", `{"path":"a"}`, `"content" is missing`},
		{"write_file", `{}`, `"path" is missing`},
		{"write_file", `{"path":"a","content":"x"}`, "holds exactly that already"},
		{"write_file", `{"path":"b","content":"` + strings.Repeat("x", maxFile+1) + `"}`, "at most 1048576 bytes, and has 1048577"},
		{"edit_file", `{"path":"a","old_text":"","new_text":"y"}`, "old_text is empty"},
		{"edit_file", `{"path":"a","old_text":"y","new_text":"y"}`, "are the same"},
		{"edit_file", `{"path":"a","old_text":"y","new_text":"z","replace":true}`,
			`edit_file has no "replace"; it takes path, old_text, new_text, replace_all`},
		{"run_command", `{"command":" "}`, "the command is empty"},
		{"run_command", `{"command":"a\u0000b"}`, "holds a NUL"},
		{"run_command", `{"command":"true","timeout":-1}`, "from 1 to 3600"},
		{"run_command", `{"command":"true","timeout":3601}`, "from 1 to 3600"},
		{"run_command", `{"command":"true","read":["/x/"]}`, "not clean"},
		{"run_command", `{"command":"true","cwd":"../x"}`, "leads out of the workspace"},
		{"fetch_url", `{"url":"ftp://example.org/"}`, `"ftp" is not http or https`},
		{"fetch_url", `{"url":"file:///etc/passwd"}`, `"file" is not http or https`},
		{"fetch_url", `{"url":"http://a:b@example.org/"}`, "must not hold a name or password"},
		{"fetch_url", `{"url":"http://token@example.org/"}`, "must not hold a name or password"},
		{"fetch_url", `{"url":"http:///x"}`, "names no host"},
		{"fetch_url", `{"url":"http://exa mple/"}`, "that is no URL"},
		{"fetch_url", `{"uri":"http://example.org/"}`, `did you mean "url"?`},
	} {
		t.Run(fmt.Sprintf("C4/%s %.60s", c.tool, c.input), func(t *testing.T) {
			one := tool(t, c.tool)
			_, err := one.Plan(t.Context(), p, json.RawMessage(c.input))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %.80s: %v, want %q", c.tool, c.input, err, c.says)
			}
			if c.says == "holds exactly that already" {
				return // not the input's fault
			}
			if o := one.Run(t.Context(), p, json.RawMessage(c.input), Plan{}); !o.Error {
				t.Errorf("%s %.80s runs: %s", c.tool, c.input, o.Text)
			}
		})
	}
}

// The schema that a model gets matches the decoder.
func TestSpecs(t *testing.T) {
	seen := map[string]bool{}
	for _, one := range All(sandbox.New(sandbox.Options{})) {
		spec := one.Spec()
		var s struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(spec.Schema, &s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "object" || len(s.Properties) == 0 || s.Additional == nil || *s.Additional || len(s.Required) > len(s.Properties) {
			t.Errorf("%s: %s", spec.Name, spec.Schema)
		}
		for name, p := range s.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s says nothing of %s", spec.Name, name)
			}
		}
		if spec.Description == "" || seen[spec.Name] {
			t.Errorf("%s: %q", spec.Name, spec.Description)
		}
		seen[spec.Name] = true
	}
	for _, name := range strings.Fields("read_file list_files search_files write_file edit_file run_command fetch_url web_search") {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

// A path is taken as written, or refused.
func TestPaths(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/a": "x", "ws/sub/b": "y", "out/c": "z"})
	for _, c := range []struct{ path, needs, says string }{
		{"a", "", ""}, {"sub/b", "", ""}, {".", "", ""}, {filepath.Join(dir, "ws/a"), "", ""},
		{filepath.Join(dir, "out/c"), "read access to " + filepath.Join(dir, "out/c"), ""},
		{dir, "read access to " + dir, ""}, {"/", "read access to /", ""},
		{"..", "", "leads out of the workspace"}, {"../out/c", "", "leads out of the workspace"},
		{"sub/../a", "", `write it as "a"`}, {"./a", "", `write it as "a"`}, {"sub//b", "", `write it as "sub/b"`}, {"", "", "path is empty"},
		{dir + "/ws/../out/c", "", "not clean"}, {"a ", "", "ends in space"}, {"a\n", "", "ends in space"}, {"a\nb", "", "control character"},
		{"a\x00b", "", "control character"}, {"cafe\u0301", "", "normal form C"}, {"~/x", "", ""}, {"$HOME", "", ""},
	} {
		t.Run("C3/"+c.path, func(t *testing.T) {
			got, err := typed[readInput]{readFile{}}.Plan(t.Context(), p, args{"path": c.path}.json(t))
			switch {
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%q: %v, want %q", c.path, err, c.says)
			case c.says == "" && (err != nil || needs(got) != c.needs):
				t.Errorf("%q needs %q (%v), want %q", c.path, needs(got), err, c.needs)
			}
		})
	}
	if _, err := (typed[readInput]{readFile{}}).Plan(t.Context(), Workspace{}, args{"path": "a"}.json(t)); err == nil {
		t.Error("a relative path without a workspace is taken")
	}
}

// TestNoToolSpeaksOfGo gives every tool every wrong input.
func TestNoToolSpeaksOfGo(t *testing.T) {
	_, p := tempFiles(t, map[string]string{"ws/x": "x"})
	for _, one := range All(sandbox.New(sandbox.Options{})) {
		for _, input := range schematest.Wrong(one.Spec().Schema) {
			_, err := one.Plan(t.Context(), p, json.RawMessage(input))
			if err == nil {
				continue
			}
			if leak := schematest.Leak(err.Error() + "\n" + one.Run(t.Context(), p, json.RawMessage(input), Plan{}).Text); leak != "" {
				t.Errorf("%s %.80s: %v speaks of %q", one.Spec().Name, input, err, leak)
			}
		}
	}
}
