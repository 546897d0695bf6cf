package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func commandCall(command string) Call {
	return Call{Agent: "coder", Command: command, Folder: shop, Root: shop, Resolve: links(shop)}
}

func editCall(name string) Call {
	input := json.RawMessage(fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, name))
	return Call{Agent: "coder", Dialect: "claude-code", Tool: "Edit", Input: input, Folder: shop, Root: shop, Resolve: links(shop)}
}

func allowedCalls(commands ...string) (past []PastCall) {
	for _, command := range commands {
		past = append(past, PastCall{Call: commandCall(command), Allowed: true})
	}
	return past
}

// What is proposed is the narrowest pattern that is worth a rule.
func TestProposalIsAsNarrowAsUseful(t *testing.T) {
	for _, c := range []struct {
		command string
		past    []string
		want    []string
	}{
		{"git push origin main", nil, []string{"run git push origin main"}},
		{"git push origin main", []string{"git push origin main", "git push origin fix-1", "git push fork main"},
			[]string{"run git push origin *"}},
		{"git push origin main", []string{"git push origin main", "git push origin main", "git push origin main", "git push origin x"},
			[]string{"run git push origin main"}},
		{"go test -race ./...", []string{"go test ./...", "go test ./...", "go test -race ./..."}, []string{"run go test [-race] ./..."}},
		{"go test ./...", []string{"go test ./...", "go test ./...", "CI=1 go test -race ./...", "go test -race ./... $a"},
			[]string{"run go test ./..."}},
		{"go test -exec x ./...", []string{"go test ./...", "go test ./..."}, []string{"run go test -exec x ./..."}},
		{"cd " + shop + " && npm run lint && npm run build", nil, []string{"run npm run lint", "run npm run build"}},
		{"head -n 5 a", []string{"head -n 5 b", "head c"}, []string{"run head [-n *] *"}},
		{"git show a", []string{"git switch b", "git switch c"}, []string{"run git show a"}},
		{"curl -s https://api.example.org/x", []string{"curl https://api.example.org/y", "curl https://api.example.org/z"},
			[]string{"run curl [-s] *", "fetch api.example.org"}},
		{"python3 tools/gen.py", []string{"python3 tools/a.py", "python3 tools/b.py"}, []string{"run python3 tools/gen.py"}},
		{"./tools/x a", []string{"./tools/x b", "./tools/x c"}, []string{"run ./tools/x a"}},
		{"git checkout main", []string{"git checkout a.go", "git checkout b.go"}, []string{"run git checkout main"}},
		{"git add a.go", []string{"git add b.go", "git add b.go c.go", "git add -A"}, []string{"run git add [-A] ..."}},
		{"mytool show a", []string{"mytool drop b", "mytool drop c"}, []string{"run mytool show a"}},
		{"sort -o out.txt in.txt", []string{"sort -o b.txt in.txt", "sort -o c.txt in.txt"}, []string{"run sort -o out.txt in.txt"}},
		{"git commit -m 'a b'", []string{"git commit -m c", "git commit -m d"}, []string{"run git commit [-m *]"}},
		{"grep -n 'a|b' x | head -5", []string{"head -20 y"}, []string{"run grep -n 'a|b' x", "run head -5"}},
		{"git push origin main", []string{"git push origin main", "git push origin main", "git push origin a", "git push origin b"},
			[]string{"run git push origin main"}},
		{"git commit -a -m x", []string{"git commit -m x", "git commit -m x", "git commit -a -m x"}, []string{"run git commit [-a] [-m *]"}},
		{"git commit -m", []string{"git commit -m x"}, []string{"run git commit -m"}},
		{"mytool +x", nil, []string{"run mytool +x"}},
		{"mytool show -x -y a", []string{"mytool show -x -y b", "mytool show -x -y c"}, []string{"run mytool show -x -y a"}},
		{"mytool run a", []string{"mytool run b", "mytool run c"}, []string{"run mytool run a"}},
		{"touch a b", []string{"touch c d", "touch e f", "touch e"},
			[]string{"run touch * *", "write " + shop + "/a", "write " + shop + "/b"}},
		{"head a -n", nil, []string{"run head a -n"}},
		{"tail a -n 3", []string{"tail a", "tail a", "tail a -n -x"}, []string{"run tail [-n *] a"}},
		{"go test -race ./...", []string{"go test ./...", "go test ./...", "go test -v -vet=off ./..."}, []string{"run go test [-race] ./..."}},
		{"wget https://api.example.org/x", []string{"wget https://api.example.org/y", "wget https://api.example.org/z"},
			[]string{"run wget *", "fetch api.example.org", "write /home/kim/shop/x"}},
		{"mytool show https://a.example/x", []string{"mytool show https://a.example/y", "mytool show https://a.example/z"},
			[]string{"run mytool show https://a.example/x", "fetch a.example"}},
		{"go vet ./a && go vet ./b && go vet ./c && go vet ./d && go vet ./e", nil,
			[]string{"run go vet ./a", "run go vet ./b", "run go vet ./c", "run go vet ./d", "run go vet ./e"}},
	} {
		p, why := (*Set)(nil).Propose(commandCall(c.command), allowedCalls(c.past...))
		if !slices.Equal(p.Allow, c.want) {
			t.Errorf("%s: %q, want %q; %s", c.command, p.Allow, c.want, why)
		}
		if len(p.Descriptions) != len(p.Allow) || p.In != shop {
			t.Errorf("%s: says %q, in %q", c.command, p.Descriptions, p.In)
		}
	}
}

// What a proposal says is in the language of whoever reads it, and the rule is the same.
func TestAProposalIsSaidInGerman(t *testing.T) {
	past := allowedCalls("git push origin a", "git push origin b")
	for command, want := range map[string]string{
		"git push origin main": "git push mit je einem beliebigen Wort für *. Nicht: --force, +Zweig, :Zweig, andere Remotes",
		"go vet ./...":         "genau diese Wörter. Es führt den Code dieses Ordners aus, wie er dann ist",
	} {
		c := commandCall(command)
		english, _ := (*Set)(nil).Propose(c, past)
		c.Language = "de"
		p, why := (*Set)(nil).Propose(c, past)
		if !slices.Equal(p.Descriptions, []string{want}) || !slices.Equal(p.Allow, english.Allow) || english.Descriptions[0] == want {
			t.Errorf("%s: %q %q, %s", command, p.Allow, p.Descriptions, why)
		}
	}
}

// Nothing is proposed for what is asked about each time.
func TestNothingIsProposedForWhatIsAskedEachTime(t *testing.T) {
	s := rulesOf(t, Rule{Ask: []string{"run npm publish"}}, Rule{Deny: []string{"run curl"}}, Rule{Allow: []string{"run git status"}})
	for command, want := range map[string]string{
		"git commit -m \"$(cat x)\"": "cannot be read", "ls *": "cannot be read", "a &": "cannot be read",
		"rm -rf src": "high risk", "rm a": "deletes", "git branch -d x": "deletes", "git push origin :x": "high risk", "git rm a": "deletes",
		"docker image rm x": "deletes", "kubectl delete pod x": "high risk",
		"git push --force origin x": "high risk", "git push -uf origin x": "high risk", "cp -f a b": "forced", "git add --force x": "forced",
		"cat .env": "high risk", "sudo ls": "high risk", "echo a > /etc/x": "high risk",
		"python3 -c 'print(1)'": "runs code", "cat a | sh": "high risk", "python3 - <<'E'\nprint(1)\nE": "may run what it reads",
		"env x":                  "runs code",
		"cat a | python3 gen.py": "may run what it reads", "xargs ls": "runs code", "ssh build.example.net ls": "another host",
		"scp a build.example.net:b": "another host", "CI=1 npm test": "variables", "npm publish": "rule 1", "curl x.example": "rule 2",
		"git status": "already", "echo a > Makefile": "later", "echo a > .git/x": "later", "git config --global alias.x y": "",
		"npm uninstall left": "deletes", "go vet ./a; go vet ./b; go vet ./c; go vet ./d; go vet ./e; go vet ./f": "6 rules",
		"find . -delete": "high risk", "cd /srv/other && git status": "no rule",
	} {
		p, why := s.Propose(commandCall(command), nil)
		if want != "" && (len(p.Allow) > 0 || !strings.Contains(why, want)) {
			t.Errorf("%s: %q, %q; want %q", command, p.Allow, why, want)
		}
	}
	for tool, input := range map[string]string{
		"mcp__files__delete_all": `{}`, "mcp__box__exec": `{}`, "mcp__box__do": `{"command":"ls"}`, "Unknown": `{"script":"ls"}`,
		"mcp__meta__get": `{"hook.mcp_server":{"name":"meta (of the project)","source":"project"}}`,
	} {
		c := commandCall("")
		c.Dialect, c.Tool, c.Input = "claude-code", tool, json.RawMessage(input)
		if p, _ := s.Propose(c, nil); len(p.Allow) > 0 {
			t.Errorf("%s: %q", tool, p.Allow)
		}
	}
}

// A file is named by itself until three of its kind were allowed, and what runs later is never covered by a wildcard.
func TestFilesAreProposedByTheirKind(t *testing.T) {
	edits := func(names ...string) (past []PastCall) {
		for _, name := range names {
			past = append(past, PastCall{Call: editCall(shop + "/" + name), Allowed: true})
		}
		return past
	}
	for _, c := range []struct {
		name string
		past []PastCall
		want string
	}{
		{"src/a.go", edits("src/b.go"), "write " + shop + "/src/a.go"},
		{"src/a.go", edits("src/b.go", "src/c.go"), "write " + shop + "/src/**/*.go"},
		{"src/a/a.go", edits("src/b/b.go", "src/c/c.go"), "write " + shop + "/src/**/*.go"},
		{"src/a.go", edits("src/b.ts", "src/c.md"), "write " + shop + "/src/a.go"},
		{"a.go", edits("b.go", "c.go"), "write " + shop + "/a.go"}, {"a.go", nil, "write " + shop + "/a.go"},
		{"src/x/a.go", edits("src/x/b.go", "src/x/c.go"), "write " + shop + "/src/x/**/*.go"},
		{"src/a.py", edits("src/b.py", "src/c.py"), "write " + shop + "/src/a.py"},
		{"src/x/a.json", edits("src/x/b.json", "src/x/c.json"), "write " + shop + "/src/x/a.json"},
	} {
		p, why := (*Set)(nil).Propose(editCall(shop+"/"+c.name), c.past)
		if !slices.Equal(p.Allow, []string{c.want}) {
			t.Errorf("%s: %q, want %q; %s", c.name, p.Allow, c.want, why)
		}
	}
	for _, name := range []string{"Makefile", ".git/hooks/pre-commit", ".claude/settings.json", "package.json", "CLAUDE.md"} {
		if p, _ := (*Set)(nil).Propose(editCall(shop+"/"+name), nil); len(p.Allow) > 0 {
			t.Errorf("%s: %q", name, p.Allow)
		}
	}
}

// Files elsewhere are read by their folder, which is not hidden.
func TestFilesElsewhereAreProposedByTheirFolder(t *testing.T) {
	for _, c := range []struct {
		name string
		past []string
		want string
	}{
		{"/srv/docs/a/x", []string{"cat /srv/docs/a/y", "cat /srv/docs/a/z"}, "read /srv/docs/a/**"},
		{"/srv/docs/a/x", []string{"cat /srv/docs/b/y", "cat /srv/docs/b/z"}, "read /srv/docs/a/x"},
		{"/srv/docs/a/b/x", []string{"cat /srv/docs/a/c/y", "cat /srv/docs/a/c/z"}, "read /srv/docs/a/**"},
		{"/home/kim/.notes/a/x", []string{"cat /home/kim/.notes/a/y", "cat /home/kim/.notes/a/z"}, "read /home/kim/.notes/a/x"},
	} {
		s := rulesOf(t, Rule{Allow: []string{"run cat ..."}})
		if p, why := s.Propose(commandCall("cat "+c.name), allowedCalls(c.past...)); !slices.Equal(p.Allow, []string{c.want}) {
			t.Errorf("%s: %q, want %q; %s", c.name, p.Allow, c.want, why)
		}
	}
}

// A * stands for what is known to be a file, or a name by which the program only reads; of everything else a rule has the exact words.
func TestAStarStandsOnlyForFilesAndForNamesThatAreRead(t *testing.T) {
	for _, c := range []struct {
		command string // of which %s varies
		want    string
	}{
		{"cat %s", "run cat *"}, {"wc -l %s", "run wc -l *"}, {"mkdir -p %s", "run mkdir -p *"}, {"go vet ./%s", "run go vet *"},
		{"git show %s", "run git show *"}, {"git add %s", "run git add *"}, {"git switch %s", "run git switch *"},
		{"which %s", "run which *"}, {"echo %s", "run echo *"}, {"yq .a %s", "run yq .a *"}, {"chmod 600 %s", "run chmod 600 *"},
		{"jq . %s", "run jq . *"}, {"cp %s b", "run cp * b"},
		{"golangci-lint run ./%s", "run golangci-lint run *"}, {"cat -n --frob %s", ""}, {"xxd %s", "run xxd *"},
		{"mytool show %s", ""}, {"mytool %s", ""}, {"tar xf %s", ""}, {"7z x %s", ""}, {"ar x %s", ""}, {"npm view %s", ""},
		{"docker-compose logs %s", ""}, {"hg update %s", ""}, {"svn update %s", ""}, {"date %s", ""}, {"chmod %s a", ""}, {"pip show %s", ""},
		{"git merge %s", ""}, {"git cherry-pick %s", ""}, {"git pull origin %s", ""}, {"git push %s main", ""}, {"docker inspect %s", ""},
		{"daycared grants %s", ""}, {"code %s", ""}, {"zip x.zip %s", ""}, {"tsc %s", ""},
	} {
		of := func(word string) string { return strings.ReplaceAll(c.command, "%s", word) }
		p, why := (*Set)(nil).Propose(commandCall(of("aa")), allowedCalls(of("bb"), of("cc"), of("dd")))
		if want := cmp.Or(c.want, "run "+of("aa")); len(p.Allow) == 0 || p.Allow[0] != want {
			t.Errorf("%s: %q, want %q; %s", c.command, p.Allow, want, why)
		}
		if why := WhyNotGiven(p.Allow); why != "" {
			t.Errorf("%q is proposed, and would not count: %s", p.Allow, why)
		}
		starred := "run " + strings.NewReplacer("./%s", "*", "%s", "*").Replace(c.command)
		if why := WhyNotGiven([]string{"read /srv/x", starred}); (why == "") != (starred == c.want) {
			t.Errorf("%q is given, %q is proposed: %q", starred, c.want, why)
		}
	}
	for text, counts := range map[string]bool{
		"run systemctl stop *": false, "run gh pr merge *": false, "run npm publish *": false, "run frob ...": false, "run git merge *": false,
		"run tar xf *": false, "run git push * main": false, "run chmod * x": false, "run frob *": false, "run cat|tar *": false,
		"run frob x": true, "run cat [-n] ...": true, "run git push origin *": true, "run go test [-run *] ./...": true, "run chmod 644 *": true,
		"run git add [-A] ...": true, "write /srv/code/**/*.go": true, "fetch *.example.org": true,
	} {
		if why := WhyNotGiven([]string{text}); (why == "") != counts {
			t.Errorf("%q: %q", text, why)
		}
	}
}

// Nothing is proposed or suggested for what reaches another host, or acts on the machine or a service.
func TestNothingIsProposedForWhatReachesHostsOrActsOnTheMachine(t *testing.T) {
	for _, head := range []string{
		"systemctl stop", "systemctl start", "systemctl disable", "systemctl mask", "service nginx", "launchctl load", "snap install",
		"apt-get install", "ip link set", "hostnamectl set-hostname", "mount", "virsh start", "vagrant up", "/usr/bin/systemctl stop",
		"gh pr merge", "gh pr view", "gh gist create", "aws s3 ls", "gcloud compute", "az vm start", "kubectl rollout restart",
		"kubectl create ns", "flyctl deploy", "terraform apply", "npm publish", "npm -w x publish", "npm publish --tag x", "cargo publish",
		"docker stop", "docker -H x stop", "docker compose restart", "docker push", "podman stop", "docker-compose stop", "rsync", "ping",
		"createdb", "git send-email",
	} {
		past := onDays("coder", shop, head+" aa", head+" bb", head+" cc", head+" aa", head+" aa")
		if p, why := (*Set)(nil).Propose(commandCall(head+" aa"), past); len(p.Allow) > 0 || why == "" {
			t.Errorf("%s: %q is proposed", head, p.Allow)
		}
		if got := (*Set)(nil).Suggest(past); len(got) > 0 {
			t.Errorf("%s: %q is suggested", head, allowsOf(got))
		}
	}
	for _, command := range []string{"npm test", "npm run build", "docker ps", "docker build .", "cargo test", "git push origin main"} {
		if p, why := (*Set)(nil).Propose(commandCall(command), nil); len(p.Allow) == 0 {
			t.Errorf("%s: nothing is proposed: %s", command, why)
		}
	}
}

// Only of operands that are files does a proposal say that they are in the workspace.
func TestWordsOfAProposalNameTheWorkspaceOnlyForFiles(t *testing.T) {
	for command, says := range map[string]string{
		"which %s":                     "which with any one word for each *. Not: other options",
		"which %s x":                   "which with any one word for each *. Not: other options",
		"echo %s":                      "echo with any one word for each *. Not: other options",
		"git switch -q %s":             "git switch with any one word for each *. Not: other options",
		"git commit -m %s":             "git commit with these words, with or without -m. Not: other options",
		"curl -s https://a.example/%s": "curl with any one word for each *. Not: other options",
	} {
		of := func(word string) string { return strings.ReplaceAll(command, "%s", word) }
		p, why := (*Set)(nil).Propose(commandCall(of("aa")), allowedCalls(of("bb"), of("cc")))
		if len(p.Allow) == 0 || p.Descriptions[0] != says {
			t.Errorf("%s: %q: %q, want %q; %s", command, p.Allow, p.Descriptions, says, why)
		}
	}
	p, why := (*Set)(nil).Propose(commandCall("basename a"), allowedCalls("basename b .go", "basename c .md", "basename d e"))
	if want := "basename with any words. Not: other options"; !slices.Equal(p.Descriptions, []string{want}) {
		t.Errorf("%q: %q, want %q; %s", p.Allow, p.Descriptions, want, why)
	}
}

// A proposal says in words what it covers, and where; an earlier call is named in one line.
func TestProposalsSayWhatTheyCover(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		past        []string
		line        string
		says        []string
	}{
		{"Bash", `{"command":"go  test ./..."}`, nil, "go test ./...",
			[]string{"exactly these words. It runs this folder's code, as it is then"}},
		{"Bash", `{"command":"go test -race ./..."}`, []string{"go test ./...", "go test ./..."}, "go test -race ./...",
			[]string{"go test with these words, with or without -race. Not: other options, or anything outside the workspace. " +
				"It runs this folder's code, as it is then"}},
		{"Bash", `{"command":"head a"}`, []string{"head b", "head c"}, "head a",
			[]string{"head with any one word for each *. Not: other options, or anything outside the workspace"}},
		{"Bash", `{"command":"cat a b"}`, []string{"cat c", "cat d"}, "cat a b",
			[]string{"cat of anything in the workspace. Not: other options, or anything outside the workspace"}},
		{"Bash", `{"command":"git fetch origin a"}`, []string{"git fetch origin b", "git fetch origin c"}, "git fetch origin a",
			[]string{"git fetch with any one word for each *. Not: other remotes"}},
		{"Bash", `{"command":"git add a"}`, []string{"git add b", "git add c"}, "git add a",
			[]string{"git add with any one word for each *. Not: other options, or anything outside the workspace"}},
		{"Bash", `{"command":"npm test"}`, nil, "npm test", []string{"exactly these words. It runs this folder's code, as it is then"}},
		{"Bash", `{"command":"./x.sh a"}`, nil, "./x.sh a", []string{"exactly these words. It runs this folder's code, as it is then"}},
		{"Bash", `{"command":"ls src"}`, nil, "ls src", []string{"exactly these words"}},
		{"Edit", `{"file_path":"src/a.go"}`, nil, "writes src/a.go", []string{"write " + shop + "/src/a.go, and no other file"}},
		{"WebFetch", `{"url":"https://x.example/a"}`, nil, "x.example", []string{"any page of x.example, and no other host"}},
		{"mcp__github__get_issue", `{}`, nil, "github/get_issue", []string{"this tool, whatever it is given; no other tool of github"}},
		{"Odd", `{}`, nil, "Odd", []string{"this tool, whatever it is given"}},
	} {
		call := commandCall("")
		call.Dialect, call.Tool, call.Input = "claude-code", c.tool, json.RawMessage(c.input)
		p, why := (*Set)(nil).Propose(call, allowedCalls(c.past...))
		if line := Line(call); line != c.line || !slices.Equal(p.Descriptions, c.says) {
			t.Errorf("%q, %q; want %q, %q; %s", line, p.Descriptions, c.line, c.says, why)
		}
	}
	call := commandCall("ls")
	call.Folder = shop + "/src"
	for root, want := range map[string]string{shop: shop, "": shop + "/src"} {
		if call.Root = root; (*Set)(nil).examine(PastCall{Call: call}).folder() != want {
			t.Errorf("with the workspace %q it is not in %s", root, want)
		}
	}
}

// What a person denied is covered by no proposal, whatever else was allowed, and each count is of earlier calls.
func TestProposalCoversNothingThatAPersonDenied(t *testing.T) {
	past := append(allowedCalls("git push origin a", "git push origin b", "git push origin c"),
		PastCall{Call: commandCall("git push origin prod"), Denied: true}, PastCall{Call: commandCall("git push origin d")},
		PastCall{Call: commandCall("git push fork a"), Allowed: true})
	p, why := (*Set)(nil).Propose(commandCall("git push origin main"), past)
	if !slices.Equal(p.Allow, []string{"run git push origin main"}) {
		t.Errorf("%q: %s", p.Allow, why)
	}
	if p, why := (*Set)(nil).Propose(commandCall("git push origin prod"), past); len(p.Allow) > 0 || !strings.Contains(why, "denied") {
		t.Errorf("%q: %s", p.Allow, why)
	}
	past = append(slices.Delete(past, 3, 4), allowedCalls("git push x a", "git push x b", "git push x c", "git push x c")...)
	p, _ = (*Set)(nil).Propose(commandCall("git push origin main"), past)
	if p.PastCount != 4 || p.Allowed != 3 || !slices.Equal(p.NotCovered, []string{"git push fork a", "git push x a", "git push x b"}) {
		t.Errorf("%+v", p)
	}
	unanswered := PastCall{Call: commandCall("git push origin e")}
	p, _ = (*Set)(nil).Propose(commandCall("git push origin main"), append(allowedCalls("git push fork a"), unanswered, unanswered))
	if !slices.Equal(p.Allow, []string{"run git push origin main"}) {
		t.Errorf("of what nobody answered and another remote: %q", p.Allow)
	}
	other := commandCall("git push origin x")
	other.Agent = "deploy"
	if p, _ := (*Set)(nil).Propose(other, past); !slices.Equal(p.Allow, []string{"run git push origin x"}) || p.PastCount != 0 {
		t.Errorf("from another agent's calls: %+v", p)
	}
}

// Every proposal loads, covers its call, and none of the dangerous variants of it.
func TestProposalsAllowNoDangerousVariant(t *testing.T) {
	all, n := ownBypasses(t), 0
	var commands []string
	for _, c := range all.Allow {
		commands = append(commands, c.Command)
	}
	for _, rules := range all.Ask {
		for _, r := range rules {
			commands = append(commands, r.Commands...)
		}
	}
	past := allowedCalls(commands...)
	for i := range past {
		past[i].Call.Resolve = filepath.Clean
	}
	base := rulesOf(t, Rule{Use: "builtin:read-only"})
	seen := base.examineAll(past)
	for _, command := range commands {
		p, _ := base.propose(base.examine(PastCall{Call: commandCall(command)}), seen)
		if len(p.Allow) == 0 || strings.ContainsAny(command, "#<") || strings.Contains(command, "keep") ||
			strings.Contains(command, "echo") {
			continue // a comment, a here-document, what the variants write, and what prints any word
		}
		s := rulesOf(t, Rule{Use: "builtin:read-only"}, p.Rule("coder"))
		if v := s.Judge(commandCall(command)); v.Effect != Allow {
			t.Errorf("%q does not cover %q: %v", p.Allow, command, v.Reasons)
		}
		for group, forms := range appended {
			for _, form := range forms {
				n++
				if text := fmt.Sprintf(form, strings.TrimRight(command, "\n")); s.Judge(commandCall(text)).Effect == Allow {
					t.Errorf("%s: %q allows %q", group, p.Allow, text)
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("%d variants", n)
	}
	t.Logf("%d variants", n)
}
