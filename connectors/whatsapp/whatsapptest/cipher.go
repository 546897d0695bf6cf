package whatsapptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.mau.fi/libsignal/groups"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// errNoSession says that there is no session to encrypt with.
var errNoSession = errors.New("no session")

// knows reports whether there is a session with a device.
func (v *vault) knows(device types.JID) bool {
	return v.sessions[device.SignalAddress().String()] != nil
}

// meet begins a session with a device by its keys.
func (v *vault) meet(device types.JID, keys *prekey.Bundle) error {
	return session.NewBuilderFromSignal(v, device.SignalAddress(), serializer).ProcessBundle(context.Background(), keys)
}

func (v *vault) with(device types.JID) *session.Cipher {
	return session.NewCipher(session.NewBuilderFromSignal(v, device.SignalAddress(), serializer), device.SignalAddress())
}

// encrypt is a message for a device that there is a session with.
func (v *vault) encrypt(device types.JID, m *waE2E.Message) (binary.Node, error) {
	if !v.knows(device) {
		return binary.Node{}, errNoSession
	}
	sealed, err := v.with(device).Encrypt(context.Background(), pad(marshal(m)))
	if err != nil {
		return binary.Node{}, err
	}
	kind := "msg"
	if sealed.Type() == protocol.PREKEY_TYPE {
		kind = "pkmsg"
	}
	return encNode(kind, sealed.Serialize()), nil
}

// decrypt is a message of a device.
func (v *vault) decrypt(device types.JID, enc binary.Node) (*waE2E.Message, error) {
	var plain []byte
	switch kind := text(enc, "type"); kind {
	case "pkmsg":
		sealed, err := protocol.NewPreKeySignalMessageFromBytes(body(enc), serializer.PreKeySignalMessage, serializer.SignalMessage)
		if err != nil {
			return nil, err
		}
		if plain, err = v.with(device).DecryptMessage(context.Background(), sealed); err != nil {
			return nil, err
		}
	case "msg":
		sealed, err := protocol.NewSignalMessageFromBytes(body(enc), serializer.SignalMessage)
		if err != nil {
			return nil, err
		}
		if plain, err = v.with(device).Decrypt(context.Background(), sealed); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("encrypted as %q", kind)
	}
	plain, err := unpad(plain)
	if err != nil {
		return nil, err
	}
	var m waE2E.Message
	return &m, proto.Unmarshal(plain, &m)
}

// encryptFor is a message for a group, and what its members need to read it.
func (v *vault) encryptFor(group, sender types.JID, m *waE2E.Message) (enc binary.Node, key *waE2E.Message, err error) {
	ctx, name := context.Background(), protocol.NewSenderKeyName(group.String(), sender.SignalAddress())
	builder := groups.NewGroupSessionBuilder(v, serializer)
	share, err := builder.Create(ctx, name)
	if err != nil {
		return binary.Node{}, nil, err
	}
	sealed, err := groups.NewGroupCipher(builder, name, v).Encrypt(ctx, pad(marshal(m)))
	if err != nil {
		return binary.Node{}, nil, err
	}
	key = &waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{
		GroupID: proto.String(group.String()), AxolotlSenderKeyDistributionMessage: share.Serialize(),
	}}
	return encNode("skmsg", sealed.SignedSerialize()), key, nil
}

func encNode(kind string, sealed []byte) binary.Node {
	return binary.Node{Tag: "enc", Attrs: binary.Attrs{"v": "2", "type": kind}, Content: sealed}
}

// pad is the padding of WhatsApp: as many bytes as each of them says, at most 15. The client's is random.
func pad(plain []byte) []byte { return append(plain, bytes.Repeat([]byte{7}, 7)...) }

func unpad(plain []byte) ([]byte, error) {
	if len(plain) == 0 {
		return nil, errors.New("an empty message")
	}
	n := int(plain[len(plain)-1])
	if n == 0 || n > 15 || n > len(plain) || !bytes.HasSuffix(plain, bytes.Repeat([]byte{byte(n)}, n)) {
		return nil, errors.New("a message is not padded as WhatsApp has it")
	}
	return plain[:len(plain)-n], nil
}
