//go:build real

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/permissions"
)

// The agents that people run ask the daemon, each in its default mode and in its most permissive one. Who they are is data
// (programs), and so is what they are tried with: each script below testdata/clients is run with each of them. What
// docs/tried.md says of an agent is compared with what came of it. REAL_AGENTS, a regular expression of "NAME MODE", and
// REAL_CASES, a pattern of files, have fewer run. In these scripts:
//
//	serves NAME            a daemon runs
//	connects [WITHIN]      daycared connect writes the agent's settings, and a hook waits so long
//	wants COMMAND          the model calls the agent's own tool for commands with that
//	writes-file CONTENT    the model calls the agent's own tool for files, on ws/made.txt
//	asks                   the model calls our request_permission
//	questions              the model calls our ask_user
//	plans TEXT             the model writes that as its plan, where it was told to, and calls the agent's own tool to have it approved
//	chooses                the model calls the agent's own tool for questions
//	repeats N              the model makes its call N times, one after the other
//	again                  when the model was told that nobody has answered yet, it makes the same call once more, after …
//	now                    … this
//	begins                 the agent is started
//	dialog                 it shows a dialog of its own
//	accepts N              N times, its person says yes in that dialog
//	interrupts             its person presses Esc until it asks no more, or it gets the signal of Ctrl-C
//	leaves                 its window is closed, or it is told to end
//	clocks                 how long each PreToolUse hook takes is noted, from the start of its process to its end
//	took N WITHIN          N times were noted; they are said, and their median is at most WITHIN
//	refused REGEXP         the model reads that, or, where its person sits at it, it shows its own dialog
//	over                   it ends, however
//	reads REGEXP           the model was told that
//	asked N                so many requests there were in all

func TestRealAgents(t *testing.T) {
	bin, err := installed("agents")
	if err != nil {
		t.Fatal(err)
	}
	npm := strings.TrimSuffix(bin, "/.bin")
	said, err := tableOf("../../docs/tried.md")
	if err != nil {
		t.Fatal(err)
	}
	connecting, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	only, err := regexp.Compile(os.Getenv("REAL_AGENTS"))
	if err != nil {
		t.Fatal(err)
	}
	rows, tried, began := 0, 0, time.Now()
	for _, c := range programs {
		modes := slices.DeleteFunc(slices.Clone(c.modes), func(m mode) bool { return !only.MatchString(c.name + " " + m.name) })
		if len(modes) == 0 {
			continue
		}
		version, err := c.runs(npm)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if row := "| `" + c.name + "` | " + version + " |"; c.acp == nil && !strings.Contains(string(connecting), row) {
			t.Errorf("docs/hooks.md has no row %s", row)
		}
		cases, err := filepath.Glob(filepath.Join(c.cases(), cmp.Or(os.Getenv("REAL_CASES"), "*")+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modes {
			name := c.title + " " + version + ", " + m.name
			started := time.Now()
			came := c.try(t, npm, m, cases, said[name])
			compare(t, name, said[name], came)
			t.Logf("%s: %d cases in %v", name, len(came), time.Since(started).Round(time.Second))
			rows, tried = rows+1, tried+len(came)
		}
	}
	t.Logf("%d rows with %d cases in %v", rows, tried, time.Since(began).Round(time.Second))
	if tried == 0 {
		t.Errorf("no case was tried: REAL_AGENTS is %q, REAL_CASES %q", only, os.Getenv("REAL_CASES"))
	}
	if only.String() == "" && rows != len(said) {
		t.Errorf("docs/tried.md has %d rows that were tried, and %d ran", len(said), rows)
	}
}

// cases is the folder of the program's cases.
func (c program) cases() string {
	if c.acp != nil {
		return "testdata/clients/acp"
	}
	return "testdata/clients"
}

// special are the cases that run only in modes that name them.
var special = []string{"keyboard", "delay", "plan", "plan no", "choice"}

// tries reports whether a case runs in this mode.
func (m mode) tries(name string) bool {
	switch {
	case len(m.only) > 0:
		return slices.Contains(m.only, name)
	case slices.Contains(special, name):
		return slices.Contains(m.also, name)
	}
	return !slices.Contains(m.without, name)
}

// runs returns the client's version.
func (c program) runs(npm string) (string, error) {
	words := expandAll(c.version, map[string]string{"NPM": npm})
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+os.TempDir())
	out, err := cmd.Output()
	found := regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(string(out))
	if err == nil && found == "" {
		err = fmt.Errorf("it says %q and no version", out)
	}
	return found, err
}

// try runs all cases, and returns the failure of each; empty if it passed.
func (c program) try(t *testing.T, npm string, m mode, cases []string, row map[string]string) map[string]string {
	came := map[string]string{}
	t.Run(c.name+" "+m.name, func(t *testing.T) {
		cmds := commands()
		maps.Copy(cmds, benchCommands())
		cases = slices.DeleteFunc(slices.Clone(cases), func(file string) bool {
			return !m.tries(caseOf(filepath.Base(file)))
		})
		p := testscript.Params{Files: cases, RequireExplicitExec: true, Cmds: cmds, ContinueOnError: false,
			Setup: func(env *testscript.Env) error { return c.setup(env, t, npm, m) }}
		k := &keeper{t: t, came: came, said: row}
		k.run(func() { testscript.RunT(k, p) })
	})
	return came
}

// compare compares a row of the documentation with the results.
func compare(t *testing.T, row string, said, came map[string]string) {
	if said == nil {
		t.Errorf("docs/tried.md has no row %q", row)
	}
	for name, cell := range said {
		if _, ran := came[name]; !ran && cell != "–" && os.Getenv("REAL_CASES") == "" {
			t.Errorf("docs/tried.md says %q of %s: %s, which was not tried", cell, row, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(came)) {
		why := came[name]
		t.Logf("%s | %s | %s", row, name, why)
		switch holds := said[name] == "yes"; {
		case said == nil:
		case said[name] == "":
			t.Errorf("docs/tried.md says nothing of %s: %s", row, name)
		case holds && why != "":
			t.Errorf("docs/tried.md says that %s: %s holds, and it does not: %s", row, name, why)
		case !holds && why == "":
			t.Errorf("docs/tried.md says %q of %s: %s, and it holds", said[name], row, name)
		}
	}
}

// keeper is a test that records failing cases instead of failing.
type keeper struct {
	t    *testing.T
	name string
	why  []string
	said map[string]string
	came map[string]string
}

var errCase = errors.New("the case failed")

func (k *keeper) run(f func()) {
	defer func() {
		if e := recover(); e != nil && e != any(errCase) {
			panic(e)
		}
	}()
	f()
}

func (k *keeper) Skip(args ...any)  { k.Fatal(args...) }
func (k *keeper) Fatal(args ...any) { k.Log(args...); k.FailNow() }
func (k *keeper) FailNow()          { panic(errCase) }
func (k *keeper) Parallel()         {}
func (k *keeper) Verbose() bool     { return true }
func (k *keeper) Log(args ...any) {
	k.why = append(k.why, fmt.Sprint(args...))
}

// caseOf is the name of a case in the table.
func caseOf(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(file, ".txtar"), "_", " ")
}

// Run runs one case, and records its name without .txtar.
func (k *keeper) Run(name string, f func(testscript.T)) {
	words := caseOf(name)
	defer func(usual time.Duration) { patience = usual }(patience)
	if patience = 5 * time.Minute; strings.HasPrefix(k.said[words], "no") {
		patience = 20 * time.Second // known failures are not worth a longer wait
	}
	one := &keeper{t: k.t, name: name, came: k.came}
	held := false
	one.run(func() { f(one); held = true })
	k.came[words] = ""
	if !held {
		log := strings.Join(one.why, "\n")
		k.t.Logf("%s:\n%s", name, log)
		k.came[words] = "failed"
		if at := strings.LastIndex(log, "FAIL: "); at >= 0 {
			why, _, _ := strings.Cut(log[at:], "\n")
			k.came[words] = why
		}
	}
}

type benchKey struct{}

// bench is one case: the client and its model.
type bench struct {
	t      *testing.T
	c      program
	m      mode
	names  map[string]string
	server *modeltest.Server

	mu    sync.Mutex
	next  []models.Call // its calls, in order
	made  int           // how many of them were made
	again chan struct{} // the call is repeated when this is closed
}

func (c program) setup(env *testscript.Env, t *testing.T, npm string, m mode) error {
	if err := setup(env); err != nil {
		return err
	}
	b := &bench{t: t, c: c, m: m, server: modeltest.ServeOthers()}
	b.server.Answer(b.answer)
	env.Defer(b.server.Close)
	env.Defer(func() { remain(t, env.WorkDir) })
	env.Values[benchKey{}] = b
	b.names = map[string]string{"NPM": npm, "WORK": env.WorkDir, "MODEL": b.server.URL(c.wire), "PROMPT": "Do what is to be done."}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	b.names["CLIENTS"] = filepath.Join(here, "testdata", "clients")
	names, _ := env.Values[namesKey{}].(map[string]bool)
	for _, set := range []map[string]string{{"TERM": "xterm-256color"}, c.env, m.env} {
		for name, value := range set {
			names[name] = true
			env.Setenv(name, os.Expand(value, b.name))
		}
	}
	for _, set := range []map[string]string{c.files, m.files} {
		for name, text := range set {
			path := filepath.Join(env.WorkDir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
				os.WriteFile(path, []byte(os.Expand(text, b.name)), 0o600)); err != nil {
				return err
			}
		}
	}
	agent := ""
	if c.acp != nil {
		agent = c.agent(b, m)
	}
	config := "people: [{name: fay, user: " + env.Getenv("ME") + "}]\nroutes: [{ask: [fay]}]\n" +
		"connectors: {terminal: {enabled: false}}\napi: {admin_reachable: true, allow_same_user: true}\n" + agent
	env.Setenv("DAYCARED_CONFIG", filepath.Join(env.WorkDir, "config.yaml"))
	return errors.Join(os.MkdirAll(filepath.Join(env.WorkDir, "ws"), 0o700),
		os.WriteFile(filepath.Join(env.WorkDir, "config.yaml"), []byte(config), 0o600))
}

// remain kills processes that the client left running in or from its home: Codex at a terminal copies a server of its own there,
// and Gemini CLI restarts itself.
func remain(t *testing.T, home string) {
	links, err := filepath.Glob("/proc/[0-9]*/[ec][xw][ed]")
	if err != nil {
		t.Error(err)
	}
	for _, link := range links {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, home+"/") && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// agent is the configuration of an ACP program as fay's agent.
func (c program) agent(b *bench, m mode) string {
	quoted := func(words []string) string {
		text, _ := json.Marshal(expandAll(words, b.names))
		return string(text)
	}
	entry := "agents:\n  - {name: coder, person: fay, connector: admin, workspace: $WORK/ws, network: true, read: [$NPM, /proc], " +
		"acp: " + quoted(append(slices.Clone(c.acp), m.args...)) + ", env: " + quoted(slices.Sorted(maps.Keys(c.env))) +
		", write: " + quoted(c.writes)
	if m.acpMode != "" {
		entry += ", mode: " + m.acpMode
	}
	return os.Expand(entry, b.name) + "}\n"
}

func (b *bench) name(name string) string { return b.names[name] }

func expandAll(words []string, names map[string]string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = os.Expand(word, func(name string) string { return names[name] })
	}
	return all
}

// answer is the next tool call, if the request has tools; a request for a title, or with the last call's result, gets text.
func (b *bench) answer(r modeltest.Request) modeltest.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := r.Last()
	switch {
	case last.Role == models.Results && b.again != nil && strings.Contains(last.Text, "still waiting"):
		a := modeltest.Answer{Wait: b.again, Calls: []models.Call{b.next[0]}}
		a.Calls[0].ID = "call_again"
		b.again = nil
		return a
	case last.Role == models.Results && (b.made == 0 || b.made == len(b.next)):
		return modeltest.Say("It went as follows: " + strings.TrimSpace(last.Text) + ".")
	case len(b.next) == 0 || len(r.Prompt.Tools) == 0 || len(b.server.Requests()) > 40+2*len(b.next):
		return modeltest.Say("An errand")
	}
	if last.Role != models.Results {
		b.made = 0
	}
	call := b.next[b.made]
	if plan := planned.FindString(string(r.Body)); plan != "" {
		call.Input = json.RawMessage(strings.ReplaceAll(string(call.Input), "$PLAN", plan))
	}
	b.made++
	call.ID = fmt.Sprintf("call_%d", b.made)
	return modeltest.Answer{Calls: []models.Call{call}}
}

// planned matches the file in which Claude Code tells its model to write a plan.
var planned = regexp.MustCompile(`/[^\s"\\]+/plans/[^\s"\\]+\.md`)

func benchCommands() scriptCommands {
	var open chan struct{}
	on := func(do func(*testscript.TestScript, *bench, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, _ bool, args []string) {
			b, _ := ts.Value(benchKey{}).(*bench)
			do(ts, b, args)
		}
	}
	return scriptCommands{
		"serves": on(func(ts *testscript.TestScript, _ *bench, args []string) {
			begin(ts, []string{args[0], "daycared", "serve"}, (*actor).start)
			ready(ts, false, nil)
		}),
		"connects": on(connects),
		"wants": on(func(_ *testscript.TestScript, b *bench, args []string) {
			b.calls(b.c.shell, strings.ReplaceAll(cmp.Or(b.m.command, b.c.command), "$COMMAND", args[0]))
		}),
		"writes-file": on(func(ts *testscript.TestScript, b *bench, args []string) {
			if b.c.write == "" {
				ts.Fatalf("it has no tool for files here")
			}
			b.calls(b.c.write, strings.NewReplacer("$FILE", ts.MkAbs("ws/made.txt"), "$CONTENT", args[0]).Replace(b.c.content))
		}),
		"asks": on(func(_ *testscript.TestScript, b *bench, _ []string) {
			b.calls(b.c.own, `{"permission":"@events","reason":"to see"}`)
		}),
		"questions": on(func(_ *testscript.TestScript, b *bench, _ []string) {
			b.calls(b.c.question, `{"question":"Which colour?","options":["red","blue"]}`)
		}),
		"plans": on(func(_ *testscript.TestScript, b *bench, args []string) {
			b.calls(b.c.write, strings.NewReplacer("$FILE", "$PLAN", "$CONTENT", args[0]).Replace(b.c.content))
			b.calls(b.c.plan, "{}")
		}),
		"chooses": on(func(_ *testscript.TestScript, b *bench, _ []string) { b.calls(b.c.choice, b.c.options) }),
		"repeats": on(func(ts *testscript.TestScript, b *bench, args []string) {
			n, err := strconv.Atoi(args[0])
			ts.Check(err)
			b.next = slices.Repeat(b.next, n)
		}),
		"pending": on(func(ts *testscript.TestScript, _ *bench, args []string) {
			if args[0] != "0" {
				untilAsked(ts)
			}
			pending(ts, false, args)
		}),
		"again": on(func(_ *testscript.TestScript, b *bench, _ []string) {
			open = make(chan struct{})
			b.again = open
		}),
		"now": on(func(*testscript.TestScript, *bench, []string) { close(open) }),
		"begins": on(func(ts *testscript.TestScript, b *bench, _ []string) {
			run := b.c.run
			if len(b.m.run) > 0 {
				run = b.m.run
			}
			if b.c.acp == nil {
				run = append(slices.Clone(run), b.m.args...)
			}
			words := expandAll(run, b.names)
			if b.m.terminal {
				begin(ts, append([]string{"agent", "sh", "-c", `cd ws && exec "$@"`, "sh"}, words...), (*actor).sit)
				return
			}
			begin(ts, append([]string{"agent", "sh", "-c", `cd ws && exec "$@" </dev/null`, "sh"}, words...), (*actor).start)
		}),
		"dialog": on(func(ts *testscript.TestScript, b *bench, _ []string) {
			shows(ts, cast(ts)["agent"], []string{b.m.dialog})
		}),
		"refused": on(func(ts *testscript.TestScript, b *bench, args []string) {
			if b.m.dialog == "" {
				reads(ts, b, args)
				return
			}
			shows(ts, cast(ts)["agent"], []string{b.m.dialog})
			cast(ts)["agent"].stop()
		}),
		"interrupts": on(interrupts),
		"leaves": on(func(ts *testscript.TestScript, b *bench, _ []string) {
			a := cast(ts)["agent"]
			if b.m.terminal {
				closes(ts, a, nil)
				return
			}
			sends(ts, a, []string{"TERM"})
		}),
		"accepts": on(accepts),
		"clocks":  on(clocks),
		"took":    on(took),
		"over":    on(untilOver),
		"reads":   on(reads),
		"asked":   on(askedInAll),
	}
}

// untilAsked waits until a request is pending, or the agent has ended.
func untilAsked(ts *testscript.TestScript) {
	people := deciders(ts)
	defer people.Close()
	until(ts, "the agent asks", func(ctx context.Context) error {
		list, err := people.List(ctx, "", 0)
		if err == nil && len(list) == 0 {
			if over(cast(ts)["agent"].done) {
				return backoff.Permanent(errors.New("it ended and asked nobody"))
			}
			return errors.New("nothing is pending")
		}
		return err
	})
}

// untilOver waits for the agent's end. An agent at a terminal is ended once its model has the call's result.
func untilOver(ts *testscript.TestScript, b *bench, _ []string) {
	a := cast(ts)["agent"]
	if b.m.terminal && !over(a.done) {
		until(ts, "the model was told what came of it", func(context.Context) error {
			told := b.told()
			lines := strings.FieldsFunc(strings.Join(told, "\n"), func(c rune) bool { return c == '\n' })
			if !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(line, "still waiting") }) {
				return fmt.Errorf("it was told %q", told)
			}
			return nil
		})
		a.stop()
	}
	until(ts, "the agent has ended", func(context.Context) error {
		if over(a.done) {
			return nil
		}
		return errors.New("it runs")
	})
}

func (b *bench) calls(tool, input string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = append(b.next, models.Call{Tool: tool, Input: json.RawMessage(input)})
}

// connects writes the agent's settings. Codex's hooks are trusted, as by its /hooks.
func connects(ts *testscript.TestScript, b *bench, args []string) {
	if b.c.acp != nil {
		return // it is in the configuration
	}
	ts.Check(ts.Exec("daycared", "connect", b.c.name, "--write"))
	if len(args) > 0 {
		ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), "59m") && !strings.Contains(path, "/data/") {
				err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "59m", args[0])), 0o600)
			}
			return err
		}))
	}
	if b.c.name == "codex" {
		trusts(ts, false, expandAll(b.c.run[:1], b.names))
	}
}

// told are the results that the model received.
func (b *bench) told() (all []string) {
	for _, r := range b.server.Requests() {
		if last := r.Last(); last.Role == models.Results {
			all = append(all, last.Text)
		}
	}
	return all
}

// reads waits until the model received a matching result.
func reads(ts *testscript.TestScript, b *bench, args []string) {
	want, err := regexp.Compile(strings.Join(args, " "))
	ts.Check(err)
	until(ts, "the model was told "+want.String(), func(context.Context) error {
		ended := over(cast(ts)["agent"].done)
		told := b.told()
		if slices.ContainsFunc(told, want.MatchString) {
			return nil
		}
		err := fmt.Errorf("it was told %q", told)
		if ended {
			err = backoff.Permanent(fmt.Errorf("it has ended, and %w", err))
		}
		return err
	})
}

// askedInAll counts all requests to people.
func askedInAll(ts *testscript.TestScript, _ *bench, args []string) {
	people := deciders(ts)
	defer people.Close()
	entries, err := people.Audit(context.Background(), 0, 1000)
	ts.Check(err)
	seen := map[permissions.ID]bool{}
	for _, e := range entries {
		switch e.Type {
		case permissions.RequestCreated:
			seen[e.Request] = true
		case permissions.RequestSettled:
			if e.Actor != "fay" && e.Detail["state"] == string(permissions.Approved) { // decided by policy
				delete(seen, e.Request)
			}
		}
	}
	if fmt.Sprint(len(seen)) != args[0] {
		ts.Fatalf("there were %d requests, want %s", len(seen), args[0])
	}
}
