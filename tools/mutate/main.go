// Command mutate changes the code of a package in one place at a time and runs the package's tests each time
// (make mutate). All mutants of a package are compiled at once: each changed operator asks whether its own mutant is the
// one that the environment names, so that a mutant costs no compilation. First each test runs alone, unchanged, and the
// process, and those that it starts, note which mutants could have made a difference. A mutant is then tried with the
// tests alone that met it, the quickest first, until one fails; what no test met has lived.
//
//	mutate [-run REGEXP] [-timeout D] FOLDER|FILE.go
//
// It prints one line for each mutant, with tabs between: KILLED, LIVED or TIMED OUT, what was changed, and FILE:LINE:COLUMN
// of the operator. Expressions whose value is known when they are compiled are not changed.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// support is added to the package under test. Which mutant is on, and where those that are met are noted, is read once,
// before the package's variables are made.
const support = `package %s

import (
	mutantCmp "cmp"
	mutantOS "os"
	mutantStrconv "strconv"
	mutantAtomic "sync/atomic"
)

var (
	mutantOn      = func() int { n, _ := mutantStrconv.Atoi(mutantOS.Getenv("MUTANT")); return n }()
	mutantsMet, _ = mutantOS.OpenFile(mutantOS.Getenv("MUTANTS_MET"), mutantOS.O_WRONLY|mutantOS.O_APPEND, 0)
	mutantMet     [%d]mutantAtomic.Bool
)

// mutantIs reports whether mutant n is on. Where it would make a difference, that is noted once.
func mutantIs(n int, differs bool) bool {
	if mutantsMet != nil && differs && !mutantMet[n].Swap(true) {
		mutantsMet.WriteString(mutantStrconv.Itoa(n) + "\n")
	}
	return mutantOn == n
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

func mutantLess[T mutantCmp.Ordered](n int, x, y T) bool {
	return mutantIs(n, x == y) && x <= y || mutantIs(n+1, true) && x >= y || mutantOn != n && mutantOn != n+1 && x < y
}

func mutantLessEqual[T mutantCmp.Ordered](n int, x, y T) bool {
	return mutantIs(n, x == y) && x < y || mutantIs(n+1, true) && x > y || mutantOn != n && mutantOn != n+1 && x <= y
}

func mutantGreater[T mutantCmp.Ordered](n int, x, y T) bool { return mutantLess(n, y, x) }

func mutantGreaterEqual[T mutantCmp.Ordered](n int, x, y T) bool { return mutantLessEqual(n, y, x) }

func mutantAdd[T mutantNumber](n int, x, y T) T {
	if mutantIs(n, true) {
		return x - y
	}
	return x + y
}

func mutantSubtract[T mutantNumber](n int, x, y T) T {
	if mutantIs(n, true) {
		return x + y
	}
	return x - y
}

func mutantMultiply[T mutantNumber](n int, x, y T) T {
	if mutantIs(n, true) {
		return x / y
	}
	return x * y
}

func mutantDivide[T mutantNumber](n int, x, y T) T {
	if mutantIs(n, true) {
		return x * y
	}
	return x / y
}

func mutantRemainder[T mutantInteger](n int, x, y T) T {
	if mutantIs(n, true) {
		return x * y
	}
	return x %% y
}

func mutantNegative[T mutantNumber](n int, x T) T {
	if mutantIs(n, true) {
		return x
	}
	return -x
}
`

var (
	ordered = map[token.Token]string{
		token.LSS: "mutantLess", token.LEQ: "mutantLessEqual", token.GTR: "mutantGreater", token.GEQ: "mutantGreaterEqual",
	}
	arithmetic = map[token.Token]string{
		token.ADD: "mutantAdd", token.SUB: "mutantSubtract", token.MUL: "mutantMultiply", token.QUO: "mutantDivide",
		token.REM: "mutantRemainder",
	}
)

// mutant is one change of one operator.
type mutant struct {
	kind string
	at   token.Position
}

func main() {
	run := flag.String("run", ".", "the `tests` that look at the part")
	limit := flag.Duration("timeout", 30*time.Second, "how long the tests of one mutant may take")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: mutate [-run REGEXP] [-timeout D] FOLDER|FILE.go")
		os.Exit(2)
	}
	if err := mutate(context.Background(), os.Stdout, flag.Arg(0), *run, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// patience is how many tests of a mutant may have no result in time: the next may fail at once.
const patience = 3

func mutate(ctx context.Context, out io.Writer, part, run string, limit time.Duration) error {
	folder, only := part, ""
	if strings.HasSuffix(part, ".go") {
		folder, only = filepath.Split(part)
	}
	p, err := load(ctx, filepath.Clean(folder))
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	binary, err := p.build(ctx, temp, only)
	if err != nil {
		return err
	}
	met, err := p.meet(ctx, binary, run, limit)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i, m := range p.mutants {
		all.Go(func() error {
			outcome, late := "LIVED", 0
			for _, t := range met[i+1] {
				room := min(limit, 20*t.took+5*time.Second)
				if late == patience-1 {
					room = limit // a test may fail only after it has waited for what does not come
				}
				said, err := p.test(ctx, binary, t.name, room, "MUTANT="+strconv.Itoa(i+1))
				if errors.Is(err, context.DeadlineExceeded) || bytes.Contains(said, []byte("panic: test timed out")) {
					outcome = "TIMED OUT"
					late++
				} else if err != nil {
					outcome = "KILLED"
				}
				if outcome == "KILLED" || late == patience {
					break
				}
			}
			_, err := fmt.Fprintf(out, "%s\t%s\t%s:%d:%d\n", outcome, m.kind, filepath.ToSlash(m.at.Filename), m.at.Line, m.at.Column)
			return err
		})
	}
	return all.Wait()
}

// pack is a package whose types are known.
type pack struct {
	folder  string
	name    string
	fset    *token.FileSet
	files   []*ast.File
	texts   map[string][]byte
	info    types.Info
	mutants []mutant
}

// load reads the files of a package, with the types of what it imports as the go command compiled them.
func load(ctx context.Context, folder string) (*pack, error) {
	list := exec.CommandContext(ctx, "go", "list", "-export", "-deps", //nolint:gosec // a folder of the developer's
		"-json=Dir,ImportPath,Name,Export,GoFiles,CgoFiles,DepOnly", "./"+folder)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	exports := map[string]string{}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	p := &pack{folder: folder, fset: token.NewFileSet(), texts: map[string][]byte{}, info: info}
	var path string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var one struct {
			ImportPath, Name, Export string
			GoFiles, CgoFiles        []string
			DepOnly                  bool
		}
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[one.ImportPath] = one.Export
		if one.DepOnly {
			continue
		}
		path, p.name = one.ImportPath, one.Name
		for _, name := range one.GoFiles {
			name = filepath.Join(folder, name)
			text, err := os.ReadFile(name) //nolint:gosec // a file of the developer's
			if err != nil {
				return nil, err
			}
			file, err := parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p.files, p.texts[name] = append(p.files, file), text
		}
	}
	imports := importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	_, err = (&types.Config{Importer: imports}).Check(path, p.fset, p.files, &p.info)
	return p, err
}

// build compiles the tests of the package with every mutant in it, switched off.
func (p *pack) build(ctx context.Context, temp, only string) (string, error) {
	overlay := struct{ Replace map[string]string }{Replace: map[string]string{}}
	add := func(name, kept string, text []byte) error {
		full, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		overlay.Replace[full] = filepath.Join(temp, kept)
		return os.WriteFile(overlay.Replace[full], text, 0o600)
	}
	for i, file := range p.files {
		name := p.fset.Position(file.Package).Filename
		if only != "" && filepath.Base(name) != only {
			continue
		}
		if err := add(name, strconv.Itoa(i)+".go", p.changed(file, p.texts[name])); err != nil {
			return "", err
		}
	}
	if len(p.mutants) == 0 {
		return "", errors.New("there is nothing to change")
	}
	helpers := fmt.Appendf(nil, support, p.name, len(p.mutants)+1)
	if err := add(filepath.Join(p.folder, "mutant_support.go"), "support.go", helpers); err != nil {
		return "", err
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	replace, binary := filepath.Join(temp, "overlay.json"), filepath.Join(temp, "mutants.test")
	if err := os.WriteFile(replace, text, 0o600); err != nil {
		return "", err
	}
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", //nolint:gosec // a folder of the developer's
		"-overlay", replace, "-o", binary, "./"+p.folder)
	compile.Stdout, compile.Stderr = os.Stderr, os.Stderr
	if err := compile.Run(); err != nil {
		return "", fmt.Errorf("compile the mutants of %s: %w", p.folder, err)
	}
	full, err := filepath.Abs(binary)
	return full, err
}

// trial is a test, and how long it takes where nothing is changed.
type trial struct {
	name string
	took time.Duration
}

// meet runs each test alone and returns, of each mutant, the tests that met it, the quickest first.
func (p *pack) meet(ctx context.Context, binary, run string, limit time.Duration) (map[int][]trial, error) {
	list := exec.CommandContext(ctx, binary, "-test.list", run) //nolint:gosec // the tests that were compiled above
	list.Dir = p.folder
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", p.folder, err)
	}
	met := map[int][]trial{}
	var (
		all  errgroup.Group
		held sync.Mutex
	)
	all.SetLimit(runtime.NumCPU())
	for _, name := range strings.Fields(string(names)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		all.Go(func() error {
			file, began := filepath.Join(filepath.Dir(binary), name), time.Now()
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return err
			}
			if said, err := p.test(ctx, binary, name, limit, "MUTANTS_MET="+file); err != nil {
				return fmt.Errorf("%s fails where nothing is changed: %w\n%s", name, err, said)
			}
			took := time.Since(began)
			numbers, err := os.ReadFile(file) //nolint:gosec // as above
			held.Lock()
			defer held.Unlock()
			for _, number := range strings.Fields(string(numbers)) {
				n, _ := strconv.Atoi(number)
				if i := slices.IndexFunc(met[n], func(t trial) bool { return t.name == name }); i < 0 { // not from two processes
					met[n] = append(met[n], trial{name, took})
				}
			}
			return err
		})
	}
	err = all.Wait()
	for _, of := range met {
		slices.SortFunc(of, func(a, b trial) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.name, b.name)) })
	}
	return met, err
}

// test runs one test, with what the environment says besides.
func (p *pack) test(ctx context.Context, binary, name string, limit time.Duration, env string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, binary, //nolint:gosec // the tests that were compiled above
		"-test.failfast", "-test.run", "^"+name+"$", "-test.timeout", limit.String())
	c.Dir = p.folder
	c.Env = append(os.Environ(), env)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

// edit replaces the text from one offset to another.
type edit struct {
	from, to int
	with     string
}

// changed is the text of a file in which each operator that can be changed asks for its mutants.
func (p *pack) changed(file *ast.File, text []byte) []byte {
	var edits []edit
	offset := func(at token.Pos) int { return p.fset.Position(at).Offset }
	insert := func(at token.Pos, with string) { edits = append(edits, edit{offset(at), offset(at), with}) }
	number := func(at token.Pos, kinds ...string) string {
		first := len(p.mutants) + 1
		for _, kind := range kinds {
			p.mutants = append(p.mutants, mutant{kind, p.fset.Position(at)})
		}
		return strconv.Itoa(first)
	}
	// call makes F(N, X, Y) of X op Y.
	call := func(e *ast.BinaryExpr, name string, kinds ...string) {
		insert(e.X.Pos(), name+"("+number(e.OpPos, kinds...)+", ")
		edits = append(edits, edit{offset(e.OpPos), offset(e.OpPos) + len(e.Op.String()), ","})
		insert(e.Y.End(), ")")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST && n.Tok != token.TYPE
		case *ast.ArrayType:
			return false
		case *ast.BinaryExpr:
			t := p.info.Types[n]
			if t.Value != nil {
				return false
			}
			if name := ordered[n.Op]; name != "" {
				call(n, name, "CONDITIONALS_BOUNDARY", "CONDITIONALS_NEGATION")
			} else if n.Op == token.EQL || n.Op == token.NEQ {
				insert(n.X.Pos(), "((")
				insert(n.Y.End(), ") != mutantIs("+number(n.OpPos, "CONDITIONALS_NEGATION")+", true))")
			} else if name := arithmetic[n.Op]; name != "" && isNumber(t.Type) {
				call(n, name, "ARITHMETIC_BASE")
			}
		case *ast.UnaryExpr:
			if t := p.info.Types[n]; n.Op == token.SUB && t.Value == nil && isNumber(t.Type) {
				edits = append(edits, edit{offset(n.OpPos), offset(n.X.Pos()), "mutantNegative(" + number(n.OpPos, "INVERT_NEGATIVES") + ", "})
				insert(n.X.End(), ")")
			}
		case *ast.IncDecStmt:
			name := "mutantAdd"
			if n.Tok == token.DEC {
				name = "mutantSubtract"
			}
			x := string(text[offset(n.X.Pos()):offset(n.X.End())])
			edits = append(edits, edit{offset(n.TokPos), offset(n.TokPos) + 2,
				" = " + name + "(" + number(n.TokPos, "INCREMENT_DECREMENT") + ", " + x + ", 1)"})
			return false
		}
		return true
	})
	return apply(text, edits)
}

func isNumber(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0
}

// apply makes the edits, which do not overlap. Of insertions at one place the one that was made first, which is that of
// the outer expression, stands first where expressions begin, and last where they end.
func apply(text []byte, edits []edit) []byte {
	order := make([]int, len(edits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := edits[i], edits[j]
		if a.from != b.from {
			return a.from - b.from
		}
		if closes(a) != closes(b) {
			if closes(a) {
				return -1
			}
			return 1
		}
		if closes(a) {
			return j - i
		}
		return i - j
	})
	var out []byte
	at := 0
	for _, i := range order {
		e := edits[i]
		out = append(append(out, text[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, text[at:]...)
}

func closes(e edit) bool { return strings.HasPrefix(e.with, ")") }
