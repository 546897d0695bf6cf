package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/permissions/timing"
)

// findChannel is step two: the bot and its token, or another channel.
func (s *steps) findChannel(ctx context.Context) error {
	s.act("The bot")
	s.via = telegram.Name
	on := s.cfg.Connectors.Telegram
	s.tokenFile = filepath.Join(filepath.Dir(s.file), "telegram.token")
	if on.TokenFile != "" {
		s.tokenFile = on.TokenFile
	}
	if token, err := s.cli.telegramToken(s.tokenFile); err == nil {
		b, err := s.meet(ctx, token)
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
		b, err := s.meet(ctx, telegram.Token(text))
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

// meet creates the bot of a token, and asks Telegram for its name.
func (s *steps) meet(ctx context.Context, token telegram.Token) (telegram.Bot, error) {
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
	s.act("The phone")
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
		yes, err := s.meetGuest(ctx, i)
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

// meetGuest waits for somebody to use the pairing link, and asks whether it is the right person.
func (s *steps) meetGuest(ctx context.Context, i connectors.Invitation) (yes bool, err error) {
	waiting, done := context.WithCancel(ctx)
	defer done()
	worried := make(chan struct{})
	go func() {
		defer close(worried)
		s.worry(waiting)
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
	return s.talk.knows(ctx, admin.Guest{Address: g.Address, Name: g.Name, Language: g.Language}, s.name, "")
}

// worry prints, once per cause, why Telegram cannot be reached while setup waits.
func (s *steps) worry(ctx context.Context) {
	for timing.Pause(ctx, 5*time.Second) == nil {
		if err := s.bot.Health(); err != nil {
			s.talk.say("  (%s)", err)
			return
		}
	}
}
