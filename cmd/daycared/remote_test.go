package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// What scripts need of the machine besides daycared:
//
//	needs PROGRAM…   end, saying what is missing, where one of them is not there
//	port NAME        set $NAME to a TCP port of this machine that is free
//	examples         set $EXAMPLES to the folder of the documentation's sample programs
//	answers STATUS BODY  give that answer to every call at $DAYCARED_SOCKET and $DAYCARED_URL, which it sets

func remoteCommands() scriptCommands {
	return scriptCommands{"needs": needs, "port": port, "examples": examples, "readme": readme, "answers": answersAll}
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

// answersAll is a program that is no daemon, as a proxy whose daemon is away.
func answersAll(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	folder, err := os.MkdirTemp("", "dc") // sockets need short names
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(folder) })
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, args[1])
	})}
	ts.Defer(func() { server.Close() })
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
}

// examples are the sample programs of the documentation: short ones, that say in one of their first two lines how they are
// called.
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
		if lines := strings.Count(text, "\n"); lines > mostLines {
			ts.Fatalf("%s has %d lines, and %d are enough", e.Name(), lines, mostLines)
		}
		if head := strings.SplitN(text, "\n", 3); !strings.Contains(head[0]+head[1], e.Name()+" KEY REASON TAG…") {
			ts.Fatalf("%s does not say how it is called", e.Name())
		}
	}
	ts.Setenv("EXAMPLES", folder)
}

const mostLines = 35
