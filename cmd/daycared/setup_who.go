package main

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/permissions"
)

// who is step one: who answers, and in which time zone.
func (s *steps) who(ctx context.Context) error {
	s.printTitle("Who answers")
	account := ""
	if me, err := user.LookupId(strconv.Itoa(s.cli.UID)); err == nil {
		account = me.Username
	}
	usual := account
	if i := slices.IndexFunc(s.cfg.People, func(p config.Person) bool { return p.User == account }); i >= 0 {
		usual = s.cfg.People[i].Name
	} else if len(s.cfg.People) > 0 {
		usual = s.cfg.People[0].Name
	}
	s.talk.say("  A name for whoever is asked. It is shown on cards and typed in commands.")
	var err error
	for s.name == "" {
		if s.name, err = s.talk.ask(ctx, "  name", usual); err != nil {
			return err
		}
		if wrong := config.CheckName(s.name); wrong != nil {
			s.talk.say("  %s", wrong)
			s.name = ""
		}
	}
	isNew := s.draft.Person(s.name, "name") == ""
	if !isNew {
		s.kept("%s stands in %s", s.name, s.short(s.file))
	}
	if err := s.zone(ctx); err != nil {
		return err
	}
	taken := slices.ContainsFunc(s.cfg.People, func(p config.Person) bool { return p.User == account })
	if isNew && account != "" && !taken {
		s.draft.SetPerson(s.name, "user", account, "this account is "+s.name+"'s: daycared inbox answers here, too")
	}
	return s.route()
}

func (s *steps) zone(ctx context.Context) error {
	if zone := s.draft.Person(s.name, "timezone"); zone != "" {
		s.kept("deadlines are told in the time of %s", zone)
		return nil
	}
	for {
		zone, err := s.talk.ask(ctx, "  time zone", machineZone(s.cli.env("TZ")))
		if err != nil {
			return err
		}
		if !config.IsZone(zone) {
			s.talk.say("  There is no time zone %q; they are called as in Europe/Berlin.", zone)
			continue
		}
		s.draft.SetPerson(s.name, "timezone", zone, "deadlines are told in it")
		return nil
	}
}

// route adds a route to the person who answers, if no route names them.
func (s *steps) route() error {
	asked := func(r config.Route) bool {
		return slices.Contains(r.Ask, s.name) || slices.Contains(r.Escalate.To, s.name)
	}
	switch {
	case slices.ContainsFunc(s.cfg.Routes, asked):
		s.kept("a route asks %s", s.name)
	case len(s.cfg.Routes) == 0:
		s.draft.Ask(s.name, "everything is put to "+s.name)
	default:
		s.draft.Ask(s.name, "what no route before it matches is put to "+s.name)
	}
	if _, err := s.draft.Check(s.cli.Environ); err != nil {
		return fmt.Errorf("the configuration would not be right: %w", err)
	}
	return nil
}

// machineZone is the name of the machine's time zone, UTC if unknown.
func machineZone(variable string) string {
	if zone := strings.TrimPrefix(variable, ":"); config.IsZone(zone) {
		return zone
	}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, zone, is := strings.Cut(target, "zoneinfo/"); is && config.IsZone(zone) {
			return zone
		}
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil && config.IsZone(strings.TrimSpace(string(text))) {
		return strings.TrimSpace(string(text))
	}
	return "UTC"
}

// write is step four: it lists every change with its reason, asks for confirmation, and writes the files, each atomically: first
// the token, then the configuration that names it.
func (s *steps) write(ctx context.Context) error {
	s.printTitle("The configuration")
	edits := s.draft.Edits()
	if len(edits) > 0 && !s.running {
		if err := s.offer(ctx); err != nil {
			return err
		}
		edits = s.draft.Edits()
	}
	slices.SortStableFunc(edits, func(a, b config.Edit) int { return cmp.Compare(sectionOf(a), sectionOf(b)) })
	if len(edits) == 0 && !s.newToken {
		s.kept("everything stands in %s already; nothing is written", s.short(s.file))
		return nil
	}
	if s.running {
		return s.refuseIfRunning()
	}
	if _, err := s.draft.Check(s.cli.Environ); err != nil {
		return fmt.Errorf("the configuration would not be right: %w", err)
	}
	if len(edits) > 0 {
		s.talk.say("  %s:", s.short(s.file))
	}
	for _, e := range edits {
		was := ""
		if e.Was != "" {
			was = " (was " + e.Was + ")"
		}
		s.talk.say("    %s: %s%s\n        %s", e.Key, e.Value, was, e.Why)
	}
	if s.newToken {
		s.talk.say("  %s, which this account alone may read:\n    the token", s.short(s.tokenFile))
	}
	question, usual := "Write it?", true
	if s.draft.Exists() {
		question, usual = "Change the file? A copy of it as it is now stays beside it.", false
	}
	yes, err := s.talk.yes(ctx, question, usual)
	if err != nil {
		return err
	}
	if !yes {
		s.talk.say("Nothing was written.")
		return exitCode(permissions.ExitNo)
	}
	return s.save()
}

const whatNeedsNoQuestion = "  Which calls of agents need no question? What is high risk is asked about in any case.\n" +
	"    none    every call is asked about\n" +
	"    read    commands and tools that only read in the agent's folder, and git where it only reads, need none\n" +
	"    git     besides, git add, commit, switch and the like\n" +
	"    edits   besides, edits of files there, except those that run later: dot files, manifests, Makefiles, CI"

// offer asks for starter sets of rules where there are no rules yet, and whether commands that the sandbox holds need a question.
func (s *steps) offer(ctx context.Context) error {
	sets := []string{"builtin:read-only", "builtin:git-local", "builtin:workspace-edits"}
	words := []string{"none", "read", "git", "edits"}
	for len(s.cfg.Rules) == 0 {
		s.talk.say("%s", whatNeedsNoQuestion)
		word, err := s.talk.ask(ctx, "  which", words[0])
		if err != nil {
			return err
		}
		if chosen := slices.Index(words, strings.ToLower(word)); chosen >= 0 {
			s.draft.Use(sets[:chosen], "what it allows runs without a question; daycared suggest proposes more later")
			break
		}
		s.talk.say("  Type none, read, git or edits.")
	}
	if len(s.cfg.Agents) == 0 || s.cfg.Sandboxed || !s.cfg.Sandbox {
		return nil
	}
	yes, err := s.talk.yes(ctx,
		"Run commands of daycared's own agents without a question where the sandbox keeps them in their workspace?", false)
	if err == nil && yes {
		s.draft.Set("sandboxed", "allow", "the kernel holds what such a command can do")
	}
	return err
}

// sectionOf is the position of an edit's section in the file: people, routes, the rest.
func sectionOf(e config.Edit) int {
	return slices.IndexFunc([]string{"people", "routes", ""}, func(name string) bool { return strings.HasPrefix(e.Key, name) })
}

func (s *steps) save() error {
	text, err := s.draft.Text()
	if err != nil {
		return err
	}
	for _, file := range []string{s.file, s.tokenFile} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("make the folder of %s: %w", file, permissions.Cause(err))
		}
	}
	mode := os.FileMode(0o600)
	if s.draft.Exists() && len(s.draft.Edits()) > 0 {
		info, err := os.Stat(s.file)
		if err != nil {
			return fmt.Errorf("look at the configuration: %w", err)
		}
		mode = info.Mode().Perm()
		old, err := os.ReadFile(s.file)
		if err != nil {
			return fmt.Errorf("read the configuration: %w", err)
		}
		backup := s.file + "." + time.Now().Format("20060102-150405") + ".bak"
		if err := writeWhole(backup, old, mode); err != nil {
			return err
		}
		s.talk.say("  the file as it was: %s", s.short(backup))
	}
	if s.newToken {
		if err := writeWhole(s.tokenFile, []byte(string(s.token)+"\n"), 0o600); err != nil {
			return err
		}
	}
	if len(s.draft.Edits()) > 0 {
		if err := writeWhole(s.file, text, mode); err != nil {
			return err
		}
	}
	s.written = true
	s.talk.say("  written.")
	return nil
}

// unit is a user service for systemd.
const unit = `[Unit]
Description=daycared: people answer for their AI agents
StartLimitIntervalSec=0

[Service]
ExecStart=%s serve --config %s
Restart=always
RestartSec=2

[Install]
WantedBy=default.target
`

// plist is an agent of launchd.
const plist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>daycared</string>
  <key>ProgramArguments</key>
  <array><string>%s</string><string>serve</string><string>--config</string><string>%s</string></array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><true/>
</dict>
</plist>
`

// service offers to write a file that runs the daemon while its user is logged in. It starts nothing.
func (s *steps) service(ctx context.Context) error {
	file, text, start := s.serviceFile()
	yes, err := false, error(nil)
	if file != "" {
		yes, err = s.talk.yes(ctx, "Write "+s.short(file)+", so that daycared runs whenever you are logged in?", false)
	}
	if err != nil {
		return err
	}
	if !yes {
		s.talk.say("The daemon of this question ends now. To run it: daycared serve --config %s", s.short(s.file))
		return nil
	}
	if old, err := os.ReadFile(file); err == nil && string(old) != text {
		if yes, err = s.talk.yes(ctx, "There is such a file already, and it is another one. Replace it?", false); err != nil || !yes {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the folder of the service: %w", err)
	}
	if err := writeWhole(file, []byte(text), 0o644); err != nil {
		return err
	}
	s.talk.say("Written. The daemon of this question ends now. To start the service: %s", start)
	return nil
}

// serviceFile returns the service file for this machine, its content, and the command that starts the service.
func (s *steps) serviceFile() (file, text, start string) {
	binary, err := os.Executable()
	home := s.cli.env("HOME")
	if err != nil || !filepath.IsAbs(home) {
		return "", "", ""
	}
	switch runtime.GOOS {
	case "linux":
		folder := s.cli.env("XDG_CONFIG_HOME")
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(home, ".config")
		}
		return filepath.Join(folder, "systemd", "user", "daycared.service"),
			fmt.Sprintf(unit, unitWord(binary), unitWord(s.file)), "systemctl --user enable --now daycared"
	case "darwin":
		file = filepath.Join(home, "Library", "LaunchAgents", "daycared.plist")
		return file, fmt.Sprintf(plist, html.EscapeString(binary), html.EscapeString(s.file)), "launchctl load -w " + file
	}
	return "", "", ""
}

// unitWord quotes a path as one word of a systemd command, and escapes systemd's special characters.
func unitWord(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(path) + `"`
}
