package whatsapptest

import (
	"sync"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCert"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// authority is the chain of certificates by which a client knows the server: root, intermediate, and the server's own.
type authority struct {
	root, server *keys.KeyPair
	chain        []byte
}

// theAuthority is one for the whole process: what a client trusts is a variable of its library.
var theAuthority = sync.OnceValue(newAuthority)

// RootKey is the public key that a client in a process of its own must trust, in place of WhatsApp's.
func RootKey() [32]byte { return *theAuthority().root.Pub }

// trust makes the clients of this process trust the servers of this package.
var trust = sync.OnceFunc(func() { whatsmeow.WACertPubKey = RootKey() })

func newAuthority() *authority {
	a := &authority{root: keys.NewKeyPair(), server: keys.NewKeyPair()}
	middle := keys.NewKeyPair()
	// Issuer 0 is the root. A client looks at the dates with its own clock.
	a.chain = marshal(&waCert.CertChain{
		Intermediate: certify(a.root, middle, 7, 0),
		Leaf:         certify(middle, a.server, 8, 7),
	})
	return a
}

func certify(by, key *keys.KeyPair, serial, issuer uint32) *waCert.CertChain_NoiseCertificate {
	details := marshal(&waCert.CertChain_NoiseCertificate_Details{
		Serial: proto.Uint32(serial), IssuerSerial: proto.Uint32(issuer), Key: key.Pub[:],
		NotBefore: proto.Uint64(uint64(time.Now().Add(-24 * time.Hour).Unix())),
		NotAfter:  proto.Uint64(uint64(time.Now().Add(365 * 24 * time.Hour).Unix())),
	})
	signature := sign(by, details)
	return &waCert.CertChain_NoiseCertificate{Details: details, Signature: signature}
}

// sign is a signature of all parts, one after the other.
func sign(by *keys.KeyPair, parts ...[]byte) []byte {
	signature := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*by.Priv), join(parts...))
	return signature[:]
}

// join is all parts, one after the other, in memory of their own.
func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// marshal is a message of ours on the wire. Messages of ours are complete, so there is no error.
func marshal(m proto.Message) []byte {
	raw, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}
