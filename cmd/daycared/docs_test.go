package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
)

// What the documentation says is tried: its commands exist with their flags, its links lead somewhere, and scripts run
// its examples:
//
//	readme TEXT FILE   write the first command of the README that has TEXT in it to a file, as a shell script

// docPages are the README and docs/, by their paths from here.
func docPages(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = string(text)
	}
	return all
}

// commandOf is a command line of ours within code, where a command begins: up to what the shell takes for itself, or a comment.
var commandOf = regexp.MustCompile("(?:^ *|[$][(]|&& |[|] |; |-- |sudo -u agent |[A-Z_]+=[^ ]+ )" +
	"daycared((?: +(?:\"[^\"]*\"|'[^']*'|[^\\s\"'`|&;<>()#]+))*)")

// word is one word of a command line.
var word = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// commandLines are the command lines of ours in the code of a page: indented by four, fenced, or between backquotes.
func commandLines(page string) [][]string {
	var code []string
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced, strings.HasPrefix(line, "    "):
			code = append(code, line)
		}
	}
	for _, inline := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(inline[1], "daycared ") {
			code = append(code, inline[1])
		}
	}
	var all [][]string
	for _, line := range code {
		for _, found := range commandOf.FindAllStringSubmatch(line, -1) {
			words := word.FindAllString(found[1], -1)
			for i := range words {
				words[i] = strings.Trim(words[i], `"'`)
			}
			words = slices.DeleteFunc(words, func(w string) bool { return w == "[flags]" }) // in a usage line
			if len(words) > 0 {
				all = append(all, words)
			}
		}
	}
	return all
}

// wrongIn says what of a command line does not exist; empty when all of it does.
func wrongIn(words []string) string {
	root := (&CLI{}).root()
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root && !strings.HasPrefix(words[0], "-") && words[0] != "COMMAND" {
		return "there is no such command"
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && cmd != root {
		return "there is no such command"
	}
	cmd.InitDefaultHelpFlag()
	flags := cmd.Flags()
	flags.AddFlagSet(cmd.InheritedFlags())
	flags.VisitAll(func(f *pflag.Flag) { f.Value = anything{f.Value} }) // as in --expires D
	if err := flags.Parse(rest); err != nil {
		return err.Error()
	}
	return ""
}

// anything takes every value, in place of a flag's own.
type anything struct{ pflag.Value }

func (anything) Set(string) error { return nil }

func TestTheCommandsOfTheDocumentationExist(t *testing.T) {
	count := 0
	for file, page := range docPages(t) {
		for _, words := range commandLines(page) {
			count++
			if wrong := wrongIn(words); wrong != "" {
				t.Errorf("%s: daycared %s: %s", filepath.Base(file), strings.Join(words, " "), wrong)
			}
		}
	}
	if count < 50 {
		t.Errorf("there are only %d commands in the documentation", count)
	}
	for _, wrong := range [][]string{{"srve"}, {"config", "chek"}, {"ask", "--nope"}, {"audit", "verfy"}, {"ask", "--key"}} {
		if wrongIn(wrong) == "" {
			t.Errorf("daycared %s is taken for a command", strings.Join(wrong, " "))
		}
	}
}

var (
	linkIn  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// anchors are the places within a page that a link can name.
func anchors(page string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(kept, " ", "-"))
	}
	return all
}

func TestTheLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	all := docPages(t)
	for file, page := range all {
		for _, found := range linkIn.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s leads nowhere", filepath.Base(file), found[1])
			} else if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
				t.Errorf("%s: %s has no such heading", filepath.Base(file), found[1])
			}
		}
	}
}

// readme writes a command of the README to a file.
func readme(ts *testscript.TestScript, _ bool, args []string) {
	page, err := os.ReadFile("../../README.md")
	ts.Check(err)
	var found []string
	lines := strings.Split(string(page), "\n")
	for i := 0; i < len(lines); i++ {
		command, indented := strings.CutPrefix(lines[i], "    ")
		for indented && strings.HasSuffix(command, `\`) && i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
		}
		if indented && strings.Contains(command, args[0]) {
			found = append(found, command)
		}
	}
	if len(found) == 0 {
		ts.Fatalf("the README has no command with %q", args[0])
	}
	var script bytes.Buffer
	script.WriteString("set -e\n" + found[0] + "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), script.Bytes(), 0o600))
}
