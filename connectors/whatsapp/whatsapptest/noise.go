package whatsapptest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// noise is the state of a handshake Noise_XX_25519_AESGCM_SHA256, on the side that is called (noiseprotocol.org).
type noise struct {
	hash, chain []byte
	key         *counted
}

// counted is a cipher whose nonce is the count of messages.
type counted struct {
	cipher.AEAD
	n uint32
}

func newCounted(key []byte) (*counted, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	return &counted{AEAD: gcm}, err
}

func (c *counted) nonce() []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint32(nonce[8:], c.n)
	c.n++
	return nonce
}

func (c *counted) seal(plain, bound []byte) []byte { return c.Seal(nil, c.nonce(), plain, bound) }

func (c *counted) open(sealed, bound []byte) ([]byte, error) {
	return c.Open(nil, c.nonce(), sealed, bound)
}

func newNoise() *noise {
	n := &noise{hash: []byte(socket.NoiseStartPattern)}
	n.chain = n.hash
	n.mixHash(socket.WAConnHeader)
	return n
}

func (n *noise) mixHash(b []byte) {
	sum := sha256.Sum256(join(n.hash, b))
	n.hash = sum[:]
}

// mixKey mixes what our private and their public key have in common.
func (n *noise) mixKey(ours *keys.KeyPair, theirs []byte) error {
	shared, err := agree(ours.Priv[:], theirs)
	if err != nil {
		return err
	}
	out, err := hkdf.Key(sha256.New, shared, n.chain, "", 64)
	if err != nil {
		return err
	}
	n.chain = out[:32]
	n.key, err = newCounted(out[32:])
	return err
}

func (n *noise) seal(plain []byte) []byte {
	sealed := n.key.seal(plain, n.hash)
	n.mixHash(sealed)
	return sealed
}

func (n *noise) open(sealed []byte) ([]byte, error) {
	plain, err := n.key.open(sealed, n.hash)
	n.mixHash(sealed)
	return plain, err
}

// split is the ciphers of the two directions after the handshake.
func (n *noise) split() (fromClient, toClient *counted, err error) {
	out, err := hkdf.Key(sha256.New, nil, n.chain, "", 64)
	if err != nil {
		return nil, nil, err
	}
	fromClient, errFrom := newCounted(out[:32])
	toClient, errTo := newCounted(out[32:])
	return fromClient, toClient, errors.Join(errFrom, errTo)
}

// agree is the secret of X25519.
func agree(private, public []byte) ([]byte, error) {
	ours, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		return nil, err
	}
	theirs, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	return ours.ECDH(theirs)
}

// greeted is what a handshake told of the client.
type greeted struct {
	static  []byte // its Noise key
	payload *waWa6.ClientPayload
}

// greet does the handshake over f, and returns the client and the ciphers of the two directions.
func (a *authority) greet(f *frames) (*greeted, *counted, *counted, error) {
	first, err := f.handshake()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("client hello: %w", err)
	}
	theirs, ours, n := first.GetClientHello().GetEphemeral(), keys.NewKeyPair(), newNoise()
	n.mixHash(theirs)
	n.mixHash(ours.Pub[:])
	if err := n.mixKey(ours, theirs); err != nil {
		return nil, nil, nil, err
	}
	static := n.seal(a.server.Pub[:])
	if err := n.mixKey(a.server, theirs); err != nil {
		return nil, nil, nil, err
	}
	if err := f.write(marshal(&waWa6.HandshakeMessage{ServerHello: &waWa6.HandshakeMessage_ServerHello{
		Ephemeral: ours.Pub[:], Static: static, Payload: n.seal(a.chain),
	}})); err != nil {
		return nil, nil, nil, err
	}
	last, err := f.handshake()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("client finish: %w", err)
	}
	client := &greeted{payload: &waWa6.ClientPayload{}}
	if client.static, err = n.open(last.GetClientFinish().GetStatic()); err != nil {
		return nil, nil, nil, fmt.Errorf("client key: %w", err)
	}
	if err := n.mixKey(ours, client.static); err != nil {
		return nil, nil, nil, err
	}
	payload, err := n.open(last.GetClientFinish().GetPayload())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("client payload: %w", err)
	}
	if err := proto.Unmarshal(payload, client.payload); err != nil {
		return nil, nil, nil, fmt.Errorf("client payload: %w", err)
	}
	fromClient, toClient, err := n.split()
	return client, fromClient, toClient, err
}
