package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

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

// byTerminal runs steps three and four if people are only asked at the daemon's own console.
func (s *steps) byTerminal(ctx context.Context) error {
	s.act("The phone")
	s.kept("none: %s is asked in the terminal of daycared serve", spelled(s.name))
	if !s.cfg.Connectors.Terminal.Enabled {
		s.draft.Set("connectors.terminal.enabled", true, "people are asked there")
	}
	return s.write(ctx)
}

// byWhatsApp links an account and writes the configuration; the phone is paired once the daemon of [steps.first] runs.
func (s *steps) byWhatsApp(ctx context.Context) error {
	on := s.cfg.Connectors.WhatsApp
	switch {
	case s.running && on.Enabled:
		s.kept("daycared is running, with its own WhatsApp account")
		return s.write(ctx)
	case s.running:
		return s.inTheWay()
	}
	dir := s.cfg.Paths(s.cli.UID, s.cli.Environ).DataDir
	s.talk.say("  The keys of the account are kept in %s.", s.short(dir))
	number, err := s.cli.linkAccount(ctx, dir, whatsapp.Linking{Number: on.Phone, AutoVersion: on.AutoVersion}, &linkGuide{s.talk})
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
	s.act("The phone")
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

// next prints what to do after setup.
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
