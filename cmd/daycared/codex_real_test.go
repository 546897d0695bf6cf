//go:build real

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// trusts makes Codex trust the hooks that it lists, as a person does with /hooks.
func trusts(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[0], "app-server")
	cmd.Dir = ts.MkAbs("ws")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	fmt.Fprintf(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","title":"t","version":"1"}}}`+"\n"+
		`{"method":"initialized"}`+"\n"+`{"id":2,"method":"hooks/list","params":{"cwds":[%q]}}`+"\n", cmd.Dir)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var said struct {
			ID     int
			Result struct {
				Data []struct {
					Hooks []struct{ Key, CurrentHash, Command string }
				}
			}
		}
		if json.Unmarshal(lines.Bytes(), &said) != nil || said.ID != 2 {
			continue
		}
		ts.Logf("%s", lines.Text())
		var state strings.Builder
		for _, d := range said.Result.Data {
			for _, h := range d.Hooks {
				fmt.Fprintf(&state, "\n[hooks.state.%q]\ntrusted_hash = %q\n", h.Key, h.CurrentHash)
			}
		}
		path := ts.MkAbs(".codex/config.toml")
		ts.Check(os.WriteFile(path, []byte(ts.ReadFile(path)+state.String()), 0o600))
		return
	}
	ts.Fatalf("Codex lists no hooks")
}
