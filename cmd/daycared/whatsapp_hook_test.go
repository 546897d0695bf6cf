package main

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"os"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// The commands that scripts run find the WhatsApp of their script by these variables; see failpoints.go for the builds
// of crash loops. No other build reads them.
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
			return (&net.Dialer{}).DialContext(ctx, "tcp", os.Getenv(whatsappAddr))
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
