package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = "testdata/sample.txt"

// sampled is what a run printed, with something in it changed.
func sampled(t *testing.T, old, now string) string {
	t.Helper()
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("the sample has no %q", old)
	}
	path := filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(now)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// of runs the command on what was kept.
func of(t *testing.T, from string, more ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := figures(t.Context(), append([]string{"-from", from}, more...), &out, io.Discard)
	return out.String(), err
}

// line is the line of a table that has all of that.
func line(t *testing.T, table string, words ...string) string {
	t.Helper()
	for text := range strings.Lines(table) {
		found := true
		for _, w := range words {
			found = found && strings.Contains(text, w)
		}
		if found {
			return text
		}
	}
	t.Errorf("no line has %q:\n%s", words, table)
	return ""
}

func TestTheTableHasTheMiddleTheLeastAndTheMost(t *testing.T) {
	table, err := of(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	line(t, table, "P1 ", "0 of 100,000", "0", " met")
	line(t, table, "P2 ", "0.90 (0.80–1.00)", "≤ 1.5", " met")
	line(t, table, "P3 ", "0.70 (0.60–0.90)", "≥ 0.8", " not met")
	line(t, table, "P3 ", "0.55 (0.50–0.60)", "≥ 0.5", " met")
	line(t, table, "P10 ", "from exec", "0.40 (0.30–0.50)", "≤ 1", " met")
	line(t, table, "2 cores", "linux/amd64", "ext4", "go1.26")
	if first, last := strings.Index(table, "P2 "), strings.Index(table, "P10 "); first > last {
		t.Error("the goals are not in order")
	}
}

func TestOneThatIsLostIsTooMuch(t *testing.T) {
	table, err := of(t, sampled(t, "50000 decisions	      2000 decisions/s	         0 doubled	         0 hung	         0 lost",
		"50000 decisions	      2000 decisions/s	         0 doubled	         1 hung	         2 lost"))
	if err != nil {
		t.Fatal(err)
	}
	line(t, table, "P1 ", "6 of 100,000", "not met")
}

func TestWhatIsMissingIsSaidInOneLine(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"BenchmarkWake-2", "BenchmarkSleep-2", "P2: BenchmarkWake was not run"},
		{"callers-1000-2", "callers-10-2", "P3: BenchmarkThroughput/callers-1000 was not run"},
		{" s-to-end\t", " s-to-nowhere\t", "P10: BenchmarkServe/pending-100000 reports no s-to-end"},
		{" decisions\t", " indecisions\t", "P1: BenchmarkImmediate/part reports no decisions"},
		{" 0.9000 ratio", " often ratio", "read the output of the benchmarks"},
	} {
		if table, err := of(t, sampled(t, c.old, c.now)); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || table != "" {
			t.Errorf("without %s: %v\n%s", c.old, err, table)
		}
	}
	if _, err := of(t, "testdata/nothing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestThePageAndThePictureAreWritten(t *testing.T) {
	root := t.TempDir()
	page := filepath.Join(root, "docs", "performance.md")
	write(t, page, "# before\n"+beginMark+"old\n"+endMark+"after\n")
	for range 2 { // what was written before is replaced
		if _, err := of(t, sample, "-write", "-root", root); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "# before\n"+beginMark+"Measured on 2 cores") || !strings.HasSuffix(got, endMark+"after\n") ||
		strings.Contains(got, "old") || strings.Count(got, "| P2 |") != 1 {
		t.Errorf("the page is\n%s", got)
	}
	line(t, got, "| P3 |", "| 0.70 (0.60–0.90) | ≥ 0.8 | **not met** |")
	svg, err := os.ReadFile(filepath.Join(root, "docs", "performance.svg"))
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

func TestAReadmeWithoutItsMarksIsLeftAlone(t *testing.T) {
	both := beginMark + endMark
	for _, text := range []string{"", beginMark, endMark, endMark + beginMark, beginMark + both, both + endMark} {
		if got, err := replace([]byte(text), "new"); !errors.Is(err, errMarks) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}

func TestBenchmarksAreRun(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module example.org/m\n\ngo 1.26\n")
	write(t, filepath.Join(root, "p", "p_test.go"), "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n"+
		"func BenchmarkGood(b *testing.B) {\n\tfor b.Loop() {\n\t}\n\tb.ReportMetric(float64(len(os.Getenv(\"LETTERS\"))), \"letters\")\n}\n\n"+
		"func BenchmarkGoodAsWell(b *testing.B) { b.Fatal(\"nobody asked for it\") }\n\n"+
		"func BenchmarkBad(b *testing.B) { b.Fatal(\"broken\") }\n")
	g := goal{id: "P1", bench: "Good", units: []string{"letters"}, limit: 3}
	m := measurement{pkg: "./p", bench: "Good$", time: "1x", count: 3, env: []string{"LETTERS=abc"}, goals: []goal{g}}
	var progress bytes.Buffer
	output, err := run(t.Context(), root, []measurement{m}, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	all, err := read(bytes.NewReader(output), "it")
	if err != nil {
		t.Fatal(err)
	}
	f, err := all.figure(g)
	if err != nil || f.middle != 3 || len(all.lines) != 3 || !f.met() {
		t.Errorf("got %+v of %d lines, %v", f, len(all.lines), err)
	}
	for _, key := range machineKeys[:3] {
		if all.machine[key] == "" {
			t.Errorf("nothing is said of %s", key)
		}
	}
	line(t, progress.String(), "[1 of 1", "./p", "3 times")
	m.bench = "Bad$"
	if _, err := run(t.Context(), root, []measurement{m}, &progress); err == nil || !strings.Contains(progress.String(), "broken") {
		t.Errorf("a benchmark that fails: %v\n%s", err, progress.String())
	}
}

func TestWhatItIsToldIsChecked(t *testing.T) {
	for _, args := range [][]string{{"-decisions", "0"}, {"-everything"}} {
		if err := figures(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	if _, err := of(t, sample, "-write", "-root", t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a page: %v", err)
	}
}

// What was measured is kept, also when something later fails.
func TestWhatWasMeasuredIsKept(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "bin", "bench.txt")
	if err := figures(t.Context(), []string{"-root", t.TempDir(), "-keep", kept}, io.Discard, io.Discard); err == nil {
		t.Error("a folder without a module was measured")
	}
	if text, err := os.ReadFile(kept); err != nil || !strings.Contains(string(text), "cores: ") {
		t.Errorf("kept %q, %v", text, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
