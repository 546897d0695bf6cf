package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// dialWithin is how long a connection to a daemon elsewhere may take to come about.
const dialWithin = 10 * time.Second

// errElsewhere is that a name which stands for this machine leads to another one.
var errElsewhere = errors.New("the name leads away from this machine, and a token would go there in the clear")

// NewRemoteClient makes a client of the daemon at a URL: https, or http on this very machine, so that what it presents
// cannot be read on the way. It follows no redirect. It does not connect yet. The error says what is wrong with the URL.
func NewRemoteClient(address string) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Opaque != "", u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not the URL of a daemon; write it as in https://daycared.example", address)
	case u.User != nil:
		return nil, errors.New("a URL is no place for a secret; write the token into a file")
	case u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("%q has more than a host and a path; write it as in https://daycared.example", address)
	case u.Scheme == "http" && !thisMachine(u.Hostname()):
		return nil, fmt.Errorf("%s would carry the token in the clear; write https://%s", address, u.Host+u.Path)
	}
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialWithin}).DialContext,
		TLSHandshakeTimeout: dialWithin,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		Proxy:               http.ProxyFromEnvironment,
	}
	if u.Scheme == "http" {
		t.DialContext = (&net.Dialer{Timeout: dialWithin, ControlContext: onlyHere}).DialContext
		t.Proxy = nil
	}
	return newClient(address, strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), t), nil
}

func thisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// onlyHere refuses to connect to another machine, whatever a name server says.
func onlyHere(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return errElsewhere
	}
	return nil
}

// untrusted tells whether an error says that the other end is not who it should be: trying again does not help.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &plain) || errors.Is(err, http.ErrSchemeMismatch)
}

// withoutURL is the cause of an error of a call, which net/http puts the URL before.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// unexplained is what an answer means that is none of daycared's own. A proxy that cannot reach the daemon says so in its
// own words.
func unexplained(status int) error {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: a proxy before it answers with status %d", ErrUnreachable, status)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fmt.Errorf("daycared's address answers with status %d, which leads elsewhere and is not followed", status)
	}
	return fmt.Errorf("daycared answered with status %d and no reason", status)
}

// SlowDown is how long the daemon wants a caller to wait before it makes the call of that error again; 0 for errors that
// say nothing of the kind.
func SlowDown(err error) time.Duration {
	var p *Problem
	if errors.As(err, &p) && p.Code == codeSlowDown {
		return max(p.after, time.Second)
	}
	return 0
}
