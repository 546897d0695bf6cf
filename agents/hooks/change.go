package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// maxInline is the maximum size in bytes of an input that fits a question unchanged. A question has at most 64 KiB in all.
const maxInline = 32 << 10

// The input members that hold what a tool writes to a file, and what it replaces.
var (
	contentMembers = []string{"content", "contents", "file_text", "new_source"}
	editMembers    = [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"oldString", "newString"}, {"oldText", "newText"}}
)

// diffOf renders what a call does to a file as a line diff; empty if the input does not say so. It is complete, and repeats
// only what the input contains.
func diffOf(path string, m members) string {
	if patch := m.optionalText("command", "patch", "patchText", "input"); strings.HasPrefix(patch, "*** Begin Patch") {
		return patch
	}
	if path == "" {
		return ""
	}
	var out strings.Builder
	if content := m.optionalText(contentMembers...); content != "" {
		writePrefixed(&out, "+", content)
	} else {
		writeEdits(&out, m)
	}
	if out.Len() == 0 || out.Len() > permissions.MaxDetails/2 {
		return ""
	}
	return "--- " + path + "\n+++ " + path + "\n" + out.String()
}

// writeEdits writes one replacement, or a list of them.
func writeEdits(out *strings.Builder, m members) {
	for _, names := range editMembers {
		before, after := m.optionalText(names[0]), m.optionalText(names[1])
		if before == "" && after == "" {
			continue
		}
		out.WriteString("@@\n")
		writePrefixed(out, "-", before)
		writePrefixed(out, "+", after)
		return
	}
	var list []members
	if json.Unmarshal(m["edits"], &list) != nil {
		return
	}
	for _, one := range list {
		writeEdits(out, one)
	}
}

// writePrefixed writes text with a prefix on every line. A final newline starts no further line.
func writePrefixed(out *strings.Builder, prefix, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out.WriteString(prefix + line + "\n")
	}
}

// fit moves an input that is too large for a question into the details, which people receive as a file. The question then
// identifies it by its hash.
func fit(r *permissions.Request) error {
	if len(r.Input) <= maxInline {
		return nil
	}
	var m members
	if json.Unmarshal(r.Input, &m) != nil {
		return fmt.Errorf("the input of %s is no object", r.Tool)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := string(m[name])
		if text := m.optionalText(name); text != "" {
			value = text
		}
		fmt.Fprintf(&out, "%q, %d bytes:\n", name, len(value))
		writePrefixed(&out, "    ", value)
	}
	if out.Len() > permissions.MaxDetails {
		return fmt.Errorf("the input of %s has %d bytes, more than can be shown to anybody", r.Tool, len(r.Input))
	}
	sum := sha256.Sum256(r.Input)
	r.Details = out.String()
	r.Input = json.RawMessage(fmt.Sprintf(`{"input_bytes":%d,"input_sha256":%q}`, len(r.Input), hex.EncodeToString(sum[:])))
	return nil
}
