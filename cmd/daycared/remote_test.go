package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// What scripts need of the machine besides daycared:
//
//	needs PROGRAM…   end, saying what is missing, where one of them is not there
//	port NAME        set $NAME to a TCP port of this machine that is free
//	examples         set $EXAMPLES to the folder of the documentation's sample programs
//	answers STATUS BODY  give that answer to every call at $DAYCARED_SOCKET and $DAYCARED_URL, which it sets
//	detour           start a false daemon of https://daycared.example.com, whose certificate is in $FALSE_CERTS, and the proxy
//	                 $FALSE_PROXY that leads every connection to it
//	led N M          check that since the last check N connections came to that proxy, and M calls to that daemon

func remoteCommands() scriptCommands {
	return scriptCommands{
		"needs": needs, "port": port, "examples": examples, "documented": fromPage, "answers": answersAll, "refusals": refusals,
		"detour": detour, "led": led, "certificate": certificate,
	}
}

// certificate writes a certificate for 127.0.0.1, which proves itself, and its key.
func certificate(ts *testscript.TestScript, _ bool, args []string) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	ts.Check(err)
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, {Type: "PRIVATE KEY", Bytes: key}} {
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), pem.EncodeToMemory(block), 0o600))
	}
}

func needs(ts *testscript.TestScript, _ bool, programs []string) {
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			ts.Fatalf("%s is missing on this machine, and what is tested here needs it", program)
		}
	}
}

func port(ts *testscript.TestScript, _ bool, args []string) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	_, free, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Check(l.Close())
	ts.Setenv(args[0], free)
}

// answersAll serves a program that is no daemon, such as a proxy whose daemon is away.
func answersAll(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	serveAll(ts, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, args[1])
	})
}

// serveAll serves at $DAYCARED_SOCKET and $DAYCARED_URL, which it sets, until the script or stop ends it.
func serveAll(ts *testscript.TestScript, handler http.HandlerFunc) (stop func()) {
	folder, err := os.MkdirTemp("", "dc") // sockets need short paths
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(folder) })
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler}
	stop = func() { server.Close() }
	ts.Defer(stop)
	socket := filepath.Join(folder, "agent")
	local, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket)
	ts.Check(err)
	remote, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	for _, l := range []net.Listener{local, remote} {
		go func() { _ = server.Serve(l) }()
	}
	ts.Setenv("DAYCARED_SOCKET", socket)
	ts.Setenv("DAYCARED_URL", "http://"+remote.Addr().String())
	return stop
}

// detoured counts connections to a script's proxy, and calls to its false daemon.
type detoured struct{ connections, calls atomic.Int32 }

type detouredKey struct{}

// detour starts a daemon that approves everything, with a certificate that no machine trusts by default, and a proxy that leads
// every connection to it.
func detour(ts *testscript.TestScript, _ bool, _ []string) {
	seen, ok := ts.Value(detouredKey{}).(*detoured)
	if !ok {
		ts.Fatalf("the script was set up without a place for what a false daemon sees")
	}
	approve := approving(func(*permissions.Request) {})
	daemon := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.calls.Add(1)
		approve(w, r)
	}))
	daemon.Config.ErrorLog = log.New(io.Discard, "", 0)
	daemon.StartTLS() // its certificate is for *.example.com too
	ts.Defer(daemon.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen.connections.Add(1)
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", daemon.Listener.Addr().String())
		if err != nil {
			return
		}
		defer far.Close()
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(far, near); far.Close() }()
		_, _ = io.Copy(near, far) // until either side closes
	}))
	ts.Defer(proxy.Close)
	folder := ts.MkAbs("certs")
	ts.Check(os.Mkdir(folder, 0o700))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: daemon.Certificate().Raw})
	ts.Check(os.WriteFile(filepath.Join(folder, "false.pem"), certificate, 0o600))
	ts.Setenv("FALSE_PROXY", proxy.URL)
	ts.Setenv("FALSE_CERTS", filepath.Join(folder, "false.pem"))
}

func led(ts *testscript.TestScript, neg bool, args []string) {
	seen, ok := ts.Value(detouredKey{}).(*detoured)
	if neg || len(args) != 2 || !ok {
		ts.Fatalf("usage: led N M, after detour")
	}
	if got := fmt.Sprint(seen.connections.Swap(0), seen.calls.Swap(0)); got != args[0]+" "+args[1] {
		ts.Fatalf("connections to the proxy and calls to the false daemon: %s, want %s", got, strings.Join(args, " "))
	}
}

// refusals runs the sample programs against every refusal that a daemon can return: they end as it says and print why, or wait
// as long as it says and continue.
func refusals(ts *testscript.TestScript, _ bool, _ []string) {
	for _, refusal := range []error{
		permissions.Invalid(errors.New("a reason is missing")), permissions.Forbidden("x"), permissions.OwnFiles("@read:/srv"),
		permissions.KeyTaken(), permissions.NoRoute("deploy"), permissions.Stopped("fay"), permissions.CoolingDown(time.Second),
		permissions.Limit(time.Second), permissions.UnknownToken(), permissions.SuspendedToken("01J"), permissions.TokenNeeded(),
		permissions.KeyWithoutName(), permissions.Unknown("K7F3Q"), permissions.NotYours(), permissions.Broken("the disk is full"),
		permissions.RevokedBasis(), context.Canceled, errors.New("an accident"),
	} {
		p := wire.ProblemOf(refusal)
		goesOn := p.Code == string(permissions.CodeLimit) || p.Code == "ask-again"
		for _, sample := range [][]string{{"python3", "ask.py"}, {"node", "ask.mjs"}, {"sh", "ask.sh"}} {
			if goesOn && sample[0] == "sh" {
				continue // daycared ask waits too, and then expects a row for its question
			}
			calls, stop := refuseOnce(ts, p)
			token := ts.Getenv("DAYCARED_TOKEN_FILE")
			if sample[0] == "sh" { // it asks at the socket, as this account
				ts.Setenv("DAYCARED_URL", "")
				ts.Setenv("DAYCARED_TOKEN_FILE", "")
			}
			began := time.Now()
			err := ts.Exec(sample[0], filepath.Join(ts.Getenv("EXAMPLES"), sample[1]), "k", "deploy", "@network")
			stop()
			ts.Setenv("DAYCARED_TOKEN_FILE", token)
			var failed *exec.ExitError
			code, said := 0, ts.ReadFile("stdout")+ts.ReadFile("stderr")
			if errors.As(err, &failed) {
				code = failed.ExitCode()
			}
			want, times := p.Exit, int32(1)
			if goesOn {
				want, times = 0, 2
			}
			if code != want || calls.Load() != times || !strings.Contains(said, p.Detail) {
				ts.Fatalf("%s after %s: exit code %d, not %d, %d calls, and it says\n%s", sample[1], p.Code, code, want, calls.Load(), said)
			}
			if goesOn && time.Since(began) < time.Second {
				ts.Fatalf("%s did not wait as %s says", sample[1], p.Code)
			}
		}
	}
}

// refuseOnce is a daemon that refuses the first call with p and allows the second.
func refuseOnce(ts *testscript.TestScript, p *wire.Problem) (calls *atomic.Int32, stop func()) {
	calls = new(atomic.Int32)
	return calls, serveAll(ts, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"permission","permissions":["@network"],"reason":"deploy","key":"k","state":"approved",`+
				`"result":"Permission granted for network access."}`)
			return
		}
		for name, values := range p.GetHeaders() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", p.ContentType(""))
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // the caller may have gone
	})
}

// examples sets $EXAMPLES to the documentation's sample programs, and checks that they are short and say at their top how to call
// them.
func examples(ts *testscript.TestScript, _ bool, _ []string) {
	folder, err := filepath.Abs("../../docs/examples")
	ts.Check(err)
	all, err := os.ReadDir(folder)
	ts.Check(err)
	for _, e := range all {
		if filepath.Ext(e.Name()) == ".yaml" {
			continue
		}
		text := ts.ReadFile(filepath.Join(folder, e.Name()))
		if lines := strings.Count(text, "\n"); lines > maxLines {
			ts.Fatalf("%s has %d lines, and %d are enough", e.Name(), lines, maxLines)
		}
		if head := strings.SplitN(text, "\n", 3); !strings.Contains(head[0]+head[1], e.Name()+" KEY REASON TAG…") {
			ts.Fatalf("%s does not say how it is called", e.Name())
		}
	}
	ts.Setenv("EXAMPLES", folder)
}

const maxLines = 45
