package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/models"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.example.com/v1":   "",
		"https://api.example.com/v1/":  "",
		"http://127.0.0.1:11434/v1":    "",
		"http://localhost:1/v1":        "",
		"http://192.168.1.2:11434/v1":  "in the clear",
		"https://fay:SECRET@host/v1":   "secrets go into",
		"https://host/v1?key=SECRET":   "secrets go into",
		"https://host/v1#SECRET":       "secrets go into",
		"https://host/v1?":             "secrets go into",
		"ftp://SECRET/v1":              "is written as in",
		"SECRET":                       "is written as in",
		"https:SECRET":                 "is written as in",
		"https://host/%zzSECRET":       "is written as in",
		"http://[fe80::1%25eth0]:1/v1": "in the clear",
	} {
		l, err := New(Options{Base: base, Key: "key"})
		switch {
		case want == "" && (err != nil || l.Base() != strings.TrimRight(base, "/")+"/"):
			t.Errorf("%s: %v", base, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET")):
			t.Errorf("%s: %v, want %s", base, err, want)
		}
	}
	if _, err := New(Options{Base: "http://192.168.1.2:11434/v1"}); err != nil {
		t.Errorf("without a key: %v", err)
	}
	if _, err := New(Options{Base: "https://host", Key: "SECRET\n"}); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a key with a line break: %v", err)
	}
}

// TestAReplyHasAnEnd: a provider that sends an occasional byte does not block a turn forever, and is not asked again.
func TestAReplyHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(Options{Base: "http://localhost/v1"})
		if err != nil {
			t.Fatal(err)
		}
		l.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(drip{r.Context()})}, nil
		})
		tries, began := 0, time.Now()
		_, err = l.Try(t.Context(), func() (models.Reply, error) {
			tries++
			x := l.Exchange(t.Context())
			r, err := http.NewRequestWithContext(x.Context(), http.MethodPost, l.Base(), http.NoBody)
			if err == nil {
				_, err = x.Do(r)
			}
			if err == nil {
				err = x.Events(func(string, []byte) error { return nil })
			}
			return models.Reply{}, x.End(t.Context(), err)
		}, func() {})
		if !errors.Is(err, models.ErrAway) || !strings.Contains(err.Error(), "not whole after 1h0m0s") || tries != 1 ||
			time.Since(began) != time.Hour {
			t.Errorf("after %v and %d tries: %v", time.Since(began), tries, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// drip is a stream of one byte a minute.
type drip struct {
	ctx context.Context //nolint:containedctx // that of the request
}

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Minute):
		p[0] = ':'
		return 1, nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		ms, s string
		want  time.Duration
	}{
		{"", "", 0}, {"", "2", 2 * time.Second}, {"", "0.5", 500 * time.Millisecond}, {"1500", "7", 1500 * time.Millisecond},
		{"odd", "7", 7 * time.Second}, {"", "-1", 0}, {"", "NaN", 0}, {"", "1e400", 24 * time.Hour}, {"", "1e15", 24 * time.Hour},
		{"", "Inf", 24 * time.Hour}, {"", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute}, {"", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"", "Sat, 02 Jan 2100 03:04:00 GMT", 24 * time.Hour},
	} {
		h := http.Header{}
		h.Set("Retry-After-Ms", test.ms)
		h.Set("Retry-After", test.s)
		if got := after(h, now); got != test.want {
			t.Errorf("%q %q: %v, want %v", test.ms, test.s, got, test.want)
		}
	}
}

func TestWhatServersSay(t *testing.T) {
	for body, want := range map[string]said{
		`{"error":{"message":"a","type":"b","code":"c"}}`:                    {"a", "c", "b"},
		`{"error":{"message":"a","code":502,"metadata":{}}}`:                 {"a", "502", ""},
		`{"error":{"message":"a","code":null}}`:                              {"a", "", ""},
		`{"error":"model 'x' not found"}`:                                    {"model 'x' not found", "", ""},
		`{"type":"error","error":{"type":"overloaded_error","message":"a"}}`: {"a", "", "overloaded_error"},
		`{"object":"error","message":"a"}`:                                   {"a", "", ""},
		`{"detail":"Not Found"}`:                                             {"Not Found", "", ""},
		`{"detail":[{"loc":["body"]}]}`:                                      {},
		`upstream connect error`:                                             {"upstream connect error", "", ""},
		`<html>502</html>`:                                                   {},
		`{"error`:                                                            {},
		``:                                                                   {},
		`[]`:                                                                 {"[]", "", ""},
	} {
		if got := read([]byte(body)); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// TestNames: a made-up tool name becomes one that providers accept.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"read_file": "read_file", "functions.read_file": "functions_read_file", "../../x": "______x", "": "_",
		"ü x": "__x", strings.Repeat("a", 65): strings.Repeat("a", 64),
	} {
		if got := Name(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestObjects(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, ``: `{"not_an_object":""}`, `"x"`: `{"not_an_object":"x"}`, `{"a`: `{"not_an_object":"{\"a"}`,
	} {
		if got := string(Object(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	calls := storable([]models.Call{{}, {}, {ID: "a"}}, models.Prompt{Messages: []models.Message{{Calls: []models.Call{{ID: "a"}}}}})
	if len(calls[0].ID) != 9 || calls[0].ID == calls[1].ID || calls[2].ID == "a" || string(calls[0].Input) != "{}" {
		t.Errorf("%+v", calls)
	}
}
