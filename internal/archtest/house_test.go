package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/daycared/daycared"
	root     = "../.."
	maxLines = 900
)

// rooms lists what production code of each part may import of ours. The last matching row counts. A path that ends in
// /... is the folder and everything below. Tests, and packages whose names end in test, may use concrete parts;
// production code does not import them.
var rooms = []struct {
	part string
	may  []string
}{
	{"permissions", []string{"permissions/i18n"}},
	{"permissions/acts", []string{"permissions", "permissions/i18n"}},
	{"permissions/edits", []string{"permissions"}},
	{"permissions/edits/editstest", nil},
	{"permissions/i18n", nil},
	{"permissions/rules", []string{"permissions", "permissions/acts", "permissions/i18n"}},
	{"permissions/timing", nil},
	{"permissions/registry", []string{"permissions", "permissions/timing"}},
	{"internal/...", []string{"permissions", "permissions/timing", "internal/..."}},
	{"connectors/...", []string{"permissions", "permissions/acts", "permissions/edits", "permissions/i18n", "permissions/registry",
		"permissions/timing", "internal/wire", "connectors/..."}},
	{"connectors/admin", []string{"permissions", "permissions/i18n", "permissions/registry", "permissions/timing", "internal/wire",
		"internal/server", "connectors/..."}},
	{"agents/...", []string{"permissions", "permissions/acts", "permissions/edits", "permissions/rules", "permissions/timing", "internal/wire",
		"internal/own", "agents/..."}},
	{"agents/api", []string{"permissions", "permissions/timing", "internal/own", "internal/wire", "internal/server", "agents"}},
	{"client", []string{"permissions", "permissions/timing", "internal/wire"}},
	{"engine", []string{"permissions/...", "connectors", "agents", "internal/aside", "internal/own", "engine/directory", "engine/agenthost",
		"engine/dispatch", "engine/shared"}},
	{"engine/shared", []string{"permissions"}},
	{"engine/directory", []string{"permissions", "permissions/acts", "permissions/i18n", "permissions/rules", "permissions/timing",
		"internal/own", "connectors", "engine/shared"}},
	{"engine/agenthost", []string{"permissions", "permissions/timing", "connectors", "agents", "engine/directory", "engine/shared"}},
	{"engine/dispatch", []string{"permissions", "permissions/i18n", "permissions/registry", "permissions/timing",
		"connectors", "engine/directory", "engine/shared"}},
	{"engine/store/...", []string{"permissions", "agents"}},
	{"engine/simulation", nil}, // only tests
	{"engine/residenttest", nil},
	{"engine/wiretest", nil},
	{"cmd/daycared/...", []string{"..."}},
	{"examples/...", []string{"permissions", "permissions/i18n", "permissions/timing", "connectors/..."}}, // as a connector
	{"tools/gallery", nil},
	{"tools/mutate", nil},
	{"tools/outside", []string{"permissions"}}, // only benchmarks
	{"tools/grow", []string{"permissions", "engine/store"}},
}

// owners lists the only parts that may import a library, tests included.
var owners = []struct {
	library string
	parts   []string
}{
	{"database/sql/...", []string{"engine/store/...", "connectors/whatsapp", "tools/outside"}}, // the second for its keys
	{"github.com/jackc/pgx/v5/...", []string{"engine/store/...", "engine/wiretest", "internal/pgtest", "tools/outside"}},
	{"github.com/mattn/go-sqlite3/...", []string{"engine/store/...", "connectors/whatsapp/...", "tools/outside"}}, // the second for its keys
	{"github.com/pressly/goose/...", []string{"engine/store/..."}},
	{"github.com/spf13/viper/...", []string{"cmd/daycared/..."}},
	{"github.com/spf13/cobra/...", []string{"cmd/daycared/..."}},
	{"github.com/prometheus/...", []string{"cmd/daycared/..."}},
	{"github.com/danielgtaylor/huma/...", []string{"internal/server", "agents/api", "connectors/admin"}},
	{"github.com/go-telegram-bot-api/...", []string{"connectors/telegram/..."}},
	{"github.com/tailscale/hujson/...", []string{"cmd/daycared/connect"}},
	{"github.com/pelletier/go-toml/...", []string{"cmd/daycared/connect"}},
	{"github.com/landlock-lsm/...", []string{"agents/sandbox"}},
	{"golang.org/x/net/bpf", []string{"agents/sandbox"}},
	{"golang.org/x/net/html/...", []string{"agents/tools"}},
	{"github.com/aymanbagabas/go-udiff/...", []string{"permissions/edits"}},
	{"github.com/bmatcuk/doublestar/...", []string{"agents/tools"}},
	{"go.mau.fi/whatsmeow/...", []string{"connectors/whatsapp/..."}},
	{"go.mau.fi/libsignal/...", []string{"connectors/whatsapp/..."}},
	{"github.com/sashabaranov/go-openai/...", []string{"agents/models/openai"}},
	{"mvdan.cc/sh/...", []string{"permissions/acts"}},
	{"github.com/modelcontextprotocol/go-sdk/...", []string{"agents/...", "tools/outside"}},
}

// pkg is a package from go list; our paths are without the module's name.
type pkg struct {
	ImportPath, Doc                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

func TestHouse(t *testing.T) {
	house := list(t)
	if !slices.ContainsFunc(house, func(p pkg) bool { return p.ImportPath == "permissions" }) {
		t.Fatalf("go list does not tell of permissions, only of %d other packages", len(house))
	}
	for _, trespass := range trespasses(house) {
		t.Error(trespass)
	}
	if circle := circle(house); circle != nil {
		t.Errorf("the folders import in a circle: %s", strings.Join(circle, " → "))
	}
	for _, p := range house {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// TestPermissionsIsPure: what decides takes no part in what happens at the same time.
func TestPermissionsIsPure(t *testing.T) {
	for _, p := range list(t) {
		impure := []string{"context", "os/...", "net/...", "sync/...", "golang.org/x/sync/..."}
		for _, path := range p.Imports {
			if p.ImportPath == "permissions" && matches(path, impure) {
				t.Errorf("permissions is to be pure, and imports %s", path)
			}
		}
	}
}

// TestTheClientBringsLittle: a program that asks does not get our server, nor more than five modules.
func TestTheClientBringsLittle(t *testing.T) {
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", "./client")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		modules, packages := map[string]bool{}, 0
		for line := range strings.Lines(string(out)) {
			from, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			packages++
			if path != "" && from != module {
				modules[from] = true
			}
			if strings.HasPrefix(path, module+"/internal/server") {
				t.Errorf("%s: the client imports %s", system, path)
			}
		}
		if len(modules) > 5 || packages < 50 || modules["github.com/danielgtaylor/huma/v2"] {
			t.Errorf("%s: the client brings %d packages, and the modules %v; at most 5, and not huma", system, packages,
				slices.Sorted(maps.Keys(modules)))
		}
	}
}

// TestWhoStartsGoroutinesLooksForLeaks: the tests of every package that starts a goroutine check for leaks. Packages
// for tests have no tests; their users check.
func TestWhoStartsGoroutinesLooksForLeaks(t *testing.T) {
	looked := 0
	for _, p := range list(t) {
		if strings.HasSuffix(p.ImportPath, "test") || !starts(t, p) {
			continue
		}
		looked++
		if !slices.Contains(slices.Concat(p.TestImports, p.XTestImports), "go.uber.org/goleak") {
			t.Errorf("%s starts goroutines, and its tests do not look for leaks", p.ImportPath)
		}
	}
	if looked < 10 {
		t.Errorf("only %d packages start goroutines", looked)
	}
}

// starts reports whether a package's production code starts goroutines, itself or by a group.
func starts(t *testing.T, p pkg) (found bool) {
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, p.ImportPath, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.SelectorExpr:
				found = found || n.Sel.Name == "Go"
			}
			return true
		})
	}
	return found
}

// named is a Go file that a comment names, without a folder.
var named = regexp.MustCompile(`(?:^|[^\w/])([a-z][a-z0-9_]*\.go)\b`)

// TestCommentsNameFilesThatExist: file names in a package comment stay correct after files were merged.
func TestCommentsNameFilesThatExist(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				seen++
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
					t.Errorf("%s: a comment names %s, which is not beside it", path, m[1])
				}
			}
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Fatalf("read the tree: %d names, %v", seen, err)
	}
}

func TestFilesAreShort(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		seen++
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines; more than %d are more than one idea", path, n, maxLines)
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Fatalf("read the tree: %d files, %v", seen, err)
	}
}

func TestTrespasses(t *testing.T) {
	tests := []struct {
		name string
		p    pkg
		want int
	}{
		{"inward", pkg{ImportPath: "engine", Imports: []string{"context", "connectors", "permissions"}}, 0},
		{"a registry where all is pure", pkg{ImportPath: "permissions", Imports: []string{"permissions/registry"}}, 1},
		{"a registry for who asks", pkg{ImportPath: "agents", Imports: []string{"permissions/registry"}}, 1},
		{"outward", pkg{ImportPath: "permissions", Imports: []string{"engine"}}, 1},
		{"sideways", pkg{ImportPath: "agents/api", Imports: []string{"agents", "connectors", "connectors/card"}}, 2},
		{"into a part", pkg{ImportPath: "engine", Imports: []string{"engine/store", "connectors/terminal"}}, 2},
		{"store", pkg{ImportPath: "engine/store", Imports: []string{"permissions", "engine", "database/sql"}}, 1},
		{"the suite of the store", pkg{ImportPath: "engine/store/storetest", Imports: []string{"engine"}}, 0},
		{"a suite in what ships", pkg{ImportPath: "cmd/daycared", Imports: []string{"engine/store/storetest"}}, 1},
		{"a test on real parts", pkg{ImportPath: "engine", XTestImports: []string{"engine/store"}}, 0},
		{"a library not its own", pkg{ImportPath: "engine", Imports: []string{"database/sql/driver"}}, 1},
		{"nor in a test", pkg{ImportPath: "engine", TestImports: []string{"github.com/mattn/go-sqlite3"}}, 1},
		{"a version of a library", pkg{ImportPath: "agents/mcp", Imports: []string{"github.com/danielgtaylor/huma/v2"}}, 1},
		{"the wiring", pkg{ImportPath: "cmd/daycared", Imports: []string{"engine/store", "github.com/spf13/cobra"}}, 0},
		{"a name that only begins alike", pkg{ImportPath: "permissionsx"}, 1},
		{"no place in the house", pkg{ImportPath: "util"}, 1},
	}
	ours := []pkg{{ImportPath: "permissions"}, {ImportPath: "permissions/registry"},
		{ImportPath: "connectors"}, {ImportPath: "connectors/card"},
		{ImportPath: "connectors/terminal"}, {ImportPath: "agents"}, {ImportPath: "engine"}, {ImportPath: "engine/store"},
		{ImportPath: "engine/store/storetest"}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := trespasses(append([]pkg{test.p}, ours...)); len(got) != test.want {
				t.Errorf("%d trespasses, want %d: %q", len(got), test.want, got)
			}
		})
	}
}

func TestCircle(t *testing.T) {
	straight := []pkg{{ImportPath: "cmd/daycared", Imports: []string{"agents/api", "engine"}},
		{ImportPath: "agents/api", Imports: []string{"agents"}}, {ImportPath: "agents"},
		{ImportPath: "engine", Imports: []string{"agents"}}}
	if got := circle(straight); got != nil {
		t.Errorf("a circle where there is none: %q", got)
	}
	straight[2].Imports = []string{"engine/store"} // a cycle of folders, not of packages
	if got := circle(append(straight, pkg{ImportPath: "engine/store"})); len(got) != 3 || got[0] != got[2] {
		t.Errorf("the circle is %q, want agents → engine → agents", got)
	}
}

// TestFilesOfTheStoreStandInOneOrder: a file of the store uses only names of files below it.
func TestFilesOfTheStoreStandInOneOrder(t *testing.T) {
	uses := fileUses(t, filepath.Join(root, "engine/store"))
	if len(uses["write.go"]["tx.go"]) == 0 {
		t.Fatalf("write.go uses nothing of tx.go; the uses are %v", uses)
	}
	var shortest []string // circle of files, each of which uses the one before
	for file := range uses {
		via, next := map[string]string{}, []string{file}
		for ; len(next) > 0; next = next[1:] {
			for used := range uses[next[0]] {
				if via[used] == "" {
					via[used], next = next[0], append(next, used)
				}
			}
		}
		way := []string{file}
		for user := via[file]; user != ""; user = via[user] {
			if way = append(way, user); user == file {
				break
			}
		}
		if len(way) > 1 && (shortest == nil || len(way) < len(shortest)) {
			shortest = way
		}
	}
	for i := range max(0, len(shortest)-1) {
		t.Errorf("in a circle, %s uses %v of %s", shortest[i+1], uses[shortest[i+1]][shortest[i]], shortest[i])
	}
}

// fileUses returns the names that each file of a package uses of each other file. What other packages define is not looked at.
func fileUses(t *testing.T, dir string) map[string]map[string][]string {
	t.Helper()
	fset, uses := token.NewFileSet(), map[string]map[string][]string{}
	var files []*ast.File
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go")) // the pattern is valid
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, uses[filepath.Base(path)] = append(files, file), map[string][]string{}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}} // names of other packages are unknown
	pkg, _ := config.Check(dir, fset, files, &info)
	for name, object := range info.Uses {
		_, method := object.(*types.Func)
		if object.Pkg() != pkg || !method && object.Parent() != pkg.Scope() {
			continue
		}
		user, of := filepath.Base(fset.Position(name.Pos()).Filename), filepath.Base(fset.Position(object.Pos()).Filename)
		if user != of && !slices.Contains(uses[user][of], name.Name) {
			uses[user][of] = append(uses[user][of], name.Name)
		}
	}
	return uses
}

// emptyPackages imports every package as one without names.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// list is every package of the module. It needs no network: go test has just built them.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "real",
		"-json=ImportPath,Doc,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var house []pkg
	for in := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(out, []byte(module+"/"), nil))); ; {
		var p pkg
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return house
		} else if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		house = append(house, p)
	}
}

// trespasses describes the imports that rooms and owners do not allow.
func trespasses(house []pkg) []string {
	ours := map[string]bool{}
	for _, p := range house {
		ours[p.ImportPath] = true
	}
	var found []string
	for _, p := range house {
		may, ok := room(p.ImportPath)
		if !ok {
			found = append(found, p.ImportPath+" has no room in the house")
		}
		for _, path := range p.Imports {
			if ok && ours[path] && !forTests(p.ImportPath) && (forTests(path) || !matches(path, may)) {
				found = append(found, p.ImportPath+" may not import "+path+": of our packages it may import "+strings.Join(may, ", "))
			}
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for _, o := range owners {
				if matches(path, []string{o.library}) && !matches(p.ImportPath, o.parts) {
					found = append(found, p.ImportPath+" may not import "+path+": only "+strings.Join(o.parts, ", ")+" may")
				}
			}
		}
	}
	return found
}

func room(path string) (may []string, ok bool) {
	for _, r := range rooms {
		if matches(path, []string{r.part}) {
			may, ok = r.may, true
		}
	}
	return may, ok
}

func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		folder, below := strings.CutSuffix(pattern, "...")
		return path == strings.TrimSuffix(folder, "/") || below && strings.HasPrefix(path, folder)
	})
}

func forTests(path string) bool { return strings.HasSuffix(path, "test") }

// circle is a cycle of top folders, or nil.
func circle(house []pkg) []string {
	house = slices.DeleteFunc(slices.Clone(house), func(p pkg) bool { return forTests(p.ImportPath) })
	leads := map[string]map[string]bool{}
	for _, p := range house {
		leads[top(p.ImportPath)] = map[string]bool{}
	}
	for _, p := range house {
		for _, path := range p.Imports {
			if from, to := top(p.ImportPath), top(path); from != to && leads[to] != nil {
				leads[from][to] = true
			}
		}
	}
	var walk func(way []string) []string
	walk = func(way []string) []string {
		for _, next := range slices.Sorted(maps.Keys(leads[way[len(way)-1]])) {
			longer := append(slices.Clone(way), next)
			if i := slices.Index(way, next); i >= 0 {
				return longer[i:]
			}
			if found := walk(longer); found != nil {
				return found
			}
		}
		return nil
	}
	for _, folder := range slices.Sorted(maps.Keys(leads)) {
		if found := walk([]string{folder}); found != nil {
			return found
		}
	}
	return nil
}

func top(path string) string {
	folder, _, _ := strings.Cut(path, "/")
	return folder
}
