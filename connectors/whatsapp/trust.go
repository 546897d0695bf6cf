package whatsapp

import (
	"context"
	"strings"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

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
