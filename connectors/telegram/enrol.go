package telegram

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
)

var _ connectors.Enroller = (*Connector)(nil)

const (
	// linkLife is how long a link enrols somebody.
	linkLife = 10 * time.Minute
	// mostWrong is how many wrong links of one account are answered before silence, until all of them are forgotten.
	mostWrong = 5
	// wrongLife is how long they are counted.
	wrongLife = 24 * time.Hour
)

// Bot is who a bot is.
type Bot struct {
	ID       int64  `json:"id"`
	Name     string `json:"first_name"`
	Username string `json:"username"`
}

// Bot asks Telegram who the bot is. The error is in words for people; it matches [ErrToken] when the token is wrong.
func (c *Connector) Bot(ctx context.Context) (Bot, error) {
	if known := c.links.self.Load(); known != nil {
		return *known, nil
	}
	var b Bot
	err := c.api.call(ctx, "getMe", nil, &b)
	switch {
	case badToken(err):
		return Bot{}, ErrToken
	case err != nil:
		return Bot{}, fmt.Errorf("Telegram does not answer: %w", err) //nolint:staticcheck // a name
	}
	c.links.self.Store(&b)
	return b, nil
}

// ErrToken is matched by the error of [Connector.Bot] about a token that Telegram does not accept.
var ErrToken = errors.New("Telegram does not accept this token") //nolint:staticcheck // a name

// Receive answers those who come by a link, and nobody else, until ctx ends: for a bot that no daemon runs yet. What
// came in meanwhile is confirmed to Telegram.
func (c *Connector) Receive(ctx context.Context) error {
	d := &desktop{Connector: c}
	p := newPoller(c.api, c.state, c.now, c.log)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return d.letters(running) })
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
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	if p.offset != 0 {
		if _, err := p.poll(last, 0); err != nil {
			c.log.Debug("the last poll was not answered", "err", err)
		}
	}
	c.api.close()
	return err
}

// startCode is what the link carried by which somebody came: /start and a word.
func startCode(m *message) (code string, is bool) {
	command, code, _ := strings.Cut(m.Text, " ")
	command, _, _ = strings.Cut(command, "@")
	private := m.From != nil && !m.From.IsBot && m.SenderChat == nil && m.Chat.Type == "private" && !m.foreign()
	code = strings.TrimSpace(code)
	return code, command == "/start" && code != "" && private
}

// arrive takes somebody who came by a link, and tells them what that did.
func (d *desktop) arrive(ctx context.Context, m *message, code string) {
	if d.links.take(code, *m.From) {
		d.aside(ctx, func(ctx context.Context) error { return d.say(ctx, m.Chat.ID, toGuest()) })
		return
	}
	if d.links.wrong(m.From.ID) {
		d.aside(ctx, func(ctx context.Context) error { return d.say(ctx, m.Chat.ID, toLate()) })
	}
}

// Invite is [connectors.Enroller].
func (c *Connector) Invite(ctx context.Context) (connectors.Invitation, error) {
	b, err := c.Bot(ctx)
	if err != nil {
		return connectors.Invitation{}, err
	}
	code, until := c.links.make()
	return connectors.Invitation{
		Code: code, Link: "https://t.me/" + b.Username + "?start=" + code, Until: until,
		How: "presses Start behind this link, on the phone that is to be asked",
	}, nil
}

// Guest is [connectors.Enroller].
func (c *Connector) Guest(ctx context.Context, code string) (connectors.Guest, error) {
	u, err := c.links.wait(ctx, code)
	if err != nil {
		return connectors.Guest{}, err
	}
	name := strings.TrimSpace(u.FirstName + " " + u.LastName)
	return connectors.Guest{Address: strconv.FormatInt(u.ID, 10), Name: name, Language: u.Language}, nil
}

// Dismiss is [connectors.Enroller].
func (c *Connector) Dismiss(code string) {
	if u, came := c.links.end(code); came {
		c.links.post(u.ID, notAdded())
	}
}

// Greet is [connectors.Enroller].
func (c *Connector) Greet(code, address, name string) {
	c.links.end(code)
	c.write(address, enrolled(c.host, name))
}

// Release is [connectors.Enroller].
func (c *Connector) Release(address, name string) { c.write(address, released(c.host, name)) }

// write tells an account something, soon.
func (c *Connector) write(address, text string) {
	if id, err := strconv.ParseInt(address, 10, 64); err == nil {
		c.links.post(id, text)
	}
}

// letters sends what accounts are to be told, until ctx ends, and what is left then.
func (c *Connector) letters(ctx context.Context) error {
	for {
		select {
		case l := <-c.links.letters:
			c.aside(ctx, func(ctx context.Context) error { return c.say(ctx, l.to, l.text) })
			continue
		default:
		}
		select {
		case l := <-c.links.letters:
			c.aside(ctx, func(ctx context.Context) error { return c.say(ctx, l.to, l.text) })
		case <-ctx.Done():
			return nil
		}
	}
}

// Address is [connectors.Enroller].
func (c *Connector) Address(p connectors.Person) string {
	if p.Telegram == 0 {
		return ""
	}
	return strconv.FormatInt(p.Telegram, 10)
}

// At is [connectors.Enroller].
func (c *Connector) At(p connectors.Person, address string) connectors.Person {
	p.Telegram, _ = strconv.ParseInt(address, 10, 64) // it was made by Guest
	return p
}

// links are the links that are out. They are safe for concurrent use.
type links struct {
	now     func() time.Time
	self    atomic.Pointer[Bot] // whose links they are; nil before Telegram was asked
	letters chan letter         // what accounts are still to be told

	mu     sync.Mutex
	out    map[string]*link
	wrongs map[int64]int // by account, since
	since  time.Time
}

// letter is a text for an account.
type letter struct {
	to   int64
	text string
}

// post has an account told something. Where nobody sends the letters, the last ones are dropped.
func (l *links) post(to int64, text string) {
	select {
	case l.letters <- letter{to, text}:
	default:
	}
}

// link is one of them.
type link struct {
	until time.Time
	guest user
	came  chan struct{} // closed when there is a guest
	ended chan struct{} // closed when it works no more
}

func newLinks(now func() time.Time) *links {
	return &links{now: now, letters: make(chan letter, 100), out: map[string]*link{}, wrongs: map[int64]int{}}
}

// make makes a link, and forgets those whose time is over.
func (l *links) make() (code string, until time.Time) {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	code = base64.RawURLEncoding.EncodeToString(secret[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	for old, i := range l.out {
		if !l.now().Before(i.until) {
			close(i.ended)
			delete(l.out, old)
		}
	}
	until = l.now().Add(linkLife)
	l.out[code] = &link{until: until, came: make(chan struct{}), ended: make(chan struct{})}
	return code, until
}

// take notes who came by a link. It works for the first, however often they press.
func (l *links) take(code string, u user) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known := l.out[code]
	switch {
	case !known, !l.now().Before(i.until):
		return false
	case i.guest.ID != 0:
		return i.guest.ID == u.ID
	}
	i.guest = u
	close(i.came)
	return true
}

// wrong counts a wrong link of an account, and tells whether it is answered.
func (l *links) wrong(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now().Sub(l.since) > wrongLife {
		clear(l.wrongs)
		l.since = l.now()
	}
	if _, known := l.wrongs[id]; !known && len(l.wrongs) >= 10000 {
		return false
	}
	l.wrongs[id]++
	return l.wrongs[id] <= mostWrong
}

// wait waits for whoever comes by a link. Who has come is told even when ctx has ended.
func (l *links) wait(ctx context.Context, code string) (user, error) {
	l.mu.Lock()
	i, known := l.out[code]
	l.mu.Unlock()
	if !known {
		return user{}, connectors.ErrNoInvitation
	}
	select {
	case <-i.came:
		return i.guest, nil
	default:
	}
	over := time.NewTimer(i.until.Sub(l.now()))
	defer over.Stop()
	select {
	case <-i.came:
		return i.guest, nil
	case <-i.ended:
	case <-over.C:
		l.end(code)
	case <-ctx.Done():
		return user{}, ctx.Err()
	}
	return user{}, connectors.ErrNoInvitation
}

// end ends a link, and tells who had come by it, if anybody.
func (l *links) end(code string) (guest user, came bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known := l.out[code]
	if !known {
		return user{}, false
	}
	delete(l.out, code)
	close(i.ended)
	return i.guest, i.guest.ID != 0
}

// toGuest answers whoever came by a link.
func toGuest() string {
	return "Thank you. The machine that showed the link is asking now whether you are the one it expects. You will be told here."
}

// toLate answers whoever came by a link that does not work.
func toLate() string {
	return "This link does not work: it was used already, its ten minutes are over, or it never was one. Nothing was " +
		"changed. Whoever runs daycared can make a new one."
}

// notAdded tells a guest that they are not who was expected.
func notAdded() string {
	return "You were not added: whoever runs daycared did not confirm it. Nothing was changed."
}

// enrolled tells somebody that they are asked from now on.
func enrolled(host, name string) string {
	return "You answer for daycared" + on(host) + " as " + visible(name) + ".\nWhat agents want to do comes here, with buttons " +
		"below it. /help says what else you can write."
}

// released tells somebody that they are asked no more.
func released(host, name string) string {
	return "You no longer answer for daycared" + on(host) + " as " + visible(name) + ". Nothing is asked here any more."
}

func on(host string) string {
	if host == "" {
		return " here"
	}
	return " on " + visible(host)
}
