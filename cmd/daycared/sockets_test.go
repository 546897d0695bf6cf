package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts speak to the sockets without our clients, as anybody may:
//
//	call agent|admin METHOD PATH [BODY [NAME:VALUE…]]   one call; stdout is the status and the body
//	stall agent|admin                                    begin a call and never end it
//	vanishes agent|admin                                 wait until the socket is gone

func socketCommands() scriptCommands {
	return scriptCommands{"call": call, "stall": stall, "vanishes": vanishes}
}

func socket(ts *testscript.TestScript, name string) string {
	return ts.Getenv("DAYCARED_API_" + strings.ToUpper(name) + "_SOCKET")
}

func call(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: call agent|admin METHOD PATH [BODY [NAME:VALUE…]]")
	}
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	var body io.Reader
	if len(args) > 3 && args[3] != "" {
		body = strings.NewReader(args[3])
	}
	request, err := http.NewRequestWithContext(ctx, args[1], "http://localhost"+args[2], body)
	ts.Check(err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, header := range args[min(len(args), 4):] {
		name, value, _ := strings.Cut(header, ":")
		request.Header.Set(name, value)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket(ts, args[0]))
	}}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", answer.StatusCode, text)
}

func stall(ts *testscript.TestScript, _ bool, args []string) {
	c, err := new(net.Dialer).DialContext(context.Background(), "unix", socket(ts, args[0]))
	ts.Check(err)
	ts.Defer(func() { c.Close() })
	_, err = io.WriteString(c, "POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	ts.Check(err)
	line, err := bufio.NewReader(c).ReadString('\n') // the server is reading the call now
	ts.Check(err)
	if !strings.Contains(line, "100") {
		ts.Fatalf("the socket says %q", line)
	}
}

func vanishes(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "the socket is gone", func(context.Context) error {
		if _, err := os.Stat(socket(ts, args[0])); !errors.Is(err, os.ErrNotExist) {
			return errors.New("it is there")
		}
		return nil
	})
}
