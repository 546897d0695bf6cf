package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/daycared/daycared/agents/sandbox"
)

// demoTurns are what scribe's model says, with $SITE where the site is.
//
//go:embed demo_turns.yaml
var demoTurns string

const (
	demoPublish = "#!/bin/sh\nset -e\nmkdir -p published\ncp -r site/. published/\necho published >> ledger\n"
	// demoConfig is the daemon's configuration. The site is not in the workspace, so that to write there is asked for; what
	// is asked for once is not asked again for each file. The person comes back after the kill -9, however long that takes.
	demoConfig = `connectors: {terminal: {enabled: false}}
api: {agent_socket: %q, admin_socket: %q, admin_reachable: true}
high_risk: {tools: []}
tools:
  auto: [read_file, list_files, search_files, write_file]
  gated: [edit_file, run_command, fetch_url]
  forbidden: []
agents:
  - {name: scribe, connector: admin, workspace: %q, model: {provider: script, file: %q}}
sandbox: %s
data_dir: %q
`
)

// furnish makes the site, the old pages, the agent's workspace with the script that publishes, what the agent's model
// says, and the daemon's configuration, with walls around what the agent runs or without.
func (d *demo) furnish(walls bool) (err error) {
	if d.folder, err = filepath.EvalSymlinks(d.folder); err != nil {
		return err
	}
	box := "on"
	if !walls {
		box = "off"
	}
	site, err := json.Marshal(d.path("site")) // as it is written between quotes
	if err != nil {
		return err
	}
	turns := strings.ReplaceAll(demoTurns, "$SITE", string(site[1:len(site)-1]))
	for _, folder := range []string{d.path("site", "old"), d.path("work")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(d.path("site", "old", "2024.md"), []byte("# Older notes\n"), 0o600),
		os.WriteFile(d.path("work", "publish.sh"), []byte(demoPublish), 0o700), //nolint:gosec // a script has to be executable
		os.Symlink("../site", d.path("work", "site")),
		os.WriteFile(d.path("turns.yaml"), []byte(turns), 0o600),
		os.WriteFile(d.path("config.yaml"), fmt.Appendf(nil, demoConfig, d.path("agent.sock"), d.path("admin.sock"),
			d.path("work"), d.path("turns.yaml"), box, d.path("data")), 0o600),
	)
}

// unheld are the promises that do not hold, in words; empty where all do.
func unheld(all []sandbox.Promise) string {
	var broken []string
	for _, p := range all {
		if !p.Holds {
			broken = append(broken, p.Name+": "+p.Why)
		}
	}
	return strings.Join(broken, "; ")
}
