package whatsapptest

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// codeLetters are the letters of codes that people compare.
var codeLetters = base32.NewEncoding("123456789ABCDEFGHJKLMNPQRSTVWXYZ")

// passkeyLink is a link that the owner must confirm with the account's passkey, after scanning the QR code.
type passkeyLink struct {
	conn      *conn
	secret    []byte // of the QR code
	ref       string
	challenge []byte
	ours      *keys.KeyPair
	nonce     []byte

	companion  *waCompanionReg.CompanionEphemeralIdentity
	identity   []byte // that, as it was sent
	commitment []byte // to a nonce that the client tells later
	code       string
	done       bool
	link       *linking
	err        error
}

// AsksForPasskey lets WhatsApp ask for the account's passkey when a QR code is scanned, from now on. [Phone.Scans] then
// waits until the client has shown it.
func (p *Phone) AsksForPasskey() *Passkey {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.passkey = newPasskey()
	return p.server.passkey
}

// Code is the code that the phone shows while a client is linked with a passkey, for its owner to compare; "" before.
func (p *Phone) Code() string {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	for c := range p.server.conns {
		if c.passkey != nil && c.passkey.code != "" {
			return c.passkey.code
		}
	}
	return ""
}

// askPasskey asks a client for the passkey. The lock is held.
func (s *Server) askPasskey(c *conn, secret []byte) *passkeyLink {
	c.passkey = &passkeyLink{
		conn: c, secret: secret, ref: s.newID(), challenge: random(32), ours: keys.NewKeyPair(), nonce: random(32),
	}
	s.tell(c, "passkey_prologue_request", "passkey_request_options", s.passkey.asks(c.passkey.challenge))
	return c.passkey
}

// tell sends a client that is not linked a notification.
func (s *Server) tell(c *conn, kind, tag string, content []byte) {
	s.send(c, binary.Node{
		Tag: "notification", Attrs: binary.Attrs{"from": types.ServerJID, "id": s.newID(), "t": stamp(s.now()), "type": kind},
		Content: []binary.Node{{Tag: tag, Content: content}},
	})
}

// awaitPasskey waits until the client has linked itself.
func (s *Server) awaitPasskey(ctx context.Context, k *passkeyLink) error {
	if err := s.wait(ctx, func() bool { return k.done || k.conn.ended }); err != nil {
		return fmt.Errorf("confirm a link with a passkey: %w", err)
	}
	s.mu.Lock()
	l, err := k.link, k.err
	s.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Errorf("confirm a link with a passkey: %w", err)
	case l == nil:
		return errors.New("confirm a link with a passkey: the client went away")
	}
	return s.answered(ctx, l)
}

// takePasskey takes one step of the client's. The lock is held.
func (s *Server) takePasskey(c *conn, iq *binary.Node, step binary.Node) {
	k := c.passkey
	if k == nil || k.done {
		s.fail(c, iq, 400, "bad-request")
		return
	}
	var err error
	switch step.Tag {
	case "ref":
		s.result(c, iq, binary.Node{Tag: "ref", Content: []byte(k.ref)})
		return
	case "passkey_prologue":
		err = s.takePrologue(k, step)
	case "companion_nonce":
		err = k.compare(body(step))
	case "encrypted_pairing_request":
		k.link, err = s.takeRequest(k, body(step))
		k.done = err == nil
	}
	if err != nil {
		k.done, k.err = true, err
		s.fail(c, iq, 400, "bad-request")
		return
	}
	s.result(c, iq)
	if step.Tag == "passkey_prologue" {
		s.tell(c, "crsc_continuation", "primary_ephemeral_identity", marshal(&waCompanionReg.PrimaryEphemeralIdentity{
			PublicKey: k.ours.Pub[:], Nonce: k.nonce,
		}))
	}
}

// takePrologue takes the client's key, the owner's passkey, and the proof that the client is the one whose QR code was
// scanned.
func (s *Server) takePrologue(k *passkeyLink, prologue binary.Node) error {
	answer, _ := child(&prologue, "webauthn_assertion")
	if err := s.passkey.verify(k.challenge, body(answer)); err != nil {
		return err
	}
	payload, _ := child(&prologue, "prologue_payload")
	proof, _ := child(&prologue, "pairing_handoff_proof")
	key, err := hkdf.Key(sha256.New, k.secret, nil, "shortcake-passkey-handoff-v1", 32)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body(payload))
	if !hmac.Equal(mac.Sum(nil), body(proof)) {
		return errors.New("it is not the client whose code was scanned")
	}
	var p waCompanionReg.ProloguePayload
	k.companion = &waCompanionReg.CompanionEphemeralIdentity{}
	if err := errors.Join(proto.Unmarshal(body(payload), &p), proto.Unmarshal(p.GetCompanionEphemeralIdentity(), k.companion)); err != nil {
		return err
	}
	if k.companion.GetRef() != k.ref {
		return errors.New("it is of another link")
	}
	k.identity, k.commitment = p.GetCompanionEphemeralIdentity(), p.GetCommitment().GetHash()
	return nil
}

// compare checks the nonce that the client has committed itself to, and shows the code that follows from it.
func (k *passkeyLink) compare(nonce []byte) error {
	if hash := sha256.Sum256(join(k.identity, nonce)); !hmac.Equal(hash[:], k.commitment) {
		return errors.New("the client has changed its nonce")
	}
	digest := sha256.Sum256(join(nonce, k.ours.Pub[:]))
	code := make([]byte, 5)
	for i := range code {
		code[i] = k.nonce[i] ^ digest[i]
	}
	letters := codeLetters.EncodeToString(code)
	k.code = letters[:4] + "-" + letters[4:]
	return nil
}

// takeRequest opens what the client wants to be linked as, and links it.
func (s *Server) takeRequest(k *passkeyLink, raw []byte) (*linking, error) {
	var sealed waCompanionReg.EncryptedPairingRequest
	if err := proto.Unmarshal(raw, &sealed); err != nil || k.code == "" || len(sealed.GetIV()) != 12 {
		return nil, errors.Join(errors.New("it is no request"), err)
	}
	shared, err := agree(k.ours.Priv[:], k.companion.GetPublicKey())
	if err != nil {
		return nil, err
	}
	salt := fmt.Sprintf("Companion Pairing %d with ref %s", k.companion.GetDeviceType(), k.ref)
	key, err := hkdf.Key(sha256.New, shared, []byte(salt), "Pairing Information Encryption Key", 32)
	if err != nil {
		return nil, err
	}
	opener, err := newCounted(key)
	if err != nil {
		return nil, err
	}
	plain, err := opener.Open(nil, sealed.GetIV(), sealed.GetEncryptedPayload(), nil)
	if err != nil {
		return nil, err
	}
	var request waCompanionReg.PairingRequest
	if err := proto.Unmarshal(plain, &request); err != nil {
		return nil, err
	}
	return s.link(k.conn, request.GetCompanionPublicKey(), request.GetCompanionIdentityKey(), request.GetAdvSecret())
}
