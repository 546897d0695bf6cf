package telegram

import (
	"strings"
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	s := newState(func() time.Time { return now })
	turn := func(to connectionState, since time.Time, why, host string) func() bool {
		return func() bool { return s.setState(to, since, why, host) }
	}
	answered := turn(isPolling, now, "", "")
	steps := []struct {
		name string
		do   func() bool
		news bool
		ok   bool
		text string
	}{
		{"at first", func() bool { return false }, false, false, "waiting for Telegram's first answer"},
		{"an answer", answered, true, true, "connected"},
		{"another", answered, false, true, "connected"},
		{"none", turn(isAway, now.Add(-200*time.Second), "dial tcp: refused", ""), true, false,
			"no contact with Telegram for 3m20s: dial tcp: refused"},
		{"none, otherwise", turn(isAway, now.Add(-300*time.Second), "EOF", ""), false, false,
			"no contact with Telegram for 5m0s: EOF"},
		{"another program", turn(isConflict, now, "409", ""), true, false, "another program polls with this bot's token"},
		{"a webhook", turn(isWebhook, now, "", "bots.example"), true, false, "the bot has a webhook at bots.example, so"},
		{"a webhook somewhere", turn(isWebhook, now, "409", ""), false, false, "the bot has a webhook at bots.example, so"},
		{"no good token", turn(isUnauthorized, now, "401", ""), true, false, "Telegram does not accept the bot's token: "},
		{"an answer after all", answered, true, true, "connected"},
	}
	for _, step := range steps {
		news := step.do()
		if ok, text := health(s); news != step.news || ok != step.ok || !strings.HasPrefix(text, step.text) {
			t.Errorf("%s: news %v, ok %v, %q", step.name, news, ok, text)
		}
	}
}

// health is that of a state, and "connected" if nothing is wrong.
func health(s *state) (ok bool, text string) {
	if err := s.Health(); err != nil {
		return false, err.Error()
	}
	return true, "connected"
}
