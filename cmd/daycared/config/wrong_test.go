package config

import (
	"errors"
	"strings"
	"testing"
)

// verdict is what is said of a text: the lines of what is refused, or of what is warned about after "warns ", without the
// name of the file.
func verdict(t *testing.T, text string, environ ...string) string {
	t.Helper()
	c, err := parse("config.yaml", []byte(text), environ)
	var problems Problems
	switch {
	case errors.As(err, &problems):
		return strings.ReplaceAll(err.Error(), "config.yaml:", "")
	case err != nil:
		t.Fatal(err)
	case len(c.Faults) > 0:
		return strings.ReplaceAll(c.Faults.Error(), "config.yaml:", "")
	}
	said := ""
	for _, line := range c.Warnings.lines() {
		said += "warns " + strings.ReplaceAll(line, "config.yaml:", "") + "\n"
	}
	return said
}

// TestConfigurationsThatDoNotServe is about texts that were once called right, and serve nobody, or not as they read. Each
// is refused, or warned about, with its line and what would be right; what depends on the machine is tested where it is
// looked at.
func TestConfigurationsThatDoNotServe(t *testing.T) {
	const fay = "people: [{name: fay, user: fay}]\n"
	const both = "people: [{name: fay, user: fay}, {name: sam, user: root}]\n"
	const all = fay + "routes: [{ask: [fay]}]\n"
	const agent = "workspace: /w, model: {provider: script, file: /t}"
	for name, test := range map[string]struct{ text, want string }{
		"10 the number of a person is the account's": {"people: [{name: fay, user: fay, whatsapp: '+4915112345678'}]\n" +
			"routes: [{ask: [fay]}]\nconnectors:\n  whatsapp:\n    phone: '+4915112345678'\n",
			`5: connectors.whatsapp.phone: it is the number of "fay", and what the linked account sends decides nothing, ` +
				`so they could never answer; link a number of its own`},
		"40 people and no routes": {fay,
			`1: there are people but no routes: nobody is asked; write who is asked, as in - ask: [fay] under routes`},
		"40 a person whom no route reaches": {both + "routes: [{ask: [fay]}]\n",
			`1: people: "sam" is in no route's ask or escalate.to, so they are never asked; name them in a route, or take them out`},
		"40 a person of an agent": {both + "routes: [{ask: [fay]}]\nagents: [{name: a, person: sam, " + agent + "}]\n", ""},
		"41 no route for everybody": {fay + "routes:\n- {agents: [\"deploy-*\"], ask: [fay]}\n",
			`warns 2: what none of these routes matches is refused; add a last one without conditions, as in - ask: [fay]`},
		"42 tools of no kind that has any": {fay + "routes:\n- {ask: [fay]}\n- ask: [fay]\n  kinds: [clarification]\n  tools: [Bash]\n",
			`6: routes.tools: tools are of the kind tool, which is not among kinds, so this route matches nothing; ` +
				`write kinds: [tool], or leave one of the two out`},
		"42 tags of no kind that has any": {fay + "routes:\n- ask: [fay]\n  kinds: [pause, clarification]\n  tags: ['@network']\n",
			`5: routes.tags: only permissions and tools have tags, and neither is among kinds, so this route matches nothing; ` +
				`write kinds: [permission, tool], or leave one of the two out`},
		"43 a route under one for everything": {fay + "routes:\n- ask: [fay]\n- {tags: ['@network'], ask: [fay], timeout: 4h}\n",
			`warns 4: this route is never taken: the one in line 3 matches all that it matches; put it first`},
		"43 a route under a wider one": {fay + "routes:\n- {agents: ['*'], kinds: [tool, permission], tags: ['@write:/srv'], ask: [fay]}\n" +
			"- {agents: [ci], kinds: [tool], tags: ['@write:/srv/www'], ask: [fay]}\n- ask: [fay]\n",
			`warns 4: this route is never taken: the one in line 3 matches all that it matches; put it first`},
		"43 routes that differ": {fay +
			"routes:\n- {agents: [ci], kinds: [tool], ask: [fay]}\n- {agents: [ci], kinds: [tool, pause], ask: [fay]}\n" +
			"- {tags: ['@write:/srv/www'], ask: [fay]}\n- {tags: ['@write:/srv'], ask: [fay]}\n- {tools: [Bash], ask: [fay]}\n- ask: [fay]\n", ""},
		"44 a slip in a route": {fay + "routes:\n- {tools: [Bash, run_comand], ask: [fay]}\n- ask: [fay]\n",
			`3: routes.tools: no list under tools has "run_comand"; did you mean run_command? ` +
				`If another program has such a tool, add it to tools.gated`},
		"44 a slip in what is high risk": {all + "high_risk:\n  tools:\n  - run_comand\n",
			`5: high_risk.tools: no list under tools has "run_comand"; did you mean run_command? ` +
				`If another program has such a tool, add it to tools.gated`},
		"44 a tool of another program": {all + "high_risk: {tools: [Bash, read_files, 'github__*']}\n" +
			"tools: {gated: [read_files, write_file, edit_file, run_command, fetch_url]}\n",
			`warns 4: daycared has no tool "read_files", so this holds only for one of another program; did you mean read_file?`},
		"45 a tool that runs and never runs": {all + "tools: {auto: [look], forbidden: [look]}\n",
			`warns 3: "look" is in tools.forbidden, too, in line 3, which holds: this entry means nothing; take one of the two out`},
		"45 a tool that an agent is to run, and asks for": {all + "tools:\n  gated:\n  - look\n  - web_search\n" +
			"agents: [{name: a, person: fay, tools: {auto: [web_search]}, " + agent + "}]\n",
			`warns 7: "web_search" is in tools.gated, too, in line 6, which holds: this entry means nothing; take one of the two out`},
		"45 a tool that an agent is to run, and asks for by default": {all + "agents: [{name: a, person: fay, " +
			"tools: {auto: [web_search]}, " + agent + "}]\n", ""},
		"45 a shell that runs unasked": {all + "tools:\n  auto:\n  - Bash\n",
			`5: tools.auto: "Bash" would run every command unasked; write which under rules, as in - allow: ["run git status"]`},
		"45 a skill that runs unasked": {all + "tools:\n  auto:\n  - Skill\n",
			`5: tools.auto: "Skill" does what files say that nobody has seen, so it is asked about each time; leave it out`},
		"45 a rule that says nothing": {all + "rules:\n- allow: [git status]\n",
			`4: rules.allow: "git status" begins with no kind of act; write run, read, write, fetch or tool, as in run git status`},
		"45 a rule for any code": {all + "rules:\n- allow:\n  - run git status\n  - run python3 *\n",
			`6: rules.allow: python3 runs code that its words are or name, so a rule for it has no wildcard; write the exact words`},
		"45 a rule that another undoes": {all + "rules:\n- allow: [run git push origin main]\n- deny: [run git push]\n",
			`warns 4: "run git push origin main" never holds, because rule 2 denies all of it; take one of the two out`},
		"45 a rule whose example it does not cover": {all + "rules:\n- {allow: [run go vet ./...], not: [go vet ./...]}\n",
			`4: rules.not: "go vet ./..." is covered, and must not be`},
		"45 a rule that is over": {all + "rules:\n- {allow: [run go vet ./...], until: 2001-01-31}\n",
			`warns 4: this rule is over; take it out, or write a later day`},
		"45 a pattern for tools that ask by default": {all + "tools: {auto: ['run_*', look]}\n",
			`warns 3: "run_*" leaves out run_command, which tools.gated has by default; name it here, or write that list, too`},
		"46 every tool runs": {all + "tools: {auto: ['*']}\n",
			`warns 3: every tool that is neither gated nor forbidden runs, and nobody is asked; name the tools that may`},
		"47 no tool runs": {all + "tools: {forbidden: ['*']}\n",
			`warns 3: every tool is forbidden, so none ever runs; name those that may not`},
		"48 a person without any address, whom a route needs": {"people: [{name: fay}]\nroutes:\n- ask: [fay]\n",
			`3: routes.ask: nothing can reach fay; give them a user, or switch on a channel that they have`},
		"49 a quorum of those who cannot be reached": {"people: [{name: fay, user: fay}, {name: sam, telegram: 7}]\n" +
			"routes:\n- ask: [fay, sam]\n  quorum: 2\n",
			`4: routes.quorum: 2 people have to agree, and 1 of these can be reached (not sam); write at most 1, ` +
				`or give them a user or a channel that is switched on`},
		"50 an escalation to nobody": {"people: [{name: fay, user: fay}, {name: sam}]\nroutes:\n- ask: [fay]\n  escalate:\n" +
			"    after: 50%\n    to: [sam]\n",
			"warns 1: \"sam\" has no " + userOrKinds + ": nothing can reach them\n" +
				`warns 6: nothing can reach sam, so it escalates to nobody; give them a user, or switch on a channel that they have`},
		"51 an escalation after the usual time": {both + "routes: [{ask: [fay], escalate: {after: 30m, to: [sam]}}]\n",
			`warns 2: who asks without a timeout of their own is never escalated: approvals.timeout, which is 15m, is over first; ` +
				`write a shorter time, or a share, as in 50%`},
		"52 a reminder that never comes": {all + "approvals: {remind: [50%, 2h]}\n",
			`warns 3: nobody is reminded after 2h, since nothing waits longer than 1h; write a shorter time, or a share, as in 50%`},
		"52 a reminder of a route": {fay + "routes: [{ask: [fay], timeout: 4h}]\napprovals: {remind: [2h]}\n", ""},
		"53 questions that wait for too long": {all + "approvals:\n  clarification_timeout: 2h\n  deliver_within: 2h\n",
			"4: approvals.clarification_timeout: 2h is longer than approvals.max_timeout, which is 1h; " +
				"write a shorter one, or lengthen the other\n" +
				"5: approvals.deliver_within: 2h is longer than approvals.max_timeout, which is 1h; write a shorter one, or lengthen the other"},
		"54 no terminal and nothing else": {all + "connectors: {terminal: {enabled: false}}\n",
			`warns 3: people can be reached only while their inbox is open; open one with: daycared inbox; ` +
				`or set connectors.terminal.enabled or api.admin_reachable`},
		"55 a channel that is off, and no other": {"people: [{name: fay, telegram: 7, via: [telegram]}]\nroutes: [{ask: [fay]}]\n",
			`2: routes.ask: nothing can reach fay; give them a user, or switch on a channel that they have`},
		"55 a channel that is off beside one that is not named": {"people: [{name: fay, telegram: 7, whatsapp: '+4915112345678',\n" +
			"  via: [telegram]}]\n" +
			"routes: [{ask: [fay]}]\nconnectors: {whatsapp: {enabled: true}}\n",
			`3: routes.ask: nothing can reach fay; give them a user, or switch on a channel that they have`},
		"56 a caller that may have more than all": {all + "limits: {pending_per_caller: 30, pending_total: 20}\n",
			`warns 3: one caller never has 30 waiting, since limits.pending_total is 20; write a smaller number, or raise the other`},
		"57 a group without anybody": {fay + "routes: [{ask: [fay], chat: -1001}]\nconnectors: {telegram: {enabled: true}}\n",
			`warns 2: none of this route has a telegram: nobody can answer in the group before they are paired; ` +
				`pair them with: daycared pair fay`},
		"58 an agent of a person's name": {all + "agents:\n- {name: Fay, person: fay, " + agent + "}\n",
			`warns 4: a person is called "Fay" as well, and cards cannot tell the two apart; give one another name`},
		"59 two agents in one folder": {all + "agents:\n- {name: a, person: fay, " + agent + "}\n- {name: b, person: fay, " + agent +
			"}\n- {name: c, parent: a}\n",
			`warns 5: "b" works in the folder of "a", and each changes what the other has; give them one each`},
		"62 who asks may answer": {all + "api: {allow_same_user: true}\n",
			`warns 3: api.allow_same_user is on: whatever runs as an account that decides can allow what it asked ` +
				`itself; switch it off, except for trying daycared out`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.TrimSuffix(verdict(t, test.text), "\n"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	const variable = "warns DAYCARED_LOGLEVEL: no such variable; did you mean DAYCARED_LOG_LEVEL?\n"
	if got := verdict(t, all, "DAYCARED_LOGLEVEL=debug"); got != variable {
		t.Errorf("61 a variable that does not exist: %s", got)
	}
}

// TestWhatWasAlwaysRefusedWell keeps the messages that were found good, each by its beginning. Others of the kind are in
// the tests beside this one.
func TestWhatWasAlwaysRefusedWell(t *testing.T) {
	const fay = "people: [{name: fay, user: fay}]\n"
	const all = fay + "routes: [{ask: [fay]}]\n"
	const model = "model: {provider: script, file: /t}"
	for _, test := range []struct{ text, want string }{
		{"approvals: 15m\n", `1: approvals is text, where keys belong; write them as in timeout: …`},
		{fay + "routes: [{ask: fay}]\n", `2: routes.ask is a list, not text; write ask: [fay]`},
		{fay + "routes: [{ask: [fay], quorum: two}]\n", `2: routes.quorum: "two" is not a whole number; write digits only`},
		{fay + "routes: [{ask: [fay], quorum: 0}]\n", `2: routes.quorum: "0" is not enough; write 1 or more`},
		{"people: [{name: fay, telegram: '123456789'}]\n", `1: people.telegram is a numeric id, not text; write it without quotes`},
		{"people: [{name: fay, telegram: @fay}]\n", `1: people.telegram: "@fay" is a username, which can change hands`},
		{"people: [{name: fay, telegram: -5}]\n", `1: people.telegram: "-5" is the id of a group`},
		{"connectors: {telegram: {enabled: yes}}\n", `1: connectors.telegram.enabled: "yes" is neither true nor false; write true`},
		{"sandbox: no\n", `1: sandbox: "no" is neither on nor off; write off`},
		{"people: [{name: fay, user: 1000}]\n", `1: people.user: YAML reads 1000 as a number; write it in quotes`},
		{"people: [{name: 12}]\n", `1: people.name: YAML reads 12 as a number; write it in quotes`},
		{"poeple: []\n", `1: unknown key "poeple"; did you mean people?`},
		{"People: []\n", `1: keys are written in lower case, not as "People"; write people`},
		{"approvals: {time_out: 1m}\n", `1: unknown key "approvals.time_out"; did you mean timeout?`},
		{"connectors: {telegramm: {}}\n", `1: unknown key "connectors.telegramm"; did you mean telegram?`},
		{"database: x\n", `1: database: "x" is not an address of PostgreSQL`},
		{"people:\n", `1: people is a list, not nothing; write people: [] for none`},
		{"log: {}\n\n\napprovals: {}\napprovals: {}\n", `5: approvals is here a second time, after line 4`},
		{"people:\n- name: fay\n- name: Fay\n", `3: people.name: "fay" is that of the person in line 2 already`},
		{"people:\n- {name: fay, telegram: 7}\n- {name: sam, telegram: 7}\n",
			`3: people.telegram: "7" is that of the person in line 2 already`},
		{"approvals: {scopes: [once, once]}\n", `1: approvals.scopes: once is there already`},
		{"approvals: {scopes: [session]}\n", `1: approvals.scopes: once is always on offer`},
		{"approvals: {scopes: [once, 9000h]}\n", `1: approvals.scopes: `},
		{"approvals: {scopes: [once, forever]}\n", `1: approvals.scopes: unknown scope "forever"`},
		{"approvals: {timeout: 15}\n", `1: approvals.timeout: "15" is not a duration; write 15m for minutes or 15s for seconds`},
		{"approvals: {timeout: 15 min}\n", `1: approvals.timeout: "15 min" is not a duration; write 15m`},
		{"approvals: {timeout: -5m}\n", `1: approvals.timeout: "-5m" is too short`},
		{"approvals: {timeout: 2h}\n", `1: approvals.timeout: 2h is longer than approvals.max_timeout, which is 1h`},
		{"approvals: {max_timeout: 10000h}\n", `1: approvals.max_timeout: "10000h" is too long`},
		{"approvals: {max_timeout: 200d}\n", `1: approvals.max_timeout: "200d" is not a duration; write 4800h`},
		{"approvals: {remind: ['150%']}\n", `1: approvals.remind: "150%" is not between the beginning and the end; write 1% to 99%`},
		{"keep: {payloads: 200d}\n", `1: keep.payloads: 200d is longer than keep.requests, which is 90d`},
		{"people: [{name: fay, phone_after: 10m}]\n", `1: people.phone_after: "10m" is too long; write 5m or less`},
		{"people: [{name: fay, quiet: '22-7'}]\n", `1: people.quiet: "22-7" is no span of hours; write "22:00-07:00"`},
		{"people: [{name: fay, quiet: '07:00-07:00'}]\n", `1: people.quiet: "07:00-07:00" ends when it begins`},
		{"people: [{name: fay, timezone: Europe/Berln}]\n", `1: people.timezone: unknown time zone "Europe/Berln"`},
		{"people: [{user: fay}]\n", `1: people.name: this person has none`},
		{"people: [{name: operator}]\n", `1: people.name: "operator" stands for the daemon's own account`},
		{"people: [{name: fay, whatsapp: +4915112345678}]\n",
			`1: people.whatsapp: YAML reads +4915112345678 as a number; write it in quotes: whatsapp: "+4915112345678"`},
		{"people: [{name: fay, user: fay, via: []}]\n", `1: people.via: an empty list reaches nobody`},
		{"people: [{name: fay, via: [signal]}]\n", `1: people.via: unknown channel "signal"`},
		{"people: [{name: fay, via: [whatsapp]}]\n", `1: people.via: whatsapp goes by the person's whatsapp, and there is none`},
		{"routes: [{ask: [fay]}]\n", `1: routes.ask: nobody is called "fay", since there are no people`},
		{fay + "routes: [{ask: []}]\n", `2: routes.ask: this route asks nobody`},
		{fay + "routes: [{agents: [x]}]\n", `2: routes.ask: this route asks nobody`},
		{fay + "routes: [{ask: [fai]}]\n", `2: routes.ask: nobody in people is called "fai"; did you mean fay?`},
		{fay + "routes: [{ask: [fay, fay]}]\n", `2: routes.ask: "fay" is there already`},
		{fay + "routes: [{ask: [fay], quorum: 2}]\n", `2: routes.quorum: 2 people have to agree, and this route names only 1; write at most 1`},
		{fay + "routes: [{ask: [fay], escalate: {after: 50%, to: [fay]}}]\n", `2: routes.escalate.to: "fay" is asked from the beginning`},
		{fay + "routes: [{ask: [fay], agents: []}]\n", `2: routes.agents: an empty list matches nothing`},
		{fay + "routes: [{ask: [fay], agents: ['deploy-[']}]\n", `2: routes.agents: "deploy-[" is not a pattern`},
		{fay + "routes: [{ask: [fay], kinds: [tools]}]\n", `2: routes.kinds: unknown kind "tools"; did you mean tool?`},
		{fay + "routes:\n- ask: [fay]\n  tags: [@network]\n", `4: what begins with @ has to be quoted; write it as "@network"`},
		{fay + "routes: [{ask: [fay], tags: ['network']}]\n", `2: routes.tags: unknown permission "network"; did you mean @network?`},
		{fay + "routes: [{ask: [fay], tags: ['@write:srv']}]\n", `2: routes.tags: permission "@write:srv": the path is not absolute`},
		{all + "data_dir: ~/x\n", `3: data_dir: "~/x" is not expanded here`},
		{all + "data_dir: /tmp/./s\n", `3: data_dir: "/tmp/./s" is not clean; write "/tmp/s"`},
		{"connectors: {telegram: {api_url: api.telegram.org}}\n",
			`1: connectors.telegram.api_url: "api.telegram.org" is not an address; write it as in https://api.telegram.org`},
		{"api: {listen: '0.0.0.0:7801'}\n", `1: api.listen: others could read the tokens that come to "0.0.0.0:7801"`},
		{"api: {tls_cert_file: /c}\n", `1: api.tls_cert_file: there is no key for it`},
		{"api: {listen: ':7801', behind_proxy: true, allow_anonymous: true}\n",
			`1: api.allow_anonymous: only callers from this machine may ask without a token`},
		{"api: {listen: localhost}\n", `1: api.listen: "localhost" is not an address to listen at`},
		{"api: {listen: 'example.org:7801'}\n", `1: api.listen: "example.org:7801" names a host`},
		{"api: {listen: '127.0.0.1:7801:8'}\n", `1: api.listen: "127.0.0.1:7801:8" is not an address to listen at`},
		{"agents: [{name: a, model: {provider: opena}}]\n", `1: agents.model.provider: unknown provider "opena"; did you mean openai?`},
		{"agents: [{name: a}]\n", `1: agents.model: nothing says what "a" thinks with`},
		{"agents: [{name: a, acp: [x], workspace: /w, " + model + "}]\n",
			`1: agents.model: "a" is a program of its own (acp), which has no use for it`},
		{all + "agents: [{name: a, person: sam, " + model + "}]\n", `3: agents.person: nobody in people is called "sam"`},
		{all + "agents: [{name: a, person: fay, connector: telegram, " + model + "}]\n",
			`3: agents.connector: connectors.telegram.enabled is false; switch it on`},
		{"agents: [{name: a, parent: a}]\n", `1: agents.parent: "a" would stand above itself`},
		{"log: {level: verbose}\n", `1: log.level: unknown log level "verbose"; there are debug, info, warn, error`},
		{"fetch: {allow_private: [192.168.1.5/24]}\n",
			`1: fetch.allow_private: "192.168.1.5/24" names an address within a network; write "192.168.1.0/24"`},
		{"log: {level: loud}\nsandbox: no\npoeple: []\n", "1: log.level: unknown log level \"loud\"; there are debug, info, warn, error\n" +
			"2: sandbox: \"no\" is neither on nor off; write off\n3: unknown key \"poeple\"; did you mean people?"},
	} {
		if got := verdict(t, test.text); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s\ngot  %s\nwant %s", test.text, got, test.want)
		}
	}
}

// TestWhatIsRightlyAccepted is about texts that look odd and mean what they say.
func TestWhatIsRightlyAccepted(t *testing.T) {
	const fay = "people: [{name: fay, user: fay}]\nroutes: [{ask: [fay]}]\n"
	named := func(name string) string {
		return "people: [{name: " + name + ", user: fay}]\nroutes: [{ask: [" + name + "]}]\n"
	}
	for _, test := range []struct{ text, want string }{
		{"\xef\xbb\xbf" + fay, ""},
		{strings.ReplaceAll(fay, "\n", "\r\n"), ""},
		{`{"people": [{"name": "fay", "user": "fay"}], "routes": [{"ask": ["fay"]}]}`, ""},
		{named("fay m. lee"), ""},
		{named("\U0001f98a"), ""},
		{named(`"no"`), ""},
		{"people: [{name: fay, user: fay, quiet: 22:00-07:00}]\nroutes: [{ask: [fay]}]\n", ""},
		{"people: [{name: fay, user: fay, quiet: \"00:00-23:59\"}]\nroutes: [{ask: [fay]}]\n", ""},
		{fay + "api: {agent_group: staff, admin_group: staff}\n",
			"warns 3: agents are in the same group: they can reach the socket of those who decide\n"},
		{fay + "api: {tls_cert_file: /c, tls_key_file: /k}\n", "warns 3: api.tls_cert_file means nothing without api.listen\n"},
		{"people: [{name: fay, user: fay}, {name: sam, user: root}]\nroutes:\n- {ask: [fay, sam], kinds: [clarification], quorum: 2}\n" +
			"- ask: [fay]\n",
			"warns 3: a quorum of 2 means nothing for questions: their first answer counts\n"},
		{"people: [{name: fay, user: fay}, {name: sam, user: root}]\nroutes:\n- {agents: [a], ask: [fay], escalate: {after: 50%, to: [sam]}}\n" +
			"- {ask: [sam], escalate: {after: 50%, to: [fay]}}\n", ""},
	} {
		if got := verdict(t, test.text); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.text, got, test.want)
		}
	}
}

// TestProblemsSayCauseAndRemedy: the two are told apart, also where what somebody wrote has a semicolon.
func TestProblemsSayCauseAndRemedy(t *testing.T) {
	for text, want := range map[string][2]string{
		`a: "x; y" is wrong; write z`: {`a: "x; y" is wrong`, "write z"},
		"nobody is asked":             {"nobody is asked", ""},
		`"a\"; b" is no; c; or d`:     {`"a\"; b" is no`, "c; or d"},
	} {
		p := Problem{Text: text}
		cause, remedy := p.Split()
		if got := [2]string{cause, remedy}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
