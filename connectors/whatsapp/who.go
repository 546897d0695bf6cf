package whatsapp

import (
	"context"
	"fmt"
	"strings"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// sender is who sent a message: the phone number and, if known, the LID, WhatsApp's id that hides numbers.
type sender struct {
	number string // E.164
	lid    string
}

// senderOf finds a sender's number, in the message or by an earlier mapping of its LID. Without a number the message is from
// nobody. SenderAlt only fills in what Sender lacks.
func senderOf(ctx context.Context, lids store.LIDStore, from types.MessageSource) (s sender, err error) {
	for _, j := range []types.JID{from.Sender, from.SenderAlt} {
		switch {
		case j.Server == types.DefaultUserServer && s.number == "":
			s.number = e164(j)
		case j.Server == types.HiddenUserServer && s.lid == "":
			s.lid = j.ToNonAD().User
		}
	}
	switch {
	case s.number == "" && s.lid != "":
		pn, err := lids.GetPNForLID(ctx, types.NewJID(s.lid, types.HiddenUserServer))
		if err != nil {
			return s, fmt.Errorf("look up the number of a LID: %w", err)
		}
		s.number = e164(pn)
	case s.number != "" && s.lid == "":
		lid, err := lids.GetLIDForPN(ctx, address(s.number))
		if err != nil {
			return s, fmt.Errorf("look up the LID of a number: %w", err)
		}
		s.lid = lid.User
	}
	return s, nil
}

func (s sender) identity() connectors.Identity {
	return connectors.Identity{Via: Name, UID: permissions.NoUID, Address: s.number, Alias: s.lid}
}

// e164 is a phone number in the configuration's form, or empty.
func e164(j types.JID) string {
	if j.Server != types.DefaultUserServer || j.User == "" || strings.Trim(j.User, "0123456789") != "" {
		return ""
	}
	return "+" + j.User
}

func address(number string) types.JID {
	return types.NewJID(strings.TrimPrefix(number, "+"), types.DefaultUserServer)
}

// watchedIdentities stores the identity keys of other people's devices and calls distrust before a changed key is used. The library
// accepts the new key by itself, reports it later, and would hand over the first message under it before that.
type watchedIdentities struct {
	store.IdentityStore
	distrust func(ctx context.Context, address string) error
}

func (w watchedIdentities) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	trusted, err := w.IdentityStore.IsTrustedIdentity(ctx, address, key)
	if err == nil && !trusted {
		err = w.distrust(ctx, address)
	}
	return trusted, err
}

// DeleteAllIdentities keeps the keys, which the library would delete on WhatsApp's report of a change, whatever the event
// handler did. So an account that could not be suspended then is suspended when it writes with its new keys.
func (w watchedIdentities) DeleteAllIdentities(context.Context, string) error { return nil }

// jidOf converts an address of the Signal library: the user, "_1" for a LID, and the device.
func jidOf(address string) types.JID {
	user, _, _ := strings.Cut(address, ":")
	if lid, is := strings.CutSuffix(user, "_1"); is {
		return types.NewJID(lid, types.HiddenUserServer)
	}
	return types.NewJID(user, types.DefaultUserServer)
}
