package hooks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// TestLook: the file that a call changes is read where it is a plain text, and nothing is waited for.
func TestLook(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "binary": "x\x00", "latin": "x\xff", "large": "x" + strings.Repeat("\n", maxRead),
		"largest": "x" + strings.Repeat("\n", maxRead-1), "begins binary": "\x00x",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	part := []permissions.Rows{{First: 2, Text: "2\n3\n4\nx\n6\n7\n8\n"}}
	for name, want := range map[string][]permissions.Rows{
		"a.go": part, "b/../a.go": part, "none": {{}}, "binary": nil, "latin": nil, "large": nil,
		"largest": {{First: 1, Text: "x\n\n\n\n"}}, "begins binary": nil, "pipe": nil, ".": nil, "a.go/below": nil,
	} {
		c := Call{Request: permissions.Request{Cwd: folder}}
		c.use("Edit", []byte(`{"file_path":"`+name+`","new_string":"y","old_string":"x"}`))
		c.ReadContext()
		if diff := cmp.Diff(want, c.Request.Rows); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	c := Call{Request: permissions.Request{Cwd: folder}}
	c.use("mcp__x__edit", []byte(`{"file_path":"a.go","new_string":"y","old_string":"x"}`))
	if c.ReadContext(); c.Request.Rows != nil {
		t.Error("a file is read for a tool that is not known to edit")
	}
}

// TestTheCommandsOfSkillsAreShown: an agent runs what stands in them, and no hook sees it.
func TestTheCommandsOfSkillsAreShown(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", filepath.Join(folder, "home"))
	long := strings.Repeat("x", maxFileCommands)
	fifty := `"hook.mentions":["x"` + strings.Repeat(`,"x"`, maxMentions-1) + `]`
	for name, text := range map[string]string{
		".claude/skills/notes/SKILL.md": "---\nname: notes\nhooks:\n  - command: \"echo hook\"\n---\n" +
			"Notes: !`rm -r x` and\n```!\nmake it\n```\n",
		".claude/skills/other/SKILL.md": "---\nname: 'named'\n---\n!`touch y`\ncommand: none\n",
		".claude/agents/helper.md":      "---\n---\nWork.\n",
		".gemini/commands/git/fix.toml": "prompt = \"!{git diff}\"", "home/.claude/commands/deploy.md": "!`make deploy`",
		".claude/skills/long/SKILL.md": "!`" + long + "y`", ".claude/commands/n1/n2/c3.md": "x ```!touch P``` y",
		".claude/skills/open/SKILL.md": "!`touch", ".claude/skills/given/SKILL.md": "!`cat $1`",
		".claude/agents/heads.md": "---\nskills: [pre]\n---\n", ".claude/agents/flow.md": "---\nhooks: {PreToolUse: [{command: x}]}\n---\n",
		".claude/skills/reads/SKILL.md": "See @secrets/at and @~/x. Mail a@b.example.",
		".claude/skills/most/SKILL.md":  "!`" + long + "`",
		".claude/commands/fifty.md":     strings.Repeat("@x ", maxMentions), ".claude/commands/more.md": strings.Repeat("@x ", maxMentions+1),
	} {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for call, want := range map[string]string{
		`Skill {"skill":"notes"}`: `"hook.commands":["rm -r x\nmake it\necho hook",0],` +
			`"hook.files":["F/.claude/skills/notes/SKILL.md"]`,
		`Skill {"skill":"named"}`:             `"hook.commands":"touch y","hook.files":["F/.claude/skills/other/SKILL.md"]`,
		`Agent {"subagent_type":"helper"}`:    `"hook.files":["F/.claude/agents/helper.md"]`,
		`Skill {"skill":"git:fix"}`:           `"hook.commands":"git diff","hook.files":["F/.gemini/commands/git/fix.toml"]`,
		`CronCreate {"prompt":"/deploy it"}`:  `"hook.commands":"make deploy","hook.files":["F/home/.claude/commands/deploy.md"]`,
		`activate_skill {"name":"long"}`:      `"hook.commands":["` + long + `",0],"hook.files":["F/.claude/skills/long/SKILL.md"]`,
		`Skill {"skill":"n1:n2:c3"}`:          `"hook.commands":"touch P","hook.files":["F/.claude/commands/n1/n2/c3.md"]`,
		`Skill {"skill":"open"}`:              `"hook.commands":["",0],"hook.files":["F/.claude/skills/open/SKILL.md"]`,
		`Skill {"skill":"given"}`:             `"hook.commands":["cat $1",0],"hook.files":["F/.claude/skills/given/SKILL.md"]`,
		`Agent {"subagent_type":"heads"}`:     `"hook.commands":["",0],"hook.files":["F/.claude/agents/heads.md"]`,
		`Agent {"subagent_type":"flow"}`:      `"hook.commands":["",0],"hook.files":["F/.claude/agents/flow.md"]`,
		`Skill {"skill":"reads"}`:             `"hook.files":["F/.claude/skills/reads/SKILL.md"],"hook.mentions":["secrets/at","~/x"]`,
		`Skill {"skill":"most"}`:              `"hook.commands":"` + long + `","hook.files":["F/.claude/skills/most/SKILL.md"]`,
		`Skill {"skill":"fifty"}`:             `"hook.files":["F/.claude/commands/fifty.md"],` + fifty,
		`Skill {"skill":"more"}`:              `"hook.commands":["",0],"hook.files":["F/.claude/commands/more.md"],` + fifty,
		`Skill {"skill":"none"}`:              `"hook.commands":["",0]`,
		`Skill {"skill":"../agents/helper"}`:  `"hook.commands":["",0]`,
		`Agent {"subagent_type":"Explore"}`:   "",
		`mcp__x__skill {"skill":"notes"}`:     "",
		`Agent {"prompt":"notes and /notes"}`: "",
	} {
		tool, input, _ := strings.Cut(call, " ")
		c := Call{Request: permissions.Request{Cwd: folder + "/below"}}
		c.use(tool, []byte(input))
		if want != "" {
			want = strings.ReplaceAll(want, "F/", folder+"/") + ","
		}
		if c.ReadContext(); string(c.Request.Input) != "{"+want+input[1:] {
			t.Errorf("%s: %s", call, c.Request.Input)
		}
	}
}

// TestOfTooManySkillsThereMayBeMoreCommands: of so many files each is found by the name in it, and of one more nobody says what is run.
func TestOfTooManySkillsThereMayBeMoreCommands(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", filepath.Join(folder, "home"))
	commands := filepath.Join(folder, ".claude/commands")
	if err := os.MkdirAll(commands, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(n int) string { return fmt.Sprintf("%s/c%04d.md", commands, n) }
	follows := func(n int, want string) {
		c := Call{Request: permissions.Request{Cwd: folder}}
		c.use("Skill", fmt.Appendf(nil, `{"skill":"n%d"}`, n))
		if c.ReadContext(); string(c.Request.Input) != fmt.Sprintf(`{%s,"skill":"n%d"}`, want, n) {
			t.Errorf("of file %d: %s", n, c.Request.Input)
		}
	}
	for n := range maxFiles {
		if n == maxFiles-1 {
			follows(n-1, `"hook.files":["`+file(n-1)+`"]`)
		}
		if err := os.WriteFile(file(n), fmt.Appendf(nil, "---\nname: n%d\n---\n", n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	follows(maxFiles-1, `"hook.commands":["",0]`)
	follows(0, `"hook.commands":["",0],"hook.files":["`+file(0)+`"]`)
}

// TestTheFilesThatASkillReadsByItsArgumentsAreNamed: deny rules hold for them, and the call is high risk.
func TestTheFilesThatASkillReadsByItsArgumentsAreNamed(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", filepath.Join(folder, "home"))
	if err := os.MkdirAll(filepath.Join(folder, ".claude/commands"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"all": "See @$ARGUMENTS.", "nth": "See @docs/${1}", "list": "See @$ARGUMENTS[0]"} {
		if err := os.WriteFile(filepath.Join(folder, ".claude/commands", name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for call, want := range map[string]string{
		`Skill {"args":"secrets/at 'b'","skill":"all"}`: `["$ARGUMENTS","secrets/at","b"]`, `Skill {"skill":"all"}`: `["$ARGUMENTS"]`,
		`SlashCommand {"command":"/nth at"}`: `["docs/${1}","docs/at"]`,
		`Skill {"args":"x","skill":"list"}`:  `["$ARGUMENTS[0]","x"]`,
	} {
		tool, input, _ := strings.Cut(call, " ")
		c := Call{Request: permissions.Request{Cwd: folder}}
		c.use(tool, []byte(input))
		c.ReadContext()
		var got members
		if err := json.Unmarshal(c.Request.Input, &got); err != nil {
			t.Fatal(err)
		}
		if string(got[acts.FileMentions]) != want || string(got[acts.FileCommands]) != `["",0]` {
			t.Errorf("%s: %s", call, c.Request.Input)
		}
	}
}

// TestGeminiMayChangeAnotherFileThanItNames: of a relative name that is not there it looks for the end of in all of its folders.
func TestGeminiMayChangeAnotherFileThanItNames(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "there.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"gemini", "claude-code"} {
		for name, want := range map[string]bool{"there.txt": false, "none.txt": true, "@there.txt": true, folder + "/none.txt": false} {
			c := Call{dialect: dialect, Request: permissions.Request{Cwd: folder}}
			c.use("replace", []byte(`{"file_path":"`+name+`","instruction":"i","new_string":"y","old_string":"x"}`))
			c.ReadContext()
			if got := strings.Contains(string(c.Request.Input), acts.FileElsewhere); got != (want && dialect == "gemini") {
				t.Errorf("%s, %s: %s", dialect, name, c.Request.Input)
			}
		}
	}
}

// TestAServerOfAProjectIsNotTheAccountsOfItsName: what is allowed to that is not allowed to the one that takes its place.
func TestAServerOfAProjectIsNotTheAccountsOfItsName(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", other)
	read := func(server string) string {
		c := Call{dialect: "claude-code", Request: permissions.Request{Cwd: home}}
		c.use("mcp__meta__x", []byte(`{"hook.mcp_server":`+server+`}`))
		c.ReadContext()
		return string(c.Request.Input)
	}
	const ofProject, renamed = `{"name":"meta","source":"project"}`, `{"hook.mcp_server":{"name":"meta (of the project)","source":"project"}}`
	if got := read(ofProject); got != `{"hook.mcp_server":`+ofProject+`}` {
		t.Errorf("without settings: %s", got)
	}
	for _, folder := range []string{home, other} {
		for text, want := range map[string]string{
			`{"mcpServers":{"meta":{}}}`: renamed, `{"mcpServers":{"other":{}}}`: `{"hook.mcp_server":` + ofProject + `}`, `{`: renamed,
			`{"projects":{"/elsewhere":{"mcpServers":{"meta":{}}}}}`:  renamed,
			`{"projects":{"/elsewhere":{"mcpServers":{"other":{}}}}}`: `{"hook.mcp_server":` + ofProject + `}`,
		} {
			if err := os.WriteFile(filepath.Join(folder, ".claude.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := read(ofProject); got != want {
				t.Errorf("with %s: %s", text, got)
			}
			if got := read(`{"name":"meta","source":"user"}`); got != `{"hook.mcp_server":{"name":"meta","source":"user"}}` {
				t.Errorf("one of the account with %s: %s", text, got)
			}
		}
		if err := os.Remove(filepath.Join(folder, ".claude.json")); err != nil {
			t.Fatal(err)
		}
	}
}
