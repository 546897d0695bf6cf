package hooks

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

// TestWhereNamesLead: the hook says where each name of a call leads, in what is no project's folder without its root; of many, those that
// lead elsewhere; and that there are more.
func TestWhereNamesLead(t *testing.T) {
	home := own.Resolve(t.TempDir())
	at := filepath.Join(home, "code")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(at, "link")); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"HOME": home, "PATH": "/usr/bin:/bin"}[name] }
	leads := func(tool, cwd, input string) permissions.Leads {
		return callOf(t, "claude-code", tool, cwd, input).Leads(env)
	}
	want := permissions.Leads{Root: at, Names: map[string]string{at: at, at + "/link/passwd": "/etc/passwd"}}
	if diff := cmp.Diff(want, leads("Read", at, `{"file_path":"link/passwd"}`)); diff != "" {
		t.Error(diff)
	}
	question := `{"questions":[{"question":"Which?","header":"x","multiSelect":false,"options":[{"label":"a","description":""},` +
		`{"label":"b","description":""}]}]}`
	if got := leads("AskUserQuestion", at, question); got.Root != "" || got.Names != nil || got.Unknown {
		t.Errorf("of a question is told %v", got)
	}
	if err := os.Symlink("/etc", filepath.Join(home, "far")); err != nil {
		t.Fatal(err)
	}
	far := permissions.Leads{Names: map[string]string{home: home, filepath.Join(home, "far/a"): "/etc/a"}}
	if diff := cmp.Diff(far, leads("Read", home, `{"file_path":"far/a"}`)); diff != "" {
		t.Error("in the home:", diff)
	}
	size := func(l permissions.Leads) (n int) {
		for name, to := range l.Names {
			n += len(name) + len(to)
		}
		return n
	}
	command := func(last int) string { // with names of 100 letters, and a last one
		text := "cat"
		for i := range (permissions.MaxLeads-1000)/2/(len(at)+101) - 1 {
			text += fmt.Sprintf(" %0*d", 100, i)
		}
		return `{"command":"` + text + " " + strings.Repeat("a", last) + `"}`
	}
	one := size(leads("Bash", at, command(1)))
	last := 1 + (permissions.MaxLeads-one)/2
	if got := size(leads("Bash", at, command(last))); one == 0 || got != permissions.MaxLeads {
		t.Errorf("%d bytes are told, not as many as may be", got)
	}
	if got := leads("Bash", at, command(last+1)); got.Root != "" || len(got.Names) > 0 || got.Unknown {
		t.Errorf("of more than may be told, of which nothing leads elsewhere, is told %v", got)
	}
	many := strings.TrimSuffix(command(last+1), `"}`)
	elsewhere := map[string]string{at + "/link/passwd": "/etc/passwd"}
	if got := leads("Bash", at, many+` link/passwd"}`); got.Root != "" || got.Unknown || !maps.Equal(got.Names, elsewhere) {
		t.Errorf("of more than may be told, of which one leads elsewhere, is told %v", got)
	}
	var links strings.Builder
	for i := range permissions.MaxLeads/2/len("/link/0000/etc/0000") + 100 {
		fmt.Fprintf(&links, " link/%04d", i)
	}
	if got := leads("Bash", at, `{"command":"cat`+links.String()+`"}`); !got.Unknown || got.Root != "" || len(got.Names) > 0 {
		t.Errorf("of more that leads elsewhere than may be told is told %v", got)
	}
	links.Reset()
	for i := range maxNames/len(at) + 100 {
		fmt.Fprintf(&links, " %d", i)
	}
	if got := leads("Bash", at, `{"command":"cat`+links.String()+` link/passwd"}`); !got.Unknown {
		t.Errorf("of more names than are looked at is told %v", got)
	}
}

// inAnotherWay matches calls that may name what does not stand in them.
var inAnotherWay = regexp.MustCompile(`/proc/|%E9`)

// TestFoldersThatACallMovesAreTold: with a slash behind them, which leads nowhere for another file.
func TestFoldersThatACallMovesAreTold(t *testing.T) {
	at := own.Resolve(t.TempDir())
	if err := os.Mkdir(filepath.Join(at, "folder.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "folder.d", "other": "file"} {
		if err := os.Symlink(to, filepath.Join(at, name)); err != nil {
			t.Fatal(err)
		}
	}
	l := callOf(t, "claude-code", "Bash", at, `{"command":"mv file other folder.d link new"}`).Leads(func(string) string { return "" })
	for name, want := range map[string]string{
		"file": "file", "file/": "", "other": "file", "other/": "", "folder.d/": "folder.d", "link/": "folder.d", "new/": "new",
	} {
		if want != "" {
			want = filepath.Join(at, want)
		}
		if got := l.Names[at+"/"+name]; got != want || l.Unknown {
			t.Errorf("%s leads to %q, want %q; unknown: %t", name, got, want, l.Unknown)
		}
	}
}

// TestLinksThatStandInACall: a link that a call may name in any way is told, or the call says that not all was looked at.
func TestLinksThatStandInACall(t *testing.T) {
	home := own.Resolve(t.TempDir())
	env := func(name string) string { return map[string]string{"HOME": home, "PATH": "/usr/bin:/bin"}[name] }
	at := filepath.Join(home, "code")
	for _, folder := range []string{"code", "code/k", "code/s x", "code/s x/deep", "beside", "locked", "outer/in"} {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outer/in", filepath.Join(home, "code/away")); err != nil {
		t.Fatal(err)
	}
	shell := func(command string) string {
		input, _ := json.Marshal(map[string]string{"command": command}) // it is text
		return string(input)
	}
	for link, calls := range map[string][][2]string{
		"code/sud": {
			{"Bash", shell("cp a sud")}, {"Bash", shell("curl -s -kosud https://a.example")}, {"Bash", shell("tar xvzpPfsud")},
			{"Bash", shell("frob -a -bcosud x")}, {"Bash", shell("cp a /proc/self/cwd/sud")}, {"Bash", shell(`cp a s\u""d`)},
			{"Bash", shell("echo sud | xargs cp a")}, {"Bash", shell("cp a SUD")}, {"mcp__fs__copy", `{"dst":"sud"}`},
			{"mcp__fs__copy", `{"files":{"x.sud":1}}`}, {"mcp__fs__copy", `{"args":"{\"path\": \"s\\u0075d\"}"}`},
			{"mcp__fs__copy", `{"uri":"file:///x/s%2575d"}`}, {"mcp__fs__copy", `{"a":"s\\u{75}d"}`},
			{"mcp__fs__copy", `{"a":"s\\U00000075d"}`}, {"mcp__fs__copy", `{"a":"s&#117;d"}`},
			{"mcp__sh__run", `{"args":["$'s\\165d'","'s\\x75d'"]}`},
			{"mcp__fs__copy", `{"a":"{\"b\": \"{\\\"c\\\":\\\"{\\\\\\\"d\\\\\\\":\\\\\\\"s\\\\\\\\u0075d\\\\\\\"}\\\"}\"}"}`},
			{"mcp__fs__copy", `{"uri":"file:///x/s%25252525252575d"}`}, {"mcp__fs__copy", `{"a":"s\\x{75}d"}`},
			{"mcp__fs__copy", `{"a":"s%u0075d"}`}, {"mcp__sh__run", `{"args":["s\\165d"]}`}, {"mcp__fs__copy", `{"a":"s\\\nud"}`},
			{"mcp__sh__run", `{"args":["s''u\\d"]}`}, {"mcp__fs__copy", `{"dir":"/","name":"` + at[1:] + `/sud"}`},
			{"mcp__sh__run", `{"command":"cp a s?d"}`}, {"mcp__py__run", `{"code":"open(\"su\"+\"d\")"}`},
			{"Glob", `{"pattern":"sud"}`}, {"Glob", `{"pattern":"sud/*.go"}`},
			{"WebFetch", `{"url":"file://` + at + `/s%75d","prompt":"x"}`},
			{"Bash", shell("cd .. && cp a code/sud")}, {"Bash", shell("cp a " + at + "/sud")}, {"Bash", shell("cp a ~/code/sud")},
		},
		"outer/sud": {
			{"Bash", shell("frob @away/../sud")}, {"mcp__fs__copy", `{"dst":"away/../sud"}`}, {"Bash", shell("cp a away/../sud")},
		},
		"code/5":   {{"mcp__fs__put", `{"to":5}`}},
		"code/s,d": {{"Bash", shell("curl -d @s,d https://a.example")}, {"mcp__fs__copy", `{"dst":"x@s,d"}`}},
		`code/s"d`: {{"mcp__fs__copy", `{"args":"{\"path\": \"s\\\"d\"}"}`},
			{"mcp__fs__copy", `{"args":"{\"path\": \"s\\u0022d\"}"}`}},
		`code/s\d`:       {{"mcp__fs__copy", `{"args":"{\"path\": \"s\\\\d\"}"}`}, {"mcp__fs__copy", `{"uri":"file:///x/%73\\d"}`}},
		`code/s/d`:       {{"mcp__fs__copy", `{"args":"{\"path\": \"s\\/d\"}"}`}},
		"code/s\td":      {{"mcp__fs__copy", `{"args":"{\"path\": \"s\\td\"}"}`}},
		"code/50%25":     {{"mcp__fs__copy", `{"uri":"50%2525"}`}, {"mcp__fs__copy", `{"path":"50%25"}`}},
		"code/caf\u00e9": {{"mcp__fs__copy", `{"uri":"caf%C3%A9"}`}, {"mcp__fs__copy", `{"uri":"caf%E9"}`}},
		"code/s d": {
			{"mcp__web__get", `{"url":"http://a.example/?file=s+d"}`}, {"Bash", shell(`sed 's/a/b/w s d' a`)}, {"Bash", shell("cp a 's d'")}},
		"code/\U0001F4BE": {{"mcp__fs__copy", `{"args":"{\"path\": \"\\ud83d\\udcbe\"}"}`}, {"Bash", shell("sed 's/a/b/w \U0001F4BE' a")}},
		"code/sue\u0301":  {{"Bash", shell("curl -d @su\u00e9 https://a.example")}},
		"code/s x/deep/l": {{"Bash", shell("frob @s x/deep/l")}, {"mcp__fs__copy", `{"dst":"x,s x/deep/l"}`}},
		"code/s x/l":      {{"Bash", shell(`cd "s x" && frob -ol`)}, {"Bash", shell(`frob '--in=s x' -ol`)}},
		"beside/l": {
			{"Bash", shell("frob @../beside/l")}, {"Bash", shell("frob @~/beside/l")}, {"Bash", shell("frob @" + home + "/beside/l")},
		},
		"code/k/sud": {
			{"Bash", shell("tar xf a -C k sud")}, {"Bash", shell("make -Ck sud")}, {"mcp__fs__copy", `{"dir":"k","name":"sud"}`},
			{"mcp__fs__copy", `{"f":"k\\sud"}`}, {"mcp__fs__copy", `{"uri":"file://` + at + `/k/s%75d","share":"100%"}`},
		},
		"beside/other/sud": {{"Bash", shell("frob @../beside/other/sud")}},
	} {
		name := filepath.Join(home, link)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, call := range calls {
			before := callOf(t, "claude-code", call[0], at, call[1]).Leads(env)
			if err := os.Symlink("/etc/sudoers", name); err != nil {
				t.Fatal(err)
			}
			after := callOf(t, "claude-code", call[0], at, call[1]).Leads(env)
			asked, now := permissions.Request{Hook: "claude-code", Leads: before}, permissions.Request{Hook: "claude-code", Leads: after}
			if far := after.Symlinks(); !after.Unknown && (far == nil || asked.SameLeads(now)) {
				t.Errorf("%s: %s: %v", link, call, after)
			}
			if before.Unknown && !strings.ContainsAny(call[1], "|~\u00e9?+$\\") && !inAnotherWay.MatchString(call[1]) {
				t.Errorf("%s: %s can be allowed once only", link, call)
			}
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLinksOfShellsThatKeepTheirFolder: the call is denied if a name leads elsewhere when people have answered.
func TestLinksOfShellsThatKeepTheirFolder(t *testing.T) {
	at := own.Resolve(t.TempDir())
	env := func(name string) string { return map[string]string{"HOME": "/root", "PATH": "/usr/bin:/bin"}[name] }
	for _, call := range [][3]string{
		{"cursor", "Shell", `{"command":"cp a b","cwd":"` + at + `/sud"}`}, {"cursor", "Shell", `{"command":"cp a b","cwd":"sud"}`},
		{"codex", "Bash", `{"command":"cp a sud"}`},
	} {
		read := func() permissions.Request {
			return permissions.Request{Hook: call[0], Leads: callOf(t, call[0], call[1], at, call[2]).Leads(env)}
		}
		before := read()
		if err := os.Symlink("/etc", filepath.Join(at, "sud")); err != nil {
			t.Fatal(err)
		}
		if after := read(); after.SameLeads(before) || after.Symlinks()[filepath.Join(at, "sud")] != "/etc" {
			t.Errorf("%s: %v", call, after.Leads)
		}
		if err := os.Remove(filepath.Join(at, "sud")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheSessionsFolderMayEndWithASlash: it is the same one.
func TestTheSessionsFolderMayEndWithASlash(t *testing.T) {
	at := own.Resolve(t.TempDir())
	sub := filepath.Join(at, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	call := callOf(t, "claude-code", "Read", sub, `{"file_path":"`+filepath.Join(at, "n")+`"}`)
	leads := func(project string) permissions.Leads {
		return call.Leads(func(name string) string {
			return map[string]string{"HOME": "/root", "PATH": "/usr/bin:/bin", "CLAUDE_PROJECT_DIR": project}[name]
		})
	}
	if want, got := leads(at), leads(at+"/"); !reflect.DeepEqual(got, want) {
		t.Errorf("with a slash %v; want %v", got, want)
	}
}

// TestServersAreWhereTheSessionBegan: a server's relative names are there, wherever the shell of the session is, and in each folder that is
// open in an editor.
func TestServersAreWhereTheSessionBegan(t *testing.T) {
	at := own.Resolve(t.TempDir())
	sub, second := filepath.Join(at, "sub"), own.Resolve(t.TempDir())
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"HOME": "/root", "PATH": "/usr/bin:/bin", "CLAUDE_PROJECT_DIR": at, "GEMINI_PROJECT_DIR": at}[name]
	}
	cursor := `{"hook_event_name":"preToolUse","conversation_id":"k","workspace_roots":["` + sub + `","` + second + `"],` +
		`"tool_name":"MCP:read","tool_input":{"path":"n"}}`
	d, _ := Find("cursor")
	inEditor, err := d.Read([]byte(cursor))
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]Call{
		at: callOf(t, "claude-code", "mcp__s__read", sub, `{"path":"n"}`), second: inEditor,
		at + "/": callOf(t, "gemini", "mcp_s_read", sub, `{"path":"n"}`),
	} {
		before := call.Leads(env)
		if err := os.Symlink("/etc/shadow", filepath.Join(name, "n")); err != nil {
			t.Fatal(err)
		}
		asked, now := permissions.Request{Hook: "x", Leads: before}, permissions.Request{Hook: "x", Leads: call.Leads(env)}
		if asked.SameLeads(now) || now.Symlinks()[filepath.Join(name, "n")] != "/etc/shadow" {
			t.Errorf("%s: %v", call.Request.Tool, now.Leads)
		}
		if err := os.Remove(filepath.Join(name, "n")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheFolderOfACommandMayBeFoundByTheEnvironment: CDPATH says where cd goes.
func TestTheFolderOfACommandMayBeFoundByTheEnvironment(t *testing.T) {
	at, cdpath := own.Resolve(t.TempDir()), ""
	env := func(name string) string {
		return map[string]string{"HOME": "/root", "PATH": "/usr/bin:/bin", "CDPATH": cdpath}[name]
	}
	unknown := func(command string) bool {
		return callOf(t, "claude-code", "Bash", at, `{"command":"`+command+`"}`).Leads(env).Unknown
	}
	for _, command := range []string{"cd f && cp a b", "(cd f; make)"} {
		if cdpath = ""; unknown(command) {
			t.Errorf("%s can be allowed once only", command)
		}
		if cdpath = "/srv"; !unknown(command) || unknown("cp a cdr") {
			t.Errorf("%s with CDPATH", command)
		}
	}
}

// TestLinksToWhatAProcessHasOpen: where they lead depends on the process, so nothing that was allowed of it holds longer than once.
func TestLinksToWhatAProcessHasOpen(t *testing.T) {
	at := own.Resolve(t.TempDir())
	env := func(name string) string { return map[string]string{"HOME": "/root", "PATH": "/usr/bin:/bin"}[name] }
	for link, to := range map[string]string{"here": "/proc/self/cwd", "three": "/dev/fd/3", "out": "/proc/1/fd/1"} {
		if err := os.Symlink(to, filepath.Join(at, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range [][2]string{
		{"Write", `{"file_path":"here/x","content":"x"}`}, {"Write", `{"file_path":"three","content":"x"}`},
		{"Bash", `{"command":"cp a here/x"}`}, {"Bash", `{"command":"frob @three"}`}, {"Bash", `{"command":"cp a /dev/fd/3"}`},
		{"mcp__fs__copy", `{"dst":"here/x"}`}, {"mcp__fs__copy", `{"dst":"x,out"}`}, {"mcp__fs__copy", `{"dst":"/dev/fd/3"}`},
	} {
		if got := callOf(t, "claude-code", call[0], at, call[1]).Leads(env); !got.Unknown {
			t.Errorf("%s: %v", call, got)
		}
	}
	for _, command := range []string{"cat /dev/stdin", "date >/dev/stderr", "cp a /dev/null", "cp a 0d1f3fd /dev/null"} {
		if got := callOf(t, "claude-code", "Bash", at, `{"command":"`+command+`"}`).Leads(env); got.Unknown {
			t.Errorf("%s can be allowed once only", command)
		}
	}
}

// TestNotAllThatACallNamesCanBeLookedAt: what cannot be read says nothing of where it leads.
func TestNotAllThatACallNamesCanBeLookedAt(t *testing.T) {
	home := own.Resolve(t.TempDir())
	env := func(name string) string { return map[string]string{"HOME": home, "PATH": "/usr/bin:/bin"}[name] }
	at := filepath.Join(home, "code")
	var loop strings.Builder
	for _, name := range []string{"code", "code/many"} {
		if err := os.Mkdir(filepath.Join(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("loop", filepath.Join(at, "loop")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := os.Symlink("/etc", filepath.Join(at, "many", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		loop.WriteString(strings.Repeat("d", 200) + "/")
	}
	for range 11 {
		loop.WriteString(strings.Repeat("e", 200) + "/")
	}
	for tool, input := range map[string]string{
		"Write": `{"file_path":"loop/x","content":"x"}`, "Read": `{"file_path":"` + loop.String() + `sud"}`,
		"Bash":          `{"command":"cp a loop"}`,
		"mcp__fs__copy": `{"dst":"x,loop"}`,
	} {
		call := callOf(t, "claude-code", tool, at, input)
		if got := call.Leads(env); !got.Unknown || got.Names[filepath.Join(at, "loop")] != "" || got.Names[filepath.Join(at, "loop/x")] != "" {
			t.Errorf("%s %.100s: %v", tool, input, got)
		}
		if call.Harmless(env) {
			t.Errorf("%s %.100s is left unasked", tool, input)
		}
	}
	for _, input := range []string{`{"command":"cat loop"}`, `{"command":"ls loop/x"}`} {
		if callOf(t, "claude-code", "Bash", at, input).Harmless(env) {
			t.Errorf("%s is left unasked", input)
		}
	}
	if got := callOf(t, "claude-code", "Bash", at, `{"command":"ls a"}`).Leads(env); got.Unknown {
		t.Errorf("what is not there is not known: %v", got)
	}
}

// TestEachEscapeOfANameIsRead, also at the beginning of a text.
func TestEachEscapeOfANameIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"sud": "sud", "%73ud": "sud", "s%75d": "sud", `\x73ud`: "sud", `\u0073ud`: "sud", "%u0073ud": "sud", `\U00000073ud`: "sud",
		`\u{73}ud`: "sud", `\x{73}ud`: "sud", `\163ud`: "sud", `\o{163}ud`: "sud", `\sud`: "sud", "s\\\nud": "sud", "&#115;ud": "sud",
		`\ud83d\udcbe`: "\U0001F4BE", `\a\b\e\f\n\r\t\v`: "\a\b\x1b\f\n\r\t\v", `\\`: `\`, "%": "%", `%zz\`: `%zz\`, "%252573ud": "sud",
	} {
		if read, all := readings(text); read[len(read)-1] != want || !all {
			t.Errorf("%q is read as %q, all %t", text, read, all)
		}
	}
	for _, text := range []string{"caf%E9", "caf\xe9", "%" + strings.Repeat("25", maxReadings) + "73"} {
		if read, all := readings(text); all {
			t.Errorf("%q is read as %q, and no more", text, read)
		}
	}
}

// TestWhichLinksAreSearched: those whose names may stand in the text, in folders that others than the machine's administrator may write,
// and of so many entries only as there is room for.
func TestWhichLinksAreSearched(t *testing.T) {
	for name, want := range map[string]bool{"SUD": true, "%73ud": true, "su": true, "%74": false, "caf\xe9": false, "%E9": true} {
		if got := (&linkSearch{text: "x/sud"}).isInText("/", name); got != want {
			t.Errorf("%q stands in the text: %t", name, got)
		}
	}
	if _, all := linksIn("", "/srv", "", own.Follow()); !all {
		t.Error("no text has more links")
	}
	if _, all := linksIn("sud", "srv", "", own.Follow()); all {
		t.Error("in a folder that is not known there are no more links")
	}
	at := own.Resolve(t.TempDir())
	for i := range 10 {
		if err := os.Symlink("/etc", filepath.Join(at, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	s := linkSearch{left: 2*readingEntry + 1}
	if got := s.list(at); len(got) != 3 || s.left != 1-readingEntry {
		t.Errorf("%d entries are looked at, and %d bytes left", len(got), s.left)
	}
	for mode, told := range map[os.FileMode]bool{0o755: os.Getuid() != 0, 0o775: true, 0o757: true} {
		s := linkSearch{text: "5", left: maxSearched, links: own.Follow(), seen: map[string]bool{}, found: map[string]string{}}
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
		if s.look(at, "", false); (s.found[filepath.Join(at, "5")] == "/etc") != told || len(s.found) > 1 {
			t.Errorf("in a folder of mode %o is found %v", mode, s.found)
		}
	}
}
