package telegram

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// The limits are those of https://core.telegram.org/bots/faq with room to spare: about a message a second to a person,
// 20 a minute in a group and 30 a second in all. A full burst and what is refilled meanwhile stay below them. In a group the
// burst is the larger part: there people get few cards, and get them at once.
const (
	personEvery = time.Second
	personBurst = 3
	groupEvery  = time.Minute / 11
	groupBurst  = 8
	overallRate = 20 // a second
	overallMost = 5

	// What agents say has less room than there is, so that a card finds some at once, whatever they say.
	talkEvery   = 1500 * time.Millisecond // to a person
	talkOverall = overallRate / 2
	talkMost    = 2 // of talkOverall, at once

	// What is not taken from a burst, one in so many, is left for what is more urgent: in groups cards leave some for what a
	// finger waits for, edits and notices for both, answers to what people write for all of those, and typing everything.
	fingers, cards, edits, replies, typing = 9, 8, 3, 2, 1

	// Accounts that are nobody's are answered as rarely as agents' typing is shown, and more than so many are not answered.
	strangersEvery = time.Second / 5
	strangersMost  = 10

	giveWay = 200 * time.Millisecond // to an edit for which there is room again

	forgetEvery = time.Minute
)

// pace keeps what is written within the limits of sending. Messages, edits and typing count, and of those what agents say
// comes last; polls, the answers to taps and the list of commands do not belong here and are never held up. It is safe
// for concurrent use.
type pace struct {
	overall *wire.Turns   // of chats
	talk    *rate.Limiter // what agents say, besides
	// strangers are answers to accounts that are nobody's, besides.
	strangers *rate.Limiter

	mu     sync.Mutex
	until  time.Time // nothing is sent before
	chats  map[int64]*lane
	forgot time.Time // when idle chats were last forgotten
}

// lane is one chat's share.
type lane struct {
	limit *rate.Limiter
	talk  *rate.Limiter // what agents say, besides
	until time.Time     // nothing is sent to this chat before
	edits time.Time     // no answers to what was written are sent before: an edit comes first
	users int           // that wait
}

func newPace() *pace {
	return &pace{
		overall: wire.NewTurns(overallRate, overallMost), talk: rate.NewLimiter(talkOverall, talkMost),
		strangers: rate.NewLimiter(rate.Every(strangersEvery), strangersMost), chats: map[int64]*lane{},
	}
}

// wait returns when something may be sent to a chat, of those that wait for the room of all the one whose last turn was
// longest ago; chat 0 stands for what goes to none. It returns an error once ctx
// ends, and at once if the wait would outlast the deadline of ctx. What is sent waits for one more than a part of the
// chat's burst, 0 for any.
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
			pause = max(pause, wire.Room(l.limit, part, time.Now()))
		}
		deadline, limited := ctx.Deadline()
		switch {
		case pause > 0 && limited && time.Until(deadline) < pause:
			return fmt.Errorf("wait to send: %w", &pausedError{pause})
		case pause > 0:
			if err := permissions.Pause(ctx, pause); err != nil {
				return fmt.Errorf("wait to send: %w", err)
			}
		case len(limits) == 0:
			return ctx.Err()
		default: // what is taken stays taken through a pause that comes meanwhile
			if err := limits[0](ctx); err != nil {
				return fmt.Errorf("wait to send: %w", err)
			}
			limits = limits[1:]
		}
	}
}

// paused is how long Telegram wants to be left alone with a chat, or 0.
func (p *pace) paused(chat int64) time.Duration {
	l := p.enter(chat)
	defer p.leave(l)
	return max(p.pause(l), 0)
}

// yield returns when it is the turn of what an agent says, which then waits like anything else.
func (p *pace) yield(ctx context.Context, chat int64) error {
	l := p.enter(chat)
	defer p.leave(l)
	for _, limit := range []*rate.Limiter{l.talk, p.talk} {
		if err := limit.Wait(ctx); err != nil {
			return fmt.Errorf("wait to speak: %w", err)
		}
	}
	return nil
}

// room takes room in a chat if that leaves a part of its burst, and of the burst of all, or says how long to wait until
// there may be some. It does not wait itself.
func (p *pace) room(chat int64, part int) (after time.Duration) {
	l := p.enter(chat)
	defer p.leave(l)
	if after = p.pause(l); after > 0 {
		return after
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if after = max(wire.Room(l.limit, part, now), wire.Room(p.overall.Limiter, part, now)); part == replies {
		after = max(after, l.edits.Sub(now))
	}
	switch {
	case after == 0:
		l.limit.AllowN(now, 1)
		p.overall.AllowN(now, 1)
	case part == edits:
		l.edits = now.Add(after + giveWay)
	}
	return after
}

// told takes note of how a call ended: when Telegram asks for a pause, the chat gets one, or everything if the call was
// for none. Any err will do, nil as well.
func (p *pace) told(chat int64, err error) {
	after := retryAfter(err)
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

// pause is how long nothing is sent in a lane.
func (p *pace) pause(l *lane) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.until), time.Until(l.until))
}

// enter is a chat's lane, which is not forgotten before it is left.
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

// forget drops the lanes that are as if they were new. The lock is held.
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
