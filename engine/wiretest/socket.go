package wiretest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Quiet discards all log lines.
var Quiet = slog.New(slog.DiscardHandler)

// Socket is a path short enough for a socket on every kernel; the folder is removed after the test.
func Socket(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "daycared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "run", "s.sock")
}

// Run runs a component until the test ends or stop is called. stop waits for its end and returns how long it took.
func Run(t testing.TB, run func(context.Context) error) (stop func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() time.Duration {
		began := time.Now()
		cancel()
		if !stopped {
			stopped = true
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
		return time.Since(began)
	}
	t.Cleanup(func() { stop() })
	return stop
}

// HTTP is a client of a socket that sends requests unchanged.
func HTTP(t testing.TB, socket string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Do makes one call with a body of that type and returns the status and body of the answer.
func Do(t testing.TB, c *http.Client, method, path, contentType, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// Eventually waits for another goroutine's action that gives no signal.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-look.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
