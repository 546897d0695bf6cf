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

	"github.com/daycared/daycared/connectors"
)

// The limits are our own: WhatsApp documents none, and bans accounts that write much. A burst is some cards at once.
const (
	numberEvery = 2 * time.Second
	numberBurst = 6
	allEvery    = time.Second
	allBurst    = 10
	maxNumbers  = 1000
	// One in so many of a burst stays reserved for more urgent messages: cards come first, then edits and notices, then
	// replies to what people write.
	edits, replies = 3, 2
)

// turnError means that there is no room for a message that can wait, and for how long.
type turnError struct{ after time.Duration }

func (e *turnError) Error() string { return "too many messages to this number" }

func (e *turnError) RetryAfter() time.Duration { return e.after }

// pace limits sending. It is safe for concurrent use.
type pace struct {
	all *connectors.FairLimiter // by number

	mu      sync.Mutex
	numbers map[string]*rate.Limiter
	every   rate.Limit
}

func newPace() *pace {
	all := connectors.NewFairLimiter(rate.Every(allEvery), allBurst)
	return &pace{all: all, numbers: map[string]*rate.Limiter{}, every: rate.Every(numberEvery)}
}

// Unpace removes all limits, for tests: their WhatsApp bans nobody. Call it before Run.
func (c *Connector) Unpace() {
	c.pace.all.SetLimit(rate.Inf)
	c.pace.every = rate.Inf
}

// of is a number's bucket. The caller holds the lock.
func (p *pace) of(number string) *rate.Limiter {
	l := p.numbers[number]
	if l == nil {
		if len(p.numbers) >= maxNumbers {
			clear(p.numbers)
		}
		l = rate.NewLimiter(p.every, numberBurst)
		p.numbers[number] = l
	}
	return l
}

// wait returns when a message may be sent to a number, or an error once ctx ends.
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

// room takes a turn for a message that can wait, if the reserve stays untouched. It never blocks: the error has the delay.
func (p *pace) room(number string, part int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.of(number), time.Now()
	if after := max(connectors.UntilSpare(l, part, now), connectors.UntilSpare(p.all.Limiter, part, now)); after > 0 {
		return &turnError{after}
	}
	l.AllowN(now, 1)
	p.all.AllowN(now, 1)
	return nil
}

// queueTime is how long an unconfirmed message may block others.
const queueTime = 200 * time.Millisecond

// queue serializes messages for the library, which sends one message only after the previous one is confirmed. If others
// wait, it takes over the wait for the confirmation after [queueTime], so that the next message is sent. It is safe for
// concurrent use.
type queue struct {
	turn chan struct{} // holds one element while the library sends

	mu    sync.Mutex
	began time.Time
	cut   func() // ends the library's wait
}

// enter waits for the library. The next caller may call cut to take it away again.
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

// send sends a message and returns WhatsApp's time of receipt.
func (q *queue) send(ctx context.Context, cli *whatsmeow.Client, to ref, m *waE2E.Message) (at time.Time, err error) {
	alone, cut := context.WithCancel(ctx)
	defer cut()
	if err := q.enter(ctx, cut); err != nil {
		return at, err
	}
	until := time.Now().Add(ackTime)
	alone, end := encrypting(alone)
	sent, err := cli.SendMessage(alone, address(to.number), m, whatsmeow.SendRequestExtra{ID: to.id, Timeout: ackTime})
	if left := end(); left != nil && (err == nil || sent.DebugTimings.Send != 0) {
		err = left
	}
	if !errors.Is(err, context.Canceled) || ctx.Err() != nil || sent.DebugTimings.Send == 0 {
		q.leave()
		return sent.Timestamp, err
	}
	library := cli.DangerousInternals() //nolint:staticcheck // nothing else can wait for a confirmation only
	ack := library.WaitResponse(to.id)  // the message was sent, but the library no longer waits
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
