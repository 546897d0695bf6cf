package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/cmd/daycared/connect"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) connectCommand() *cobra.Command {
	var write, remove bool
	var gate string
	cmd := newCommand("connect AGENT [--write|--remove] [--gate all|risky]",
		arguments(cobra.ExactArgs(1), "one agent: "+strings.Join(connect.Names(), ", ")),
		func(cmd *cobra.Command, args []string) error {
			place, err := c.here()
			if err != nil && !remove {
				return err
			}
			agent, err := c.toConnect(cmd, place, args[0], gate, write && !c.asJSON)
			switch {
			case err != nil:
				return err
			case write && remove:
				return usage("--write and --remove cannot both be meant")
			}
			does := c.printConnection
			switch {
			case write:
				does = c.connectTo
			case remove:
				does = c.disconnect
			}
			told := connection{
				Agent: agent.Name, Enforces: agent.Enforces, Advises: agent.Advises,
				Reads: append([]string{}, agent.Reads...), Notes: append([]string{}, agent.Notes...),
			}
			out := c.Out
			if c.asJSON {
				c.Out = io.Discard
			}
			err = does(cmd.Context(), agent, &told)
			if c.Out = out; c.asJSON && err == nil {
				err = c.json(told)
			}
			return err
		})
	cmd.Flags().BoolVar(&write, "write", false, "write it into the agent's settings")
	cmd.Flags().BoolVar(&remove, "remove", false, "take it out of the agent's settings")
	gateFlag(cmd, &gate)
	return cmd
}

// toConnect returns the agent of that name with that gate, or asks at the terminal.
func (c *CLI) toConnect(cmd *cobra.Command, place connect.Target, name, gate string, asks bool) (a connect.Agent, err error) {
	a, known := place.Find(name)
	if known && asks && a.Dialect != "" && !cmd.Flags().Changed("gate") {
		if gate, err = c.askGate(cmd.Context()); err != nil {
			return a, err
		}
	}
	switch {
	case !known:
		return a, usage("there is no agent %q; %s", name, suggestSimilar(name, connect.Names(), "there are "+strings.Join(connect.Names(), ", ")))
	case !slices.Contains(connect.Gates, gate):
		return a, unknownGate(gate)
	}
	place.Gate = gate
	a, _ = place.Find(name)
	return a, nil
}

// askGate asks at the terminal which calls need approval; without a terminal, all do.
func (c *CLI) askGate(ctx context.Context) (gate string, err error) {
	if !terminal.IsTerminal(c.In) || widthOf(c.Out) == 0 {
		return connect.GateAll, nil
	}
	talk := dialogue{in: c.In, out: c.Out}
	return talk.ask(ctx, "Ask about all calls, or leave reading, editing, building and testing in its folder to the agent's own mode (risky)?",
		connect.GateAll)
}

// connection is what connect did or would do, in JSON.
type connection struct {
	Agent    string          `json:"agent"`
	Files    []connectedFile `json:"files"`
	Enforces string          `json:"enforces"`
	Advises  string          `json:"advises"`
	Reads    []string        `json:"reads"` // read-only tools that are asked about too
	Notes    []string        `json:"notes"`
	Skips    *string         `json:"skips"`  // why the agent does not run the hook now; null if it does, or if that is unknown
	Asks     []string        `json:"asks"`   // who can answer now; null if unknown
	Denied   *string         `json:"denied"` // why all its requests are denied now
}

type connectedFile struct {
	Path  string  `json:"path"`
	State string  `json:"state"`         // printed, written, unchanged, removed, or restored (to its earlier content)
	Text  string  `json:"text,omitzero"` // of a printed file
	Was   *string `json:"was"`           // the backup of its earlier content
}

// here is this account's home, and the command by which agents start this program.
func (c *CLI) here() (connect.Target, error) {
	home := c.env("HOME")
	if !filepath.IsAbs(home) {
		return connect.Target{}, usage("HOME is not set, so the agent's settings cannot be found")
	}
	binary, err := os.Executable()
	if err != nil {
		return connect.Target{}, fmt.Errorf("find this program's own file: %w", err)
	}
	moved := map[string]string{}
	for _, name := range connect.Movers() {
		switch folder := c.env(name); {
		case filepath.IsAbs(folder):
			moved[name] = folder
		case folder != "":
			return connect.Target{}, usage("%s is %q, which depends on the folder where the agent is started; write it from the root on",
				name, folder)
		}
	}
	target := connect.Target{Home: home, GOOS: runtime.GOOS, Moved: moved, Etc: machineEtc}
	if cfg, _, err := c.load(); err == nil && c.urlFlag == "" {
		target.Keyboard, target.Refused = c.keyboardAnswers(cfg), cfg.Approvals.AskRefused
	}
	target.Command, err = c.pinned(binary)
	return target, err
}

// keyboardAnswers reports whether an agent's keyboard may answer: there is a configuration, and no route of a local caller forbids it.
func (c *CLI) keyboardAnswers(cfg *config.Config) bool {
	if cfg.File == "" {
		return false
	}
	token, self := c.tokenFlag != "" || c.env("DAYCARED_TOKEN_FILE") != "", permissions.CallerUID(c.UID).Name
	return !slices.ContainsFunc(cfg.Routes, func(r config.Route) bool {
		mine := token || len(r.Agents) == 0 || slices.ContainsFunc(r.Agents, func(glob string) bool {
			ok, err := path.Match(glob, self)
			return ok || err != nil
		})
		return mine && (r.Quorum > 1 || r.NoKeyboard)
	})
}

// pinned returns the command that starts binary against the same daemon as this command, whatever its environment says.
func (c *CLI) pinned(binary string) ([]string, error) {
	o, err := c.asksAt()
	if err == nil {
		var asks *client.Client
		if asks, err = client.New(o); err != nil {
			return []string{binary}, usage("%s", err)
		}
		asks.Close()
	}
	command := []string{binary}
	for _, flag := range [][2]string{
		{"--socket", o.Socket}, {"--url", o.URL}, {"--token-file", o.TokenFile}, {"--proxy", o.Proxy}, {"--ca-file", o.CAFile},
	} {
		name, value := flag[0], flag[1]
		if value == "" || err != nil {
			continue
		}
		if name != "--url" && name != "--proxy" {
			if value, err = filepath.Abs(value); err != nil {
				err = fmt.Errorf("find %s: %w", flag[1], err)
			}
		}
		command = append(command, name, value)
	}
	return command, err
}

func (c *CLI) printConnection(_ context.Context, a connect.Agent, told *connection) error {
	for _, f := range a.Files {
		fresh, err := f.Install("")
		if err != nil {
			return err
		}
		told.Files = append(told.Files, connectedFile{Path: f.Path, State: "printed", Text: fresh})
		c.print("In %s:\n\n%s\n", f.Path, fresh)
	}
	c.tellConnection(a)
	fmt.Fprintf(c.Out, "Write it with: daycared connect %s --write\n", a.Name)
	return nil
}

// tellConnection prints what a connection enforces.
func (c *CLI) tellConnection(a connect.Agent) {
	fmt.Fprintf(c.Out, "enforces  %s.\nadvises   %s.\n", a.Enforces, a.Advises)
	for _, note := range a.Notes {
		fmt.Fprintf(c.Out, "note      %s.\n", note)
	}
	if len(a.Reads) > 0 {
		fmt.Fprintf(c.Out, "note      what only reads is asked about, too, unless a rule or tools.auto of the configuration allows it: %s.\n",
			strings.Join(a.Reads, ", "))
	}
	if cfg, _, err := c.load(); a.Dialect != "" && (err != nil || len(cfg.Rules) == 0) {
		fmt.Fprintln(c.Out, "note      no rule of the configuration says yet what needs no question: begin with "+
			"- use: builtin:read-only under rules; there are builtin:git-local and builtin:workspace-edits as well, "+
			"and daycared suggest proposes others after some days.")
	}
	fmt.Fprintln(c.Out, "note      an agent that runs as the account that answers is held by its hook alone: it could change these settings.")
}

// settingsFile is one settings file of an agent as it is on disk.
type settingsFile struct {
	connect.File
	path  string // with symbolic links resolved
	there bool
	text  string
	mode  os.FileMode

	uid, gid int // whose it is to be; -1: this account's
}

const maxSettings = 64 << 20

var errTooLarge = errors.New("it is too large for a file of settings")

// look reads a settings file of an agent; a missing one is empty.
func look(f connect.File) (settingsFile, error) {
	s := settingsFile{File: f, path: f.Path, mode: 0o600, uid: -1, gid: -1}
	if f.Or != "" && exists(f.Or) && !exists(f.Path) {
		s.path = f.Or
	}
	if whole, err := filepath.EvalSymlinks(s.path); err == nil {
		s.path = whole
	}
	info, err := os.Stat(s.path)
	switch {
	case os.IsNotExist(err):
		return s, nil
	case err == nil && !info.Mode().IsRegular():
		err = errNoFile
	case err == nil && info.Size() > maxSettings:
		err = errTooLarge
	}
	if err == nil {
		var text []byte
		text, err = os.ReadFile(s.path)
		s.text, s.mode, s.there = string(text), info.Mode().Perm(), true
	}
	if err != nil {
		return s, fmt.Errorf("read %s: %w", s.path, permissions.Cause(err))
	}
	return s, nil
}

// makeFolder makes a folder and those around it that are missing.
func (s settingsFile) makeFolder(path string) error {
	if exists(path) {
		return nil
	}
	err := s.makeFolder(filepath.Dir(path))
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil || s.uid < 0 {
		return err
	}
	made, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0) // its account may have put another thing there
	if err != nil {
		return err
	}
	return errors.Join(made.Chown(s.uid, s.gid), made.Close())
}

// write replaces a file atomically.
func (s settingsFile) write(path, text string) error {
	if err := store.WriteFileOf(s.uid, s.gid, path, []byte(text), s.mode); err != nil {
		return fmt.Errorf("write %s: %w", path, permissions.Cause(err))
	}
	return nil
}

func (s settingsFile) backup() string { return s.path + ".before-daycared" }

// lookOwn is look. It fails where symlinks lead to another account's file or folder, which could have root write there, or nowhere.
// What root writes is its account's that the file there is of, otherwise the nearest folder; another account's symlinks lead root only to
// that account's.
func lookOwn(f connect.File, uid int) (settingsFile, error) {
	s, err := look(f)
	if info, failed := os.Lstat(s.path); failed == nil && info.Mode()&os.ModeSymlink != 0 && err == nil {
		err = fmt.Errorf("%s is a symlink that leads nowhere; nothing was written: remove it, or make the file that it names", s.path)
	}
	for at := s.path; uid == 0 && s.uid < 0 && at != "/" && at != "."; at = filepath.Dir(at) {
		if info, failed := os.Stat(at); failed == nil {
			s.uid, s.gid = ownerOf(info), groupOf(info)
		}
	}
	if err != nil || s.path == s.Path || s.path == s.Or {
		return s, err
	}
	for at := s.Path; uid == rootUID && at != "/" && at != "."; at = filepath.Dir(at) {
		if info, failed := os.Lstat(at); failed == nil && info.Mode()&os.ModeSymlink != 0 {
			uid = ownerOf(info)
		}
	}
	for _, at := range []string{s.path, filepath.Dir(s.path)} {
		if info, err := os.Stat(at); err != nil || ownerOf(info) != uid {
			return s, fmt.Errorf("%s leads to %s, and %s is another account's; nothing was written: replace the symlink by a file of your own",
				s.Path, s.path, at)
		}
	}
	return s, nil
}

// connectTo installs the settings of an agent. All files are checked before the first is written.
func (c *CLI) connectTo(ctx context.Context, a connect.Agent, told *connection) error {
	var changes []func() (connectedFile, error)
	for _, f := range a.Files {
		s, err := lookOwn(f, c.UID)
		if err != nil {
			return err
		}
		next, err := s.Install(s.text)
		if err != nil {
			return fmt.Errorf("%s is left as it is, and nothing was written: %w", s.path, err)
		}
		changes = append(changes, func() (connectedFile, error) { return c.install(s, next) })
	}
	for _, change := range changes {
		changed, err := change()
		if err != nil {
			return err
		}
		told.Files = append(told.Files, changed)
	}
	c.tellConnection(a)
	c.tellReach(ctx, a, told)
	if !c.tellSkipped(ctx, a, told) {
		fmt.Fprintf(c.Out, "Next, start %s anew and have it run a command: the card comes to whoever is asked. "+
			"daycared doctor tries the connection.\n", a.Name)
	}
	return nil
}

// tellSkipped prints why an agent that was just connected does not run the hook, with the remedy, and reports whether it says so itself.
func (c *CLI) tellSkipped(ctx context.Context, a connect.Agent, told *connection) (skipped bool) {
	h := c.runsHook(ctx, a, c.managed(a).verdict != "")
	if h.why != "" {
		told.Skips = wire.OrNull(h.why)
		c.say("as long as this is so, %s does not ask: %s; %s", a.Name, h.why, h.remedy)
	}
	if h.open != "" {
		c.print("note      %s: %s.\n", a.Name, h.open)
	}
	if h.unasked != "" {
		c.print("note      %s was not asked whether it runs the hook: %s.\n", a.Name, h.unasked)
	}
	return h.why != ""
}

// tellReach prints whom an agent that was just connected can ask. It warns if that is nobody: all requests are then denied.
func (c *CLI) tellReach(ctx context.Context, a connect.Agent, told *connection) {
	s, err := c.status(ctx)
	var reached []string
	for _, p := range s.People {
		if len(p.Via) > 0 {
			reached = append(reached, fmt.Sprintf("%s (%s)", spelled(p.Name), strings.Join(p.Via, ", ")))
		}
	}
	why := ""
	switch {
	case errors.Is(err, fs.ErrPermission), permissions.CodeOf(err) == permissions.CodeNotYours, c.socketFlag != "", c.urlFlag != "",
		err != nil && c.agentsReach(ctx):
		// this account may not read it
		fmt.Fprintln(c.Out, "note      whom it can ask is told to the daemon's own account: daycared status.")
		return
	case err != nil:
		why = explain(c.notRunning(err)).Text
		if _, found := config.Find(c.configFlag, c.Environ, exists); !found {
			why += "; to be asked on a phone: daycared setup"
		}
	case !s.Ready:
		why = wire.Value(s.NotReady)
	case !s.Reachable:
		why = "nobody can be reached just now; daycared status says why"
	default:
		told.Asks = reached
		fmt.Fprintf(c.Out, "asks      %s, by what can be reached just now.\n", strings.Join(reached, ", "))
		return
	}
	told.Denied = wire.OrNull(why)
	c.say("as long as this is so, whatever %s asks is denied: %s", a.Name, why)
}

// agentsReach reports whether a daemon answers where agents ask.
func (c *CLI) agentsReach(ctx context.Context) bool {
	asks, err := c.agentClient()
	if err != nil {
		return false
	}
	defer asks.Close()
	return asks.Ready(ctx) == nil
}

func (c *CLI) install(s settingsFile, next string) (done connectedFile, err error) {
	done = connectedFile{Path: s.path, State: "unchanged"}
	if next == s.text && s.there {
		c.print("%s has it already.\n", s.path)
		return done, nil
	}
	if err := s.makeFolder(filepath.Dir(s.path)); err != nil {
		return done, fmt.Errorf("make the folder of %s: %w", s.path, permissions.Cause(err))
	}
	as := ""
	if clean, err := s.Remove(s.text); s.there && err == nil && clean == s.text { // it contained nothing of ours
		if err := s.write(s.backup(), s.text); err != nil {
			return done, err
		}
		done.Was, as = wire.OrNull(s.backup()), "; as it was: "+s.backup()
	}
	if err := s.write(s.path, next); err != nil {
		return done, err
	}
	c.print("%s is written%s.\n", s.path, as)
	done.State = "written"
	return done, nil
}

// disconnect removes our settings. A file in which nothing else has changed since is restored byte by byte.
func (c *CLI) disconnect(_ context.Context, a connect.Agent, told *connection) error {
	if a.Loaded != "" {
		_ = os.Remove(a.Loaded) // it may not exist
	}
	for _, f := range a.Files {
		s, err := lookOwn(f, c.UID)
		if err != nil {
			return err
		}
		next, err := s.Remove(s.text)
		if err != nil {
			return fmt.Errorf("%s is left as it is: %w", s.path, err)
		}
		if next == s.text {
			c.print("%s has nothing of daycared.\n", s.path)
			told.Files = append(told.Files, connectedFile{Path: s.path, State: "unchanged"})
			continue
		}
		state, err := c.uninstall(s, next)
		if err != nil {
			return err
		}
		told.Files = append(told.Files, connectedFile{Path: s.path, State: state})
	}
	return nil
}

// uninstall returns the file's new state.
func (c *CLI) uninstall(s settingsFile, next string) (state string, err error) {
	was, err := os.ReadFile(s.backup())
	known := err == nil
	if again, err := s.Install(string(was)); known && err == nil {
		if clean, err := s.Remove(again); err == nil && clean == next {
			next = string(was)
		}
	}
	if !known && s.Empty(next) {
		if err := os.Remove(s.path); err != nil {
			return "", fmt.Errorf("remove %s: %w", s.path, permissions.Cause(err))
		}
		c.print("%s held nothing else and is gone.\n", s.path)
		return "removed", nil
	}
	if err := s.write(s.path, next); err != nil {
		return "", err
	}
	if known && next == string(was) {
		if err := os.Remove(s.backup()); err != nil {
			return "", fmt.Errorf("remove %s: %w", s.backup(), permissions.Cause(err))
		}
		c.print("%s is as it was.\n", s.path)
		return "restored", nil
	}
	c.print("%s has nothing of daycared any more.\n", s.path)
	return "written", nil
}
