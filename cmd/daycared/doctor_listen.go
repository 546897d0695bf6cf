package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/cmd/daycared/config"
)

// expiresSoon is how long before its end a certificate is worth a note: a renewal that works is long done by then.
const expiresSoon = 7 * 24 * time.Hour

// examineListener looks at the listener for agents elsewhere, if there is to be one.
func examineListener(ctx context.Context, a config.API) (findings []finding) {
	if a.Listen == "" {
		return nil
	}
	scheme := "http"
	if a.TLSCertFile != "" {
		scheme = "https"
		loaded, err := api.LoadCertificate(a.TLSCertFile, a.TLSKeyFile)
		if err != nil {
			return []finding{{"wrong", err.Error(), "make both readable for the daemon's account, or name others under api"}}
		}
		switch left := time.Until(loaded.Leaf.NotAfter); {
		case left <= 0:
			findings = append(findings, finding{"wrong", "the certificate " + a.TLSCertFile + " is over", "renew it; it is read again by itself"})
		case left < expiresSoon:
			findings = append(findings, finding{"note",
				fmt.Sprintf("the certificate %s is over in %d days", a.TLSCertFile, int(left.Hours()/24)), "renew it; it is read again by itself"})
		}
	}
	host, port, _ := net.SplitHostPort(a.Listen)
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return append(findings, finding{"note", "nobody answers at api.listen, " + a.Listen,
			"start the daemon, or start it again, with: daycared serve"})
	}
	_ = c.Close()
	return append(findings, finding{"ok", "agents elsewhere are answered at " + scheme + "://" + net.JoinHostPort(host, port), ""})
}
