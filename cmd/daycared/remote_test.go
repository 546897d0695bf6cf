package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// What scripts need of the machine besides daycared:
//
//	needs PROGRAM…   end, saying what is missing, where one of them is not there
//	port NAME        set $NAME to a TCP port of this machine that is free
//	examples         set $EXAMPLES to the folder of the documentation's sample programs

func remoteCommands() scriptCommands {
	return scriptCommands{"needs": needs, "port": port, "examples": examples, "readme": readme}
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

const mostLines = 27
