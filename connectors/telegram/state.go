package telegram

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// standing is the state of the bot's connection to Telegram.
type standing int

const (
	isStarting     standing = iota // no poll was answered yet
	isPolling                      // polls are answered
	isAway                         // polls are not answered
	isConflict                     // another program polls
	isWebhook                      // a webhook is set
	isUnauthorized                 // the token is invalid
)

// state is the health of the connector. It is safe for concurrent use.
type state struct {
	now func() time.Time

	mu    sync.Mutex
	is    standing
	heard time.Time // until when no tap was lost; zero: unknown
	since time.Time // when a poll was last answered
	why   string    // of isAway
	host  string    // of the webhook, if known
}

func newState(now func() time.Time) *state { return &state{now: now} }

// Health reports whether polls are answered, with a text for people about the state and what to do.
func (s *state) Health() (ok bool, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.is {
	case isPolling:
		return true, "connected"
	case isAway:
		return false, fmt.Sprintf("no contact with Telegram for %v: %s", s.now().Sub(s.since).Round(time.Second), s.why)
	case isConflict:
		return false, "another program polls with this bot's token, so what people do may not arrive here: " +
			"stop that program, or give one of the two a bot of its own"
	case isWebhook:
		at := ""
		if s.host != "" {
			at = " at " + s.host
		}
		return false, "the bot has a webhook" + at + ", so nothing that people do arrives here: " +
			"delete it with the Bot API's deleteWebhook, or give daycared a bot of its own"
	case isUnauthorized:
		return false, "Telegram does not accept the bot's token: " +
			"compare token_file with what @BotFather says (/mybots, API Token); after a change, send daycared a SIGHUP"
	default:
		return false, "waiting for Telegram's first answer"
	}
}

// hear records until when no tap was lost.
func (s *state) hear(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = until
}

// hearing is until when no tap was lost. When the daemon stops, the open poll would have delivered everything up to now.
func (s *state) hearing(stops bool) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); stops && s.is == isPolling && now.Sub(s.heard) < tapLife {
		return now
	}
	return s.heard
}

// turn records the state and reports whether that is news. why is the reason of isAway, without the token, since when a
// poll was last answered, and host the webhook's, if known: its path often contains secrets.
func (s *state) turn(to standing, since time.Time, why, host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.is != to
	s.is, s.since, s.why, s.host = to, since, why, cmp.Or(host, s.host)
	return news
}
