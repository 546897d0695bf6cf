package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// parseURL reads the address of a service that is sent a secret: https, or http on this machine.
func parseURL(s string) (any, error) {
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "http" && u.Host != "" && u.User == nil && !local(u.Hostname()) {
		return nil, fmt.Errorf("%s would send the token in the clear; write https://%s", quote(s), u.Host+u.Path)
	}
	return address(s, "https://api.telegram.org")
}

// parseEndpoint reads the address of a model. Whether it may be http rests on what is sent there.
func parseEndpoint(s string) (any, error) { return address(s, "http://127.0.0.1:11434/v1") }

// inTheClear tells whether what is sent to an address can be read on the way.
func inTheClear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !local(u.Hostname())
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

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
