package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daycared/daycared/engine/wiretest"
)

const (
	manyCalls = 10_000
	// fewCalls is the number of waiting calls at the first measurement, when one-time allocations have been made.
	fewCalls = 500
)

// BenchmarkWaitingCall measures a server's resident memory per waiting call, with ten thousand calls on separate connections:
// the agents' server with a real engine and store, compared with net/http and a handler that reads and blocks. The servers run
// in separate processes, so that the clients are not measured.
func BenchmarkWaitingCall(b *testing.B) {
	var ours, bare, ratios []float64
	for b.Loop() {
		a, z := perCall(b, serverOurs), perCall(b, serverBare)
		ours, bare, ratios = append(ours, a), append(bare, z), append(ratios, a/z)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ours), "B/call")
	b.ReportMetric(median(bare), "B/bare-call")
	b.ReportMetric(median(ratios), "ratio")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// perCall is the resident bytes per waiting call of a kind of server.
func perCall(b *testing.B, kind string) float64 {
	b.Helper()
	socket := wiretest.Socket(b)
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		b.Fatal(err)
	}
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serverKind+"="+kind, serverSocket+"="+socket)
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	said := bufio.NewScanner(out)
	defer func() {
		in.Close()
		if err := server.Wait(); err != nil {
			b.Errorf("the server: %v", err)
		}
	}()
	var calls []net.Conn
	defer func() {
		for _, c := range calls {
			c.Close()
		}
	}()
	resident := func(waiting int) (bytes int) {
		for len(calls) < waiting {
			calls = append(calls, call(b, socket, len(calls)))
		}
		fmt.Fprintln(in, waiting)
		if !said.Scan() {
			b.Fatalf("%s: the server says nothing: %v", kind, said.Err())
		}
		if _, err := fmt.Sscan(said.Text(), &bytes); err != nil {
			b.Fatalf("%s: %q", kind, said.Text())
		}
		return bytes
	}
	said.Scan() // the server listens
	few := resident(fewCalls)
	return float64(resident(manyCalls)-few) / (manyCalls - fewCalls)
}

// call opens a connection with a waiting call.
func call(b testing.TB, socket string, n int) net.Conn {
	b.Helper()
	body := fmt.Sprintf(`{"kind":"tool","tool":"write_file","input":{"path":"/srv/www/%d"},"reason":"deploy","wait":"50s"}`, n)
	text := "POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nDaycared-Call: c" + fmt.Sprint(n) +
		"\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body
	for tick := time.Tick(time.Millisecond); ; <-tick {
		c, err := net.Dial("unix", socket)
		switch {
		case errors.Is(err, syscall.EAGAIN): // the listen queue is full
			continue
		case err == nil:
			_, err = io.Copy(c, strings.NewReader(text))
		}
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
}
