package own

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// hostile makes a folder with the daemon's files, d/token and d/data, a workspace with links to them, and one without.
func hostile(t *testing.T) (own []string, proj, clean string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(home, name) }
	for _, folder := range []string{"d/data", "proj/sub/deep", "out", "clean/src/api", "clean/.git", "clean/lib"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"d/token", "d/data/admin.key", "clean/src/main.go", "clean/go.mod"} {
		if err := os.WriteFile(at(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(at("d/token"), at("proj/hard")); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"proj/Ld": "../d", "proj/Lt": at("d/token"), "proj/L d": at("d"), "proj/a:b": "../d", "proj/Lo": at("out"), "proj/Lhome": "..",
		"proj/sub/x": "../Lt", "proj/sub/deep/y": "../../../d/data", "out/again": "../d/token", "proj/loop": ".", "out/own": "../d",
		"clean/bin": "src", "clean/lib/sh": "/bin/sh", "clean/here": ".",
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	return []string{at("d/token"), at("d/data")}, at("proj"), at("clean")
}

// judged is the result of Input for one text.
func judged(own []string, folder, text string) string {
	input, _ := json.Marshal(map[string]string{"x": text}) // plain text
	switch found, may := NewSearch(own, new(atomic.Uint64)).Input(folder, input); {
	case found:
		return "refused"
	case may:
		return "asked"
	}
	return "unasked"
}

// TestARelativeTextIsJudgedAsWhatItLeadsTo: however a text spells a link to the daemon's files, with or without a glob.
func TestARelativeTextIsJudgedAsWhatItLeadsTo(t *testing.T) {
	own, proj, _ := hostile(t)
	for _, text := range []string{
		"Ld/token", "Ld/token:1",
		"see Ld/ too", "./Lt:1", "Lt:1", "Lt#L3", "@Lt", "L*", "{Lt,x}", "Lt\x00", "Lt\x00x", "Ld/token Ld/token", "Lt,Lt",
		"Lt\nLt", "L?", "*", "**", "**/*", "Ld/tok?n", "Ld/**", "../d/token:1", "../proj/Lt:1", "x ./L*", "sub/x", "sub/x:1",
		"sub/*", "s*/x", "*/x", "**/y",
		"L d/token:1", "(L d/token)", "{sub/x,y}", "sub/{x,y}", "a:b/token", "see a:b/token:1", "Ld//token;", "Ld/./token;",
		"loop/loop/Lt:1", "Lo/again:1", "Lo/*",
		"Lo/**", "Ld:1", "hard", "hard:1", proj + "/Lt:1", "see " + proj + "/Lt:1", proj + "/**", "sub/deep/y/new:1", "Lhome/d/token:2",
		strings.Repeat("x ", 3000) + "Lt", "sub/../Lt=",
	} {
		t.Run(fmt.Sprintf("C2/%.40q", text), func(t *testing.T) {
			if got := judged(own, proj, text); got != "asked" {
				t.Error(got)
			}
		})
	}
	t.Run("C2/more than can be followed", func(t *testing.T) {
		for i := range 300 {
			if err := os.Symlink(".", fmt.Sprintf("%s/sub/deep/a%d", proj, i)); err != nil {
				t.Fatal(err)
			}
		}
		if got := judged(own, proj, strings.Repeat("sub/deep/"+strings.Repeat("a1/", 300)+" ", 200)); got != "asked" {
			t.Error(got)
		}
	})
}

// TestAnAddressIsJudgedAsThePathInIt: letters that are written as numbers hide no file of the daemon's.
func TestAnAddressIsJudgedAsThePathInIt(t *testing.T) {
	own, proj, clean := hostile(t)
	escaped := strings.ReplaceAll(own[1], "/", "%2F")
	for _, text := range []string{
		"http+unix://" + escaped + "%2Fb.sock/v1/requests", "http://" + strings.ReplaceAll(escaped, "F", "f") + "%2fb.sock/",
		"see file://" + strings.Replace(own[0], "token", "%74oken", 1) + " too", "100% http+unix://" + escaped, "L%64/token",
	} {
		if got := judged(own, proj, text); got != "asked" {
			t.Errorf("%s is %s", text, got)
		}
	}
	for _, text := range []string{"100%", "%2Fusr%2Flib", "https://example.org/a%20b", "src%2Fmain.go", "%zz"} {
		if got := judged(own, clean, text); got != "unasked" {
			t.Errorf("%s is %s", text, got)
		}
	}
}

// TestEverydayRelativeTextsAreUnasked: in a workspace without links to the daemon's files.
func TestEverydayRelativeTextsAreUnasked(t *testing.T) {
	own, _, clean := hostile(t)
	for _, text := range []string{
		"src/main.go", "./src/main.go", "src/main.go:12", "*.go", "**/*.go", "src/**/*.{ts,tsx}", "**", "bin/*", "here/src/main.go", "lib/*",
		"go.mod,go.sum", "Load the file.", `func \(s \*Store\) .*\{`, `[^/]*/api/.*`, "a // b /* c */ d",
		"**bold** and *more*", "../clean/src", "src/../go.mod",
		clean + "/src/main.go", clean + "/**/*.go", clean + "/src/main.go:3", ".", "", "https://example.org/a/b?c=*", "git log -- src/api",
		strings.Repeat("a long text about src/main.go, *.go and d/token\n", 600),
	} {
		t.Run(fmt.Sprintf("%.40q", text), func(t *testing.T) {
			if got := judged(own, clean, text); got != "unasked" {
				t.Error(got)
			}
		})
	}
}

// TestAPathOfSeveralTextsIsJudgedAsWhatItLeadsTo: a tool may take a folder from one member of its input and names from others.
func TestAPathOfSeveralTextsIsJudgedAsWhatItLeadsTo(t *testing.T) {
	own, proj, clean := hostile(t)
	home, deep := filepath.Dir(clean), clean+"/src/api"
	if err := os.Symlink("../../d", clean+"/src/up"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("clean/src", home+"/here"); err != nil {
		t.Fatal(err)
	}
	up := strings.Count(home, "/")
	for _, c := range []struct{ folder, input string }{
		{deep, `{"cwd":"..","path":"../../d/token"}`},
		{deep, `{"cwd":"../","path":"../../d/token"}`},
		{deep, `{"cwd":"./..","path":"../../d/token"}`},
		{deep, `{"cwd":"../.","path":"../../d/token"}`},
		{deep, `{"path":"../../d/token","cwd":".."}`},
		{deep, `{"cwd":"../..","path":"../d/token"}`},
		{deep, `{"cwd":"../../..","path":"d/token"}`},
		{deep, `{"cwd":"../../..","path":"d"}`},
		{deep, `{"cwd":"..","path":"../../d/data/new"}`},
		{deep, `{"a":"..","b":"..","c":"..","path":"d/token"}`},
		{deep, `{"a":["..","..",".."],"b":{"c":["d/token"]}}`},
		{deep, `{"a":["../..","..","d","token"]}`},
		{deep, `{"..":{"../..":["d/token"]}}`},
		{deep, `{"cwd":"..","args":["cat ../../d/token"]}`},
		{deep, `{"cwd":"..","args":["cat","../../d/token:1"]}`},
		{deep, `{"cwd":"` + clean + `","path":"../d/token"}`},
		{deep, `{"cwd":"` + clean + `","then":"..","path":"d/token"}`},
		{deep, `{"cwd":"file://` + clean + `","path":"../d/token"}`},
		{deep, `{"cwd":"/usr","path":"..","name":"` + home[1:] + `/d/token"}`},
		{deep, `{"cwd":"/usr","path":"../` + home[1:] + `/d/token"}`},
		{clean, `{"cwd":"src","path":"../../d/token"}`},
		{clean, `{"cwd":"src/api","path":"../../../d/token"}`},
		{clean, `{"cwd":"none/of/these","path":"../../../../d/token"}`},
		{clean, `{"a":"none","b":"..","path":"../../d/token"}`},
		{clean, `{"cwd":"src/main.go","path":"../../../d/token"}`},
		{clean, `{"cwd":"src","path":"up"}`},
		{clean, `{"cwd":"src","path":"up/token"}`},
		{clean, `{"cwd":"/src","path":"up/token"}`},
		{clean, `{"cwd":"src","path":"u*"}`},
		{clean, `{"cwd":"src","path":"/up/token"}`},
		{clean, `{"cwd":"src","path":"api","name":"../up/token"}`},
		{deep, `{"cwd":"..","path":"up:1"}`},
		{"", `{"cwd":"` + clean + `/src","path":"up/token"}`},
		{"", `{"cwd":"` + clean + `","path":"../d/token"}`},
		{proj + "/sub", `{"cwd":"..","path":"Lt"}`},
		{proj + "/sub", `{"cwd":"..","path":"hard"}`},
		{proj, `{"cwd":"sub","path":"x"}`},
		{proj, `{"cwd":"sub/deep","path":"y/admin.key"}`},
		{home + "/here/api", `{"cwd":"..","path":"../../d/token"}`},
		{home + "/here/api", `{"cwd":"../..","path":"../d/token"}`},
		{home, `{"cwd":"here/none","path":"../../../d/token"}`},
		{deep, `{"a":[` + strings.Repeat(`"..",`, up+3) + `"` + home[1:] + `","d","token"]}`},
	} {
		t.Run(fmt.Sprintf("C2/%.60s", c.input), func(t *testing.T) {
			if _, may := NewSearch(own, new(atomic.Uint64)).Input(c.folder, []byte(c.input)); !may {
				t.Error("unasked from " + c.folder)
			}
		})
	}
}

// TestEverydayFoldersAreUnasked: several texts of an input that name folders, none of which leads to the daemon's files.
func TestEverydayFoldersAreUnasked(t *testing.T) {
	own, _, clean := hostile(t)
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("lib/l%d", i))
		if err := os.MkdirAll(filepath.Join(clean, many[i]), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := json.Marshal(many) // plain text
	text, _ := json.Marshal(strings.Repeat("a long text about src/main.go, *.go and ../lib/x\n", 6000))
	for _, c := range []struct{ folder, input string }{
		{clean + "/src/api", `{"cwd":"..","path":"main.go"}`},
		{clean + "/src/api", `{"cwd":"..","path":"../go.mod"}`},
		{clean + "/src/api", `{"cwd":"..","path":"*.go","d":"d"}`},
		{clean + "/src", `{"paths":["../lib","../src","api","."],"pattern":"**/*.go"}`},
		{clean, `{"path":"src","pattern":"**/*.go"}`},
		{clean, `{"path":"` + clean + `","pattern":"**/*.go"}`},
		{clean, `{"path":"` + clean + `/src","pattern":"func \(s \*Store\) .*\{","glob":"*.go"}`},
		{clean, `{"path":"/usr/bin","pattern":"*.go"}`},
		{clean, `{"paths":` + string(list) + `}`},
		{clean, `{"path":"src","content":` + string(text) + `,"lib":"src/main.go"}`},
		{clean, `{"command":"git log -- src/api","description":"Show the log","cwd":"src","d":"d/token"}`},
	} {
		t.Run(fmt.Sprintf("%.60s", c.input), func(t *testing.T) {
			if found, may := NewSearch(own, new(atomic.Uint64)).Input(c.folder, []byte(c.input)); found || may {
				t.Error(found, may)
			}
		})
	}
}

// TestALongTextIsLookedThroughInItsLength: not in the square of it, which would take minutes.
func TestALongTextIsLookedThroughInItsLength(t *testing.T) {
	own, _, clean := hostile(t)
	for part, want := range map[string]string{"git a;": "unasked", "git *;": "asked", "../": "asked", "../*": "asked",
		"./": "unasked", "here/": "unasked", "a/../": "unasked", "../ ": "unasked"} {
		began := time.Now()
		got := judged(own, clean, strings.Repeat(part, 1<<20/len(part)))
		if got != want || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %s after %s", part, got, time.Since(began))
		}
	}
}

// TestLongPathsAndManyFoldersEndASearch: which takes seconds otherwise, for each of many calls.
func TestLongPathsAndManyFoldersEndASearch(t *testing.T) {
	own, _, clean := hostile(t)
	var long, many []string
	for i := range 10 {
		long = append(long, fmt.Sprintf("../x%d ", i)+strings.Repeat("../ ", 1000))
	}
	for i := range 200 {
		many = append(many, fmt.Sprintf("none%d/../src", i))
	}
	for _, texts := range [][]string{long, many} {
		input, _ := json.Marshal(texts) // plain texts
		if _, may := NewSearch(own, new(atomic.Uint64)).Input(clean, input); !may {
			t.Errorf("%d texts of %d bytes in all are looked through", len(texts), len(input))
		}
	}
}

// TestABindMountIsKnownByWhatItIs: it has no target to follow. The mounts are private to a process.
func TestABindMountIsKnownByWhatItIs(t *testing.T) {
	const key = "OWN_TEST_MOUNTS"
	if os.Getenv(key) == "" {
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		self.Env = append(os.Environ(), key+"=yes")
		self.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		if out, err := self.CombinedOutput(); err != nil || strings.Count(string(out), "--- PASS: ") < 2 {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	own, _, clean := hostile(t)
	home := filepath.Dir(clean)
	if err := os.MkdirAll(filepath.Join(home, "d/data/backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{"Lb": "d/data", "Lpart": "d/data/backups", "deep/er/Lb": "d/data", "Lhome": "d",
		"src/api": "clean/src"} {
		if err := os.MkdirAll(filepath.Join(clean, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(filepath.Join(home, of), filepath.Join(clean, name), "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(clean, name), syscall.MNT_DETACH) })
	}
	for name, want := range map[string]bool{
		"Lb": true, "Lb/admin.key": true, "Lb/new": true, "Lhome": true, "Lhome/token": true, "Lhome/other": false, "src/api/main.go": false,
		"Lpart": true, "Lpart/old.db": true, "": true, "deep": true, "deep/er": true, "src": false,
	} {
		t.Run("C2/"+name, func(t *testing.T) {
			if what, found := Find(own, filepath.Join(clean, name)); found != want {
				t.Errorf("%v %s", found, what)
			}
		})
	}
	for text, want := range map[string]string{
		"Lb/admin.key:1": "asked", "L*": "asked", "**/*.go": "asked", "src/**": "unasked", "src/api/main.go:1": "unasked",
	} {
		t.Run("C2/"+text, func(t *testing.T) {
			if got := judged(own, clean, text); got != want {
				t.Error(got)
			}
		})
	}
}

// TestLongLinksEndASearch: links that cost more than a call may are not followed to their end, and what they lead to may be the daemon's.
func TestLongLinksEndASearch(t *testing.T) {
	at := t.TempDir()
	if err := os.Mkdir(filepath.Join(at, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	const links = 60 // of 4 KB
	for i := range links {
		to := strings.Repeat("x/../", 810) + fmt.Sprintf("c%d", i+1)
		if err := os.Symlink(to, filepath.Join(at, fmt.Sprintf("c%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	long, short := Follow(), Follow()
	if to, known := long.Leads(filepath.Join(at, "c0")); known || long.left >= 0 {
		t.Errorf("it leads to %s, with %d left", to, long.left)
	}
	end := filepath.Join(at, fmt.Sprintf("c%d", links))
	costs := 5*(810+1) + strings.Count(end, "/")
	if to, known := short.Leads(filepath.Join(at, fmt.Sprintf("c%d", links-5))); !known || to != end || short.left != MaxLinks-costs {
		t.Errorf("a short one leads to %s, %t, with %d left", to, known, short.left)
	}
	deep := Follow()
	if to, known := deep.Leads("/none/" + strings.Repeat("x /", 30_000)); known || deep.left < MaxLinks-2000 {
		t.Errorf("a path of 90,000 bytes leads to %.20s, %t, with %d left", to, known, deep.left)
	}
	input := `{"command":"cp`
	for range 300 {
		input += " c0"
	}
	files := []string{filepath.Join(at, "own", "daycared.db")}
	if _, may := NewSearch(files, new(atomic.Uint64)).Input(at, []byte(input+` dst"}`)); !may {
		t.Error("a call with many of them is let through")
	}
	if what, found := Find(files, filepath.Join(at, "c0")); !found {
		t.Errorf("a path of one is let through: %q", what)
	}
	if _, found := Find(files, filepath.Join(at, "x")); found {
		t.Error("another folder is not")
	}
}
