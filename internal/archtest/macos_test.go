package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMacOS type-checks everything as macOS compiles it, tests included, from sources alone: compiling would need all
// dependencies for macOS, and a C compiler for SQLite. What C declares is not checked.
func TestMacOS(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test",
		"-json=ImportPath,Dir,Standard,GoFiles,CgoFiles,ImportMap", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := mac{types: map[string]*types.Package{"unsafe": types.Unsafe}}
	for in := json.NewDecoder(out); ; { // a package comes after its imports
		var p source
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		if strings.HasSuffix(p.ImportPath, ".test") || p.ImportPath == "unsafe" {
			continue // the main package of go test
		}
		for _, err := range m.check(p) {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("go list: %v", err)
	}
}

// source is a package from go list.
type source struct {
	ImportPath, Dir   string
	GoFiles, CgoFiles []string
	ImportMap         map[string]string
}

// mac has the types of the packages so far.
type mac struct {
	types map[string]*types.Package
}

// check type-checks a package, and returns the errors in ours.
func (m mac) check(p source) (wrong []error) {
	ours := strings.HasPrefix(p.ImportPath, module)
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		parsed = append(parsed, f)
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // "x [x.test]" is x for its tests
	conf := types.Config{
		Importer:         importer{m.types, p.ImportMap},
		Sizes:            types.SizesFor("gc", "arm64"),
		FakeImportC:      true,
		IgnoreFuncBodies: !ours,
		Error: func(err error) {
			if ours {
				wrong = append(wrong, err)
			}
		},
	}
	m.types[p.ImportPath], _ = conf.Check(path, files, parsed, nil)
	return wrong
}

// importer resolves the imports of a package.
type importer struct {
	types map[string]*types.Package
	names map[string]string
}

// Import implements [types.Importer].
func (i importer) Import(path string) (*types.Package, error) {
	if name, ok := i.names[path]; ok {
		path = name
	}
	if p := i.types[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not listed: " + path)
}
