package connectors

import (
	"maps"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Person is somebody who may decide, with their addresses in the channels.
type Person struct {
	Name     string
	User     string // OS account
	UID      int    // of User; permissions.NoUID without one
	Telegram int64
	WhatsApp string // E.164
	// WhatsAppLID is WhatsApp's other id of that account, recorded when it was paired; empty if it was not paired.
	WhatsAppLID string
	// Suspended are the channels in which their account may now belong to somebody else. They have no address there.
	Suspended []string
	// Unconfirmed are those of Suspended that were paired before the store was restored. The operator has to confirm them.
	Unconfirmed []string
	// Locked is the name under which the person is locked, usually their own; empty: they are not. Nothing from their
	// accounts counts, and nothing is sent there.
	Locked   string
	Location *time.Location
	Quiet    Hours // when they are not to be disturbed, in Location
	// PhoneAfter is how long requests of an agent's hook are kept from their phone, so that they can answer at the agent.
	PhoneAfter time.Duration
	Via        []string // the channels to try in this order; empty: the daemon's order
}

// NewLRU returns a cache of at most that many keys that drops the least recently used one. It is safe for concurrent
// use.
func NewLRU[K comparable, V any](most int) *lru.Cache[K, V] {
	memory, _ := lru.New[K, V](most) // its only error is a size of zero or less
	return memory
}

// mostDaily limits how many keys a [OncePerDay] remembers. At the limit it does nothing more until some expire.
const mostDaily = 10_000

// OncePerDay does things at most once a day for each key. It is safe for concurrent use; its zero value is ready.
type OncePerDay[K comparable] struct {
	mu   sync.Mutex
	done map[K]time.Time
}

// Do calls do unless it succeeded for key within the last 24 hours, and reports whether it succeeded now. After an error
// it may be repeated at once.
func (d *OncePerDay[K]) Do(key K, now time.Time, do func() error) (bool, error) {
	if !d.begin(key, now) {
		return false, nil
	}
	err := do()
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.done, key)
	}
	return err == nil, err
}

func (d *OncePerDay[K]) begin(key K, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.done, func(_ K, at time.Time) bool { return now.Sub(at) > 24*time.Hour })
	if _, known := d.done[key]; known || len(d.done) >= mostDaily {
		return false
	}
	if d.done == nil {
		d.done = map[K]time.Time{}
	}
	d.done[key] = now
	return true
}

// LostAccounts holds the accounts of a channel that cannot be written to until their people act, by the channel's id. It is safe
// for concurrent use; its zero value is ready.
type LostAccounts struct {
	mu  sync.Mutex
	all map[string]lostAccount
}

type lostAccount struct {
	why   string
	since time.Time
}

// sinceThen is the placeholder of the time in the words of [LostAccounts.Note].
const sinceThen = "{since}"

// Note adds an account and the reason, in which {since} is replaced by the time. A known account stays unchanged.
func (l *LostAccounts) Note(account, why string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.all[account]; known {
		return
	}
	if l.all == nil {
		l.all = map[string]lostAccount{}
	}
	l.all[account] = lostAccount{why, now}
}

// Recover removes an account and calls tell if it was present. If tell fails, the account is added again.
func (l *LostAccounts) Recover(account string, tell func() error) error {
	l.mu.Lock()
	was, known := l.all[account]
	delete(l.all, account)
	l.mu.Unlock()
	if !known {
		return nil
	}
	err := tell()
	if err != nil {
		l.Note(account, was.why, was.since)
	}
	return err
}

// Reach returns nil, or why nothing reaches account, which belongs to p. Times are in p's time zone.
func (l *LostAccounts) Reach(account string, p Person, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	is, known := l.all[account]
	if !known {
		return nil
	}
	since, today, form := is.since, now, "15:04 MST"
	if p.Location != nil {
		since, today = since.In(p.Location), today.In(p.Location)
	}
	if since.YearDay() != today.YearDay() || since.Year() != today.Year() {
		form = "2 Jan 15:04 MST"
	}
	return &UnreachableError{Reason: strings.ReplaceAll(is.why, sinceThen, since.Format(form)), Lost: true}
}

// Hours is a daily interval in minutes of the day, From inclusive and To exclusive; it may go past midnight. The zero Hours
// is empty.
type Hours struct{ From, To int }

// Hold reports whether t, in its own location, lies within.
func (h Hours) Hold(t time.Time) bool {
	now := t.Hour()*60 + t.Minute()
	if h.From <= h.To {
		return h.From <= now && now < h.To
	}
	return now >= h.From || now < h.To
}

// Contact is the current state of one channel and whom it reaches.
type Contact struct {
	Channel string
	Screen  bool  // see [Screen]
	Health  error // what is wrong with the whole channel, or nil
	// People has everybody who may be asked, by name: nil if the channel can reach them now, else the reason.
	People map[string]error
	// Suspended has the people whose account in this channel may decide nothing, with the reason and what to do.
	Suspended map[string]error
}

// Reaches reports whether the channel is healthy and can reach that person now.
func (c Contact) Reaches(name string) bool {
	why, known := c.People[name]
	return known && why == nil && c.Health == nil
}
