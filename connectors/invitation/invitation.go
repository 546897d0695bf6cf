// Package invitation keeps the invitations of one channel: codes that enrol one account each, within ten minutes. Whoever
// brings a code first is its guest, and whether that is the person who was meant is for somebody to say who knows them.
// Codes are kept in memory only.
package invitation

import (
	"context"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
)

const (
	// Life is how long a code enrols somebody.
	Life = 10 * time.Minute
	// mostWrong is how many wrong codes of one account are answered before silence, until all of them are forgotten.
	mostWrong = 5
	// wrongLife is how long they are counted, and mostAccounts of how many accounts.
	wrongLife    = 24 * time.Hour
	mostAccounts = 10_000
)

// NotAdded tells a guest that they are not who was expected.
const NotAdded = "You were not added: whoever runs daycared did not confirm it. Nothing was changed."

// Released tells somebody that they are asked no more. Host and name are as the channel shows them.
func Released(host, name string) string {
	return "You no longer answer for daycared" + On(host) + " as " + name + ". Nothing is asked here any more."
}

// On says in a sentence for which machine somebody answers, as the channel shows its name; empty: this one.
func On(host string) string {
	if host == "" {
		return " here"
	}
	return " on " + host
}

// Book is the invitations that are out. It is safe for concurrent use.
type Book struct {
	now     func() time.Time
	letters chan letter

	mu     sync.Mutex
	out    map[string]*invitation
	wrongs map[string]int // by account, since
	since  time.Time
}

// invitation is one of them.
type invitation struct {
	until time.Time
	guest connectors.Guest // without an Address while nobody has come
	came  chan struct{}    // closed when there is a guest
	ended chan struct{}    // closed when it works no more
}

// letter is a text for an account.
type letter struct{ to, text string }

// NewBook makes an empty book.
func NewBook(now func() time.Time) *Book {
	return &Book{now: now, letters: make(chan letter, 100), out: map[string]*invitation{}, wrongs: map[string]int{}}
}

// Add adds an invitation, whose code nobody can guess, and forgets those whose time is over. It works before until.
func (b *Book) Add(code string) (until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for old, i := range b.out {
		if !b.now().Before(i.until) {
			close(i.ended)
			delete(b.out, old)
		}
	}
	until = b.now().Add(Life)
	b.out[code] = &invitation{until: until, came: make(chan struct{}), ended: make(chan struct{})}
	return until
}

// Take notes who brought a code. It works for the first, however often they bring it.
func (b *Book) Take(code string, g connectors.Guest) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, known := b.out[code]
	switch {
	case !known, !b.now().Before(i.until):
		return false
	case i.guest.Address != "":
		return i.guest.Address == g.Address
	}
	i.guest = g
	close(i.came)
	return true
}

// Wrong counts a wrong code of an account, and tells whether it is answered.
func (b *Book) Wrong(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now().Sub(b.since) > wrongLife {
		clear(b.wrongs)
		b.since = b.now()
	}
	if _, known := b.wrongs[address]; !known && len(b.wrongs) >= mostAccounts {
		return false
	}
	b.wrongs[address]++
	return b.wrongs[address] <= mostWrong
}

// Guest waits for whoever brings a code. Who has come is told even when ctx has ended. The error matches
// [connectors.ErrNoInvitation] when nobody can come any more.
func (b *Book) Guest(ctx context.Context, code string) (connectors.Guest, error) {
	b.mu.Lock()
	i, known := b.out[code]
	b.mu.Unlock()
	if !known {
		return connectors.Guest{}, connectors.ErrNoInvitation
	}
	select {
	case <-i.came:
		return i.guest, nil
	default:
	}
	select {
	case <-i.came:
		return i.guest, nil
	case <-i.ended:
	case <-time.After(i.until.Sub(b.now())):
		b.End(code)
	case <-ctx.Done():
		return connectors.Guest{}, ctx.Err()
	}
	return connectors.Guest{}, connectors.ErrNoInvitation
}

// End ends an invitation, and tells who had come, if anybody.
func (b *Book) End(code string) (g connectors.Guest, came bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, known := b.out[code]
	if !known {
		return connectors.Guest{}, false
	}
	delete(b.out, code)
	close(i.ended)
	return i.guest, i.guest.Address != ""
}

// Write has an account told something, soon. Where nobody sends the letters, the last ones are dropped.
func (b *Book) Write(address, text string) {
	select {
	case b.letters <- letter{address, text}:
	default:
	}
}

// Letters sends what accounts are to be told, until ctx ends, and what is left then.
func (b *Book) Letters(ctx context.Context, send func(address, text string)) error {
	for {
		select {
		case l := <-b.letters:
			send(l.to, l.text)
		case <-ctx.Done():
			for len(b.letters) > 0 {
				l := <-b.letters
				send(l.to, l.text)
			}
			return nil
		}
	}
}
