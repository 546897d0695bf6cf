package connectors

import (
	"maps"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Person is somebody who may decide, with the addresses by which channels know them.
type Person struct {
	Name     string
	User     string // OS account
	UID      int    // of User; permissions.NoUID without one
	Telegram int64
	WhatsApp string // E.164
	// WhatsAppLID is what WhatsApp called the account of that number besides when it was enrolled; empty where it was not.
	WhatsAppLID string
	// Suspended are the channels at which their account may be somebody else's by now: they have no address there.
	Suspended []string
	// Unconfirmed are those of Suspended that they were paired with before the store was restored, which the operator has to
	// confirm.
	Unconfirmed []string
	// Locked is the name under which the person is locked, mostly their own: nothing that comes from their accounts counts,
	// and nothing is sent there. Empty: they are not.
	Locked   string
	Location *time.Location
	Quiet    Hours // when they are not to be disturbed, in Location
	// PhoneAfter is how long what an agent's hook asks is kept from their phone: who sits at that agent answers there.
	PhoneAfter time.Duration
	Via        []string // the channels to try, in this order, the next when one fails; empty: the daemon's order
}

// NewMemory remembers values of so many keys at most: of more, what was not looked for longest is forgotten. It is safe for
// concurrent use.
func NewMemory[K comparable, V any](most int) *lru.Cache[K, V] {
	memory, _ := lru.New[K, V](most) // it fails for none at most
	return memory
}

// mostDaily is how much is remembered that was done within a day; nothing more is done meanwhile.
const mostDaily = 10_000

// Daily is what is done once a day. It is safe for concurrent use, and the zero Daily has done nothing.
type Daily[K comparable] struct {
	mu   sync.Mutex
	done map[K]time.Time
}

// Once does what the key names, unless that was done within a day, and reports whether it did. After an error it may be
// done again at once.
func (d *Daily[K]) Once(key K, now time.Time, do func() error) (bool, error) {
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

func (d *Daily[K]) begin(key K, now time.Time) bool {
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

// Lost are the accounts of a channel to which nothing can be written until their people do something, by the channel's own
// name for each. It is safe for concurrent use, and the zero Lost has none.
type Lost struct {
	mu  sync.Mutex
	all map[string]loss
}

type loss struct {
	why   string
	since time.Time
}

// sinceThen stands for a time in the words of [Lost.Note].
const sinceThen = "{since}"

// Note keeps an account, with why in words, where {since} stands for the time; one that is there already stays as it is.
func (l *Lost) Note(account, why string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.all[account]; known {
		return
	}
	if l.all == nil {
		l.all = map[string]loss{}
	}
	l.all[account] = loss{why, now}
}

// Found forgets an account, and tells of it if it was there. After an error it is there again.
func (l *Lost) Found(account string, tell func() error) error {
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

// Reach is nil, or why nothing reaches p, whose account that is, with times as p has them.
func (l *Lost) Reach(account string, p Person, now time.Time) error {
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
	return &Gone{Why: strings.ReplaceAll(is.why, sinceThen, since.Format(form)), Lost: true}
}

// Hours are a span of every day, from one minute of the day up to another; it may go past midnight. The zero Hours are
// none.
type Hours struct{ From, To int }

// Hold tells whether t, in its own location, lies within.
func (h Hours) Hold(t time.Time) bool {
	now := t.Hour()*60 + t.Minute()
	if h.From <= h.To {
		return h.From <= now && now < h.To
	}
	return now >= h.From || now < h.To
}

// Contact is how one channel stands just now, and whom it reaches.
type Contact struct {
	Channel string
	Screen  bool  // see [Screen]
	Health  error // what is wrong with the channel as a whole, as far as it knows; nil: nothing
	// People are all who may be asked, by name: nil for somebody whom the channel can reach just now, else why it cannot.
	People map[string]error
	// Suspended are the people whose account at this channel decides nothing, each with why, and what to do about it.
	Suspended map[string]error
}

// Reaches reports whether the channel is well and can reach that person just now.
func (c Contact) Reaches(name string) bool {
	why, known := c.People[name]
	return known && why == nil && c.Health == nil
}
