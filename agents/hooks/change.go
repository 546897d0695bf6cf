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

// largest is how many bytes an input may have that is asked about as it is. A question has 64 KiB in all.
const largest = 32 << 10

// The members by which tools say what is written to a file, and what replaces what in it.
var (
	contentMembers = []string{"content", "contents", "file_text", "new_source"}
	editMembers    = [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"oldString", "newString"}, {"oldText", "newText"}}
)

// changes are what a call does to a file, line by line as people read it; empty where its input does not say so. It
// leaves nothing out, and what it shows is in the input as well.
func changes(path string, m members) string {
	if patch := m.maybe("command", "patch", "patchText", "input"); strings.HasPrefix(patch, "*** Begin Patch") {
		return patch
	}
	if path == "" {
		return ""
	}
	var out strings.Builder
	if content := m.maybe(contentMembers...); content != "" {
		prefixed(&out, "+", content)
	} else {
		edits(&out, m)
	}
	if out.Len() == 0 || out.Len() > permissions.MaxDetails/2 {
		return ""
	}
	return "--- " + path + "\n+++ " + path + "\n" + out.String()
}

// edits writes one replacement, or a list of them.
func edits(out *strings.Builder, m members) {
	for _, names := range editMembers {
		before, after := m.maybe(names[0]), m.maybe(names[1])
		if before == "" && after == "" {
			continue
		}
		out.WriteString("@@\n")
		prefixed(out, "-", before)
		prefixed(out, "+", after)
		return
	}
	var list []members
	if json.Unmarshal(m["edits"], &list) != nil {
		return
	}
	for _, one := range list {
		edits(out, one)
	}
}

// prefixed writes text line by line. A newline at its end begins no other line.
func prefixed(out *strings.Builder, prefix, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out.WriteString(prefix + line + "\n")
	}
}

// fit moves an input that is too large for a question into the details, whole, where people are sent it as a file. The
// question then names it by its hash.
func fit(r *permissions.Request) error {
	if len(r.Input) <= largest {
		return nil
	}
	var m members
	if json.Unmarshal(r.Input, &m) != nil {
		return fmt.Errorf("the input of %s is no object", r.Tool)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := string(m[name])
		if text := m.maybe(name); text != "" {
			value = text
		}
		fmt.Fprintf(&out, "%q, %d bytes:\n", name, len(value))
		prefixed(&out, "    ", value)
	}
	if out.Len() > permissions.MaxDetails {
		return fmt.Errorf("the input of %s has %d bytes, more than can be shown to anybody", r.Tool, len(r.Input))
	}
	sum := sha256.Sum256(r.Input)
	r.Details = out.String()
	r.Input = json.RawMessage(fmt.Sprintf(`{"input_bytes":%d,"input_sha256":%q}`, len(r.Input), hex.EncodeToString(sum[:])))
	return nil
}
