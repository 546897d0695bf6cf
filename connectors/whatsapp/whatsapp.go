package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/invitation"
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

	book    *invitation.Book
	letters chan letter    // what numbers are still to be told
	work    sync.WaitGroup // what is sent on the side

	mu         sync.Mutex
	ends       map[ref]string    // what replied to cards that cannot be edited
	got        map[string]bool   // ids of ours that a phone has
	under      map[string]func() // what to call when a phone has a message that is being sent, by its id
	whole      card.Whole
	done       map[string]bool // what was read, by chat and id
	unreadable map[string]bool // ids of theirs that could not be decrypted yet
	strangers  map[string]time.Time
	dates      map[string]time.Time // when WhatsApp took messages of ours, by its clock and their ids
	skew       time.Duration        // that WhatsApp's clock is ahead of ours
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
		book: invitation.NewBook(o.Now), letters: make(chan letter, 100),
		ends: map[ref]string{}, got: map[string]bool{}, under: map[string]func(){},
		done: map[string]bool{}, unreadable: map[string]bool{}, strangers: map[string]time.Time{}, dates: map[string]time.Time{},
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) >= mostRemembered {
		clear(c.got)
	}
	c.got[id] = true
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
func (c *Connector) read(h heard) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[h.source.Sender.User+"/"+h.id]
}

func (c *Connector) noteRead(h heard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.done) >= mostRemembered {
		clear(c.done)
	}
	c.done[h.source.Sender.User+"/"+h.id] = true
}

// arrived tells whether a phone has said that it has a message.
func (c *Connector) arrived(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[id]
}

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

const (
	// mostStrangers is how many strangers are remembered; the others are not listened to meanwhile.
	mostStrangers = 10_000
	// strangerEvery is how often a stranger is told of.
	strangerEvery = 24 * time.Hour
	// mostSkew is how much the clocks may differ without that being made up for.
	mostSkew = 2 * time.Second
)

// isNew tells whether a stranger has not been noted within a day, and there is room to remember that.
func (c *Connector) isNew(number string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	maps.DeleteFunc(c.strangers, func(_ string, at time.Time) bool { return now.Sub(at) > strangerEvery })
	_, known := c.strangers[number]
	if known || len(c.strangers) >= mostStrangers {
		return false
	}
	c.strangers[number] = now
	return true
}

// forgetStranger has a stranger be new again.
func (c *Connector) forgetStranger(number string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.strangers, number)
}

// clock notes what time WhatsApp has it, by what it said of the message of ours with that id.
func (c *Connector) clock(id string, theirs time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if theirs.IsZero() { // it said none
		return
	}
	if len(c.dates) >= mostRemembered {
		clear(c.dates)
	}
	c.dates[id] = theirs
	if c.skew = theirs.Sub(c.now()); c.skew.Abs() <= mostSkew { // it counts in whole seconds
		c.skew = 0
	}
}

// Dated is [connectors.Dater].
func (c *Connector) Dated(name string) time.Time {
	r, _ := parseRef(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer delete(c.dates, r.id)
	return c.dates[r.id]
}

// theirTime is a time of ours by WhatsApp's clock, for cards of which WhatsApp did not say when it took them.
func (c *Connector) theirTime(ours time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ours.Add(c.skew)
}
