package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/daycared/daycared/cmd/daycared/connect"
)

// agentRow is a row of doctor's table: how binding people's answers are in one mode of an agent.
type agentRow struct {
	Agent   string          `json:"agent"`
	Mode    string          `json:"mode"`
	Verdict connect.Verdict `json:"verdict"`
	Asked   bool            `json:"asked"` // the agent itself said whether it runs the hook
	Note    string          `json:"note"`
}

// hookStatus is what is known about whether an agent runs daycared's hook.
type hookStatus struct {
	asked       bool   // the agent itself said so
	unasked     string // why it could not be asked; also empty if its kind cannot be asked
	why, remedy string // the problem and its remedy; empty: none
	runs        bool   // it runs the hook that decides
	open        string // what it does that no hook sees, and how to end that; empty: nothing is known
	note        string
}

func rowsOf(a connect.Agent, h hookStatus, root managed) (rows []agentRow) {
	for _, m := range a.Modes {
		row := agentRow{a.Name, m.Name, m.Verdict, h.asked, m.Note}
		note := func(more string) {
			if more != "" {
				row.Note = strings.TrimPrefix(row.Note+"; "+more, "; ")
			}
		}
		switch {
		case !h.runs:
			row.Verdict, row.Note = connect.Nothing, h.why
		case root.verdict != "":
			row.Verdict = root.verdict
			note(root.note)
		case a.Listing.Opt && !h.asked:
			row.Verdict, row.Note = connect.Nothing, "not asked, so whether it trusts the hook is not known"
		}
		note(h.note)
		if row.Verdict != connect.Nothing && (root.risky || mentions(a, "--gate risky", `"--gate","risky"`)) {
			left := "reading and editing in its folder is left to its own mode"
			if a.LeavesCommands() {
				left = "reading, editing, building and testing in its folder is left to its own mode, and so is what those run"
			}
			note("--gate risky: " + left)
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *CLI) printTable(table []agentRow) error {
	if len(table) == 0 {
		return nil
	}
	c.print("\nWhat an answer of people is worth, as far as can be known here:\n")
	out := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, row := range table {
		asked := "not asked"
		if row.Asked {
			asked = "asked"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", spelled(row.Agent), spelled(row.Mode), row.Verdict, asked, spelled(row.Note))
	}
	return out.Flush()
}

// runsHook finds out whether a connected agent runs daycared's hooks, from its settings and, if possible, from the agent itself.
func (c *CLI) runsHook(ctx context.Context, a connect.Agent, byRoot bool) (h hookStatus) {
	for _, off := range a.Off {
		s, err := look(connect.File{Path: off.Path})
		switch {
		case err != nil, byRoot, !off.In(s.text, ""):
		case a.Dialect == "": // its hooks are another agent's
			h.note = fmt.Sprintf("it runs no hooks: %s in %s", off, s.path)
		default:
			h.why, h.remedy = fmt.Sprintf("it runs no hooks: %s in %s", off, s.path), "take that out of "+s.path+", and start "+a.Name+" anew"
		}
	}
	for _, need := range a.Needs {
		s, err := look(connect.File{Path: need.Path})
		switch has := err == nil && need.In(s.text, ""); {
		case has && need.With != "":
			h.open = fmt.Sprintf("%s: %s has %s", need.With, s.path, need.Setting)
		case !has && need.Without != "":
			h.open = fmt.Sprintf("%s, unless %s has %s", need.Without, s.path, need.Setting)
		}
	}
	for _, name := range a.Unset {
		if c.env(name) != "" && !byRoot {
			h.why, h.remedy = "it runs no hooks where "+name+" is set, as it is here", "unset "+name
		}
	}
	h.runs = h.why == ""
	if a.Listing.Program == "" || !h.runs {
		return h
	}
	told, err := c.askAgent(ctx, a)
	if err != nil {
		h.unasked = err.Error()
		return h
	}
	h.asked = true
	h.why, h.remedy, h.runs = a.Skipped(told, byRoot)
	return h
}

// askWithin is the time limit for an agent to list its hooks; tests shorten it.
var askWithin = 10 * time.Second

const (
	// exitWithin is how long an agent may take to exit after its answer.
	exitWithin = 2 * time.Second
	// maxOutput and longestLine are the maximum sizes of an agent's output and of one line of it, in bytes.
	maxOutput, maxLine = 16 << 20, 4 << 20
)

// askAgent starts an agent to list its hooks: the program on the PATH, in a folder that the agent trusts, with a minimal
// environment. It kills the process group at the end.
func (c *CLI) askAgent(ctx context.Context, a connect.Agent) (told connect.Hooks, err error) {
	l := a.Listing
	if err := c.ownsHome(); err != nil {
		return told, err
	}
	program, err := c.installedAgent(l.Program)
	if err != nil {
		return told, err
	}
	limited, done := context.WithTimeout(ctx, askWithin)
	defer done()
	folder := c.trustedFolder(l.Trusted)
	cmd := exec.CommandContext(limited, program, l.Args...) //nolint:gosec // looked for on the PATH by a name of ours
	mark := "DAYCARED_ASKS=" + rand.Text()
	cmd.Dir, cmd.Env = folder, append(c.agentsEnv(folder), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, exitWithin
	in, err := cmd.StdinPipe()
	if err != nil {
		return told, fmt.Errorf("start %s: %w", program, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return told, fmt.Errorf("start %s: %w", program, err)
	}
	if err := cmd.Start(); err != nil {
		return told, fmt.Errorf("start %s: %w", program, err)
	}
	// A process that it started may keep its output open.
	stop := context.AfterFunc(limited, func() { _ = out.Close() })
	defer stop()
	_, _ = io.WriteString(in, l.Lines(folder)) // if it fails, there is no answer
	told, err = readAnswer(out, l)
	if limited.Err() != nil && err != nil {
		err = fmt.Errorf("it did not answer within %s", askWithin)
	}
	_ = in.Close()
	idle := time.AfterFunc(exitWithin, func() { _ = out.Close() })
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(out, maxOutput)) // until it exits
	}
	idle.Stop()
	_ = end() // before Wait, so the group's number cannot have been reused
	_ = cmd.Wait()
	endMarked(mark)
	return told, err
}

// endMarked kills the processes with that variable, whatever group they are in, where there is a /proc.
func endMarked(mark string) {
	for more, tries := true, 0; more && tries < 100; tries++ { // one may have started another meanwhile
		more = false
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			text, _ := os.ReadFile(file) // of another account, or of one that has ended: nothing
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil && slices.Contains(strings.Split(string(text), "\x00"), mark) {
				more = syscall.Kill(pid, syscall.SIGKILL) == nil || more
			}
		}
	}
}

// readAnswer reads an agent's output up to its answer.
func readAnswer(out io.Reader, l connect.Listing) (told connect.Hooks, err error) {
	lines := bufio.NewScanner(io.LimitReader(out, maxOutput))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if told, done, err := l.Read(lines.Bytes()); done || err != nil {
			return told, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return told, errors.New("its answer is too long")
	}
	return told, errors.New("it ended, or said too much, without an answer")
}

// ownsHome returns an error if another account owns or can change the home, or a folder that settings were moved to: this account,
// least of all root, must not run what is there.
func (c *CLI) ownsHome() error {
	for _, name := range append([]string{"HOME"}, connect.Movers()...) {
		folder := c.env(name)
		info, err := os.Stat(folder)
		switch {
		case folder == "" || err != nil:
		case ownerOf(info) != c.UID:
			return fmt.Errorf("%s is %s, which is another account's; run this as that account", name, folder)
		case !filepath.IsAbs(folder) || !c.keptBy(folder, c.UID) || info.Mode().Perm()&0o002 != 0:
			return fmt.Errorf("%s is %s, which other accounts could change or replace; let nobody else write it, or a folder on the way to it",
				name, folder)
		}
	}
	return nil
}

// installedAgent returns the path of a program on the PATH that only this account and root can change.
func (c *CLI) installedAgent(name string) (string, error) {
	path, err := c.onPath(name)
	if err == nil && !c.keptBy(path, c.UID) {
		err = fmt.Errorf("%s is not run: accounts besides this one and root could change it, or what runs it", path)
	}
	return path, err
}

// rootUID is the owner of the machine's settings; tests change it.
var rootUID = 0

// maxHops is the maximum number of symlinks and interpreters on the way to a program.
const maxHops = 40

// keptBy reports whether only root and that account can change or replace a file. It checks every folder and symlink on the way,
// and the interpreter that a script names.
func (c *CLI) keptBy(path string, uid int) bool {
	hops := 0
	return filepath.IsAbs(path) && c.onlyChangedBy(path, uid, &hops)
}

func (c *CLI) onlyChangedBy(path string, uid int, hops *int) bool {
	if *hops++; *hops > maxHops {
		return false
	}
	at, info := "/", fs.FileInfo(nil)
	rest := strings.Split(path, "/")
	for i, part := range append([]string{"."}, rest...) {
		at = filepath.Join(at, part)
		found, err := os.Lstat(at)
		if err != nil || !lockedTo(found, uid) {
			return false
		}
		info = found
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(at)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Dir(at) + "/" + target // at has no symlinks before its last part
		}
		return c.onlyChangedBy(strings.Join(append([]string{target}, rest[i:]...), "/"), uid, hops)
	}
	return !info.Mode().IsRegular() || c.interpreterKept(at, uid, hops)
}

// lockedTo reports whether root or that account owns a file and nobody else may write it. The account's own group, which has its
// number, may write it, and others may write to a folder with the sticky bit.
func lockedTo(info fs.FileInfo, uid int) bool {
	if !slices.Contains([]int{0, rootUID, uid}, ownerOf(info)) {
		return false
	}
	open := fs.FileMode(0o022)
	if uid != rootUID && groupOf(info) == uid {
		open = 0o002
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0
	return info.Mode()&fs.ModeSymlink != 0 || info.Mode().Perm()&open == 0 || sticky
}

// interpreterKept reports whether keptBy also holds for a script's interpreter, found as env does. An unreadable script could not run.
func (c *CLI) interpreterKept(path string, uid int, hops *int) bool {
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer file.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(file, head)
	line, script := strings.CutPrefix(string(head[:n]), "#!")
	if !script {
		return true
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 || !filepath.IsAbs(words[0]) || !c.onlyChangedBy(words[0], uid, hops) {
		return false
	}
	if filepath.Base(words[0]) != "env" {
		return true
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	relative := slices.ContainsFunc(filepath.SplitList(c.env("PATH")), func(folder string) bool { return !filepath.IsAbs(folder) })
	if relative || len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], "=/") {
		return false // it could be found elsewhere
	}
	found, err := c.onPath(words[0])
	return err == nil && c.onlyChangedBy(found, uid, hops)
}

func (c *CLI) onPath(name string) (string, error) {
	for _, folder := range filepath.SplitList(c.env("PATH")) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); filepath.IsAbs(folder) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("it is not installed (no %s on the PATH)", name)
}

// trustedFolder returns the current folder if the person has let the agent trust it, otherwise the home: checking a connection must
// not run what an untrusted folder configures.
func (c *CLI) trustedFolder(trusted connect.Setting) string {
	home := c.env("HOME")
	here, err := os.Getwd()
	s, unread := look(connect.File{Path: trusted.Path})
	if err != nil || unread != nil {
		return home
	}
	for at := here; at != filepath.Dir(at); at = filepath.Dir(at) {
		if trusted.In(s.text, at) {
			return here
		}
	}
	return home
}

// passedEnv are the variables that an agent is started with; others may hold secrets or make it load foreign code.
var passedEnv = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TERM"}

func (c *CLI) agentsEnv(folder string) []string {
	env := []string{"PWD=" + folder, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	for _, name := range slices.Concat(passedEnv, connect.Movers()) {
		if value := c.env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// machineEtc is the folder of settings that root owns; tests change it.
var machineEtc = "/etc"

// managed describes root's settings for an agent on this machine. The verdict is empty if they do not include daycared's hook.
type managed struct {
	verdict connect.Verdict
	note    string
	risky   bool // its hook leaves harmless calls to the agent's own mode
}

// managed finds daycared's hook in root's settings. It binds as the agent promises only if this account can change neither the
// settings, nor the program, nor the daemon that it asks.
func (c *CLI) managed(a connect.Agent) (m managed) {
	if a.Managed.Path == "" {
		return m
	}
	files, _ := filepath.Glob(a.Managed.Path) // the pattern is ours
	for _, file := range files {
		s, err := look(connect.File{Path: file})
		commands, missing := a.Managed.Commands(s.text, a.Dialect)
		if err != nil || len(commands) == 0 {
			continue
		}
		risky := strings.Contains(strings.Join(commands, " "), " --gate risky")
		m = managed{a.Managed.Verdict, a.Managed.Note, risky}
		why := c.bypass(file, commands)
		if why == "" && len(missing) > 0 {
			why = file + " does not set " + strings.Join(missing, ", ") + " under env, which the agent's own settings can"
		}
		if why != "" {
			m = managed{connect.BindsUnless, why, risky}
		}
		return m
	}
	return m
}

// bypass returns why this account can bypass a hook in root's settings; empty if it cannot.
func (c *CLI) bypass(file string, commands []string) string {
	if c.UID == rootUID {
		return "this account is root"
	}
	if !c.keptBy(file, rootUID) {
		return file + " is not root's alone"
	}
	for _, command := range commands {
		words, ok := connect.Words(command)
		if !ok {
			return file + " has a hook that is not as daycared connect writes it"
		}
		if !c.keptBy(words[0], rootUID) {
			return words[0] + " is not root's alone"
		}
		named := func(flag string) string {
			if at := slices.Index(words, flag); at >= 0 && at+1 < len(words) {
				return words[at+1]
			}
			return ""
		}
		socket, url := named("--socket"), named("--url")
		if socket == "" && url == "" {
			return file + " does not say which daemon is asked"
		}
		if strings.HasPrefix(url, "http:") {
			return "this account can listen at " + url + " while the daemon does not"
		}
		for at := socket; at != filepath.Dir(at) && socket != ""; {
			at = filepath.Dir(at)
			info, err := os.Stat(at)
			switch {
			case err != nil, ownerOf(info) == c.UID:
				return "the daemon that is asked is this account's own"
			case info.Mode().Perm()&0o022 != 0:
				return "this account can put a socket of its own at " + socket + ": others than its owner may write in " + at
			}
		}
	}
	return ""
}
