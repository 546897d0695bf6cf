package connectors

import (
	"context"
	"sync"
	"time"
)

const (
	invitationLife = 10 * time.Minute
	// maxWrong is how many wrong codes of one account get an answer.
	maxWrong = 5
	// wrongLife is how long wrong codes are counted, maxAccounts for how many accounts.
	wrongLife   = 24 * time.Hour
	maxAccounts = 10_000
)

// Invitations are the open invitations of one channel: codes that pair one account each, within ten minutes. The first account
// that brings a code is its candidate; somebody who knows the person has to confirm it. Codes are kept in memory only. It is
// safe for concurrent use.
type Invitations struct {
	now     func() time.Time
	letters chan queuedText

	mu     sync.Mutex
	out    map[string]*openInvitation
	wrongs map[string]int // by account, since
	since  time.Time
}

type openInvitation struct {
	until     time.Time
	candidate PairingCandidate // without an Address until an account came
	came      chan struct{}    // closed when there is a candidate
	ended     chan struct{}    // closed when it ends
}

type queuedText struct{ to, text string }

// NewInvitations makes an empty one.
func NewInvitations(now func() time.Time) *Invitations {
	return &Invitations{now: now, letters: make(chan queuedText, 100), out: map[string]*openInvitation{}, wrongs: map[string]int{}}
}

// Add adds an invitation with an unguessable code, valid before until, and removes expired ones.
func (b *Invitations) Add(code string) (until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for old, i := range b.out {
		if !b.now().Before(i.until) {
			close(i.ended)
			delete(b.out, old)
		}
	}
	until = b.now().Add(invitationLife)
	b.out[code] = &openInvitation{until: until, came: make(chan struct{}), ended: make(chan struct{})}
	return until
}

// Take records who brought a code. It succeeds for the first account, also if repeated.
func (b *Invitations) Take(code string, g PairingCandidate) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, known := b.out[code]
	switch {
	case !known, !b.now().Before(i.until):
		return false
	case i.candidate.Address != "":
		return i.candidate.Address == g.Address
	}
	i.candidate = g
	close(i.came)
	return true
}

// Wrong counts a wrong code of an account and reports whether to answer it.
func (b *Invitations) Wrong(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now().Sub(b.since) > wrongLife {
		clear(b.wrongs)
		b.since = b.now()
	}
	if _, known := b.wrongs[address]; !known && len(b.wrongs) >= maxAccounts {
		return false
	}
	b.wrongs[address]++
	return b.wrongs[address] <= maxWrong
}

// AwaitCandidate waits for the account that brings a code. A candidate is returned even if ctx has ended. The error matches
// [ErrNoInvitation] once nobody can use the code any more.
func (b *Invitations) AwaitCandidate(ctx context.Context, code string) (PairingCandidate, error) {
	b.mu.Lock()
	i, known := b.out[code]
	b.mu.Unlock()
	if !known {
		return PairingCandidate{}, ErrNoInvitation
	}
	select {
	case <-i.came:
		return i.candidate, nil
	default:
	}
	select {
	case <-i.came:
		return i.candidate, nil
	case <-i.ended:
	case <-time.After(i.until.Sub(b.now())):
		b.End(code)
	case <-ctx.Done():
		return PairingCandidate{}, ctx.Err()
	}
	return PairingCandidate{}, ErrNoInvitation
}

// End ends an invitation and returns its candidate, if any.
func (b *Invitations) End(code string) (g PairingCandidate, came bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, known := b.out[code]
	if !known {
		return PairingCandidate{}, false
	}
	delete(b.out, code)
	close(i.ended)
	return i.candidate, i.candidate.Address != ""
}

// Write queues a text for an account. If nobody sends the queue, new texts are dropped.
func (b *Invitations) Write(address, text string) {
	select {
	case b.letters <- queuedText{address, text}:
	default:
	}
}

// SendQueued sends the queued texts until ctx ends, then the rest of the queue.
func (b *Invitations) SendQueued(ctx context.Context, send func(address, text string)) error {
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
