// Package whatsapp reaches people through WhatsApp, as a linked device of a separate account (see [Link]). Such devices
// have no buttons, so a card is a text with its code in the first line. An answer is a text, a reply to the card or a thumb
// on it, read by package reply.
//
// A message is acknowledged once the engine has stored it; otherwise it is redelivered with the next connection. The sender
// is identified by their phone number, as WhatsApp gives it. Only what came from their own device, in a chat with them
// alone and in their own words, can decide. A person whose keys have changed is suspended before the first message under
// the new keys is handled.
//
// A message's id is allocated before it is sent, so that an answer that overtakes WhatsApp's confirmation is understood and
// a retry sends the same message. Unknown accounts get no answer, and the rate limits are our own, because accounts that
// write much are banned. The [Connector] manages its connection; its health gives the account's state and what to do.
//
// The library's keys and sessions are in one file or database, which one process holds at a time. Tests run it against whatsapptest.
package whatsapp

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions/timing"
)

// Name identifies this connector in copies, decided_via and the configuration.
const Name = "whatsapp"

// Options configure a [Connector].
type Options struct {
	Path        string       // of the linked account's file
	Shared      Shared       // where the account is instead, unless that file has one; nil: there
	Number      string       // E.164: the only account that is served; empty: any
	AutoVersion bool         // when WhatsApp refuses our version, adopt its own client's
	Host        string       // names the machine in texts for people; may be empty
	HTTP        *http.Client // nil: the library's default
	Now         func() time.Time
	Log         *slog.Logger
}

// Connector is one linked account. It is safe for concurrent use.
type Connector struct {
	conversation.Pairing

	in             connectors.Services
	o              Options
	now            func() time.Time
	log            *slog.Logger
	again          time.Duration // interval of checks of an unusable account
	firstTry       time.Duration // first retry delay
	redeliveryWait time.Duration // wait for redelivery of an undecryptable message
	state          *state
	pace           *pace
	queue          *queue
	lost           connectors.LostAccounts          // people who have to write first
	client         atomic.Pointer[whatsmeow.Client] // nil while no account is held

	work sync.WaitGroup // background sends

	whole       card.FitCache
	inText      card.FitCache                 // whether something of the action is on the card
	lastReplies *lru.Cache[ref, string]       // the last reply to each card that cannot be edited
	lists       *lru.Cache[list, [2]string]   // ids and texts of lists that were not confirmed
	received    *lru.Cache[string, bool]      // our message ids that a phone has received
	done        *lru.Cache[string, bool]      // messages read, by chat and id
	unreadable  *lru.Cache[string, bool]      // ids of received messages that are not decrypted yet
	dates       *lru.Cache[string, time.Time] // WhatsApp's time of our messages, by id

	reportedSenders connectors.OncePerDay[string] // unknown accounts reported to the owner

	onReceipt *lru.Cache[string, func()] // called when a phone receives a message that is being sent, by id

	mu   sync.Mutex
	skew time.Duration // WhatsApp's clock minus ours
}

var (
	_ connectors.Chat               = (*Connector)(nil)
	_ connectors.MessageIDAllocator = (*Connector)(nil)
	_ connectors.BurstSender        = (*Connector)(nil)
)

// New makes a connector that hands what people do to in. It performs no I/O.
func New(o Options, in connectors.Services) *Connector {
	return &Connector{
		in: in, o: o, now: o.Now, log: o.Log, again: recheckEvery, firstTry: firstTry, redeliveryWait: unreadAfter,
		state: newState(o.Now), pace: newPace(), queue: &queue{turn: make(chan struct{}, 1)},
		Pairing: conversation.Pairing{
			Invitations: connectors.NewInvitations(o.Now), Host: o.Host, Welcome: welcome, Shown: card.Visible,
		},
		lastReplies: connectors.NewLRU[ref, string](maxEnds), lists: connectors.NewLRU[list, [2]string](maxEnds),
		received: connectors.NewLRU[string, bool](maxRemembered),
		done:     connectors.NewLRU[string, bool](maxRemembered), unreadable: connectors.NewLRU[string, bool](maxRemembered),
		dates:     connectors.NewLRU[string, time.Time](maxRemembered),
		onReceipt: connectors.NewLRU[string, func()](maxRemembered),
	}
}

// unread reports whether nothing of what p wants is on its card.
func (c *Connector) unread(p connectors.Prompt) bool {
	return !c.inText.Fits(p, func(p connectors.Prompt) bool { return show(p, c.now()).hidden() })
}

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Health is [connectors.HealthChecker].
func (c *Connector) Health() error { return c.state.Health() }

// Run keeps the account connected until ctx ends and hands on what people write. It is called once.
func (c *Connector) Run(ctx context.Context) error {
	d := newHandler(c)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { // while the account is unusable, it is checked periodically
		for running.Err() == nil {
			switch e, err := d.serveDevice(running); {
			case running.Err() != nil:
			case err != nil:
				d.note(disconnect{to: isBroken, why: err.Error()})
			case e.to != isStarting:
				d.note(e)
			}
			_ = timing.Pause(running, d.again) // the loop checks ctx
		}
		return nil
	})
	group.Go(func() error {
		return d.SendQueued(running, func(number, text string) {
			as := ref{number, newID("")}
			d.inBackground(running, func(ctx context.Context) error { return d.sendText(ctx, as, escapeText(text), "", true) })
		})
	})
	err := group.Wait()
	c.work.Wait()
	return err
}

// Reach reports whether a person can be reached: they need a number, and the account has to be usable.
func (c *Connector) Reach(p connectors.Person) error {
	if slices.Contains(p.Suspended, Name) {
		return &connectors.UnreachableError{Reason: p.Name + "'s WhatsApp account has changed its keys; enrol it again: daycared pair " + p.Name +
			" --via " + Name}
	}
	if p.Addresses[Name] == "" {
		return &connectors.UnreachableError{Reason: p.Name + " has no WhatsApp number here"}
	}
	if err := c.state.whyUnusable(); err != nil {
		return err
	}
	return c.lost.Reach(p.Addresses[Name], p, c.now())
}

const maxRemembered = 10_000

// receipts records which messages phones have received.
func (c *Connector) receipts(e *events.Receipt) {
	if e.Type == types.ReceiptTypeRetry { // the phone could not read it
		return
	}
	for _, id := range e.MessageIDs {
		c.remember(id)
	}
}

// remember records that a phone has a message, which also ends the wait for WhatsApp's confirmation.
func (c *Connector) remember(id string) {
	c.received.Add(id, true)
	if there, sending := c.onReceipt.Get(id); sending {
		there()
	}
}

// read reports whether a message was read before, to send no reply twice. The store deduplicates decisions itself.
func (c *Connector) read(h incoming) bool { return c.done.Contains(h.source.Sender.User + "/" + h.id) }

func (c *Connector) noteRead(h incoming) { c.done.Add(h.source.Sender.User+"/"+h.id, true) }

// arrived reports whether a phone has confirmed a message.
func (c *Connector) arrived(id string) bool { return c.received.Contains(id) }

// Fits is [connectors.FitChecker].
func (c *Connector) Fits(p connectors.Prompt) bool {
	return c.whole.Fits(p, func(p connectors.Prompt) bool { return show(p, c.now()).TooBig })
}

// noteRestriction records the start or the end of a restriction to people who wrote first.
func (c *Connector) noteRestriction(e *events.NotifyAccountReachoutTimelock) {
	until := time.Time{}
	if e.IsActive {
		until = e.TimeEnforcementEnds.Time
		c.log.Warn("whatsapp restricts the account: it can only write to people who wrote first", "until", until)
	}
	c.state.restrict(until)
}

const maxSkew = 2 * time.Second

// clock records WhatsApp's time from its confirmation of our message.
func (c *Connector) clock(id string, theirs time.Time) {
	if theirs.IsZero() { // not given
		return
	}
	c.dates.Add(id, theirs)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skew = theirs.Sub(c.now()); c.skew.Abs() <= maxSkew { // it counts whole seconds
		c.skew = 0
	}
}

// SentTime is [connectors.MessageDater].
func (c *Connector) SentTime(name string) time.Time {
	r, _ := parseRef(name)
	at, _ := c.dates.Get(r.id)
	c.dates.Remove(r.id)
	return at
}

// theirTime converts our time to WhatsApp's clock, for cards without a confirmed time.
func (c *Connector) theirTime(ours time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ours.Add(c.skew)
}
