package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestTheTextsOfAServersToolMeetTheRulesForFilesAndHosts: whatever its members are called.
func TestTheTextsOfAServersToolMeetTheRulesForFilesAndHosts(t *testing.T) {
	texts := func(n int, one string) string {
		return `{"rows":["` + strings.TrimSuffix(strings.Repeat(one+`","`, n), `","`) + `"]}`
	}
	folders := func(n int) string {
		text := `{"dirs":["d0"`
		for i := range n - 1 {
			text += fmt.Sprintf(`,"d%d"`, i+1)
		}
		return text + "]}"
	}
	const address = `{"url":"https://user@good.example/"}`
	for _, c := range []struct {
		deny, ask              string
		allowed, denied, asked []string
	}{
		{
			deny: "read ./secrets/**; write ./prot/**; read **/.env",
			allowed: []string{
				`{"path":"src/a.go"}`, `{"out":"src/a.go"}`, `{"repo":"daycared/daycared","n":7}`, `{"state":"open"}`,
				`{"name":"x.go","cwd":"src/x.d"}`, `{"uri":"https://good.example/secrets/x"}`, `{}`, `{"text":"secrets are kept\nelsewhere"}`,
				`{"text":"see https://x.example/.env for more"}`, `{"text":"my.env and .envy"}`, texts(maxTexts-1, "a.go"),
			},
			denied: []string{
				`{"path":"secrets/x"}`, `{"uri":"file://` + shop + `/secr%65ts/x"}`, `{"uri":"file://` + shop + `/a/%2e%2e/secrets/x"}`,
				`{"uri":"file:` + shop + `/secrets/x"}`,
			},
			asked: []string{
				`{"dir":"secrets"}`, `{"input_path":"secrets/x"}`, `{"output":"prot/x"}`, `{"x":["secrets/x"]}`, `{"x":{"secrets/x":1}}`,
				`{"cwd":"secrets","name":"x"}`, `{"path":"a","out":"../secrets/x"}`, `{"glob":"s*/x"}`, `{"glob":"**"}`, `{"path":"."}`,
				`{"path":"` + shop + `"}`, `{"where":"` + shop + `"}`, `{"where":".."}`, `{"args":"{\"p\":\"secrets/x\"}"}`, `{"path":"src"}`,
				`{"text":"do not read secrets/x"}`, `{"text":"a\nsecrets/x"}`, `{"q":"cat secrets/y."}`, `{"p":"--file=secrets/y"}`,
				`{"p":"@secrets/y"}`, `{"sql":"select readfile('secrets/y')"}`, `{"list":"a\nsrc/.env"}`, `{"patch":"*** Update File: prot/y\n+x"}`,
				`{"q":"open file://` + shop + `/s%65crets/y"}`, `{"code":"open(\"` + shop + `/secrets/y\")"}`, `{"p":"git show HEAD:secrets/y"}`,
				`{"text":"see file://` + shop + `/secrets/x there"}`,
				`{"body":"` + strings.Repeat("word ", 50_000) + `secrets/x"}`, `{"in_dir":"my secrets/../secrets/x"}`,
				texts(maxTexts+1, "a.go"), `{"args":"{ \"p\":\"s\\u0065crets/x\"}"}`, `{"cwd":".d","name":"a"}`,
				`{"p":"secrets\\` + strings.Repeat("x", longestName-len("secrets/")) + `"}`,
			},
		},
		{
			deny: "read " + shop + "/k/**; read ./docs/b",
			allowed: []string{
				`{"code":"open('K.md')"}`, folders(maxFolders - 1), `{"text":"` + strings.Repeat("b ", maxItems-2) + `"}`,
			},
			asked: []string{
				`{"code":"open('k/y')"}`, folders(maxFolders), `{"text":"` + strings.Repeat("b ", maxItems-1) + `"}`,
			},
		},
		{
			deny: "fetch evil.example; fetch *.bad.example; fetch 10.1.2.3",
			allowed: []string{
				`{"url":"https://good.example/"}`, `{"host":"good.example"}`, `{"path":"secrets/x"}`, `{"uri":"file:///etc/passwd"}`,
				`{"text":"see https://good.example/, not notevil.example, evil.example.org or www.evil.example"}`, `{"text":"of bad.example"}`,
				`{"code":"fetch('https://' + host); fetch(\"https://${host}/x\")"}`, `{"text":"version 127.1, http://10.0.0.1:8080/x"}`,
				`{"ip":"::ffff:a01:204","n":167838212}`, `{"url":"/issues/7"}`,
			},
			denied: []string{`{"url":"https://evil.example/"}`, `{"x":["http://a.bad.example:80/x"]}`},
			asked: []string{
				`{"host":"evil.example"}`, `{"server":"EVIL.example"}`, address, `{"text":"see https://evil.example/"}`, `{"target":"evil.example"}`,
				`{"ip":"evil.example."}`, `{"p":"git@evil.example:a/b"}`, `{"url":" https://evil.example"}`, `{"url":"<https://evil.example>"}`,
				`{"url":"//evil.example/x"}`, `{"url":"https://ok.org\nhttps://evil.example"}`, `{"code":"await page.goto('https://x.bad.example/')"}`,
				`{"args":["--url=https://evil.example/x"]}`, `{"markdown":"[x](https://evil.example/x)"}`, `{"url":"https:evil.example"}`,
				`{"url":"https:\\evil.example"}`, `{"url":"https://ev\til.example"}`, `{"url":"https://evil\u00ad.example"}`,
				`{"url":"https://evil\u200b.example/"}`, `{"p":"ｅｖｉｌ。example"}`, `{"url":"view-source:https://evil.example"}`,
				`{"url":"http://127.1/"}`, `{"p":"get http://0x7f.1:80/ now"}`, `{"p":"get http://2130706433"}`, `{"p":"http://ünsafe.example/"}`,
				`{"host":"127.1"}`, `{"ip":"0xa010203"}`, `{"ip":"::ffff:a01:203"}`, `{"peers":["[::ffff:10.1.2.3]"]}`, `{"n":167838211}`,
				`{"text":"it is x.bad.example now"}`,
			},
		},
		{
			ask: "fetch *.example", allowed: []string{`{"state":"open","path":"a"}`},
			asked: []string{`{"url":"https://good.example/"}`, `{"domain":"a.example"}`},
		},
		{ask: "write ./**", allowed: []string{`{"state":"open"}`, `{"out":"src/a.go"}`}, asked: []string{`{"path":"src/a.go"}`}},
		{allowed: []string{`{"path":"secrets/x"}`, `{"glob":"**"}`, address, texts(maxTexts+1, "a")}},
	} {
		s := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, Rule{Deny: listed(or(c.deny))}, Rule{Ask: listed(or(c.ask))})
		for effect, inputs := range map[Effect][]string{Allow: c.allowed, Deny: c.denied, "": c.asked} {
			for _, input := range inputs {
				v := s.Judge(Call{
					Dialect: "claude-code", Tool: "mcp__fs__x", Input: json.RawMessage(input), Folder: shop, Root: shop, Resolve: links(shop),
				})
				if v.Effect != effect && (effect != "" || v.Effect != Ask) {
					t.Errorf("deny %q, ask %q: %.200s is %q, want %q; %v", c.deny, c.ask, input, v.Effect, effect, v.Reasons)
				}
			}
		}
	}
}

// TestACommandOfAServersToolThatIsNotReadWholeIsAskedAbout: where deny or ask rules are about what commands do.
func TestACommandOfAServersToolThatIsNotReadWholeIsAskedAbout(t *testing.T) {
	files, programs := Rule{Deny: []string{"read ./secrets/**", "write ./prot/**"}}, Rule{Ask: []string{"run rm -r"}}
	for _, c := range []struct {
		rule     Rule
		commands string
		want     Effect
	}{
		{files, "ls src; cat src/a | grep x; grep -r x src; npm test; git log; view", Allow},
		{files, "cat s*/y; cat $x/y; cat $(echo secrets)/y; cd s* && cat y; cat */y; grep -r S .; rg S; find . -name y -exec cat {} +", ""},
		{files, "echo x > pr*/1; python3 -c 'open(chr(97))'; nice rg S; cat < a | sh; cp -r . x; sleep 1 &; if", ""},
		{programs, "ls src; cat src/a; python3 x.py", Allow}, {programs, "/bin/r? -r x; $(echo rm) -r x; sh -c \"$x\"; if; ls *", ""},
		{Rule{Deny: []string{"fetch evil.example"}}, "curl $x", ""}, {Rule{Deny: []string{"tool fs/y"}}, "cat s*/y; if", Allow},
		{Rule{Deny: []string{"run rm"}, Agents: []string{"other"}}, "cat s*/y", Allow},
	} {
		s := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, c.rule)
		for _, command := range listed(c.commands) {
			for _, member := range []string{"command", "script", "cmd"} {
				input, _ := json.Marshal(map[string]string{member: strings.TrimSpace(command)})
				v := s.Judge(Call{Dialect: "claude-code", Tool: "mcp__fs__x", Input: input, Folder: shop, Root: shop, Resolve: links(shop)})
				if v.Effect != c.want || v.Unsure != (c.want == "") {
					t.Errorf("%s is %q, want %q; unsure: %t, %v", input, v.Effect, c.want, v.Unsure, v.Reasons)
				}
			}
		}
	}
}

// TestAFolderAroundWhatARuleIsAboutIsAskedAboutInAnyMember: a server's tool may move or remove it. The workspace itself is in most calls.
func TestAFolderAroundWhatARuleIsAboutIsAskedAboutInAnyMember(t *testing.T) {
	for _, rule := range []string{"read ./a/b/secrets/**", "write ./a/b/prot/x", "write " + shop + "/a/b/*.md"} {
		s := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, Rule{Ask: []string{rule, "write **/.git/**", "write /srv/x/y"}})
		for input, want := range map[string]Effect{
			`{"source":"a","destination":"z"}`: "", `{"old":"./a/b/"}`: "", `{"q":["a/b"]}`: "", `{"where":"/srv/x"}`: "", `{"in":"A"}`: "",
			`{"from":"src/../a"}`: "", `{"source":"b","destination":"z"}`: Allow, `{"q":"ab","n":"src/a"}`: Allow, `{"text":"a folder"}`: Allow,
		} {
			v := s.Judge(Call{
				Dialect: "claude-code", Tool: "mcp__fs__x", Input: json.RawMessage(input), Folder: shop, Root: shop, Resolve: links(shop),
			})
			if v.Effect != want || v.Unsure != (want == "") {
				t.Errorf("%s: %s is %q, want %q; unsure: %t, %v", rule, input, v.Effect, want, v.Unsure, v.Reasons)
			}
		}
	}
	v := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, Rule{Ask: []string{"write ./prot/**"}}).Judge(Call{
		Dialect: "claude-code", Tool: "mcp__fs__x", Input: json.RawMessage(`{"repo":"` + shop + `","x":"."}`), Folder: shop, Root: shop,
		Resolve: links(shop),
	})
	if v.Effect != Allow {
		t.Errorf("the workspace itself: %q, %v", v.Effect, v.Reasons)
	}
}

// TestANameInAnotherFormIsAskedAboutInAnyMember: servers may take a backslash for a slash, read percent signs, and end a name at a NUL or
// before a fragment.
func TestANameInAnotherFormIsAskedAboutInAnyMember(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, Rule{Deny: []string{"read ./docs/secret.env"}})
	for text, want := range map[string]Effect{
		`docs\\secret.env`: "", `.\\docs\\secret.env`: "", "docs%2Fsecret.env": "", "docs%2fsecret%2Eenv": "", "docs%5Csecret.env": "",
		`docs/secret.env\u0000.md`: "", "docs/secret.env#L1": "", "docs/secret.env?x": "",
		`docs\\other.env`: Allow, "docs%2Fother": Allow, "100%": Allow, `\\d+`: Allow, "#L1": Allow,
	} {
		v := s.Judge(Call{
			Dialect: "claude-code", Tool: "mcp__fs__x", Input: json.RawMessage(`{"p":"` + text + `"}`), Folder: shop, Root: shop,
			Resolve: links(shop),
		})
		if v.Effect != want {
			t.Errorf("%s is %q, want %q; %v", text, v.Effect, want, v.Reasons)
		}
	}
}

// TestEachCommandInTheInputOfAServersToolIsRead: of a list, and in the members that only a tool which is like a shell has for commands.
func TestEachCommandInTheInputOfAServersToolIsRead(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"tool a_x/*", "tool a_sh/*", "tool python_sh/*"}},
		Rule{Deny: []string{"read ./secrets/**", "run make"}})
	many := func(n int) string { return `{"commands":["ls` + strings.Repeat(`","ls`, n-1) + `"]}` } // read together, too
	for _, c := range []struct {
		tool, inputs string
		want         Effect
	}{
		{"a_x", `{"commands":["cat secrets/y"]}; {"commands":["ls src","cat secrets/y"]}; {"commands":["ls","make"]}; {"cmd":["ls","make all"]};
			{"command":"cat","args":["-n","secrets/y"]}; {"program":"make","arguments":["x"]}; {"command":"sh","args":"-c 'make'"}`, Deny},
		{"a_x", `{"commands":["ls","cat s*/y"]}; {"cmd":["ls src","cat s*/y"]}; {"program":"cat","args":"-n s*/y"}; ` + many(maxCommands), ""},
		{"a_x", many(maxCommands - 1), Allow},
		{"a_x", `{"commands":["ls src","cat a"]}; {"argv":["cat","src/my file"]}; {"cmd":["git","commit","-m","a (b)"]}; {"cmd":["ls","make"]};
			{"code":"make"}; {"exec":"cat s*/y z"}; {"args":["make"]}`, Allow},
		{"a_sh", `{"exec":"make"}; {"code":"cat secrets/y"}; {"args":["cat","secrets/y"]}; {"exec":["make","x"]}; {"input":"make\n"};
			{"exec":["ls","make x"]}; {"args":"make"}`, Deny},
		{"a_sh", `{"code":"cat s*/y z"}; {"shell":"cat $x"}; {"stdin":"cat s*/y z"}; {"args":"cat s*/y z"}`, ""},
		{"a_sh", `{"code":"ls src"}; {"exec":["frob","make"]}; {"command":"frob","args":["make"]}; {"shell":"bash","cmd":"ls"}`, Allow},
		{"python_sh", `{"code":"print(s * 2)"}`, Allow},
	} {
		for _, input := range listed(c.inputs) {
			v := s.Judge(Call{
				Dialect: "claude-code", Tool: "mcp__" + c.tool + "__go", Input: json.RawMessage(strings.TrimSpace(input)), Folder: shop, Root: shop,
				Resolve: links(shop),
			})
			if v.Effect != c.want || v.Unsure != (c.want == "") && c.want != Deny {
				t.Errorf("%s %.200s is %q, want %q; unsure: %t, %v", c.tool, input, v.Effect, c.want, v.Unsure, v.Reasons)
			}
		}
	}
}

// TestANameThatLeadsThroughALinkIsAskedAboutInAnyMember: a hook tells of the links that stand in a call, not of each name in it.
func TestANameThatLeadsThroughALinkIsAskedAboutInAnyMember(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"tool fs/*"}}, Rule{Deny: []string{"read ./secrets/**"}})
	leads := permissions.Leads{Names: map[string]string{
		shop: shop, shop + "/docs/lk": shop + "/secrets", shop + "/here": shop, shop + "/src/up": shop, shop + "/dd": shop + "/docs",
	}}
	for input, want := range map[string]Effect{
		`{"relative_path":"docs/lk/y"}`: "", `{"items":[{"n":"docs/lk/y"}]}`: "", `{"edits":{"docs/lk/y":1}}`: "",
		`{"dir":"docs","f":"lk/y"}`: "", `{"text":"see docs/lk/y."}`: "", `{"code":"open('docs/lk/y')"}`: "",
		`{"text":"see lk and docs/lkx/y"}`: Allow, `{"edits":{"file://` + shop + `/docs/lk/y":1}}`: "", `{"target":"docs/lkx/y"}`: Allow,
		`{"relative_path":"here/docs/lk/y"}`: "", `{"p":"dd/lk/y"}`: "", `{"p":"here/here/dd/lk"}`: "", `{"text":"see src/up/secrets/y now"}`: "",
		`{"target":"here"}`: "", `{"target":"src/up"}`: "", `{"target":"dd"}`: Allow, `{"p":"here/src/x"}`: Allow,
	} {
		v := s.Judge(Call{
			Dialect: "claude-code", Tool: "mcp__fs__x", Input: json.RawMessage(input), Folder: shop, Root: shop,
			Resolve: leads.Resolve, Leads: leads,
		})
		if v.Effect != want || v.Unsure != (want == "") {
			t.Errorf("%s is %q, want %q; unsure: %t, %v", input, v.Effect, want, v.Unsure, v.Reasons)
		}
	}
}

// TestAnAddressThatCannotBeReadIsUnsure where a rule is about hosts: people are asked also about a tool that is left unasked otherwise. An
// address in a text is reached by a tool that fetches.
func TestAnAddressThatCannotBeReadIsUnsure(t *testing.T) {
	hosts, files := rulesOf(t, Rule{Deny: []string{"fetch evil.example"}}), rulesOf(t, Rule{Deny: []string{"read ./secrets/**"}})
	for _, c := range []struct {
		dialect, tool, input string
		effect               Effect
		unsure               bool
	}{
		{"claude-code", "WebFetch", `{"url":"https:evil.example","prompt":"x"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"http://2130706433/","prompt":"x"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/","prompt":"x"}`, "", false},
		{"claude-code", "WebFetch", `{"url":"https://good.example/","prompt":"then see https://evil.example/x"}`, Deny, false},
		{"claude-code", "WebFetch", `{"url":"https://good.example/?u=https://evil.example/x","prompt":"x"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/?u=https%3A%2F%2Fevil.example%2Fx","prompt":"x"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/?u=https%253A%252F%252Fevil.example","prompt":"x"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/","prompt":"then see https%3A%2F%2Fevil.example%2Fx"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/%65vil.example","prompt":"x"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/?u=a%20b%2Fc&x=100%","prompt":"x"}`, "", false},
		{"vscode", "mcp_s_x", `{"q":"https%3A%2F%2Fevil.example%2Fx"}`, Deny, false},
		{"claude-code", "Bash", `{"command":"curl 'https://good.example/?u=evil%2Eexample'"}`, "", true},
		{"claude-code", "WebFetch", `{"url":"https://good.example/","prompt":"what is version 1.2 of it?"}`, "", false},
		{"opencode", "webfetch", `{"url":"http://127。0。0。1/"}`, "", true},
		{"gemini", "web_fetch", `{"prompt":"compare https://good.example/a with https://evil.example/b, please"}`, Deny, false},
		{"gemini", "web_fetch", `{"prompt":"read https://good.example/a"}`, "", false},
		{"gemini", "web_fetch", `{"prompt":"read https://user@evil.example/a"}`, "", true},
		{"gemini", "mcp_s_x", `{"list":"` + strings.Repeat("https://good.example/ ", maxTexts) + `"}`, "", false},
		{"gemini", "mcp_s_x", `{"list":"` + strings.Repeat("https://good.example/ ", maxTexts+1) + `"}`, "", true},
		{"vscode", "fetch_webpage", `{"urls":["https://evil.example/"],"query":"x"}`, Deny, false},
		{"claude-code", "Bash", `{"command":"curl https:evil.example"}`, "", true},
		{"claude-code", "Bash", `{"command":"curl file:///etc/hosts"}`, "", false},
	} {
		call := Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop, Resolve: links(shop)}
		if v := hosts.Judge(call); v.Effect != c.effect || v.Unsure != c.unsure && c.effect != Deny {
			t.Errorf("%s %.200s is %q, unsure: %t; want %q, %t", c.tool, c.input, v.Effect, v.Unsure, c.effect, c.unsure)
		}
		if v := files.Judge(call); v.Effect != "" || v.Unsure {
			t.Errorf("%s %.200s is %q, unsure: %t, where rules are about files", c.tool, c.input, v.Effect, v.Unsure)
		}
	}
}

// TestEachWordOfACommandMayBeAHostThatIsDenied: programs take hosts with and without a scheme.
func TestEachWordOfACommandMayBeAHostThatIsDenied(t *testing.T) {
	s := rulesOf(t, Rule{Allow: listed("run frob ...; run git push ...; run echo ...; run grep *")},
		Rule{Deny: listed("fetch evil.example; fetch *.bad.example:81; fetch 10.1.2.3")})
	for command, want := range map[string]Effect{
		"frob evil.example": Deny, "frob a.txt evil.example:": Deny, "frob u@evil.example:x": Deny, "frob evil.example/x:1": Deny,
		"frob evil.example:443": Deny, "frob EVIL.example": Deny, "frob --host=evil.example": Deny, "frob @evil.example": Deny,
		"frob a.bad.example:81": Deny, "sudo frob evil.example": Deny, "git push evil.example:x main": Deny,
		"frob a.bad.example": Allow, "frob evil.example.org": Allow, "frob notevil.example": Allow, "echo evil.example": Allow,
		"grep evil.example": Allow, "frob src/evil.example": "", "frob --x=https://evil.example/y": Deny, "frob --x=https:evil.example": "",
		"frob x,https://evil.example/y": Deny, `frob '{"url":"https://evil.example"}'`: "", `frob '\\evil.example\x'`: Deny,
		"frob evil.example%lo": Deny, "frob 10.1.2.3": Deny, "frob 167838211": Deny, "frob 0x0a010203/x": Deny, "frob 012.1.2.3": Deny,
		"frob 10.66051:80": Deny, "frob 167838212": Allow, "frob 1.2.3.4.5": Allow, "frob 20": Allow, "frob https://10.1.515/": "",
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q is %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}

// TestAFileThatIsJoinedToAWordOfACommandIsDenied, as in SOURCE:TARGET and NAME@FILE. In code it may be something else, and is asked about.
func TestAFileThatIsJoinedToAWordOfACommandIsDenied(t *testing.T) {
	s := rulesOf(t, Rule{Allow: listed("run frob ...; run git commit -m *; run echo ...; fetch x.example")},
		Rule{Deny: listed("read ./secrets/**; read **/.env; read " + shop + "/k/**")})
	for command, want := range map[string]Effect{
		"frob x@k/y": Deny, `frob 'open("k/y")'`: "", "frob x@k.md": Allow,
		"frob ./secrets:/x": Deny, "frob " + shop + "/secrets/y:/x": Deny, "frob --mount type=bind,src=" + shop + "/secrets/y,dst=/x": Deny,
		"frob x@secrets/y": Deny, "frob x=@secrets/y": Deny, "frob file:secrets/y": Deny, "frob concat:secrets/y": Deny, "frob a,src/.env": Deny,
		"frob --file=file://" + shop + "/secrets/y": Deny, `frob '{"path":"secrets/y"}'`: "", `frob 'open(".env")'`: "",
		"frob src/a.go:/x": Allow, "frob https://x.example/.env": Allow, "frob /a:secrets": "", "frob ./x:src/my-env": Allow,
		`git commit -m "see secrets/y: it is denied"`: Allow, "echo x@secrets/y": Allow,
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q is %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}

// TestWhatAnAgentDoesBesideItsWordsIsJudged: files that it reads for @NAME, and the command that it makes of another.
func TestWhatAnAgentDoesBesideItsWordsIsJudged(t *testing.T) {
	s := rulesOf(t, Rule{Allow: listed("run ls ...; run echo ...; run touch ...")},
		Rule{Deny: listed("read ./secrets/**; read **/.ssh/**; run rm")})
	for _, c := range []struct {
		dialect, tool, input string
		want                 Effect
	}{
		{"opencode", "task", `{"prompt":"look at @secrets/y"}`, Deny}, {"opencode", "task", `{"prompt":"look at @~/.ssh/id_rsa"}`, Deny},
		{"opencode", "task", `{"prompt":"look at @src/a.go"}`, ""}, {"claude-code", "Skill", `{"skill":"x","args":"@secrets/y"}`, Deny},
		{"claude-code", "Skill", `{"skill":"x","hook.mentions":["secrets/y"]}`, Deny},
		{"gemini", "run_shell_command", `{"command":"sh -c 'ls' && echo 'x;touch y;'"}`, ""},
		{"gemini", "run_shell_command", `{"command":"sh -c 'ls'; echo '; rm -rf victim; echo '"}`, Deny},
		{"gemini", "run_shell_command", `{"command":"sh -c 'ls; echo x'"}`, Allow},
	} {
		v := s.Judge(Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop, Resolve: links(shop)})
		if v.Effect != c.want {
			t.Errorf("%s %s is %q, want %q; %v", c.tool, c.input, v.Effect, c.want, v.Reasons)
		}
	}
}
