package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	// lookAgain is how often it is looked whether an account was linked, or is free.
	lookAgain = 2 * time.Second
	// firstTry is the pause before something that failed is tried again; the further ones are longer.
	firstTry = time.Second
	// mostPings is how many pings in a row may stay without an answer.
	mostPings = 2
	// steadyAfter is how long a connection has to last for the next one to be tried at once.
	steadyAfter = time.Minute
	// freshenEvery is how often at most it is asked for the version that WhatsApp takes.
	freshenEvery = time.Hour
	// bannedFor is how long a ban is waited for whose end was not said.
	bannedFor = time.Hour
)

// ending is how a connection ended.
type ending struct {
	to    standing
	why   string
	until time.Time // of a ban
}

// keep keeps the account connected until ctx ends. What somebody has to mend is waited for, and found by itself.
func (d *desktop) keep(ctx context.Context) error {
	for ctx.Err() == nil {
		switch e, err := d.hold(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			d.note(ending{to: isBroken, why: err.Error()})
		case e.to != isStarting:
			d.note(e)
		}
		_ = permissions.Pause(ctx, d.again) // the loop looks at ctx
	}
	return nil
}

// hold opens the account and serves it until the device is gone. It returns how things stand then, if that is news: when
// it is told, nothing of the device is left, and the file can be opened by whoever links another.
func (d *desktop) hold(ctx context.Context) (e ending, err error) {
	a, err := openAccount(ctx, d.path, quiet{d.log})
	if errors.Is(err, ErrInUse) {
		return ending{to: isHeld}, nil
	}
	if err != nil {
		return e, err
	}
	defer a.Close()
	device, err := a.device(ctx)
	switch {
	case err != nil:
		return e, err
	case device.ID == nil && d.state.lost(): // it is told why it is gone
		return e, nil
	case device.ID == nil:
		return ending{to: isUnlinked}, nil
	case d.number != "" && e164(device.ID.ToNonAD()) != d.number:
		return ending{to: isOther}, nil
	}
	whose := *device.ID
	ended := make(chan ending, 8)
	device.Identities = watched{device.Identities, func(ctx context.Context, address string) error {
		return d.changed(ctx, jidOf(address))
	}}
	cli := d.newClient(device, d.listen(ctx, ended))
	d.client.Store(cli)
	defer d.client.Store(nil)
	if e = d.serve(ctx, cli, ended); e.to == isLoggedOut { // the library does the same, at some time
		err = a.remove(ctx, whose)
	}
	return e, err
}

// serve connects again and again, until ctx ends or the device is gone for good, which it returns.
func (c *Connector) serve(ctx context.Context, cli *whatsmeow.Client, ended <-chan ending) ending {
	tries := c.newTries()
	asked := time.Time{} // for a version
	for ctx.Err() == nil {
		e := c.connected(ctx, cli, ended, tries)
		cli.Disconnect()
		if ctx.Err() != nil || e.to == isLoggedOut {
			return e
		}
		wait := tries.NextBackOff()
		if e.to == isOutdated && c.autoVersion && (asked.IsZero() || time.Since(asked) >= freshenEvery) {
			asked = time.Now()
			e = c.renewed(ctx)
		}
		c.note(e)
		switch e.to {
		case isReplaced:
			<-ctx.Done() // or the two would throw out each other for ever
		case isBanned:
			wait = bannedFor
			if left := e.until.Sub(c.now()); !e.until.IsZero() {
				wait = max(left, time.Second)
			}
		case isOutdated:
			wait = freshenEvery
		case isRefused:
			wait = max(wait, time.Minute)
		}
		_ = permissions.Pause(ctx, wait) // the loop looks at ctx
	}
	return ending{}
}

// renewed is how things stand once the version was asked for that WhatsApp takes.
func (c *Connector) renewed(ctx context.Context) ending {
	if err := c.freshen(ctx); err != nil {
		c.log.Warn("the version that whatsapp takes cannot be found", "err", err)
		return ending{to: isOutdated}
	}
	return ending{to: isAway, why: "it wants a newer version of the client, which is taken now"}
}

// connected connects and waits for the end of that.
func (c *Connector) connected(
	ctx context.Context, cli *whatsmeow.Client, ended <-chan ending, tries *backoff.ExponentialBackOff,
) ending {
	for len(ended) > 0 {
		<-ended // of the connection before
	}
	if err := cli.ConnectContext(ctx); err != nil {
		return ending{to: isAway, why: plainly(err)}
	}
	since := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return ending{to: isAway}
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

// listen is what the library's client calls, in the order in which things happened. What it returns false for is not
// acknowledged, and comes again.
func (d *desktop) listen(ctx context.Context, ended chan<- ending) func(event any) bool {
	end := func(e ending) {
		select {
		case ended <- e:
		default: // it has ended for other reasons
		}
	}
	return func(event any) bool {
		switch e := event.(type) {
		case *events.Message:
			if d.message(ctx, e) {
				return true
			}
			end(ending{to: isAway, why: "an answer could not be stored, and comes again with the next connection"})
			return false
		case *events.UndecryptableMessage:
			d.unread(ctx, e)
		case *events.IdentityChange: // as WhatsApp says; a key that is another is found by [watched] before that
			if err := d.changed(ctx, e.JID); err != nil && ctx.Err() == nil {
				d.log.Error("an account whose keys have changed is not suspended yet; it is when it writes", "err", err)
			}
		case *events.Receipt:
			d.receipts(e)
		case *events.NotifyAccountReachoutTimelock:
			d.restricted(e)
		case *events.Connected:
			end(ending{to: isConnected})
		case *events.Disconnected:
			end(ending{to: isAway, why: "the connection was lost"})
		case *events.KeepAliveTimeout:
			if e.ErrorCount >= mostPings {
				end(ending{to: isAway, why: "nothing answers"})
			}
		case *events.LoggedOut:
			end(ending{to: isLoggedOut, why: e.Reason.String()})
		case *events.StreamReplaced:
			end(ending{to: isReplaced})
		case *events.ClientOutdated:
			end(ending{to: isOutdated})
		case *events.TemporaryBan:
			until := time.Time{}
			if e.Expire > 0 {
				until = d.now().Add(e.Expire)
			}
			end(ending{to: isBanned, why: e.Code.String(), until: until})
		case *events.ConnectFailure:
			end(ending{to: isRefused, why: e.Reason.String()})
		}
		return true
	}
}

// note writes down how things stand, and logs what is news.
func (c *Connector) note(e ending) {
	if !c.state.turn(e.to, e.why, e.until) {
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

// newTries are the pauses before something is tried again.
func (c *Connector) newTries() *backoff.ExponentialBackOff {
	return wire.Tries(c.firstTry, 300*c.firstTry)
}
