package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

func tag(t *testing.T, text string) permissions.Tag {
	t.Helper()
	parsed, err := permissions.ParseTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const everyAgentKey = `people: [{name: fay, user: fay, timezone: Asia/Tokyo}]
routes: [{ask: [fay]}]
tools: {auto: [look], gated: [change], forbidden: [drop]}
connectors: {telegram: {enabled: true}}
agents:
  - name: nightly
    parent: helper
    prompt: Write the report.
    read: [/srv/docs/a]
    model: {provider: anthropic, name: claude}
    schedule: {cron: "0 3 * * *", needs: ["@network"], ask_at: "21:00"}
  - name: helper
    person: fay
    connector: telegram
    workspace: /srv/helper
    on_denial: terminate
    model: {provider: openai, base_url: "http://127.0.0.1:11434/v1/", name: qwen3, api_key_file: /etc/k, window: 8192,
      input_price: 0.4, output_price: 12.000001}
    instructions: "You look\nafter the wiki."
    tools: {auto: [], gated: ["*"]}
    mcp:
      - {name: github, command: [mcp, --stdio], env: [GITHUB_TOKEN], read: [/srv/c], write: [/srv/c/w], network: true}
    read: [/srv/docs]
    write: [/srv/out]
    network: true
  - name: deep
    parent: nightly
    instructions_file: /srv/deep.md
    schedule: {every: 6h, timezone: UTC}
    prompt: Look.
  - {name: own.1, person: fay, model: {provider: script, file: /srv/turns.yaml}}
fetch: {allow_private: [192.168.1.0/24, "fd00::/8"]}
`

func TestEveryKeyOfAgentsIsRead(t *testing.T) {
	c := load(t, everyAgentKey)
	helper := Agent{
		Name: "helper", Person: "fay", Connector: "telegram", Workspace: "/srv/helper", OnDenial: Terminate,
		Model: AgentModel{
			Provider: OpenAI, BaseURL: "http://127.0.0.1:11434/v1", Name: "qwen3", APIKeyFile: "/etc/k", Window: 8192,
			InputPrice: 400_000, OutputPrice: 12_000_001, Credential: "agent.helper.key",
		},
		Instructions: "You look\nafter the wiki.",
		Tools:        Tools{Gated: []string{"*"}, Forbidden: []string{"drop"}},
		MCP: []MCPServer{{
			Name: "github", Command: []string{"mcp", "--stdio"}, Env: []string{"GITHUB_TOKEN"}, Read: []string{"/srv/c"},
			Write: []string{"/srv/c/w"}, Network: true,
		}},
		Read: []string{"/srv/docs"}, Write: []string{"/srv/out"}, Network: true,
	}
	nightly := Agent{
		Name: "nightly", Person: "fay", Parent: "helper", Workspace: "/srv/helper", OnDenial: Terminate,
		Model: AgentModel{Provider: Anthropic, Name: "claude", Window: anthropicWindow, Credential: "agent.nightly.key"},
		Tools: helper.Tools, Read: []string{"/srv/docs/a"}, Prompt: "Write the report.",
		Schedule: Schedule{
			Cron: "0 3 * * *", Location: zone(t, "Asia/Tokyo"), Needs: []permissions.Tag{permissions.Network},
			AskAt: Clock{Given: true, Hour: 21},
		},
	}
	deep := Agent{
		Name: "deep", Person: "fay", Parent: "nightly", Workspace: "/srv/helper", OnDenial: Terminate, Model: nightly.Model,
		Tools: helper.Tools, InstructionsFile: "/srv/deep.md", Prompt: "Look.",
		Schedule: Schedule{Every: 6 * time.Hour, Location: time.UTC},
	}
	own := Agent{
		Name: "own.1", Person: "fay", Connector: "terminal", OnDenial: Continue, Tools: c.Tools,
		Model: AgentModel{Provider: Script, File: "/srv/turns.yaml", Window: otherWindow, Credential: "agent.own.1.key"},
	}
	for i, want := range []Agent{nightly, helper, deep, own} {
		if got := c.Agents[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	private := []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("fd00::/8")}
	if got := c.Fetch.AllowPrivate; !reflect.DeepEqual(got, private) {
		t.Errorf("allow_private is %v", got)
	}
	warning := `config.yaml:31: "own.1" has no workspace: its relative paths lead nowhere, and it asks for every file`
	if want := []string{warning}; !reflect.DeepEqual(c.Warnings.lines(), want) {
		t.Errorf("warnings: %q", c.Warnings)
	}
	shown := show(t, c)
	if again := load(t, shown); !reflect.DeepEqual(meaning(again), meaning(c)) {
		t.Errorf("shown\n%s\nis read as\n%+v", shown, again)
	}
	for _, line := range []string{
		"  - name: nightly ", "    model: ", "      input_price: 0.4 ", "      output_price: 12.000001 ", "    tools: ",
		"      auto: [] ", "      - name: github ", `        command: [mcp, "--stdio"] `, `    instructions: "You look\nafter the wiki." `,
		`      ask_at: "21:00" `, `  allow_private: [192.168.1.0/24, "fd00::/8"] `,
	} {
		if !strings.Contains(shown, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, shown)
		}
	}
}

func TestWhatAgentsHold(t *testing.T) {
	c := load(t, everyAgentKey)
	for i, want := range [][]permissions.Tag{
		{tag(t, "@write:/srv/helper"), permissions.Workspace, tag(t, "@read:/srv/docs/a")},
		{tag(t, "@write:/srv/helper"), permissions.Workspace, tag(t, "@read:/srv/docs"), tag(t, "@write:/srv/out"), permissions.Network},
		{tag(t, "@write:/srv/helper"), permissions.Workspace},
		nil,
	} {
		if got := c.Agents[i].GrantedTags(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s holds %v, want %v", c.Agents[i].Name, got, want)
		}
	}
	server := []permissions.Tag{tag(t, "@read:/srv/c"), tag(t, "@write:/srv/c/w"), permissions.Network}
	m := c.Agents[1].MCP[0]
	if got := reach("", m.Read, m.Write, m.Network); !reflect.DeepEqual(got, server) {
		t.Errorf("the server holds %v", got)
	}
}

// TestAgentOfTheOperator: where there are no people, whose it is goes without saying.
func TestAToolsListLeavesTheDefaultsOfTheOthers(t *testing.T) {
	const agent = "person: fay, model: {provider: script, file: /t}"
	c := load(t, "people: [{name: fay, user: fay}]\nroutes: [{ask: [fay]}]\n"+
		"tools: {auto: [write_file, delete_repository]}\nagents:\n- {name: a, "+agent+", tools: {auto: [fetch_url]}}\n"+
		"- {name: b, parent: a, tools: {forbidden: [edit_file]}}\n- {name: c, "+agent+", tools: {gated: [write_file]}}\n")
	check := func(name string, got, want Tools) {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	all := Tools{
		Auto:  []string{"write_file", "delete_repository"},
		Gated: []string{"edit_file", "run_command", "fetch_url", "web_search"}, Forbidden: []string{},
	}
	check("everybody", c.Tools, all)
	check("a", c.Agents[0].Tools, Tools{
		Auto: []string{"fetch_url"}, Gated: []string{"edit_file", "run_command", "web_search"}, Forbidden: []string{},
	})
	check("b", c.Agents[1].Tools, Tools{
		Auto: []string{"fetch_url"}, Gated: []string{"run_command", "web_search"}, Forbidden: []string{"edit_file"},
	})
	check("c", c.Agents[2].Tools, Tools{Auto: all.Auto, Gated: []string{"write_file"}, Forbidden: []string{}})
}

func TestAgentOfTheOperator(t *testing.T) {
	c := load(t, "agents: [{name: helper, workspace: /w, model: {provider: script, file: /t}}]\n")
	if a := c.Agents[0]; a.Person != "" || a.Connector != "terminal" || len(c.Warnings) > 0 {
		t.Errorf("got %+v, %q", a, c.Warnings)
	}
}

// TestAgentOfAnInbox: the admin socket is always there, and whoever runs the daemon needs no entry to come in by it.
func TestAgentOfAnInbox(t *testing.T) {
	const off = "connectors: {terminal: {enabled: false}}\napi: {admin_reachable: true}\n"
	for _, people := range []string{"", "people: [{name: fay, user: root}]\nroutes: [{agents: [\"*\"], ask: [fay]}]\n"} {
		person := ""
		if people != "" {
			person = "person: fay, "
		}
		c := load(t, off+people+"agents: [{name: helper, "+person+"connector: admin, workspace: /w, model: {provider: script, file: /t}}]\n")
		if a := c.Agents[0]; a.Connector != "admin" || len(c.Warnings) > 0 {
			t.Errorf("got %+v, %q", a, c.Warnings)
		}
	}
}

func TestWarningsOfAgents(t *testing.T) {
	got := load(t, `agents:
  - {name: a, workspace: /w, model: {provider: openai, name: m, base_url: "http://model.example/v1"}}
  - name: b
    parent: a
    prompt: Go on.
    schedule:
      every: 1m
      needs:
        - "@workspace"
        - "@read:/w/x"
        - "@network"
sandbox: off
sandboxed: allow
`).Warnings.lines()
	want := []string{
		`config.yaml:2: what "a" reads and writes goes to http://model.example/v1 in the clear`,
		`config.yaml:11: "a" has no network access by the configuration: "b" gets it only while "a" holds it by a grant`,
		`config.yaml:12: the sandbox is off: commands of agents reach whatever the daemon's account reaches`,
		`config.yaml:13: sandboxed: allow does nothing while the sandbox is off: every command is asked about`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestBadAgents(t *testing.T) {
	const fay = "people: [{name: fay, user: fay}]\nroutes: [{ask: [fay]}]\n"
	const model = "model: {provider: script, file: /t}"
	const helper = "agents:\n- {name: helper, workspace: /w, read: [/r], write: [/o], " + model + "}\n"
	const beyond = `, and a child has no more than its parent; give it to "helper", too, or take it out here`
	for _, test := range []struct{ name, text, want string }{
		{"program without a place", "agents: [{name: a, acp: [x]}]\n",
			`1: agents.workspace: "a" needs one to work in; write it as in workspace: /srv/code`},
		{"no program", "agents: [{name: a, acp: [], workspace: /w}]\n",
			`1: agents.acp: nothing says what to start; write the program and its arguments, as in acp: [claude-agent-acp]`},
		{"program with a model", "agents:\n- {name: a, acp: [x], workspace: /w,\n   " + model + "}\n",
			`3: agents.model: "a" is a program of its own (acp), which has no use for it; leave it out`},
		{"program with a server", "agents:\n- {name: a, acp: [x], workspace: /w,\n   mcp: [{name: s, command: [y]}]}\n",
			`3: agents.mcp: "a" is a program of its own (acp), which has no use for it; leave it out`},
		{"program as a child", helper + "- {name: b, parent: helper, acp: [x]}\n",
			`3: agents.acp: "b" is a child, and those think with a model; leave its parent out, or acp`},
		{"child of a program", "agents:\n- {name: a, acp: [x], workspace: /w}\n- {name: b, parent: a, " + model + "}\n",
			`3: agents.parent: "a" is a program of its own, which has no children here; write another one`},
		{"env of a model", "agents:\n- {name: a, env: [KEY], " + model + "}\n",
			`2: agents.env: it is for the program of an agent, and "a" has none; write acp, or leave it out`},
		{"signing in a model", "agents:\n- {name: a, acp_auth: key, " + model + "}\n",
			`2: agents.acp_auth: it is for the program of an agent, and "a" has none; write acp, or leave it out`},
		{"a mode of a model", "agents:\n- {name: a, mode: plan, " + model + "}\n",
			`2: agents.mode: it is for the program of an agent, and "a" has none; write acp, or leave it out`},
		{"near key", "agents: [{name: a, wrkspace: /x}]\n", `1: unknown key "agents.wrkspace"; did you mean workspace?`},
		{"near key of a model", "agents: [{name: a, model: {base_uri: /x}}]\n",
			`1: unknown key "agents.model.base_uri"; did you mean base_url?`},
		{"near key of a server", "agents: [{name: a, mcp: [{comand: x}]}]\n",
			`1: unknown key "agents.mcp.comand"; did you mean command?`},
		{"no name", "agents:\n- " + model + "\n", `2: agents.name: this agent has none; write one, as in name: helper`},
		{"a name twice", "agents:\n- {name: a, " + model + "}\n- {name: A, " + model + "}\n",
			`3: agents.name: "A" is that of the agent in line 2 already; write another one`},
		{"nobody's", fay + "agents: [{name: a, " + model + "}]\n",
			`3: agents.person: "a" is nobody's; write whose it is, as in person: fay`},
		{"a stranger's", fay + "agents: [{name: a, person: fya, " + model + "}]\n",
			`3: agents.person: nobody in people is called "fya"; did you mean fay?`},
		{"somebody's, without people", "agents: [{name: a, person: fay, " + model + "}]\n", `1: agents.person: nobody is called ` +
			`"fay", since there are no people; write them under people, or leave it out for the operator`},
		{"a connector that is off", "agents: [{name: a, connector: telegram, " + model + "}]\n",
			`1: agents.connector: connectors.telegram.enabled is false; switch it on, or write another one`},
		{"nowhere to talk", "connectors: {terminal: {enabled: false}}\nagents: [{name: a, " + model + "}]\n",
			`2: agents.connector: nothing says where to talk to "a", and connectors.terminal.enabled is false; ` +
				`write connector: admin, for daycared inbox; or ` + anyOf(connectors.KindNames()...)},
		{"nobody's inbox", "people: [{name: fay}]\nagents: [{name: a, person: fay, connector: admin, " + model + "}]\n",
			`2: agents.connector: an inbox knows people by their account, and fay has none here; write it under people, ` +
				`as in user: fay, or another connector`},
		{"no connector", "agents: [{name: a, connector: telegrm}]\n", `1: agents.connector: unknown connector "telegrm"; did you mean telegram?`},
		{"no model", "agents: [{name: a}]\n",
			`1: agents.model: nothing says what "a" thinks with; write a model with its provider: openai, anthropic or script`},
		{"no provider", "agents:\n- name: a\n  model: {name: m}\n",
			`2: agents.model: nothing says what "a" thinks with; write a model with its provider: openai, anthropic or script`},
		{"unknown provider", "agents: [{name: a, model: {provider: opnai}}]\n",
			`1: agents.model.provider: unknown provider "opnai"; did you mean openai?`},
		{"a script without turns", "agents:\n- name: a\n  model: {provider: script, api_key_file: /k, base_url: 'http://127.0.0.1/'}\n",
			"3: agents.model.file: the provider script needs it; write it as in file: /srv/helper/turns.yaml\n" +
				"3: agents.model.base_url: the provider script has no use for it; leave it out\n" +
				"3: agents.model.api_key_file: the provider script has no use for it; leave it out"},
		{"a model without a name", "agents:\n- name: a\n  model: {provider: openai, file: /f, window: 100}\n",
			"3: agents.model.name: the provider openai needs it; write it as in name: qwen3\n" +
				"3: agents.model.file: the provider openai has no use for it; leave it out\n" +
				"3: agents.model.window: 100 tokens leave no room to work; write 4096 or more"},
		{"a key in the clear", "agents: [{name: a, model: {provider: openai, name: m, base_url: 'http://10.0.0.1/v1', api_key_file: /k}}]\n",
			`1: agents.model.base_url: "http://10.0.0.1/v1" would send the key in the clear; write https, or leave api_key_file out`},
		{"no address", "agents: [{name: a, model: {base_url: model}}]\n",
			`1: agents.model.base_url: "model" is not an address; write it as in http://127.0.0.1:11434/v1`},
		{"no price", "agents: [{name: a, model: {input_price: 1e3}}]\n",
			`1: agents.model.input_price: "1e3" is no price of a million tokens; write it as in 2.50`},
		{"two instructions", "agents: [{name: a, instructions: x, instructions_file: /f, " + model + "}]\n",
			`1: agents.instructions_file: the instructions are written here already; keep one of the two`},
		{"no words", "agents: [{name: a, instructions: ' '}]\n", `1: agents.instructions: there is no text; write some, or leave the key out`},
		{"too many words", "agents: [{name: a, prompt: " + strings.Repeat("x", maxWords+1) + "}]\n",
			`1: agents.prompt: the text has more than 32768 bytes; write a shorter one`},
		{"no text", "agents: [{name: a, prompt: \"a\\0b\"}]\n", `1: agents.prompt: the text holds a byte that no text has; leave it out`},
		{"no denial", "agents: [{name: a, on_denial: stop}]\n",
			`1: agents.on_denial: unknown what follows a denial "stop"; there are continue, terminate`},
		{"a relative folder", "agents: [{name: a, read: [docs]}]\n",
			`1: agents.read: "docs" is not absolute; write the whole path, beginning with /`},
		{"an empty folder", "agents: [{name: a, workspace: ''}]\n",
			`1: agents.workspace: an empty path names nothing; write a whole one, as in /srv/helper`},
		{"a folder that no permission can name", "agents: [{name: a, workspace: \"/e\\u0301\"}]\n",
			"1: agents.workspace: \"/e\u0301\" can be no permission " +
				"(permission \"@read:/e\u0301\": the path is not in Unicode normal form C; write it as \"/\u00e9\"); write another path"},
		{"no parent", helper + "- {name: b, parent: hleper}\n", `3: agents.parent: no agent is called "hleper"; did you mean helper?`},
		{"alone", "agents: [{name: a, parent: b}]\n", `1: agents.parent: there is no other agent; write "b", too, or leave it out`},
		{"above itself", "agents: [{name: a, parent: a}]\n", `1: agents.parent: "a" would stand above itself; write another one`},
		{"in a circle", "agents:\n- {name: a, parent: b}\n- {name: b, parent: c}\n- {name: c, parent: b}\n",
			"3: agents.parent: \"b\" would stand above itself; write another one"},
		{"a child's own", helper + "- {name: b, parent: helper, person: fay, connector: telegram}\n",
			"3: agents.person: \"b\" is a child, and its person is its parent's; leave it out\n" +
				"3: agents.connector: \"b\" is a child, and its connector is its parent's; leave it out"},
		{"a child's reach", helper + "- name: b\n  parent: helper\n  read: [/w/x, /etc]\n  write: [/o/x, /r]\n  network: true\n" +
			"  workspace: /r\n",
			"5: agents.read: \"helper\" has no read access to /etc" + beyond + "\n" +
				"6: agents.write: \"helper\" has no write access to /r" + beyond + "\n" +
				"7: agents.network: \"helper\" has no network access" + beyond + "\n" +
				"8: agents.workspace: \"helper\" has no write access to /r" + beyond},
		{"a grandchild's reach", helper + "- {name: b, parent: helper}\n- {name: c, parent: b, workspace: /w/c, read: [/w/d, /r]}\n",
			`4: agents.read: "b" has no read access to /r, and a child has no more than its parent; give it to "b", too, or take it out here`},
		{"a schedule of its own", "agents:\n- name: a\n  " + model + "\n  prompt: p\n  schedule: {every: 1h}\n",
			`5: agents.schedule: a scheduled agent runs in the background, for another one; write its parent, as in parent: helper`},
		{"a prompt for nothing", helper + "- {name: b, parent: helper, prompt: p}\n",
			`3: agents.prompt: it is what a schedule has "b" told, and there is none; write a schedule, or leave it out`},
		{"an empty schedule", helper + "- {name: b, parent: helper, schedule: {}}\n",
			"3: agents.schedule: nothing says when; write cron: \"0 3 * * *\" or every: 6h\n" +
				"3: agents.prompt: nothing says what \"b\" is told then; write it as in prompt: \"Write the report.\""},
		{"both", helper + "- {name: b, parent: helper, prompt: p, schedule: {cron: '@daily', every: 1h, ask_at: 21:00}}\n",
			"3: agents.schedule.every: cron says when already; keep one of the two\n" +
				"3: agents.schedule.ask_at: nothing is asked for; write what a run needs, as in needs: [\"@network\"]"},
		{"too often", helper + "- {name: b, parent: helper, prompt: p, schedule: {every: 59s}}\n",
			`3: agents.schedule.every: 59s is too short; write 1m or more`},
		{"servers", helper + "- name: b\n  parent: helper\n  mcp:\n  - {name: m, command: [x]}\n  - {name: M, command: []}\n  - {command: [x]}\n",
			"7: agents.mcp.command: nothing says what to start; write the program and its arguments, as in command: [github-mcp, stdio]\n" +
				"7: agents.mcp.name: \"b\" has a server \"M\" already; write another one\n" +
				"8: agents.mcp.name: this server has none; write one, as in name: github"},
		{"servers whose tools cannot be told apart", helper + "- name: b\n  parent: helper\n  mcp:\n  - {name: a.b, command: [x]}\n" +
			"  - {name: a__b, command: [x]}\n  - {name: a-b_c9, command: [x]}\n  - {name: " + strings.Repeat("x", 25) + ", command: [x]}\n",
			"6: agents.mcp.name: the names of the tools of \"a.b\" begin with it, as in github__get_issue; write at most 24 letters, digits, " +
				"dashes and single underscores\n" +
				"7: agents.mcp.name: the names of the tools of \"a__b\" begin with it, as in github__get_issue; write at most 24 letters, digits, " +
				"dashes and single underscores\n" +
				"9: agents.mcp.name: the names of the tools of \"" + strings.Repeat("x", 25) + "\" begin with it, as in github__get_issue; write at " +
				"most 24 letters, digits, dashes and single underscores"},
		{"what servers are handed", "agents: [{name: a, mcp: [{env: [A=b, DAYCARED_TOKEN_FILE, CREDENTIALS_DIRECTORY]}]}]\n",
			"1: agents.mcp.env: \"A=b\" is not the name of a variable; write the name alone, as in GITHUB_TOKEN\n" +
				"1: agents.mcp.env: DAYCARED_TOKEN_FILE is the daemon's own and is handed to nobody; leave it out\n" +
				"1: agents.mcp.env: CREDENTIALS_DIRECTORY is the daemon's own and is handed to nobody; leave it out"},
		{"sandbox", "sandbox: no\n", `1: sandbox: "no" is neither on nor off; write off`},
		{"sandbox in other words", "sandbox: true\n", `1: sandbox: "true" is neither on nor off; write on`},
		{"sandbox in none", "sandbox: maybe\n", `1: sandbox: "maybe" is neither on nor off; write on or off`},
		{"sandboxed like the sandbox", "sandboxed: on\n", `1: sandboxed: "on" is neither allow nor ask; write allow`},
		{"an address for a network", "fetch: {allow_private: [10.0.0.1, 10.0.0.1/8, lan, '::ffff:10.0.0.0/104']}\n",
			"1: fetch.allow_private: \"10.0.0.1\" is no network; write \"10.0.0.1/32\"\n" +
				"1: fetch.allow_private: \"10.0.0.1/8\" names an address within a network; write \"10.0.0.0/8\"\n" +
				"1: fetch.allow_private: \"lan\" is no network; write \"10.0.0.0/8\"\n" +
				"1: fetch.allow_private: \"::ffff:10.0.0.0/104\" is an IPv4 address written as IPv6; write it as in \"10.0.0.0/8\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	for _, bad := range []string{"a/b", "agent:a", "*", "a b", "-a", ".", "", "ä", strings.Repeat("a", 65)} {
		want := `1: agents.name: ` + quote(bad) + ` is no name of an agent or a server; write at most 64 letters, digits, dots, dashes ` +
			`and underscores, the first a letter or a digit, as in helper`
		if got := lines(t, "agents: [{name: \""+bad+"\"}]\n"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
