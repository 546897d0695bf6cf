// Package telegram reaches people through a Telegram bot: cards with buttons, and whatever they write.
//
// The Bot API library is a typed HTTP helper here ([api]); its poll loop, which confirms what was not processed yet, is
// not used. An update is handled, stored, and only then does the next poll's offset pass it ([poller]): what is
// delivered twice is known by its key. Only fields that are used are decoded ([update]).
//
// How a card looks is pure: a prompt becomes text, entities and a keyboard ([render]). A button carries the random
// value of its copy and an answer; who pressed it, in which chat and on which message is what Telegram says, and the
// daemon compares all three with what it sent. Nothing that identifies anybody by a name that can change hands is used.
//
// What is no answer is for an agent of the person's own, and what that says comes back through [Connector.Talk]: after
// everything else that is to be sent, and never before a card.
//
// The bot's token is in every URL of the Bot API. It leaves this package in no error, and the library's own logger is
// silent.
package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/invitation"
	"github.com/daycared/daycared/permissions"
)

// Name is what copies, decided_via and the configuration call this connector.
const Name = "telegram"

// Options are what a connector needs.
type Options struct {
	Token  Token
	APIURL string // of the Bot API, as in https://api.telegram.org
	Host   string // the machine that people answer for, in words; may be empty
	Now    func() time.Time
	Log    *slog.Logger
}

// Connector is one bot. It is safe for concurrent use.
type Connector struct {
	api   *api
	pace  *pace
	state *state
	now   func() time.Time
	log   *slog.Logger
	bot   int64 // the bot's own id, which its token begins with
	host  string
	links *links
	lost  connectors.Lost // people who have to press Start

	strangers connectors.Daily[int64] // those of whom the owner was told
	pointed   connectors.Daily[int64] // who was told that commands are for private chats

	work  sync.WaitGroup // what is sent on the side: toasts, answers
	wrote chan int64     // chats of people who are somebody here, for the menu

	dates *lru.Cache[string, time.Time] // of cards that were just sent, by Telegram's clock
	ends  *lru.Cache[ref, string]       // what replied to cards that cannot be edited

	mu      sync.Mutex
	stopped bool            // Run is over
	files   map[string]bool // documents that were sent, whose card was not yet
	whole   card.Whole
	rooms   rooms
	firsts  map[first]bool // who took the first of two steps on a card of a group
	olds    map[old]ref    // cards whose requests are to be shown again
	gaps    sync.Mutex     // held until olds has the cards of a gap
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Editor    = (*Connector)(nil)
	_ connectors.Reacher   = (*Connector)(nil)
	_ connectors.Teller    = (*Connector)(nil)
	_ connectors.Wholer    = (*Connector)(nil)
	_ connectors.Healther  = (*Connector)(nil)
	_ connectors.Hall      = (*Connector)(nil)
	_ connectors.Dater     = (*Connector)(nil)
)

// New makes a connector. It does nothing yet, so that the daemon starts without a network.
func New(o Options) *Connector {
	c := &Connector{
		api: newAPI(o.Token, o.APIURL, o.Log), pace: newPace(), state: newState(o.Now), now: o.Now, log: o.Log,
		host: o.Host, links: &links{Book: invitation.NewBook(o.Now)},
		files: map[string]bool{},
		wrote: make(chan int64, 100), ends: connectors.NewMemory[ref, string](mostEnds), dates: connectors.NewMemory[string, time.Time](mostEnds),
		rooms: newRooms(), firsts: map[first]bool{}, olds: map[old]ref{},
	}
	c.bot = botOf(o.Token)
	return c
}

// botOf is the id of the bot that a token is of.
func botOf(token Token) int64 {
	digits, _, _ := strings.Cut(string(token), ":")
	id, _ := strconv.ParseInt(digits, 10, 64)
	return id
}

// Renew has the bot use another token of its own from now on.
func (c *Connector) Renew(token Token) error {
	if botOf(token) != c.bot {
		return errors.New("the token is another bot's, which takes effect at the next start")
	}
	c.api.renew(token)
	return nil
}

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Health is [connectors.Healther].
func (c *Connector) Health() error {
	if ok, text := c.state.Health(); !ok {
		return errors.New(text)
	}
	return c.rooms.health()
}

// Heard is [connectors.Hearer].
func (c *Connector) Heard(stops bool) time.Time { return c.state.hearing(stops) }

// Reach knows who has no Telegram account here, and to whom nothing can be written, as far as that has shown.
func (c *Connector) Reach(p connectors.Person) error {
	if p.Telegram == 0 {
		return &connectors.Gone{Why: p.Name + " has no Telegram account here"}
	}
	return c.lost.Reach(strconv.FormatInt(p.Telegram, 10), p, c.now())
}

// farewell is how long a stop may take to tell the cards that the daemon does not run, and to send what was begun.
const farewell = 700 * time.Millisecond

// Run serves until ctx ends, once: it has the cards that said that the daemon did not run brought up to date, and then
// hands what people do to h, which is also a [Desk]. Nothing is sent once it is over.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	desk, ok := h.(Desk)
	if !ok {
		return errors.New("serve telegram: the handler is not a desk")
	}
	d := newDesktop(c, desk)
	poller := newPoller(c.api, c.state, c.now, c.log)
	group, running := errgroup.WithContext(ctx)
	if poller.before = desk.Away(); poller.before <= tapLife { // else it is told once there is contact
		group.Go(func() error { return d.begin(running) })
	}
	group.Go(func() error { return poller.run(running, d.update, d.gap) })
	group.Go(func() error { return d.menus(running) })
	group.Go(func() error { return d.letters(running) })
	group.Go(func() error { return d.inspect(running) })
	err := group.Wait()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	d.end(last)
	c.work.Wait()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.api.close()
	return err
}

// Send shows a request in the person's chat with the bot, or in a group: what does not fit first, as a file, and then the
// card.
func (c *Connector) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	at, err := c.spotOf(p.To, p.Place)
	if err != nil {
		return "", err
	}
	chat, was := at.chat, p.Request.Revision
	out := show(p, c.now())
	c.whole.Note(p.Request.ID, !out.TooBig)
	if name := string(p.Request.ID) + "/" + strconv.FormatInt(chat, 10); out.Document != nil && !c.sent(name) {
		if p, err = c.due(ctx, chat, p); err != nil {
			return "", c.failed(at, p.To, err)
		}
		params := at.into(map[string]any{"disable_notification": true})
		body := file{Field: "document", Name: out.Document.Name, Body: out.Document.Body}
		err := c.api.upload(ctx, "sendDocument", params, body, nil)
		c.pace.told(chat, err)
		if err != nil {
			return "", c.failed(at, p.To, err)
		}
		c.note(name, true)
		defer c.note(name, false)
	}
	if p, err = c.due(ctx, chat, p); err != nil {
		return "", c.failed(at, p.To, err)
	}
	if p.Request.Revision != was {
		out = show(p, c.now())
	}
	params := at.into(out.params())
	params["disable_notification"] = out.Silent
	var sent message
	err = c.api.call(ctx, "sendMessage", params, &sent)
	c.pace.told(chat, err)
	if err != nil {
		return "", c.failed(at, p.To, err)
	}
	name := ref{chat, sent.ID}.String()
	c.pointOn(ctx, p, chat)
	c.dates.Add(name, time.Unix(sent.Date, 0))
	return name, nil
}

// due returns a prompt as it is when it is the turn of its card.
func (c *Connector) due(ctx context.Context, chat int64, p connectors.Prompt) (connectors.Prompt, error) {
	if err := c.turn(ctx, chat, cards); err != nil {
		return p, err
	}
	return p.Now(ctx)
}

// Dated is [connectors.Dater].
func (c *Connector) Dated(name string) time.Time {
	at, _ := c.dates.Get(name)
	c.dates.Remove(name)
	return at
}

// Whole is [connectors.Wholer].
func (c *Connector) Whole(p connectors.Prompt) bool {
	return c.whole.Fits(p, tooBig)
}

// sent tells whether a file went out before, in vain: its card did not.
func (c *Connector) sent(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files[name]
}

func (c *Connector) note(name string, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits {
		c.files[name] = true
	} else {
		delete(c.files, name)
	}
}

// Edit brings a card up to date. One that cannot be edited any more gets a reply that says how the request ended; a card
// of a group that has moved, or that somebody took away there, is to be sent anew, and so is that of a person who has
// another account now.
func (c *Connector) Edit(ctx context.Context, name string, p connectors.Prompt) error {
	r, err := parseRef(name)
	if err != nil {
		return &connectors.Gone{Why: err.Error()}
	}
	at := spot{chat: r.chat}
	if p.Place != "" {
		if at, err = parsePlace(p.Place); err != nil || at.chat != r.chat {
			return connectors.ErrAnew
		}
	}
	if p.Request.State != permissions.Pending {
		c.mu.Lock()
		delete(c.olds, old{p.Request.ID, r.chat}) // it is not shown again
		c.mu.Unlock()
	}
	if p.Place == "" && p.Request.State == permissions.Pending && p.To.Telegram != 0 && p.To.Telegram != r.chat {
		c.aside(ctx, func(ctx context.Context) error { return c.put(ctx, r, face(p, askedElsewhere(p.To.Name))) })
		return connectors.ErrAnew
	}
	err = c.put(ctx, r, c.face(name, p))
	switch {
	case err == nil, notModified(err):
		return nil
	case cannotEdit(err) && p.Request.State != permissions.Pending:
		err = c.tellEnd(ctx, r, at, p.Code+" · "+card.Settled(p.Request, card.Options{Location: p.To.Location}))
		return c.failed(at, p.To, err)
	case cannotEdit(err) && at.chat < 0:
		return connectors.ErrAnew
	case cannotEdit(err):
		return nil
	}
	return c.failed(at, p.To, err)
}

// face is what a message says of a request whose card is p: that, or where the card is.
func (c *Connector) face(name string, p connectors.Prompt) outgoing {
	if p.Ref != "" && p.Ref != name && p.Request.State == permissions.Pending {
		return face(p, shownAgain(p.Code))
	}
	return edit(p, c.now())
}

// mostEnds is how many cards that could not be edited are remembered.
const mostEnds = 1000

// tellEnd replies to a card that cannot be edited, once for each end that there is to tell.
func (c *Connector) tellEnd(ctx context.Context, r ref, at spot, text string) error {
	if known, _ := c.ends.Get(r); known == text {
		return nil
	}
	params := at.into(map[string]any{
		"text": clip(card.Isolate(text)), "reply_parameters": replyTo(r.message), "link_preview_options": noPreview,
	})
	if err := c.add(ctx, at.chat, edits, "sendMessage", params); err != nil {
		return err
	}
	c.ends.Add(r, text)
	return nil
}

// Tell sends a notice; a reminder replies to the last card that it is about.
func (c *Connector) Tell(ctx context.Context, n connectors.Notice) error {
	at, err := c.spotOf(n.To, n.Place)
	if err != nil {
		return err
	}
	self := n.To.Name
	if n.Place != "" {
		self = ""
	}
	rows := card.Notice(n, card.Options{Now: c.now(), Location: n.To.Location, Self: self})
	if len(rows) == 0 {
		return nil
	}
	if n.Place != "" {
		rows = append([]string{toAnswer(n.Waiting)}, rows...)
	}
	params := at.into(map[string]any{
		"text": clip(card.Isolate(strings.Join(rows, "\n"))), "disable_notification": n.Silent, "link_preview_options": noPreview,
	})
	for _, p := range n.Waiting {
		if r, err := parseRef(p.Ref); err == nil && r.chat == at.chat {
			params["reply_parameters"] = replyTo(r.message)
		}
	}
	if err := c.add(ctx, at.chat, edits, "sendMessage", params); err != nil {
		return c.failed(at, n.To, err)
	}
	return nil
}

// add makes one call that writes into a chat, if that leaves room for what is more urgent. Else the error says when there is
// some.
func (c *Connector) add(ctx context.Context, chat int64, part int, method string, params map[string]any) error {
	if after := c.pace.room(chat, part); after > 0 {
		return fmt.Errorf("%w: %w", errTurn, &pausedError{after})
	}
	if c.over() {
		return errStopped
	}
	err := c.api.call(ctx, method, params, nil)
	c.pace.told(chat, err)
	return err
}

// turnTime bounds the wait for one's turn: what takes longer is tried again later. In a group there is one in 5.5 seconds.
const turnTime = 10 * time.Second

var (
	errTurn    = errors.New("too much is written to this chat just now")
	errStopped = errors.New("telegram is not served any more")
)

// turn waits for a turn in a chat (see [pace.wait]). Where Telegram asked for a pause it does not wait.
func (c *Connector) turn(ctx context.Context, chat int64, part int) error {
	if left := c.pace.paused(chat); left > 0 {
		return fmt.Errorf("%w: %w", errTurn, &pausedError{left})
	}
	brief, done := context.WithTimeout(ctx, turnTime)
	defer done()
	if err := c.pace.wait(brief, chat, part); err != nil {
		return fmt.Errorf("%w: %w", errTurn, err)
	}
	if c.over() {
		return errStopped
	}
	return nil
}

// over reports whether nothing is sent any more.
func (c *Connector) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// reply writes a text under a message.
func (c *Connector) reply(ctx context.Context, to ref, text string) error {
	return c.add(ctx, to.chat, replies, "sendMessage", map[string]any{
		"chat_id": to.chat, "text": clip(card.Isolate(text)), "reply_parameters": replyTo(to.message), "link_preview_options": noPreview,
	})
}

// lose notes that nothing reaches somebody, if that is why something was not sent, and says what they have to do.
func (c *Connector) lose(p connectors.Person, why string) string {
	switch rest := strings.TrimPrefix(why, p.Name+" "); rest {
	case hasBlocked:
		why += " since {since}; " + p.Name + " has to press Start"
	case neverStarted:
		why += "; " + p.Name + " has to open the bot and press Start"
	case noAccount:
	default:
		return why
	}
	account := strconv.FormatInt(p.Telegram, 10)
	c.lost.Note(account, why, c.now())
	if err := c.lost.Reach(account, p, c.now()); err != nil {
		why = err.Error()
	}
	return why
}

// failed is an error of sending as the engine is told it: for good, in words for people, or for now, and for how long
// where Telegram said so.
func (c *Connector) failed(at spot, p connectors.Person, err error) error {
	why, gone := goneFor(err, p.Name)
	if gone && at.chat == p.Telegram {
		why = c.lose(p, why)
	}
	if at.chat < 0 {
		if to, moved := migrated(err); moved {
			return &connectors.Renamed{Now: Place(to, at.thread)}
		}
		if why, gone = goneIn(err); gone {
			c.rooms.look.Ring() // others may wait there
		}
	}
	if gone {
		return &connectors.Gone{Why: why}
	}
	if after := retryAfter(err); after > 0 {
		return &laterError{err, after}
	}
	return err
}

// Desk is what this connector needs of the engine besides deciding. Whoever is nobody here, or asks for what is not
// theirs, gets a *permissions.Refusal.
type Desk interface {
	conversation.Desk
	// Stranger notes that an account of nobody here wrote; At is not read.
	Stranger(ctx context.Context, s permissions.Stranger) error
	// Look is the request that a decision would be about, without deciding.
	Look(ctx context.Context, d connectors.Decision) (connectors.Prompt, error)
	// ShowAgain has what is pending and was shown through a connector sent anew, and returns it as it was.
	ShowAgain(ctx context.Context, connector string) ([]connectors.Prompt, error)
	// Places are where several people are asked at once.
	Places(ctx context.Context) ([]connectors.Place, error)
	// Rename notes that a place goes by another name from now on, and has what waits there sent anew.
	Rename(ctx context.Context, was, now string) error
	// Lost notes that nothing can be written in a place any more, or to that person, and why: others are asked at once.
	Lost(ctx context.Context, via, person, place, why string) error
	// Found has a person asked again who was lost; with a place, what stands there is kept up to date again.
	Found(ctx context.Context, via, person, place string) error
	// Away is for how long the daemon did not run before this start.
	Away() time.Duration
	// Live is what people see through a connector of the newest pending requests, so many at most.
	Live(ctx context.Context, connector string, limit int) ([]connectors.Prompt, error)
	// Refresh has what is pending and was shown through a connector edited, and returns it.
	Refresh(ctx context.Context, connector string) ([]connectors.Prompt, error)
}
