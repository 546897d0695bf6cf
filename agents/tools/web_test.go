package tools

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/daycared/daycared/agents"
)

// pages is a server with a page of each kind.
func pages(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		})
	}
	page("/html", "text/html; charset=utf-8", `<html><head><title>A page</title><style>no{}</style></head><body><script>alert(1)</script>
		<h1>Heading</h1><p>Some   <b>bold</b>
		text, <a href="https://example.org/x">a link</a> <a href="javascript:x">none</a>.</p><ul><li>one<li>two</ul>
		<table><tr><td>a</td><td>b</td></tr></table><pre>as
  it is</pre></body></html>`)
	page("/latin", "text/html; charset=iso-8859-1", "<p>caf\xe9</p>")
	page("/json", "application/json", `{"a": 1}`)
	page("/vendor", "application/vnd.x+json", `{"b": 1}`)
	page("/plain", "text/plain", strings.Repeat("x", 100_000))
	page("/image", "image/png", "\x89PNG")
	page("/lie", "text/plain; charset=utf-8", "a\x00b")
	page("/odd", ";;;", "x")
	page("/large", "text/plain", strings.Repeat("x", maxFetched+1))
	page("/secret", "text/plain", "the secret")
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not here", http.StatusNotFound) })
	mux.HandleFunc("/untyped", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "some text")
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "x")
	})
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.UserAgent()+r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Referer())
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func loopback(t *testing.T) Workspace {
	t.Helper()
	return Workspace{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.with(t, "@network")
}

func TestFetchURL(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	server, p := pages(t), loopback(t)
	for _, c := range []struct {
		path   string
		failed bool
		says   string
	}{
		{"/html", false, server.URL + "/html\n200 OK\n\n# A page\n\nHeading\n\nSome bold text, a link (https://example.org/x) none.\n\n" +
			"- one\n\n- two\n\na\tb\n\nas\n  it is"},
		{"/latin", false, "café"},
		{"/json", false, `{"a": 1}`},
		{"/vendor", false, `{"b": 1}`},
		{"/untyped", false, "some text"},
		{"/plain", false, "bytes are left out here"},
		{"/who", false, "\n\ndaycared"},
		{"/none", true, "404 Not Found\n\nnot here"},
		{"/image", true, "it is image/png, 4 bytes, and no text"},
		{"/lie", true, "it says that it is text/plain, and is no text"},
		{"/odd", true, "which is none"},
		{"/large", true, "more than 5242880 bytes"},
		{"/cut", true, "the connection ended before the answer was whole"},
		{"/round", true, "redirected more than 5 times"},
		{"/to?u=/json%3Ftoken=x", false, server.URL + "/json\n200 OK"},
		{"/to?u=ftp://example.org/", true, `"ftp" is not http or https`},
		{"/to?u=http://a:b@127.0.0.1/", true, "must not hold a name or password"},
		{"/to?u=http://169.254.169.254/latest%3Ftoken=x", true, "another host: to read that, fetch http://169.254.169.254/latest"},
		{"/to?u=http://[::1]/", true, "another host: to read that, fetch http://[::1]/"},
		{"/to?u=https://" + strings.TrimPrefix(server.URL, "http://") + "/json", true, "it answers by http, not by https"},
	} {
		o := call(t, p, "fetch_url", args{"url": server.URL + c.path})
		o.says(t, c.failed, c.says)
		if strings.Contains(o.Text, "token") || strings.Contains(o.Text, "alert") {
			t.Errorf("%s: the model is told %q", c.path, o.Text)
		}
	}
	o := call(t, p, "fetch_url", args{"url": server.URL + "/plain", "pause": true})
	if kept := o.artifact(t, agents.ArtifactStdout); o.Pause != o.Text || len(kept.Text) != 100_000 {
		t.Errorf("people are shown %.100q, and %d bytes are kept", o.Pause, len(kept.Text))
	}
	server.Close()
	if o := call(t, p, "fetch_url", args{"url": server.URL + "/html?token=x"}); !o.Error || strings.Contains(o.Text, "token") {
		t.Errorf("an error says %q", o.Text)
	}
}

// Errors of a fetch are plain words without Go's terms; an address may contain a secret.
func TestWhatFetchingFailsByIsToldInWords(t *testing.T) {
	server := pages(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	tool := typed[fetchInput]{fetchURL{resolver: nameServer(t, func() netip.Addr { return netip.Addr{} })}}
	for address, want := range map[string]string{
		"http://nowhere.example/?token=x": "fetch nowhere.example: the host nowhere.example is not known",
		gone.URL + "/?token=x":            "fetch " + strings.TrimPrefix(gone.URL, "http://") + ": the connection was refused",
		strings.Replace(server.URL, "http:", "https:", 1): "fetch " + strings.TrimPrefix(server.URL, "http://") +
			": it answers by http, not by https",
	} {
		o := tool.Run(t.Context(), loopback(t), args{"url": address}.json(t), Plan{})
		if !o.Error || o.Text != want {
			t.Errorf("%s: %q\nwant %q", address, o.Text, want)
		}
	}
	late, end := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer end()
	if err := fetchError(late, late.Err()); err.Error() != "it did not answer in 30 s" {
		t.Error(err)
	}
}

// Nothing is fetched without the tag, and nothing private without the operator's permission, however it is named.
func TestPrivateAddresses(t *testing.T) {
	server := pages(t)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	if got := plan(t, Workspace{}, "fetch_url", args{"url": server.URL}); needs(got) != "network access" {
		t.Errorf("it needs %q", needs(got))
	}
	call(t, Workspace{}, "fetch_url", args{"url": server.URL}).says(t, true, "there is no network access")
	p := Workspace{}.with(t, "@network")
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1", "2130706433", "0x7f.1",
	} {
		o := call(t, p, "fetch_url", args{"url": "http://" + host + ":" + port + "/secret"})
		if !o.Error || strings.Contains(o.Text, "the secret") {
			t.Errorf("%s: %s", host, o.Text)
		}
	}
	call(t, loopback(t), "fetch_url", args{"url": "http://[::ffff:127.0.0.1]:" + port + "/secret"}).says(t, false, "the secret")
}

// A name that resolves to a public address first and a private one later is not connected to.
func TestDNSRebinding(t *testing.T) {
	server := pages(t)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var asked atomic.Int32
	resolver := nameServer(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return netip.MustParseAddr("93.184.215.14")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	addrs, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.example")
	if err != nil || len(addrs) != 1 || reachable(addrs[0], nil) != nil {
		t.Fatalf("at first it is %v: %v", addrs, err)
	}
	one := typed[fetchInput]{fetchURL{resolver}}
	in := args{"url": "http://rebind.example:" + port + "/secret"}.json(t)
	one.Run(t.Context(), Workspace{}.with(t, "@network"), in, Plan{}).says(t, true, "127.0.0.1 is no public address")
	one.Run(t.Context(), loopback(t), in, Plan{}).says(t, false, "the secret")
	if asked.Load() < 3 {
		t.Errorf("the name server was asked %d times", asked.Load())
	}
}

// nameServer is a resolver with our own UDP server, which answers every address question.
func nameServer(t *testing.T, address func() netip.Addr) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { c.Close(); <-done })
	go func() {
		defer close(done)
		for buf := make([]byte, 1500); ; {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer, err := answerTo(buf[:n], address); err == nil {
				_, _ = c.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

func answerTo(question []byte, address func() netip.Addr) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, errors.Join(err, errors.New("no question"))
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		a := address()
		if !a.IsValid() {
			m.RCode = dnsmessage.RCodeNameError
			return m.Pack()
		}
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: a.As4()},
		}}
	}
	return m.Pack()
}

// Every kind of non-public address is refused, also inside another.
func TestAddresses(t *testing.T) {
	for i, c := range []struct {
		addr   string
		public bool
	}{
		{"93.184.215.14", true}, {"1.1.1.1", true}, {"2606:4700:4700::1111", true}, {"64:ff9b::1.1.1.1", true}, {"172.32.0.1", true},
		{"127.0.0.1", false}, {"127.255.255.254", false}, {"10.1.2.3", false}, {"172.16.0.1", false}, {"172.31.255.255", false},
		{"192.168.1.1", false}, {"169.254.169.254", false}, {"100.64.0.1", false}, {"100.100.100.200", false}, {"0.0.0.0", false},
		{"0.1.2.3", false}, {"192.0.0.192", false}, {"192.0.2.1", false}, {"198.18.0.1", false}, {"198.51.100.1", false},
		{"203.0.113.1", false}, {"224.0.0.1", false}, {"239.255.255.250", false}, {"240.0.0.1", false}, {"255.255.255.255", false},
		{"192.88.99.1", false},
		{"::", false}, {"::1", false}, {"fe80::1", false}, {"fe80::1%eth0", false}, {"fc00::1", false}, {"fd00:ec2::254", false},
		{"fec0::1", false}, {"ff02::1", false}, {"2001:db8::1", false}, {"2001::1", false}, {"2002:7f00:1::", false},
		{"2002:101:101::", false}, {"::127.0.0.1", false}, {"::ffff:127.0.0.1", false}, {"::ffff:10.0.0.1", false},
		{"64:ff9b::127.0.0.1", false}, {"64:ff9b::a9fe:a9fe", false}, {"64:ff9b:1::1.1.1.1", false}, {"100::1", false},
	} {
		t.Run(strconv.Itoa(i)+" "+c.addr, func(t *testing.T) {
			a := netip.MustParseAddr(c.addr)
			if err := reachable(a, nil); (err == nil) != c.public {
				t.Errorf("%v", err)
			}
			all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
			if err := reachable(a.WithZone(""), all); err != nil {
				t.Errorf("allowed: %v", err)
			}
		})
	}
}
