package whatsapptest

import (
	"context"

	"go.mau.fi/libsignal/ecc"
	groups "go.mau.fi/libsignal/groups/state/record"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/serialize"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/libsignal/state/store"
	"go.mau.fi/whatsmeow/util/keys"
)

var serializer = serialize.NewProtoBufSerializer()

// vault is the memory of a phone's Signal protocol. What the library never asks a store for is not there, and panics.
// It is guarded by the server's lock.
type vault struct {
	store.SignalProtocol // nil

	identity     *keys.KeyPair
	registration uint32
	signed       *keys.PreKey
	preKeys      map[uint32]*keys.PreKey
	lastPreKey   uint32
	sessions     map[string][]byte
	senderKeys   map[string][]byte
}

func newVault(registration uint32) *vault {
	v := &vault{
		identity: keys.NewKeyPair(), registration: registration,
		preKeys: map[uint32]*keys.PreKey{}, sessions: map[string][]byte{}, senderKeys: map[string][]byte{},
	}
	v.signed = v.identity.CreateSignedPreKey(1)
	return v
}

// newPreKey is a key for one who wants to begin a session.
func (v *vault) newPreKey() *keys.PreKey {
	v.lastPreKey++
	key := keys.NewPreKey(v.lastPreKey)
	v.preKeys[key.KeyID] = key
	return key
}

func (v *vault) GetIdentityKeyPair() *identity.KeyPair {
	pair := signalPair(v.identity)
	return identity.NewKeyPair(identity.NewKey(pair.PublicKey()), pair.PrivateKey())
}

func (v *vault) GetLocalRegistrationID() uint32 { return v.registration }

// Phones of people trust whoever writes to them: it is the client whose trust is tested.
func (v *vault) SaveIdentity(context.Context, *protocol.SignalAddress, *identity.Key) error {
	return nil
}

func (v *vault) IsTrustedIdentity(context.Context, *protocol.SignalAddress, *identity.Key) (bool, error) {
	return true, nil
}

func (v *vault) LoadPreKey(_ context.Context, id uint32) (*record.PreKey, error) {
	key := v.preKeys[id]
	if key == nil {
		return nil, nil
	}
	return record.NewPreKey(id, signalPair(&key.KeyPair), nil), nil
}

func (v *vault) RemovePreKey(_ context.Context, id uint32) error {
	delete(v.preKeys, id)
	return nil
}

func (v *vault) LoadSignedPreKey(_ context.Context, id uint32) (*record.SignedPreKey, error) {
	if id != v.signed.KeyID {
		return nil, nil
	}
	return record.NewSignedPreKey(id, 0, signalPair(&v.signed.KeyPair), *v.signed.Signature, nil), nil
}

func (v *vault) LoadSession(_ context.Context, of *protocol.SignalAddress) (*record.Session, error) {
	if raw := v.sessions[of.String()]; raw != nil {
		return record.NewSessionFromBytes(raw, serializer.Session, serializer.State)
	}
	return record.NewSession(serializer.Session, serializer.State), nil
}

func (v *vault) StoreSession(_ context.Context, of *protocol.SignalAddress, r *record.Session) error {
	v.sessions[of.String()] = r.Serialize()
	return nil
}

func (v *vault) ContainsSession(_ context.Context, of *protocol.SignalAddress) (bool, error) {
	return v.sessions[of.String()] != nil, nil
}

func (v *vault) LoadSenderKey(_ context.Context, of *protocol.SenderKeyName) (*groups.SenderKey, error) {
	if raw := v.senderKeys[of.GroupID()]; raw != nil {
		return groups.NewSenderKeyFromBytes(raw, serializer.SenderKeyRecord, serializer.SenderKeyState)
	}
	return groups.NewSenderKey(serializer.SenderKeyRecord, serializer.SenderKeyState), nil
}

func (v *vault) StoreSenderKey(_ context.Context, of *protocol.SenderKeyName, r *groups.SenderKey) error {
	v.senderKeys[of.GroupID()] = r.Serialize()
	return nil
}

func signalPair(k *keys.KeyPair) *ecc.ECKeyPair {
	return ecc.NewECKeyPair(ecc.NewDjbECPublicKey(*k.Pub), ecc.NewDjbECPrivateKey(*k.Priv))
}
