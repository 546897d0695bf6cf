package whatsapp

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
)

// standing is the state of the account's connection to WhatsApp.
type standing int

const (
	isStarting  standing = iota // no event yet
	isConnected                 // connected and logged in
	isAway                      // no connection; retrying
	isUnlinked                  // no linked device
	isHeld                      // another process has the account open
	isLoggedOut                 // WhatsApp removed the device
	isBanned                    // temporarily
	isReplaced                  // another client connected with the same keys
	isOutdated                  // WhatsApp no longer accepts this client version
	isRefused                   // for another reason, which it gave
	isOther                     // the linked account is not the configured one
	isBroken                    // the account's file is unusable
)

// state is the health of the connector. It is safe for concurrent use.
type state struct {
	now func() time.Time

	mu     sync.Mutex
	is     standing
	since  time.Time // of isAway
	until  time.Time // of isBanned; zero if not stated
	why    string    // of isAway, isLoggedOut, isBanned and isRefused
	timely time.Time // end of a restriction to people who wrote first
}

func newState(now func() time.Time) *state { return &state{now: now, since: now()} }

const relink = "link it again: daycared link whatsapp"

var names = map[standing]string{
	isStarting: "starting", isConnected: "restricted", isAway: "away", isUnlinked: "unlinked", isHeld: "held",
	isLoggedOut: "logged_out", isBanned: "banned", isReplaced: "replaced", isOutdated: "outdated", isRefused: "refused",
	isOther: "other_account", isBroken: "broken",
}

type healthError struct {
	error
	name string
}

func (u *healthError) State() string { return u.name }

// Health is nil while the account is connected. Otherwise its text says what is wrong and what to do. It is a
// [connectors.StateError].
func (s *state) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.words(); err != nil {
		return &healthError{err, names[s.is]}
	}
	return nil
}

// words are those of Health. The caller holds the lock.
func (s *state) words() error {
	switch s.is {
	case isConnected:
		if s.now().Before(s.timely) {
			return fmt.Errorf("WhatsApp restricts the account until %s: it can only answer people who wrote first",
				s.timely.UTC().Format("2 Jan 15:04 MST"))
		}
		return nil
	case isAway:
		return fmt.Errorf("no connection to WhatsApp for %v: %s", s.now().Sub(s.since).Round(time.Second), s.why)
	case isUnlinked:
		return errors.New("no WhatsApp account is linked; run: daycared link whatsapp")
	case isHeld:
		return errors.New("another process has the WhatsApp account open; it is taken as soon as that ends")
	case isLoggedOut:
		return fmt.Errorf("WhatsApp removed this device (%s); %s", s.why, relink)
	case isBanned:
		return fmt.Errorf("WhatsApp bans the account for a time (%s)%s; write less, and only to people who wrote first", s.why, s.untilWhen())
	case isReplaced:
		return errors.New("somebody else connected with this account's keys, so this daemon was thrown out: " +
			"stop the other program that uses a copy of them, then restart daycared")
	case isOutdated:
		return errors.New("WhatsApp does not take this version of the client any more: update daycared, " +
			"or leave connectors.whatsapp.auto_version on, so that it goes with the time")
	case isOther:
		return errors.New("the linked account is not the one that connectors.whatsapp.phone names: remove daycared on its " +
			"phone (Linked devices) and link the right one, or name this one there")
	case isRefused:
		return fmt.Errorf("WhatsApp refuses the connection: %s", s.why)
	case isBroken:
		return fmt.Errorf("the WhatsApp account cannot be used: %s", s.why)
	}
	return errors.New("waiting for WhatsApp's first answer")
}

func (s *state) untilWhen() string {
	if s.until.IsZero() {
		return ""
	}
	return ", until " + s.until.UTC().Format("2 Jan 15:04 MST")
}

// gone is why the account reaches nobody until somebody acts; nil while it is connected or merely offline.
func (s *state) gone() error {
	s.mu.Lock()
	is := s.is
	s.mu.Unlock()
	switch is {
	case isUnlinked, isLoggedOut, isBanned, isReplaced, isOutdated, isRefused, isOther:
		return &connectors.UnreachableError{Reason: s.Health().Error()}
	}
	return nil
}

// turn records a state and reports whether that is news. The time of isAway is that of its beginning.
func (s *state) turn(to standing, why string, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.is != to
	if news && to == isAway {
		s.since = s.now()
	}
	s.is, s.why, s.until = to, why, until
	return news
}

// restrict records until when the account may only write to people who wrote first; zero ends the restriction.
func (s *state) restrict(until time.Time) {
	s.mu.Lock()
	s.timely = until
	s.mu.Unlock()
}

func (s *state) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is == isConnected
}

// lost reports whether WhatsApp removed the device.
func (s *state) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is == isLoggedOut
}
