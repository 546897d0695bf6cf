package whatsapptest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// codeLink is a link by a code that the client shows and a person types into the phone. Both sides wrap a key of their
// own with the code, so what they agree on from these is known to none who has not seen it.
type codeLink struct {
	conn    *conn
	number  string // whom the client asks to type the code
	ref     string
	wrapped []byte // the client's key
	ours    *keys.KeyPair
	shared  []byte
	done    bool
	link    *linking
	err     error
}

// WhatsApp takes names of browsers that it knows alone, with the system in brackets.
var displayName = regexp.MustCompile(`^(Chrome|Edge|Firefox|IE|Opera|Safari) \((Linux|Mac OS|Windows|Ubuntu|Android|Chrome OS)\)$`)

// takeHello takes a client's wish to be linked by a code. The lock is held.
func (s *Server) takeHello(c *conn, iq *binary.Node, hello binary.Node) {
	name, _ := child(&hello, "companion_platform_display")
	wrapped, _ := child(&hello, "link_code_pairing_wrapped_companion_ephemeral_pub")
	if !displayName.Match(body(name)) || len(body(wrapped)) != 80 || c.payload.GetDevicePairingData() == nil {
		s.fail(c, iq, 400, "bad-request")
		return
	}
	c.code = &codeLink{conn: c, number: address(hello, "jid").User, ref: s.newID(), wrapped: body(wrapped)}
	s.result(c, iq, binary.Node{Tag: "link_code_companion_reg", Content: []binary.Node{
		{Tag: "link_code_pairing_ref", Content: []byte(c.code.ref)},
	}})
}

// Types types the code that a client shows, and waits until the client has linked itself, or why it has not.
func (p *Phone) Types(ctx context.Context, code string) error {
	s := p.server
	code = strings.ToUpper(strings.ReplaceAll(code, "-", ""))
	s.mu.Lock()
	var k *codeLink
	for c := range s.conns {
		if c.code != nil && !c.ended && c.code.number == s.bot.pn.User {
			k = c.code
		}
	}
	err := errors.New("no client asks for this number")
	if k != nil {
		err = s.typeCode(k, code)
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("type a code: %w", err)
	}
	if err := s.wait(ctx, func() bool { return k.done || k.conn.ended }); err != nil {
		return fmt.Errorf("type a code: %w", err)
	}
	s.mu.Lock()
	l, err := k.link, k.err
	s.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Errorf("type a code: %w", err)
	case l == nil:
		return errors.New("type a code: the client went away")
	}
	return s.answered(ctx, l)
}

// typeCode sends the client the phone's key. The lock is held.
func (s *Server) typeCode(k *codeLink, code string) error {
	theirs, err := wrap(code, k.wrapped[:32], k.wrapped[32:48], k.wrapped[48:])
	if err != nil {
		return err
	}
	k.ours = keys.NewKeyPair()
	if k.shared, err = agree(k.ours.Priv[:], theirs); err != nil {
		return err
	}
	salt, iv := random(32), random(16)
	ours, err := wrap(code, salt, iv, k.ours.Pub[:])
	if err != nil {
		return err
	}
	s.send(k.conn, binary.Node{
		Tag: "notification", Attrs: binary.Attrs{
			"from": types.ServerJID, "id": s.newID(), "t": stamp(s.now()), "type": "link_code_companion_reg",
		},
		Content: []binary.Node{{Tag: "link_code_companion_reg", Attrs: binary.Attrs{"stage": "primary_hello"}, Content: []binary.Node{
			{Tag: "link_code_pairing_ref", Content: []byte(k.ref)},
			{Tag: "link_code_pairing_wrapped_primary_ephemeral_pub", Content: join(salt, iv, ours)},
			{Tag: "primary_identity_pub", Content: s.bot.phone.identity.Pub[:]},
		}}},
	})
	return nil
}

// takeFinish takes what the client sealed with the shared secret, and links it. The lock is held.
func (s *Server) takeFinish(c *conn, iq *binary.Node, finish binary.Node) {
	k := c.code
	ref, _ := child(&finish, "link_code_pairing_ref")
	if k == nil || k.shared == nil || string(body(ref)) != k.ref {
		s.fail(c, iq, 400, "bad-request")
		return
	}
	s.result(c, iq)
	c.code, k.done = nil, true
	sealed, _ := child(&finish, "link_code_pairing_wrapped_key_bundle")
	identity, _ := child(&finish, "companion_identity_public")
	secret, err := k.secret(body(sealed), body(identity), s.bot.phone.identity)
	if err == nil {
		k.link, err = s.link(c, c.static, body(identity), secret)
	}
	k.err = err
}

// secret is what the client seals its identity with from now on.
func (k *codeLink) secret(sealed, identity []byte, owner *keys.KeyPair) ([]byte, error) {
	if len(sealed) < 44 {
		return nil, errors.New("the client's keys are too short")
	}
	key, err := hkdf.Key(sha256.New, k.shared, sealed[:32], "link_code_pairing_key_bundle_encryption_key", 32)
	if err != nil {
		return nil, err
	}
	opener, err := newCounted(key)
	if err != nil {
		return nil, err
	}
	plain, err := opener.Open(nil, sealed[32:44], sealed[44:], nil)
	if err != nil || len(plain) != 96 {
		return nil, errors.New("it is not the code that the client shows")
	}
	both, err := agree(owner.Priv[:], identity)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, join(k.shared, both, plain[64:]), nil, "adv_secret", 32)
}

// wrap wraps a key with a code, and unwraps it.
func wrap(code string, salt, iv, key []byte) ([]byte, error) {
	secret, err := pbkdf2.Key(sha256.New, code, salt, 2<<16, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(key))
	cipher.NewCTR(block, iv).XORKeyStream(out, key)
	return out, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
