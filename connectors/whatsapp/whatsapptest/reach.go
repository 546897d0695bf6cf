package whatsapptest

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/http"

	"go.mau.fi/whatsmeow"
)

// Reach makes this process trust the servers of another one, whose [RootKey] is root in hexadecimal, and returns what
// leads there: every address is dialled by dial, without TLS.
func Reach(root string, dial func(ctx context.Context) (net.Conn, error)) (*http.Client, error) {
	key, err := hex.DecodeString(root)
	if err != nil || len(key) != len(whatsmeow.WACertPubKey) {
		return nil, errors.New("reach a WhatsApp server for tests: the root key is not 32 bytes in hexadecimal")
	}
	copy(whatsmeow.WACertPubKey[:], key)
	there := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	return &http.Client{Transport: &http.Transport{DialContext: there, DialTLSContext: there}}, nil
}
