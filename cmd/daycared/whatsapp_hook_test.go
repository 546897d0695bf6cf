package main

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"os"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// Commands of scripts and crash loops find their WhatsApp server by these variables.
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

// whatsappRootKey is the root key that another process must trust to use this process's server.
func whatsappRootKey() string {
	key := whatsapptest.RootKey()
	return hex.EncodeToString(key[:])
}
