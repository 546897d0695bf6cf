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

// sender is who sent a message: the phone number, and the LID, by which WhatsApp hides numbers, where it is known.
type sender struct {
	number string // E.164
	lid    string
}

// known finds the number of whoever sent: WhatsApp says it with the message, or said before which LID it has. There is
// none where it did neither, and then nobody has sent anything. The other name only adds
// what the sender's does not say.
func known(ctx context.Context, lids store.LIDStore, from types.MessageSource) (s sender, err error) {
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
			return s, fmt.Errorf("look up whose LID this is: %w", err)
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

// identity is who that is to the engine.
func (s sender) identity() connectors.Identity {
	return connectors.Identity{Via: Name, UID: permissions.NoUID, WhatsApp: s.number, Alias: s.lid}
}

// e164 is a phone number as the configuration has it; empty for what is none.
func e164(j types.JID) string {
	if j.Server != types.DefaultUserServer || j.User == "" || strings.Trim(j.User, "0123456789") != "" {
		return ""
	}
	return "+" + j.User
}

// address is where somebody with that number is written to.
func address(number string) types.JID {
	return types.NewJID(strings.TrimPrefix(number, "+"), types.DefaultUserServer)
}

// watched is where the keys of other people's devices are kept. When one is another than it was, distrust is called
// before anything is done with it: the library goes on with the new key by itself, tells of that only later, and would
// hand over what was written with it first.
type watched struct {
	store.IdentityStore
	distrust func(ctx context.Context, address string) error
}

// IsTrustedIdentity is [store.IdentityStore].
func (w watched) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	trusted, err := w.IdentityStore.IsTrustedIdentity(ctx, address, key)
	if err == nil && !trusted {
		err = w.distrust(ctx, address)
	}
	return trusted, err
}

// DeleteAllIdentities keeps the keys, which the library would forget when WhatsApp says that somebody has others: it goes
// on whatever became of the news. So whoever could not be suspended then is when they write with the new ones.
func (w watched) DeleteAllIdentities(context.Context, string) error { return nil }

// jidOf is whose address that is, in the form of the Signal library: the user, for a LID "_1", and the device.
func jidOf(address string) types.JID {
	user, _, _ := strings.Cut(address, ":")
	if lid, is := strings.CutSuffix(user, "_1"); is {
		return types.NewJID(lid, types.HiddenUserServer)
	}
	return types.NewJID(user, types.DefaultUserServer)
}
