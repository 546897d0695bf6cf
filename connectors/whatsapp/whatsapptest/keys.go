package whatsapptest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/util/optional"
	wa "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// fewKeys is how few keys of the linked device are left when the server asks for more.
const fewKeys = 5

// takeKeys takes the keys by which others begin sessions with the linked device. The lock is held.
func (s *Server) takeKeys(c *conn, iq *wa.Node) {
	l := s.linked
	id, _ := child(iq, "identity")
	registration, _ := child(iq, "registration")
	signed, errSigned := keyOf(iq.GetChildByTag("skey"))
	if errSigned != nil || len(body(registration)) != 4 || !bytes.Equal(body(id), l.identity) || signed.Signature == nil ||
		!ecc.VerifySignature(ecc.NewDjbECPublicKey([32]byte(l.identity)), join([]byte{ecc.DjbType}, signed.Pub[:]), *signed.Signature) {
		s.violate("the keys of the device: %v", errSigned)
		s.fail(c, iq, 406, "not-acceptable")
		return
	}
	list := iq.GetChildByTag("list")
	for _, node := range list.GetChildren() {
		key, err := keyOf(node)
		if err != nil {
			s.violate("the keys of the device: %v", err)
			continue
		}
		l.preKeys = append(l.preKeys, key)
	}
	l.registration, l.signed = body(registration), signed
	s.result(c, iq)
}

// bundle is what one needs to begin a session with the linked device, nil where it has not told yet. The lock is held.
func (s *Server) bundle() *prekey.Bundle {
	l := s.linked
	if l == nil || l.signed == nil {
		return nil
	}
	once, onceID := ecc.ECPublicKeyable(nil), optional.NewEmptyUint32()
	if len(l.preKeys) > 0 {
		once, onceID = ecc.NewDjbECPublicKey(*l.preKeys[0].Pub), optional.NewOptionalUint32(l.preKeys[0].KeyID)
		l.preKeys = l.preKeys[1:]
	}
	if len(l.preKeys) == fewKeys-1 {
		s.deliver(wa.Node{
			Tag:     "notification",
			Attrs:   wa.Attrs{"from": types.ServerJID, "id": s.newID(), "t": stamp(s.now()), "type": "encrypt"},
			Content: []wa.Node{{Tag: "count", Attrs: wa.Attrs{"value": strconv.Itoa(len(l.preKeys))}}},
		})
	}
	return prekey.NewBundle(binary.BigEndian.Uint32(l.registration), uint32(l.device), onceID, l.signed.KeyID,
		once, ecc.NewDjbECPublicKey(*l.signed.Pub), *l.signed.Signature,
		identity.NewKey(ecc.NewDjbECPublicKey([32]byte(l.identity))))
}

// giveKeys gives the client what it needs to begin sessions with the phones of people.
func (s *Server) giveKeys(c *conn, iq *wa.Node, asked wa.Node) {
	var users []wa.Node
	for _, user := range asked.GetChildren() {
		jid := address(user, "jid")
		a := s.accounts[jid.User]
		answer := wa.Node{Tag: "user", Attrs: wa.Attrs{"jid": jid}}
		if a == nil || a.gone || jid.Device != 0 {
			answer.Content = []wa.Node{{Tag: "error", Attrs: wa.Attrs{"code": "404", "text": "item-not-found"}}}
		} else {
			answer.Content = append([]wa.Node{{Tag: "registration", Content: a.phone.number()}}, a.phone.keyNodes()...)
		}
		users = append(users, answer)
	}
	s.result(c, iq, wa.Node{Tag: "list", Content: users})
}

// keyNodes are the keys by which the client begins a session with a phone.
func (v *vault) keyNodes() []wa.Node {
	return []wa.Node{
		{Tag: "type", Content: []byte{ecc.DjbType}},
		{Tag: "identity", Content: v.identity.Pub[:]},
		keyNode(v.newPreKey()),
		keyNode(v.signed),
	}
}

// number is the registration of a phone.
func (v *vault) number() []byte { return binary.BigEndian.AppendUint32(nil, v.registration) }

func keyNode(k *keys.PreKey) wa.Node {
	content := []wa.Node{
		{Tag: "id", Content: binary.BigEndian.AppendUint32(nil, k.KeyID)[1:]}, {Tag: "value", Content: k.Pub[:]},
	}
	if k.Signature == nil {
		return wa.Node{Tag: "key", Content: content}
	}
	return wa.Node{Tag: "skey", Content: append(content, wa.Node{Tag: "signature", Content: k.Signature[:]})}
}

// keyOf is the key in a stanza.
func keyOf(node wa.Node) (*keys.PreKey, error) {
	id, public, signature := node.GetChildByTag("id"), node.GetChildByTag("value"), node.GetChildByTag("signature")
	if len(body(id)) != 3 || len(body(public)) != 32 {
		return nil, errors.New("a key has not the length of one")
	}
	k := &keys.PreKey{KeyID: binary.BigEndian.Uint32(join([]byte{0}, body(id)))}
	k.Pub = (*[32]byte)(bytes.Clone(body(public)))
	if len(body(signature)) == 64 {
		k.Signature = (*[64]byte)(bytes.Clone(body(signature)))
	}
	return k, nil
}

// keysOf are the keys that a client sends along with its wish to be sent a message again, nil where there are none.
func (s *Server) keysOf(receipt *wa.Node) *prekey.Bundle {
	sent, ok := child(receipt, "keys")
	registration, _ := child(receipt, "registration")
	if !ok || len(body(registration)) != 4 {
		return nil
	}
	id := sent.GetChildByTag("identity")
	once, errOnce := keyOf(sent.GetChildByTag("key"))
	signed, errSigned := keyOf(sent.GetChildByTag("skey"))
	if errOnce != nil || errSigned != nil || signed.Signature == nil || !bytes.Equal(body(id), s.linked.identity) {
		s.violate("the keys of a receipt %s", receipt.String())
		return nil
	}
	return prekey.NewBundle(binary.BigEndian.Uint32(body(registration)), uint32(s.linked.device),
		optional.NewOptionalUint32(once.KeyID), signed.KeyID, ecc.NewDjbECPublicKey(*once.Pub),
		ecc.NewDjbECPublicKey(*signed.Pub), *signed.Signature, identity.NewKey(ecc.NewDjbECPublicKey([32]byte(body(id)))))
}
