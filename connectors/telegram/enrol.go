package telegram

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions/i18n"
)

// Bot identifies a bot.
type Bot struct {
	ID       int64  `json:"id"`
	Name     string `json:"first_name"`
	Username string `json:"username"`
}

// Bot asks Telegram for the bot's identity. The error is written for people; it matches [ErrToken] if the token is wrong.
func (c *Connector) Bot(ctx context.Context) (Bot, error) {
	if known := c.self.Load(); known != nil {
		return *known, nil
	}
	var b Bot
	err := c.api.call(ctx, "getMe", nil, &b)
	switch {
	case badToken(err):
		return Bot{}, ErrToken
	case err != nil:
		return Bot{}, fmt.Errorf("Telegram does not answer: %w", err) //nolint:staticcheck // a proper name
	}
	c.self.Store(&b)
	return b, nil
}

// ErrToken is matched by the error of [Connector.Bot] about a token that Telegram does not accept.
var ErrToken = errors.New("Telegram does not accept this token") //nolint:staticcheck // a proper name

// Receive serves only accounts that use a pairing link, until ctx ends: for a bot that no daemon runs yet. All other
// updates are confirmed to Telegram and ignored.
func (c *Connector) Receive(ctx context.Context) error {
	d := &handler{Connector: c}
	p := newPoller(c.api, c.state, c.now, c.log)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return d.sendQueued(running) })
	group.Go(func() error {
		return p.run(running, func(ctx context.Context, u update) error {
			if u.Message != nil {
				if code, is := startCode(u.Message); is {
					d.arrive(ctx, u.Message, code)
				}
			}
			return nil
		}, func(context.Context, time.Duration) error { return nil })
	})
	err := group.Wait()
	c.work.Wait()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	if p.offset != 0 {
		if _, err := p.poll(last, 0); err != nil {
			c.log.Debug("confirm updates at the end", "err", err)
		}
	}
	c.api.close()
	return err
}

// startCode returns the code of the pairing link that opened the chat: /start CODE.
func startCode(m *message) (code string, is bool) {
	command, code, _ := strings.Cut(m.Text, " ")
	command, _, _ = strings.Cut(command, "@")
	private := m.From != nil && !m.From.IsBot && m.SenderChat == nil && m.Chat.Type == "private" && !m.isForeign()
	code = strings.TrimSpace(code)
	return code, command == "/start" && code != "" && private
}

// arrive takes an account that used a link, and tells it the result.
func (d *handler) arrive(ctx context.Context, m *message, code string) {
	guest := connectors.PairingCandidate{
		Address: address(m.From.ID), Name: strings.TrimSpace(m.From.FirstName + " " + m.From.LastName), Language: m.From.Language,
	}
	if d.Take(code, guest) {
		d.inBackground(ctx, func(ctx context.Context) error {
			return d.sendText(ctx, m.Chat.ID, replies, i18n.Known(m.From.Language).Text(toGuest))
		})
		return
	}
	if d.Wrong(address(m.From.ID)) && d.pace.unknownReplies.Allow() {
		d.inBackground(ctx, func(ctx context.Context) error {
			return d.sendText(ctx, m.Chat.ID, typing, i18n.Known(m.From.Language).Text(toLate))
		})
	}
}

// Invite is [connectors.Pairer].
func (c *Connector) Invite(ctx context.Context) (connectors.Invitation, error) {
	b, err := c.Bot(ctx)
	if err != nil {
		return connectors.Invitation{}, err
	}
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	code := base64.RawURLEncoding.EncodeToString(secret[:])
	return connectors.Invitation{
		Code: code, Link: "https://t.me/" + b.Username + "?start=" + code, Until: c.Add(code),
		How: "presses Start behind this link, on the phone that is to be asked",
	}, nil
}

func address(id int64) string { return strconv.FormatInt(id, 10) }

func (c *Connector) sendQueued(ctx context.Context) error {
	return c.SendQueued(ctx, func(address, text string) {
		if id, err := strconv.ParseInt(address, 10, 64); err == nil {
			c.inBackground(ctx, func(ctx context.Context) error { return c.sendText(ctx, id, replies, text) })
		}
	})
}

// chatWith is the chat with a person, whose id is theirs; 0 if they have no account here.
func chatWith(p connectors.Person) int64 {
	id, _ := strconv.ParseInt(p.Addresses[Name], 10, 64)
	return id
}

const (
	// toGuest answers an account that used a link.
	toGuest = "Thank you. The machine that showed the link is asking now whether you are the one it expects. You will be told here."
	// toLate answers an account whose link does not work.
	toLate = "This link does not work: it was used already, its ten minutes are over, or it never was one. Nothing was " +
		"changed. Whoever runs daycared can make a new one."
	welcome = "\nWhat agents want to do comes here, with buttons below it. /help says what else you can write."
)
