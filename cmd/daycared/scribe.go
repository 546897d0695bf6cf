package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// scribe is the demo's agent: one job, over an Asker, with real files and a real command. It touches nothing that it
// was not allowed to.
type scribe struct {
	asker   agents.Asker
	folder  string // scratch: site/, publish.sh
	session string
	say     func(format string, args ...any)
	ended   func(context.Context, permissions.Request) // every answer, as the agent got it
	ran     func(permissions.Request) error            // after an approved command has run
}

// errStopped ends the job because a person said so.
var errStopped = errors.New("stopped by the person")

const (
	cleanAndPublish = "rm -rf site/old && ./publish.sh"
	onlyPublish     = "./publish.sh"
)

// work does the job: write the notes, publish them, announce them, and let a person look before they go out.
func (s *scribe) work(ctx context.Context) error {
	if ok, err := s.writeNotes(ctx); !ok {
		return err
	}
	published, err := s.publish(ctx)
	if err != nil {
		return err
	}
	if err := s.announce(ctx, published); err != nil {
		return err
	}
	return s.showBeforeGoing(ctx)
}

func (s *scribe) ask(ctx context.Context, q permissions.Request) (permissions.Request, error) {
	q.Agent, q.Claimed, q.Session, q.Cwd = "scribe", true, s.session, s.folder
	r, err := s.asker.Ask(ctx, permissions.Caller{}, q)
	if err != nil {
		return r, err
	}
	s.ended(ctx, r)
	return r, nil
}

// writeNotes asks for write access to the site and, with it, writes the notes.
func (s *scribe) writeNotes(ctx context.Context) (bool, error) {
	site := filepath.Join(s.folder, "site")
	tag, err := permissions.ParseTag("@write:" + site)
	if err != nil {
		return false, err
	}
	r, err := s.ask(ctx, permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{tag}, Reason: "I need to save the notes there.",
	})
	if err != nil {
		return false, err
	}
	if r.State != permissions.Approved {
		s.say("scribe may not write, so there is nothing to publish")
		return false, nil
	}
	notes := strings.Repeat("- a change worth telling\n", 8)
	if err := os.WriteFile(filepath.Join(site, "notes.md"), []byte("# Release notes\n"+notes), 0o600); err != nil {
		return false, err
	}
	s.say("scribe wrote site/notes.md (+9)")
	return true, nil
}

// publish asks to clean up and publish; denied, it reads the reason and asks for less.
func (s *scribe) publish(ctx context.Context) (bool, error) {
	r, err := s.command(ctx, cleanAndPublish, "The old pages are in the way.")
	if err != nil || r.State == permissions.Approved {
		return r.State == permissions.Approved, err
	}
	reason := "You said no."
	if r.Comment != "" {
		s.say("scribe read your reason and asks for less:")
		reason = fmt.Sprintf("Second try, after your %q.", r.Comment)
	} else {
		s.say("scribe asks for less:")
	}
	r, err = s.command(ctx, onlyPublish, reason)
	if err == nil && r.State != permissions.Approved {
		s.say("scribe may not publish; the notes stay where they are")
	}
	return r.State == permissions.Approved, err
}

// command asks for one exact command line and runs it if what was approved is what it is about to run.
func (s *scribe) command(ctx context.Context, line, reason string) (permissions.Request, error) {
	input := fmt.Appendf(nil, `{"command":%q}`, line)
	r, err := s.ask(ctx, permissions.Request{Kind: permissions.KindTool, Tool: "run_command", Input: input, Reason: reason})
	if err != nil || r.State != permissions.Approved {
		return r, err
	}
	canonical, err := permissions.CanonicalJSON(input)
	if err != nil {
		return r, err
	}
	about := r
	about.Version, about.Input = permissions.DigestVersion, canonical
	if permissions.ComputeDigest(about) != r.Digest {
		return r, fmt.Errorf("run %s: what was approved is something else", line)
	}
	if err := runIn(ctx, s.folder, line); err != nil {
		return r, err
	}
	return r, s.ran(r)
}

// runIn runs a command line in a folder, without anything of this process's environment, in a process group of its own
// that ends with ctx.
func runIn(ctx context.Context, folder, line string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line) //nolint:gosec // the very line that a person has approved
	cmd.Dir, cmd.Env = folder, []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", line, err, out)
	}
	return nil
}

// announce asks where to announce and leaves the announcement there.
func (s *scribe) announce(ctx context.Context, published bool) error {
	if !published {
		return nil
	}
	r, err := s.ask(ctx, permissions.Request{
		Kind: permissions.KindClarification, Message: "announce where?", Choices: []string{"blog", "mail", "nowhere"},
	})
	if err != nil {
		return err
	}
	where := r.Choice()
	if where == "" || where == "nowhere" {
		return nil
	}
	return os.WriteFile(filepath.Join(s.folder, "site", "announcement-"+where+".txt"), []byte("The notes are out.\n"), 0o600)
}

// showBeforeGoing pauses until the person has looked.
func (s *scribe) showBeforeGoing(ctx context.Context) error {
	r, err := s.ask(ctx, permissions.Request{
		Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look at site/notes.md before it goes out.",
	})
	if err == nil && r.Answer == permissions.Interrupt {
		return errStopped
	}
	return err
}
