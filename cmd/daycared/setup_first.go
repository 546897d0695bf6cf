package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// firstTime is the timeout of the first card.
	firstTime = 10 * time.Minute
	// lastEdit is how long the daemon has to update the card after the question was withdrawn, before it is stopped.
	lastEdit = 2 * time.Second
)

// first is step five: a card that is really answered, from a daemon with the new configuration.
func (s *steps) first(ctx context.Context) error {
	cfg, err := config.Load(s.file, s.cli.Environ)
	if err != nil {
		return err
	}
	if s.via != whatsapp.Name {
		s.act("The first card")
	}
	if s.via == terminal.Name {
		s.inTerminal()
		s.next()
		return nil
	}
	people := s.cli.people(cfg)
	defer people.Close()
	var daemon *child
	if s.running {
		s.kept("daycared is running")
	} else {
		folder, err := os.MkdirTemp("", "daycared-setup-")
		if err != nil {
			return fmt.Errorf("make a folder for the log: %w", err)
		}
		defer os.RemoveAll(folder)
		// In a process group of its own, because Ctrl-C must reach only this process, which withdraws the question before it
		// stops the daemon.
		own := &syscall.SysProcAttr{Setpgid: true}
		daemon, err = startDaemon(ctx, s.file, s.cli.Environ, filepath.Join(folder, "daemon.log"), own, people.Ready)
		if err != nil {
			return err
		}
		defer daemon.stop()
		s.talk.say("  daycared was started, for this question.")
	}
	if s.via == whatsapp.Name {
		if err := s.pairWhatsApp(ctx, people); err != nil {
			return err
		}
		s.act("The first card")
	}
	r, err := s.put(ctx, cfg)
	if err != nil {
		return err
	}
	s.talk.say("  %s", card.Settled(r, card.Options{Now: time.Now(), Location: cfg.Zone(s.name)}))
	result := permissions.Result(r)
	if r.State != permissions.Approved && r.State != permissions.Denied {
		s.talk.say("  %s", spelled(result.Text))
		return exitCode(result.Exit)
	}
	s.talk.say("\nThat is the whole of it: an agent asks, and your answer is the result. Try it yourself, once the daemon runs:")
	s.talk.say("  daycared ask @network --reason \"fetch the docs\"")
	if !s.running {
		err = s.service(ctx)
	}
	if err == nil {
		s.next()
	}
	return err
}

// put asks the first question and prints where it was shown. If this process is ended, the question is withdrawn.
func (s *steps) put(ctx context.Context, cfg *config.Config) (permissions.Request, error) {
	q := &question{timeout: firstTime, request: permissions.Request{
		Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Agent: "daycared setup",
		Message: "daycared setup asks: did this reach you?",
	}}
	if err := s.cli.complete(q); err != nil {
		return permissions.Request{}, err
	}
	asks, err := client.New(client.Options{Socket: cfg.Paths(s.cli.UID, s.cli.Environ).AgentSocket})
	if err != nil {
		return permissions.Request{}, err
	}
	defer asks.Close()
	told := false
	asks.Progress = func(shown permissions.RequestView) {
		if !told && slices.ContainsFunc(shown.Copies, func(d permissions.Copy) bool { return d.Connector == s.via }) {
			told = true
			s.onPhone()
		}
	}
	standing, err := asks.Put(ctx, q.request)
	if ctx.Err() != nil {
		if _, err := s.cli.cancelOwn(ctx, asks, q.request.ID); err == nil {
			_ = timing.Pause(context.WithoutCancel(ctx), lastEdit) // best effort: the daemon's next start would do it
		}
		return permissions.Request{}, errLeft
	}
	if errors.Is(err, client.ErrUnreachable) {
		return permissions.Request{}, fmt.Errorf("the daemon went away: %w", err)
	}
	return standing.Request, err
}

// people returns a client of a configuration's daemon, as the person who decides.
func (c *CLI) people(cfg *config.Config) *admin.Client {
	paths := cfg.Paths(c.UID, c.Environ)
	return admin.NewClient(paths.AdminSocket, paths.AdminKey)
}
