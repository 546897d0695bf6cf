package config

import (
	"errors"
	"strings"
	"testing"
)

// lines are the messages of what is wrong with a file of that text, without "config.yaml:".
func lines(t *testing.T, text string) string {
	t.Helper()
	c, err := parse("config.yaml", []byte(text), nil)
	var problems Problems
	if !errors.As(err, &problems) || c != nil {
		t.Fatalf("config %v, error %v", c, err)
	}
	return strings.ReplaceAll(err.Error(), "config.yaml:", "")
}

func TestBadFiles(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		// Keys.
		{"unknown key", "log:\n  levl: info\n", `2: unknown key "log.levl"; did you mean level?`},
		{"unknown at the top", "poeple: []\n", `1: unknown key "poeple"; did you mean people?`},
		{"nothing near", "log: {colour: red}\n", `1: unknown key "log.colour"; there are level, format`},
		{"C4/wrong case", "\nPeople: []\n", `2: keys are written in lower case, not as "People"; write people`},
		{"C4/wrong case inside", "api: {Agent_Group: x}\n",
			`1: keys are written in lower case, not as "Agent_Group"; write agent_group`},
		{"C4/twice", "log: {level: info}\napi: {}\nlog: {level: warn}\n",
			`3: log is here a second time, after line 1; write it once`},
		{"C4/twice inside", "log:\n  level: info\n  level: warn\n",
			`3: log.level is here a second time, after line 2; write it once`},
		{"a database of another kind", "database: mysql://x\n", `1: database: "mysql://x" is not an address of PostgreSQL; write it as in ` +
			`postgres://daycared@db.example.org/daycared, or leave it empty for SQLite in data_dir`},
		{"a password", "database: postgres://a:hush@h/x\n", `1: database: a password does not belong here; write it to the password file ` +
			`of libpq, ~/.pgpass or the one that ?passfile=/etc/daycared/pgpass names, or let PostgreSQL know the account by a certificate`},
		{"a password among the options", "database: postgres://h/x?password=hush\n", `1: database: a password does not belong here; ` +
			`write it to the password file of libpq, ~/.pgpass or the one that ?passfile=/etc/daycared/pgpass names, or let PostgreSQL know ` +
			`the account by a certificate`},
		{"a dialog that decides more", "connectors: {editor: {permissions: true}}\n",
			`1: unknown key "connectors.editor.permissions"; there are enabled`},
		{"a dialog of people's", "people: [{name: fay, via: [editor]}]\n",
			`1: people.via: unknown channel "editor"; there are ` + strings.Join(channels, ", ")},
		{"a phone that waits too long", "people:\n- {name: fay, phone_after: 6m}\n", `2: people.phone_after: "6m" is too long; write 5m or less`},
		{"a phone that waits before", "people:\n- {name: fay, phone_after: -1s}\n",
			`2: people.phone_after: "-1s" is not a time to wait; write 0s or more`},
		{"a phone that waits a while", "people:\n- {name: fay, phone_after: 30}\n",
			`2: people.phone_after: "30" is not a duration; write 30m for minutes or 30s for seconds`},
		{"near a key of a route's part", "people: [{name: fay}]\nroutes: [{ask: [fay], escalate: {afer: 1m}}]\n",
			`2: unknown key "routes.escalate.afer"; did you mean after?`},
		{"twice in a route's part", "people: [{name: fay}, {name: kim}]\nroutes:\n- ask: [fay]\n  escalate:\n" +
			"    after: 1m\n    to: [kim]\n    after: 2m\n",
			`7: routes.escalate.after is here a second time, after line 5; write it once`},
		{"near a later key", "connectors: {telegrm: {}}\n", `1: unknown key "connectors.telegrm"; did you mean telegram?`},
		{"a list as key", "[a]: b\n", "1: a list stands where the name of a key belongs; there are " +
			strings.Join(root.names(), ", ")},

		// Shapes.
		{"text for a section", "log: info\n", `1: log is text, where keys belong; write them as in level: …`},
		{"list for the file", "- log\n", `1: the file is a list, where keys belong; write them as in people: …`},
		{"text for the file", "hello\n", `1: the file is text, where keys belong; write them as in people: …`},
		{"section for a list", "people: {name: fay}\n",
			`1: people is a list, not a section of keys; write a dash before each item, as in - name: fay`},
		{"text for a list", "tools: {auto: read_*}\n", `1: tools.auto is a list, not text; write auto: ["read_*"]`},
		{"section for a plain list", "tools: {auto: {a: b}}\n",
			`1: tools.auto is a list, not a section of keys; write auto: [one, another]`},
		{"nothing for a list", "people:\n",
			`1: people is a list, not nothing; write people: [] for none, or leave the line out`},
		{"text for a route's part", "people: [{name: fay}]\nroutes:\n- ask: [fay]\n  escalate: kim\n",
			`4: routes.escalate is text, where keys belong; write them as in after: …`},
		{"text for a person", "people: [fay]\n", `1: people is text, where keys belong; write them as in name: …`},
		{"list for a value", "log: {level: [info]}\n", `1: log.level is a log level, not a list; write one value`},
		{"section in a list", "tools:\n  auto:\n  - a: b\n",
			`3: tools.auto is a pattern, not a section of keys; write one value`},
		{"nothing for a value", "log:\n  level:\n",
			`2: log.level has no value; write a log level, or leave the line out`},

		// Values.
		{"unquoted number", "people:\n  - name: fay\n    whatsapp: +4915112345678\n",
			`3: people.whatsapp: YAML reads +4915112345678 as a number; write it in quotes: whatsapp: "+4915112345678"`},
		{"unquoted without plus", "people: [{name: fay, whatsapp: 004915112345678}]\n",
			`1: people.whatsapp: YAML reads 004915112345678 as a number; write it in quotes: whatsapp: "+4915112345678"`},
		{"number with spaces", "people: [{name: fay, whatsapp: +49 (151) 123-45678}]\n",
			`1: people.whatsapp: "+49 (151) 123-45678" is not how an international number is written; write "+4915112345678"`},
		{"a national number for the account", "connectors: {whatsapp: {phone: '0151/1'}}\n",
			`1: connectors.whatsapp.phone: "0151/1" is not an international number; begin with + and the country code, as in "+447700900123"`},
		{"national number", "people: [{name: fay, whatsapp: '0151/1'}]\n",
			`1: people.whatsapp: "0151/1" is not an international number; begin with + and the country code, as in "+447700900123"`},
		{"A2/username", "people:\n  - name: fay\n    telegram: \"@fay\"\n",
			`3: people.telegram: "@fay" is a username, which can change hands; write the numeric id, as in telegram: 123456789`},
		{"A2/unquoted username", "people:\n  - name: fay\n    telegram: @fay\n",
			`3: people.telegram: "@fay" is a username, which can change hands; write the numeric id, as in telegram: 123456789`},
		{"A2/phone number for an id", "people: [{name: fay, telegram: +491511}]\n",
			`1: people.telegram: "+491511" looks like a phone number; write the numeric id, as in telegram: 123456789`},
		{"A2/a group's id", "people: [{name: fay, telegram: -100123}]\n",
			`1: people.telegram: "-100123" is the id of a group; write that of a person, which is positive`},
		{"A2/no id", "people: [{name: fay, telegram: 0}]\n",
			`1: people.telegram: "0" is nobody's id; write the numeric id, as in telegram: 123456789`},
		{"A2/quoted id", "people: [{name: fay, telegram: '123'}]\n",
			`1: people.telegram is a numeric id, not text; write it without quotes: telegram: 123`},
		{"leading zero", "limits:\n  pending_total: 0123\n",
			`2: limits.pending_total: "0123" begins with 0, which YAML reads as octal; write 123`},
		{"underscores", "limits: {pending_total: 1_000}\n",
			`1: limits.pending_total: "1_000" is not a whole number; write digits only, as in 20`},
		{"a fraction", "limits: {pending_total: 1.5}\n",
			`1: limits.pending_total: "1.5" is not a whole number; write digits only, as in 20`},
		{"none", "limits: {pending_total: 0}\n", `1: limits.pending_total: "0" is not enough; write 1 or more`},
		{"negative", "limits: {pending_total: -3}\n", `1: limits.pending_total: "-3" is not enough; write 1 or more`},
		{"too much", "limits: {pending_total: 2000000000}\n",
			`1: limits.pending_total: "2000000000" is too much; write 1000000000 or less`},
		{"far too much", "limits: {pending_total: 99999999999999999999}\n",
			`1: limits.pending_total: "99999999999999999999" is too large; write a smaller number`},
		{"a number for rates", "limits: {auto_per_minute: 100}\n", `1: limits.auto_per_minute has a number for each tool, ` +
			`and is not a number; write auto_per_minute: {"*": 100}, or {} for none`},
		{"no rates", "limits:\n  auto_per_minute:\n", `2: limits.auto_per_minute has a number for each tool, ` +
			`and is not nothing; write auto_per_minute: {read_file: 10}, or {} for none`},
		{"a list of rates", "limits: {auto_per_minute: [read_file]}\n", `1: limits.auto_per_minute has a number for each tool, ` +
			`and is not a list; write auto_per_minute: {read_file: 10}, or {} for none`},
		{"a rate of none", "limits:\n  auto_per_minute:\n    read_file: 0\n    mcp__*: '5'\n    list_files:\n    [a]: 1\n",
			"3: limits.auto_per_minute.read_file: \"0\" is not enough; write 1 or more\n" +
				"4: limits.auto_per_minute.mcp__* is a number, not text; write it without quotes: \"mcp__*\": 5\n" +
				"5: limits.auto_per_minute.list_files has no value; write a number, or leave the line out\n" +
				"6: limits.auto_per_minute is a pattern, not a list; write one value"},
		{"a rate of no pattern", "limits: {auto_per_minute: {'[a': 1, '': 2, 12: 3, a: {b: 1}}}\n",
			"1: limits.auto_per_minute: \"[a\" is not a pattern; * stands for any characters, ? for one, [ab] for one of these\n" +
				"1: limits.auto_per_minute: an empty pattern matches nothing; write \"*\" for all\n" +
				"1: limits.auto_per_minute: YAML reads 12 as a number; write it in quotes: \"12\"\n" +
				"1: limits.auto_per_minute.a is a number, not a section of keys; write one value"},
		{"a rate twice", "limits:\n  auto_per_minute:\n    Read: 2\n    \"Read\": 3\n",
			`4: limits.auto_per_minute: "Read" is here a second time, after line 3; write it once`},
		{"a rate of all without quotes", "limits:\n  auto_per_minute:\n    *: 2\n",
			`3: what begins with * has to be quoted; write it as "*"`},
		{"a rate repeated", "limits: {auto_per_minute: {a: &n 1, &m b: 1, c: *n}}\n",
			"1: &n marks this for repetition, which is not done here; write it without\n" +
				"1: &m marks this for repetition, which is not done here; write it without\n" +
				"1: *n repeats what &n marked, which is not done here; write it out, or in quotes"},
		{"bad duration", "approvals:\n  timeout: 15 minutes\n",
			`2: approvals.timeout: "15 minutes" is not a duration; write 15m`},
		{"no unit", "approvals: {timeout: 15}\n",
			`1: approvals.timeout: "15" is not a duration; write 15m for minutes or 15s for seconds`},
		{"days", "approvals: {timeout: 2 days}\n", `1: approvals.timeout: "2 days" is not a duration; write 48h`},
		{"hours", "approvals: {timeout: 1 Hour}\n", `1: approvals.timeout: "1 Hour" is not a duration; write 1h`},
		{"seconds", "approvals: {timeout: 90sec}\n", `1: approvals.timeout: "90sec" is not a duration; write 90s`},
		{"unknown unit", "approvals: {timeout: 3 moons}\n",
			`1: approvals.timeout: "3 moons" is not a duration; write 3s, 3m or 3h`},
		{"no duration", "approvals: {timeout: soon}\n",
			`1: approvals.timeout: "soon" is not a duration; write a number and its unit, as in 90s, 15m or 4h`},
		{"too short", "approvals: {timeout: 10ms}\n", `1: approvals.timeout: "10ms" is too short; write 1s or more`},
		{"too long", "approvals: {timeout: 9000h}\n", `1: approvals.timeout: "9000h" is too long; write 8760h or less`},
		{"no language of ours", "people:\n  - {name: fay, language: dee}\n", `2: people.language: unknown language "dee"; did you mean de?`},
		{"bad zone", "people:\n  - {name: fay, timezone: Berlin}\n",
			`2: people.timezone: unknown time zone "Berlin"; did you mean Europe/Berlin?`},
		{"unknown scope", "approvals: {scopes: [once, forever]}\n", `1: approvals.scopes: unknown scope "forever"; ` +
			`use once, session_tool, session, always, rule or a duration such as 15m`},
		{"bad tag", "high_risk:\n  tags:\n    - \"@nework\"\n",
			`3: high_risk.tags: unknown permission "@nework"; did you mean @network?`},
		{"bad path in a tag", "high_risk: {tags: [\"@write:www\"]}\n", `1: high_risk.tags: permission "@write:www": ` +
			`the path is not absolute; write an absolute, clean path, as in "@write:/srv/www"`},
		{"space around a tag", "high_risk: {tags: [\" @network\"]}\n",
			`1: high_risk.tags: " @network" has space around it; write "@network"`},
		{"unquoted tag", "high_risk:\n  tags: [@network]\n",
			`2: what begins with @ has to be quoted; write it as "@network"`},
		{"bad pattern", "tools: {auto: [\"[a\"]}\n",
			`1: tools.auto: "[a" is not a pattern; * stands for any characters, ? for one, [ab] for one of these`},
		{"empty pattern", "tools: {auto: [\"\"]}\n", `1: tools.auto: an empty pattern matches nothing; write "*" for all`},
		{"unquoted pattern", "tools:\n  auto: [*]\n", `2: what begins with * has to be quoted; write it as "*"`},
		{"number for a pattern", "tools: {auto: [12]}\n",
			`1: tools.auto: YAML reads 12 as a number; write it in quotes: "12"`},
		{"bad kind", "routes: [{ask: [fay], kinds: [tols]}]\npeople: [{name: fay}]\n",
			`1: routes.kinds: unknown kind "tols"; did you mean tool?`},
		{"bad level", "log: {level: warning}\n", `1: log.level: unknown log level "warning"; did you mean warn?`},
		{"level in capitals", "log: {level: INFO}\n", `1: log.level: unknown log level "INFO"; did you mean info?`},
		{"bad format", "log: {format: xml}\n", `1: log.format: unknown log format "xml"; write text or json`},
		{"yes", "api: {allow_same_user: yes}\n",
			`1: api.allow_same_user: "yes" is neither true nor false; write true`},
		{"off", "api: {allow_same_user: off}\n",
			`1: api.allow_same_user: "off" is neither true nor false; write false`},
		{"maybe", "api: {allow_same_user: maybe}\n",
			`1: api.allow_same_user: "maybe" is neither true nor false; write true or false`},
		{"quoted truth", "api: {allow_same_user: 'true'}\n",
			`1: api.allow_same_user is true or false, not text; write it without quotes: allow_same_user: true`},
		{"number for a name", "people: [{name: 7}]\n",
			`1: people.name: YAML reads 7 as a number; write it in quotes: name: "7"`},
		{"truth for a name", "people: [{name: true}]\n",
			`1: people.name: YAML reads true as true or false; write it in quotes: name: "true"`},
		{"date for a name", "people: [{name: 2026-11-21}]\n",
			`1: people.name: YAML reads 2026-11-21 as a date; write it in quotes: name: "2026-11-21"`},
		{"space in an account", "api: {agent_group: 'a b'}\n",
			`1: api.agent_group: "a b" is not a name of an account or group; write it as id prints it`},
		{"home path", "data_dir: ~/daycared\n",
			`1: data_dir: "~/daycared" is not expanded here; write the whole path, as in /home/fay/daycared`},
		{"relative path", "data_dir: daycared\n",
			`1: data_dir: "daycared" is not absolute; write the whole path, beginning with /`},
		{"unclean path", "data_dir: /srv//daycared/\n", `1: data_dir: "/srv//daycared/" is not clean; write "/srv/daycared"`},
		{"control in a path", "data_dir: \"/srv\\t\"\n", `1: data_dir: "/srv\t" holds a control character; leave it out`},
		{"long socket", "api: {agent_socket: /" + strings.Repeat("x", 110) + "}\n", `1: api.agent_socket: "/` +
			strings.Repeat("x", 59) + `…" is longer than a socket's path may be; write one of at most 103 bytes`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestBadYAML(t *testing.T) {
	const look = "; look at the indentation, colons, brackets and quotes from here on"
	const plain = ": the file is not plain text in UTF-8; save it as UTF-8, without control characters"
	for _, test := range []struct{ name, text, want string }{
		{"tab", "log:\n\tlevel: info\n", `2: the line is indented with a tab; write spaces`},
		{"tab after spaces", "log:\n  level: info\n  \tformat: json\n", `3: the line is indented with a tab; write spaces`},
		{"indentation", "log:\n  level: info\n    format: json\n",
			`3: this is not YAML: mapping values are not allowed in this context` + look},
		{"dash", "people:\n  - name: fay\n   user: fay\n", `2: this is not YAML: did not find expected '-' indicator` + look},
		{"bracket", "\ntools: {auto: [a, b}\n", `2: this is not YAML: did not find expected ',' or ']'` + look},
		{"first line", "a: b: c\n", `1: this is not YAML: mapping values are not allowed in this context` + look},
		{"quote", "data_dir: \"/srv\n\n", `3: this is not YAML: found unexpected end of stream` + look},
		{"percent", "log:\n  level: %x\n", `2: this is not YAML: found character that cannot start any token` + look},
		{"two documents", "log: {}\n---\nlog: {}\n",
			`2: a second document begins here; write everything into one, without ---`},
		{"error in a second", "log: {}\n---\n\t- x\n", `3: the line is indented with a tab; write spaces`},
		{"broken UTF-8", "log: {}\n# \xff\n", `2` + plain},
		{"UTF-16", "\xff\xfel\x00", `1` + plain},
		{"control character", "log: {}\n\ndata_dir: \x07\n", `3` + plain},
		{"anchor", "log: &x {level: info}\n", `1: &x marks this for repetition, which is not done here; write it without`},
		{"alias", "data_dir: &x /srv\napi: {agent_socket: *x}\n",
			"1: &x marks this for repetition, which is not done here; write it without\n" +
				"2: *x repeats what &x marked, which is not done here; write it out, or in quotes"},
		{"aliases in lists", "data_dir: &x a\ntools: {auto: [*x]}\npeople:\n- *x\n",
			"1: &x marks this for repetition, which is not done here; write it without\n" +
				"2: *x repeats what &x marked, which is not done here; write it out, or in quotes\n" +
				"4: *x repeats what &x marked, which is not done here; write it out, or in quotes"},
		{"unknown anchor", "log: {}\ntools: {auto: [*all]}\n",
			`2: *name repeats what &name marked, which is not done here; write it out, or in quotes`},
		{"merge", "log:\n  <<: {level: info}\n", `2: << merges keys from elsewhere, which is not done here; write them out`},
		{"type", "data_dir: !!str /srv\n", `1: !!str gives a type, which is not done here; write the value without`},
		{"own type", "people: !list []\n", `1: !list gives a type, which is not done here; write the value without`},
		{"type of the file", "!!map\nlog: {}\n", `1: !!map gives a type, which is not done here; write the value without`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestBadTogether(t *testing.T) {
	const people = "people: [{name: fay, user: fay}, {name: sam, user: sam}]\n"
	for _, test := range []struct{ name, text, want string }{
		{"no name", "people:\n  - user: fay\n", `2: people.name: this person has none; write one, as in name: fay`},
		{"no person", "people:\n  -\n", `2: people.name: this person has none; write one, as in name: fay`},
		{"empty name", "people: [{name: ''}]\n",
			`1: people.name: an empty name names nobody; write one, as in fay`},
		{"space around a name", "people: [{name: 'fay '}]\n", `1: people.name: "fay " has space around it; write "fay"`},
		{"unseen in a name", "people: [{name: \"f\u200bay\"}]\n",
			`1: people.name: "f\u200bay" holds characters that cannot be seen; leave them out`},
		{"long name", "people: [{name: " + strings.Repeat("f", 201) + "}]\n", `1: people.name: "` +
			strings.Repeat("f", 60) + `…" is longer than 200 characters; write a shorter one`},
		{"the operator", "people: [{name: Operator}]\n",
			`1: people.name: "Operator" stands for the daemon's own account; write another one`},
		{"same name", "people:\n  - name: fay\n  - name: Fay\n",
			`3: people.name: "fay" is that of the person in line 2 already; no two people may share it`},
		{"same addresses", "people:\n- {name: a, user: x, telegram: 5, whatsapp: '+4915112345678'}\n" +
			"- {name: b, user: x, telegram: 5, whatsapp: '+4915112345678'}\n",
			"3: people.user: \"x\" is that of the person in line 2 already; no two people may share it\n" +
				"3: people.whatsapp: \"+4915112345678\" is that of the person in line 2 already; no two people may share it\n" +
				"3: people.telegram: \"5\" is that of the person in line 2 already; no two people may share it"},
		{"asks nobody", people + "routes:\n  - agents: [\"*\"]\n",
			`3: routes.ask: this route asks nobody; write at least one person, as in ask: [fay]`},
		{"asks an empty list", people + "routes:\n  - agents: [\"*\"]\n    ask: []\n",
			`4: routes.ask: this route asks nobody; write at least one person, as in ask: [fay]`},
		{"asks a stranger", people + "routes:\n  - ask:\n      - fya\n",
			`4: routes.ask: nobody in people is called "fya"; did you mean fay?`},
		{"without people", "routes: [{ask: [fay]}]\n",
			`1: routes.ask: nobody is called "fay", since there are no people; write them under people`},
		{"matches nothing", people + "routes: [{ask: [fay], tags: []}]\n",
			`2: routes.tags: an empty list matches nothing; leave it out to match everything`},
		{"longer than the longest", "approvals:\n  max_timeout: 1h\n  timeout: 2h\n", `3: approvals.timeout: 2h is longer ` +
			`than approvals.max_timeout, which is 1h; write a shorter one, or lengthen the other`},
		{"shorter than the default", "approvals:\n  max_timeout: 10m\n", `2: approvals.timeout: 15m is longer ` +
			`than approvals.max_timeout, which is 10m; write a shorter one, or lengthen the other`},
		{"without once", "approvals: {scopes: [session]}\n",
			`1: approvals.scopes: once is always on offer; write it first, as in [once, 15m]`},
		{"a scope twice", "approvals: {scopes: [once, 15m, 900s]}\n",
			`1: approvals.scopes: 15m is there already; write it once`},
		{"one socket", "api:\n  agent_socket: /run/x\n  admin_socket: /run/x\n", `3: api.admin_socket: agents ask at ` +
			`this path, and who decides must not be found there; write another one`},
		{"a wrong name is told once", "people: [{name: 7}]\nroutes: [{ask: [fay]}]\n",
			`1: people.name: YAML reads 7 as a number; write it in quotes: name: "7"`},
		{"everything at once", "log: {level: loud}\nroutes: [{ask: [fya]}]\npeople: [{name: fay, user: fay}]\n" +
			"approvals: {timeout: 1x}\nlater: 1\n",
			"1: log.level: unknown log level \"loud\"; there are debug, info, warn, error\n" +
				"4: approvals.timeout: \"1x\" is not a duration; write 1s, 1m or 1h\n" +
				"5: unknown key \"later\"; there are " + strings.Join(root.names(), ", ")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	for _, test := range []struct{ name, variable, want string }{
		{"duration", "DAYCARED_APPROVALS_TIMEOUT=15 minutes",
			`DAYCARED_APPROVALS_TIMEOUT: "15 minutes" is not a duration; write 15m`},
		{"level", "DAYCARED_LOG_LEVEL=loud",
			`DAYCARED_LOG_LEVEL: unknown log level "loud"; there are debug, info, warn, error`},
		{"truth", "DAYCARED_API_ALLOW_SAME_USER=1",
			`DAYCARED_API_ALLOW_SAME_USER: "1" is neither true nor false; write true`},
		{"list", "DAYCARED_APPROVALS_SCOPES=once",
			`DAYCARED_APPROVALS_SCOPES: approvals.scopes is a list; write it into the file`},
		{"rates", "DAYCARED_LIMITS_AUTO_PER_MINUTE=600",
			`DAYCARED_LIMITS_AUTO_PER_MINUTE: limits.auto_per_minute has a number for each tool; write them into the file`},
		{"open to others", "DAYCARED_API_LISTEN=:80", `DAYCARED_API_LISTEN: api.listen: others could read the tokens that come ` +
			`to ":80"; write tls_cert_file and tls_key_file, or behind_proxy: true where a proxy does that, or listen at 127.0.0.1`},
		{"days", "DAYCARED_KEEP_REQUESTS=90", `DAYCARED_KEEP_REQUESTS: "90" is not a number of days; write 90d`},
		{"a list of moments", "DAYCARED_APPROVALS_REMIND=50%",
			`DAYCARED_APPROVALS_REMIND: approvals.remind is a list; write it into the file`},
		{"kept for too short", "DAYCARED_KEEP_AUDIT=60d", `DAYCARED_KEEP_AUDIT: keep.requests: 90d is ` +
			`longer than keep.audit, which is 60d; write a shorter one, or lengthen the other`},
		{"together", "DAYCARED_APPROVALS_MAX_TIMEOUT=1m", `DAYCARED_APPROVALS_MAX_TIMEOUT: approvals.timeout: 15m is ` +
			`longer than approvals.max_timeout, which is 1m; write a shorter one, or lengthen the other`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse("", nil, []string{test.variable})
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	_, err := parse("config.yaml", []byte("log: {level: loud}\n"),
		[]string{"DAYCARED_LOG_FORMAT=xml", "DAYCARED_DATA_DIR=x"})
	want := `config.yaml:1: log.level: unknown log level "loud"; there are debug, info, warn, error
DAYCARED_DATA_DIR: "x" is not absolute; write the whole path, beginning with /
DAYCARED_LOG_FORMAT: unknown log format "xml"; write text or json`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestRemediesInventNothing is about what somebody wrote and a remedy could make worse: a number that somebody else has, a
// key that means something else, an example that is taken for the correction.
func TestRemediesInventNothing(t *testing.T) {
	const begin = ` is not an international number; begin with + and the country code, as in "+447700900123"`
	const place = `; name a place, as in Europe/Berlin`
	phone := func(number string) string { return "people: [{name: fay, whatsapp: '" + number + "'}]\n" }
	zone := func(name string) string { return "people: [{name: fay, timezone: " + name + "}]\n" }
	for _, test := range []struct{ name, text, want string }{
		{"no zero and no country", phone("170 12345678"), `1: people.whatsapp: "170 12345678"` + begin},
		{"an American number", phone("(415) 555-2671"), `1: people.whatsapp: "(415) 555-2671"` + begin},
		{"a national number", phone("0151 2345678"), `1: people.whatsapp: "0151 2345678"` + begin},
		{"a national number without space", phone("015112345678"), `1: people.whatsapp: "015112345678"` + begin},
		{"a country alone", phone("+1"), `1: people.whatsapp: "+1"` + begin},
		{"words", phone("+49 151 12345678 (work)"), `1: people.whatsapp: "+49 151 12345678 (work)"` + begin},
		{"two numbers", phone("+4915112345678, +1"), `1: people.whatsapp: "+4915112345678, +1"` + begin},
		{"a number without a plus or quotes", "people: [{name: fay, whatsapp: 17012345678}]\n", `1: people.whatsapp: "17012345678"` + begin},
		{"the account's", "connectors: {whatsapp: {phone: '170 12345678'}}\n", `1: connectors.whatsapp.phone: "170 12345678"` + begin},
		{"a zero for callers at home", phone("+49 (0)151 12345678"),
			`1: people.whatsapp: "+49 (0)151 12345678" is not how an international number is written; write "+4915112345678"`},
		{"two zeros for a plus", phone("0049 151/12345678"),
			`1: people.whatsapp: "0049 151/12345678" is not how an international number is written; write "+4915112345678"`},

		{"a port", "api: {listen: 7801}\n", `1: api.listen: YAML reads 7801 as a number; write it in quotes: listen: "127.0.0.1:7801"`},
		{"a port in quotes", "api: {listen: '7801'}\n",
			`1: api.listen: "7801" is a port alone; write "127.0.0.1:7801" to listen on this machine only`},
		{"no port", "api: {listen: 78010}\n", `1: api.listen: "78010" is not an address to listen at; ` +
			`write an address and a port, as in 127.0.0.1:7801`},
		{"a number for a path", "data_dir: 7\n", `1: data_dir: "7" is not absolute; write the whole path, beginning with /`},

		{"a phone", "people: [{name: fay, phone: '+4915112345678'}]\n", `1: unknown key "people.phone"; did you mean whatsapp?`},
		{"a connector at the top", "telegram: {enabled: true}\n", `1: unknown key "telegram"; it belongs under connectors`},
		{"a key of a route at the top", "quorum: 2\n", `1: unknown key "quorum"; it belongs under routes`},
		{"a key of another section", "api: {auto_version: true}\n", `1: unknown key "api.auto_version"; it belongs under connectors.whatsapp`},
		{"a section in another", "api: {sandbox: on}\n", `1: unknown key "api.sandbox"; it belongs at the top of the file`},
		{"a key that two sections have", "enabled: true\n", `1: unknown key "enabled"; there are ` + strings.Join(root.names(), ", ")},

		{"a zone in small letters", zone("europe/berlin"), `1: people.timezone: unknown time zone "europe/berlin"; did you mean Europe/Berlin?`},
		{"a place alone", zone("new york"), `1: people.timezone: unknown time zone "new york"; did you mean America/New_York?`},
		{"an abbreviation", zone("CEST"), `1: people.timezone: unknown time zone "CEST"` + place},
		{"an offset", zone("UTC+2"), `1: people.timezone: unknown time zone "UTC+2"` + place},
		{"a slip", zone("Europe/Berln"), `1: people.timezone: unknown time zone "Europe/Berln"` + place},
		{"without summer", zone("EST"), `1: people.timezone: "EST" has no summer time; name a place instead, as in America/New_York`},
		{"the machine's", zone("Local"), `1: people.timezone: "Local" is the machine's own zone, which holds anyway; ` +
			`leave it out, or name a place, as in Europe/Berlin`},

		{"a route without a dash", "people: [{name: fay, user: fay}]\nroutes: {ask: [fay, sam]}\n",
			`2: routes is a list, not a section of keys; write a dash before each item, as in - ask: [fay, sam]`},
		{"a name for routes", "routes: fay\n", `1: routes is a list, not text; write a dash before each item, as in - ask: [fay]`},
		{"a name for people", "people: fay\n", `1: people is a list, not text; write a dash before each item, as in - name: fay`},
		{"no time of the day", "people: [{name: fay, quiet: '25:00-07:00'}]\n", `1: people.quiet: "25:00-07:00" is no span of hours, ` +
			`since "25:00" is no time of the day; write it as in "22:00-07:00"`},
		{"what only follows", "keep: {requests: 1d}\n", `1: keep.requests: 1d is too short, ` +
			`since a chat may deliver an answer again for days; write 8d or more`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if !IsZone("UTC") || !IsZone("Europe/Berlin") || IsZone("EST") || IsZone("") {
		t.Error("a zone is taken for none, or something else for one")
	}
}
