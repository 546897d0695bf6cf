package main

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"os"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// The commands that scripts and crash loops run find their WhatsApp by these variables.
const (
	whatsappAddr = "WHATSAPPTEST_ADDR"
	whatsappRoot = "WHATSAPPTEST_ROOT"
)

func init() {
	whatsappHTTP = func() *http.Client {
		if os.Getenv(whatsappAddr) == "" {
			return nil
		}
		client, err := whatsapptest.Reach(os.Getenv(whatsappRoot), func(ctx context.Context) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", os.Getenv(whatsappAddr))
			return failingConn{conn}, err
		})
		if err != nil {
			panic(err)
		}
		return client
	}
}

// whatsappRootKey is what a process of its own must trust to reach a server of this one.
func whatsappRootKey() string {
	key := whatsapptest.RootKey()
	return hex.EncodeToString(key[:])
}
