// Package telegram reaches people through a Telegram bot: cards with buttons, and free text.
//
// The Bot API library is used as a typed HTTP helper only ([api]). Its poll loop is not used, because it confirms updates
// before they are processed. Here an update is handled and stored before the next poll's offset passes it ([poller]); a
// redelivery is recognized by its key. Only the fields that are used are decoded ([update]).
//
// Rendering is pure: a prompt becomes text, entities and a keyboard ([render]). A button carries its copy's random value
// and an answer. Telegram says who pressed it, in which chat and on which message, and the daemon compares all three with
// what it sent. Identity never depends on a name that can change hands.
//
// Text that is not an answer goes to the person's own agent. What the agent says comes back through [Connector.SendMessage], with
// the lowest priority.
//
// The bot's token is part of every Bot API URL. Errors never contain it, and the library's own logger is silenced.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Name identifies this connector in copies, decided_via and the configuration.
const Name = "telegram"

// Options configure a [Connector].
type Options struct {
	Token  Token
	APIURL string // of the Bot API; empty: https://api.telegram.org
	Host   string // names the machine in texts for people; may be empty
	Now    func() time.Time
	Log    *slog.Logger
}

// Connector is one bot. It is safe for concurrent use.
type Connector struct {
	conversation.Pairing

	in    connectors.Services
	api   *api
	pace  *pace
	state *state
	now   func() time.Time
	log   *slog.Logger
	bot   int64                   // the bot's id, the first part of its token
	self  atomic.Pointer[Bot]     // nil until Telegram was asked
	lost  connectors.LostAccounts // people who have to press Start

	reportedSenders connectors.OncePerDay[int64] // unknown accounts reported to the owner
	pointed         connectors.OncePerDay[int64] // people told that commands are for private chats

	work      sync.WaitGroup // background sends: toasts, replies
	menuChats chan int64     // chats of configured people, for the menu

	dates       *lru.Cache[string, time.Time] // of cards just sent, by Telegram's clock
	lastReplies *lru.Cache[ref, string]       // the last reply to each card that cannot be edited
	textEvents  *lru.Cache[ref, string]       // the events in which people's texts came, by their messages

	stopped       atomic.Bool              // Run has returned
	files         *lru.Cache[string, bool] // documents sent whose card is not sent yet
	whole         card.FitCache
	groups        groupChecks
	firstSteps    *lru.Cache[firstStep, time.Time] // when the first steps of two were taken
	boards        *lru.Cache[ref, *boards]         // whose buttons change
	steps         *lru.Cache[ref, press]           // what was pressed last on cards that do not have their first buttons
	replacedCards *lru.Cache[replacedCard, ref]    // cards that are about to be sent again
	listGrowth    *lru.Cache[ref, time.Time]       // when lists took more requests
	reactionChats *lru.Cache[int64, bool]          // chats from which a reaction was received
	gaps          sync.Mutex                       // held until olds has the cards of a gap
}

var (
	_ connectors.Chat         = (*Connector)(nil)
	_ connectors.GroupChannel = (*Connector)(nil)
	_ connectors.BurstSender  = (*Connector)(nil)
)

// New makes a connector that hands what people do to in. It performs no I/O.
func New(o Options, in connectors.Services) *Connector {
	c := &Connector{
		in:  in,
		api: newAPI(o.Token, o.APIURL, o.Log), pace: newPace(), state: newState(o.Now), now: o.Now, log: o.Log,
		Pairing: conversation.Pairing{
			Invitations: connectors.NewInvitations(o.Now), Host: o.Host, Welcome: welcome, Shown: visible,
		},
		files: connectors.NewLRU[string, bool](maxFiles), textEvents: connectors.NewLRU[ref, string](maxEnds),
		menuChats: make(chan int64, 100), lastReplies: connectors.NewLRU[ref, string](maxEnds),
		dates:      connectors.NewLRU[string, time.Time](maxEnds),
		groups:     groupChecks{look: timing.NewSignal(), wrong: map[string]string{}},
		firstSteps: connectors.NewLRU[firstStep, time.Time](maxFirsts), replacedCards: connectors.NewLRU[replacedCard, ref](maxOlds),
		boards: connectors.NewLRU[ref, *boards](maxFirsts), steps: connectors.NewLRU[ref, press](maxFirsts),
		listGrowth: connectors.NewLRU[ref, time.Time](maxEnds), reactionChats: connectors.NewLRU[int64, bool](maxEnds),
	}
	c.bot = botOf(o.Token)
	return c
}

func botOf(token Token) int64 {
	digits, _, _ := strings.Cut(string(token), ":")
	id, _ := strconv.ParseInt(digits, 10, 64)
	return id
}

// Renew replaces the bot's token while it runs. It is an error if the token belongs to another bot.
func (c *Connector) Renew(token Token) error {
	if botOf(token) != c.bot {
		return errors.New("the token belongs to another bot: restart daycared to use it")
	}
	c.api.renew(token)
	return nil
}

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Health is [connectors.HealthChecker].
func (c *Connector) Health() error {
	return cmp.Or(c.state.Health(), c.groups.health())
}

// ReceivedUntil is [connectors.ReceiptTracker].
func (c *Connector) ReceivedUntil(stops bool) time.Time { return c.state.receivedUntil(stops) }

// Reach reports whether a person can be reached: with a Telegram account, unless Telegram refused earlier messages for good.
func (c *Connector) Reach(p connectors.Person) error {
	if p.Addresses[Name] == "" {
		return &connectors.UnreachableError{Reason: p.Name + " has no Telegram account here"}
	}
	return c.lost.Reach(p.Addresses[Name], p, c.now())
}

// stopTime limits how long a stop spends on marking cards and finishing what is being sent.
const stopTime = 700 * time.Millisecond

// Run serves until ctx ends; it is called once. It refreshes the cards that say that the daemon is not running, then hands
// on what people do. Nothing is sent after it returns.
func (c *Connector) Run(ctx context.Context) error {
	d := newHandler(c)
	poller := newPoller(c.api, c.state, c.now, c.log)
	group, running := errgroup.WithContext(ctx)
	if poller.before = c.in.Downtime(); poller.before <= tapLife { // otherwise the first answered poll reports the gap
		group.Go(func() error { // refreshes the cards that a short stop left behind
			tries := wire.NewBackoff(time.Second, time.Minute)
			for running.Err() == nil {
				_, err := d.in.Refresh(running, Name)
				if err == nil {
					break
				}
				d.log.Warn("refresh cards: retrying", "err", err)
				_ = timing.Pause(running, tries.NextBackOff()) // the loop checks ctx
			}
			return nil
		})
	}
	group.Go(func() error { return poller.run(running, d.update, d.gap) })
	group.Go(func() error { return d.menus(running) })
	group.Go(func() error { return d.sendQueued(running) })
	group.Go(func() error { return d.inspect(running) })
	err := group.Wait()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	d.end(last)
	c.work.Wait()
	c.stopped.Store(true)
	c.api.close()
	return err
}

// Send shows a request in the person's chat or a group: first a document with what does not fit, then the card.
func (c *Connector) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	at, err := c.spotOf(p.To, p.Group)
	if err != nil {
		return "", err
	}
	chat, was := at.chat, p.Request.Revision
	out := show(p, c.now())
	c.whole.Note(p.Request.ID, !out.TooBig)
	if name := string(p.Request.ID) + "/" + strconv.FormatInt(chat, 10); out.Document != nil && !c.files.Contains(name) {
		if p, err = c.due(ctx, chat, p, false); err != nil {
			return "", c.sendError(at, p.To, err)
		}
		params := at.into(map[string]any{"disable_notification": true, "caption": clipTo(out.Document.Caption, maxCaption)})
		body := file{Field: "document", Name: out.Document.Name, Body: out.Document.Body}
		err := c.api.upload(ctx, "sendDocument", params, body, nil)
		c.pace.noteResult(chat, err)
		if isRefusedContent(err) {
			return "", &connectors.UnreachableError{Reason: "Telegram does not take the file that the card needs: " + err.Error()}
		}
		if err != nil {
			return "", c.sendError(at, p.To, err)
		}
		c.files.Add(name, true)
		defer c.files.Remove(name)
	}
	if p, err = c.due(ctx, chat, p, true); err != nil {
		return "", c.sendError(at, p.To, err)
	}
	if p.Request.Revision != was {
		out = show(p, c.now())
	}
	params := at.into(out.params())
	params["disable_notification"] = out.Silent
	if list, err := parseRef(p.Burst); err == nil && list.chat == chat {
		params["reply_parameters"] = replyTo(list.message)
	}
	name, err := c.post(ctx, at, params)
	if err != nil {
		return "", c.sendError(at, p.To, err)
	}
	c.pointToNew(ctx, p, chat)
	return name.String(), nil
}

// post sends a card or a list whose turn it is, and remembers when.
func (c *Connector) post(ctx context.Context, at spot, params map[string]any) (ref, error) {
	var sent message
	err := c.api.call(ctx, "sendMessage", params, &sent)
	c.pace.noteResult(at.chat, err)
	name := ref{at.chat, sent.ID}
	if err == nil {
		c.dates.Add(name.String(), time.Unix(sent.Date, 0))
	}
	return name, err
}

// SendBurst is [connectors.BurstSender].
func (c *Connector) SendBurst(ctx context.Context, b connectors.Burst) (string, error) {
	at, err := c.spotOf(b.To, "")
	if err != nil {
		return "", err
	}
	if err := c.turn(ctx, at.chat, cards); err != nil {
		return "", c.sendError(at, b.To, err)
	}
	b.Begin()
	out := c.listed(b, "")
	params := at.into(out.params())
	params["disable_notification"] = out.Silent
	name, err := c.post(ctx, at, params)
	if err != nil {
		return "", c.sendError(at, b.To, err)
	}
	c.listGrowth.Add(name, c.now())
	return name.String(), nil
}

// EditBurst is [connectors.BurstSender].
func (c *Connector) EditBurst(ctx context.Context, name string, b connectors.Burst) error {
	at, err := parseRef(name)
	if err != nil {
		return &connectors.UnreachableError{Reason: err.Error()}
	}
	out := c.listed(b, "")
	if len(b.Items) > 0 && b.Items[0].Locked {
		out = c.listed(b, b.To.Language.Text(lockedOut))
	}
	if b.To.Addresses[Name] != "" && chatWith(b.To) != at.chat {
		out = ourText(askedElsewhere(b.To.Name, b.To.Language), noKeys())
		c.inBackground(ctx, func(ctx context.Context) error { return c.put(ctx, at, out) })
		return connectors.ErrResend
	}
	part := edits
	if b.Joined > 0 { // it is how they are shown first
		part = cards
		c.listGrowth.Add(at, c.now())
	}
	b.Begin()
	var edited struct {
		Date int64 `json:"edit_date"`
	}
	err = c.writeIfRoom(ctx, at.chat, part, "editMessageText", inPlace(at, out), &edited)
	if b.Joined > 0 && err == nil {
		c.listGrowth.Add(at, c.now())
		c.dates.Add(name, time.Unix(edited.Date, 0))
	}
	switch {
	case err == nil, notModified(err):
		return nil
	case cannotEdit(err) && (b.Joined > 0 || b.Untitled()):
		return connectors.ErrResend
	case cannotEdit(err):
		return nil
	}
	return c.sendError(spot{chat: at.chat}, b.To, err)
}

// due waits for the turn of a card, or of its file before it.
func (c *Connector) due(ctx context.Context, chat int64, p connectors.Prompt, begins bool) (connectors.Prompt, error) {
	if err := c.turn(ctx, chat, cards); err != nil {
		return p, err
	}
	return p.Refreshed(ctx, begins)
}

// SentTime is [connectors.MessageDater].
func (c *Connector) SentTime(name string) time.Time {
	at, _ := c.dates.Get(name)
	c.dates.Remove(name)
	return at
}

// Fits is [connectors.FitChecker].
func (c *Connector) Fits(p connectors.Prompt) bool {
	return c.whole.Fits(p, tooBig)
}

// SentTo is [connectors.AddressChecker].
func (c *Connector) SentTo(name string, p connectors.Person) bool {
	at, err := parseRef(name)
	return err == nil && p.Addresses[Name] != "" && chatWith(p) == at.chat
}

// Edit updates a card. If Telegram does not let the card be edited any more, a reply says how the request ended. The error
// is [connectors.ErrResend] if the card's group has moved, if a pending card was deleted in a group, if the person has
// another account now, or if it showed no more than the title and needs a file or cannot be edited.
func (c *Connector) Edit(ctx context.Context, name string, p connectors.Prompt) error {
	r, err := parseRef(name)
	if err != nil {
		return &connectors.UnreachableError{Reason: err.Error()}
	}
	at := spot{chat: r.chat}
	if p.Group != "" {
		if at, err = parsePlace(p.Group); err != nil || at.chat != r.chat {
			return connectors.ErrResend
		}
	}
	if p.Request.State != permissions.Pending {
		c.replacedCards.Remove(replacedCard{p.Request.ID, r.chat}) // it is not sent again
	}
	if p.Group == "" && p.Request.State == permissions.Pending && p.To.Addresses[Name] != "" && chatWith(p.To) != r.chat {
		c.inBackground(ctx, func(ctx context.Context) error {
			return c.put(ctx, r, renderWithLead(p, askedElsewhere(p.To.Name, p.To.Language)))
		})
		return connectors.ErrResend
	}
	if p.Untitled && p.Request.State == permissions.Pending && fit(p).Document != nil {
		c.gaps.Lock()
		c.replacedCards.Add(replacedCard{p.Request.ID, r.chat}, r)
		c.gaps.Unlock()
		return connectors.ErrResend
	}
	err = c.redrawAt(ctx, r, p)
	switch {
	case err == nil, notModified(err):
		return nil
	case cannotEdit(err) && p.Request.State != permissions.Pending:
		o := card.Options{Location: p.To.Location, Language: p.To.Language}
		if p.Group == "" {
			o.Self = p.To.Name
		}
		err = c.replyOutcome(ctx, r, at, p.Code+" · "+card.Outcome(p.Request, o).Text)
		return c.sendError(at, p.To, err)
	case cannotEdit(err) && (at.chat < 0 || p.Untitled):
		return connectors.ErrResend
	case cannotEdit(err):
		return nil
	}
	return c.sendError(at, p.To, err)
}

// redrawAt edits one message about p to the card, with the buttons of the step that it is at, or to a pointer to the newer card.
func (c *Connector) redrawAt(ctx context.Context, at ref, p connectors.Prompt) error {
	for {
		out, step := edit(p, c.now()), press{}
		if p.Ref != "" && p.Ref != at.String() && p.Request.State == permissions.Pending {
			out = renderWithLead(p, shownAgain(p.Code, p.To.Language))
		} else {
			step, _ = c.steps.Peek(at)
			out.Keyboard = keysAt(p, out, step)
		}
		err := c.put(ctx, at, out)
		if now, _ := c.steps.Peek(at); err != nil && !notModified(err) || len(out.Keyboard.Rows) == 0 || now == step {
			return err
		}
	}
}

// How much is remembered: of cards, documents, first steps, and cards to be sent again.
const (
	maxEnds, maxFiles, maxFirsts = 1000, 1000, 1000
	maxOlds                      = 100_000
)

// replyOutcome replies to a card that cannot be edited, once for each outcome.
func (c *Connector) replyOutcome(ctx context.Context, r ref, at spot, text string) error {
	if known, _ := c.lastReplies.Get(r); known == text {
		return nil
	}
	params := at.into(ourText(text, noKeys()).params())
	params["reply_parameters"] = replyTo(r.message)
	if err := c.writeIfRoom(ctx, at.chat, edits, "sendMessage", params, nil); err != nil {
		return err
	}
	c.lastReplies.Add(r, text)
	return nil
}

// Notify sends a notice. A reminder replies to the newest of its cards.
func (c *Connector) Notify(ctx context.Context, n connectors.Notice) error {
	at, err := c.spotOf(n.To, n.Group)
	if err != nil {
		return err
	}
	out := renderNotice(n, c.now())
	if out.Text == "" {
		return nil
	}
	params := at.into(out.params())
	params["disable_notification"] = n.Silent
	for _, p := range n.Waiting {
		if r, err := parseRef(p.Ref); err == nil && r.chat == at.chat {
			params["reply_parameters"] = replyTo(r.message)
		}
	}
	if err := c.writeIfRoom(ctx, at.chat, edits, "sendMessage", params, nil); err != nil {
		return c.sendError(at, n.To, err)
	}
	return nil
}

// writeIfRoom makes one call that writes into a chat, if that leaves room for more urgent ones; else the error says when to retry.
func (c *Connector) writeIfRoom(ctx context.Context, chat int64, part int, method string, params map[string]any, result any) error {
	if after := c.pace.tryTurn(chat, part); after > 0 {
		return fmt.Errorf("%w: %w", errTurn, &pausedError{after})
	}
	if c.stopped.Load() {
		return errStopped
	}
	err := c.api.call(ctx, method, params, result)
	c.pace.noteResult(chat, err)
	return err
}

// turnTime limits the wait for a turn; after that the engine retries. A group has a turn every 5.5 seconds.
const turnTime = 10 * time.Second

var (
	errTurn    = errors.New("too many messages to this chat")
	errStopped = errors.New("the telegram connector has stopped")
)

// turn waits for a turn in a chat (see [pace.wait]). It fails at once while Telegram asks for a pause.
func (c *Connector) turn(ctx context.Context, chat int64, part int) error {
	if left := c.pace.paused(chat); left > 0 {
		return fmt.Errorf("%w: %w", errTurn, &pausedError{left})
	}
	brief, done := context.WithTimeout(ctx, turnTime)
	defer done()
	if err := c.pace.wait(brief, chat, part); err != nil {
		return fmt.Errorf("%w: %w", errTurn, err)
	}
	if c.stopped.Load() {
		return errStopped
	}
	return nil
}

// reply sends a text of ours, with names marked, as a reply to a message.
func (c *Connector) reply(ctx context.Context, to ref, text string, k keyboard, sent any) error {
	params := ourText(text, k).params()
	params["chat_id"], params["reply_parameters"] = to.chat, replyTo(to.message)
	return c.writeIfRoom(ctx, to.chat, replies, "sendMessage", params, sent)
}

// noteLost records that a person cannot be written to, if that is what why says, and adds what they have to do.
func (c *Connector) noteLost(p connectors.Person, why string) string {
	switch rest := strings.TrimPrefix(why, p.Name+" "); rest {
	case hasBlocked:
		why += " since {since}; " + p.Name + " has to press Start"
	case neverStarted:
		why += "; " + p.Name + " has to open the bot and press Start"
	case noAccount:
	default:
		return why
	}
	account := p.Addresses[Name]
	c.lost.Note(account, why, c.now())
	if err := c.lost.Reach(account, p, c.now()); err != nil {
		why = err.Error()
	}
	return why
}

// sendError converts an error of sending for the engine: permanent with a reason for people, or temporary.
func (c *Connector) sendError(at spot, p connectors.Person, err error) error {
	why, gone := goneFor(err, p.Name)
	if gone && at.chat == chatWith(p) {
		why = c.noteLost(p, why)
	}
	if at.chat < 0 {
		if to, moved := migrated(err); moved {
			return &connectors.GroupRenamedError{Now: Place(to, at.thread)}
		}
		if why, gone = goneIn(err); gone {
			c.groups.look.Notify() // other requests may be pending in that group
		}
	}
	if gone {
		return &connectors.UnreachableError{Reason: why}
	}
	return err
}

// maxEntities limits the entities of a message; Telegram drops the rest.
const maxEntities = 100

// SendMessage is [connectors.MessageSender]. It never delays a card.
func (c *Connector) SendMessage(ctx context.Context, s connectors.AgentMessage) (name string, more bool, err error) {
	if err := c.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: maxText, Unit: card.UTF16, Code: maxEntities})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	chat := chatWith(s.To)
	params := renderMessage(parts[s.Part]).params()
	params["chat_id"], params["disable_notification"] = chat, s.Silent
	brief, done := context.WithTimeout(ctx, turnTime)
	defer done()
	if err := c.pace.awaitRoom(brief, chat); err != nil {
		return "", false, fmt.Errorf("%w: %w", errTurn, err)
	}
	var sent message
	err = c.sendPart(ctx, chat, params, &sent)
	if _, formatted := params["entities"]; formatted && isRefusedContent(err) { // send the text without formatting
		delete(params, "entities")
		err = c.sendPart(ctx, chat, params, &sent)
	}
	if isRefusedContent(err) { // the rest of the text does not wait for it
		return "", false, &connectors.UnreachableError{Reason: "Telegram does not take it"}
	}
	if err != nil {
		return "", false, c.sendError(spot{chat: chat}, s.To, err)
	}
	return ref{chat, sent.ID}.String(), s.Part+1 < len(parts), nil
}

func (c *Connector) sendPart(ctx context.Context, chat int64, params map[string]any, sent *message) error {
	if err := c.turn(ctx, chat, 0); err != nil {
		return err
	}
	err := c.api.call(ctx, "sendMessage", params, sent)
	c.pace.noteResult(chat, err)
	return err
}

// isRefusedContent reports whether Telegram refused a call because of its content.
func isRefusedContent(err error) bool {
	refused, is := errors.AsType[*apiError](err)
	return is && (refused.Code == http.StatusBadRequest || refused.Code == http.StatusRequestEntityTooLarge) && means(err, meansUnknown)
}

// renderMessage renders an agent message.
func renderMessage(p talk.Part) outgoing {
	var spans []span
	for _, c := range p.Code {
		s := span{format: asCode, start: c.Start, end: c.End}
		if c.Block {
			s.format, s.language = asPre, c.Language
		}
		spans = append(spans, s)
	}
	return outgoing{Text: p.Text, Entities: entitiesOf(p.Text, spans)}
}

// ShowTyping is [connectors.TypingIndicator]: Telegram shows it for five seconds. It is skipped while anything else is being written.
func (c *Connector) ShowTyping(ctx context.Context, to connectors.Person) error {
	chat := chatWith(to)
	if chat == 0 || c.pace.tryTurn(chat, typing) > 0 {
		return nil
	}
	err := c.api.call(ctx, "sendChatAction", map[string]any{"chat_id": chat, "action": "typing"}, nil)
	c.pace.noteResult(chat, err)
	return err
}
