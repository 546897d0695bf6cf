package config

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.telegram.org": "https://api.telegram.org", "https://bot.example/api/": "https://bot.example/api",
		"http://127.0.0.1:8081": "http://127.0.0.1:8081", "http://[::1]:80/x": "http://[::1]:80/x", "http://localhost": "http://localhost",
	} {
		if got, err := parseURL(text); err != nil || got != want {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"": "not an address", "api.telegram.org": "not an address", "http://api.telegram.org": "in the clear; write https://api.telegram.org",
		"ftp://127.0.0.1": "neither https nor http", "https://a:b@c": "more than", "https://c?x": "more than", "https://c/%20s": "percent",
		"https://": "not an address", "mailto:a@b": "not an address", "https://c/%zz": "not an address",
	} {
		if got, err := parseURL(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s is read as %v, %v; want %q", text, got, err, says)
		}
	}
}
