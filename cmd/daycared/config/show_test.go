package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
)

func show(t *testing.T, c *Config) string {
	t.Helper()
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShow(t *testing.T) {
	c := load(t, `people:
  - name: fay
    whatsapp: "+4915112345678"
    telegram: 123456789
    via: [whatsapp, telegram]
    quiet: 22:00-07:00
  - {name: kim, user: kim}
routes:
  - escalate: {to: [kim], after: 600s}
    agents: ["deploy-*", ci]
    ask: [fay]
  - ask: [kim]
    escalate:
      after: 50%
      to:
        - fay
approvals:
  timeout: 20m
limits:
  auto_per_minute: {"*": 100, read_file: 60,
    "mcp__V.1__*": 5}
`, "DAYCARED_LOG_LEVEL=debug", "DAYCARED_KEEP_PAYLOADS=48h")
	const want = `# config.yaml
people:                         # config.yaml:1
  - name: fay                   # config.yaml:2
    telegram: 123456789         # config.yaml:4
    whatsapp: "+4915112345678"  # config.yaml:3
    quiet: "22:00-07:00"        # config.yaml:6
    via: [whatsapp, telegram]   # config.yaml:5
  - name: kim                   # config.yaml:7
    user: kim                   # config.yaml:7
routes:                         # config.yaml:8
  - agents: ["deploy-*", ci]    # config.yaml:10
    ask: [fay]                  # config.yaml:11
    escalate:                   # config.yaml:9
      after: 10m                # config.yaml:9
      to: [kim]                 # config.yaml:9
  - ask: [kim]                  # config.yaml:12
    escalate:                   # config.yaml:13
      after: 50%                # config.yaml:14
      to: [fay]                 # config.yaml:15
approvals:
  timeout: 20m                                      # config.yaml:18
  max_timeout: 1h                                   # default
  clarification_timeout: 5m                         # default
  deliver_within: 2m                                # default
  redeem_window: 10m                                # default
  scopes: [once, session_tool, session, 15m, rule]  # default
  remind: [50%, 80%]                                # default
  read_first: true                                  # default
  ask_refused: false                                # default
tools:
  auto: [read_file, list_files, search_files]                         # default
  gated: [write_file, edit_file, run_command, fetch_url, web_search]  # default
  forbidden: [delete_repository]                                      # default
rules: []                                                             # default
high_risk:
  enabled: on   # default
  kinds: []     # default
  patterns: []  # default
  tools: []     # default
  tags: []      # default
  except:
    kinds: []     # default
    patterns: []  # default
    tools: []     # default
connectors:
  terminal:
    enabled: true  # default
  telegram:
    enabled: false                       # default
    token_file: ""                       # default
    api_url: "https://api.telegram.org"  # default
    show: all                            # default
  whatsapp:
    enabled: false      # default
    phone: ""           # default
    auto_version: true  # default
    show: all           # default
  editor:
    enabled: false  # default
api:
  agent_socket: ""        # default
  admin_socket: ""        # default
  agent_group: ""         # default
  admin_group: ""         # default
  allow_same_user: false  # default
  admin_reachable: false  # default
  listen: ""              # default
  tls_cert_file: ""       # default
  tls_key_file: ""        # default
  behind_proxy: false     # default
  hosts: []               # default
  allow_anonymous: false  # default
  trusted_tokens: []      # default
agents: []                # default
fetch:
  allow_private: []  # default
web_search:
  url: ""  # default
limits:
  pending_per_caller: 20                                        # default
  prompts_per_minute: 30                                        # default
  auto_per_minute: {"*": 100, "mcp__V.1__*": 5, read_file: 60}  # config.yaml:20
  pending_total: 100000                                         # default
  requests_per_hour: 20000                                      # default
  bytes_per_hour: 67108864                                      # default
  muted_after: 6                                                # default
  max_cards: 3                                                  # default
keep:
  requests: 90d  # default
  payloads: 2d   # DAYCARED_KEEP_PAYLOADS
  audit: 400d    # default
audit:
  key_file: ""  # default
  heads:
    to: ""      # default
    every: 10m  # default
sandbox: on     # default
sandboxed: ask  # default
data_dir: ""    # default
database: ""    # default
log:
  level: debug  # DAYCARED_LOG_LEVEL
  format: text  # default
`
	got := show(t, c)
	for _, kind := range connectors.KindNames() { // any channel has its section, too
		if !strings.Contains(want, "\n  "+kind+":\n") {
			got = regexp.MustCompile("\n  "+kind+":(\n    .*)+").ReplaceAllString(got, "")
		}
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestShowWithoutFile(t *testing.T) {
	if got := show(t, Default()); !strings.HasPrefix(got, "# no configuration file\npeople: []") {
		t.Errorf("got\n%s", got)
	}
}

// full refuses every write, as a full disk does.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestShowTellsWhatTheWriterSays(t *testing.T) {
	var w io.Writer = full{}
	if err := Default().Show(w); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

func TestExample(t *testing.T) {
	const file = "../../../config.example.yaml"
	c, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := meaning(c)
	if len(got.People) != 1 || len(got.Routes) != 1 || len(c.Warnings) > 0 {
		t.Errorf("people %+v, routes %+v, warnings %q", got.People, got.Routes, c.Warnings)
	}
	got.People, got.Routes = nil, nil
	if !reflect.DeepEqual(got, *Default()) {
		t.Errorf("got  %+v\nwant %+v", got, *Default())
	}
	for _, k := range root.settings() {
		if !strings.HasPrefix(c.origins[k.path], filepath.Base(file)) {
			t.Errorf("%s is not in the example", k.path)
		}
	}
}

// TestExampleWithoutComments takes the # away from the keys of people and routes, of which the example has the
// necessary ones only.
func TestExampleWithoutComments(t *testing.T) {
	text, err := os.ReadFile("../../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{"people": nil, "routes": nil, "agents": nil, "rules": nil}
	list := "people"
	for _, l := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(l, "# Also of a route"):
			list = "routes"
		case strings.HasPrefix(l, "# Of agents"):
			list = "agents"
		case strings.HasPrefix(l, "# rules:"):
			list = "rules"
		case strings.HasPrefix(l, "#     "), strings.HasPrefix(l, "#   - "):
			keys[list] = append(keys[list], strings.TrimPrefix(l, "#"))
		}
	}
	c := load(t, "people:\n   - name: fay\n     user: fay\n     timezone: UTC\n"+strings.Join(keys["people"], "\n")+
		"\n   - name: sam\n   - name: kim\nroutes:\n"+strings.Join(keys["routes"], "\n")+
		"\nagents:\n"+strings.Join(keys["agents"], "\n")+"\nrules:\n"+strings.Join(keys["rules"], "\n")+
		"\nconnectors: {telegram: {enabled: true}}\n")
	elsewhere := map[string]string{
		"agents.parent": "agents.1.parent", "agents.prompt": "agents.1.prompt", "agents.model.file": "", "agents.schedule.every": "",
		"agents.acp": "agents.2.acp", "agents.acp_auth": "agents.2.acp_auth", "agents.mode": "agents.2.mode", "agents.env": "agents.2.env",
		"rules.ask": "rules.1.ask", "rules.deny": "rules.2.deny", "rules.use": "rules.3.use",
		"agents.instructions_file": "", // the words of these three are there: one excludes another
	}
	for _, name := range []string{"people", "routes", "agents", "rules"} {
		list, _ := root.find(name)
		for _, k := range list.inner.settings() {
			at, ok := elsewhere[k.path]
			if !ok {
				at = strings.Replace(name+".0"+strings.TrimPrefix(k.path, name), "agents.0.schedule", "agents.1.schedule", 1)
			}
			if _, ok := c.origins[at]; !ok && at != "" {
				t.Errorf("%s is not in the example", k.path)
			}
			if word := k.name; !strings.Contains(string(text), word) {
				t.Errorf("the example says nothing of %s", word)
			}
		}
	}
	for _, k := range mcpKeys() {
		if _, ok := c.origins["agents.0.mcp.0."+k.name]; !ok {
			t.Errorf("%s is not in the example", k.path)
		}
	}
}

// mcpKeys are the keys of an agent's MCP server.
func mcpKeys() []key {
	list, _ := root.find("agents")
	servers, _ := list.inner.find("mcp")
	return servers.inner.settings()
}

func TestTheValueOfOneKey(t *testing.T) {
	c := load(t, "people: [{name: fay}]\nroutes: [{ask: [fay]}]\napprovals: {timeout: 20m}\n"+
		"connectors: {whatsapp: {phone: \"+4915112345678\"}}\n")
	for _, tt := range []struct{ key, want, wrong string }{
		{key: "approvals.timeout", want: "20m"},
		{key: "approvals.redeem_window", want: "10m"},
		{key: "approvals.scopes", want: "[once, session_tool, session, 15m, rule]"},
		{key: "connectors.whatsapp.phone", want: "+4915112345678"},
		{key: "connectors.terminal.enabled", want: "true"},
		{key: "limits.auto_per_minute", want: "{}"},
		{key: "limits.auto_per_minute.read_file", wrong: "there is no key limits.auto_per_minute.read_file; " +
			"limits.auto_per_minute is a value of its own"},
		{key: "people", wrong: "people is a list; see: daycared config show"},
		{key: "keep", wrong: "keep has keys of its own: requests, payloads, audit"},
		{key: "keep.days", wrong: "there is no key keep.days; keep has requests, payloads, audit"},
		{key: "data_dir.path", wrong: "there is no key data_dir.path; data_dir is a value of its own"},
		{key: "", wrong: "there is no key ; the configuration has people, routes"},
	} {
		got, err := c.Value(tt.key)
		if got != tt.want || (err == nil) != (tt.wrong == "") || (err != nil && !strings.HasPrefix(err.Error(), tt.wrong)) {
			t.Errorf("Value(%q) = %q, %v; want %q, %s", tt.key, got, err, tt.want, tt.wrong)
		}
	}
}
