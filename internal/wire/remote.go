package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// dialWithin is the time limit for connecting to a remote daemon.
const dialWithin = 10 * time.Second

// errElsewhere means that a name for this machine leads to another one.
var errElsewhere = errors.New("the name leads away from this machine, and a token would go there in the clear")

// RemoteOptions is how to reach a remote daemon. Empty fields come from the environment (HTTPS_PROXY, SSL_CERT_FILE) and the system.
type RemoteOptions struct {
	Proxy  string // its URL
	CAFile string // PEM certificates to trust for the daemon instead of the system's
	// EnvironmentProxy finds the environment's proxy; nil: [http.ProxyFromEnvironment].
	EnvironmentProxy func(*http.Request) (*url.URL, error)
}

// NewRemoteClient makes a client of the daemon at a URL, without connecting: https, or http on this machine, so that
// secrets cannot be read in transit. It follows no redirect. The error says what is wrong with the URL or the options.
func NewRemoteClient(address string, way RemoteOptions) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Opaque != "", u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not the URL of a daemon; write it as in https://daycared.example", address)
	case u.User != nil:
		return nil, errors.New("a URL is no place for a secret; write the token into a file")
	case u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("%q has more than a host and a path; write it as in https://daycared.example", address)
	case u.Scheme == "http" && !Loopback(u.Hostname()):
		return nil, fmt.Errorf("%s would carry the token in the clear; write https://%s", address, u.Host+u.Path)
	}
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialWithin}).DialContext,
		TLSHandshakeTimeout: dialWithin,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		Proxy:               http.ProxyFromEnvironment,
	}
	if err := way.apply(u, t); err != nil {
		return nil, err
	}
	if u.Scheme == "http" {
		t.DialContext = (&net.Dialer{Timeout: dialWithin, ControlContext: onlyHere}).DialContext
		t.Proxy = nil
	}
	return newClient(address, strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), t), nil
}

// apply configures t for u.
func (w RemoteOptions) apply(u *url.URL, t *http.Transport) error {
	if u.Scheme == "http" && (w.Proxy != "" || w.CAFile != "") {
		return errors.New("a proxy and certificates are for https; this URL is of this machine")
	}
	if w.EnvironmentProxy != nil {
		t.Proxy = w.EnvironmentProxy
	}
	if w.Proxy != "" {
		proxy, err := url.Parse(w.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme) {
			return errors.New("the proxy is not a URL such as http://proxy.example:3128")
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	if w.CAFile == "" {
		return nil
	}
	if info, err := os.Stat(w.CAFile); err == nil && !info.Mode().IsRegular() { // opening a pipe would block
		return fmt.Errorf("read the certificates: %s is not a regular file", w.CAFile)
	}
	text, err := os.ReadFile(w.CAFile)
	if err != nil {
		return fmt.Errorf("read the certificates: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate in PEM", w.CAFile)
	}
	return nil
}

// Loopback reports whether a host without port can only be this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// onlyHere refuses to connect to another machine, whatever DNS says.
func onlyHere(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return errElsewhere
	}
	return nil
}

// untrusted reports whether err means that the server's identity is wrong, so that a retry does not help.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &plain) || errors.Is(err, http.ErrSchemeMismatch)
}

// withoutURL is the cause of a call's error, without the URL that net/http adds.
func withoutURL(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		return of.Err
	}
	return err
}

// unexplained describes an answer that is not daycared's, such as that of a proxy that cannot reach it.
func unexplained(status int) error {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: a proxy before it answers with status %d", ErrUnreachable, status)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fmt.Errorf("daycared's address answers with status %d, which leads elsewhere and is not followed", status)
	}
	return fmt.Errorf("daycared answered with status %d and no reason", status)
}

// SlowDown is how long to wait before repeating a call, 0 if err does not say.
func SlowDown(err error) time.Duration {
	if p, is := errors.AsType[*Problem](err); is && p.Code == CodeSlowDown {
		return max(p.After, time.Second)
	}
	return 0
}
