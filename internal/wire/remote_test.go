package wire

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// remote is a client of a server whose certificate it trusts.
func remote(t *testing.T, s *httptest.Server) *Client {
	t.Helper()
	c, err := NewRemoteClient(s.URL+"/under/", RemoteOptions{})
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
		if err == nil || !strings.Contains(err.Error(), "not followed") || strings.Contains(err.Error(), "secret") || IsConnectionError(err) {
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
		if err := c.Call(t.Context(), http.MethodGet, "/v1/x", nil, nil, 0, nil); err == nil || IsConnectionError(err) {
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
	if err == nil || IsConnectionError(err) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	c, err := NewRemoteClient(strings.Replace(plain.URL, "http:", "https:", 1), RemoteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil); err == nil || IsConnectionError(err) {
		t.Errorf("in the clear: %v", err)
	}
}

// A local name must lead to this machine at the connection, whatever DNS says.
func TestATokenInTheClearDoesNotLeaveThisMachine(t *testing.T) {
	for address, here := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"192.0.2.7:1": false, "[2001:db8::1]:1": false, "0.0.0.0:1": false, "localhost:1": false, "": false,
	} {
		if err := onlyHere(context.Background(), "tcp", address, nil); errors.Is(err, errElsewhere) == here {
			t.Errorf("%s: %v", address, err)
		}
	}
	c := NewClient("/s", nil)
	if err := c.lost(t.Context(), fmt.Errorf("dial: %w", errElsewhere)); IsConnectionError(err) {
		t.Errorf("it is tried again: %v", err)
	}
}

// A call goes only to this account, root, and accounts that are known to be the daemon's, whether or not it has a key or token:
// another process that serves the socket could answer with an approval.
func TestAnUnknownAccountIsNotCalled(t *testing.T) {
	folder, err := os.MkdirTemp("", "dc")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var heard atomic.Value
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard.Store(r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("{}"))
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	own, stranger, known := os.Geteuid(), 4242, 4243
	for _, c := range []struct {
		name string
		peer int
		err  error
		bare bool
		goes bool
	}{
		{name: "this account", peer: own, goes: true}, {name: "root", peer: 0, goes: true}, {name: "one who may know", peer: known, goes: true},
		{name: "a stranger", peer: stranger}, {name: "nobody knows", err: errors.New("odd")},
		{name: "a stranger, without a secret", peer: stranger, bare: true},
		{name: "one who may know, without", peer: known, bare: true, goes: true},
	} {
		t.Run("G2/"+c.name, func(t *testing.T) {
			client := NewClient(socket, func(uid int) bool { return uid == known })
			defer client.Close()
			client.peer = func(net.Conn) (int, error) { return c.peer, c.err }
			header := http.Header{"Authorization": {"Bearer secret"}}
			if c.bare {
				header = nil
			}
			heard.Store("nothing")
			err := client.Call(t.Context(), http.MethodGet, "/v1/whoami", header, nil, 0, nil)
			if c.goes != (err == nil) || c.goes == (heard.Load() == "nothing") || (heard.Load() == "Bearer secret") != (c.goes && !c.bare) {
				t.Errorf("%v, heard %q", err, heard.Load())
			}
			if c.peer == stranger && !c.goes &&
				(!errors.Is(err, errUntrustedServer) || IsConnectionError(err) || !strings.Contains(err.Error(), "uid 4242")) {
				t.Errorf("says %v", err)
			}
		})
	}
	if here := os.Getuid(); !Owns(here, socket) || Owns(here+1, socket) || Owns(here, socket+"x") {
		t.Error("whose a file is is not known")
	}
}

// A socket of another account counts as the daemon's only where nobody else can have put it there.
func TestWhoCanHavePutASocketThere(t *testing.T) {
	other, open := os.Geteuid()+1, filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.MkdirAll(filepath.Join(open, "inner"), 0o700), os.Chmod(open, os.ModeSticky|0o777)); err != nil {
		t.Fatal(err)
	}
	for socket, want := range map[string]bool{
		"/s": true, "/etc/s": true, open + "/s": false, open + "/inner/s": false, "/nowhere/s": false,
	} {
		if got := IsTrustedSocket(other, socket); got != want {
			t.Errorf("at %s: %v", socket, got)
		}
	}
	if t.Chdir(open); IsTrustedSocket(other, "s") || !IsTrustedSocket(0, "/etc/s") {
		t.Error("a relative path is not looked at")
	}
}

// Connection errors are explained in plain words, without a library's.
func TestALostConnectionIsToldInWords(t *testing.T) {
	for name, answer := range map[string]string{
		"EOF": "", "half": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", "other": "220 mail.example\r\n", "binary": "\x00\x01\x02\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1000))
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}()
			c, err := NewRemoteClient("http://"+l.Addr().String(), RemoteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = c.Call(t.Context(), http.MethodGet, "/v1/whoami", nil, nil, 0, nil)
			if !errors.Is(err, ErrLost) {
				t.Fatalf("%v", err)
			}
			for _, word := range []string{"http:", "Get ", "EOF"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("it says %v", err)
				}
			}
		})
	}
}

// The configured proxy and certificates are used.
func TestProxyAndCertificatesAreUsed(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca, empty := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "empty.pem")
	for file, block := range map[string][]byte{
		ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), empty: nil,
	} {
		if err := os.WriteFile(file, block, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := NewRemoteClient(s.URL, RemoteOptions{CAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil); err != nil {
		t.Errorf("with its certificate: %v", err)
	}
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	through, err := NewRemoteClient("https://daycared.example", RemoteOptions{Proxy: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	if err := through.Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil); err == nil || asked.Load() != "CONNECT daycared.example:443" {
		t.Errorf("the proxy was asked %v: %v", asked.Load(), err)
	}
	for name, way := range map[string]struct {
		url string
		RemoteOptions
	}{
		"a proxy on this machine":         {"http://127.0.0.1:1", RemoteOptions{Proxy: "http://proxy.example"}},
		"certificates on this machine":    {"http://127.0.0.1:1", RemoteOptions{CAFile: ca}},
		"a proxy without a scheme":        {s.URL, RemoteOptions{Proxy: "proxy.example:3128"}},
		"a proxy that is none":            {s.URL, RemoteOptions{Proxy: "ftp://proxy.example"}},
		"certificates that are not there": {s.URL, RemoteOptions{CAFile: ca + "x"}},
		"no certificates":                 {s.URL, RemoteOptions{CAFile: empty}},
	} {
		t.Run("G2/"+name, func(t *testing.T) {
			if _, err := NewRemoteClient(way.url, way.RemoteOptions); err == nil {
				t.Error("taken")
			}
		})
	}
}

// Delays grow by half from the first to the longest, vary by half, and begin anew after a success.
func TestDelaysBetweenTriesGrowAndVary(t *testing.T) {
	tries := NewBackoff(time.Second, 3*time.Second)
	seen := map[time.Duration]bool{}
	for range 2 {
		for _, about := range []time.Duration{1000, 1500, 2250, 3000, 3000} {
			about *= time.Millisecond
			delay := tries.NextBackOff()
			if delay < about/2 || delay > about+about/2 {
				t.Errorf("%s, want about %s", delay, about)
			}
			seen[delay] = true
		}
		tries.Reset()
	}
	if len(seen) < 5 {
		t.Errorf("the delays do not vary: %v", seen)
	}
}
