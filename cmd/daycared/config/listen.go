package config

import (
	"fmt"
	"net"
	"strings"
)

// parseListen reads where to listen: an address of this machine, or none for all of them, and a port.
func parseListen(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	const right = "write an address and a port, as in 127.0.0.1:7801"
	if meant, ok := mendListen(s); ok {
		return nil, fmt.Errorf("%s is a port alone; write %s to listen on this machine only", quote(s), quote(meant))
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address to listen at; %s", quote(s), right)
	}
	n, err := parseInt(port)
	switch {
	case err != nil || n < 1 || n > 65535:
		return nil, fmt.Errorf("%s has no port from 1 to 65535; %s", quote(s), right)
	case host != "" && host != "localhost" && net.ParseIP(host) == nil:
		return nil, fmt.Errorf("%s names a host, whose address may change; %s", quote(s), right)
	}
	return s, nil
}

// mendListen is the address for a port alone: the one that only this machine reaches.
func mendListen(s string) (meant string, ok bool) {
	n, err := parseInt(s)
	return net.JoinHostPort("127.0.0.1", s), err == nil && n >= 1 && n <= 65535
}

// parseHost reads a name by which the listener is called.
func parseHost(s string) (any, error) {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != ':'
	}
	const right = "write the name alone, as in daycared.example.org"
	switch {
	case strings.Contains(s, ":") && net.ParseIP(s) == nil, strings.Contains(s, "/"):
		return nil, fmt.Errorf("%s is more than the name of a host; %s", quote(s), right)
	case s == "" || strings.ContainsFunc(s, odd) || strings.HasPrefix(s, ".") || strings.HasSuffix(s, "."):
		return nil, fmt.Errorf("%s is not the name of a host in lower case; %s", quote(s), right)
	}
	return s, nil
}

// Loopback tells whether only this machine can reach the listener.
func (a API) Loopback() bool {
	host, _, err := net.SplitHostPort(a.Listen)
	return err == nil && local(host)
}

// listener holds that tokens do not cross a network in the clear, and that nobody comes from elsewhere without one.
func (r *report) listener(a API) {
	const listen, cert, key = "api.listen", "api.tls_cert_file", "api.tls_key_file"
	const anonymous = "api.allow_anonymous"
	for _, path := range []string{listen, cert, key, "api.behind_proxy", anonymous} {
		if r.wrong(path) {
			return
		}
	}
	switch {
	case a.TLSCertFile != "" && a.TLSKeyFile == "":
		r.key(cert, "%s: there is no key for it; write api.tls_key_file as well", cert)
	case a.TLSCertFile == "" && a.TLSKeyFile != "":
		r.key(key, "%s: there is no certificate for it; write api.tls_cert_file as well", key)
	case a.Listen == "":
	case !a.Loopback() && a.TLSCertFile == "" && !a.BehindProxy:
		r.key(listen, "%s: others could read the tokens that come to %s; write tls_cert_file and tls_key_file, or "+
			"behind_proxy: true where a proxy does that, or listen at 127.0.0.1", listen, quote(a.Listen))
	}
	switch {
	case !a.AllowAnonymous || a.Listen == "":
	case !a.Loopback():
		r.key(anonymous, "%s: only callers from this machine may ask without a token, and %s is reached from elsewhere; "+
			"listen at 127.0.0.1, or leave it out", anonymous, quote(a.Listen))
	case a.BehindProxy:
		r.key(anonymous, "%s: whom a proxy lets in may come from anywhere; leave one of the two out", anonymous)
	}
}

// listener says what of the listener leads nowhere, or is open to more than is seen at once.
func (w *warner) listener(a API) {
	if a.Listen == "" {
		for _, k := range []struct {
			path string
			set  bool
		}{
			{"api.tls_cert_file", a.TLSCertFile != ""}, {"api.behind_proxy", a.BehindProxy}, {"api.hosts", len(a.Hosts) > 0},
			{"api.allow_anonymous", a.AllowAnonymous},
		} {
			if k.set {
				w.add(k.path, "%s means nothing without api.listen", k.path)
			}
		}
		return
	}
	if a.AllowAnonymous {
		w.add("api.allow_anonymous", "every account of this machine may ask at %s and is nobody in particular: no local "+
			"account may allow it, and only people with a phone can", a.Listen)
	}
}
