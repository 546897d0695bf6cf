package whatsapptest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// Phone is the phone of the account that a client is linked to, in the hands of its owner. It is safe for concurrent
// use.
type Phone struct{ server *Server }

// Phone is the account's phone.
func (s *Server) Phone() *Phone { return &Phone{s} }

// linking is a device that is being linked.
type linking struct {
	conn      *conn
	companion *companion
	details   []byte // of its identity, as the phone signed them
	done      bool
	err       error
}

// Unlinks removes the linked device. A client that is connected hears it at once, another one when it logs in.
func (p *Phone) Unlinks() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.unlink()
}

// Linked reports whether a client is linked.
func (p *Phone) Linked() bool {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.server.linked != nil
}

// Scans scans a QR code, and waits until the client has linked itself, or why it has not. A client that was linked
// before no longer is.
func (p *Phone) Scans(ctx context.Context, qr string) error {
	_, code, _ := strings.Cut(qr, "#")
	parts := strings.Split(code, ",")
	if len(parts) != 5 {
		return fmt.Errorf("scan a QR code: it has %d parts, not 5", len(parts))
	}
	noise, errNoise := base64.StdEncoding.DecodeString(parts[1])
	identity, errIdentity := base64.StdEncoding.DecodeString(parts[2])
	secret, errSecret := base64.StdEncoding.DecodeString(parts[3])
	if err := errors.Join(errNoise, errIdentity, errSecret); err != nil {
		return fmt.Errorf("scan a QR code: %w", err)
	}
	s := p.server
	s.mu.Lock()
	c := s.connOf(parts[0])
	var l *linking
	var k *passkeyLink
	err := errors.New("it has expired")
	switch {
	case c != nil && s.passkey != nil:
		k, err = s.askPasskey(c, secret), nil
	case c != nil:
		l, err = s.link(c, noise, identity, secret)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Errorf("scan a QR code: %w", err)
	case k != nil:
		return s.awaitPasskey(ctx, k)
	}
	return s.answered(ctx, l)
}

// answered waits until the client has answered.
func (s *Server) answered(ctx context.Context, l *linking) error {
	if err := s.wait(ctx, func() bool { return l.done || l.conn.ended }); err != nil {
		return fmt.Errorf("link a client: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.done {
		return errors.New("link a client: it went away")
	}
	return l.err
}

// link sends a client what makes it a device of the account, signed by the phone and sealed with the secret that the
// client told the phone. The lock is held.
func (s *Server) link(c *conn, noise, identity, secret []byte) (*linking, error) {
	if !bytes.Equal(noise, c.static) || !bytes.Equal(identity, c.payload.GetDevicePairingData().GetEIdent()) {
		return nil, errors.New("it is not of the client that shows it")
	}
	s.lastDevice++
	owner := s.bot.phone.identity
	l := &linking{
		conn: c, companion: &companion{device: s.lastDevice, noise: noise, identity: identity},
		details: marshal(&waAdv.ADVDeviceIdentity{
			RawID: proto.Uint32(1), Timestamp: proto.Uint64(uint64(s.now().Unix())), KeyIndex: proto.Uint32(uint32(s.lastDevice)),
		}),
	}
	signed := marshal(&waAdv.ADVSignedDeviceIdentity{
		Details: l.details, AccountSignatureKey: owner.Pub[:],
		AccountSignature: sign(owner, whatsmeow.AdvAccountSignaturePrefix, l.details, identity),
	})
	mac := hmac.New(sha256.New, secret)
	mac.Write(signed)
	s.linking = l
	s.send(c, binary.Node{
		Tag: "iq", Attrs: binary.Attrs{"from": types.ServerJID, "type": "set", "id": s.newID(), "xmlns": "md", "t": stamp(s.now())},
		Content: []binary.Node{{Tag: "pair-success", Content: []binary.Node{
			{Tag: "device-identity", Content: marshal(&waAdv.ADVSignedDeviceIdentityHMAC{Details: signed, HMAC: mac.Sum(nil)})},
			{Tag: "device", Attrs: binary.Attrs{
				"jid": withDevice(s.bot.pn, s.lastDevice), "lid": withDevice(s.bot.lid, s.lastDevice),
			}},
			{Tag: "platform", Attrs: binary.Attrs{"name": "android"}},
		}}},
	})
	return l, nil
}

// takeLinked takes the client's answer to that. The lock is held.
func (s *Server) takeLinked(c *conn, node *binary.Node) {
	l := s.linking
	if l == nil || l.conn != c {
		return // the answer to the offer of QR codes
	}
	if refused, ok := child(node, "error"); ok {
		s.linking = nil
		l.done, l.err = true, fmt.Errorf("the client refused to be linked: %s %s", text(refused, "code"), text(refused, "text"))
		return
	}
	signed, ok := child(node, "pair-device-sign", "device-identity")
	if !ok {
		return
	}
	var id waAdv.ADVSignedDeviceIdentity
	owner := s.bot.phone.identity.Pub[:]
	err := proto.Unmarshal(body(signed), &id)
	if err != nil || len(id.GetDeviceSignature()) != 64 || !bytes.Equal(id.GetDetails(), l.details) ||
		!ecc.VerifySignature(ecc.NewDjbECPublicKey([32]byte(l.companion.identity)),
			join(whatsmeow.AdvDeviceSignaturePrefix, l.details, l.companion.identity, owner), [64]byte(id.GetDeviceSignature())) {
		s.violate("a linked device signs itself wrongly: %v", err)
		return
	}
	if s.linked != nil {
		s.unlink()
	}
	s.linked, s.linking = l.companion, nil
	l.done = true
	s.send(c, binary.Node{Tag: "stream:error", Attrs: binary.Attrs{"code": "515"}})
	s.bye(c, 10*lingering) // the client ends it itself, and comes back
}
