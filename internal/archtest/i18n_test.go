package archtest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	gc "go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions/i18n"
)

// phrase is a constant of the type [i18n.Phrase] in production code.
type phrase struct {
	text string
	at   token.Position
	args int // where it is formatted; -1: it is not, or with a list
}

// exported is a package from go list, with the file of what it exports.
type exported struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
}

// phrases type-checks our packages, and returns every phrase that their code has.
func phrases(t *testing.T) (all []phrase) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports, ours := map[string]string{}, []exported(nil)
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p exported
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if exports[p.ImportPath] = p.Export; strings.HasPrefix(p.ImportPath, module+"/") {
			ours = append(ours, p)
		}
	}
	for _, p := range ours {
		all = append(all, p.phrases(t, exports)...)
	}
	return all
}

// phrases returns the phrases of one package.
func (p exported) phrases(t *testing.T, exports map[string]string) (all []phrase) {
	t.Helper()
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	config := types.Config{FakeImportC: true, Importer: gc.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := config.Check(p.ImportPath, set, files, info); err != nil {
		t.Fatal(err)
	}
	args, parts := map[ast.Expr]int{}, map[ast.Expr]bool{} // of what is formatted, and of what is put together
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if sum, ok := n.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
				parts[sum.X], parts[sum.Y] = true, true
			}
			if call, ok := n.(*ast.CallExpr); ok && !call.Ellipsis.IsValid() {
				for i, arg := range call.Args {
					formats := false
					if f, is := call.Fun.(*ast.SelectorExpr); is {
						formats = f.Sel.Name == "Sprintf" && i == 0
						if f.Sel.Name == "Plural" && i == 1 {
							args[arg] = max(len(call.Args)-2, 1)
						}
					}
					if formats {
						args[arg] = len(call.Args) - 1
					}
				}
			}
			return true
		})
	}
	for e, is := range info.Types {
		name, isNamed := types.Unalias(is.Type).(*types.Named)
		if is.Value == nil || parts[e] || !isNamed || name.Obj().Name() != "Phrase" || constant.StringVal(is.Value) == "" {
			continue
		}
		n, formatted := args[e]
		if !formatted {
			n = -1
		}
		all = append(all, phrase{constant.StringVal(is.Value), set.Position(e.Pos()), n})
	}
	return all
}

// wholes are phrases by their text.
func wholes(all []phrase) (texts map[string]phrase) {
	texts = map[string]phrase{}
	for _, p := range all {
		texts[p.text] = p
	}
	return texts
}

// verb matches a placeholder of fmt, with its explicit argument.
var verb = regexp.MustCompile(`%(\[\d+\])?[a-zA-Z]|%%`)

// placeholders are the arguments that a form uses, by number, with their verbs.
func placeholders(form string) (all []string) {
	next := 1
	for _, m := range verb.FindAllStringSubmatch(form, -1) {
		if m[0] == "%%" {
			continue
		}
		if m[1] != "" {
			fmt.Sscanf(m[1], "[%d]", &next)
		}
		all = append(all, fmt.Sprintf("%d%c", next, m[0][len(m[0])-1]))
		next++
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// faults compares a catalogue with the phrases that there are.
func faults(known map[string]phrase, file string) (wrong []string) {
	has, key := map[string]bool{}, ""
	for line := range strings.Lines(file) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n")
		row, isRow := strings.CutPrefix(line, "\t")
		if !isRow {
			if has[line] {
				wrong = append(wrong, fmt.Sprintf("%q has two rows", line))
			}
			if _, used := known[line]; !used {
				wrong = append(wrong, fmt.Sprintf("no code uses %q", line))
			}
			key, has[line] = line, true
			continue
		}
		forms, rows := strings.Split(key, "|"), strings.Split(row, "|")
		if len(forms) != len(rows) {
			wrong = append(wrong, fmt.Sprintf("%q has %d forms, and %q has %d", key, len(forms), row, len(rows)))
			continue
		}
		for i, form := range forms {
			if want, got := placeholders(form), placeholders(rows[i]); !slices.Equal(want, got) && row != "" {
				wrong = append(wrong, fmt.Sprintf("%q has the placeholders %v, and %q has %v", form, want, rows[i], got))
			}
		}
		if row == "" {
			wrong = append(wrong, fmt.Sprintf("%q is empty", key))
		}
	}
	for text, p := range known {
		if !has[text] {
			wrong = append(wrong, fmt.Sprintf("%s: no row for\n%s", p.at, strings.ReplaceAll(text, "\n", `\n`)))
		}
		for form := range strings.SplitSeq(text, "|") {
			if used := placeholders(form); p.args >= 0 && len(used) > p.args {
				wrong = append(wrong, fmt.Sprintf("%s: %q takes %d arguments and gets %d", p.at, form, len(used), p.args))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestEveryLanguageHasEveryPhrase: the code is the English catalogue, and each file has a row for all of it and nothing else, with the
// same placeholders.
func TestEveryLanguageHasEveryPhrase(t *testing.T) {
	known := wholes(phrases(t))
	if len(known) < 300 {
		t.Fatalf("only %d phrases were found", len(known))
	}
	for _, l := range i18n.Languages() {
		if l == i18n.English {
			continue
		}
		file, err := os.ReadFile(filepath.Join(root, "permissions", "i18n", string(l)+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range faults(known, string(file)) {
			t.Errorf("%s: %s", l, wrong)
		}
	}
}

func TestWhatIsWrongWithACatalogueIsSaid(t *testing.T) {
	known := map[string]phrase{
		"%s asks %d":     {text: "%s asks %d", args: 2},
		"%d row|%d rows": {text: "%d row|%d rows", args: 1},
		"Yes":            {args: -1},
	}
	const right = "%s asks %d\n\t%[2]d fragt %[1]s\n%d row|%d rows\n\t%d Zeile|%d Zeilen\nYes\n\tJa\n"
	for file, want := range map[string]string{
		right: "",
		strings.Replace(right, "%[2]d fragt %[1]s", "%s fragt", 1):    "has the placeholders [1s 2d]",
		strings.Replace(right, "%[2]d fragt %[1]s", "%d fragt %s", 1): "has the placeholders [1s 2d]",
		strings.Replace(right, "%d Zeile|", "", 1):                    "has 2 forms",
		strings.Replace(right, "%d Zeile|", "Zeile|", 1):              "has the placeholders [1d]",
		strings.TrimSuffix(right, "Yes\n\tJa\n"):                      "no row for\nYes",
		strings.Replace(right, "\tJa", "\t", 1):                       "is empty",
		right + "Yes\n\tJa\n":                                         "has two rows",
		right + "No\n\tNein\n":                                        `no code uses "No"`,
	} {
		got := strings.Join(faults(known, file), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s is said to have %q; want %q", file, got, want)
		}
	}
}
