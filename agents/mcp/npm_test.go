//go:build npm

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// What others wrote to look at MCP servers, in the versions that we know.
const (
	conformance = "@modelcontextprotocol/conformance@0.1.16"
	inspector   = "@modelcontextprotocol/inspector@2.12.0"
)

// TestNPM has the conformance suite and the inspector look at the door. The suite knows the older era only, and most of
// its scenarios want tools of its own.
func TestNPM(t *testing.T) {
	folder := t.TempDir()
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: install Node.js 20 or newer, https://nodejs.org", program)
		}
	}
	install := []string{"install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
		"--loglevel=error", conformance, inspector}
	if node := newerNode(t, folder); node != "" {
		install = append(install, node+"@24.21.0")
		t.Setenv("PATH", filepath.Join(folder, "node_modules", node, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	runs(t, folder, "npm", install...)
	bin := func(name string) string { return filepath.Join(folder, "node_modules", ".bin", name) }
	s := play(t, nil)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"} {
		t.Run(scenario, func(t *testing.T) {
			runs(t, folder, bin("conformance"), "server", "--url", s.url+"/mcp", "--scenario", scenario)
		})
	}
	inspect := func(t *testing.T, era, method string, args ...string) string {
		return runs(t, folder, bin("mcp-inspector"), append([]string{
			"--cli", s.url + "/mcp", "--transport", "http", "--protocol-era", era, "--method", method,
		}, args...)...)
	}
	for _, era := range []string{"legacy", "modern"} {
		t.Run("inspector "+era, func(t *testing.T) {
			list := inspect(t, era, "tools/list")
			for _, name := range []string{"request_permission", "ask_user", "pause", "await_request", "approve_tool"} {
				if !strings.Contains(list, `"name": "`+name+`"`) {
					t.Errorf("%s is not in the list: %s", name, list)
				}
			}
			if text := inspect(t, era, "tools/call", "--tool-name", "await_request", "--tool-arg", "id=01J"); // an error result
			!strings.Contains(text, `There is no request \"01J\" here.`) {
				t.Errorf("a refusal: %s", text)
			}
			done := make(chan string, 1)
			go func() {
				done <- inspect(t, era, "tools/call", "--tool-name", "pause", "--tool-arg", "message=send it?", "--tool-arg", "mode=confirm")
			}()
			s.decide(s.pending(1)[0].ID, "allow_once", "")
			if text := <-done; !strings.Contains(text, `"Approved."`) {
				t.Errorf("an answer: %s", text)
			}
		})
	}
}

// newerNode is the package with a Node.js that both programs run on, where the one that is here is older than 22; else
// empty.
func newerNode(t *testing.T, folder string) string {
	t.Helper()
	var major int
	if _, err := fmt.Sscanf(runs(t, folder, "node", "--version"), "v%d.", &major); err != nil || major >= 22 {
		return ""
	}
	return "node-" + runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
}

// failing is the end of an inspector that was told of an error result.
const failing = 5

// runs runs a program to its end, which must be a good one, and returns what it wrote.
func runs(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), 2*time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == failing && filepath.Base(name) == "mcp-inspector") {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out[max(0, len(out)-2000):])
	}
	return string(out)
}
