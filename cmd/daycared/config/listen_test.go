package config

import (
	"strings"
	"testing"
)

func TestAListenerForOthersIsEncryptedOrRefused(t *testing.T) {
	for _, c := range []struct{ yaml, says string }{
		{"listen: 127.0.0.1:7801", ""},
		{"listen: '[::1]:7801'", ""},
		{"listen: localhost:7801", ""},
		{"listen: 127.0.0.1:7801, allow_anonymous: true", ""},
		{"listen: ':7801', tls_cert_file: /c, tls_key_file: /k", ""},
		{"listen: 192.0.2.7:7801, behind_proxy: true, hosts: [daycared.example.org]", ""},
		{"listen: 127.0.0.1:7801, hosts: [192.0.2.7, '2001:db8::1']", ""},

		{"listen: ':7801'", `1: api.listen: others could read the tokens that come to ":7801"`},
		{"listen: 0.0.0.0:7801", `1: api.listen: others could read`},
		{"listen: '[::]:7801'", `1: api.listen: others could read`},
		{"listen: 192.0.2.7:7801, allow_anonymous: true", `1: api.listen: others could read`},
		{"listen: ':7801', tls_cert_file: /c, tls_key_file: /k, allow_anonymous: true", "1: api.allow_anonymous: only callers from this machine"},
		{"listen: 127.0.0.1:7801, behind_proxy: true, allow_anonymous: true", "1: api.allow_anonymous: whom a proxy lets in"},
		{"listen: ':7801', tls_cert_file: /c", "1: api.tls_cert_file: there is no key for it"},
		{"listen: ':7801', tls_key_file: /k", "1: api.tls_key_file: there is no certificate for it"},
		{"listen: '7801'", `1: api.listen: "7801" is a port alone; write "127.0.0.1:7801"`},
		{"listen: 127.0.0.1:0", `1: api.listen: "127.0.0.1:0" has no port from 1 to 65535`},
		{"listen: 127.0.0.1:http", "has no port from 1 to 65535"},
		{"listen: 127.0.0.1:70000", "has no port from 1 to 65535"},
		{"listen: daycared.example.org:80", "names a host, whose address may change"},
		{"hosts: [daycared.example.org:443]", `1: api.hosts: "daycared.example.org:443" is more than the name of a host`},
		{"hosts: ['https://x']", "is more than the name of a host"},
		{"hosts: ['*.example.org']", "is not the name of a host in lower case"},
		{"hosts: [Daycared]", "is not the name of a host in lower case"},
		{"hosts: ['']", "is not the name of a host in lower case"},
		{"hosts: [localhost.]", "is not the name of a host in lower case"},
		{"tls_cert_file: c.pem", "is not absolute"},
	} {
		cfg, err := parse("config.yaml", []byte("api: {"+c.yaml+"}\n"), nil)
		switch {
		case c.says == "" && (err != nil || !strings.Contains(c.yaml, "listen: ") || cfg.API.Listen == ""):
			t.Errorf("%s is refused: %v", c.yaml, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v\nwant %s", c.yaml, err, c.says)
		case c.says == "" && cfg.API.Loopback() == (strings.Contains(c.yaml, "tls") || strings.Contains(c.yaml, "proxy")):
			t.Errorf("%s: loopback is %v", c.yaml, cfg.API.Loopback())
		}
	}
}

func TestListenerSettingsWithoutAListenerAreReported(t *testing.T) {
	for yaml, says := range map[string]string{
		"tls_cert_file: /c, tls_key_file: /k":             "api.tls_cert_file means nothing without api.listen",
		"behind_proxy: true":                              "api.behind_proxy means nothing without api.listen",
		"hosts: [a.example]":                              "api.hosts means nothing without api.listen",
		"allow_anonymous: true":                           "api.allow_anonymous means nothing without api.listen",
		"listen: 127.0.0.1:7801, allow_anonymous: true":   "no local account may allow it",
		"listen: 127.0.0.1:7801, hosts: [daycared.local]": "",
	} {
		cfg, err := parse("config.yaml", []byte("api: {"+yaml+"}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		text := cfg.Warnings.Error()
		if !strings.Contains(text, says) || (says == "") != (text == "") {
			t.Errorf("%s: warned %q, want %q", yaml, text, says)
		}
	}
}
