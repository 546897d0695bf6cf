package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) setupCommand() *cobra.Command {
	address := ""
	cmd := &cobra.Command{
		Use: "setup",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !terminal.IsTerminal(c.In) {
				return usage("setup needs a terminal; without one, write the configuration (people, routes, connectors.telegram " +
					"with a token_file of mode 0600), start daycared serve, and run: daycared pair NAME --yes-if-id ID")
			}
			return c.setup(cmd.Context(), address)
		},
	}
	cmd.Flags().StringVar(&address, "api-url", "", "address of the Bot API (default: the configuration's, https://api.telegram.org)")
	return cmd
}

// steps runs the five steps of setup. Before the fourth it only asks, and collects the answers in the draft.
type steps struct {
	cli     *CLI
	talk    dialogue
	file    string // the configuration file, absolute
	cfg     *config.Config
	draft   *config.Draft
	address string // of the Bot API
	running bool   // a daemon runs already
	number  int    // the current step
	via     string // the channel of the first question: telegram, whatsapp or terminal
	linked  string // the WhatsApp account linked just now

	name      string // the person who answers
	token     telegram.Token
	tokenFile string
	newToken  bool // to be written
	bot       *telegram.Connector
	guest     string // the account that pressed Start; empty if none had to
	code      string // of its pairing link
	written   bool
}

func (c *CLI) setup(ctx context.Context, address string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // closing the terminal ends setup like Ctrl-C
	defer stop()
	s := &steps{cli: c, talk: dialogue{in: c.In, out: c.Out}}
	if err := s.open(ctx, address); err != nil {
		return err
	}
	err := s.play(ctx)
	if errors.Is(err, errLeft) || (err != nil && ctx.Err() != nil) {
		text := "left before the end; nothing was written"
		switch {
		case s.written:
			text = "left before the end; the configuration is written, and daycared serve runs the daemon"
		case s.linked != "":
			text = "left before the end; the configuration is not written, but daycared is a linked device of " + s.linked +
				": run setup again, or remove it on that phone (Linked devices)"
		}
		return &problem{Text: text, Code: codeEnded, Exit: permissions.ExitCancelled}
	}
	return err
}

// open finds the configuration, which must be valid if it exists, and checks whether a daemon runs.
func (s *steps) open(ctx context.Context, address string) (err error) {
	c := s.cli
	file, found := config.Find(c.configFlag, c.Environ, exists)
	if !found {
		home := c.env("HOME")
		if !filepath.IsAbs(home) {
			return usage("there is no home folder for the configuration; name a file: --config FILE")
		}
		file = filepath.Join(home, ".config", "daycared", "config.yaml")
	}
	if file, err = filepath.Abs(file); err != nil {
		return fmt.Errorf("find the configuration: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		file = resolved // a link's target is written, not the link
	}
	s.file = file
	there := ""
	if exists(file) {
		there = file
	}
	if s.cfg, err = config.Load(there, c.Environ); err != nil {
		return c.misnamed(err)
	}
	if s.draft, err = config.ReadDraft(file); err != nil {
		return err
	}
	s.address = cmp.Or(address, s.cfg.Connectors.Telegram.APIURL)
	if err := owns(s.cfg.Paths(c.UID, c.Environ).DataDir, c.UID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // the daemon could not run with it
	}
	people := c.people(s.cfg)
	defer people.Close()
	brief, done := context.WithTimeout(ctx, 2*time.Second)
	defer done()
	s.running = people.Ready(brief) == nil
	return nil
}

func (s *steps) play(ctx context.Context) (err error) {
	s.talk.say("daycared setup · five steps · Ctrl-C leaves, and no configuration is written before you say so")
	if err := s.who(ctx); err != nil {
		return err
	}
	if err := s.findChannel(ctx); err != nil {
		return err
	}
	switch s.via {
	case whatsapp.Name:
		err = s.byWhatsApp(ctx)
	case terminal.Name:
		err = s.byTerminal(ctx)
	default:
		err = s.byTelegram(ctx)
	}
	if err != nil {
		return err
	}
	return s.first(ctx)
}

// byTelegram runs steps three and four for Telegram.
func (s *steps) byTelegram(ctx context.Context) (err error) {
	receiving, hangUp := context.WithCancel(ctx)
	ended := make(chan error, 1)
	hear := func() { ended <- s.bot.Receive(receiving) }
	if s.needsPhone() {
		if s.running {
			hangUp()
			return s.inTheWay()
		}
		go hear()
	} else {
		ended <- nil
	}
	err = s.phone(ctx)
	if err == nil {
		err = s.write(ctx)
	}
	switch {
	case s.code == "":
	case err == nil && s.written:
		s.bot.Greet(s.code, s.guest, s.name)
	default:
		s.bot.Dismiss(s.code)
	}
	hangUp()
	if end := <-ended; err == nil {
		err = end
	}
	return err
}

// act prints the title of the next step.
func (s *steps) act(title string) {
	s.number++
	s.talk.say("\n%d/5  %s", s.number, title)
}

// kept prints what is already right.
func (s *steps) kept(format string, args ...any) { s.talk.say("  ✓ "+format, args...) }

// inTheWay refuses to change a running daemon's configuration.
func (s *steps) inTheWay() error {
	return errors.New("daycared is running here, and would not see what setup changes: end it with daycared stop, and run setup again " +
		"(to enrol somebody else while it runs: daycared pair NAME)")
}

// short abbreviates a path below the home folder with ~.
func (s *steps) short(path string) string {
	if rest, err := filepath.Rel(s.cli.env("HOME"), path); err == nil && filepath.IsLocal(rest) {
		return filepath.Join("~", rest)
	}
	return path
}

// writeWhole replaces a file atomically.
func writeWhole(path string, text []byte, mode os.FileMode) error {
	if err := store.WriteFile(path, text, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, permissions.Cause(err))
	}
	return nil
}
