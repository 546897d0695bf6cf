package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func tree() *cobra.Command {
	return (&CLI{Out: io.Discard, Err: io.Discard, Environ: []string{"HOME=/nowhere"}}).root()
}

// Each command's help has a description and examples, and the command accepts each example.
func TestHelp(t *testing.T) {
	for _, cmd := range documented(tree()) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: Short, Long and Example say what it does", cmd.CommandPath())
		}
		if strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is no sentence: %q", cmd.CommandPath(), cmd.Short)
		}
		mentioned := false
		for _, line := range examplesOf(cmd) {
			about, err := parses(line)
			if err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
			}
			mentioned = mentioned || strings.HasPrefix(about+" ", cmd.CommandPath()+" ")
		}
		if !mentioned {
			t.Errorf("%s: no example is of it", cmd.CommandPath())
		}
	}
}

// parses returns the command of a shell line, and an error for what it does not accept.
func parses(line string) (path string, err error) {
	if _, inner, found := strings.Cut(line, "$(daycared "); found { // within another program's command
		inner, _, _ = strings.Cut(inner, ")")
		line = "daycared " + inner
	}
	words := shellWords(line)
	if len(words) == 0 || words[0] != "daycared" {
		return "", io.ErrUnexpectedEOF
	}
	cmd, rest, err := tree().Find(words[1:])
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	return cmd.CommandPath(), err
}

// shellWords splits a command up to a redirection, pipe or comment.
func shellWords(line string) (words []string) {
	word, quote, open := "", rune(0), false
	for _, c := range line + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, true
		case quote != 0 || c != ' ':
			word, open = word+string(c), true
		case open:
			if strings.ContainsAny(word[:min(len(word), 2)], "<>|&#") {
				return words
			}
			words, word, open = append(words, word), "", false
		}
	}
	return words
}

var rewrite = flag.Bool("reference", false, "write docs/cli.md anew")

// The committed reference matches the commands.
func TestReference(t *testing.T) {
	const file = "../../docs/cli.md"
	var now bytes.Buffer
	writeMarkdown(&now, tree())
	if *rewrite {
		if err := os.WriteFile(file, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, now.Bytes()) {
		t.Error("docs/cli.md is stale: go generate ./cmd/daycared")
	}
}

func writeMarkdown(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, "# The commands of daycared\n\nWritten by `go generate ./cmd/daycared` from what the commands say with `--help`.\n")
	for _, cmd := range documented(root) {
		fmt.Fprintf(w, "\n## %s\n", cmd.CommandPath())
		for _, p := range paragraphs(cmd) {
			if strings.HasPrefix(p, " ") {
				fmt.Fprintf(w, "\n```text\n%s\n```\n", p)
				continue
			}
			fmt.Fprintf(w, "\n%s\n", strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(p))
		}
		fmt.Fprintf(w, "\n```text\n%s\n```\n\n```sh\n%s\n```\n", cmd.UseLine(), strings.Join(examplesOf(cmd), "\n"))
		if cmd != root {
			fmt.Fprintln(w, "\n| flag | |\n|---|---|")
			for _, f := range flagsOf(cmd) {
				fmt.Fprintf(w, "| `%s` | %s |\n", f[0], strings.ReplaceAll(f[1], "|", `\|`))
			}
		}
	}
}

func TestManPages(t *testing.T) {
	root := tree()
	folder := t.TempDir()
	root.SetArgs([]string{"reference", "--man", folder})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "daycared*.1"))
	if err != nil || len(pages) != len(documented(root)) {
		t.Fatalf("%d pages of %d commands (%v)", len(pages), len(documented(root)), err)
	}
	groff, lacking := exec.LookPath("groff")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\ndaycared", ".SH DESCRIPTION\n", ".SH EXAMPLES\n"} {
			if !bytes.Contains(text, []byte(part)) {
				t.Errorf("%s lacks %q", filepath.Base(page), part)
			}
		}
		if lacking != nil {
			continue
		}
		if said, err := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-z", page).CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: %s (%v)", filepath.Base(page), said, err)
		}
	}
}

// Each shell that is installed can parse its completion script.
func TestCompletions(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		var out bytes.Buffer
		root := (&CLI{Out: &out, Err: io.Discard}).root()
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), "daycared") {
			t.Fatalf("%s: %v, %d bytes", shell, err, out.Len())
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, append(check, "/dev/stdin")...)
		cmd.Stdin = &out
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s does not read it: %s (%v)", shell, said, err)
		}
	}
}

// A mistyped word is never completed to a command that does more.
func TestSuggestionsDoNoMore(t *testing.T) {
	for _, cmd := range documented(tree()) {
		for _, other := range documented(tree()) {
			longer, found := strings.CutPrefix(other.Name(), cmd.Name()+"-")
			if found && longer != "" && suggestSimilar(cmd.Name(), []string{other.Name()}, "") != "" {
				t.Errorf("%s leads to %s", cmd.Name(), other.Name())
			}
		}
	}
}

// Tables by command path contain only existing commands.
func TestTablesNameCommands(t *testing.T) {
	paths := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		paths[path] = true
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(tree())
	tables := slices.Concat(withoutConfig, withoutSocket, withToken, withURL, withOwnRows,
		slices.Collect(maps.Keys((&CLI{}).argumentWords())), slices.Collect(maps.Keys(limitedBy)))
	for _, output := range jsonOutputs {
		tables = append(tables, output.commands...)
	}
	for _, path := range tables {
		if !paths[path] {
			t.Errorf("there is no command %q", path)
		}
	}
	if sections := strings.Count("\n"+helpTexts, "\n== "); sections != len(paths) {
		t.Errorf("help.txt has %d sections for %d commands", sections, len(paths))
	}
}
