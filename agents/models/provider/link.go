// Package provider is what the providers of models have in common, whatever they speak: how they are reached, when a
// request is tried again, and what their errors mean.
//
// A library may write the requests of a dialect, but none sends or reads one: they follow redirects, wait as long as they
// are told to, count comments as errors, and put addresses into the texts of errors. So each try is an [Exchange] of ours:
// no redirect is followed, silence and length are bounded, the events are read as odd as servers write them, what is no
// success is a *[Fault] that we have read ourselves, and [Link.Try] knows which fault passes by itself and when.
package provider

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/internal/wire"
)

// Options say how a provider is reached.
type Options struct {
	Base  string // the address, as in https://api.openai.com/v1
	Key   models.Key
	Retry Retry
	// Silence is how long nothing may come, before a reply begins or within it. 0: five minutes, as a server at home may
	// have to load its model first.
	Silence time.Duration
	// Total is how long one reply may take from its request to its end, however often something comes. 0: an hour, in which
	// 128,000 tokens come at 36 a second. What takes longer is not tried again.
	Total time.Duration
	Log   *slog.Logger // of what is tried again; nil: none
}

// Retry bounds how often what passes by itself is tried again. What is zero has its default.
type Retry struct {
	Tries   int           // at most, the first among them; 5
	Wait    time.Duration // before the second, where the provider does not say; later ones wait longer; half a second
	Longest time.Duration // when the provider wants a longer wait than this, there is none; two minutes
}

// Link is how one provider is reached. It is safe for concurrent use.
type Link struct {
	base    string
	client  *http.Client
	retry   Retry
	silence time.Duration
	total   time.Duration
	hide    *strings.Replacer
	log     *slog.Logger
}

// New makes a link. Nothing is sent. The error does not show the address.
func New(o Options) (*Link, error) {
	u, err := url.Parse(o.Base)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, errors.New("the base URL of a model is written as in http://127.0.0.1:11434/v1")
	case u.User != nil || strings.ContainsAny(o.Base, "?#"):
		return nil, errors.New("the base URL of a model has a host and a path only; secrets go into the key's file")
	case u.Scheme == "http" && o.Key != "" && !wire.Loopback(u.Hostname()):
		return nil, errors.New("the base URL of a model would send the key in the clear; write https://…")
	case strings.ContainsFunc(string(o.Key), func(c rune) bool { return c <= ' ' || c > '~' }):
		return nil, errors.New("the key of a model has characters that no key has, such as spaces or line breaks")
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // over one connection of HTTP/2 that has died, all sessions would hang together
	return &Link{
		base: strings.TrimRight(o.Base, "/") + "/",
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
				TLSHandshakeTimeout: 15 * time.Second,
				IdleConnTimeout:     90 * time.Second,
				Protocols:           protocols,
			},
			// A redirect would take the key, and all that was said, elsewhere: none is followed.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		retry: Retry{
			Tries: cmp.Or(o.Retry.Tries, 5), Wait: cmp.Or(o.Retry.Wait, 500*time.Millisecond),
			Longest: cmp.Or(o.Retry.Longest, 2*time.Minute),
		},
		silence: cmp.Or(o.Silence, 5*time.Minute),
		total:   cmp.Or(o.Total, time.Hour),
		hide:    hider(string(o.Key)),
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
	}, nil
}

// Base is the address, with a slash at its end.
func (l *Link) Base() string { return l.base }

// Close ends the connections that are idle. The link can still be used.
func (l *Link) Close() { l.client.CloseIdleConnections() }

// lost is an error of the connection, without the address and the key.
func (l *Link) lost(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilence):
		err = fmt.Errorf("nothing came for %v", l.silence)
	case errors.Is(cause, errLong):
		return &Fault{Text: fmt.Sprintf("the reply was not whole after %v", l.total), kind: models.ErrAway}
	}
	return &Fault{Passes: true, Text: l.tidy(wire.Plain(err).Error()), kind: models.ErrAway}
}

// tidy makes a text of a provider's fit for logs and people.
func (l *Link) tidy(text string) string {
	const most = 400 // characters
	text = l.hide.Replace(strings.ToValidUTF8(text, "�"))
	text = strings.TrimSpace(strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return ' '
		}
		if c < ' ' || c == 0x7f || (c >= 0x80 && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) {
			return -1
		}
		return c
	}, text))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// hider hides a key in the spellings in which servers and libraries repeat it.
func hider(key string) *strings.Replacer {
	if key == "" {
		return strings.NewReplacer()
	}
	hidden := models.Key(key).String()
	return strings.NewReplacer(key, hidden, url.QueryEscape(key), hidden, url.PathEscape(key), hidden,
		base64.StdEncoding.EncodeToString([]byte(key)), hidden)
}
