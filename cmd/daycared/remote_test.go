package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/rogpeppe/go-internal/testscript"
)

// What scripts need of the machine besides daycared:
//
//	needs PROGRAM…   end, saying what is missing, where one of them is not there
//	port NAME        set $NAME to a TCP port of this machine that is free
//	examples         write the examples of the README into a folder, and set $EXAMPLES to it
//	javascript FILE  write what FILE, TypeScript, is without its types beside the script, as an .mjs, for an older node

func remoteCommands() scriptCommands {
	return scriptCommands{"needs": needs, "port": port, "examples": examples, "javascript": javascript}
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

func examples(ts *testscript.TestScript, _ bool, _ []string) {
	readme, err := os.ReadFile("../../README.md")
	ts.Check(err)
	folder := ts.MkAbs("examples")
	ts.Check(os.MkdirAll(folder, 0o700))
	found := exampleBlock.FindAllStringSubmatch(string(readme), -1)
	if len(found) != 3 {
		ts.Fatalf("README.md has %d of the three examples", len(found))
	}
	for _, block := range found {
		if lines := strings.Count(block[1], "\n"); lines > mostLines {
			ts.Fatalf("%s has %d lines, and %d are enough", block[2], lines, mostLines)
		}
		ts.Check(os.WriteFile(filepath.Join(folder, block[2]), []byte(block[1]), 0o600))
	}
	ts.Setenv("EXAMPLES", folder)
}

// exampleBlock is an example in the README, with its name in one of its first two lines.
var exampleBlock = regexp.MustCompile("(?s)\n```[a-z]+\n((?:[^\n]*\n)?[^\n]*\\b(ask\\.[a-z]+) KEY.*?\n)```\n")

const mostLines = 20

func javascript(ts *testscript.TestScript, _ bool, files []string) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		ts.Check(err)
		plain := api.Transform(string(text), api.TransformOptions{Loader: api.LoaderTS, Target: api.ES2022})
		for _, wrong := range plain.Errors {
			ts.Fatalf("%s: %s", file, wrong.Text)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".ts") + ".mjs"
		ts.Check(os.WriteFile(ts.MkAbs(name), plain.Code, 0o600))
	}
}
