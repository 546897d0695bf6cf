package telegram

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions/timing"
)

// The limits stay below those of https://core.telegram.org/bots/faq, which are about one message a second to a person, 20 a
// minute in a group and 30 a second overall. A full burst plus its refill stays below them, too. Groups have a larger burst
// because they get few cards, which should arrive at once.
const (
	personEvery = time.Second
	personBurst = 3
	groupEvery  = time.Minute / 11
	groupBurst  = 8
	overallRate = 20 // a second
	overallMost = 5

	// Agent messages get a smaller share, so that a card always finds room at once.
	talkEvery   = 1500 * time.Millisecond // to one person
	talkOverall = overallRate / 2
	talkMost    = 2 // burst of talkOverall

	// How much of a burst each class of call may use: one in so many stays reserved for more urgent classes. The order is:
	// what a tap waits for, cards, edits and notices, replies to what people write, typing.
	taps, cards, edits, replies, typing = 9, 8, 3, 2, 1

	// Replies to unknown accounts have the priority of typing and a limit of their own; those above it are dropped.
	unknownReplyEvery = time.Second / 5
	unknownReplyBurst = 10

	editHeadStart = 200 * time.Millisecond // head start of an edit that has room again

	forgetEvery = time.Minute
)

// pace keeps sending within the limits. It counts messages, edits and typing; agent messages come last. Polls, answers to
// taps and the command menu are never delayed. It is safe for concurrent use.
type pace struct {
	overall *connectors.FairLimiter // by chat
	talk    *rate.Limiter           // extra limit of agent messages
	// unknownReplies is the extra limit of replies to unknown accounts.
	unknownReplies *rate.Limiter

	mu     sync.Mutex
	until  time.Time // nothing is sent before this time
	chats  map[int64]*lane
	forgot time.Time // when idle chats were last dropped
}

type lane struct {
	limit *rate.Limiter
	talk  *rate.Limiter // extra limit of agent messages
	until time.Time     // nothing is sent to this chat before this time
	edits time.Time     // no replies are sent before this time: an edit comes first
	users int           // callers that hold this lane
}

func newPace() *pace {
	return &pace{
		overall: connectors.NewFairLimiter(overallRate, overallMost), talk: rate.NewLimiter(talkOverall, talkMost),
		unknownReplies: rate.NewLimiter(rate.Every(unknownReplyEvery), unknownReplyBurst), chats: map[int64]*lane{},
	}
}

// wait returns when a message may be sent to a chat. Of several chats that wait for the overall limit, the one whose last
// turn was longest ago comes first; chat 0 means no chat. It returns an error once ctx ends, or at once if the wait would
// outlast ctx's deadline. The reserve of part stays in the chat's burst; 0 reserves nothing.
func (p *pace) wait(ctx context.Context, chat int64, part int) error {
	l := p.enter(chat)
	defer p.leave(l)
	limits := []func(context.Context) error{l.limit.Wait, func(ctx context.Context) error { return p.overall.Wait(ctx, chat) }}
	if chat == 0 {
		limits = limits[1:]
	}
	for {
		pause := p.pause(l)
		if len(limits) == 2 && part > 0 {
			pause = max(pause, connectors.UntilSpare(l.limit, part, time.Now()))
		}
		deadline, limited := ctx.Deadline()
		switch {
		case pause > 0 && limited && time.Until(deadline) < pause:
			return fmt.Errorf("wait to send: %w", &pausedError{pause})
		case pause > 0:
			if err := timing.Pause(ctx, pause); err != nil {
				return fmt.Errorf("wait to send: %w", err)
			}
		case len(limits) == 0:
			return ctx.Err()
		default: // a token that was taken stays taken during a new pause
			if err := limits[0](ctx); err != nil {
				return fmt.Errorf("wait to send: %w", err)
			}
			limits = limits[1:]
		}
	}
}

// paused is how long Telegram wants no messages to a chat, or 0.
func (p *pace) paused(chat int64) time.Duration {
	l := p.enter(chat)
	defer p.leave(l)
	return max(p.pause(l), 0)
}

// awaitRoom returns when an agent message may join the ordinary queue.
func (p *pace) awaitRoom(ctx context.Context, chat int64) error {
	l := p.enter(chat)
	defer p.leave(l)
	for _, limit := range []*rate.Limiter{l.talk, p.talk} {
		if err := limit.Wait(ctx); err != nil {
			return fmt.Errorf("wait to speak: %w", err)
		}
	}
	return nil
}

// tryTurn takes a turn in a chat if that leaves the reserves, or returns how long to wait. It never blocks.
func (p *pace) tryTurn(chat int64, part int) (after time.Duration) {
	l := p.enter(chat)
	defer p.leave(l)
	if after = p.pause(l); after > 0 {
		return after
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if after = max(connectors.UntilSpare(l.limit, part, now), connectors.UntilSpare(p.overall.Limiter, part, now)); part == replies {
		after = max(after, l.edits.Sub(now))
	}
	switch {
	case after == 0:
		l.limit.AllowN(now, 1)
		p.overall.AllowN(now, 1)
	case part == edits:
		l.edits = now.Add(after + editHeadStart)
	}
	return after
}

// noteResult records a call's result: if Telegram asks for a pause, the chat gets one, or everything if the call had no chat.
func (p *pace) noteResult(chat int64, err error) {
	after := connectors.RetryAfter(err)
	if after <= 0 {
		return
	}
	until := time.Now().Add(after)
	l := p.enter(chat)
	defer p.leave(l)
	p.mu.Lock()
	defer p.mu.Unlock()
	pausing := &l.until
	if chat == 0 {
		pausing = &p.until
	}
	if until.After(*pausing) {
		*pausing = until
	}
}

// pause is how long nothing may be sent in a lane.
func (p *pace) pause(l *lane) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.until), time.Until(l.until))
}

// enter returns a chat's lane and keeps it until leave.
func (p *pace) enter(chat int64) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(time.Now())
	l := p.chats[chat]
	if l == nil {
		l = &lane{
			limit: rate.NewLimiter(rate.Every(personEvery), personBurst), talk: rate.NewLimiter(rate.Every(talkEvery), 1),
		}
		if chat < 0 {
			l.limit = rate.NewLimiter(rate.Every(groupEvery), groupBurst)
		}
		p.chats[chat] = l
	}
	l.users++
	return l
}

func (p *pace) leave(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
}

// forget drops the lanes that equal new ones. The caller holds the lock.
func (p *pace) forget(now time.Time) {
	if now.Sub(p.forgot) < forgetEvery {
		return
	}
	p.forgot = now
	for chat, l := range p.chats {
		full := l.limit.TokensAt(now) >= float64(l.limit.Burst()) && l.talk.TokensAt(now) >= 1
		if l.users == 0 && !now.Before(l.until) && full {
			delete(p.chats, chat)
		}
	}
}
