package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/daycared/daycared/cmd/daycared/connect"
)

// bound is a row of doctor's table: what people's answers are worth in one mode of an agent.
type bound struct {
	Agent   string          `json:"agent"`
	Mode    string          `json:"mode"`
	Verdict connect.Verdict `json:"verdict"`
	Asked   bool            `json:"asked"` // the agent itself said whether it runs the hook
	Note    string          `json:"note"`
}

// hearing is what is known of whether an agent runs daycared's hook.
type hearing struct {
	asked     bool   // the agent itself said so
	unasked   string // why it was not asked; empty for one that cannot be asked
	why, mend string // what is wrong; empty if nothing is
	runs      bool   // it runs the hook that decides
	note      string // what else is to be known
}

// rowsOf are the rows of a connected agent.
func rowsOf(a connect.Agent, h hearing, root managed) (rows []bound) {
	for _, m := range a.Modes {
		row := bound{a.Name, m.Name, m.Verdict, h.asked, m.Note}
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
		if row.Verdict != connect.Nothing && (root.risky || says(a, "--gate risky", `"--gate","risky"`)) {
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

func (c *CLI) printTable(table []bound) error {
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

// runsHook finds out whether a connected agent runs daycared's hooks: by its settings, and from itself where it can be asked.
func (c *CLI) runsHook(ctx context.Context, a connect.Agent, byRoot bool) (h hearing) {
	for _, off := range a.Off {
		s, err := look(connect.File{Path: off.Path})
		switch {
		case err != nil, byRoot, !off.In(s.text, ""):
		case a.Dialect == "": // its hooks are another agent's
			h.note = fmt.Sprintf("it runs no hooks: %s in %s", off, s.path)
		default:
			h.why, h.mend = fmt.Sprintf("it runs no hooks: %s in %s", off, s.path), "take that out of "+s.path+", and start "+a.Name+" anew"
		}
	}
	for _, name := range a.Unset {
		if c.env(name) != "" && !byRoot {
			h.why, h.mend = "it runs no hooks where "+name+" is set, as it is here", "unset "+name
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
	h.why, h.mend, h.runs = a.Skipped(told, byRoot)
	return h
}

// askWithin bounds how long an agent takes to list its hooks.
var askWithin = 10 * time.Second

const (
	// linger is how long an agent that has answered may take to end by itself.
	linger = 2 * time.Second
	// mostSaid and longestLine bound what an agent may answer, in bytes.
	mostSaid, longestLine = 16 << 20, 4 << 20
)

// askAgent has an agent list its hooks. It runs the program that a person would start by its name, in a folder that the agent may
// trust, with what it needs of the environment, and ends it with all that it started.
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
	cmd.Dir, cmd.Env = folder, c.agentsEnv(folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, linger
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
	// What it started may outlive it with its output, and must not keep us.
	stop := context.AfterFunc(limited, func() { _ = out.Close() })
	defer stop()
	_, _ = io.WriteString(in, l.Lines(folder)) // one that does not read it does not answer
	told, err = answered(out, l)
	if limited.Err() != nil && err != nil {
		err = fmt.Errorf("it did not answer within %s", askWithin)
	}
	_ = in.Close()
	idle := time.AfterFunc(linger, func() { _ = out.Close() })
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(out, mostSaid)) // until it has ended by itself
	}
	idle.Stop()
	_ = end() // it is not waited for yet, so its group is its own
	_ = cmd.Wait()
	return told, err
}

// answered reads what an agent says until it has answered.
func answered(out io.Reader, l connect.Listing) (told connect.Hooks, err error) {
	lines := bufio.NewScanner(io.LimitReader(out, mostSaid))
	lines.Buffer(nil, longestLine)
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

// ownsHome fails where the home, or a folder that settings were moved to, is another account's: what is there is not for this
// account to run, least of all for root.
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

// installedAgent is where the PATH has a program. One that any account could have put there is not run, and by root only what is root's.
func (c *CLI) installedAgent(name string) (string, error) {
	path, err := c.onPath(name)
	if err == nil && !c.keptBy(path, c.UID) {
		err = fmt.Errorf("%s is not run: accounts besides this one and root could change it, or what runs it", path)
	}
	return path, err
}

// rootUID is who owns what the machine's settings are; tests have an account of their own.
var rootUID = 0

// maxHops bounds the symlinks and interpreters that lead to a program.
const maxHops = 40

// keptBy reports whether only root and that account can change a file, or put another in its place: every folder and symlink on
// the way, and the interpreter that its first line names.
func (c *CLI) keptBy(path string, uid int) bool {
	hops := 0
	return filepath.IsAbs(path) && c.kept(path, uid, &hops)
}

func (c *CLI) kept(path string, uid int, hops *int) bool {
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
		return c.kept(strings.Join(append([]string{target}, rest[i:]...), "/"), uid, hops)
	}
	return !info.Mode().IsRegular() || c.interpreterKept(at, uid, hops)
}

// lockedTo reports whether a file is root's or that account's, and nobody else may write it. A group may where it is the account's
// own, which has the account's number, and others in a folder with the sticky bit.
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

// interpreterKept reports whether the interpreter of a script is kept, too; env finds it on the PATH. A file that cannot be read is
// no script that could run.
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
	if len(words) == 0 || !filepath.IsAbs(words[0]) || !c.kept(words[0], uid, hops) {
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
		return false // it is not looked for in known folders alone
	}
	found, err := c.onPath(words[0])
	return err == nil && c.kept(found, uid, hops)
}

// onPath is where the PATH has a program.
func (c *CLI) onPath(name string) (string, error) {
	for _, folder := range filepath.SplitList(c.env("PATH")) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); filepath.IsAbs(folder) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("it is not installed (no %s on the PATH)", name)
}

// trustedFolder is the folder where this is run, if the person has let the agent use the settings there; else it is the home. What
// a folder of others tells an agent to run is not to run because somebody examines the connection.
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

// passedOn are the variables that an agent is started with; the others may hold secrets, or have it load what is not its own.
var passedOn = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TERM"}

func (c *CLI) agentsEnv(folder string) []string {
	env := []string{"PWD=" + folder, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	for _, name := range slices.Concat(passedOn, connect.Movers()) {
		if value := c.env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// machineEtc is where the machine keeps settings that root owns; tests have one of their own.
var machineEtc = "/etc"

// managed is what root has set for an agent on this machine; the verdict is empty where daycared's hook is not part of it.
type managed struct {
	verdict connect.Verdict
	note    string
	risky   bool // its hook leaves harmless calls to the agent's own mode
}

// managed finds daycared's hook in what root has set. It is worth what the agent makes of it where this account can change neither
// that, nor the program, nor the daemon that it asks.
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
		why := c.unheld(file, commands)
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

// unheld says why this account can get past a hook that root has set.
func (c *CLI) unheld(file string, commands []string) string {
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
		socket := ""
		if at := slices.Index(words, "--socket"); at >= 0 && at+1 < len(words) {
			socket = words[at+1]
		}
		info, err := os.Stat(filepath.Dir(socket))
		switch {
		case socket == "" && !slices.Contains(words, "--url"):
			return file + " does not say which daemon is asked"
		case socket != "" && (err != nil || ownerOf(info) == c.UID):
			return "the daemon that is asked is this account's own"
		}
	}
	return ""
}
