package tools

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/edits"
)

// shown is the diff that people are shown of a call.
func shown(t *testing.T, name string, in args, plan Plan) string {
	t.Helper()
	e, ok := edits.Of(name, in.json(t))
	if !ok {
		t.Fatalf("%s is no edit", name)
	}
	return strings.Join(e.Diff(plan.Was, false).Rows, "\n")
}

func TestWriteFile(t *testing.T) { inBothModes(t, tryWriteFile) }

func tryWriteFile(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/a": "one\ntwo\n", "ws/binary": "\x00\x01", "out/secret": "secret"})
	ws := filepath.Join(dir, "ws")
	if err := os.Chmod(filepath.Join(ws, "a"), 0o751); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "a", "away": "../out"} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	in := args{"path": "a", "content": "one\nthree\n"}
	got := plan(t, p, "write_file", in)
	if want := "@@ -1,2 +1,2 @@\n one\n-two\n+three"; shown(t, "write_file", in, got) != want || got.AffectedPath != ws+"/a" ||
		got.Basis != basis([]byte("one\ntwo\n")) || len(got.Needs) > 0 {
		t.Errorf("the plan is %+v", got)
	}
	call(t, p, "write_file", args{"path": "a", "content": "one\nthree\n"}).says(t, false, "changed "+ws+"/a: 10 bytes")
	if info, err := os.Stat(filepath.Join(ws, "a")); err != nil || info.Mode().Perm() != 0o751 || read(t, ws+"/a") != "one\nthree\n" {
		t.Errorf("the file is %v, %q: %v", info.Mode(), read(t, ws+"/a"), err)
	}

	fresh := args{"path": "new/folder/file", "content": "no end"}
	got = plan(t, p, "write_file", fresh)
	if len(got.Was) != 1 || got.Was[0] != (permissions.Rows{}) || shown(t, "write_file", fresh, got) != "no end" ||
		got.Basis != nothing {
		t.Errorf("the plan is %+v", got)
	}
	call(t, p, "write_file", fresh).says(t, false, "made "+ws+"/new/folder/file: 6 bytes")
	if read(t, ws+"/new/folder/file") != "no end" {
		t.Error("it is not there")
	}
	got = plan(t, p, "write_file", args{"path": "binary", "content": "x"})
	if !strings.HasPrefix(got.Details, "Instead of 2 bytes that are no text") {
		t.Errorf("the plan is %+v", got)
	}
	for _, c := range []struct{ path, says string }{
		{"link", "it is a symbolic link"},
		{"new", "it is a folder"},
		{"a/b", "not a directory"},
	} {
		tool(t, "write_file").Run(t.Context(), p, args{"path": c.path, "content": "x"}.json(t), Plan{}).says(t, true, c.says)
	}
	for _, path := range []string{"away/new", filepath.Join(dir, "out/new")} {
		if o := tool(t, "write_file").Run(t.Context(), p, args{"path": path, "content": "x"}.json(t), Plan{}); !o.Error {
			t.Errorf("%s: %s", path, o.Text)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "out")); len(entries) != 1 || read(t, ws+"/a") != "one\nthree\n" {
		t.Errorf("outside there is %v", entries)
	}
	if drafts, _ := filepath.Glob(ws + "/.daycared-*"); len(drafts) > 0 {
		t.Errorf("drafts are left: %v", drafts)
	}
}

// What was shown is what is changed, not what the file has become since.
func TestAFileThatChangedSince(t *testing.T) { inBothModes(t, tryAFileThatChangedSince) }

func tryAFileThatChangedSince(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/a": "one\n"})
	a := filepath.Join(dir, "ws/a")
	writing, editing := args{"path": "a", "content": "two\n"}, args{"path": "a", "old_text": "one", "new_text": "two"}
	making := args{"path": "b", "content": "x"}
	w, e, m := plan(t, p, "write_file", writing), plan(t, p, "edit_file", editing), plan(t, p, "write_file", making)
	write(t, a, "one, and more\n")
	write(t, filepath.Join(dir, "ws/b"), "by somebody else")
	tool(t, "write_file").Run(t.Context(), p, writing.json(t), w).says(t, true, "changed since it was shown; look again")
	tool(t, "edit_file").Run(t.Context(), p, editing.json(t), e).says(t, true, "changed since it was shown; look again")
	tool(t, "write_file").Run(t.Context(), p, making.json(t), m).says(t, true, "changed since it was shown; look again")
	if read(t, a) != "one, and more\n" || read(t, filepath.Join(dir, "ws/b")) != "by somebody else" {
		t.Error("they were changed all the same")
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	tool(t, "write_file").Run(t.Context(), p, writing.json(t), w).says(t, true, "changed since it was shown; look again")
	write(t, a, "one\n") // unchanged
	tool(t, "edit_file").Run(t.Context(), p, editing.json(t), e).says(t, false, "changed "+a)
	if left, _ := filepath.Glob(filepath.Join(dir, "ws/.daycared-*")); len(left) > 0 {
		t.Errorf("drafts are left: %v", left)
	}
}

// A link that takes a folder's place while a change is shown leads to no other file.
func TestAFileWhoseFolderIsALinkSince(t *testing.T) { inBothModes(t, tryAFileWhoseFolderIsALinkSince) }

func tryAFileWhoseFolderIsALinkSince(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/d/a": "one\n", "ws/x/a": "one\n", "ws/e/0": "", "ws/y/0": ""})
	link := func(to, name string) {
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Symlink(to, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	link("e", "ws/l")
	editing, making := args{"path": "d/a", "old_text": "one", "new_text": "two"}, args{"path": "e/b", "content": "x"}
	linked := args{"path": "l/b", "content": "x"}
	e, m, l := plan(t, p, "edit_file", editing), plan(t, p, "write_file", making), plan(t, p, "write_file", linked)
	tool(t, "write_file").Run(t.Context(), p, linked.json(t), l).says(t, false, "made ")
	l = plan(t, p, "write_file", args{"path": "l/c", "content": "x"})
	link("x", "ws/d")
	link("y", "ws/e")
	tool(t, "edit_file").Run(t.Context(), p, editing.json(t), e).says(t, true, "changed since it was shown; look again")
	tool(t, "write_file").Run(t.Context(), p, making.json(t), m).says(t, true, "changed since it was shown; look again")
	tool(t, "write_file").Run(t.Context(), p, args{"path": "l/c", "content": "x"}.json(t), l).says(t, true, "changed since it was shown")
	if read(t, filepath.Join(dir, "ws/x/a")) != "one\n" {
		t.Error("the other file was changed all the same")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "ws/y/*")); len(left) != 1 {
		t.Errorf("files are made there: %v", left)
	}
}

// What the agent may not read is not read for it: people see the input only, and the agent learns nothing.
func TestAFileThatMayNotBeRead(t *testing.T) { inBothModes(t, tryAFileThatMayNotBeRead) }

func tryAFileThatMayNotBeRead(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"out/secret": "the secret\n"})
	secret := filepath.Join(dir, "out/secret")
	for name, in := range map[string]args{
		"write_file": {"path": secret, "content": "mine\n"},
		"edit_file":  {"path": secret, "old_text": "guess", "new_text": "mine"},
	} {
		got := plan(t, p, name, in)
		if got.Basis != "" || strings.Contains(got.Details, "the secret") || got.Was != nil || needs(got) != "write access to "+secret {
			t.Errorf("%s: the plan is %+v", name, got)
		}
		if !strings.Contains(shown(t, name, in, got), "mine") || !strings.Contains(got.Details, "may not be looked at") {
			t.Errorf("%s: people are shown %q", name, got.Details)
		}
		tool(t, name).Run(t.Context(), p, in.json(t), got).says(t, true, "there is no write access to "+secret)
	}
	// After a grant for the file alone it is changed, and nothing beside it.
	held := p.with(t, "@write:"+secret)
	call(t, held, "edit_file", args{"path": secret, "old_text": "the", "new_text": "no"}).says(t, false, "changed")
	call(t, held, "write_file", args{"path": filepath.Join(dir, "out/other"), "content": "x"}).says(t, true, "there is no write access")
	if read(t, secret) != "no secret\n" {
		t.Errorf("it holds %q", read(t, secret))
	}
	fresh := filepath.Join(dir, "out/fresh")
	held = p.with(t, "@write:"+fresh)
	if got := plan(t, held, "write_file", args{"path": fresh, "content": "x"}); got.Basis != nothing || len(got.Needs) > 0 {
		t.Errorf("the plan is %+v", got)
	}
	call(t, held, "write_file", args{"path": fresh, "content": "x"}).says(t, false, "made "+fresh)
	nowhere := filepath.Join(dir, "none/fresh")
	tool(t, "write_file").Run(t.Context(), p.with(t, "@write:"+nowhere), args{"path": nowhere, "content": "x"}.json(t), Plan{}).
		says(t, true, "does not exist")
}

func TestEditFile(t *testing.T) { inBothModes(t, tryEditFile) }

func tryEditFile(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{
		"ws/a": "one two two\n", "ws/dos": "one\r\ntwo\r\nthree\r\n", "ws/mixed": "one\r\ntwo\n", "ws/binary": "one\x00",
		"ws/full": strings.Repeat("x", maxFile), "ws/over": strings.Repeat("x", maxFile+1),
	})
	dos := args{"path": "dos", "old_text": "one\ntwo\n", "new_text": "1\n2\n2½\n"}
	if got := shown(t, "edit_file", dos, plan(t, p, "edit_file", dos)); got != "@@ -1,3 +1,4 @@\n-one\n-two\n+1\n+2\n+2½\n three" {
		t.Errorf("people are shown %q", got)
	}
	for _, c := range []struct {
		path, before, after string
		all                 bool
		says, holds         string
	}{
		{"a", "one", "1", false, "", "1 two two\n"},
		{"a", "two", "2", false, "occurs 2 times", "1 two two\n"},
		{"a", "two", "2", true, "", "1 2 2\n"},
		{"a", "none", "2", false, "does not occur", "1 2 2\n"},
		{"dos", "one\ntwo\n", "1\n2\n", false, "", "1\r\n2\r\nthree\r\n"},
		{"dos", "1\r\n2", "1", false, "", "1\r\nthree\r\n"},
		{"mixed", "two\n", "2\n", false, "", "one\r\n2\n"},
		{"binary", "one", "1", false, "no text file", "one\x00"},
		{"none", "one", "1", false, "no such file; to make it", ""},
		{"full", "x", "xx", true, "would have 2097152 bytes", ""},
		{"over", "x", "y", true, "more than the 1048576", ""},
		{".", "x", "y", true, "it is a folder", ""},
	} {
		in := args{"path": c.path, "old_text": c.before, "new_text": c.after, "replace_all": c.all}
		one := tool(t, "edit_file")
		planned, err := one.Plan(t.Context(), p, in.json(t))
		o := one.Run(t.Context(), p, in.json(t), planned)
		if c.says == "" {
			o.says(t, false, "changed")
		} else {
			o.says(t, true, c.says)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: planned with %v", in, err)
			}
		}
		if c.holds != "" && read(t, filepath.Join(dir, "ws", c.path)) != c.holds {
			t.Errorf("%v: it holds %q", in, read(t, filepath.Join(dir, "ws", c.path)))
		}
	}
}

// TestAPlanThatIsUnseen is the same whatever is in the file.
func TestAPlanThatIsUnseen(t *testing.T) {
	_, p := tempFiles(t, map[string]string{"ws/a": "one"})
	p.Unseen = true
	for _, in := range []args{{"path": "a", "old_text": "one", "new_text": "2"}, {"path": "a", "old_text": "none", "new_text": "2"}} {
		if got := plan(t, p, "edit_file", in); got.Basis != "" || got.Was != nil || got.AffectedPath == "" {
			t.Errorf("%v: the plan is %+v", in, got)
		}
	}
	if got := plan(t, p, "write_file", args{"path": "a", "content": "one"}); got.Basis != "" || got.Was != nil {
		t.Errorf("the plan is %+v", got)
	}
}

// Writing is atomic.
func TestAWriteThatFails(t *testing.T) {
	dir, _ := tempFiles(t, map[string]string{"ws/a": "one", "ws/folder/x": ""})
	s := spot{Root: filepath.Join(dir, "ws"), Name: "a"}
	for _, p := range []putInput{
		{spot{Root: s.Root, Name: "a"}, []byte("two"), "another basis"},
		{spot{Root: s.Root, Name: "folder"}, []byte("two"), ""},
		{spot{Root: s.Root, Name: "a/b"}, []byte("two"), ""},
		{spot{Root: s.Root, Name: "a/b/c"}, []byte("two"), ""},
		{spot{Root: s.Root, Name: "../b"}, []byte("two"), ""},
		{spot{Root: s.Root + "/none", Name: "b"}, []byte("two"), ""},
	} {
		if _, err := put(p); err == nil {
			t.Errorf("%+v is written", p)
		}
	}
	if entries, _ := os.ReadDir(s.Root); len(entries) != 2 || read(t, filepath.Join(s.Root, "a")) != "one" {
		t.Errorf("there is %v", entries)
	}
	if there, err := put(putInput{s, []byte("two"), basis([]byte("one"))}); err != nil || !there {
		t.Error(err)
	}
}

// In the workspace an agent may read, and asks to write in the whole workspace, not file by file.
func TestWritingInTheWorkspaceIsAskedFor(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/a": "one\n"})
	p.Tags = nil
	call(t, p, "read_file", args{"path": "a"}).says(t, false, "one")
	for name, in := range map[string]args{
		"write_file":  {"path": "a", "content": "two\n"},
		"edit_file":   {"path": "a", "old_text": "one", "new_text": "two"},
		"run_command": {"command": "echo two >a", "write": []string{".", "a"}},
	} {
		got := plan(t, p, name, in)
		if needs(got) != "workspace write access" || name != "run_command" && !strings.Contains(shown(t, name, in, got), "-one\n+two") {
			t.Errorf("%s: the plan is %+v", name, got)
		}
		tool(t, name).Run(t.Context(), p, in.json(t), got).says(t, true, "there is no workspace write access")
		tool(t, name).Run(t.Context(), p.with(t, "@workspace"), in.json(t), got).says(t, false, "")
		if read(t, filepath.Join(dir, "ws/a")) != "two\n" {
			t.Errorf("%s: it holds %q", name, read(t, filepath.Join(dir, "ws/a")))
		}
		write(t, filepath.Join(dir, "ws/a"), "one\n")
	}
	call(t, p, "run_command", args{"command": "echo two >a"}).says(t, true, "Permission denied")
	call(t, p, "run_command", args{"command": `test "$HOME" = "$TMPDIR" && echo kept >"$HOME/x"`}).says(t, false, "exit code 0")
	held := p.with(t, "@write:"+p.Workspace)
	if got := plan(t, held, "write_file", args{"path": "a", "content": "x"}); len(got.Needs) > 0 {
		t.Errorf("with the folder held it needs %q", needs(got))
	}
}

// TestAnEditThatIsFarTooLarge: H/what would be far larger than the largest file is refused before it is made.
func TestAnEditThatIsFarTooLarge(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := editInput{Old: "x", New: strings.Repeat("y", 1000), All: true}.apply(
		fileContent{There: true, Text: []byte(strings.Repeat("x", maxFile))})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "the file would have 1048576000 bytes") {
		t.Errorf("it is applied: %v", err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 256<<20 {
		t.Errorf("%d bytes were made for it", made)
	}
}
