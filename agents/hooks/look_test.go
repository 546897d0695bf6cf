package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/permissions"
)

// TestLook: the file that a call changes is read where it is a plain text, and nothing is waited for.
func TestLook(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "binary": "x\x00", "latin": "x\xff", "large": "x" + strings.Repeat("\n", maxRead),
		"largest": "x" + strings.Repeat("\n", maxRead-1), "begins binary": "\x00x",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	part := []permissions.Rows{{First: 2, Text: "2\n3\n4\nx\n6\n7\n8\n"}}
	for name, want := range map[string][]permissions.Rows{
		"a.go": part, "b/../a.go": part, "none": {{}}, "binary": nil, "latin": nil, "large": nil,
		"largest": {{First: 1, Text: "x\n\n\n\n"}}, "begins binary": nil, "pipe": nil, ".": nil, "a.go/below": nil,
	} {
		c := Call{Request: permissions.Request{Cwd: folder}}
		c.use("Edit", []byte(`{"file_path":"`+name+`","new_string":"y","old_string":"x"}`))
		c.Look()
		if diff := cmp.Diff(want, c.Request.Rows); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	c := Call{Request: permissions.Request{Cwd: folder}}
	c.use("mcp__x__edit", []byte(`{"file_path":"a.go","new_string":"y","old_string":"x"}`))
	if c.Look(); c.Request.Rows != nil {
		t.Error("a file is read for a tool that is not known to edit")
	}
}
