package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

const (
	// messagesPerMinute and messagesPerHour limit a caller's notices, separately for hook events and its own messages.
	messagesPerMinute, messagesPerHour = 10, 60
	// maxUnsentMessages bounds the unsent notices of a caller.
	maxUnsentMessages = 20
)

// Tell stores a caller's message to a person and returns that person's name. It asks nothing and decides nothing. An
// empty name means the caller's owner; another person must be the owner or be named by a route for the caller. A notice
// that an agent waits is dropped while a request of its session is pending, since the prompt says so.
//
// The notice is sent as soon as a channel accepts it and the person's quiet hours are over.
func (e *Engine) Tell(
	ctx context.Context, caller permissions.Caller, to string, about permissions.About, t permissions.CallerMessage,
) (person string, err error) {
	if caller.Name == permissions.Anonymous {
		return "", permissions.TokenNeeded()
	}
	if err := t.Validate(about); err != nil {
		return "", permissions.Invalid(err)
	}
	if by := e.StoppedBy(); by != "" {
		return "", permissions.Stopped(by)
	}
	if err := e.AgentMayAsk(caller); err != nil {
		return "", err
	}
	s := e.Settings()
	p, err := s.NoticeRecipient(caller, to)
	if err != nil {
		return "", err
	}
	if err := e.CheckNotifiable(p); err != nil {
		return "", err
	}
	work, done := shared.Noting(ctx)
	defer done()
	if about == permissions.AboutWaits && t.Session != "" {
		pending, err := e.store.PendingOfSession(work, caller.Name, t.Session)
		if err != nil || len(pending) > 0 {
			return p.Name, shared.Broken(err)
		}
	}
	if wait := e.takeMessageToken(caller, about); wait > 0 {
		return "", permissions.TooManyNotices(wait)
	}
	n := permissions.Notice{To: p.Name, About: about, By: caller.Name, CreatedAt: e.clock.Stamp(), CallerMessage: t}
	if err := e.store.AddCallerMessage(work, n, maxUnsentMessages); err != nil {
		return "", shared.Broken(err)
	}
	e.log.Info("notice accepted from a caller", "caller", caller.Name, "to", p.Name, "about", about)
	e.registry.NotifyNotices()
	return p.Name, nil
}

// takeMessageToken takes one token from the caller's limits, or returns how long until there is one.
func (e *Engine) takeMessageToken(caller permissions.Caller, about permissions.About) (wait time.Duration) {
	kind := "events"
	if about == permissions.AboutText {
		kind = "words"
	}
	var taken []reservation
	for _, b := range []struct {
		most int
		per  time.Duration
	}{{messagesPerMinute, time.Minute}, {messagesPerHour, time.Hour}} {
		one, wait := e.take(limiter(e, e.tellings, [2]string{caller.Root(), kind + b.per.String()}, b.most, b.per), 1)
		if wait > 0 {
			giveBack(taken)
			return wait
		}
		taken = append(taken, one)
	}
	return 0
}
