package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/daycared/daycared/engine/wiretest"
)

// TestOddHeadersReachNobody: a call with an oversized or ambiguous head is refused before any route, and costs other
// callers nothing.
func TestOddHeadersReachNobody(t *testing.T) {
	socket, reached := wiretest.Socket(t), make(chan string, 100)
	serveHandler(t, socket, middleware(readWhole(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached <- r.URL.Path
		_, _ = io.WriteString(w, "taken")
	})), SocketHosts), 0)
	call := func(t *testing.T, head string) (status int) {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.WriteString(c, head) // sometimes refused halfway
		}()
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = answer.Body.Close()
			_ = c.Close()
			<-sent
		}()
		return answer.StatusCode
	}
	const start, end = "GET /odd HTTP/1.1\r\nHost: localhost\r\n", "\r\n"
	long := strings.Repeat("x", 1<<20)
	many := func(line string, n int) (all string) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		head string
		want int
	}{
		"one that is too long":        {start + "X: " + long + "\r\n" + end, 431},
		"a name that is too long":     {start + "X" + long + ": x\r\n" + end, 431},
		"too many":                    {start + many("X-%d: x\r\n", 10_000) + end, 431},
		"too many of one name":        {start + many("X: %d\r\n", 10_000) + end, 431},
		"too many cookies":            {start + "Cookie: " + many("c%d=x; ", 10_000) + "\r\n" + end, 431},
		"a token that is too long":    {start + "Authorization: Bearer " + long + "\r\n" + end, 431},
		"a path that is too long":     {"GET /" + long + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
		"a query that is too long":    {"GET /odd?" + long + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
		"a host that is too long":     {"GET /odd HTTP/1.1\r\nHost: " + long + "\r\n\r\n", 431},
		"two hosts":                   {start + "Host: localhost\r\n" + end, 400},
		"no host":                     {"GET /odd HTTP/1.1\r\n\r\n", 400},
		"a host with a space":         {"GET /odd HTTP/1.1\r\nHost: local host\r\n\r\n", 400},
		"two lengths":                 {start + "Content-Length: 1\r\nContent-Length: 2\r\n" + end, 400},
		"a length below nothing":      {start + "Content-Length: -1\r\n" + end, 400},
		"a length with a sign":        {start + "Content-Length: +1\r\n" + end, 400},
		"a line without a colon":      {start + "Authorization\r\n" + end, 400},
		"a space before the colon":    {start + "Authorization : Bearer x\r\n" + end, 400},
		"a NUL":                       {start + "X: a\x00b\r\n" + end, 400},
		"a return within":             {start + "X: a\rb\r\n" + end, 400},
		"an unknown coding":           {start + "Transfer-Encoding: gzip\r\n" + end, 501},
		"a length and a coding, odd":  {start + "Transfer-Encoding: chunked, identity\r\nContent-Length: 5\r\n" + end, 501},
		"an older protocol's nothing": {"GET /odd\r\n\r\n", 400},
	} {
		t.Run("F3/"+name, func(t *testing.T) {
			if status := call(t, c.head); status != c.want || len(reached) > 0 {
				t.Errorf("%d, want %d; a route was reached %d times", status, c.want, len(reached))
			}
			if status := call(t, "GET /fine HTTP/1.1\r\nHost: localhost\r\nX: "+long[:8<<10]+"\r\n\r\n"); status != 200 || <-reached != "/fine" {
				t.Errorf("the next caller: %d", status)
			}
		})
	}
}
