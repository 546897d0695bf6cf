package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
)

var took = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write(body)
})

func TestBrowsersAndStrangeHostsAreRefused(t *testing.T) {
	for _, c := range []struct {
		host, origin, site string
		status             int
	}{
		{"daycared", "", "", 200},
		{"localhost", "", "", 200},
		{"localhost:80", "", "", 200},
		{"daycared:1234", "", "none", 200},
		{"", "", "", 421},
		{"evil.example", "", "", 421},
		{"localhost.evil.example", "", "", 421},
		{"evil.example:80", "", "", 421},
		{"127.0.0.1", "", "", 421},
		{"localhost", "http://evil.example", "", 403},
		{"localhost", "http://localhost", "", 200},
		{"localhost", "null", "", 403},
		{"localhost", "", "cross-site", 403},
		{"localhost", "", "same-site", 403},
		{"localhost", "", "same-origin", 403},
	} {
		t.Run(fmt.Sprintf("G1/host %s, origin %s, site %s", c.host, c.origin, c.site), func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r := httptest.NewRequest(method, "/", nil)
				r.Host = c.host
				r.Header.Set("Origin", c.origin)
				r.Header.Set("Sec-Fetch-Site", c.site)
				w := httptest.NewRecorder()
				middleware(readWhole(took), SocketHosts).ServeHTTP(w, r)
				if w.Code != c.status {
					t.Errorf("%s host %q origin %q site %q: %d, want %d", method, c.host, c.origin, c.site, w.Code, c.status)
				}
			}
		})
	}
}

func TestABodyIsJSONAndBounded(t *testing.T) {
	for _, c := range []struct {
		kind   string
		size   int
		status int
	}{
		{"application/json", 2, 200},
		{"application/json; charset=utf-8", 2, 200},
		{"APPLICATION/JSON", 2, 200},
		{"Application/Json; CharSet=Utf-8", 2, 200},
		{" application/json ;charset=\"utf-8\"", 2, 200},
		{"application/json", maxRead, 200},
		{"application/json", maxRead + 1, 413},
		{"", 2, 415},
		{"text/plain", 2, 415},
		{"application/x-www-form-urlencoded", 2, 415},
		{"application/problem+json", 2, 415},
		{"application/json, text/plain", 2, 415},
		{";", 2, 415},
		{"application/json; charset=UTF-8", 2, 200},
		{"application/json; charset=utf-16", 2, 415},
		{"application/json; charset=", 2, 415},
		{"application/json; charset=utf-8; charset=utf-16", 2, 415},
	} {
		t.Run(fmt.Sprintf("F3/%s, %d bytes", c.kind, c.size), func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", c.size)))
			r.Host = wire.Host
			r.Header.Set("Content-Type", c.kind)
			w := httptest.NewRecorder()
			middleware(readWhole(took), SocketHosts).ServeHTTP(w, r)
			if w.Code != c.status || (c.status == 200 && (w.Body.Len() != c.size || r.Header.Get("Content-Type") != "application/json")) {
				t.Errorf("%q of %d: %d with %d bytes, want %d", c.kind, c.size, w.Code, w.Body.Len(), c.status)
			}
		})
	}
}

// TestNoPartOfACallIsIgnored: a call that gives a value twice or a name without one, a query that cannot be read or an encoded body is
// refused, and says why.
// The calls of one peer that wait hold so many bytes of bodies, and those of another come through all the same.
func TestBodiesOfCallsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, body := make(chan bool), strings.Repeat(" ", maxRead)
		h := readWhole(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
		call := func(name string, chunked bool) chan int {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r = r.WithContext(context.WithValue(t.Context(), peerKey{}, peer{name: name}))
			r.Header.Set("Content-Type", mediaType)
			if chunked {
				r.ContentLength = -1
			}
			code := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				code <- w.Code
			}()
			synctest.Wait()
			return code
		}
		var all []chan int
		for n := range maxHeld / maxRead {
			all = append(all, call("agent", n%2 == 0))
		}
		if code := <-call("agent", false); code != http.StatusTooManyRequests {
			t.Errorf("one more: %d", code)
		}
		body = " "
		all = append(all, call("agent", false))
		body = strings.Repeat(" ", maxRead)
		all = append(all, call("another", true))
		close(end)
		synctest.Wait()
		for _, code := range append(all, call("agent", false)) {
			if code := <-code; code != http.StatusOK {
				t.Error(code)
			}
		}
	})
}

func TestNoPartOfACallIsIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		query  string
		header http.Header
		status int
		says   string
	}{
		"once":                  {"?after=60s&limit=1", nil, 200, ""},
		"a query twice":         {"?after=60s&after=0s", nil, 400, `The query has "after" twice; give it once.`},
		"a query, escaped":      {"?after=60s&%61fter=0s", nil, 400, `The query has "after" twice; give it once.`},
		"a query, empty":        {"?limit=1&after=", nil, 400, `The query has "after" without a value; give one, or leave it out.`},
		"a query, bare":         {"?after", nil, 400, `The query has "after" without a value; give one, or leave it out.`},
		"a query with a ;":      {"?after=60s;limit=1", nil, 400, "The query cannot be read: "},
		"a query with a lone %": {"?after=%6", nil, 400, "The query cannot be read: "},
		"two calls": {
			"", http.Header{"Daycared-Call": {"a", "b"}}, 400, "The header Daycared-Call is given twice; give it once.",
		},
		"two kinds of a body": {
			"", http.Header{"Content-Type": {"application/json", "text/plain"}}, 400, "The header Content-Type is given twice; give it once.",
		},
		"a packed body": {"", http.Header{"Content-Encoding": {"gzip"}}, 415, "A body has no Content-Encoding."},
		"a plain body":  {"", http.Header{"Content-Encoding": {"identity"}}, 200, ""},
	} {
		t.Run("F3/"+name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/"+c.query, strings.NewReader("{}"))
			r.Host = wire.Host
			r.Header.Set("Content-Type", "application/json")
			maps.Copy(r.Header, c.header)
			w := httptest.NewRecorder()
			middleware(readWhole(took), SocketHosts).ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), strings.ReplaceAll(c.says, `"`, `\"`)) {
				t.Errorf("%d %s, want %d and %q", w.Code, w.Body, c.status, c.says)
			}
		})
	}
}

func TestASlowBodyEndsAndALongPollDoesNot(t *testing.T) {
	t.Run("F3/a slow body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := wiretest.NewPipes()
			waits := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(LongPoll))
				select {
				case <-r.Context().Done():
					w.WriteHeader(http.StatusInternalServerError)
				case <-time.After(wire.MaxWait):
					_, _ = io.WriteString(w, "waited")
				}
			})
			server := &http.Server{Handler: middleware(readWhole(waits), SocketHosts), ReadHeaderTimeout: headerWithin}
			go func() { _ = server.Serve(l) }()
			say := func(text string) string {
				near := l.Dial()
				go func() { _, _ = io.WriteString(near, text) }()
				answer, _ := io.ReadAll(near)
				_ = near.Close()
				return string(answer)
			}
			const head = "POST / HTTP/1.1\r\nHost: daycared\r\nConnection: close\r\nContent-Type: application/json\r\n"
			began := time.Now()
			if got := say(head + "Content-Length: 2\r\n\r\n{}"); !strings.HasSuffix(got, "waited") {
				t.Errorf("a long poll with a body got %q", got)
			}
			if waited := time.Since(began); waited < wire.MaxWait {
				t.Errorf("a long poll ended after %s", waited)
			}
			began = time.Now()
			if got := say(head + "Content-Length: 3\r\n\r\n{}"); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
				t.Errorf("a slow body got %q", got)
			}
			if waited := time.Since(began); waited > 2*readWithin {
				t.Errorf("a slow body held out for %s", waited)
			}
			turnedAway := strings.Replace(head, "daycared", "evil.example", 1) + "Content-Length: 3\r\n\r\n{}"
			began = time.Now()
			if got := say(turnedAway); !strings.HasPrefix(got, "HTTP/1.1 421 ") {
				t.Errorf("a slow body of somebody who was turned away got %q", got)
			}
			if waited := time.Since(began); waited > 2*readWithin {
				t.Errorf("a slow body of somebody who was turned away held out for %s", waited)
			}
			if got := say(head + "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
				t.Errorf("a broken body got %q", got)
			}
			if got := say("GET / HTTP/1.1\r\nHost: dayc"); got != "" && !strings.HasPrefix(got, "HTTP/1.1 408") {
				t.Errorf("a slow header got %q", got)
			}
			if err := server.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestAPaceIsEachCallersOwn(t *testing.T) {
	t.Run("F2/a pace of its own", func(t *testing.T) {
		p := NewRateLimiter(1, 3)
		for range 3 {
			if err := p.Take("a"); err != nil {
				t.Fatal(err)
			}
		}
		err := p.Take("a")
		if wait := wire.SlowDown(err); wait < time.Second || wait > 2*time.Second {
			t.Errorf("one too many: %v, after %s", err, wait)
		}
		if err := p.Take("b"); err != nil {
			t.Errorf("another: %v", err)
		}
		if wire.SlowDown(nil) != 0 || wire.SlowDown(wire.ErrLost) != 0 {
			t.Error("what says nothing of it slows down")
		}
		for i := range 2 * maxBuckets {
			_ = p.Take(fmt.Sprint(i))
		}
		p.swept = time.Now().Add(-time.Hour)
		p.limit = 1e9
		for _, b := range p.buckets {
			b.SetLimit(1e9)
		}
		_ = p.Take("c")
		if len(p.buckets) > maxBuckets {
			t.Errorf("%d buckets are kept", len(p.buckets))
		}
	})
}
