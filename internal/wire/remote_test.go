package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// remote is a client of a server whose certificate it trusts.
func remote(t *testing.T, s *httptest.Server) *Client {
	t.Helper()
	c, err := NewRemoteClient(s.URL + "/under/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/"+r.Header.Get("Authorization"), status)
		}))
		header := http.Header{"Authorization": {"Bearer secret"}}
		err := remote(t, s).Call(t.Context(), http.MethodGet, "/v1/x", header, nil, 0, nil)
		if err == nil || !strings.Contains(err.Error(), "not followed") || strings.Contains(err.Error(), "secret") || Gone(err) {
			t.Errorf("%d: %v", status, err)
		}
		s.Close()
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d calls went elsewhere", n)
	}
}

func TestWhatAProxySaysOfADaemonThatIsAway(t *testing.T) {
	status, path := 0, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html>"))
	}))
	defer s.Close()
	c := remote(t, s)
	for status = range map[int]bool{502: true, 503: true, 504: true} {
		if err := c.Call(t.Context(), http.MethodGet, "/v1/x", nil, nil, 0, nil); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%d: %v", status, err)
		}
	}
	for status = range map[int]bool{400: true, 401: true, 404: true, 500: true} {
		if err := c.Call(t.Context(), http.MethodGet, "/v1/x", nil, nil, 0, nil); err == nil || Gone(err) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if path != "/under/v1/x" {
		t.Errorf("called %s", path)
	}
}

func TestAnUnknownCertificateEndsAsking(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	err := remote(t, s).Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil)
	if err == nil || Gone(err) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	c, err := NewRemoteClient(strings.Replace(plain.URL, "http:", "https:", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil); err == nil || Gone(err) {
		t.Errorf("in the clear: %v", err)
	}
}

// A name that stands for this machine is held to that when it is called, whatever a name server says.
func TestATokenInTheClearDoesNotLeaveThisMachine(t *testing.T) {
	for address, here := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"192.0.2.7:1": false, "[2001:db8::1]:1": false, "0.0.0.0:1": false, "localhost:1": false, "": false,
	} {
		if err := onlyHere(context.Background(), "tcp", address, nil); errors.Is(err, errElsewhere) == here {
			t.Errorf("%s: %v", address, err)
		}
	}
	c := NewClient("/s")
	if err := c.lost(t.Context(), fmt.Errorf("dial: %w", errElsewhere)); Gone(err) {
		t.Errorf("it is tried again: %v", err)
	}
}

func TestAPaceIsEachCallersOwn(t *testing.T) {
	p := NewPace(1, 3)
	for range 3 {
		if err := p.Take("a"); err != nil {
			t.Fatal(err)
		}
	}
	err := p.Take("a")
	if wait := SlowDown(err); wait < time.Second || wait > 2*time.Second {
		t.Errorf("one too many: %v, after %s", err, wait)
	}
	if err := p.Take("b"); err != nil {
		t.Errorf("another: %v", err)
	}
	if SlowDown(nil) != 0 || SlowDown(ErrLost) != 0 {
		t.Error("what says nothing of it slows down")
	}
	for i := range 2 * mostBuckets {
		_ = p.Take(fmt.Sprint(i))
	}
	p.swept = time.Now().Add(-time.Hour)
	p.limit = 1e9
	for _, b := range p.buckets {
		b.SetLimit(1e9)
	}
	_ = p.Take("c")
	if len(p.buckets) > mostBuckets {
		t.Errorf("%d buckets are kept", len(p.buckets))
	}
}
