package pgtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"path/filepath"
	"sync"
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

// Proxy is a way to a PostgreSQL that can break. Lose is safe for concurrent use, and so are Cut and Heal, which take turns.
type Proxy struct {
	// URL is that of the database behind the proxy.
	URL string

	way   sync.RWMutex // locked while nothing passes
	lose  atomic.Int32
	trips atomic.Int64
}

// Trips is how often a client waited for an answer so far.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// HasLost reports whether what Lose said was lost.
func (p *Proxy) HasLost() bool { return Loss(p.lose.Load()) == Nothing }

// Cut has nothing pass any more, in either direction, until Heal: connections stay, new ones are made, and all are silent. What was sent
// meanwhile arrives then, as it does by TCP once a network is whole again.
func (p *Proxy) Cut() { p.way.Lock() }

// Heal ends a Cut.
func (p *Proxy) Heal() { p.way.Unlock() }

// write passes bytes on once something passes.
func (p *Proxy) write(to net.Conn, part []byte) error {
	p.way.RLock()
	defer p.way.RUnlock()
	_, err := to.Write(part)
	return err
}

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
	p, network, behind := &Proxy{}, "tcp4", to.Host
	if folder := to.Query().Get("host"); folder != "" { // see [Cluster.Socket]
		network, behind = "unix", filepath.Join(folder, ".s.PGSQL."+to.Query().Get("port"))
		to.RawQuery = "sslmode=disable"
	}
	to.Host = l.Addr().String()
	p.URL = to.String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client, network, behind)
		}
	}()
	return p
}

func (p *Proxy) serve(client net.Conn, network, behind string) {
	defer func() { _ = client.Close() }() // the other side sees it
	server, err := net.Dial(network, behind)
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
			if p.write(client, part[:n]) != nil {
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
		if p.write(server, part[:n]) != nil {
			break
		}
	}
	_ = server.Close()
	<-answered
}
