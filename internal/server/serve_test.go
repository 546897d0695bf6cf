package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

var quiet = slog.New(slog.DiscardHandler)

// serveDoor serves until the test ends or stop is called, which returns how long stopping took.
func serveDoor(t *testing.T, socket string, door *Server, perPeer int) (stop func() time.Duration) {
	t.Helper()
	return serveHandler(t, socket, door.Handler(Listener{}), perPeer)
}

func serveHandler(t *testing.T, socket string, h http.Handler, perPeer int) (stop func() time.Duration) {
	t.Helper()
	l, err := Listen(socket, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h, perPeer, quiet) }()
	var once sync.Once
	stop = func() time.Duration {
		began := time.Now()
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("serve: %v", err)
			}
		})
		return time.Since(began)
	}
	t.Cleanup(func() { stop() })
	return stop
}

func client(t *testing.T, socket string) *wire.Client {
	t.Helper()
	c := wire.NewClient(socket, nil)
	t.Cleanup(c.Close)
	return c
}

func TestThePeerIsKnown(t *testing.T) {
	socket := wiretest.Socket(t)
	uids := make(chan int, 1)
	serveHandler(t, socket, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		uids <- PeerUID(r.Context())
	}), 0)
	if err := client(t, socket).Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-uids; got != os.Getuid() {
		t.Errorf("the peer is %d, want %d", got, os.Getuid())
	}
	if got := PeerUID(t.Context()); got != permissions.NoUID {
		t.Errorf("nobody is %d", got)
	}
}

func TestAnAccountHasSoManyConnections(t *testing.T) {
	t.Run("F3/connections of an account", func(t *testing.T) {
		socket := wiretest.Socket(t)
		serveHandler(t, socket, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), 2)
		dial := func() net.Conn {
			c, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		answered := func(c net.Conn) bool {
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: daycared\r\n\r\n"); err != nil {
				return false
			}
			_, err := c.Read(make([]byte, 1))
			return err == nil
		}
		first, second := dial(), dial()
		if !answered(first) || !answered(second) {
			t.Fatal("two connections were not served")
		}
		if answered(dial()) {
			t.Error("a third connection was served")
		}
		_ = first.Close()
		for deadline := time.Now().Add(5 * time.Second); !answered(dial()); { // until the server noticed that it left
			if time.Now().After(deadline) {
				t.Fatal("a closed connection still counts")
			}
		}
	})
}

func TestStoppingEndsLongPollsWithinASecond(t *testing.T) {
	socket := wiretest.Socket(t)
	waiting := make(chan struct{})
	stop := serveHandler(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
		_, _ = io.WriteString(w, `"as it stands"`)
	}), 0)
	answer := make(chan string, 1)
	c := client(t, socket)
	go func() {
		var text string
		if err := c.Call(context.Background(), http.MethodGet, "/", nil, nil, wire.MaxWait, &text); err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	<-waiting
	if took := stop(); took > time.Second {
		t.Errorf("stopping took %s", took)
	}
	if got := <-answer; got != "as it stands" {
		t.Errorf("the long poll got %q", got)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestStoppingDoesNotWaitForWhoWillNotEnd(t *testing.T) {
	socket := wiretest.Socket(t)
	waiting, end := make(chan struct{}), make(chan struct{})
	stop := serveHandler(t, socket, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(waiting)
		<-end
	}), 0)
	failed := make(chan error, 1)
	c := client(t, socket)
	go func() { failed <- c.Call(context.Background(), http.MethodGet, "/", nil, nil, wire.MaxWait, nil) }()
	<-waiting
	if took := stop(); took > repliesWithin+time.Second {
		t.Errorf("stopping took %s", took)
	}
	close(end)
	if err := <-failed; !errors.Is(err, wire.ErrLost) {
		t.Errorf("the call that was cut off says %v", err)
	}
}

// pipes is an in-memory listener of one connection.
type pipes struct {
	ready chan net.Conn
	over  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.ready:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.over); return nil }

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// A stop ends with the last call, not at the next tick of a timer.
func TestAStopThatIsDoneEarlyEndsEarly(t *testing.T) {
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 270 * time.Millisecond, 530 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				l := pipes{make(chan net.Conn, 1), make(chan struct{})}
				l.ready <- far
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						<-r.Context().Done()
						<-time.After(after)
						_, _ = io.WriteString(w, "as it stands")
					}), wiretest.Quiet)
				}()
				answer := make(chan string, 1)
				go func() {
					_, _ = io.WriteString(near, "GET / HTTP/1.1\r\nHost: daycared\r\n\r\n")
					text, _ := io.ReadAll(near)
					answer <- string(text)
				}()
				synctest.Wait() // the call waits
				began := time.Now()
				stop()
				err := <-ended
				if took := time.Since(began); err != nil || took > after+5*time.Millisecond {
					t.Errorf("it took %s, and not %s: %v", took, after, err)
				}
				if got := <-answer; !strings.HasSuffix(got, "as it stands") {
					t.Errorf("the call got %q", got)
				}
			})
		})
	}
}

// Waiting callers get the current state, however long that takes to read; calls with incomplete bodies are not waited for.
func TestAStopAnswersThoseWhoWait(t *testing.T) {
	socket := wiretest.Socket(t)
	arrived, left := make(chan struct{}, 2), make(chan struct{}, 2)
	stop := serveHandler(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		defer func() { left <- struct{}{} }()
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
		<-time.After(bodyWithin + 200*time.Millisecond)
		_, _ = io.WriteString(w, `"as it stands"`)
	}), 0)
	slow, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	if _, err := io.WriteString(slow, "POST / HTTP/1.1\r\nHost: daycared\r\nContent-Length: 10\r\n\r\n12345"); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	c := client(t, socket)
	go func() {
		var text string
		if err := c.Call(context.Background(), http.MethodPost, "/", nil, map[string]string{"x": "y"}, wire.MaxWait, &text); err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	<-arrived
	<-arrived
	stop()
	if got := <-answer; got != "as it stands" {
		t.Errorf("who waits got %q", got)
	}
	if n, err := slow.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a call that was not read whole was answered")
	}
	<-left
	<-left // the server did not wait for the call that it cut off
}

// An idle connection does not count as a call that a stop cuts off.
func TestAStopWarnsOfCallsAlone(t *testing.T) {
	socket := wiretest.Socket(t)
	l, err := Listen(socket, "")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	go func() { done <- Serve(ctx, l, h, 0, slog.New(slog.NewTextHandler(&said, nil))) }()
	silent, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	if err := client(t, socket).Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil); err != nil { // by then the other is accepted
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil || said.Len() > 0 {
		t.Errorf("%v; it logs:\n%s", err, &said)
	}
}

func TestAListenerThatFailsEndsServing(t *testing.T) {
	l, err := Listen(wiretest.Socket(t), "")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := Serve(t.Context(), l, http.NotFoundHandler(), 0, quiet); err == nil {
		t.Error("served on a closed listener")
	}
}

func TestConnectionsWithoutAnAccountAreClosed(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, tcp, http.NotFoundHandler(), 0, quiet) }()
	c, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a TCP connection got %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUnreachableAndGivingUpAreTold(t *testing.T) {
	c := client(t, wiretest.Socket(t))
	err := c.Call(t.Context(), http.MethodGet, "/", nil, nil, 0, nil)
	if !errors.Is(err, wire.ErrUnreachable) || !wire.IsConnectionError(err) {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := c.Stream(t.Context(), "/", nil); !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("no stream: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Call(ended, http.MethodGet, "/", nil, nil, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if err := timing.Pause(ended, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("pause: %v", err)
	}
	if err := c.Call(t.Context(), "bad method", "/", nil, nil, 0, nil); err == nil {
		t.Error("a bad method was sent")
	}
	if err := c.Call(t.Context(), http.MethodPost, "/", nil, func() {}, 0, nil); err == nil {
		t.Error("a function was sent")
	}
}

func TestAFailedHandshakeIsLoggedAtDebug(t *testing.T) {
	var text strings.Builder
	f := httpErrorLog{slog.New(slog.NewTextHandler(&text, nil))}
	for _, line := range []string{"http: TLS handshake error from 192.0.2.7:1: EOF\n", "http: panic serving 192.0.2.7:1: boom\n"} {
		if n, err := f.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if got := text.String(); strings.Contains(got, "handshake") || !strings.Contains(got, "boom") {
		t.Errorf("logged %s", got)
	}
}
