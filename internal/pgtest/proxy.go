package pgtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// Loss is what a [Proxy] loses of the next COMMIT, before it closes that connection.
type Loss int32

// The losses: none, the COMMIT itself, or the answer to it.
const (
	Nothing Loss = iota
	TheCommit
	TheAnswer
)

// Proxy is a way to a PostgreSQL that can break. Lose is safe for concurrent use.
type Proxy struct {
	// URL is that of the database behind the proxy.
	URL string

	lose  atomic.Int32
	trips atomic.Int64
}

// Trips is how often a client waited for an answer so far.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// HasLost reports whether what Lose said was lost.
func (p *Proxy) HasLost() bool { return Loss(p.lose.Load()) == Nothing }

// What the protocol has for a COMMIT that pgx prepared, which it names by the hash of its text, and for the end of what is sent at once.
var (
	bindsCommit = func() []byte {
		sum := sha256.Sum256([]byte("COMMIT"))
		return []byte("\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00")
	}()
	syncs = []byte("S\x00\x00\x00\x04")
)

// Lose has the next COMMIT lost, or the answer to it.
func (p *Proxy) Lose(what Loss) { p.lose.Store(int32(what)) }

// NewProxy listens on loopback for connections to a database until the end of the test.
func NewProxy(t testing.TB, database string) *Proxy {
	t.Helper()
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p, behind := &Proxy{}, to.Host
	to.Host = l.Addr().String()
	p.URL = to.String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client, behind)
		}
	}()
	return p
}

func (p *Proxy) serve(client net.Conn, behind string) {
	defer func() { _ = client.Close() }() // the other side sees it
	server, err := net.Dial("tcp4", behind)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var silent atomic.Bool // what the server answers is lost
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		part := make([]byte, 32<<10)
		for {
			n, err := server.Read(part)
			if err != nil || silent.Load() {
				_ = client.Close()
				return
			}
			if _, err := client.Write(part[:n]); err != nil {
				return
			}
		}
	}()
	part := make([]byte, 32<<10)
	for {
		n, err := client.Read(part)
		if err != nil {
			break
		}
		p.trips.Add(int64(bytes.Count(part[:n], syncs)))
		if bytes.Contains(part[:n], bindsCommit) {
			switch Loss(p.lose.Swap(int32(Nothing))) {
			case TheCommit:
				return
			case TheAnswer:
				silent.Store(true)
			case Nothing:
			}
		}
		if _, err := io.Copy(server, bytes.NewReader(part[:n])); err != nil {
			break
		}
	}
	_ = server.Close()
	<-answered
}
