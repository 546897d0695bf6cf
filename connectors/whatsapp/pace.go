package whatsapp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The limits are our own: WhatsApp tells none, and bans accounts that write much. A burst is a card with its document,
// or the cards of a few agents at once.
const (
	numberEvery = 2 * time.Second
	numberBurst = 6
	allEvery    = time.Second
	allBurst    = 10
	mostNumbers = 1000
)

// pace holds back what is sent. It is safe for concurrent use.
type pace struct {
	all *rate.Limiter

	mu      sync.Mutex
	numbers map[string]*rate.Limiter
	every   rate.Limit
}

func newPace() *pace {
	return &pace{all: rate.NewLimiter(rate.Every(allEvery), allBurst), numbers: map[string]*rate.Limiter{}, every: rate.Every(numberEvery)}
}

// Unpace has nothing of what is sent held back any more, for tests: their WhatsApp bans nobody. It is called before Run.
func (c *Connector) Unpace() {
	c.pace.all.SetLimit(rate.Inf)
	c.pace.every = rate.Inf
}

// wait returns when something may be sent to a number, or an error once ctx ends.
func (p *pace) wait(ctx context.Context, number string) error {
	p.mu.Lock()
	l := p.numbers[number]
	if l == nil {
		if len(p.numbers) >= mostNumbers {
			clear(p.numbers)
		}
		l = rate.NewLimiter(p.every, numberBurst)
		p.numbers[number] = l
	}
	p.mu.Unlock()
	for _, limit := range []*rate.Limiter{l, p.all} {
		if err := limit.Wait(ctx); err != nil {
			return fmt.Errorf("wait to send: %w", err)
		}
	}
	return nil
}
