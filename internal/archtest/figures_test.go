package archtest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Marks in docs/performance.md: what is between them is written.
const (
	beginMark = "<!-- figures: written by make figures -->\n"
	endMark   = "<!-- figures end -->\n"
)

// figures runs tools/figures.sh in a tree that has only it, its goals and a page.
func figures(t *testing.T, tree string, args ...string) (string, error) {
	t.Helper()
	script := exec.CommandContext(t.Context(), "tools/figures.sh", args...)
	script.Dir = tree
	var said bytes.Buffer
	script.Stderr = &said
	out, err := script.Output()
	if err != nil {
		err = errors.New(said.String())
	}
	return string(out) + said.String(), err
}

func figuresTree(t *testing.T, page string) string {
	t.Helper()
	tree := t.TempDir()
	for _, name := range []string{"tools/figures.sh", "tools/figures.awk", "tools/goals.txt"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(tree, name), string(text))
	}
	put(t, filepath.Join(tree, "docs", "performance.md"), page)
	return tree
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// benchmarked is a file of what a run printed, with something in it changed.
func benchmarked(t *testing.T, old, now string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/bench.txt")
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("the sample has no %q, %v", old, err)
	}
	path := filepath.Join(t.TempDir(), "bench.txt")
	put(t, path, strings.ReplaceAll(string(text), old, now))
	return path
}

// hasLine reports an error unless a line of a table has all words.
func hasLine(t *testing.T, table string, words ...string) {
	t.Helper()
	for line := range strings.Lines(table) {
		found := true
		for _, w := range words {
			found = found && strings.Contains(line, w)
		}
		if found {
			return
		}
	}
	t.Errorf("no line has %q:\n%s", words, table)
}

func TestTheTableOfFiguresHasTheMiddleTheLeastAndTheMost(t *testing.T) {
	table, err := figures(t, figuresTree(t, ""), "show", benchmarked(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	hasLine(t, table, "U1 ", "2.50 (2.40–2.60)", "≤ 1.6", " not met")
	hasLine(t, table, "U8 ", "0.95 (0.95–0.95)", "≥ 0.9", " met")
	hasLine(t, table, "P1 ", "0 of 100,000", "0", " met")
	hasLine(t, table, "P2 ", "0.90 (0.80–1.00)", "≤ 1.5", " met")
	hasLine(t, table, "P3 ", "0.70 (0.60–0.90)", "≥ 0.85", " not met")
	hasLine(t, table, "P8 ", "2.00 (1.90–2.10)", "≤ 1.5", " not met")
	hasLine(t, table, "P8 ", "0 of 10,000", " met")
	hasLine(t, table, "P10 ", "from exec", "0.40 (0.30–0.50)", "≤ 1", " met")
	hasLine(t, table, "P11 ", "0.30 (0.20–0.40)", "≤ 1", " met")
	hasLine(t, table, "2 cores", "linux/amd64", "ext4", "go1.26")
	order := []int{strings.Index(table, "U7 "), strings.Index(table, "P2 "), strings.Index(table, "P10 ")}
	if !slices.IsSorted(order) {
		t.Error("the goals are not in order")
	}
}

func TestOneThatIsLostIsTooMuch(t *testing.T) {
	table, err := figures(t, figuresTree(t, ""), "show", benchmarked(t,
		"50000 decisions	      2000 decisions/s	         0 doubled	         0 hung	         0 lost",
		"50000 decisions	      2000 decisions/s	         0 doubled	         1 hung	         2 lost"))
	if err != nil {
		t.Fatal(err)
	}
	hasLine(t, table, "P1 ", "6 of 100,000", "not met")
}

func TestAFigureThatIsMissingIsSaidInOneLine(t *testing.T) {
	tree := figuresTree(t, "")
	for _, c := range []struct{ old, now, want string }{
		{"BenchmarkWake-2", "BenchmarkSleep-2", "P2: BenchmarkWake was not run"},
		{"callers-1000-2", "callers-10-2", "P3: BenchmarkThroughput/callers-1000 was not run"},
		{" s-to-end\t", " s-to-nowhere\t", "P10: BenchmarkServe/pending-100000 reports no s-to-end"},
		{" decisions\t", " indecisions\t", "P1: BenchmarkImmediate/part reports no decisions"},
		{" 0.9000 ratio", " often ratio", "read the output of the benchmarks"},
	} {
		out, err := figures(t, tree, "show", benchmarked(t, c.old, c.now))
		if err == nil || !strings.HasPrefix(out, "figures: "+c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("without %s: %v\n%s", c.old, err, out)
		}
	}
	if _, err := figures(t, tree, "show", "nothing.txt"); err == nil || !strings.Contains(err.Error(), "nothing.txt") {
		t.Errorf("without a file: %v", err)
	}
}

func TestThePageOfFiguresAndThePictureAreWritten(t *testing.T) {
	tree := figuresTree(t, "# before\n"+beginMark+"what was there\n"+endMark+"after\n")
	for range 2 { // what was written before is replaced
		if _, err := figures(t, tree, "write", benchmarked(t, "", "")); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(tree, "docs", "performance.md"))
	got := string(text)
	if err != nil || !strings.HasPrefix(got, "# before\n"+beginMark+"Measured on 2 cores") || !strings.HasSuffix(got, endMark+"after\n") ||
		strings.Contains(got, "what was there") || strings.Count(got, "| P2 |") != 1 {
		t.Errorf("%v; the page is\n%s", err, got)
	}
	hasLine(t, got, "| P3 |", "| 0.70 (0.60–0.90) | ≥ 0.85 | **not met** |")
	svg, err := os.ReadFile(filepath.Join(tree, "docs", "performance.svg"))
	if err != nil {
		t.Fatal(err)
	}
	bars := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "rect" {
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					bars[a.Value]++
				}
			}
		}
	}
	if met := strings.Count(got, " met |"); bars["n"] != strings.Count(got, "**not met**") || bars["y"] != met || met == 0 {
		t.Errorf("the bars are %v", bars)
	}
}

func TestAPageWithoutItsMarksIsLeftAlone(t *testing.T) {
	both := beginMark + endMark
	for _, page := range []string{"", beginMark, endMark, endMark + beginMark, beginMark + both, both + endMark} {
		tree := figuresTree(t, page)
		_, err := figures(t, tree, "write", benchmarked(t, "", ""))
		left, _ := os.ReadFile(filepath.Join(tree, "docs", "performance.md"))
		if err == nil || !strings.Contains(err.Error(), "both marks") || string(left) != page {
			t.Errorf("%q became %q, %v", page, left, err)
		}
	}
}

// TestBenchmarksOfGoalsAreRun in a module of their own. What was measured is kept, also when something later fails.
func TestBenchmarksOfGoalsAreRun(t *testing.T) {
	tree := figuresTree(t, "")
	put(t, filepath.Join(tree, "go.mod"), "module example.org/m\n\ngo 1.26\n")
	put(t, filepath.Join(tree, "p", "p_test.go"), "package p\n\nimport (\n\t\"os\"\n\t\"strconv\"\n\t\"testing\"\n)\n\n"+
		"func BenchmarkGood(b *testing.B) {\n\tn, _ := strconv.Atoi(os.Getenv(\"DECISIONS\"))\n\tfor b.Loop() {\n\t}\n"+
		"\tb.ReportMetric(float64(n), \"decisions\")\n\tb.ReportMetric(0, \"lost\")\n}\n\n"+
		"func BenchmarkGoodAsWell(b *testing.B) { b.Fatal(\"nobody asked for it\") }\n\n"+
		"func BenchmarkBad(b *testing.B) { b.Fatal(\"broken\") }\n")
	good := "P1 | = 0 of decisions | ./p | Good$ | 1x | DECISIONS | Good | lost | lost | none\n"
	put(t, filepath.Join(tree, "tools", "goals.txt"), good)
	said, err := figures(t, tree, "run", "bin/bench.txt", "120000")
	if err != nil {
		t.Fatal(err)
	}
	hasLine(t, said, "./p Good$, 3 times")
	table, err := figures(t, tree, "show", "bin/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	hasLine(t, table, "P1 ", "0 of 150,000", " met") // in whole parts
	hasLine(t, table, "Measured on ", " cores (", "where 4 KB written over and synced take ", ", go1.")

	put(t, filepath.Join(tree, "tools", "goals.txt"), good+"P2 | <= 1 | ./p | Bad$ | 1x | 5 | Bad | ratio | worse | none\n")
	said, err = figures(t, tree, "run", "bin/bench.txt", "1")
	if err == nil || !strings.Contains(said, "broken") || !strings.Contains(said, "run BenchmarkBad$ of ./p: it failed") {
		t.Errorf("a benchmark that fails: %v\n%s", err, said)
	}
	if kept, err := os.ReadFile(filepath.Join(tree, "bin", "bench.txt")); err != nil || !strings.Contains(string(kept), "BenchmarkGood") {
		t.Errorf("kept %q, %v", kept, err)
	}
	for _, args := range [][]string{{"run", "bin/bench.txt", "0"}, {"run", "bin/bench.txt", "many"}, {"everything"}, {}} {
		if _, err := figures(t, tree, args...); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
