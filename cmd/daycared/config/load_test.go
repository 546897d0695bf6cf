package config

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// load reads text as config.yaml in an empty environment.
func load(t *testing.T, text string, environ ...string) *Config {
	t.Helper()
	c, err := parse("config.yaml", []byte(text), environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// meaning is c without what only says where it came from.
func meaning(c *Config) Config {
	m := *c
	m.File, m.Faults, m.Warnings, m.origins, m.from = "", nil, nil, nil, nil
	return m
}

func TestAnEmptyFileGivesTheDefaults(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "comment": "# nothing\n", "bare document": "---\n", "mark": "\xef\xbb\xbf", "null": "null\n",
		"empty sections": "approvals:\nlog:\nconnectors:\n  terminal:\n", "closed": "---\n...\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := meaning(load(t, text)), *Default(); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	write, err := permissions.ParseTag("@write:/srv/www")
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, `
people:
  - {name: fay, telegram: 123456789, whatsapp: "+4915112345678", user: fay, timezone: Europe/Berlin, language: de,
     quiet: "22:30-07:00", via: [terminal, admin]}
  - name: sam
    user: sam
    quiet: 13:00-14:00
  - {name: kim, user: kim}
routes:
  - agents: ["deploy-*", uid:1000]
    tags: ["@write:/srv/www", '@network']
    tools: [run_*]
    kinds: [permission, tool]
    ask: [sam, fay]
    quorum: 3
    keyboard: false
    escalate: {after: 50%, to: [kim]}
    timeout: 4h
  - ask: [fay]
    escalate:
      to: [sam, kim]
      after: 10m
approvals: {timeout: 1h30m, max_timeout: 2h, clarification_timeout: 90s, deliver_within: 1m, redeem_window: 20m,
  scopes: [once, always, 30m], remind: [80%, 10m], read_first: false}
tools: {auto: [read_file, "mcp__*"], gated: ["*"], forbidden: [rm_*]}
high_risk:
  {enabled: off, kinds: [edit], patterns: ["x *"], tools: [bash], tags: ["@network"], except: {kinds: [read], patterns: [y], tools: [z]}}
connectors: {terminal: {enabled: false}, telegram: {enabled: true, token_file: /run/t, api_url: "http://127.0.0.1:1/"},
  whatsapp: {enabled: true, phone: "+4915112345679", auto_version: false}, editor: {enabled: true}}
api: {agent_socket: /run/a.sock, admin_socket: /run/b.sock, agent_group: agents, admin_group: people,
  allow_same_user: true, admin_reachable: true, trusted_tokens: [laptop]}
limits: {pending_per_caller: 1, prompts_per_minute: 2, auto_per_minute: {read_file: 6, "mcp__V.1__*": 7}, pending_total: 3,
  requests_per_hour: 4, bytes_per_hour: 5, max_cards: 6, muted_after: 7}
keep: {requests: 30d, payloads: 36h, audit: 8760h}
audit: {key_file: /srv/key, heads: {to: log, every: 1h}}
data_dir: "/srv/daycared"
log: {level: debug, format: json}
`)
	want := Config{
		People: []Person{
			{Name: "fay", Addresses: map[string]string{"telegram": "123456789", "whatsapp": "+4915112345678"}, User: "fay",
				Location: berlin, Language: "de",
				Quiet: connectors.Hours{From: 22*60 + 30, To: 7 * 60}, Via: []string{"terminal", "admin"}},
			{Name: "sam", User: "sam", Location: time.Local, Quiet: connectors.Hours{From: 13 * 60, To: 14 * 60}},
			{Name: "kim", User: "kim", Location: time.Local},
		},
		Routes: []Route{
			{
				Agents: []string{"deploy-*", "uid:1000"}, Tags: []permissions.Tag{write, permissions.Network},
				Tools: []string{"run_*"}, Kinds: []permissions.Kind{permissions.KindPermission, permissions.KindTool},
				Ask: []string{"sam", "fay"}, Quorum: 3, NoKeyboard: true, Timeout: 4 * time.Hour,
				Escalate: Escalate{After: When{Percent: 50}, To: []string{"kim"}},
			},
			{
				Ask: []string{"fay"}, Quorum: 1,
				Escalate: Escalate{After: When{After: 10 * time.Minute}, To: []string{"sam", "kim"}},
			},
		},
		Approvals: Approvals{
			Timeout: 90 * time.Minute, MaxTimeout: 2 * time.Hour, ClarificationTimeout: 90 * time.Second,
			DeliverWithin: time.Minute, RedeemWindow: 20 * time.Minute,
			Scopes: []permissions.Scope{permissions.Once, permissions.Always, permissions.For(30 * time.Minute)},
			Remind: []When{{Percent: 80}, {After: 10 * time.Minute}},
		},
		Tools: Tools{Auto: []string{"read_file", "mcp__*"}, Gated: []string{"*"}, Forbidden: []string{"rm_*"}},
		HighRisk: HighRisk{
			Kinds: []permissions.Effect{permissions.DoesEdit}, Patterns: []string{"x *"}, Tools: []string{"bash"},
			Tags:   []permissions.Tag{permissions.Network},
			Except: Ordinary{Kinds: []permissions.Effect{permissions.DoesRead}, Patterns: []string{"y"}, Tools: []string{"z"}},
		},
		Connectors: Connectors{
			Telegram: Telegram{Enabled: true, TokenFile: "/run/t", APIURL: "http://127.0.0.1:1"},
			WhatsApp: WhatsApp{Enabled: true, Phone: "+4915112345679"},
			Editor:   Editor{Enabled: true},
		},
		API: API{
			AgentSocket: "/run/a.sock", AdminSocket: "/run/b.sock", AgentGroup: "agents", AdminGroup: "people",
			AllowSameUser: true, AdminReachable: true, TrustedTokens: []string{"laptop"},
		},
		Limits: Limits{PendingPerCaller: 1, PromptsPerMinute: 2, AutoPerMinute: map[string]int{"read_file": 6, "mcp__V.1__*": 7},
			PendingTotal: 3, RequestsPerHour: 4, BytesPerHour: 5, MaxCards: 6, MutedAfter: 7},
		Keep:    Keep{Requests: 30 * 24 * time.Hour, Payloads: 36 * time.Hour, Audit: 365 * 24 * time.Hour},
		Audit:   Audit{KeyFile: "/srv/key", Heads: Heads{To: "log", Every: time.Hour}},
		Sandbox: true,
		DataDir: "/srv/daycared",
		Log:     Log{Level: slog.LevelDebug, Format: "json"},
	}
	if m := meaning(got); !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	warnings := []string{
		`config.yaml:4: terminal is passed over, since connectors.terminal.enabled is false`,
		`config.yaml:31: api.allow_same_user is on: whatever runs as an account that decides can allow what it asked ` +
			`itself; switch it off, except for trying daycared out`,
	}
	if !reflect.DeepEqual(got.Warnings.lines(), warnings) {
		t.Errorf("warnings: %q", got.Warnings)
	}
}

func TestEnvironment(t *testing.T) {
	c := load(t, "log: {level: warn, format: json}\napprovals: {timeout: 5m}\n",
		"DAYCARED_LOG_LEVEL=info", "DAYCARED_LOG_LEVEL=debug", "DAYCARED_LOG_FORMAT=", "HOME=/home/fay",
		"DAYCARED_API_AGENT_SOCKET=/run/a.sock", "DAYCARED_API_ALLOW_SAME_USER=true",
		"DAYCARED_APPROVALS_MAX_TIMEOUT=2h", "DAYCARED_LIMITS_PENDING_TOTAL=7", "DAYCARED_CONNECTORS_TERMINAL_ENABLED=false",
		"DAYCARED_KEEP_PAYLOADS=7d", "DAYCARED_SANDBOX=off",
		"DAYCARED_DATA_DIR=/srv/data", "DAYCARED_CONFIG=/not/read", "DAYCARED_SOCKET=x", "DAYCARED_LOG_LEVLE=info")
	want := *Default()
	want.Log = Log{Level: slog.LevelDebug, Format: "json"}
	want.API = API{AgentSocket: "/run/a.sock", AllowSameUser: true}
	want.Approvals.Timeout, want.Approvals.MaxTimeout = 5*time.Minute, 2*time.Hour
	want.Limits.PendingTotal, want.Connectors.Terminal.Enabled, want.DataDir = 7, false, "/srv/data"
	want.Keep.Payloads, want.Sandbox = 7*24*time.Hour, false
	if got := meaning(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	warnings := []string{
		"DAYCARED_LOG_LEVLE: no such variable; did you mean DAYCARED_LOG_LEVEL?",
		"DAYCARED_CONNECTORS_TERMINAL_ENABLED: people can be reached only while their inbox is open; open one with: daycared inbox; " +
			"or set connectors.terminal.enabled or api.admin_reachable",
		"DAYCARED_API_ALLOW_SAME_USER: api.allow_same_user is on: whatever runs as an account that decides can allow what it asked itself; " +
			"switch it off, except for trying daycared out",
		"DAYCARED_SANDBOX: the sandbox is off: commands of agents reach whatever the daemon's account reaches",
	}
	if !reflect.DeepEqual(c.Warnings.lines(), warnings) {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// TestEveryScalarHasAVariable sets each key by its variable to what is surely wrong, and wants to be told of each.
func TestEveryScalarHasAVariable(t *testing.T) {
	var environ []string
	for _, k := range root.settings() {
		environ = append(environ, variable(k.path)+"=\x00:\x00")
	}
	_, err := parse("", nil, environ)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != len(environ) {
		t.Errorf("%d variables, but\n%v", len(environ), err)
	}
}

func TestWarnings(t *testing.T) {
	got := load(t, `people:
  - name: fay
  - name: sam
    telegram: 5
  - {name: kim, user: kim}
routes: [{ask: [kim], escalate: {after: 50%, to: [fay, sam]}}]
api: {agent_group: staff, admin_group: staff}
`).Warnings.lines()
	want := []string{
		`config.yaml:2: "fay" has no ` + userOrKinds + `: nothing can reach them`,
		`config.yaml:3: "sam" has no user, and of ` + list("and", connectors.KindNames()) + ` none that is switched on: nothing can reach them`,
		`config.yaml:6: nothing can reach fay or sam, so it escalates to nobody; give them a user, or switch on a channel that they have`,
		`config.yaml:7: agents are in the same group: they can reach the socket of those who decide`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A rate for a tool that never runs unasked by policy does little; the warning has the lines of both, and the tool that was meant.
func TestWarningsOfRates(t *testing.T) {
	for text, want := range map[string][]string{
		"limits: {auto_per_minute: {read_file: 1, \"*_files\": 2, \"*\": 3}}\n":                                                             nil,
		"tools: {auto: [\"mcp__*\", \"[a-c]_b*\"]}\nlimits:\n  auto_per_minute: {mcp__a/b: 1, \"mcp__git_*\": 2, \"b_?c\": 1, \"*c\": 1}\n": nil,
		"limits:\n  auto_per_minute:\n    list_files: 1\n    raed_file: 2\n    Bash: 3\n": {
			`config.yaml:5: no list auto has "Bash" (tools.auto is the default one), so this rate bounds only what a hook leaves to its ` +
				`agent's own mode; add it to tools.auto, or take it out here`,
			`config.yaml:4: no list auto has "raed_file" (tools.auto is the default one), so this rate bounds only what a hook leaves to ` +
				`its agent's own mode; did you mean read_file?`,
		},
		"tools:\n  auto: [\"git_*\"]\nlimits:\n  auto_per_minute: {git_log: 1, fetch: 2, \"read_*\": 3}\nagents:\n" +
			"  - {name: a, workspace: /w, model: {provider: script, file: /t}, tools: {auto: [fetch]}}\n": {
			`config.yaml:4: no list auto has "read_*" (line 2, line 6), so this rate bounds only what a hook leaves to its agent's own ` +
				`mode; add it to tools.auto, or take it out here`,
		},
	} {
		if got := load(t, text).Warnings.lines(); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
}

func TestWarningsOfRoutes(t *testing.T) {
	got := load(t, `people:
  - {name: fay, user: fay, telegram: 5, via: [telegram, terminal, admin]}
  - name: sam
    user: sam
    telegram: 6
    via:
      - telegram
  - {name: kim, user: kim, via: [terminal]}
  - {name: lee, user: lee}
routes:
  - ask: [fay, sam]
    kinds: [clarification]
    quorum: 2
  - {ask: [fay, sam], kinds: [clarification, pause], quorum: 2, escalate: {after: 1m, to: [kim]}}
  - {ask: [lee]}
connectors: {terminal: {enabled: false}}
api: {admin_reachable: true, admin_group: staff}
`).Warnings.lines()
	want := []string{
		`config.yaml:2: telegram is passed over, since connectors.telegram.enabled is false`,
		`config.yaml:2: terminal is passed over, since connectors.terminal.enabled is false`,
		`config.yaml:7: telegram is passed over, since connectors.telegram.enabled is false`,
		`config.yaml:8: terminal is passed over, since connectors.terminal.enabled is false`,
		`config.yaml:13: a quorum of 2 means nothing for questions: their first answer counts`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Of several people who decide at the admin socket alone, all but the daemon's own account need a group to reach it.
func TestPeopleWhoCannotReachTheSocketAreNamed(t *testing.T) {
	const both = "people: [{name: fay, user: fay}, {name: sam, user: sam}]\nroutes: [{ask: [fay, sam]}]\n"
	for text, named := range map[string]bool{
		both: true, both + "api: {admin_group: staff}\n": false, both + "connectors: {telegram: {enabled: true}}\n": false,
		strings.Replace(both, "user: sam", "user: root", 1): false,
	} {
		if got := load(t, text).Warnings.lines(); slices.Contains(got, atSocket("fay and sam")) != named {
			t.Errorf("%s\nsays %q", text, got)
		}
	}
}

func atSocket(names string) string {
	return "config.yaml:1: " + names + " decide at admin.sock alone, and without api.admin_group only root and the daemon's own account " +
		"reach it; name a group that they are in, or give them a channel"
}

func TestWarningsOfWhatsApp(t *testing.T) {
	people := `people:
  - {name: fay, user: fay, whatsapp: "+4915112345678"}
  - {name: sam, whatsapp: "+4915112345679", via: [whatsapp]}
  - {name: kim, user: kim, whatsapp: "+4915112345670", via: [whatsapp, admin]}
  - {name: lee}
  - {name: ann, telegram: 5}
routes: [{ask: [fay, sam, kim, lee, ann]}]
connectors: `
	for text, want := range map[string][]string{
		people + "{whatsapp: {enabled: false}}\n": {
			`config.yaml:2: "fay" is not asked there, since connectors.whatsapp.enabled is false`,
			`config.yaml:3: "sam" has no user, and of ` + list("and", connectors.KindNames()) + ` none that is switched on: nothing can reach them`,
			`config.yaml:4: whatsapp is passed over, since connectors.whatsapp.enabled is false`,
			`config.yaml:5: "lee" has no ` + userOrKinds + `: nothing can reach them`,
			`config.yaml:6: "ann" has no user, and of ` + list("and", connectors.KindNames()) + ` none that is switched on: nothing can reach them`,
			atSocket("fay and kim"),
		},
		people + "{whatsapp: {enabled: true}}\n": {
			`config.yaml:5: "lee" has no user or whatsapp: nothing can reach them before they are paired (daycared pair lee --via whatsapp)`,
			`config.yaml:6: "ann" has no user or whatsapp: nothing can reach them before they are paired (daycared pair ann --via whatsapp)`,
		},
		people + "{whatsapp: {enabled: true}, telegram: {enabled: true}}\n": {
			`config.yaml:5: "lee" has no user, telegram or whatsapp: nothing can reach them before they are paired (daycared pair lee)`,
		},
		people + "{telegram: {enabled: true}, terminal: {enabled: false}}\n": {
			`config.yaml:2: "fay" is not asked there, since connectors.whatsapp.enabled is false`,
			`config.yaml:3: "sam" has no user or telegram: nothing can reach them before they are paired (daycared pair sam)`,
			`config.yaml:4: whatsapp is passed over, since connectors.whatsapp.enabled is false`,
			`config.yaml:5: "lee" has no user or telegram: nothing can reach them before they are paired (daycared pair lee)`,
		},
		"connectors: {whatsapp: {enabled: true, phone: \"+4915112345678\"}}\n": {
			`config.yaml:1: whatsapp asks nobody, since there are no people; add - {name: fay} under people, ` +
				`then: daycared pair fay --via whatsapp`,
		},
	} {
		if got := load(t, text).Warnings.lines(); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestWarningsOfGroups(t *testing.T) {
	c := load(t, `people:
  - {name: fay, telegram: 5}
  - {name: sam, user: sam}
  - {name: kim, user: kim}
routes:
  - {tools: ["*"], ask: [fay, sam], chat: -1001234567890, thread: 7}
  - {ask: [kim]}
connectors: {telegram: {enabled: true}}
`)
	want := []string{`config.yaml:6: "sam" has no telegram: they can answer in the group once they are paired ` +
		`(daycared pair sam), and are asked elsewhere until then`}
	if !reflect.DeepEqual(c.Warnings.lines(), want) {
		t.Errorf("got  %q\nwant %q", c.Warnings, want)
	}
	if r := c.Routes[0]; r.Chat != -1001234567890 || r.Thread != 7 {
		t.Errorf("the group is %d, %d", r.Chat, r.Thread)
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("log: {level: warn}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(file, nil); err != nil || c.Log.Level != slog.LevelWarn || c.File != file {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := Load(filepath.Join(dir, "missing.yaml"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "missing.yaml"), nil); !strings.HasSuffix(err.Error(), "; name a file that exists, or none: "+
		"then it is looked for in DAYCARED_CONFIG, ~/.config/daycared/config.yaml and /etc/daycared/config.yaml") {
		t.Errorf("a missing file: %v", err)
	}
	folder := "read configuration: " + dir + " is a folder; name the file in it, as in " + file
	if _, err := Load(dir, nil); err == nil || err.Error() != folder {
		t.Errorf("a folder: %v", err)
	}
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, read := range map[string]func() error{
		"load":  func() error { _, err := Load(pipe, nil); return err },
		"draft": func() error { _, err := ReadDraft(pipe); return err },
	} {
		if err := read(); err == nil || !strings.HasSuffix(err.Error(), pipe+": is not a regular file") {
			t.Errorf("%s of a pipe: %v", what, err)
		}
	}
	if c, err := Load("", nil); err != nil || !reflect.DeepEqual(meaning(c), *Default()) {
		t.Errorf("no file: %+v, %v", c, err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("#\n", maxSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	want := file + ":1: the file is larger than 1 MiB; a configuration is not, so this is probably another file"
	if _, err := Load(file, nil); err == nil || err.Error() != want {
		t.Errorf("a large file: %v", err)
	}
}

// userOrKinds are all keys by which somebody can be reached.
var userOrKinds = anyOf(append([]string{"user"}, connectors.KindNames()...)...)

func TestListsInSentences(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := anyOf(words...); got != want {
			t.Errorf("%q are listed as %q; want %q", words, got, want)
		}
	}
}

func TestHighRiskMayBeOff(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "high_risk: off\n": false, "high_risk: on\n": true, "high_risk: {enabled: off}\n": false,
	} {
		cfg, err := parse("config.yaml", []byte(text), nil)
		if err != nil || cfg.HighRisk.Enabled != want {
			t.Errorf("%q: %v, %v", text, cfg, err)
		}
	}
	for text, want := range map[string]string{
		"high_risk: never\n":            "write on or off",
		"high_risk: {kinds: [shell]}\n": `unknown kind "shell"`,
	} {
		if _, err := parse("config.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
