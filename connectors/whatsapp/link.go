package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/permissions/timing"
)

// Guide helps with linking at a terminal. Its methods are called one at a time.
type Guide interface {
	// Scan shows a code for the phone to scan. It is replaced after life.
	Scan(code string, life time.Duration)
	// Type shows a code to type on the phone.
	Type(code string)
	// Passkey asks for the account owner's browser's response to a WebAuthn request of web.whatsapp.com, both as JSON.
	Passkey(ctx context.Context, request string) (response string, err error)
	// Compare asks whether the phone shows the same code.
	Compare(ctx context.Context, code string) (same bool, err error)
	// Say reports progress.
	Say(text string)
}

// Linking configures [Link].
type Linking struct {
	Path        string // of the account's file
	Shared      Shared // the database where it is linked; nil: in the file
	Number      string // E.164: the only account that may be linked; empty: any
	ByCode      bool   // type a code on the phone with Number instead of scanning one
	AutoVersion bool
	HTTP        *http.Client // for tests; nil: the library's default
	Log         *slog.Logger
}

// Errors of [Link], wrapped in a sentence for people.
var (
	ErrLinked      = errors.New("an account is linked already")
	ErrOtherNumber = errors.New("another number than the one that was named")
)

const (
	// displayName has the only form that WhatsApp accepts for typed codes.
	displayName = "Chrome (Linux)"
	// settleTime limits the first connection of a new device.
	settleTime = time.Minute
	// openTries is how often opening the account is tried.
	openTries = 10
)

// Link makes this daemon a linked device of a WhatsApp account and returns the account's number. It needs exclusive access
// to where the account is kept (see [ErrInUse]) and waits until ctx ends.
func Link(ctx context.Context, o Linking, g Guide) (number string, err error) {
	c := New(Options{Path: o.Path, Shared: o.Shared, AutoVersion: o.AutoVersion, HTTP: o.HTTP, Now: time.Now, Log: o.Log}, nil)
	a, err := c.ownAccount(ctx)
	if err != nil {
		return "", err
	}
	defer a.Close()
	device, err := a.device(ctx)
	if err != nil {
		return "", err
	}
	if device.ID != nil {
		return e164(device.ID.ToNonAD()), ErrLinked
	}
	connected := timing.NewSignal()
	cli := c.newClient(device, func(event any) bool {
		if _, is := event.(*events.Connected); is {
			connected.Notify()
		}
		return true
	})
	defer cli.Disconnect()
	l := &linker{Linking: o, guide: g, cli: cli, other: ""}
	cli.PrePairCallback = l.expected
	if err := l.pair(ctx, c); err != nil {
		return "", err
	}
	select {
	case <-connected:
	case <-time.After(settleTime):
		return "", errors.New("the phone has linked this device, but WhatsApp does not let it connect yet; " +
			"start daycared and look at: daycared doctor")
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return e164(cli.Store.GetJID().ToNonAD()), nil
}

// ownAccount opens the account alone. It retries, since a daemon without a linked account opens it now and then.
func (c *Connector) ownAccount(ctx context.Context) (a *account, err error) {
	for range openTries {
		a, err = openAccount(ctx, c.o.Path, c.o.Shared, debugLog{c.log})
		if !errors.Is(err, ErrInUse) || timing.Pause(ctx, recheckEvery/openTries) != nil {
			break
		}
	}
	return a, err
}

type linker struct {
	Linking
	guide Guide
	cli   *whatsmeow.Client
	other string // the number that was refused
	typed bool   // a code to type was shown
}

// expected accepts only the account that was named. The library calls it before it confirms the pairing to the phone.
func (l *linker) expected(jid types.JID, _, _ string) bool {
	number := e164(jid.ToNonAD())
	if l.Number == "" || number == l.Number {
		return true
	}
	l.other = number
	return false
}

// pair shows codes until a phone has linked this device. It reconnects for new codes.
func (l *linker) pair(ctx context.Context, c *Connector) error {
	freshened := false
	tries := c.newTries()
	for ctx.Err() == nil {
		items, err := l.cli.GetQRChannel(ctx)
		if err == nil {
			err = l.cli.ConnectContext(ctx)
		}
		if err != nil {
			l.cli.Disconnect()
			l.guide.Say("WhatsApp cannot be reached (" + withoutAddresses(err) + "); it is tried again")
			_ = timing.Pause(ctx, tries.NextBackOff()) // the loop checks ctx
			continue
		}
		end, err := l.follow(ctx, items)
		switch {
		case err != nil:
			return err
		case end == whatsmeow.QRChannelSuccess.Event:
			return nil
		case end == whatsmeow.QRChannelClientOutdated.Event && c.o.AutoVersion && !freshened:
			freshened = true
			if err := c.refreshVersion(ctx); err != nil {
				return fmt.Errorf("find the version that WhatsApp takes: %w", err)
			}
		case end == whatsmeow.QRChannelClientOutdated.Event:
			return errors.New("WhatsApp does not take this version of the client any more; update daycared")
		case end == whatsmeow.QRChannelTimeout.Event:
			l.guide.Say("The codes are over; here are new ones. (A phone that still shows the old one does nothing.)")
		default:
			return fmt.Errorf("link with WhatsApp: it answered %q", end)
		}
		l.cli.Disconnect()
		l.typed = false
	}
	return ctx.Err()
}

// follow handles the events of one connection that waits for a phone, and returns the last one.
func (l *linker) follow(ctx context.Context, items <-chan whatsmeow.QRChannelItem) (end string, err error) {
	for {
		var item whatsmeow.QRChannelItem
		open := false
		select {
		case item, open = <-items:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		switch {
		case !open:
			return whatsmeow.QRChannelTimeout.Event, nil
		case item.Event == whatsmeow.QRChannelEventCode:
			err = l.code(ctx, item)
		case item.Event == whatsmeow.QRChannelEventPasskeyRequest:
			err = l.passkey(ctx, item.PasskeyRequest)
		case item.Event == whatsmeow.QRChannelEventPasskeyResponse:
			err = l.compare(ctx, item.PasskeyConfirmation)
		case item.Event == whatsmeow.QRChannelScannedWithoutMultidevice.Event:
			l.guide.Say("That phone's WhatsApp is too old to link devices; update it and scan again.")
		case l.other != "":
			return "", fmt.Errorf("%w: the phone that answered has %s, not %s; nothing was linked", ErrOtherNumber, l.other, l.Number)
		case item.Event == whatsmeow.QRChannelEventError:
			return "", fmt.Errorf("link with WhatsApp: %w", item.Error)
		default:
			return item.Event, nil
		}
		if err != nil {
			return "", err
		}
	}
}

func (l *linker) code(ctx context.Context, item whatsmeow.QRChannelItem) error {
	if !l.ByCode {
		l.guide.Scan(item.Code, item.Timeout)
		return nil
	}
	if l.typed {
		return nil
	}
	code, err := l.cli.PairPhone(ctx, strings.TrimPrefix(l.Number, "+"), true, whatsmeow.PairClientChrome, displayName)
	if err != nil {
		return fmt.Errorf("ask WhatsApp for a code to type: %w", err)
	}
	l.typed = true
	l.guide.Type(code)
	return nil
}

// passkey answers a passkey request, which some accounts get as well.
func (l *linker) passkey(ctx context.Context, e *events.PairPasskeyRequest) error {
	request, err := json.MarshalIndent(e.PublicKey, "", "  ")
	if err != nil {
		return fmt.Errorf("read what WhatsApp asks of the passkey: %w", err)
	}
	for {
		text, err := l.guide.Passkey(ctx, string(request))
		if err != nil {
			return err
		}
		var response types.WebAuthnResponse
		if err := json.Unmarshal([]byte(text), &response); err != nil {
			l.guide.Say("That is not the JSON of an answer: " + err.Error())
			continue
		}
		if err := l.cli.SendPasskeyResponse(ctx, &response); err != nil {
			return fmt.Errorf("answer with the passkey: %w", err)
		}
		return nil
	}
}

func (l *linker) compare(ctx context.Context, e *events.PairPasskeyConfirmation) error {
	same, err := l.guide.Compare(ctx, e.Code)
	if err != nil {
		return err
	}
	if !same {
		return errors.New("the phone shows another code, so somebody else may be linking; nothing was linked")
	}
	if err := l.cli.SendPasskeyConfirmation(ctx); err != nil {
		return fmt.Errorf("confirm the passkey: %w", err)
	}
	return nil
}
