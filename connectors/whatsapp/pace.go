package whatsapp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/internal/wire"
)

// The limits are our own: WhatsApp tells none, and bans accounts that write much. A burst is a card with its document,
// or the cards of a few agents at once.
const (
	numberEvery = 2 * time.Second
	numberBurst = 6
	allEvery    = time.Second
	allBurst    = 10
	mostNumbers = 1000
	// edits is one in how much of a burst edits and notices leave for cards and answers.
	edits = 3
)

// turnError is that there is no room for what can wait, and for how long not.
type turnError struct{ after time.Duration }

func (e *turnError) Error() string { return "too much is written to this number just now" }

// RetryAfter is [connectors.Later].
func (e *turnError) RetryAfter() time.Duration { return e.after }

// pace holds back what is sent. It is safe for concurrent use.
type pace struct {
	all *wire.Turns // of numbers

	mu      sync.Mutex
	numbers map[string]*rate.Limiter
	every   rate.Limit
}

func newPace() *pace {
	return &pace{all: wire.NewTurns(rate.Every(allEvery), allBurst), numbers: map[string]*rate.Limiter{}, every: rate.Every(numberEvery)}
}

// Unpace has nothing of what is sent held back any more, for tests: their WhatsApp bans nobody. It is called before Run.
func (c *Connector) Unpace() {
	c.pace.all.SetLimit(rate.Inf)
	c.pace.every = rate.Inf
}

// of is the bucket of a number. The lock is held.
func (p *pace) of(number string) *rate.Limiter {
	l := p.numbers[number]
	if l == nil {
		if len(p.numbers) >= mostNumbers {
			clear(p.numbers)
		}
		l = rate.NewLimiter(p.every, numberBurst)
		p.numbers[number] = l
	}
	return l
}

// wait returns when something may be sent to a number, or an error once ctx ends.
func (p *pace) wait(ctx context.Context, number string) error {
	p.mu.Lock()
	l := p.of(number)
	p.mu.Unlock()
	err := l.Wait(ctx)
	if err == nil {
		err = p.all.Wait(ctx, number)
	}
	if err != nil {
		return fmt.Errorf("wait to send: %w", err)
	}
	return nil
}

// room takes room for what can wait, if that leaves some for cards and answers. It does not wait: the error says until when.
func (p *pace) room(_ context.Context, number string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.of(number), time.Now()
	if after := max(wire.Room(l, edits, now), wire.Room(p.all.Limiter, edits, now)); after > 0 {
		return &turnError{after}
	}
	l.AllowN(now, 1)
	p.all.AllowN(now, 1)
	return nil
}
