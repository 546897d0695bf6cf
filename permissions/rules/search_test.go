package rules

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions/acts"
)

// TestASearchThroughAFolderMeetsTheRulesForItsFiles: no rule allows to search where a deny or ask rule may be about files.
func TestASearchThroughAFolderMeetsTheRulesForItsFiles(t *testing.T) {
	const run = "run grep [-r] [-n] [-d *] [-A *] ...; run rg [-n] ...; run ls ...; run git grep *; run git show *; run diff [-r] ...; " +
		"run tar cf x ...; write ./**; run cp [-a] ...; run cat ...; run tar vcf x ...; tool daycared/x; run frob ...; run ugrep ...; " +
		"run tar rf x ...; run tar chf x ...; run git add [-A] [-u] [-n] ..."
	for _, c := range []struct{ deny, ask, allowed, denied, asked string }{
		{
			deny: "read **/.env", allowed: "grep -n x a; ls src; cat a; cp a b; git show HEAD:src/a; git add -u; git add -n .",
			denied: "git show HEAD:.env; git show :src/.env; grep -r x .env; rg x src/.env; rg -n x .env",
			asked: `diff a b; grep -r x .; grep -rn x; rg x; rg x src; git grep x; diff -r a b; tar cf x .; cp -a src b; grep -d recurse x src;
				grep -nr x; tar vcf x .; git add .; git add -A; git add; git add -- src; tar; git -c`,
		},
		{
			deny: "read ./secrets/**", allowed: `grep -rn x src; rg x src; rg x srcs; cp -a src b; tar cf x src; frob src/;
				frob x; ls .`,
			denied: "git show HEAD:secrets/x; grep -r x secrets; diff -r src secrets; rg x src/../secrets; git show HEAD:./secrets/a",
			asked: "frob .; frob -x ./; ugrep x; tar rf x .; diff -r src docs; diff src docs; cp -aL src b; rg -L x src; tar chf x src; " +
				"grep -rn x; grep -r x .; rg x; rg x src .; grep -rn -A 3 x; rg x ..; diff -r . /tmp; git grep x; rg x out/../.",
		},
		{deny: "read " + shop + "/src/k/**", allowed: "rg x docs", asked: "rg x; rg x src; rg x /home/kim; rg x /", denied: "rg x src/k"},
		{deny: "read " + shop + "/src/k", allowed: "rg x docs; rg x src/l", asked: "rg x; rg x src; rg x SRC", denied: "rg x src/k"},
		{ask: "read **/*.pem", allowed: "grep -n x a", asked: "rg x; rg x src"},
		{allowed: "rg x; grep -r x ."},
	} {
		s := rulesOf(t, Rule{Allow: listed(run)}, Rule{Deny: listed(or(c.deny))}, Rule{Ask: listed(or(c.ask))})
		for effect, commands := range map[Effect]string{Allow: c.allowed, Deny: c.denied, "": c.asked} {
			for _, command := range listed(commands) {
				v := judged(s, command)
				if v.Effect != effect && (effect != "" || v.Effect != Ask) {
					t.Errorf("deny %q, ask %q: %q is %q, want %q; %v", c.deny, c.ask, command, v.Effect, effect, v.Reasons)
				}
			}
		}
	}
	s := rulesOf(t, Rule{Ask: []string{"read **/b"}}, Rule{Allow: []string{"run rg x"}}, Rule{Deny: []string{"read **/a", "read **/c"}})
	if got := judged(s, "rg x").Reasons; len(got) != 1 || !strings.Contains(got[0], "rule 1 may be about files") {
		t.Errorf("of two rules the first is named: %q", got)
	}
	s = rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Deny: []string{"read ./secrets/**"}})
	for input, want := range map[string]Effect{
		`{"pattern":"x"}`: "", `{"pattern":"x","path":"` + shop + `"}`: "", `{"pattern":"x","path":"src"}`: Allow,
		`{"pattern":"x","path":"secrets"}`: Deny,
	} {
		v := s.Judge(Call{Dialect: "claude-code", Tool: "Grep", Input: json.RawMessage(input), Folder: shop, Root: shop, Resolve: links(shop)})
		if v.Effect != want {
			t.Errorf("Grep %s is %q, want %q; %v", input, v.Effect, want, v.Reasons)
		}
	}
	all := rulesOf(t, Rule{Use: "builtin:read-only"})
	for _, tool := range []string{"Grep", "Glob"} { // without a folder, they search the call's
		for folder, want := range map[string]Effect{shop + "/src": Allow, "/etc": ""} {
			c := Call{Dialect: "claude-code", Tool: tool, Input: json.RawMessage(`{"pattern":"x"}`), Folder: folder, Root: shop}
			c.Resolve = links(shop)
			if v := all.Judge(c); v.Effect != want {
				t.Errorf("%s in %s is %q, want %q; %v", tool, folder, v.Effect, want, v.Reasons)
			}
		}
	}
	if v := s.Judge(Call{
		Dialect: "claude-code", Tool: "Glob", Input: json.RawMessage(`{"pattern":"*","path":"."}`), Folder: shop, Root: shop,
		Resolve: links(shop),
	}); v.Effect != Allow {
		t.Errorf("names alone: %q, %v", v.Effect, v.Reasons)
	}
}

// TestTheSearchToolsOfAgentsOnlyReadInTheirFolder: each in the form that its agent mostly uses. A pattern of names only leaves files out.
func TestTheSearchToolsOfAgentsOnlyReadInTheirFolder(t *testing.T) {
	reading, guarded := rulesOf(t, Rule{Use: "builtin:read-only"}),
		rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Deny: []string{"read ./secrets/**", "read /srv/far/**"}})
	for _, c := range []struct {
		dialect, tool, input string
		want, guarded        Effect // with no rule that denies, and with two
	}{
		{"claude-code", "Grep", `{"pattern":"x","glob":"*.go","output_mode":"content","-n":true,"context":3}`, Allow, ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"src/**/*.{ts,tsx}","path":"src"}`, Allow, Allow},
		{"claude-code", "Grep", `{"pattern":"x","glob":"*.go, !*_test.go","path":"src"}`, Allow, Allow},
		{"claude-code", "Grep", `{"pattern":"x","glob":"*.go","path":"secrets"}`, Allow, Deny},
		{"claude-code", "Grep", `{"pattern":"x","glob":"*.go","path":"out"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"../*"}`, "", ""}, {"claude-code", "Grep", `{"pattern":"x","glob":"~/*.go"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"/etc/*.go"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"{a,/etc}/b.go"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"--pre=sh"}`, "", ""}, {"claude-code", "Grep", `{"pattern":"x","glob":["*.go"]}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":".env"}`, "", ""}, {"claude-code", "Grep", `{"pattern":"x","glob":".{env,x}"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":".env *.go"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"!x,.env"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"**/*.[pk]e[my]"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"{.e}nv"}`, "", ""},
		{"claude-code", "Grep", `{"pattern":"x","glob":"*.go","pre":"x"}`, "", ""},
		{"claude-code", "LS", `{"path":"src","ignore":["*.go"]}`, Allow, Allow},
		{"claude-code", "Glob", `{"pattern":"out/*"}`, "", ""}, {"claude-code", "Glob", `{"pattern":"src/*.go"}`, Allow, Allow},
		{"opencode", "grep", `{"pattern":"x"}`, Allow, ""},
		{"opencode", "grep", `{"pattern":"x","path":"src","include":"*.{ts,tsx}"}`, Allow, Allow},
		{"opencode", "glob", `{"pattern":"**/*.go"}`, Allow, Allow}, {"opencode", "list", `{}`, Allow, Allow},
		{"opencode", "list", `{"path":"/etc"}`, "", ""},
		{"copilot", "grep", `{"pattern":"x","path":"src","glob":"*.go"}`, Allow, Allow}, {"copilot", "rg", `{"pattern":"x"}`, Allow, ""},
		{"copilot", "rg", `{"pattern":"x","path":"/etc"}`, "", ""}, {"copilot", "glob", `{"pattern":"**"}`, Allow, Allow},
		{"gemini", "grep_search", `{"pattern":"x"}`, Allow, ""},
		{"gemini", "grep_search", `{"pattern":"x","dir_path":"src","include_pattern":"*.go","names_only":true}`, Allow, Allow},
		{"gemini", "grep_search", `{"pattern":"x","include_pattern":":/"}`, "", ""},
		{"gemini", "search_file_content", `{"pattern":"x","dir_path":"src","include":"*.go"}`, Allow, Allow},
		{"gemini", "glob", `{"pattern":"**/*.go","case_sensitive":true}`, Allow, Allow}, {"gemini", "glob", `{"pattern":"out/*"}`, "", ""},
		{"gemini", "list_directory", `{"dir_path":".","ignore":["x"]}`, Allow, Allow},
	} {
		call := Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop, Resolve: links(shop)}
		v, guards := reading.Judge(call), guarded.Judge(call)
		if v.Effect != c.want || guards.Effect != c.guarded {
			t.Errorf("%s %s %s is %q, and %q; %v %v", c.dialect, c.tool, c.input, v.Effect, guards.Effect, v.Reasons, guards.Reasons)
		}
	}
	far := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Deny: []string{"read /srv/far/**"}})
	for dialect, want := range map[string]Effect{"gemini": "", "copilot": Allow} { // Gemini CLI may search more folders than the call's
		tool := map[string]string{"gemini": "grep_search", "copilot": "grep"}[dialect]
		call := Call{Dialect: dialect, Tool: tool, Input: json.RawMessage(`{"pattern":"x"}`), Folder: shop, Root: shop, Resolve: links(shop)}
		if v := far.Judge(call); v.Effect != want {
			t.Errorf("of %s %s is %q; %v", dialect, tool, v.Effect, v.Reasons)
		}
	}
}

// TestReadOnlyAllowsUsualCommandsThatOnlyRead, and nothing one step beyond them.
func TestReadOnlyAllowsUsualCommandsThatOnlyRead(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"})
	for effect, commands := range map[Effect]string{
		Allow: "git grep x; git grep -n x -- src; git stash list; node --version; node -v; python3 --version; python3 -V; xxd a; " +
			"[ -f a ] && cat a; git --version; npm -v; python --version; java -version; make --version; pip3 --version; " +
			"grep -rn --include=*.go x src; grep -rn x --include=*.{ts,tsx} --exclude-dir=node_*; rg --glob=*.go x",
		"": "git grep -O x; git grep x HEAD:.env; git grep x -- out; git -C out grep x; git stash; git stash list -p --output=a; " +
			"git stash drop; node; node --version a.js; node -v a.js; python3; python3 -V -c x; echo x | node; X=1 node -v; xxd a b; " +
			"xxd -r a; xxd .env; [ -f out/a ]; [ x -ne 1 ]; [ -f a* ]; echo [; go version; " +
			"cargo --version; rustc --version; yarn -v; pnpm --version; npm -v x; make -v; sh -c 'npm -v x'; " + // these go by files here
			"grep -rn --include *.go x; grep --incl=*.go x a; grep -e* x; grep x *.go; grep --include=$x y; grep --include=*.go`id` y; " +
			"grep --file=*.go x; rg -g*.go x; rg --glob=*.env x; rg --glob=* x; " +
			"grep -rn x --include=.env; grep -rn x --include=.e*; rg --pre=*.sh x; cat --include=*.go x; " +
			"frob --include=*.go; xargs grep --include=*.go x; grep --include=../*.go x; grep --include=*.go(x) y",
	} {
		for _, command := range listed(commands) {
			if v := judged(s, command); v.Effect != effect {
				t.Errorf("%q is %q, want %q; %v", command, v.Effect, effect, v.Reasons)
			}
		}
	}
	s = rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Deny: []string{"read ./secrets/**"}})
	if v := judged(s, "git grep x"); v.Effect != "" {
		t.Errorf("a search where files are denied is %q", v.Effect)
	}
}

// TestASearchOfOpencodeInAFileIsOneOfItsFolder, which opencode searches then.
func TestASearchOfOpencodeInAFileIsOneOfItsFolder(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"read ./docs/**", "read ./src/a.go"}}, Rule{Deny: []string{"read ./docs/secret"}})
	for _, c := range []struct {
		dialect, tool, path string
		want                Effect
	}{
		{"opencode", "grep", "docs/x.md", ""}, {"opencode", "grep", "src/a.go", ""}, {"opencode", "grep", "docs/sub/x.md", Allow},
		{"opencode", "grep", "docs/sub", Allow}, {"claude-code", "Grep", "docs/x.md", Allow}, {"claude-code", "Grep", "src/a.go", Allow},
	} {
		input := json.RawMessage(`{"pattern":"x","path":"` + c.path + `"}`)
		call := Call{Dialect: c.dialect, Tool: c.tool, Input: input, Folder: shop, Root: shop, Resolve: withFiles}
		if v := s.Judge(call); v.Effect != c.want {
			t.Errorf("%s %s in %s is %q, want %q; %v", c.dialect, c.tool, c.path, v.Effect, c.want, v.Reasons)
		}
		if names, _, _ := NamesToResolve(call, 1<<15); !slices.Contains(names, shop+"/"+c.path+"/") ||
			!slices.Contains(names, path.Dir(shop+"/"+c.path)) {
			t.Errorf("%s %s in %s: nobody learns whether that is a folder: %q", c.dialect, c.tool, c.path, names)
		}
	}
}

// withFiles resolves links where a name with a dot in it is that of a file, not of a folder.
func withFiles(name string) string {
	if plain := strings.TrimSuffix(name, "/"); plain != name && strings.Contains(path.Base(path.Clean(plain)), ".") {
		return ""
	}
	return links(shop)(name)
}

// TestWhatTakesFoldersWholeMeetsTheRulesForTheirFiles: comparing two folders reads the files of one name in both, and with a file the one
// of its name. Moving a folder takes its files to where no rule names them. Here a name with a dot is that of a file, and others may be
// folders.
func TestWhatTakesFoldersWholeMeetsTheRulesForTheirFiles(t *testing.T) {
	s := rulesOf(t, Rule{Deny: listed("read ./docs/z; read ./docs/x.md; read ./a/secrets/**; write **/conf; write ./a/prot/**; read ./out/k")},
		Rule{Allow: listed("run diff [-u] [-U *] [--from-file=*] ...; run mv [-t *] [--target-directory=*] ...; run git mv ...; write ./**; " +
			"run cp [-r] [-t *] ...; run gofmt [-l] [-d] ...; run ln ...; run git diff ...; run sudo mv a b; run nice diff docs sub")})
	for effect, commands := range map[Effect]string{
		Allow: `diff a.go b.go; diff -U 3 a.go docs/b.go; diff a.go docs; mv a.go b.go; mv a.go docs; cp a.go docs;
			git mv a.go sub; cp -r a.go b; gofmt -l docs; gofmt -d a.go docs/b.go; git diff HEAD docs/b.go; mv a.go a; ln a.go b.go;
			git diff src sub`,
		Deny: `diff z docs; diff docs z; diff docs/ sub/z; diff --from-file=docs sub/z x; sudo diff z docs; git diff --no-index docs z;
			diff x.md docs; sdiff z docs; mv a.go conf; mv conf.d/conf docs; mv --target-directory=a/prot a.go; cp -ta/prot a.go;
			git diff z docs; git mv sub/conf docs; mv a/prot docs`,
		"": `diff src sub; diff docs sub; diff sub docs; diff -u docs/. sub; diff --from-file=docs sub; git diff --no-index docs sub;
			mv a b; mv ./a/ docs;
			git mv a b; mv -t docs a; mv a.go a docs; mv docs/../a b; mv src docs; cp -r src docs; cp -r src/. a; cp -t docs -r src;
			gofmt -d docs; gofmt .; gofmt -l -d docs; diff out sub; mv sub a; sdiff docs sub; git diff docs sub; sudo mv a b; nice diff docs sub`,
	} {
		for _, command := range listed(commands) {
			v := s.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: withFiles})
			if v.Effect != effect || v.Unsure != (effect == "") && effect != Deny {
				t.Errorf("%q is %q, want %q, unsure: %t; %v", command, v.Effect, effect, v.Unsure, v.Reasons)
			}
		}
	}
	repository := func(name string) string {
		if name == shop+"/.git/HEAD/" { // it is a file
			return ""
		}
		return withFiles(name)
	}
	for _, command := range []string{"git diff docs sub", "git diff z docs", "cd src && git diff main docs"} {
		if v := s.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: repository}); v.Effect != Allow {
			t.Errorf("%q in a repository is %q; %v", command, v.Effect, v.Reasons)
		}
	}
	names, _, _ := NamesToResolve(Call{Command: "git diff x y", Folder: shop + "/src", Root: shop}, 1<<15)
	if !slices.Contains(names, shop+"/.git/HEAD/") || !slices.Contains(names, shop+"/src/.git/HEAD") {
		t.Errorf("of git diff is resolved %q", names)
	}
	names, _, whole := NamesToResolve(Call{Command: "mv a.go docs; diff x y", Folder: shop, Root: shop}, 1<<15)
	for _, name := range []string{"a.go/", "docs/", "docs/a.go", "x/", "y/", "x/y", "y/x"} {
		if !slices.Contains(names, shop+"/"+name) || !whole {
			t.Errorf("%s is not resolved: %q, %t", name, names, whole)
		}
	}
}

// TestWhatChangesFoldersWholeMeetsTheRulesForTheirFiles: what removes or changes a folder with what is in it, copies into one, or links to
// one. A name with a dot is that of a file.
func TestWhatChangesFoldersWholeMeetsTheRulesForTheirFiles(t *testing.T) {
	s := rulesOf(t, Rule{Deny: listed("write ./a/prot/x; read **/.env; write ./x.md; read ./b/k/y.md")},
		Rule{Allow: listed("run rm [-rf] ...; run chmod [-R] ...; run chown [-R] ...; run git rm [-r] ...; run git clean -fdx; " +
			"run git restore [--staged] ...; run git checkout -- ...; run find . -delete; run find src -name z -delete; " +
			"run rsync [-a] [--delete] [--exclude *] ...; " +
			"run cp [--parents] [-rta] ...; run ln [-s] ...; run install [-D] [-Dta] ...; run git clean -n; run git clean -fd docs; " +
			"run git commit -m *; run find a -exec rm '{}' +; write ./**")})
	for effect, commands := range map[Effect]string{
		Allow: `rm a.go; rm -rf dist; rm -rf node_modules/x.d; chmod 600 a; git rm a.go; git clean -n; git commit -m clean; ln a.go b.go;
			ln -s a.go c/l.go; cp --parents a.go c; git restore --staged src; install -D a.go c/d.go; git checkout -- a.go`,
		Deny: `rm -r a/prot/x; ln ../x.md; ln -s ../x.md; ln -s /srv/x.md .; ln -s ../b/k/y.md c/l; ln -s ../.env c/l; rsync /srv/x.md .;
			cp --parents prot/x a; install -Dta/prot x; cp -rta/prot x; ln -s k/y.md b;
			rsync -R prot/x a; rsync --relative prot/x a`,
		"": `rm -rf a; rm -fr ./a/; rm -r src; chmod -R u+w a; chown -R kim a; git rm -r a; git clean -fdx; git clean -fd docs; git restore a;
			git checkout -- a; find . -delete; find src -name z -delete; rsync -a --delete src a; rsync -a src a --exclude z; ln -s a l; ln -s . l;
			ln -s ../a c/l; rsync -a z.d .; find a -exec rm {} +`,
	} {
		for _, command := range listed(commands) {
			v := s.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: withFiles})
			if v.Effect != effect || v.Unsure != (effect == "") && effect != Deny {
				t.Errorf("%q is %q, want %q, unsure: %t; %v", command, v.Effect, effect, v.Unsure, v.Reasons)
			}
		}
	}
	fixed := rulesOf(t, Rule{Deny: listed("write ./dist/x; read ./a/k")})
	for command, unsure := range map[string]bool{"rm -rf dist": true, "rm -rf a": true, "rm -rf src": false, "fd z -x rm": true} {
		if v := fixed.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: withFiles}); v.Unsure != unsure {
			t.Errorf("%q: unsure is %t; %v", command, v.Unsure, v.Reasons)
		}
	}
	writes := rulesOf(t, Rule{Deny: []string{"write ./dist/x"}})
	for command, unsure := range map[string]bool{"find dist -delete": true, "find dist -exec grep x '{}' +": false} {
		if v := writes.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: withFiles}); v.Unsure != unsure {
			t.Errorf("where only writing is denied, %q: unsure is %t; %v", command, v.Unsure, v.Reasons)
		}
	}
	names, _, whole := NamesToResolve(Call{Command: "rm -r x; ln -s ../y c/l; git clean -fd", Folder: shop, Root: shop}, 1<<15)
	for _, name := range []string{shop + "/x/", shop + "/y/", shop + "/c/../y", shop + "/."} {
		if !slices.Contains(names, name) && !slices.Contains(names, path.Clean(name)) || !whole {
			t.Errorf("%s is not resolved: %q, %t", name, names, whole)
		}
	}
}

// TestAFolderThatAProgramIsGivenMeetsTheRulesForItsFiles: whatever it does with that, and a rule for **/NAME where it is known to send or
// pack what is in it.
func TestAFolderThatAProgramIsGivenMeetsTheRulesForItsFiles(t *testing.T) {
	const run = "run docker cp * *; run docker run -v ./docs:/x x; run docker build docs; run frob [-x] [-C *] [-Cdocs] [--from=*] ...; " +
		"run rclone copy * *; run docker run --mount type=bind,src=docs,dst=/x x"
	resolve := func(name string) string {
		if plain := strings.TrimSuffix(name, "/"); plain != name && !strings.HasSuffix(plain, "docs") && !strings.HasSuffix(plain, "src") {
			return "" // it is no folder
		}
		return path.Clean(name)
	}
	for deny, commands := range map[string]map[string]Effect{
		"read ./docs/secret": {
			"docker cp docs c:/x": "", "docker run -v ./docs:/x x": "", "docker build docs": "", "frob docs": "", "frob -C docs": "",
			"frob -Cdocs":      "",
			"frob --from=docs": "", "rclone copy docs x:": "", "docker run --mount type=bind,src=docs,dst=/x x": "", "frob src": Allow,
			"frob docs.d": Allow,
		},
		"read **/.env": {
			"docker cp src c:/x": "", "docker build docs": "", "rclone copy src x:": "", "frob docs": Allow, "frob -C src": Allow,
		},
	} {
		s := rulesOf(t, Rule{Allow: listed(run)}, Rule{Deny: []string{deny}})
		for command, want := range commands {
			v := s.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: resolve})
			if v.Effect != want || v.Unsure != (want == "") {
				t.Errorf("deny %s: %q is %q, want %q, unsure: %t; %v", deny, command, v.Effect, want, v.Unsure, v.Reasons)
			}
		}
	}
	names, _, whole := NamesToResolve(Call{Command: "frob docs --from=src", Folder: shop, Root: shop}, 1<<15)
	if !slices.Contains(names, shop+"/docs/") || !slices.Contains(names, shop+"/src/") || !whole {
		t.Errorf("it is not resolved whether they are folders: %q, %t", names, whole)
	}
}

// TestAProgramThatMaySendFoldersIsNotAskedAboutForOtherWork: people who deny **/.env look at containers as before.
func TestAProgramThatMaySendFoldersIsNotAskedAboutForOtherWork(t *testing.T) {
	const others = "docker ps; docker logs web; docker exec web ls; docker compose logs web; docker pull x; kubectl get pods; " +
		"kubectl logs p; kubectl describe pod x; aws s3 ls; 7z x a.7z; jar tf a.jar"
	const send = "docker cp docs c:x; docker build docs; docker compose up -d; kubectl create configmap x --from-file=docs; " +
		"aws s3 sync docs s3://x; 7z a x.7z docs; jar cf x docs; repomix docs; vercel deploy"
	for text, want := range map[string]Effect{others: Allow, send: ""} {
		for _, command := range listed(text) {
			s := rulesOf(t, Rule{Allow: []string{"run " + command, "fetch x"}}, Rule{Deny: []string{"read **/.env"}})
			if v := judged(s, command); v.Effect != want {
				t.Errorf("%q is %q, want %q; %v", command, v.Effect, want, v.Reasons)
			}
		}
	}
}

// TestADenyRuleHoldsForTheOtherNamesOfWhatItNames: of programs, subcommands and options.
func TestADenyRuleHoldsForTheOtherNamesOfWhatItNames(t *testing.T) {
	s := rulesOf(t, Rule{Deny: listed("run tar -x; run npm install; run pip install; run python3; run find -exec; run psql -c; " +
		"run npm run deploy; run venv")})
	for effect, commands := range map[Effect]string{
		Deny: `tar xf t.tar; tar xvf t.tar; tar -xf t.tar; tar --get -f t.tar; npm i; npm add x; npm in; pip3 install x;
			pip3.11 install x; python3.11 -V;
			find . -execdir ls '{}' +; psql --command=x; npm run-script deploy;
			python -m pip install x; python -mpip install x; python -Im pip -q install x; python -W ignore -m pip install x;
			python -X dev -m pip.__main__ install x; py -3 -m pip install x; pypy3.10 -m pip install x; sudo python -m pip install x;
			sh -c 'python -m pip install x'; python -m venv`,
		"": "tar cf x.tar src; npm ci; npm test; pip3 list; python -V; python2.7 -V; find . -name x; npm run build; npm publish; " +
			"python -m pip list; python -m; python -m json.tool x; python x.py -m pip install x; python -I x.py -m venv; frob -m pip install x",
	} {
		for _, command := range listed(commands) {
			if v := judged(s, strings.TrimSpace(command)); v.Effect != effect {
				t.Errorf("%q is %q, want %q", command, v.Effect, effect)
			}
		}
	}
}

// TestAFileWithNamesOfFilesIsAskedAbout: what it names is not seen. The words of date may be files, too.
func TestAFileWithNamesOfFilesIsAskedAbout(t *testing.T) {
	s := rulesOf(t, Rule{Deny: []string{"read ./secret"}}, Rule{Allow: listed("run strings [-a] ...; run strings '@list'; " +
		"run sort --files0-from=list; run wc --files0-from=list; run xz --files=list -kc; " +
		"run xz --files0=list; run xz --files -k; run frob --files-from=list; run file -f list; run date [-f *] ...; " +
		"run gcc '@list'; run file [-bm*] ...; run sed -nfsecret x; " +
		"run sort [--files0=*] [--fil=*] [--field-separator=*] ...; run wc --f=list; " +
		"run xargs -0alist cat; run xargs -n 1 --arg=list cat; run xargs grep -la x; run xargs -n 1 ls -a; run tar cTf list q.tar; " +
		"run tar Tcf list q.tar; run tar -cTlist -fq; run tar cf T.tar src; run frob '@a/b'; run date '+%F'")})
	for effect, commands := range map[Effect]string{
		"": "strings @list; sort --files0-from=list; wc --files0-from=list; " +
			"xz --files=list -kc; xz --files0=list; xz --files -k; frob --files-from=list; file -f list; gcc @list; " +
			"sort --files0=list; sort --fil=list; wc --f=list; xargs -0alist cat; xargs -n 1 --arg=list cat; tar cTf list q.tar; tar -cTlist -fq; " +
			"tar Tcf list q.tar",
		Deny:  "date -f secret; date -fsecret; date --file=secret; date -r secret; date -ufsecret; file -bmsecret x; sed -nfsecret x",
		Allow: "strings -a x; date +%F; date; frob @a/b; xargs grep -la x; xargs -n 1 ls -a; tar cf T.tar src; sort --field-separator=x y",
	} {
		for _, command := range listed(commands) {
			v := judged(s, strings.TrimSpace(command))
			if v.Effect != effect || v.Unsure != (effect == "") {
				t.Errorf("%q is %q, want %q, unsure: %t; %v", command, v.Effect, effect, v.Unsure, v.Reasons)
			}
		}
	}
}

func or(pattern string) string {
	if pattern == "" {
		return "run false"
	}
	return pattern
}

// TestPatternsOfNamesThatFindSecrets: rg searches hidden files that a pattern names.
func TestPatternsOfNamesThatFindSecrets(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"})
	for command, want := range map[string]Effect{
		"rg -g.env x": "", "rg -g .env x": "", "rg --glob=.env x": "", "rg --glob .e* x": "", "rg -g'*' x": "", "rg -g '.e*' x": "",
		"rg -g'src/*.pem' x": "", "rg -g '*' x": "", "rg x -g": "", "git show HEAD:.netrc": "", "git show HEAD:a": Allow,
		"grep -rn . --include '.e*' src": "",
		"rg -g'*.go' x":                  Allow, "rg -g'!.env' x": Allow, "rg --glob='*.md' x": Allow, "cat prod.env": "", "cat .kube/config": "",
		"cat terraform.tfstate": "", "cat config/secrets.yml": "", "cat .pgpass": "", "cat src/environment.go": Allow,
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%s is %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}

// TestACallIsUnsureWhereARuleMayBeAboutItsFiles: what it reads is not all named in it.
func TestACallIsUnsureWhereARuleMayBeAboutItsFiles(t *testing.T) {
	deny := rulesOf(t, Rule{Deny: []string{"read ./secrets/**"}}, Rule{Ask: []string{"write **/b"}, Agents: []string{"other"}})
	for command, unsure := range map[string]bool{
		"make": false, "cat a": false, "grep x a": false, "go test ./...": false, "cat src/a | grep x": false,
		"grep -r x .": true, "cat s*/y": true, "cd sec*; cat y": true, "find . -exec cat {} +": true, "find . -name y | xargs cat": true,
		"nice grep -r x .": true, "nice grep -r x src": false, "cat a | sh": true, "bash < a": true, "bash a": false,
		"sudo -u kim python3 -c 'open(chr(97))'": true, "sudo -u kim python3 a": false,
		"tar cf - . | strings": true, "curl file://$PWD/secrets/y": true, "cat $(echo secrets/y)": true, "sh -c \"$x\"": true,
		"cat a | sudo sh": true, "sudo sh < a": true, "watch 'cat a | sh'": true, "sudo sh a": false,
		"cat" + strings.Repeat(" a", maxItems) + "; true; true": true,
		"python3 -c 'open(chr(97))'":                            true, "for f in *; do cat $f; done": true, "if": true,
	} {
		if v := judged(deny, command); v.Unsure != unsure {
			t.Errorf("%q: unsure is %t; %v", command, v.Unsure, v.Reasons)
		}
		for name, s := range map[string]*Set{
			"hosts": rulesOf(t, Rule{Deny: []string{"fetch x.example", "run rm"}}),
			"other": rulesOf(t, Rule{Deny: []string{"read ./secrets/**"}, Agents: []string{"other"}}),
		} {
			if v := judged(s, command); v.Unsure {
				t.Errorf("%q is unsure with rules for %s", command, name)
			}
		}
	}
}

// TestASearchOfAToolIsUnsureWhereARuleMayBeAboutItsFiles, and so is what the texts of a server's tool may name.
func TestASearchOfAToolIsUnsureWhereARuleMayBeAboutItsFiles(t *testing.T) {
	s := rulesOf(t, Rule{Deny: []string{"read ./secrets/**"}})
	for _, c := range []struct {
		dialect, tool, input string
		unsure               bool
	}{
		{"daycared", "search_files", `{"pattern":"x"}`, true}, {"daycared", "search_files", `{"pattern":"x","path":"src"}`, false},
		{"claude-code", "Grep", `{"pattern":"x"}`, true}, {"claude-code", "Grep", `{"pattern":"x","path":"src"}`, false},
		{"opencode", "grep", `{"pattern":"x","path":"."}`, true}, {"claude-code", "Read", `{"file_path":"a"}`, false},
		{"gemini", "search_file_content", `{"pattern":"x"}`, true}, {"copilot", "rg", `{"pattern":"x"}`, true},
		{"gemini", "google_web_search", `{"query":"x"}`, false}, {"claude-code", "mcp__gh__search", `{"query":"x"}`, false},
		{"claude-code", "mcp__fs__x", `{"dir":"."}`, true}, {"claude-code", "mcp__fs__x", `{"dir":"src"}`, false},
	} {
		v := s.Judge(Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop, Resolve: links(shop)})
		if v.Unsure != c.unsure || v.Effect != "" {
			t.Errorf("%s %s: unsure is %t, %q", c.tool, c.input, v.Unsure, v.Effect)
		}
	}
}

// TestTheFolderThatACommandRunsInIsAnOperand: of what reads it where no other is named, and where the call or the session's shell is.
func TestTheFolderThatACommandRunsInIsAnOperand(t *testing.T) {
	const run = "run ls [-la] [-R] ...; run rg [-n] [-t *] ...; run grep [-rn] ...; run find ...; run fd ...; run cat ...; run echo ..."
	s := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Allow: listed(run)}, Rule{Allow: []string{"read /srv/data/**"}},
		Rule{Deny: []string{"read /srv/home/**", "read ./secrets/**"}})
	for _, c := range []struct {
		folder string
		want   Effect
		texts  string
	}{
		{"/etc", "", "ls; ls -la; ls -R; rg x; rg x -t go; rg --files; grep -rn x; grep -r ''; find; find -type f; fd x; tree; du"},
		{"/etc", "", "cat hosts; timeout 5 ls; ls -a src"},
		{"..", "", "ls; rg x"}, {"out", "", "ls; rg x; cat hosts"},
		{"/srv/home", Deny, "ls; rg x; find; grep -rn x; echo a; cat a"}, {"secrets", Deny, "ls; rg x; ls -la; echo a"},
		{"/srv/data", Allow, "ls; rg x; find; fd x; cat a; echo a; grep x; wc"}, {"/srv/data", "", "ls ../other"},
		{"src", Allow, "ls; rg x; grep -rn x; find -type f; du; cat a; echo a"}, {shop + "/src", Allow, "ls; fd x"}, {shop, Allow, "ls; find"},
	} {
		for _, text := range listed(c.texts) {
			text = strings.TrimSpace(text)
			for _, of := range []string{"opencode bash workdir", "gemini run_shell_command directory", "gemini run_shell_command dir_path"} {
				by := strings.Fields(of)
				input, _ := json.Marshal(map[string]string{"command": text, by[2]: c.folder})
				v := s.Judge(Call{Dialect: by[0], Tool: by[1], Input: input, Folder: shop, Root: shop, Resolve: links(shop)})
				if v.Effect != c.want {
					t.Errorf("%s in %s is %q, want %q; %v", text, c.folder, v.Effect, c.want, v.Reasons)
				}
			}
			if strings.HasPrefix(text, "echo") && c.want == Deny {
				continue // it reads nothing of the folder that the shell is in
			}
			folder := acts.Under(shop, c.folder)
			if v := s.Judge(Call{Command: text, Folder: folder, Root: shop, Resolve: links(shop)}); v.Effect != c.want {
				t.Errorf("%s where the shell is in %s is %q, want %q; %v", text, folder, v.Effect, c.want, v.Reasons)
			}
		}
	}
	for command, want := range map[string]Effect{"ls /srv/data": Allow, "ls /srv/data -a": Deny, "fd x": Deny} { // what else is named
		if v := s.Judge(Call{Command: command, Folder: "/srv/home", Root: shop, Resolve: links(shop)}); v.Effect != want {
			t.Errorf("%s in /srv/home is %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
	s = rulesOf(t, Rule{Allow: []string{"run ls"}})
	for folder, want := range map[string]Effect{shop: Allow, "/etc": ""} { // nothing is known of links
		input, _ := json.Marshal(map[string]string{"command": "ls", "workdir": folder})
		if v := s.Judge(Call{Dialect: "opencode", Tool: "bash", Input: input, Folder: shop, Root: shop}); v.Effect != want {
			t.Errorf("ls in %s is %q, want %q", folder, v.Effect, want)
		}
	}
}
