package telegram

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	defaultBase = "https://api.telegram.org"

	callLimit   = 20 * time.Second // for a response; a long poll adds its own timeout
	uploadLimit = time.Minute
	maxAnswer   = 16 << 20 // bytes
)

// lenient reads and writes JSON as Telegram does, with strings of arbitrary bytes.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Token is a bot's token.
type Token = wire.Secret

const redacted = "‹bot token›"

// api calls the Bot API. Its errors never contain the token; see errors.go. It is safe for concurrent use.
type api struct {
	bot    func() tgbotapi.BotAPI // a new one for every call: the library takes no context, but an HTTP client
	client *http.Client
	key    atomic.Pointer[credential]
	fresh  timing.Signal // signals that the token was replaced
	log    *slog.Logger
}

// credential is the current token, with a pattern of this and all earlier tokens in every spelling.
type credential struct {
	token  Token
	secret *regexp.Regexp
}

// newAPI makes a client for a bot. An empty base is Telegram's own server. It performs no I/O.
func newAPI(token Token, base string, log *slog.Logger) *api {
	endpoint := strings.ReplaceAll(strings.TrimRight(cmp.Or(base, defaultBase), "/"), "%", "%%") + "/bot%s/%s"
	a := &api{
		// A redirect would send the token elsewhere, so none is followed.
		client: &http.Client{Transport: newTransport(), CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		fresh: timing.NewSignal(),
		log:   log,
	}
	a.key.Store(&credential{token, spellings(string(token))})
	a.bot = func() tgbotapi.BotAPI {
		b := tgbotapi.BotAPI{Token: url.PathEscape(string(a.key.Load().token))}
		b.SetAPIEndpoint(endpoint)
		return b
	}
	return a
}

// renew replaces the token of all later calls. The previous one stays redacted.
func (a *api) renew(token Token) {
	was := a.key.Load()
	if was.token == token {
		return
	}
	a.key.Store(&credential{token, regexp.MustCompile(spellings(string(token)).String() + "|" + was.secret.String())})
	a.fresh.Notify()
}

// newTransport speaks only HTTP/1.1: a dead HTTP/2 connection would block the poll, all cards and all answers at once.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           protocols,
	}
}

func (a *api) close() { a.client.CloseIdleConnections() }

type file struct {
	Field string // its parameter, such as document
	Name  string // shown to people
	Body  []byte
}

// call calls a method and decodes the result into out, unless that is nil. Nil parameters are left out.
func (a *api) call(ctx context.Context, method string, params map[string]any, out any) error {
	limit := callLimit
	if poll, ok := params["timeout"].(int); ok {
		limit += time.Duration(poll) * time.Second
	}
	return a.exchange(ctx, limit, method, params, out,
		func(b *tgbotapi.BotAPI, form tgbotapi.Params) (*tgbotapi.APIResponse, error) {
			return b.MakeRequest(method, form)
		})
}

func (a *api) upload(ctx context.Context, method string, params map[string]any, f file, out any) error {
	files := []tgbotapi.RequestFile{{Name: f.Field, Data: tgbotapi.FileBytes{Name: f.Name, Bytes: f.Body}}}
	return a.exchange(ctx, uploadLimit, method, params, out,
		func(b *tgbotapi.BotAPI, form tgbotapi.Params) (*tgbotapi.APIResponse, error) {
			return b.UploadFiles(method, form, files)
		})
}

// exchange makes one call through the library's bot, with a client that obeys ctx and records the HTTP status.
func (a *api) exchange(ctx context.Context, limit time.Duration, method string, params map[string]any, out any,
	do func(*tgbotapi.BotAPI, tgbotapi.Params) (*tgbotapi.APIResponse, error),
) error {
	form, err := formOf(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, a.redact(err))
	}
	began, status, bot := time.Now(), 0, a.bot()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	bot.Client = doer(func(r *http.Request) (response *http.Response, err error) {
		response, status, err = a.send(r.WithContext(limited))
		return response, err
	})
	got, err := do(&bot, form)
	a.log.Debug("telegram call", "method", method, "took", time.Since(began), "status", status)
	var refused *tgbotapi.Error
	switch {
	case err == nil && out == nil:
		return nil
	case err == nil:
		if err := json.Unmarshal(got.Result, out, lenient); err != nil {
			return fmt.Errorf("%s: read the result: %w", method, a.redact(err))
		}
		return nil
	case errors.As(err, &refused) && refused.Message != "":
		return &apiError{
			Method: method, Text: a.hide(refused.Message), Code: cmp.Or(refused.Code, status), // UploadFiles drops the code
			Pause: time.Duration(refused.RetryAfter) * time.Second, MigrateTo: refused.MigrateToChatID,
		}
	case status == http.StatusRequestEntityTooLarge: // whoever is in front of the Bot API says so
		return &apiError{Method: method, Text: http.StatusText(status), Code: status}
	case status != 0:
		err = fmt.Errorf("answered with %d %s, which is not the Bot API", status, http.StatusText(status))
		return &lostError{method, err}
	case ctx.Err() == nil && limited.Err() != nil:
		err = fmt.Errorf("no answer within %v", limit)
	}
	a.close() // idle connections may be dead too
	return &lostError{method, a.redact(err)}
}

// send sends a request and reads the whole response, for reuse of the connection. The status is 0 unless that succeeds.
func (a *api) send(r *http.Request) (*http.Response, int, error) {
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength <= 0 { // an upload: reading it here ends its writer and gives the length
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, 0, err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	response, err := a.client.Do(r) //nolint:gosec // the address comes from the configuration
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, 0, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, response.StatusCode, nil
}

// doer implements the library's HTTP client.
type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// formOf encodes parameters for the Bot API: strings as they are, everything else as JSON.
func formOf(params map[string]any) (tgbotapi.Params, error) {
	form := tgbotapi.Params{}
	for name, value := range params {
		if v := reflect.ValueOf(value); v.Kind() == reflect.String {
			form[name] = v.String()
			continue
		}
		text, err := json.Marshal(value, lenient, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		if string(text) != "null" {
			form[name] = string(text)
		}
	}
	return form, nil
}

// redact removes the URL and the token from an error and from what it wraps.
func (a *api) redact(err error) error {
	for located := (*url.Error)(nil); errors.As(err, &located); {
		err = located.Err
	}
	clean := a.hide(err.Error())
	switch {
	case clean == err.Error():
		return wire.Plain(err)
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	return errors.New(clean)
}

func (a *api) hide(text string) string {
	return a.key.Load().secret.ReplaceAllLiteralString(text, redacted)
}

// spellings matches a token, and its secret half alone, with each character plain or percent-encoded, even twice.
func spellings(token string) *regexp.Regexp {
	id, secret, both := strings.Cut(token, ":")
	switch {
	case token == "":
		return regexp.MustCompile(`[^\s\S]`) // matches nothing
	case !both:
		return regexp.MustCompile(spelling(token))
	case secret == "":
		return regexp.MustCompile(spelling(id) + spelling(":"))
	}
	return regexp.MustCompile("(?:" + spelling(id) + spelling(":") + ")?" + spelling(secret))
}

func spelling(text string) string {
	var b strings.Builder
	for _, c := range text {
		b.WriteString("(?:" + regexp.QuoteMeta(string(c)) + "|")
		for _, octet := range []byte(string(c)) {
			fmt.Fprintf(&b, "%%(?:25)*(?i:%02x)", octet)
		}
		b.WriteString(")")
	}
	return b.String()
}

func init() {
	// The library's own logger would log URLs that contain the token.
	_ = tgbotapi.SetLogger(log.New(io.Discard, "", 0)) // its only error is a nil logger
}
