package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/permissions"
)

// TestClientsAskTheDaemonThatWasNamed: the service's sockets exist, and those of the account do not. The service's daemon is
// used only if no daemon is named.
func TestClientsAskTheDaemonThatWasNamed(t *testing.T) {
	dir := t.TempDir()
	service := systemRun
	systemRun = filepath.Join(dir, "service")
	defer func() { systemRun = service }()
	folder(t, systemRun, 0o700)
	write(t, filepath.Join(systemRun, "agent.sock"))
	write(t, filepath.Join(systemRun, "admin.sock"))
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain.yaml", "log: {level: info}\n")
	sockets := file("sockets.yaml", "api: {agent_socket: /own/agent.sock, admin_socket: /own/admin.sock}\n")
	file("home/.config/daycared/config.yaml", "log: {level: info}\n")
	run := filepath.Join(dir, "run")
	for name, c := range map[string]struct {
		args, environ []string
		agent, why    string
	}{
		"nothing": {
			nil, nil, systemRun + "/agent.sock",
			"it is the socket of this machine's service, and " + run + "/daycared/agent.sock does not exist",
		},
		"a configuration": {
			[]string{"--config", plain}, nil, run + "/daycared/agent.sock", "it is the socket of the configuration " + plain,
		},
		"a configuration by the environment": {
			nil, []string{"DAYCARED_CONFIG=" + plain}, run + "/daycared/agent.sock", "it is the socket of the configuration " + plain,
		},
		"a configuration that names sockets": {
			[]string{"--config", sockets}, nil, "/own/agent.sock", "api.agent_socket of " + sockets + " names it",
		},
		"the account's own configuration": {
			nil, []string{"HOME=" + dir + "/home"}, run + "/daycared/agent.sock",
			"it is the socket of the configuration " + dir + "/home/.config/daycared/config.yaml",
		},
		"a socket by the environment": {
			nil, []string{"DAYCARED_API_AGENT_SOCKET=/named/agent", "DAYCARED_API_ADMIN_SOCKET=/named/admin"},
			"/named/agent", "api.agent_socket names it",
		},
		"a folder": {
			nil, []string{"XDG_RUNTIME_DIR=", "DAYCARED_DATA_DIR=" + dir + "/data"}, dir + "/data/agent.sock", "data_dir names its folder",
		},
		"a socket":                    {[]string{"--socket", "/flag"}, nil, "/flag", "--socket names it"},
		"a socket by DAYCARED_SOCKET": {nil, []string{"DAYCARED_SOCKET=/variable"}, "/variable", "DAYCARED_SOCKET names it"},
	} {
		t.Run(name, func(t *testing.T) {
			cli := &CLI{UID: 1000, Environ: append([]string{"XDG_RUNTIME_DIR=" + run}, c.environ...)}
			cmd, _, err := cli.root().Find([]string{"pending"})
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			paths, err := cli.places("DAYCARED_ADMIN_SOCKET")
			if err != nil || paths.AgentSocket != c.agent || cli.socketOrigins[c.agent] != c.why {
				t.Errorf("agents ask at %q (%s), %v; want %q (%s)", paths.AgentSocket, cli.socketOrigins[paths.AgentSocket], err, c.agent, c.why)
			}
			if name == "nothing" || strings.Contains(name, "DAYCARED_SOCKET") {
				return
			}
			if strings.HasPrefix(paths.AdminSocket, systemRun) {
				t.Errorf("people answer at %s, which is another daemon's", paths.AdminSocket)
			}
		})
	}
	// The service's own configuration names the service.
	cfg := &config.Config{File: config.SystemFile, DataDir: "/srv/daycared"}
	cli := &CLI{}
	if got := cli.socket("DAYCARED_SOCKET", run+"/daycared/agent.sock", "api.agent_socket", "", cfg); got != systemRun+"/agent.sock" {
		t.Errorf("with the service's configuration, agents ask at %s", got)
	}
}

// TestAClientSaysWhichDaemonIsNotThere, with what named it, on stderr and in JSON.
func TestAClientSaysWhichDaemonIsNotThere(t *testing.T) {
	var said strings.Builder
	c := &CLI{Out: &said, Err: &said, UID: os.Getuid(), Environ: []string{"DAYCARED_SOCKET=/nowhere/agent"}}
	if code := c.Run(t.Context(), strings.Fields("ask @network --reason x --json")); code != permissions.ExitUnreachable {
		t.Errorf("exit %d", code)
	}
	if n := strings.Count(said.String(), "(DAYCARED_SOCKET names it)"); n != 2 {
		t.Errorf("it says %q", said.String())
	}
}

// An account that may not use a socket is told who may.
func TestASocketOfOthersNamesItsGroup(t *testing.T) {
	var told bytes.Buffer
	cli := &CLI{Out: io.Discard, Err: &told}
	err := fmt.Errorf("%w at /run/x/admin.sock: %w", client.ErrUnreachable, syscall.EACCES)
	if code := cli.exit(err, false); code != permissions.ExitUnreachable || !strings.Contains(told.String(), "api.admin_group") {
		t.Errorf("exit %d, %s", code, told.String())
	}
}
