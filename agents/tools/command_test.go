package tools

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/sandbox"
)

func TestRunCommand(t *testing.T) {
	dir, p := tempFiles(t, map[string]string{"ws/a": "one\n", "ws/sub/b": "", "out/secret": "secret\n", "out/other": "other\n"})
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		name   string
		in     args
		held   []string
		needs  string
		failed bool
		says   string
		exit   int
	}{
		{"well", args{"command": "cat a; pwd"}, nil, "", false, "exit code 0\nstdout:\none\n" + p.Workspace, 0},
		{"nothing written", args{"command": "true"}, nil, "", false, "exit code 0", 0},
		{"badly", args{"command": "echo oh >&2; exit 3"}, nil, "", true, "exit code 3\nstderr:\noh\n", 3},
		{"a signal", args{"command": "kill -9 $$"}, nil, "", true, "exit code 137", 137},
		{"no input", args{"command": "cat"}, nil, "", false, "exit code 0", 0},
		{"home", args{"command": `echo "$HOME"`}, nil, "", false, p.Workspace, 0},
		{"a folder", args{"command": "pwd", "cwd": "sub"}, nil, "", false, "/ws/sub\n", 0},
		{"no folder", args{"command": "pwd", "cwd": "none"}, nil, "", true, "does not exist", -1},
		{"outside", args{"command": "cat ../out/secret"}, nil, "", true, "Permission denied", 1},
		{"outside by name", args{"command": "cat ../out/secret", "read": []string{out}}, nil, "read access to " + out, true,
			"there is no read access to " + out, -1},
		{"outside, held", args{"command": "cat ../out/secret"}, []string{"@read:" + out}, "", false, "secret", 0},
		{"outside, held and asked for", args{"command": "echo x >../out/secret; cat ../out/secret", "write": []string{out + "/secret"}},
			[]string{"@write:" + out + "/secret"}, "", false, "\nx\n", 0},
		{"beside it", args{"command": "cat ../out/other", "write": []string{out + "/secret"}},
			[]string{"@write:" + out + "/secret"}, "", true, "Permission denied", 1},
		{"a folder elsewhere", args{"command": "ls", "cwd": out}, []string{"@read:" + out}, "", false, "other\nsecret\n", 0},
		{"held and gone", args{"command": "true"}, []string{"@read:" + out + "/gone"}, "", false, "exit code 0", 0},
		{"asked for and gone", args{"command": "true", "write": []string{out + "/gone"}}, []string{"@write:" + out}, "", true,
			"gone does not exist; make it with write_file", -1},
		{"the network", args{"command": "true", "network": true}, nil, "network access", true, "there is no network access", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := p.with(t, c.held...)
			planned := plan(t, p, "run_command", c.in)
			if needs(planned) != c.needs {
				t.Errorf("it needs %q, want %q", needs(planned), c.needs)
			}
			o := tool(t, "run_command").Run(t.Context(), p, c.in.json(t), planned)
			o.says(t, c.failed, c.says)
			if (o.Exit == nil) != (c.exit == -1) || o.Exit != nil && *o.Exit != c.exit {
				t.Errorf("the exit code is %v, want %d", o.Exit, c.exit)
			}
		})
	}
}

// Without a workspace a command starts in its scratch folder, and its output is kept.
func TestACommandWithoutAWorkspace(t *testing.T) {
	o := call(t, Workspace{}, "run_command", args{"command": `test "$PWD" = "$TMPDIR" && echo yes; echo no >&2`, "pause": true})
	o.says(t, false, "yes")
	if o.Pause != o.Text {
		t.Errorf("people are shown %q", o.Pause)
	}
	out, errs := o.artifact(t, agents.ArtifactStdout), o.artifact(t, agents.ArtifactStderr)
	if out.Text != "yes\n" || errs.Text != "no\n" || out.Bytes != 4 {
		t.Errorf("kept are %+v and %+v", out, errs)
	}
}

// A command reaches the network only if it asks for it and holds it, and never a unix socket.
func TestACommandAndTheNetwork(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("from the net")) }))
	defer page.Close()
	dir, p := tempFiles(t, nil)
	socket := filepath.Join(dir, "ws", "docker.sock")
	if len(socket) > 100 {
		short, err := os.MkdirTemp("", "dc")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(short)
		socket = filepath.Join(short, "docker.sock")
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	docker := &http.Server{Handler: page.Config.Handler}
	go func() { _ = docker.Serve(l) }()
	defer docker.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	held := p.with(t, "@network", "@write:"+filepath.Dir(socket), "@read:"+self)
	for _, c := range []struct {
		get     string
		network bool
		failed  bool
	}{
		{page.URL, false, true}, {page.URL, true, false},
		{"http://docker/ " + socket, false, true}, {"http://docker/ " + socket, true, true},
	} {
		o := call(t, held, "run_command", args{"command": self + " get " + c.get, "network": c.network})
		if o.Error != c.failed || strings.Contains(o.Text, "from the net") == c.failed {
			t.Errorf("%s, network %v: %s", c.get, c.network, o.Text)
		}
	}
	off := typed[commandInput]{runCommand{sandbox.New(sandbox.Options{Mode: sandbox.Off})}}
	o := off.Run(t.Context(), p, args{"command": self + " get http://docker/ " + socket}.json(t), Plan{})
	o.says(t, false, "from the net")
}

// On a timeout or a cancellation a command ends with all its descendants.
func TestACommandThatGoesOn(t *testing.T) {
	for _, how := range []string{"its time is over", "it is given up"} {
		dir, p := tempFiles(t, nil)
		pipe := filepath.Join(dir, "ws/pipe")
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		in, says := args{"command": "exec 3>pipe; setsid sleep 600 & echo begun; wait", "timeout": 2}, "it was killed after 2s"
		if how == "it is given up" {
			in["timeout"], says = 600, "it was ended, with all that it started"
		}
		done := make(chan Outcome, 1)
		go func() { done <- tool(t, "run_command").Run(ctx, p, in.json(t), Plan{}) }()
		wait := 0 // so that it can be opened
		if how == "its time is over" {
			wait = unix.O_NONBLOCK // it may end before
		}
		held, err := os.OpenFile(pipe, os.O_RDONLY|wait, 0)
		if err != nil {
			t.Fatal(err)
		}
		if how == "it is given up" {
			end()
		}
		(<-done).says(t, true, says)
		if _, err := held.Read(make([]byte, 1)); err == nil { // end of file: the last writer is gone
			t.Errorf("%s: somebody lives on", how)
		}
		held.Close()
		end()
	}
}

// Of a long output the model gets start and end, much is kept, and the rest is reported as missing.
func TestMuchOutput(t *testing.T) {
	_, p := tempFiles(t, nil)
	o := call(t, p, "run_command", args{"command": "echo begin; head -c 100000 /dev/zero | tr '\\0' x; echo; echo end; printf '\\377' >&2"})
	o.says(t, false, "stdout:\nbegin\nxxx")
	o.says(t, false, "bytes are left out here …\nxxx")
	o.says(t, false, "x\nend\n\nstderr:\n\uFFFD")
	kept := o.artifact(t, agents.ArtifactStdout)
	if len(o.Text) > 3*toldBytes || kept.Bytes != 100011 || kept.Missing != 0 || len(kept.Text) != kept.Bytes {
		t.Errorf("told are %d bytes, kept %d of %d", len(o.Text), len(kept.Text), kept.Bytes)
	}
	o = call(t, p, "run_command", args{"command": "echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo end"})
	o.says(t, false, "of stdout, "+strconv.Itoa(5000010-keptBytes)+" of 5000010 bytes are not kept anywhere")
	kept = o.artifact(t, agents.ArtifactStdout)
	if kept.Missing != 5000010-keptBytes || !strings.HasPrefix(kept.Text, "begin\n") || !strings.HasSuffix(kept.Text, "xend\n") {
		t.Errorf("kept are %d bytes, %d are missing", len(kept.Text), kept.Missing)
	}
}

// The ends do not depend on the sizes of writes.
func TestEnds(t *testing.T) {
	text := strings.Repeat("0123456789", keptBytes/4)
	for _, piece := range []int{len(text), 100_003, 4096} {
		var e headTail
		for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
			_, _ = e.Write([]byte(rest[:min(piece, len(rest))]))
		}
		head, tail, missing := e.kept()
		if string(head) != text[:keptBytes/2] || string(tail) != text[len(text)-keptBytes/2:] || missing != len(text)-keptBytes {
			t.Errorf("in pieces of %d: %d and %d bytes, %d missing", piece, len(head), len(tail), missing)
		}
		if got := e.cut(10); !strings.HasPrefix(got, "01234\n") || !strings.HasSuffix(got, "\n56789") {
			t.Errorf("cut to %q", got)
		}
	}
}

// TestACommandWithoutTheNetworkThatIsHeldNamesIt: only if the network is held, was not asked for, and the command failed.
func TestACommandWithoutTheNetworkThatIsHeldNamesIt(t *testing.T) {
	_, p := tempFiles(t, nil)
	for _, c := range []struct {
		in    args
		held  []string
		named bool
	}{
		{args{"command": "exit 7"}, []string{"@network"}, true},
		{args{"command": "exit 7"}, nil, false},
		{args{"command": "exit 7", "network": true}, []string{"@network"}, false},
		{args{"command": "true"}, []string{"@network"}, false},
	} {
		o := call(t, p.with(t, c.held...), "run_command", c.in)
		if strings.Contains(o.Text, "say network: true") != c.named {
			t.Errorf("%v with %v: %s", c.in, c.held, o.Text)
		}
	}
}
