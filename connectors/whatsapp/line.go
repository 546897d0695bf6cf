package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// recheckEvery is how often an account that is not linked or in use is checked again.
	recheckEvery = 2 * time.Second
	// firstTry is the first retry delay; it grows from there.
	firstTry = time.Second
	// maxPings is how many pings in a row may remain unanswered.
	maxPings = 2
	// steadyAfter is how long a connection has to last before the retry delay is reset.
	steadyAfter = time.Minute
	// versionEvery is the minimum time between queries for the current client version.
	versionEvery = time.Hour
	// bannedFor is the wait after a ban without a stated end.
	bannedFor = time.Hour
)

// disconnect is how a connection ended.
type disconnect struct {
	to    connectionState
	why   string
	until time.Time // end of a ban
}

// serveDevice opens the account and serves it until the device is gone. It returns the new state, if that is news; by then the
// file is released and another device can be linked.
func (d *handler) serveDevice(ctx context.Context) (e disconnect, err error) {
	a, err := openAccount(ctx, d.o.Path, d.o.Shared, debugLog{d.log})
	if errors.Is(err, ErrInUse) {
		return disconnect{to: isHeld}, nil
	}
	if err != nil {
		return e, err
	}
	defer a.Close()
	device, err := a.device(ctx)
	switch {
	case err != nil:
		return e, err
	case device.ID == nil && d.state.in(isLoggedOut): // the reason was reported
		return e, nil
	case device.ID == nil:
		return disconnect{to: isUnlinked}, nil
	case d.o.Number != "" && e164(device.ID.ToNonAD()) != d.o.Number:
		return disconnect{to: isOther}, nil
	}
	whose := *device.ID
	ended := make(chan disconnect, 8)
	device.Identities = watchedIdentities{device.Identities, func(ctx context.Context, address string) error {
		return d.suspendChanged(ctx, jidOf(address))
	}}
	cli := d.newClient(device, d.listen(ctx, ended))
	d.client.Store(cli)
	defer d.client.Store(nil)
	if e = d.serve(ctx, cli, ended); e.to == isLoggedOut { // the library deletes it, too, but later
		err = a.remove(ctx, whose)
	}
	return e, err
}

// serve reconnects until ctx ends or the device is permanently gone, which it returns.
func (c *Connector) serve(ctx context.Context, cli *whatsmeow.Client, ended <-chan disconnect) disconnect {
	tries := c.newTries()
	asked := time.Time{} // last query for a version
	for ctx.Err() == nil {
		e := c.connectOnce(ctx, cli, ended, tries)
		cli.Disconnect()
		if ctx.Err() != nil || e.to == isLoggedOut {
			return e
		}
		wait := tries.NextBackOff()
		if e.to == isOutdated && c.o.AutoVersion && (asked.IsZero() || time.Since(asked) >= versionEvery) {
			asked = time.Now()
			e = c.adoptVersion(ctx)
		}
		c.note(e)
		switch e.to {
		case isReplaced:
			<-ctx.Done() // otherwise the two would disconnect each other forever
		case isBanned:
			wait = bannedFor
			if left := e.until.Sub(c.now()); !e.until.IsZero() {
				wait = max(left, time.Second)
			}
		case isOutdated:
			wait = versionEvery
		case isRefused:
			wait = max(wait, time.Minute)
		}
		_ = timing.Pause(ctx, wait) // the loop checks ctx
	}
	return disconnect{}
}

// adoptVersion fetches the client version that WhatsApp accepts and returns the new state.
func (c *Connector) adoptVersion(ctx context.Context) disconnect {
	if err := c.refreshVersion(ctx); err != nil {
		c.log.Warn("fetch whatsapp client version", "err", err)
		return disconnect{to: isOutdated}
	}
	return disconnect{to: isAway, why: "it wants a newer version of the client, which is taken now"}
}

// connectOnce connects once and waits until the connection ends.
func (c *Connector) connectOnce(
	ctx context.Context, cli *whatsmeow.Client, ended <-chan disconnect, tries *wire.Backoff,
) disconnect {
	for len(ended) > 0 {
		<-ended // of the previous connection
	}
	if err := cli.ConnectContext(ctx); err != nil {
		return disconnect{to: isAway, why: withoutAddresses(err)}
	}
	since := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return disconnect{to: isAway}
		case e := <-ended:
			if e.to == isConnected {
				since = time.Now()
				c.note(e)
				continue
			}
			if !since.IsZero() && time.Since(since) >= steadyAfter {
				tries.Reset()
			}
			return e
		}
	}
}

// listen returns the event handler of the library's client, which gets events in order. A message for which it returns
// false is not acknowledged and is redelivered.
func (d *handler) listen(ctx context.Context, ended chan<- disconnect) func(event any) bool {
	end := func(e disconnect) {
		select {
		case ended <- e:
		default: // it has already ended for another reason
		}
	}
	return func(event any) bool {
		switch e := event.(type) {
		case *events.Message:
			if d.message(ctx, e) {
				return true
			}
			end(disconnect{to: isAway, why: "an answer could not be stored, and comes again with the next connection"})
			return false
		case *events.UndecryptableMessage:
			d.unread(ctx, e)
		case *events.IdentityChange: // reported by WhatsApp; [watchedIdentities] detects a different key earlier
			if err := d.suspendChanged(ctx, e.JID); err != nil && ctx.Err() == nil {
				d.log.Error("suspend account with changed keys: retrying at its next message", "err", err)
			}
		case *events.Receipt:
			d.receipts(e)
		case *events.NotifyAccountReachoutTimelock:
			d.noteRestriction(e)
		case *events.Connected:
			end(disconnect{to: isConnected})
		case *events.Disconnected:
			end(disconnect{to: isAway, why: "the connection was lost"})
		case *events.KeepAliveTimeout:
			if e.ErrorCount >= maxPings {
				end(disconnect{to: isAway, why: "nothing answers"})
			}
		case *events.LoggedOut:
			end(disconnect{to: isLoggedOut, why: e.Reason.String()})
		case *events.StreamReplaced:
			end(disconnect{to: isReplaced})
		case *events.ClientOutdated:
			end(disconnect{to: isOutdated})
		case *events.TemporaryBan:
			until := time.Time{}
			if e.Expire > 0 {
				until = d.now().Add(e.Expire)
			}
			end(disconnect{to: isBanned, why: e.Code.String(), until: until})
		case *events.ConnectFailure:
			end(disconnect{to: isRefused, why: e.Reason.String()})
		}
		return true
	}
}

// note records the state and logs changes.
func (c *Connector) note(e disconnect) {
	if !c.state.setState(e.to, e.why, e.until) {
		return
	}
	if e.to == isConnected {
		c.log.Info("whatsapp is connected")
		return
	}
	level := slog.LevelWarn
	if e.to == isAway {
		level = slog.LevelInfo
	}
	c.log.Log(context.Background(), level, "whatsapp is not connected", "why", c.state.Health())
}

func (c *Connector) newTries() *wire.Backoff {
	return wire.NewBackoff(c.firstTry, 300*c.firstTry)
}

// connectionState is the state of the account's connection to WhatsApp.
type connectionState int

const (
	isStarting  connectionState = iota // no event yet
	isConnected                        // connected and logged in
	isAway                             // no connection; retrying
	isUnlinked                         // no linked device
	isHeld                             // another process has the account open
	isLoggedOut                        // WhatsApp removed the device
	isBanned                           // temporarily
	isReplaced                         // another client connected with the same keys
	isOutdated                         // WhatsApp no longer accepts this client version
	isRefused                          // for another reason, which it gave
	isOther                            // the linked account is not the configured one
	isBroken                           // the account's file is unusable
)

// state is the health of the connector. It is safe for concurrent use.
type state struct {
	now func() time.Time

	mu     sync.Mutex
	is     connectionState
	since  time.Time // of isAway
	until  time.Time // of isBanned; zero if not stated
	why    string    // of isAway, isLoggedOut, isBanned and isRefused
	timely time.Time // end of a restriction to people who wrote first
}

func newState(now func() time.Time) *state { return &state{now: now, since: now()} }

// standings has the name of each state, and what is wrong then and what to do, where that does not depend on the time.
var standings = map[connectionState]struct{ name, words string }{
	isStarting:  {"starting", "waiting for WhatsApp's first answer"},
	isConnected: {"restricted", ""},
	isAway:      {"away", ""},
	isUnlinked:  {"unlinked", "no WhatsApp account is linked; run: daycared link whatsapp"},
	isHeld:      {"held", "another process has the WhatsApp account open; it is taken as soon as that ends"},
	isLoggedOut: {"logged_out", "WhatsApp removed this device ({why}); link it again: daycared link whatsapp"},
	isBanned:    {"banned", "WhatsApp bans the account for a time ({why}){until}; write less, and only to people who wrote first"},
	isReplaced: {"replaced", "somebody else connected with this account's keys, so this daemon was thrown out: " +
		"stop the other program that uses a copy of them, then restart daycared"},
	isOutdated: {"outdated", "WhatsApp does not take this version of the client any more: update daycared, " +
		"or leave connectors.whatsapp.auto_version on, so that it goes with the time"},
	isRefused: {"refused", "WhatsApp refuses the connection: {why}"},
	isOther: {"other_account", "the linked account is not the one that connectors.whatsapp.phone names: remove daycared on its " +
		"phone (Linked devices) and link the right one, or name this one there"},
	isBroken: {"broken", "the WhatsApp account cannot be used: {why}"},
}

type healthError struct {
	error
	name string
}

func (u *healthError) State() string { return u.name }

// Health is nil while the account is connected; else a [connectors.StateError] says what is wrong and what to do.
func (s *state) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.words(); err != nil {
		return &healthError{err, standings[s.is].name}
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
	}
	until := ""
	if !s.until.IsZero() {
		until = ", until " + s.until.UTC().Format("2 Jan 15:04 MST")
	}
	return errors.New(strings.NewReplacer("{why}", s.why, "{until}", until).Replace(standings[s.is].words))
}

// whyUnusable is why the account reaches nobody until somebody acts; nil while it is connected or merely offline.
func (s *state) whyUnusable() error {
	s.mu.Lock()
	is := s.is
	s.mu.Unlock()
	switch is {
	case isUnlinked, isLoggedOut, isBanned, isReplaced, isOutdated, isRefused, isOther:
		return &connectors.UnreachableError{Reason: s.Health().Error()}
	}
	return nil
}

// setState records a state and reports whether that is news. The time of isAway is that of its beginning.
func (s *state) setState(to connectionState, why string, until time.Time) bool {
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

func (s *state) in(is connectionState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is == is
}
