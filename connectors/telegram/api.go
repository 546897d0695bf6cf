package telegram

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/daycared/daycared/permissions"
)

const (
	defaultBase = "https://api.telegram.org"

	callLimit   = 20 * time.Second // for an answer; a long poll has its own time on top
	uploadLimit = time.Minute
	mostAnswer  = 16 << 20 // bytes
)

// lenient reads and writes JSON as Telegram does, where texts may be of any bytes.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Token is a bot's token. It does not print.
type Token string

// String hides the token.
func (Token) String() string { return "‹bot token›" }

// GoString hides the token.
func (t Token) GoString() string { return t.String() }

// LogValue hides the token.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// api calls the Bot API. Its errors are *[apiError], *[lostError] or about what the caller gave, and the token is in
// none of them. It is safe for concurrent use.
type api struct {
	bot    func() tgbotapi.BotAPI // made anew for every call: the library knows no context, but takes a client
	client *http.Client
	key    atomic.Pointer[credential]
	fresh  permissions.Bell // the token is another one by now
	log    *slog.Logger
}

// credential is the token that calls carry, and every token so far in any of its spellings.
type credential struct {
	token  Token
	secret *regexp.Regexp
}

// newAPI makes a client for a bot. An empty base is Telegram's own server. Nothing is sent.
func newAPI(token Token, base string, log *slog.Logger) *api {
	endpoint := strings.ReplaceAll(strings.TrimRight(cmp.Or(base, defaultBase), "/"), "%", "%%") + "/bot%s/%s"
	a := &api{
		// A redirect would take the token elsewhere: none is followed.
		client: &http.Client{Transport: newTransport(), CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		fresh: permissions.NewBell(),
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

// renew has the calls from now on carry another token. The one before stays hidden.
func (a *api) renew(token Token) {
	was := a.key.Load()
	if was.token == token {
		return
	}
	a.key.Store(&credential{token, regexp.MustCompile(spellings(string(token)).String() + "|" + was.secret.String())})
	a.fresh.Ring()
}

// newTransport speaks HTTP/1.1 only: over one shared connection of HTTP/2 that has died, a poll, every card and every
// answer to a tap would hang together.
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

// close ends the connections that are idle.
func (a *api) close() { a.client.CloseIdleConnections() }

// file is what an upload carries besides its parameters.
type file struct {
	Field string // the parameter that it is, such as document
	Name  string // as people see it
	Body  []byte
}

// call calls a method and reads the result into out, unless that is nil. Parameters that are nil are left out.
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

// upload is call with a file.
func (a *api) upload(ctx context.Context, method string, params map[string]any, f file, out any) error {
	files := []tgbotapi.RequestFile{{Name: f.Field, Data: tgbotapi.FileBytes{Name: f.Name, Bytes: f.Body}}}
	return a.exchange(ctx, uploadLimit, method, params, out,
		func(b *tgbotapi.BotAPI, form tgbotapi.Params) (*tgbotapi.APIResponse, error) {
			return b.UploadFiles(method, form, files)
		})
}

// exchange does one call through a bot of the library's, whose client obeys ctx and knows the status.
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
	a.log.Debug("telegram was called", "method", method, "took", time.Since(began), "status", status)
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
			Method: method, Text: a.hide(refused.Message), Code: cmp.Or(refused.Code, status), // UploadFiles forgets the code
			RetryAfter: time.Duration(refused.RetryAfter) * time.Second, MigrateTo: refused.MigrateToChatID,
		}
	case status != 0:
		err = fmt.Errorf("answered with %d %s, which is not the Bot API", status, http.StatusText(status))
		return &lostError{method, err}
	case ctx.Err() == nil && limited.Err() != nil:
		err = fmt.Errorf("no answer within %v", limit)
	}
	a.close() // those that are idle may be as dead as this one
	return &lostError{method, a.redact(err)}
}

// send sends a request and reads the whole answer, so that the connection can be used again. The status is 0 unless all
// of the answer came.
func (a *api) send(r *http.Request) (*http.Response, int, error) {
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength <= 0 { // an upload: its writer ends here, and the length is known
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, 0, err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	response, err := a.client.Do(r) //nolint:gosec // the address is that of the configuration
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err == nil && len(body) > mostAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", mostAnswer)
	}
	if err != nil {
		return nil, 0, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, response.StatusCode, nil
}

// doer is a client of the library's.
type doer func(*http.Request) (*http.Response, error)

// Do sends a request.
func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// formOf writes parameters as the Bot API takes them: texts as they are, all else as JSON.
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

// redact takes the address and the token out of an error, also out of what it wraps.
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

// hide takes the token out of a text.
func (a *api) hide(text string) string {
	return a.key.Load().secret.ReplaceAllLiteralString(text, Token("").String())
}

// spellings matches a token, and the secret half of it alone, each character plain or percent-encoded, even twice.
func spellings(token string) *regexp.Regexp {
	id, secret, both := strings.Cut(token, ":")
	switch {
	case token == "":
		return regexp.MustCompile(`[^\s\S]`) // nothing
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
	// The library logs to a logger of its own, with addresses in which the token is.
	_ = tgbotapi.SetLogger(noLogger{}) // fails for nil only
}

type noLogger struct{}

// Println says nothing.
func (noLogger) Println(...any) {}

// Printf says nothing.
func (noLogger) Printf(string, ...any) {}
