// Package schematest finds Go's own words in texts for models, and generates invalid inputs of a tool.
package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// gopher matches Go's own words.
var gopher = regexp.MustCompile(`json: |jsontext: |\bGo\b|unmarshal|context (?:canceled|deadline)|strconv|reflect|<nil>|` +
	`\[\]\w|\b[a-z]+\.[a-z]+Input\b|EOF`)

// Leak returns the part of a text that is about Go; empty: none.
func Leak(text string) string { return gopher.FindString(text) }

// Wrong returns inputs that a schema does not allow, each with one fault, and a few valid ones.
func Wrong(schema []byte) (all []string) {
	var s struct {
		Properties map[string]struct {
			Type      string
			Enum      []string
			MaxLength int
		}
		Required []string
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		panic(err)
	}
	right := map[string]string{}
	for name, p := range s.Properties {
		value := map[string]string{
			"string": `"x"`, "number": "2", "integer": "2", "boolean": "true", "array": `["a","b"]`, "object": "{}",
		}[p.Type]
		if len(p.Enum) > 0 {
			value = fmt.Sprintf("%q", p.Enum[0])
		}
		if slices.Contains(s.Required, name) {
			right[name] = value
		}
	}
	write := func(members map[string]string) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			parts = append(parts, fmt.Sprintf("%q:%s", name, members[name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	with := func(name, value string) string {
		members := maps.Clone(right)
		if members[name] = value; value == "" {
			delete(members, name)
		}
		return write(members)
	}
	all = []string{`null`, `[]`, `7`, `"x"`, `true`, `{`, `{"a"`, `{"a":1,"a":2}`, `{}{}`, "{\"a\":\"\xff\"}", `{"a":nul}`,
		strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), with("bogus", "1"), with("", "1")}
	for name, p := range s.Properties {
		for _, value := range []string{
			"", "null", "7", "-1", "0", "1.5", "1e99", "1e400", "true", `""`, `" "`, `"x"`, `"\u0000"`, `"\ud800"`, "{}", `{"a":1}`, "[]", "[1]",
			`[""]`, `[null]`, `["x"]`, `[["x"]]`, `"` + strings.Repeat("y", p.MaxLength+1) + `"`,
			"[" + strings.TrimSuffix(strings.Repeat(`"@network",`, 60), ",") + "]",
		} {
			all = append(all, with(name, value))
		}
	}
	return all
}
