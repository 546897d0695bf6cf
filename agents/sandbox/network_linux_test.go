package sandbox

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// servers are one of each kind that a command might reach; each answers everything.
func servers(t *testing.T) map[string]string {
	t.Helper()
	sockets, err := os.MkdirTemp("", "dc") // their paths have at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	at := map[string]string{
		"tcp": "127.0.0.1:0", "tcp6": "[::1]:0", "udp": "127.0.0.1:0",
		"docker": filepath.Join(sockets, "docker.sock"), "admin": filepath.Join(sockets, "admin.sock"),
		"abstract": "@daycared-test-" + strconv.Itoa(os.Getpid()), "unixgram": filepath.Join(sockets, "log"),
	}
	for kind, addr := range at {
		switch kind {
		case "udp", "unixgram":
			c, err := net.ListenPacket(kind, addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				for {
					_, from, err := c.ReadFrom(make([]byte, 512))
					if err != nil {
						return
					}
					_, _ = c.WriteTo([]byte("heard"), from)
				}
			}()
			at[kind] = c.LocalAddr().String()
			continue
		}
		network := "unix"
		if kind == "tcp" || kind == "tcp6" {
			network = kind
		}
		l, err := net.Listen(network, addr)
		if kind == "tcp6" && err != nil {
			at[kind] = ""
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"Containers": 1}`))
		})}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { server.Close() })
		at[kind] = l.Addr().String()
	}
	return at
}

// Without a grant no connection works; with the network, TCP and UDP do, but no unix socket, even in a writable folder.
func TestConnecting(t *testing.T) {
	at := servers(t)
	s := New(Options{})
	shut := Policy{Write: []string{filepath.Dir(at["docker"])}}
	open := shut
	open.Network = true
	for _, c := range []struct {
		kind, network string
		open          bool
	}{
		{"tcp", "tcp", true}, {"tcp6", "tcp", true}, {"udp", "udp", true},
		{"docker", "unix", false}, {"admin", "unix", false}, {"abstract", "unix", false},
	} {
		t.Run(c.kind, func(t *testing.T) {
			if at[c.kind] == "" {
				t.Log("this machine has none")
				return
			}
			if err := probe("connect", []string{c.network, at[c.kind]}); err != nil {
				t.Fatalf("it cannot be reached at all: %v", err)
			}
			if try(t, s, shut, "connect", c.network, at[c.kind]) {
				t.Error("reached without a grant")
			}
			if got := try(t, s, open, "connect", c.network, at[c.kind]); got != c.open {
				t.Errorf("with the network: %v", got)
			}
			off := New(Options{Mode: Off})
			if !try(t, off, Policy{}, "connect", c.network, at[c.kind]) {
				t.Error("not reached where the operator wants no walls")
			}
		})
	}
}

// Sockets that are not connected yet, but could be.
func TestSockets(t *testing.T) {
	at := servers(t)
	s := New(Options{})
	for _, c := range []struct {
		name       string
		probe      []string
		shut, open bool
	}{
		{"IPv4", []string{"family", "2", "1"}, false, true},
		{"IPv6", []string{"family", "10", "1"}, false, true},
		{"IPv4 datagrams", []string{"family", "2", "2"}, false, true},
		{"unix", []string{"family", "1", "1"}, false, false},
		{"netlink", []string{"family", "16", "3"}, false, false},
		{"packets", []string{"family", "17", "3"}, false, false},
		{"kernel crypto", []string{"family", "38", "5"}, false, false},
		{"virtual machines' hosts", []string{"family", "40", "1"}, false, false},
		{"raw, which is root's", []string{"family", "2", "3"}, false, false},
		{"unix, by a wide number", []string{"wide-family", "1"}, false, false},
		{"a pair of streams", []string{"pair", "1"}, true, true},
		{"a pair of packets", []string{"pair", "5"}, true, true},
		{"a pair of datagrams", []string{"pair", "2"}, false, false},
		{"a raw pair, which is of datagrams", []string{"pair", "3"}, false, false},
		{"a datagram by a pair", []string{"sendto-by-pair", at["unixgram"]}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := try(t, s, Policy{}, c.probe...); got != c.shut {
				t.Errorf("without the network: %v", got)
			}
			if got := try(t, s, Policy{Network: true}, c.probe...); got != c.open {
				t.Errorf("with it: %v", got)
			}
		})
	}
	if err := probe("sendto-by-pair", []string{at["unixgram"]}); err != nil {
		t.Errorf("a datagram by a pair goes nowhere anyway (%v); then the rule is for nothing", err)
	}
}
