package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"github.com/daycared/daycared/agents/hooks"
	playbook "github.com/daycared/daycared/agents/models/script"
	"github.com/daycared/daycared/cmd/daycared/config"
)

// What the documentation says is tried: its commands exist with their flags, its configurations are accepted, the tests and
// targets that it names are there, its links lead somewhere, every page is linked, and scripts run its examples:
//
//	documented PAGE TEXT FILE   write the first command of a page that has TEXT in it to a file, as a shell script

const top = "../.."

// docPages are the documentation's pages, by their path from here: the top-level ones and those below docs/.
func docPages(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(top + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(top+"/docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(file)] = string(text)
	}
	return all
}

// commandOf matches a command line of ours in code, up to shell syntax or a comment.
var commandOf = regexp.MustCompile("(?:^ *|[$][(]|&& |[|] |; |-- |sudo -u agent |[A-Z_]+=[^ ]+ )" +
	"daycared((?: +(?:\"[^\"]*\"|'[^']*'|[^\\s\"'`|&;<>()#]+))*)")

// word is one word of a command line.
var word = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// block is code that stands by itself: indented by four, or fenced.
type block struct {
	language string // of a fence
	lines    []string
}

// codeBlocks are the blocks of a page.
func codeBlocks(page string) (all []block) {
	var now block
	fenced := false
	end := func() {
		if text := strings.TrimSpace(strings.Join(now.lines, "\n")); text != "" {
			all = append(all, now)
		}
		now = block{}
	}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		code, indented := strings.CutPrefix(line, "    ")
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence:
			end()
			fenced, now.language = !fenced, language
		case fenced:
			now.lines = append(now.lines, line)
		case indented || line == "" && len(now.lines) > 0:
			now.lines = append(now.lines, code)
		default:
			end()
		}
	}
	end()
	return all
}

// inlineCode is the text between backquotes on a page.
func inlineCode(page string) (all []string) {
	for _, found := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(page, -1) {
		all = append(all, found[1])
	}
	return all
}

// commandLines are the command lines of ours in the code of a page: in blocks, or between backquotes.
func commandLines(page string) [][]string {
	var code []string
	for _, b := range codeBlocks(page) {
		code = append(code, b.lines...)
	}
	for _, inline := range inlineCode(page) {
		if strings.HasPrefix(inline, "daycared ") || strings.Contains(inline, "$(daycared ") {
			code = append(code, inline)
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
	bracketed := func(word string) bool { return strings.HasPrefix(word, "[") } // in a usage line
	if named := flags.Args(); len(named) > 0 && !slices.ContainsFunc(rest, bracketed) {
		if err := cmd.ValidateArgs(named); err != nil {
			return err.Error()
		}
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
	if count < 300 {
		t.Errorf("there are only %d commands in the documentation", count)
	}
	for _, wrong := range [][]string{
		{"srve"}, {"config", "chek"}, {"ask", "--nope"}, {"audit", "verfy"}, {"ask", "--key"}, {"connect", "claude", "code"},
	} {
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

// linksOf gives the files that a page links, by their paths from here, with the anchors.
func linksOf(file, page string) (all [][2]string) {
	for _, found := range linkIn.FindAllStringSubmatch(page, -1) {
		target, anchor, _ := strings.Cut(found[1], "#")
		if strings.Contains(target, "://") {
			continue
		}
		path := file
		if target != "" {
			path = filepath.ToSlash(filepath.Join(filepath.Dir(file), target))
		}
		all = append(all, [2]string{path, anchor})
	}
	return all
}

// wrongLinks are the links of pages that lead nowhere.
func wrongLinks(all map[string]string) (wrong []string) {
	for file, page := range all {
		for _, link := range linksOf(file, page) {
			if _, err := os.Stat(link[0]); err != nil {
				wrong = append(wrong, file+": "+link[0]+" leads nowhere")
			} else if link[1] != "" && !slices.Contains(anchors(all[link[0]]), link[1]) {
				wrong = append(wrong, file+": "+link[0]+" has no heading "+link[1])
			}
		}
	}
	return wrong
}

func TestTheLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	all := docPages(t)
	for _, wrong := range wrongLinks(all) {
		t.Error(wrong)
	}
	page := "# A\n[a](#a) [b](#b) [c](y.md) ![d](d.svg) [e](asking.md#nothing)"
	if wrong := wrongLinks(map[string]string{top + "/docs/cli.md": page}); len(wrong) != 4 {
		t.Errorf("of four wrong links there are found: %v", wrong)
	}
}

// unreached are the pages to which no way of links leads from the README.
func unreached(all map[string]string) (missing []string) {
	reached, next := map[string]bool{}, []string{top + "/README.md"}
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		if page, is := all[file]; is && !reached[file] {
			reached[file] = true
			for _, link := range linksOf(file, page) {
				next = append(next, link[0])
			}
		}
	}
	for file := range all {
		if !reached[file] {
			missing = append(missing, file)
		}
	}
	return missing
}

func TestEveryPageOfTheDocumentationIsLinked(t *testing.T) {
	all := docPages(t)
	for _, file := range unreached(all) {
		t.Errorf("no links lead from the README to %s", file)
	}
	all[top+"/docs/alone.md"] = "[it](asking.md)"
	if missing := unreached(all); !slices.Equal(missing, []string{top + "/docs/alone.md"}) {
		t.Errorf("a page that nothing links is not found: %v", missing)
	}
}

// TestTheReadmeIsShort: it leads to pages, and carries none of them.
func TestTheReadmeIsShort(t *testing.T) {
	const most = 200
	if lines := strings.Count(docPages(t)[top+"/README.md"], "\n"); lines > most {
		t.Errorf("the README has %d lines, and %d are enough; write on a page below docs/", lines, most)
	}
}

var (
	testOf   = regexp.MustCompile(`go test ((?:\./\S+ ?)+)(?: *-run '?([^' ]+)'?)?(?: -bench (\S+))?`)
	targetOf = regexp.MustCompile(`^make ([a-z-]+)`)
)

// wrongTests says which tests or targets that the code of a page names are not there.
func wrongTests(t *testing.T, page string) (wrong []string) {
	makefile, err := os.ReadFile(top + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	code := inlineCode(page)
	for _, b := range codeBlocks(page) {
		code = append(code, b.lines...)
	}
	for _, line := range code {
		if found := targetOf.FindStringSubmatch(line); len(found) > 1 && !bytes.Contains(makefile, []byte("\n"+found[1]+": ")) {
			wrong = append(wrong, line+": the Makefile has no such target")
		}
		found := testOf.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		pattern := strings.ReplaceAll(found[2], `\|`, "|") // as a table has it
		if found[3] != "" {
			pattern = found[3]
		}
		for _, folder := range strings.Fields(found[1]) {
			if why := noTest(folder, pattern); why != "" {
				wrong = append(wrong, line+": "+why)
			}
		}
	}
	return wrong
}

// noTest says why a pattern finds no test in the packages of a folder, or below it; empty when it finds one for each of its
// alternatives.
func noTest(folder, pattern string) string {
	files, err := filepath.Glob(filepath.Join(top, strings.TrimSuffix(folder, "/..."), "*_test.go"))
	if strings.HasSuffix(folder, "/...") {
		below, _ := filepath.Glob(filepath.Join(top, strings.TrimSuffix(folder, "/..."), "*", "*_test.go"))
		files = append(files, below...)
	}
	if err != nil || len(files) == 0 {
		return folder + " has no tests"
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	test, script, _ := strings.Cut(pattern, "/")
	for alternative := range strings.SplitSeq(test, "|") {
		matches, err := regexp.Compile(alternative)
		if err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(names, matches.MatchString) {
			return folder + " has no test " + alternative
		}
	}
	if scripts, err := filepath.Glob("testdata/script/" + script + "*.txtar"); test == "TestScripts" && (err != nil || len(scripts) == 0) {
		return "there is no script " + script
	}
	return ""
}

// TestTheTestsThatTheDocumentationNamesExist: what shows a promise is there.
func TestTheTestsThatTheDocumentationNamesExist(t *testing.T) {
	count := 0
	for file, page := range docPages(t) {
		count += strings.Count(page, "`go test ")
		for _, wrong := range wrongTests(t, page) {
			t.Errorf("%s: %s", file, wrong)
		}
	}
	if count < 50 {
		t.Errorf("the documentation names only %d tests", count)
	}
	wrong := "`make nothing` `go test ./engine -run TestNoSuchThing` `go test ./nowhere` `go test ./cmd/daycared -run TestScripts/nothing` " +
		"`go test ./engine/store -run 'TestStore\\|TestNoSuchThing'`"
	if found := wrongTests(t, wrong+" `make test` `go test ./engine -run TestRule`"); len(found) != 5 {
		t.Errorf("of five that are not there are found: %q", found)
	}
}

// TestTheConfigurationsOfTheDocumentationAreAccepted: all configuration blocks, and all keys between backquotes.
func TestTheConfigurationsOfTheDocumentationAreAccepted(t *testing.T) {
	count := 0
	for file, page := range docPages(t) {
		for _, text := range configurations(page) {
			count++
			if wrong := wrongConfiguration(t, text); wrong != "" {
				t.Errorf("%s: %s\n%s", file, wrong, text)
			}
		}
	}
	if count < 5 {
		t.Errorf("there are only %d configurations in the documentation", count)
	}
	if wrong := wrongConfiguration(t, "connectors: {editr: {enabled: true}}"); !strings.Contains(wrong, "editr") {
		t.Errorf("a wrong configuration is accepted: %s", wrong)
	}
}

// TestTheScriptsOfTheDocumentationArePlayed: their format is described there.
func TestTheScriptsOfTheDocumentationArePlayed(t *testing.T) {
	count := 0
	for file, page := range docPages(t) {
		for _, b := range codeBlocks(page) {
			if text := strings.Join(b.lines, "\n"); strings.HasPrefix(text, "turns:") {
				if _, err := playbook.Parse(file, []byte(text)); err != nil {
					t.Error(err)
				}
				count++
			}
		}
	}
	if count == 0 {
		t.Error("no page has a script")
	}
}

var firstKey = regexp.MustCompile(`^(people|routes|connectors|agents|api):\s*\S`)

// configurations are the configurations on a page: blocks that begin with a top-level key.
func configurations(page string) (all []string) {
	code := inlineCode(page)
	for _, b := range codeBlocks(page) {
		for text := range strings.SplitSeq(strings.Join(b.lines, "\n"), "\n\n") { // there may be commands before and after
			code = append(code, regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllLiteralString(text, ""))
		}
	}
	return slices.DeleteFunc(code, func(text string) bool { return !firstKey.MatchString(text) })
}

// wrongConfiguration returns an error of a configuration, on a machine with the files that it names.
func wrongConfiguration(t *testing.T, text string) string {
	t.Helper()
	home := t.TempDir()
	token := filepath.Join(home, "token")
	if err := os.WriteFile(token, []byte("123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`token_file: [^ },]+`).ReplaceAllLiteralString(text, "token_file: "+token)
	text = strings.ReplaceAll(text, "/srv/helper", home)
	if !strings.Contains(text, "people:") {
		text = "people: [{name: fay, telegram: 4242}]\nroutes: [{ask: [fay]}]\n" + text
		if !strings.Contains(text, "connectors:") {
			text += fmt.Sprintf("\nconnectors: {telegram: {enabled: true, token_file: %s}}\n", token)
		}
	}
	file := filepath.Join(home, "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(file, []string{"HOME=" + home}); err != nil {
		return err.Error()
	}
	return ""
}

// TestTheGoOfTheDocumentationCompiles: examples match the client package.
func TestTheGoOfTheDocumentationCompiles(t *testing.T) {
	count := 0
	for file, page := range docPages(t) {
		for _, b := range codeBlocks(page) {
			text := strings.Join(b.lines, "\n")
			if !strings.Contains(text, "client.New(") {
				continue
			}
			count++
			if wrong := wrongGo(t, text); wrong != "" {
				t.Errorf("%s: %s", file, wrong)
			}
		}
	}
	if count == 0 {
		t.Error("no page shows the package client")
	}
	if wrong := wrongGo(t, "_, err := client.New(client.Options{Sockt: \"x\"}); _ = err"); !strings.Contains(wrong, "Sockt") {
		t.Errorf("a field that is not there is taken: %s", wrong)
	}
}

// wrongGo returns why statements do not compile; … stands for anything.
func wrongGo(t *testing.T, statements string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	text := "package main\n\nimport (\n\t\"context\"\n\n\t\"github.com/daycared/daycared/client\"\n)\n\nfunc main() {\n" +
		"\tctx := context.Background()\n\t_ = ctx\n" + strings.ReplaceAll(statements, "…", "panic(err)") + "\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, file)
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		return string(out) + err.Error()
	}
	return ""
}

// TestTheFilesThatThePagesOnTheCodeNameExist: references to files are kept up to date.
func TestTheFilesThatThePagesOnTheCodeNameExist(t *testing.T) {
	files := map[string]bool{}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), ".git") {
			return fs.SkipDir
		}
		files[e.Name()] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile(`^(?:[a-z0-9_]+/)+[a-z0-9_.]*$|^[a-z0-9_]+\.go$`)
	count := 0
	for file, page := range docPages(t) {
		if name := filepath.Base(file); name != "ARCHITECTURE.md" && name != "CONTRIBUTING.md" && !strings.Contains(file, "/adr/") {
			continue
		}
		for _, code := range inlineCode(page) {
			if !path.MatchString(code) {
				continue
			}
			count++
			if _, err := os.Stat(filepath.Join(top, code)); err != nil && (strings.Contains(code, "/") || !files[code]) {
				t.Errorf("%s: there is no %s", file, code)
			}
		}
	}
	if count < 50 {
		t.Errorf("the pages name only %d files", count)
	}
}

// fromPage writes a page's command to a file.
func fromPage(ts *testscript.TestScript, _ bool, args []string) {
	text, err := os.ReadFile(filepath.Join(top, args[0]))
	ts.Check(err)
	page := string(text)
	var commands []string
	for _, b := range codeBlocks(page) {
		for i := 0; i < len(b.lines); i++ {
			command := b.lines[i]
			for strings.HasSuffix(command, `\`) && i+1 < len(b.lines) {
				i++
				command += "\n" + b.lines[i]
			}
			commands = append(commands, command)
		}
	}
	for _, inline := range inlineCode(page) {
		if strings.HasPrefix(inline, "daycared ") {
			commands = append(commands, inline)
		}
	}
	at := slices.IndexFunc(commands, func(command string) bool { return strings.Contains(command, args[1]) })
	if at < 0 {
		ts.Fatalf("%s has no command with %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte("set -e\n"+commands[at]+"\n"), 0o600))
}

// The versions in which keyboard and people race are those in which make test-real verified it.
func TestTheKeyboardRacesInTheVersionsThatWereTried(t *testing.T) {
	said, err := tableOf(top + "/docs/tried.md")
	if err != nil {
		t.Fatal(err)
	}
	raced := map[string][]string{}
	for row, cells := range said {
		found := regexp.MustCompile(`^(.+) (\d+\.\d+\.\d+), `).FindStringSubmatch(row)
		if found == nil {
			t.Errorf("the row %q names no version", row)
		} else if cells["keyboard"] == "yes" {
			raced[found[1]] = append(raced[found[1]], found[2])
		}
	}
	titles := map[string]string{"claude-code": "Claude Code", "codex": "Codex", "copilot": "Copilot CLI", "gemini": "Gemini CLI",
		"opencode": "opencode"}
	for name, title := range titles {
		if got, want := hooks.RacedVersions(name), raced[title]; !slices.Equal(got, want) {
			t.Errorf("%s: the keyboard races in the versions %q, and was seen to in %q", name, got, want)
		}
	}
	if len(raced) == 0 {
		t.Error("no agent was seen to race")
	}
}

// tableOf parses the tables of a page whose first column is "tried": each row's cells by column name.
func tableOf(page string) (map[string]map[string]string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	rows := map[string]map[string]string{}
	var names []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 2:
			names = nil
		case cells[0] == "tried":
			names = cells
		case len(cells) == len(names) && !strings.HasPrefix(cells[0], "--"):
			row := map[string]string{}
			for i, cell := range cells[1:] {
				row[names[i+1]] = cell
			}
			rows[strings.ReplaceAll(cells[0], "`", "")] = row
		case names != nil && !strings.HasPrefix(cells[0], "--"):
			return nil, fmt.Errorf("%s: the row of %s has %d cells, its table %d columns", page, cells[0], len(cells), len(names))
		}
	}
	return rows, nil
}
