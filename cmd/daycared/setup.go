package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

func (c *CLI) setupCommand() *cobra.Command {
	address := ""
	cmd := newCommand("setup", nil, func(cmd *cobra.Command, _ []string) error {
		if !terminal.IsTerminal(c.In) {
			return usage("setup needs a terminal; without one, write the configuration (people, routes, connectors.telegram " +
				"with a token_file of mode 0600), start daycared serve, and run: daycared pair NAME --yes-if-id ID")
		}
		return c.setup(cmd.Context(), address)
	})
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
	s := &steps{cli: c, talk: dialogue{in: c.In, out: c.Out}}
	if err := s.open(ctx, address); err != nil {
		return err
	}
	err := s.runSteps(ctx)
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

func (s *steps) runSteps(ctx context.Context) (err error) {
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
	case terminal.Name: // steps three and four
		s.printTitle("The phone")
		s.kept("none: %s is asked in the terminal of daycared serve", spelled(s.name))
		if !s.cfg.Connectors.Terminal.Enabled {
			s.draft.Set("connectors.terminal.enabled", true, "people are asked there")
		}
		err = s.write(ctx)
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
			return s.refuseIfRunning()
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

// printTitle prints the title of the next step.
func (s *steps) printTitle(title string) {
	s.number++
	s.talk.say("\n%d/5  %s", s.number, title)
}

func (s *steps) kept(format string, args ...any) { s.talk.say("  ✓ "+format, args...) }

// refuseIfRunning refuses to change a running daemon's configuration.
func (s *steps) refuseIfRunning() error {
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

// findChannel is step two: the bot and its token, or another channel.
func (s *steps) findChannel(ctx context.Context) error {
	s.printTitle("The bot")
	s.via = telegram.Name
	on := s.cfg.Connectors.Telegram
	s.tokenFile = filepath.Join(filepath.Dir(s.file), "telegram.token")
	if on.TokenFile != "" {
		s.tokenFile = on.TokenFile
	}
	if token, err := s.cli.telegramToken(s.tokenFile); err == nil {
		b, err := s.createBot(ctx, token)
		if err == nil {
			s.kept("@%s, whose token is in %s", b.Username, s.short(s.tokenFile))
			s.connect()
			return nil
		}
		s.talk.say("  The token in %s does not do: %s", s.short(s.tokenFile), err)
	}
	if s.cfg.Connectors.WhatsApp.Enabled && !on.Enabled {
		s.kept("no bot: people are asked on WhatsApp")
		s.via = whatsapp.Name
		return nil
	}
	s.talk.say("  In Telegram, write /newbot to @BotFather, then a name, then a username that ends in bot. BotFather answers " +
		"with a token, as in 123456789:AAE…. Whoever has it is the bot, so it is not shown here when you paste it.")
	s.talk.say("  Enter alone goes on without Telegram.")
	for {
		text, err := s.talk.secret(ctx, "  token: ")
		if err != nil {
			return err
		}
		if slices.Contains([]string{"", "none", "skip"}, strings.ToLower(text)) {
			if s.via, err = s.withoutTelegram(ctx); err != nil || s.via != telegram.Name {
				return err
			}
			continue
		}
		if !botToken.MatchString(text) {
			s.talk.say("  That is no bot token: %s.", notToken(text))
			continue
		}
		b, err := s.createBot(ctx, telegram.Token(text))
		if ctx.Err() != nil {
			return errLeft
		}
		if err != nil {
			s.talk.say("  %s. Paste it again, or another one.", err)
			continue
		}
		s.talk.say("  @%s (%s) answers.", b.Username, spelled(b.Name))
		s.newToken = true
		s.connect()
		return nil
	}
}

// createBot creates the bot of a token, and asks Telegram for its name.
func (s *steps) createBot(ctx context.Context, token telegram.Token) (telegram.Bot, error) {
	bot := newBot(token, s.address, nil, quiet())
	b, err := bot.Bot(ctx)
	if err == nil {
		s.token, s.bot = token, bot
	}
	return b, err
}

// connect enables the bot in the draft.
func (s *steps) connect() {
	s.draft.Set("connectors.telegram.enabled", true, "people are asked there")
	s.draft.Set("connectors.telegram.token_file", s.tokenFile, "the token stays out of the configuration")
	if s.address != s.cfg.Connectors.Telegram.APIURL {
		s.draft.Set("connectors.telegram.api_url", s.address, "the Bot API that you named")
	}
}

// needsPhone reports whether nobody is paired yet.
func (s *steps) needsPhone() bool { return s.draft.Person(s.name, "telegram") == "" }

// phone is step three: Start on the person's phone, and a confirmation here.
func (s *steps) phone(ctx context.Context) error {
	s.printTitle("The phone")
	if !s.needsPhone() {
		s.kept("%s answers with the account %s", s.name, s.draft.Person(s.name, "telegram"))
		return nil
	}
	for {
		i, err := s.bot.Invite(ctx)
		if err != nil {
			return err
		}
		s.talk.say("  Within ten minutes, %s %s:", spelled(s.name), i.How)
		s.talk.link(i.Link)
		yes, err := s.confirmGuest(ctx, i)
		if ctx.Err() != nil || errors.Is(err, errLeft) {
			s.bot.Dismiss(i.Code)
			return errLeft
		}
		if err == nil && yes {
			s.code = i.Code
			id, err := strconv.ParseInt(s.guest, 10, 64)
			if err == nil {
				s.draft.SetPerson(s.name, "telegram", id, "the account that pressed Start")
				_, err = s.draft.Check(s.cli.Environ)
			}
			return err
		}
		s.bot.Dismiss(i.Code)
		if err != nil {
			s.talk.say("  %s.", err)
		}
		again, err := s.talk.yes(ctx, "Nobody was added. Another link?", true)
		if err != nil {
			return err
		}
		if !again {
			return errLeft
		}
	}
}

// confirmGuest waits for somebody to use the pairing link, and asks whether it is the right person.
func (s *steps) confirmGuest(ctx context.Context, i connectors.Invitation) (yes bool, err error) {
	waiting, done := context.WithCancel(ctx)
	defer done()
	worried := make(chan struct{})
	go func() {
		defer close(worried)
		s.printConnectionProblem(waiting)
	}()
	g, err := s.bot.AwaitCandidate(ctx, i.Code)
	done()
	<-worried
	if err != nil {
		return false, err
	}
	for _, p := range s.cfg.People {
		if p.Addresses[telegram.Name] == g.Address {
			s.talk.say("The account %s is %s's already; no two people share one.", g.Address, p.Name)
			return false, nil
		}
	}
	s.guest = g.Address
	return s.talk.confirmGuest(ctx, admin.Guest{Address: g.Address, Name: g.Name, Language: g.Language}, s.name, "")
}

// printConnectionProblem prints, once per cause, why Telegram cannot be reached while setup waits.
func (s *steps) printConnectionProblem(ctx context.Context) {
	for timing.Pause(ctx, 5*time.Second) == nil {
		if err := s.bot.Health(); err != nil {
			s.talk.say("  (%s)", err)
			return
		}
	}
}

// Setup for people without Telegram.

const otherChannels = "  Without Telegram, people can be asked\n" +
	"    terminal   in the terminal where daycared serve runs\n" +
	"    whatsapp   on WhatsApp, from a number that only daycared uses. What is sent from that account itself never decides, " +
	"so your own number could not answer itself; and WhatsApp may ban the account.\n" +
	"    telegram   there after all"

// withoutTelegram asks for another channel.
func (s *steps) withoutTelegram(ctx context.Context) (via string, err error) {
	s.talk.say("%s", otherChannels)
	for {
		if via, err = s.talk.ask(ctx, "  which", terminal.Name); err != nil {
			return "", err
		}
		via = strings.ToLower(via)
		if slices.Contains([]string{telegram.Name, whatsapp.Name, terminal.Name}, via) {
			return via, nil
		}
		s.talk.say("  Type terminal, whatsapp or telegram.")
	}
}

// byWhatsApp links an account and writes the configuration; the phone is paired once the daemon of [steps.first] runs.
func (s *steps) byWhatsApp(ctx context.Context) error {
	on := s.cfg.Connectors.WhatsApp
	switch {
	case s.running && on.Enabled:
		s.kept("daycared is running, with its own WhatsApp account")
		return s.write(ctx)
	case s.running:
		return s.refuseIfRunning()
	}
	paths := s.cfg.Paths(s.cli.UID, s.cli.Environ)
	dir := paths.DataDir
	if paths.Database == "" {
		s.talk.say("  The keys of the account are kept in %s.", s.short(dir))
	} else {
		s.talk.say("  The keys of the account are kept in the database, for all daemons that use it.")
	}
	number, err := s.cli.linkAccount(ctx, paths, whatsapp.Linking{Number: on.Phone, AutoVersion: on.AutoVersion}, &linkGuide{s.talk})
	switch {
	case errors.Is(err, whatsapp.ErrLinked):
		s.kept("daycared is a linked device of %s", number)
	case err != nil:
		return notLinked(ctx, dir, number, err)
	default:
		s.linked = number
		s.talk.say("  daycared is a linked device of %s now.", number)
	}
	if !on.Enabled {
		s.draft.Set("connectors.whatsapp.enabled", true, "people are asked there")
	}
	if on.Phone != number {
		s.draft.Set("connectors.whatsapp.phone", number, "the account that was linked; no other may be")
	}
	return s.write(ctx)
}

// pairWhatsApp has the person write the first message, unless they are paired already.
func (s *steps) pairWhatsApp(ctx context.Context, people *admin.Client) error {
	s.printTitle("The phone")
	if err := s.connected(ctx, people); err != nil {
		return err
	}
	all, err := people.People(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(p admin.Person) bool { return p.Name == s.name && slices.Contains(p.Via, whatsapp.Name) }) {
		s.kept("%s answers on WhatsApp", s.name)
		return nil
	}
	for {
		err := s.cli.pair(ctx, people, s.name, whatsapp.Name, "")
		if no := exitCode(permissions.ExitNo); !errors.Is(err, no) {
			return err
		}
		again, err := s.talk.yes(ctx, "Another code?", true)
		if err != nil {
			return err
		}
		if !again {
			return errLeft
		}
	}
}

// connectTime is how long the daemon may take to connect to WhatsApp.
const connectTime = time.Minute

// connected waits until the daemon is connected to WhatsApp.
func (s *steps) connected(ctx context.Context, people *admin.Client) error {
	for late := time.Now().Add(connectTime); ; {
		all, err := people.Health(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(c admin.Channel) bool { return c.Name == whatsapp.Name })
		switch {
		case i >= 0 && all[i].OK:
			return nil
		case time.Now().Before(late):
		case i >= 0:
			return errors.New("whatsapp: " + all[i].Text)
		default:
			return errors.New("the daemon does not say how WhatsApp stands; see: daycared doctor")
		}
		if err := timing.Pause(ctx, 100*time.Millisecond); err != nil {
			return errLeft
		}
	}
}

// inTerminal is step five without a phone: a question in a second terminal.
func (s *steps) inTerminal() {
	s.talk.say("  It takes two terminals. In this one, which is then where %s is asked:", spelled(s.name))
	s.talk.say("    daycared serve --config %s", s.short(s.file))
	s.talk.say("  In another one:")
	s.talk.say("    daycared ask @network --reason \"fetch the docs\"")
	s.talk.say("  The card appears here; y and Enter allow it, n denies it.")
}

func (s *steps) next() {
	s.talk.say("\nNext, once the daemon runs, have an agent that you already run ask here, as in:\n  daycared connect claude-code --write")
}

// onPhone says that the first card has arrived, and how to answer it.
func (s *steps) onPhone() {
	how := "Press ✅ or ⛔ there."
	if s.via == whatsapp.Name {
		how = "Reply to it there: yes or no."
	}
	s.talk.say("  It is on the phone of %s. %s", spelled(s.name), how)
}

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
		s.printTitle("The first card")
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
		s.printTitle("The first card")
	}
	r, err := s.submitFirst(ctx, cfg)
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

// submitFirst asks the first question and prints where it was shown. If this process is ended, the question is withdrawn.
func (s *steps) submitFirst(ctx context.Context, cfg *config.Config) (permissions.Request, error) {
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
