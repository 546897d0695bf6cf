package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
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
	// Of a burst, one in so much is left for what is more urgent: edits and notices leave that for cards, answers to what
	// people write for all of them.
	edits, replies = 3, 2
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

// room takes room for what can wait, if that leaves a part of it. It does not wait: the error says until when.
func (p *pace) room(number string, part int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.of(number), time.Now()
	if after := max(wire.Room(l, part, now), wire.Room(p.all.Limiter, part, now)); after > 0 {
		return &turnError{after}
	}
	l.AllowN(now, 1)
	p.all.AllowN(now, 1)
	return nil
}

// queueTime is how long a message that WhatsApp does not confirm keeps others from being sent.
const queueTime = 200 * time.Millisecond

// queue is where messages wait for the library, which sends none before the one that it sends is confirmed. Where others
// wait, that takes [queueTime] at most: the confirmation is then waited for here, and the next message goes out. It is
// safe for concurrent use.
type queue struct {
	turn chan struct{} // holds one while the library sends

	mu    sync.Mutex
	began time.Time
	cut   func() // ends the library's waiting
}

func newQueue() *queue { return &queue{turn: make(chan struct{}, 1)} }

// enter waits for the library, which cut then takes away again.
func (q *queue) enter(ctx context.Context, cut func()) error {
	for {
		q.mu.Lock()
		left := max(time.Until(q.began.Add(queueTime)), time.Millisecond)
		q.mu.Unlock()
		select {
		case q.turn <- struct{}{}:
			q.mu.Lock()
			q.began, q.cut = time.Now(), cut
			q.mu.Unlock()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(left):
		}
		q.mu.Lock()
		if q.cut != nil && time.Since(q.began) >= queueTime {
			q.cut()
		}
		q.mu.Unlock()
	}
}

func (q *queue) leave() {
	q.mu.Lock()
	q.cut = nil
	q.mu.Unlock()
	<-q.turn
}

// send sends a message and returns when WhatsApp had it.
func (q *queue) send(ctx context.Context, cli *whatsmeow.Client, to ref, m *waE2E.Message) (at time.Time, err error) {
	alone, cut := context.WithCancel(ctx)
	defer cut()
	if err := q.enter(ctx, cut); err != nil {
		return at, err
	}
	until := time.Now().Add(ackTime)
	sent, err := cli.SendMessage(alone, address(to.number), m, whatsmeow.SendRequestExtra{ID: to.id, Timeout: ackTime})
	if !errors.Is(err, context.Canceled) || ctx.Err() != nil || sent.DebugTimings.Send == 0 {
		q.leave()
		return sent.Timestamp, err
	}
	library := cli.DangerousInternals() //nolint:staticcheck // there is no other way to wait for a confirmation alone
	ack := library.WaitResponse(to.id)  // it was sent, and the library waits for this no longer
	q.leave()
	select {
	case <-ctx.Done():
		library.CancelResponse(to.id, ack)
		return at, ctx.Err()
	case <-time.After(time.Until(until)):
		library.CancelResponse(to.id, ack)
		return at, whatsmeow.ErrMessageTimedOut
	case node := <-ack:
		if node == nil || node.Tag != "ack" {
			return at, errAway // the connection was lost
		}
		attrs := node.AttrGetter()
		if code := attrs.OptionalInt("error"); code != 0 {
			return at, fmt.Errorf("%w %d", whatsmeow.ErrServerReturnedError, code)
		}
		return attrs.UnixTime("t"), nil
	}
}
