package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents/sandbox"
)

func TestReadFile(t *testing.T) { inBothModes(t, tryReadFile) }

func tryReadFile(t *testing.T) {
	many := &strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(many, "line %d\n", i+1)
	}
	dir, p := tempFiles(t, map[string]string{
		"ws/a": "one\ntwo\nthree", "ws/empty": "", "ws/many": many.String(), "ws/binary": "a\x00b", "ws/latin": "ok\ncaf\xe9\n",
		"ws/wide": strings.Repeat("é", 3000) + "\nafter\n", "ws/large": strings.Repeat("x", 1000) + "\n", "out/secret": "secret",
		"ws/long": strings.Repeat(strings.Repeat("y", 1500)+"\n", 100),
	})
	for name, target := range map[string]string{
		"inside": "a", "outside": "../out/secret", "absolute": filepath.Join(dir, "out"), "passwd": "/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(dir, "ws", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "ws/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in     args
		failed bool
		says   string
	}{
		{args{"path": "a"}, false, "one\ntwo\nthree"},
		{args{"path": "a", "offset": 2, "limit": 1}, false, "two\n\n(lines 2 to 2; more follow, with offset 3)"},
		{args{"path": "a", "offset": 3, "limit": 9}, false, "three"},
		{args{"path": "a", "offset": 4}, true, "fewer than 4 lines"},
		{args{"path": "a", "offset": 1, "limit": 2}, false, "one\ntwo"},
		{args{"path": "empty"}, false, "(the file is empty)"},
		{args{"path": "many"}, false, "(lines 1 to 2000; more follow, with offset 2001)"},
		{args{"path": "many", "offset": 4999, "limit": 99999}, false, "line 4999\nline 5000\n"},
		{args{"path": "long"}, false, "more follow, with offset 44)"},
		{args{"path": "wide"}, false, "é\n"},
		{args{"path": "wide"}, false, "(lines are cut after 2000 bytes)"},
		{args{"path": "wide", "offset": 2}, false, "after"},
		{args{"path": "binary"}, true, "it is no text: 3 bytes"},
		{args{"path": "latin"}, true, "line 2 is no text in UTF-8"},
		{args{"path": "missing"}, true, "no such file"},
		{args{"path": "."}, true, "it is a folder"},
		{args{"path": "pipe"}, true, "it is no regular file"},
		{args{"path": "inside"}, false, "one"},
		{args{"path": "outside"}, true, "escapes"},
		{args{"path": "absolute/secret"}, true, "escapes"},
		{args{"path": "passwd"}, true, "escapes"},
		{args{"path": filepath.Join(dir, "out/secret")}, true, "there is no read access to " + filepath.Join(dir, "out/secret")},
	} {
		call(t, p, "read_file", c.in).says(t, c.failed, c.says)
	}
	for _, tag := range []string{"@read:" + filepath.Join(dir, "out"), "@read:" + filepath.Join(dir, "out/secret"), "@write:" + dir} {
		call(t, p.with(t, tag), "read_file", args{"path": filepath.Join(dir, "out/secret")}).says(t, false, "secret")
	}
	// A grant for a name does not cover what a link turns it into.
	alias := filepath.Join(dir, "alias")
	if err := os.Symlink(filepath.Join(dir, "out"), alias); err != nil {
		t.Fatal(err)
	}
	call(t, p.with(t, "@read:"+alias), "read_file", args{"path": alias + "/secret"}).says(t, true, "it is a symbolic link")
}

// The operator may name the workspace through a symbolic link.
func TestAWorkspaceBehindALink(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/a": "one"})
	alias := filepath.Join(dir, "alias")
	if err := os.Symlink("ws", alias); err != nil {
		t.Fatal(err)
	}
	p = p.In(alias)
	call(t, p, "read_file", args{"path": "a"}).says(t, false, "one")
	call(t, p, "write_file", args{"path": "b", "content": "two"}).says(t, false, "made "+p.Workspace+"/b: 3 bytes")
	call(t, p, "run_command", args{"command": "cat a b; pwd"}).says(t, false, "onetwo"+dir+"/ws")
	call(t, p, "read_file", args{"path": alias + "/a"}).says(t, false, "one") // by the operator's name, too
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := args{"path": "a"}
	_, err := tool(t, "read_file").Plan(t.Context(), p.In(filepath.Join(dir, "pipe")), in.json(t))
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("where a pipe has its name: %v", err)
	}
	p = p.In(filepath.Join(dir, "nowhere"))
	write(t, filepath.Join(dir, "nowhere/a"), "late") // made after the daemon's start, by anybody
	for name, in := range map[string]args{"read_file": {"path": "a"}, "run_command": {"command": "true"}} {
		if _, err := tool(t, name).Plan(t.Context(), p, in.json(t)); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s where the workspace was not there: %v", name, err)
		}
		tool(t, name).Run(t.Context(), p, in.json(t), Plan{}).says(t, true, "make it, and restart daycared")
	}
}

// A workspace is the folder as of the daemon's start: no other folder replaces it by taking its name.
func TestAWorkspaceIsNoOtherFolder(t *testing.T) { inBothModes(t, tryMovedWorkspace) }

func tryMovedWorkspace(t *testing.T) {
	for name, swap := range map[string]func(t *testing.T, dir string){
		"C2/a link":                func(t *testing.T, dir string) { symlink(t, filepath.Join(dir, "out"), filepath.Join(dir, "ws")) },
		"C2/a link to what it was": func(t *testing.T, dir string) { symlink(t, filepath.Join(dir, "old"), filepath.Join(dir, "ws")) },
		"C2/a folder": func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "out"), filepath.Join(dir, "ws")); err != nil {
				t.Fatal(err)
			}
		},
		"C2/nothing": func(*testing.T, string) {},
		"C2/an outer link": func(t *testing.T, dir string) {
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			symlink(t, dir+".old", dir)
			if err := os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "ws")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(dir); _ = os.Rename(dir+".old", dir) })
		},
		"C2/another of the operator's links": func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "ws")); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "alias")); err != nil {
				t.Fatal(err)
			}
			symlink(t, "out", filepath.Join(dir, "alias"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := tempFiles(t, map[string]string{"ws/file": "one", "out/file": "CANARY", "out/ws/file": "CANARY"})
			symlink(t, "ws", filepath.Join(dir, "alias"))
			p = p.In(filepath.Join(dir, "alias"))
			calls := map[string]args{
				"read_file": {"path": "file"}, "list_files": {}, "search_files": {"pattern": "CANARY"},
				"write_file": {"path": "planted", "content": "x"}, "edit_file": {"path": "file", "old_text": "one", "new_text": "two"},
				"run_command": {"command": "cat file; echo x >planted", "write": []string{"."}},
			}
			plans := map[string]Plan{}
			for name, in := range calls { // shown to people while everything was right
				plans[name] = plan(t, p, name, in)
			}
			if err := os.Rename(filepath.Join(dir, "ws"), filepath.Join(dir, "old")); err != nil {
				t.Fatal(err)
			}
			swap(t, dir)
			for name, in := range calls {
				o := tool(t, name).Run(t.Context(), p, in.json(t), plans[name])
				if !o.Error || o.Text != ErrMoved.Error() {
					t.Errorf("%s: %v, %q", name, o.Error, o.Text)
				}
				if _, err := tool(t, name).Plan(t.Context(), p, in.json(t)); !errors.Is(err, ErrMoved) {
					t.Errorf("%s is planned: %v", name, err)
				}
			}
			for _, place := range []string{"ws", "out", "old"} {
				if _, err := os.Stat(filepath.Join(dir, place, "planted")); err == nil {
					t.Errorf("something was planted in %s", place)
				}
			}
		})
	}
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// A folder replaced after the last check is not opened either: the sandboxed process compares.
func TestAWorkspaceThatMovesInBetween(t *testing.T) { inBothModes(t, tryLateMove) }

func tryLateMove(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/file": "one", "out/file": "CANARY"})
	tag, err := p.tag("@read", "file")
	if err != nil {
		t.Fatal(err)
	}
	where, walls, err := p.spot(tag)
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range [][2]string{{"ws", "old"}, {"out", "ws"}} {
		if err := os.Rename(filepath.Join(dir, move[0]), filepath.Join(dir, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	box := sandbox.New(sandbox.Options{Mode: mode})
	var was fileContent
	if err := box.Do(t.Context(), walls, opContent, where, &was); err == nil || !strings.Contains(err.Error(), "another folder by now") {
		t.Errorf("an operation: %v, %q", err, was.Text)
	}
	walls.Dir = p.Workspace
	o := runCommand{box}.execute(t.Context(), commandInput{Command: "cat file", Timeout: 60}, walls)
	o.says(t, true, "another folder by now")
}

// What was granted in a workspace is not that in another folder that has got the workspace's name since the last check either.
func TestAPartOfAWorkspaceThatMovesInBetween(t *testing.T) { inBothModes(t, tryLateMoveOfAPart) }

func tryLateMoveOfAPart(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/sub/file": "one", "out/sub/file": "CANARY"})
	p.Tags = nil
	type put struct {
		spot
		sandbox.Policy
	}
	puts := map[string]put{}
	for tag, name := range map[string]string{"sub": "sub/new", "sub/file": "sub/file", "sub/other": "sub/other"} {
		p := p.with(t, "@write:"+filepath.Join(dir, "ws", tag))
		tag, err := p.tag("@write", name)
		if err != nil {
			t.Fatal(err)
		}
		where, walls, err := p.spot(tag)
		if err != nil {
			t.Fatal(err)
		}
		puts[name] = put{where, walls}
	}
	for _, move := range [][2]string{{"ws", "old"}, {"out", "ws"}} {
		if err := os.Rename(filepath.Join(dir, move[0]), filepath.Join(dir, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	box := sandbox.New(sandbox.Options{Mode: mode})
	for name, put := range puts {
		var there bool
		err := box.Do(t.Context(), put.Policy, opPut, putInput{put.spot, []byte("planted"), ""}, &there)
		if err == nil || !strings.Contains(err.Error(), "another folder by now") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sub := filepath.Join(p.Workspace, "sub")
	w := sandbox.Policy{Write: []string{sub}, Dir: sub, Held: p.held.Folder}
	o := runCommand{box}.execute(t.Context(), commandInput{Command: "cat file", Timeout: 60}, w)
	o.says(t, true, "another folder by now")
}

func TestListFiles(t *testing.T) { inBothModes(t, tryListFiles) }

func tryListFiles(t *testing.T) {
	files := map[string]string{"ws/b.go": "", "ws/a/x.go": "", "ws/a/deep/er/y.go": "", "ws/a/z.txt": "", "out/secret": ""}
	for i := range 1100 {
		files[fmt.Sprintf("out/many/%04d", i)] = ""
	}
	dir, p := tempFiles(t, files)
	if err := os.Symlink("../out", filepath.Join(dir, "ws/link")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "ws/new\nline"), "")
	for _, c := range []struct {
		in     args
		failed bool
		says   string
	}{
		{args{}, false, "a/\na/deep/\na/x.go\na/z.txt\nb.go\nlink@\n\"new\\nline\""},
		{args{"depth": 1}, false, "a/\nb.go\nlink@"},
		{args{"depth": 20}, false, "a/deep/er/y.go"},
		{args{"path": "a"}, false, "deep/\ndeep/er/\nx.go\nz.txt"},
		{args{"glob": "**/*.go"}, false, "a/deep/er/y.go\na/x.go\nb.go"},
		{args{"glob": "*.md"}, false, "(nothing)"},
		{args{"path": "b.go"}, true, "it is no folder"},
		{args{"path": "link"}, true, "escapes"},
		{args{"path": "none"}, true, "no such file"},
		{args{"path": filepath.Join(dir, "out")}, true, "there is no read access"},
	} {
		call(t, p, "list_files", c.in).says(t, c.failed, c.says)
	}
	held := p.with(t, "@read:"+filepath.Join(dir, "out"))
	o := call(t, held, "list_files", args{"path": filepath.Join(dir, "out/many")})
	o.says(t, false, "0999\n(there are more than these 1000;")
	call(t, p.with(t, "@read:"+filepath.Join(dir, "out/secret")), "list_files", args{"path": filepath.Join(dir, "out/secret")}).
		says(t, true, "it is a file")
}

func TestSearchFiles(t *testing.T) { inBothModes(t, trySearchFiles) }

func trySearchFiles(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{
		"ws/a.go": "package a\n// TODO one\r\nfunc f() {}\n", "ws/b.txt": "todo two\n", "ws/.git/x": "TODO", "ws/bin": "TODO\x00",
		"ws/huge": strings.Repeat("TODO\n", maxSearched/5+1), "ws/sub/many": strings.Repeat("many\n", 300),
		"ws/wide": "wide " + strings.Repeat("é", 400) + "\n", "out/secret": "TODO",
	})
	if err := os.Symlink("../out/secret", filepath.Join(dir, "ws/link")); err != nil {
		t.Fatal(err)
	}
	skipped := "(2 files were passed over"
	for _, c := range []struct {
		in     args
		failed bool
		says   string
	}{
		{args{"pattern": "TODO"}, false, "a.go:2: // TODO one\n" + skipped},
		{args{"pattern": "todo", "ignore_case": true}, false, "a.go:2: // TODO one\nb.txt:1: todo two\n" + skipped},
		{args{"pattern": "todo", "glob": "*.txt"}, false, "b.txt:1: todo two"},
		{args{"pattern": "^many$", "path": "sub"}, false, "many:200: many\n(there are more than these 200;"},
		{args{"pattern": "wide"}, false, " …"},
		{args{"pattern": "nothing like it"}, false, "(nothing)\n" + skipped},
		{args{"pattern": "x", "path": filepath.Join(dir, "out")}, true, "there is no read access"},
	} {
		call(t, p, "search_files", c.in).says(t, c.failed, c.says)
	}
	if plan := plan(t, p, "search_files", args{"pattern": "x"}); plan.AffectedPath != p.Workspace || len(plan.Needs) > 0 {
		t.Errorf("the plan is %+v", plan)
	}
}

// If there is too much to walk through, that is reported.
func TestASearchThroughTooMuchIsReported(t *testing.T) {
	dir, _ := tempFiles(t, map[string]string{"ws/a": "x"})
	s := spot{Root: filepath.Join(dir, "ws"), Name: "."}
	for _, stop := range []error{errTooMany, errEnough} {
		err := s.walk(1, func(*os.Root, string, string, os.DirEntry) error { return stop })
		if err == nil {
			t.Error("it went on")
		}
	}
	if _, err := list(listOf{Spot: spot{Root: filepath.Join(dir, "none")}}); err == nil {
		t.Error("what is not there is listed")
	}
	if _, err := search(searchOf{Pattern: "("}); err == nil {
		t.Error("what is no pattern is searched for")
	}
	for name, do := range Operations() {
		if _, err := do([]byte(`"`)); err == nil {
			t.Errorf("%s does what is no order", name)
		}
	}
}

// The daemon's own files are not read for anybody, even when the tag is held.
func TestTheDaemonsOwnFiles(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/state/db": "x"})
	box := sandbox.New(sandbox.Options{Own: []string{filepath.Join(dir, "ws/state")}})
	for _, tool := range All(box) {
		in := map[string]args{
			"read_file": {"path": "state/db"}, "list_files": {}, "search_files": {"pattern": "x"},
			"write_file": {"path": "new", "content": "x"}, "edit_file": {"path": "state/db", "old_text": "x", "new_text": "y"},
			"run_command": {"command": "cat state/db"},
		}[tool.Spec().Name]
		if in == nil {
			continue
		}
		tool.Run(t.Context(), p, in.json(t), Plan{}).says(t, true, "daycared's own")
	}
}
