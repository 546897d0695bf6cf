package server

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/engine/wiretest"
)

// A stream may last longer than any call's answer, and ends when nobody reads its next write.
func TestAStreamGoesOnAndItsReaderMayNotStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 10
		wrote := make(chan error, 1)
		streams := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			for range pieces {
				<-time.After(writeWithin) // virtual time: a quiet stream
				_, _ = io.WriteString(w, "data: x\n\n")
				if err := control.Flush(); err != nil {
					wrote <- err
					return
				}
			}
			w.(http.Flusher).Flush()
			wrote <- nil
		})
		l := wiretest.NewPipes()
		server := &http.Server{Handler: middleware(readWhole(Stream(streams)), SocketHosts)}
		go func() { _ = server.Serve(l) }()
		const get = "GET / HTTP/1.1\r\nHost: daycared\r\nConnection: close\r\n\r\n"

		near := l.Dial()
		go func() { _, _ = io.WriteString(near, get) }()
		answer, err := io.ReadAll(near)
		if err != nil || strings.Count(string(answer), "data: x") != pieces || !strings.HasSuffix(string(answer), "\r\n0\r\n\r\n") {
			t.Errorf("streamed %q, %v", answer, err)
		}
		if err := <-wrote; err != nil {
			t.Errorf("a reader that reads was cut: %v", err)
		}

		near = l.Dial()
		go func() { _, _ = io.WriteString(near, get) }()
		if line, err := bufio.NewReaderSize(near, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
		began := time.Now()
		if err := <-wrote; err == nil || time.Since(began) > 3*writeWithin {
			t.Errorf("a reader that stalls got %v after %s", err, time.Since(began))
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
