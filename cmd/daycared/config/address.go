package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// parseName parses a person's name, which is shown on cards and typed in commands: one printable line.
func parseName(s string) (any, error) {
	switch {
	case s == "":
		return nil, fmt.Errorf("an empty name names nobody; write one, as in fay")
	case s != strings.TrimSpace(s):
		return nil, fmt.Errorf("%s has space around it; write %q", quote(s), strings.TrimSpace(s))
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nil, fmt.Errorf("%s holds characters that cannot be seen; leave them out", quote(s))
	case utf8.RuneCountInString(s) > permissions.MaxName:
		return nil, fmt.Errorf("%s is longer than %d characters; write a shorter one", quote(s), permissions.MaxName)
	}
	return s, nil
}

// parseAccount parses the name of an OS account or group. Whether it exists is checked when it is used.
func parseAccount(s string) (any, error) {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == ':' || r == '/' }
	if strings.ContainsFunc(s, odd) {
		return nil, fmt.Errorf("%s is not a name of an account or group; write it as id prints it", quote(s))
	}
	return s, nil
}

// parseGroup parses a group's id, which is negative.
func parseGroup(s string) (any, error) {
	n, err := parseInt(s)
	switch {
	case err != nil && strings.Trim(s, "-0123456789") != "":
		return nil, fmt.Errorf("%s is no group's id; write the number, as in chat: -1001234567890", quote(s))
	case err != nil:
		return nil, err
	case n >= 0:
		return nil, fmt.Errorf("%s is no group's id, which begins with a minus; write it as in chat: -1001234567890", quote(s))
	}
	return n, nil
}

// addressOf returns the leaf of an address in channels of a kind.
func addressOf(k connectors.Kind) leaf {
	l := leaf{is: k.Is, written: asText, mend: k.Mend, parse: func(s string) (any, error) {
		address, err := k.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("%s %w", quote(s), err)
		}
		return address, nil
	}}
	if k.Number {
		l.written = asLiteral
	}
	return l
}

// phone is a phone number; empty is allowed.
func phone() leaf {
	k, _ := connectors.KindOf(viaWhatsApp)
	l := addressOf(k)
	parse := l.parse
	l.parse = func(s string) (any, error) {
		if s == "" {
			return s, nil
		}
		return parse(s)
	}
	return l
}

// Channels besides those of [connectors.Kinds], and the one kind that has rules of its own.
const (
	viaTerminal = "terminal" // the daemon's own console
	viaAdmin    = "admin"    // an inbox at the admin socket
	viaWhatsApp = "whatsapp"
)

// channels are those by which a person can be asked.
var channels = append([]string{viaTerminal, viaAdmin}, connectors.KindNames()...)

// parsePath parses an absolute path; empty means the default of [Config.Paths].
func parsePath(s string) (any, error) {
	switch {
	case s == "":
		return s, nil
	case strings.ContainsFunc(s, unicode.IsControl):
		return nil, fmt.Errorf("%s holds a control character; leave it out", quote(s))
	case strings.HasPrefix(s, "~") || strings.HasPrefix(s, "$"):
		return nil, fmt.Errorf("%s is not expanded here; write the whole path, as in /home/fay/daycared", quote(s))
	case !filepath.IsAbs(s):
		return nil, fmt.Errorf("%s is not absolute; write the whole path, beginning with /", quote(s))
	case filepath.Clean(s) != s:
		return nil, fmt.Errorf("%s is not clean; write %s", quote(s), quote(filepath.Clean(s)))
	}
	return s, nil
}

// maxSocket is the longest path of a unix socket, in bytes, that every system takes (unix(7): 108 on Linux, 104 on
// macOS, each with a closing zero).
const maxSocket = 103

func parseSocket(s string) (any, error) {
	if len(s) > maxSocket {
		return nil, fmt.Errorf("%s is longer than a socket's path may be; write one of at most %d bytes", quote(s), maxSocket)
	}
	return parsePath(s)
}

// parseURL parses the address of a service that is sent a secret: https, or http on this machine.
func parseURL(s string) (any, error) {
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "http" && u.Host != "" && u.User == nil && !wire.Loopback(u.Hostname()) {
		return nil, fmt.Errorf("%s would send the token in the clear; write https://%s", quote(s), u.Host+u.Path)
	}
	return address(s, "https://api.telegram.org")
}

// parseEndpoint parses a model's address. Whether it may be http depends on what is sent there.
func parseEndpoint(s string) (any, error) { return address(s, "http://127.0.0.1:11434/v1") }

// parseService parses the address of an optional service.
func parseService(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	return address(s, "http://127.0.0.1:8888")
}

// parsePublisher parses where heads of the audit go. They hold no secret, so the address may be http.
func parsePublisher(s string) (any, error) {
	if s == "" || s == "log" {
		return s, nil
	}
	if strings.Contains(s, "://") {
		return address(s, "https://example.org/heads")
	}
	if _, err := parsePath(s); err != nil {
		return nil, fmt.Errorf("%w, write log, or an address as in https://example.org/heads", err)
	}
	return s, nil
}

// inTheClear reports whether traffic to an address is unencrypted on a network.
func inTheClear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !wire.Loopback(u.Hostname())
}

func address(s, example string) (any, error) {
	right := "write it as in " + example
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Host == "", u.Opaque != "":
		return nil, fmt.Errorf("%s is not an address; %s", quote(s), right)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("%s has more than a host and a path; %s", quote(s), right)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%s is neither https nor http; %s", quote(s), right)
	case strings.Contains(s, "%"):
		return nil, fmt.Errorf("%s has a percent sign, which has no place here; %s", quote(s), right)
	}
	return strings.TrimRight(s, "/"), nil
}

// parseListen parses an address of this machine (empty: all of them) and a port.
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

// mendListen returns the loopback address for a port alone.
func mendListen(s string) (meant string, ok bool) {
	n, err := parseInt(s)
	return net.JoinHostPort("127.0.0.1", s), err == nil && n >= 1 && n <= 65535
}

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

// Loopback reports whether only this machine can reach the listener.
func (a API) Loopback() bool {
	host, _, err := net.SplitHostPort(a.Listen)
	return err == nil && wire.Loopback(host)
}

// listener checks that tokens do not cross a network unencrypted, and that nobody gets in from another machine without one.
func (r *report) listener(a API) {
	const listen, cert, key = "api.listen", "api.tls_cert_file", "api.tls_key_file"
	const anonymous = "api.allow_anonymous"
	if slices.ContainsFunc([]string{listen, cert, key, "api.behind_proxy", anonymous}, r.wrong) {
		return
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

// listener warns of listener settings without effect, and of settings that are more open than they look.
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
