// Package whatsapp asks people in WhatsApp, and hears their answers, as a linked device of an account of its own (see
// [Link]). WhatsApp has no buttons for such devices, so a card is a text with its code in the first line, and an answer is
// a text, a reply to the card or a thumb on it, read by package reply.
//
// Everything a person sends is acknowledged once the desk has stored it, and comes again with the next connection
// otherwise. Who sent it is their phone number, found by what WhatsApp says of the sender; what did not come from their own
// device, in a chat with them alone and in their own words, decides nothing. Somebody whose keys have changed is suspended
// before the message is looked at that came with the new ones.
//
// A message of ours is named before it is sent, so an answer that is faster than WhatsApp's confirmation is understood, and
// trying again sends the same one. Strangers are not answered, and the pace is our own: an account that writes much is
// banned. The [Connector] keeps its own connection, and how the account stands is told by its health, with what to do.
//
// The library's keys and sessions are in one file, which one process holds at a time. Tests run it against whatsapptest.
package whatsapp

import (
	"context"
	"errors"
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
	"github.com/daycared/daycared/connectors/invitation"
	"github.com/daycared/daycared/permissions"
)

// Name is what copies, decided_via and the configuration call this connector.
const Name = "whatsapp"

// Options are what a connector needs.
type Options struct {
	Path        string // of the linked account's file
	Number      string // E.164: the only account that is served; empty: any
	AutoVersion bool   // when WhatsApp refuses our version, take the one that its own client has
	Host        string // the machine that people answer for, in words; may be empty
	HTTP        *http.Client
	Now         func() time.Time
	Log         *slog.Logger
}

// Connector is one linked account. It is safe for concurrent use.
type Connector struct {
	path, host  string
	number      string // that alone is served; empty: any
	autoVersion bool
	http        *http.Client // nil: the library's own
	now         func() time.Time
	log         *slog.Logger
	again       time.Duration // between two looks at an account that cannot be used
	firstTry    time.Duration // before the first of several tries
	patience    time.Duration // with a message that could not be decrypted
	state       *state
	pace        *pace
	queue       *queue
	lost        connectors.Lost                  // people who have to write first
	client      atomic.Pointer[whatsmeow.Client] // nil while none is held

	book *invitation.Book
	work sync.WaitGroup // what is sent on the side

	whole      card.Whole
	ends       *lru.Cache[ref, string]       // what replied to cards that cannot be edited
	got        *lru.Cache[string, bool]      // ids of ours that a phone has
	done       *lru.Cache[string, bool]      // what was read, by chat and id
	unreadable *lru.Cache[string, bool]      // ids of theirs that could not be decrypted yet
	dates      *lru.Cache[string, time.Time] // when WhatsApp took messages of ours, by its clock and their ids

	strangers connectors.Daily[string] // those of whom the owner was told

	mu    sync.Mutex
	under map[string]func() // what to call when a phone has a message that is being sent, by its id
	skew  time.Duration     // that WhatsApp's clock is ahead of ours
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Editor    = (*Connector)(nil)
	_ connectors.Reacher   = (*Connector)(nil)
	_ connectors.Teller    = (*Connector)(nil)
	_ connectors.Wholer    = (*Connector)(nil)
	_ connectors.Namer     = (*Connector)(nil)
	_ connectors.Healther  = (*Connector)(nil)
	_ connectors.Enroller  = (*Connector)(nil)
	_ connectors.Talker    = (*Connector)(nil)
	_ connectors.Typer     = (*Connector)(nil)
	_ connectors.Dater     = (*Connector)(nil)
)

// New makes a connector. It does nothing yet.
func New(o Options) *Connector {
	return &Connector{
		path: o.Path, number: o.Number, host: o.Host, autoVersion: o.AutoVersion, http: o.HTTP, now: o.Now, log: o.Log,
		again: lookAgain, firstTry: firstTry, patience: unreadAfter,
		state: newState(o.Now), pace: newPace(), queue: newQueue(),
		book: invitation.NewBook(o.Now),
		ends: connectors.NewMemory[ref, string](mostEnds), got: connectors.NewMemory[string, bool](mostRemembered),
		done: connectors.NewMemory[string, bool](mostRemembered), unreadable: connectors.NewMemory[string, bool](mostRemembered),
		dates: connectors.NewMemory[string, time.Time](mostRemembered),
		under: map[string]func(){},
	}
}

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Health is [connectors.Healther].
func (c *Connector) Health() error { return c.state.Health() }

// Run keeps the account connected and hands what people write to h, which is also a [Desk], until ctx ends, once.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	desk, ok := h.(Desk)
	if !ok {
		return errors.New("serve whatsapp: the handler is not a desk")
	}
	d := newDesktop(c, desk)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return d.keep(running) })
	group.Go(func() error { return d.deliver(running) })
	err := group.Wait()
	c.work.Wait()
	return err
}

// Reach knows who has no number here, and when nobody can be written to at all.
func (c *Connector) Reach(p connectors.Person) error {
	if slices.Contains(p.Suspended, Name) {
		return &connectors.Gone{Why: p.Name + "'s WhatsApp account has changed its keys; enrol it again: daycared pair " + p.Name +
			" --via " + Name}
	}
	if p.WhatsApp == "" {
		return &connectors.Gone{Why: p.Name + " has no WhatsApp number here"}
	}
	if err := c.state.gone(); err != nil {
		return err
	}
	return c.lost.Reach(p.WhatsApp, p, c.now())
}

// mostRemembered bounds what is remembered of single messages.
const mostRemembered = 10_000

// receipts notes what phones say that they have.
func (c *Connector) receipts(e *events.Receipt) {
	if e.Type == types.ReceiptTypeRetry { // it could not be read there
		return
	}
	for _, id := range e.MessageIDs {
		c.remember(id)
	}
}

// remember notes that a phone has a message, which ends the waiting for WhatsApp's own word about it.
func (c *Connector) remember(id string) {
	c.got.Add(id, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if there := c.under[id]; there != nil {
		there()
	}
}

// underway notes that a message is being sent; there is called when a phone has it.
func (c *Connector) underway(id string, there func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under[id] = there
}

func (c *Connector) sent(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.under, id)
}

// read tells whether a message was read before. What it decided is known by the store as well; this is for the words
// about it, which are not said twice.
func (c *Connector) read(h heard) bool { return c.done.Contains(h.source.Sender.User + "/" + h.id) }

func (c *Connector) noteRead(h heard) { c.done.Add(h.source.Sender.User+"/"+h.id, true) }

// arrived tells whether a phone has said that it has a message.
func (c *Connector) arrived(id string) bool { return c.got.Contains(id) }

// Whole is [connectors.Wholer].
func (c *Connector) Whole(p connectors.Prompt) bool {
	return c.whole.Fits(p, func(p connectors.Prompt) bool { return show(p, c.now()).TooBig })
}

// restricted notes that WhatsApp lets the account write only to those who wrote first, or does so no longer.
func (c *Connector) restricted(e *events.NotifyAccountReachoutTimelock) {
	until := time.Time{}
	if e.IsActive {
		until = e.TimeEnforcementEnds.Time
		c.log.Warn("whatsapp restricts the account: it can only write to people who wrote first", "until", until)
	}
	c.state.restrict(until)
}

// mostSkew is how much the clocks may differ without that being made up for.
const mostSkew = 2 * time.Second

// clock notes what time WhatsApp has it, by what it said of the message of ours with that id.
func (c *Connector) clock(id string, theirs time.Time) {
	if theirs.IsZero() { // it said none
		return
	}
	c.dates.Add(id, theirs)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skew = theirs.Sub(c.now()); c.skew.Abs() <= mostSkew { // it counts in whole seconds
		c.skew = 0
	}
}

// Dated is [connectors.Dater].
func (c *Connector) Dated(name string) time.Time {
	r, _ := parseRef(name)
	at, _ := c.dates.Get(r.id)
	c.dates.Remove(r.id)
	return at
}

// theirTime is a time of ours by WhatsApp's clock, for cards of which WhatsApp did not say when it took them.
func (c *Connector) theirTime(ours time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ours.Add(c.skew)
}

// Desk is what this connector needs of the engine besides deciding. Whoever is nobody here, or asks for what is not
// theirs, gets a *permissions.Refusal.
type Desk interface {
	conversation.Desk
	// Stranger notes that an account of nobody here wrote; At is not read.
	Stranger(ctx context.Context, s permissions.Stranger) error
	// Found has a person asked again to whom nothing could be written.
	Found(ctx context.Context, via, person, place string) error
	// Suspend has an account be nobody's until it is enrolled again, since it may be somebody else's by now.
	Suspend(ctx context.Context, via, address string) error
}
