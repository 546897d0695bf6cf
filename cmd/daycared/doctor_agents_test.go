package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/cmd/daycared/connect"
)

// somebody is an account with both agents connected, whose PATH has the program of one of them: a script.
func somebody(t *testing.T, agent, script string) (*CLI, connect.Agent) {
	t.Helper()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	c := &CLI{UID: os.Getuid(), Environ: []string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "DAYCARED_TOKEN=secret"}}
	place := connect.Target{Home: home, GOOS: "linux", Command: []string{"/usr/local/bin/daycared", "--socket", "/run/x/agent"}, Etc: home}
	a, _ := place.Find(agent)
	for _, f := range a.Files {
		text, err := f.Install("")
		if err != nil {
			t.Fatal(err)
		}
		put(t, f.Path, text, 0o600)
	}
	put(t, filepath.Join(bin, a.Listing.Program), "#!/bin/sh\n"+script, 0o700)
	return c, a
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // a process begun meanwhile would hold a program open for writing, and it could not run
	err := os.WriteFile(path, []byte(text), mode)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatAnAgentSaysOfItsHooksDecidesWhatTheDoctorSays: each answer was recorded with the real program. The one that gives it here
// reads the question first, and fails where that is another.
func TestWhatAnAgentSaysOfItsHooksDecidesWhatTheDoctorSays(t *testing.T) {
	recorded, err := txtar.ParseFile("testdata/listings/recorded.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range recorded.Files {
		all[f.Name] = string(f.Data)
	}
	off := "it runs no hooks: disableAllHooks is set in its "
	managedOnly := "it runs the hooks of its managed settings alone, and daycared's is not among them"
	for name, want := range map[string]struct {
		why  string
		runs bool
	}{
		"claude-code/runs":               {"", true},
		"claude-code/disabled":           {off + "settings", false},
		"claude-code/disabled-by-policy": {off + "managed settings", false},
		"claude-code/malformed":          {"it ignores what it cannot read: /home/fay/.claude/settings.json: Invalid or malformed JSON", false},
		"claude-code/invalid":            {"it ignores what it cannot read: /home/fay/.claude/settings.json: Invalid command hook (", false},
		"claude-code/safe-mode":          {"it runs in safe mode, without hooks (unset CLAUDE_CODE_SAFE_MODE)", false},
		"claude-code/none":               {"it does not list daycared's hook", false},
		"claude-code/managed-only":       {managedOnly, false},
		"claude-code/managed":            {managedOnly, false}, // it says that there is one, and not whose
		"claude-code/plugin-only":        {"it runs the hooks of plugins alone: strictPluginOnlyCustomization is set", false},
		"codex/runs":                     {"", true},
		"codex/untrusted":                {"it skips hooks that are not trusted: interrupt, permissionRequest, preToolUse, sessionEnd", false},
		"codex/half-trusted":             {"it skips hooks that are not trusted: interrupt, permissionRequest, sessionEnd", true},
		"codex/modified":                 {"it skips hooks that were changed since they were trusted: permissionRequest, preToolUse", false},
		"codex/disabled":                 {"switched off: interrupt, permissionRequest, preToolUse, sessionEnd", false},
		"codex/feature-off":              {"it does not list daycared's hook", false},
		"codex/malformed":                {"it ignores what it cannot read: /home/fay/.codex/config.toml:35:6: unclosed array", false},
		"codex/managed-only":             {"it does not list daycared's hook", false},
		"codex/managed":                  {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, _, _ := strings.Cut(name, "/")
			c, a := somebody(t, agent, "")
			answer := filepath.Join(c.env("HOME"), "answer")
			put(t, answer, all[name], 0o600)
			lines := a.Listing.Lines(c.env("HOME"))
			script := "test \"$DAYCARED_TOKEN\" = '' && test \"$PWD\" = \"$HOME\" || exit 3\n"
			for line := range strings.Lines(lines) {
				script += "read -r said; test \"$said\" = '" + strings.TrimSpace(line) + "' || exit 4\n"
			}
			put(t, filepath.Join(c.env("HOME"), "bin", a.Listing.Program), "#!/bin/sh\n"+script+"cat "+answer+"\ncat >/dev/null\n", 0o700)
			h := c.runsHook(t.Context(), a, false)
			if !h.asked || h.unasked != "" || h.runs != want.runs || want.why == "" && h.why != "" || !strings.HasPrefix(h.why, want.why) {
				t.Errorf("%+v, want %+v", h, want)
			}
			if (h.remedy == "") != (h.why == "") {
				t.Errorf("%q is fixed by %q", h.why, h.remedy)
			}
			for _, row := range rowsOf(a, h, managed{}) {
				if (row.Verdict == connect.BindsUnless) != want.runs || !row.Asked {
					t.Errorf("%+v", row)
				}
			}
		})
	}
	if len(recorded.Files) != 19 {
		t.Errorf("%d answers are recorded", len(recorded.Files))
	}
}

// TestAnAgentThatDoesNotAnswerDoesNotKeepTheDoctor: nor does what it started, whatever that holds on to; and none of it stays.
func TestAnAgentThatDoesNotAnswerDoesNotKeepTheDoctor(t *testing.T) {
	defer func(was time.Duration) { askWithin = was }(askWithin)
	for name, try := range map[string]struct{ script, want string }{
		"hangs":            {"exec sleep 300", "it did not answer within 500ms"},
		"hangs by a child": {"sleep 300 & echo $! >$HOME/child; wait", "it did not answer within 500ms"},
		"leaves a child with its output": {"setsid sh -c 'echo $$ >$HOME/child; exec sleep 300' & exit 0",
			"it did not answer within 500ms"},
		"leaves a child without its output": {"setsid sh -c 'echo $$ >$HOME/child; exec sleep 300' >/dev/null 2>&1 & " +
			"while ! test -s $HOME/child; do :; done; exit 0", "it ended, or said too much, without an answer"},
		"leaves a child of a child": {"setsid setsid sh -c '(echo $$ >$HOME/child; exec sleep 300) & exec sleep 300' & wait",
			"it did not answer within 500ms"},
		"ignores signals": {"trap '' TERM INT HUP PIPE; while :; do sleep 1; done", "it did not answer within 500ms"},
		"ends":            {"exit 0", "it ended, or said too much, without an answer"},
		"fails":           {"echo broken >&2; exit 7", "it ended, or said too much, without an answer"},
		"says no JSON":    {"echo hello; echo '{'; exit 0", "it ended, or said too much, without an answer"},
		"a huge line":     {"yes | tr -d '\\n' | head -c 9000000", "its answer is too long"},
		"too many lines": {"yes \"{\\\"x\\\":\\\"$(head -c 9000 /dev/zero | tr '\\0' x)\\\"}\" | head -c 40000000",
			"it ended, or said too much, without an answer"},
		"refuses": {`echo '{"type":"control_response","response":{"subtype":"error","error":"no such request"}}'`,
			"it does not list its hooks: no such request"},
		"another shape": {`echo '{"type":"control_response","response":[]}'`, "it ended, or said too much, without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if askWithin = 20 * time.Second; strings.Contains(try.want, "500ms") {
				askWithin = 500 * time.Millisecond
			}
			c, a := somebody(t, "claude-code", try.script)
			began := time.Now()
			h := c.runsHook(t.Context(), a, false)
			if h.asked || h.unasked != try.want || !h.runs || h.why != "" {
				t.Errorf("%+v, want unasked: %s", h, try.want)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it took %s", took)
			}
			pid, err := os.ReadFile(filepath.Join(c.env("HOME"), "child"))
			if err != nil {
				return
			}
			ended := func() (struct{}, error) { // it was killed, and may still be on its way out
				state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
				if err == nil && !strings.Contains(string(state), ") Z ") {
					return struct{}{}, fmt.Errorf("its child stays: %s", state)
				}
				return struct{}{}, nil
			}
			if _, err := backoff.Retry(t.Context(), ended, backoff.WithMaxElapsedTime(10*time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOnlyAProgramOfThisAccountOrOfRootIsRun: no other account can have the doctor run what it likes.
func TestOnlyAProgramOfThisAccountOrOfRootIsRun(t *testing.T) {
	ran := func(c *CLI) bool { return exists(filepath.Join(c.env("HOME"), "ran")) }
	for name, try := range map[string]struct {
		change func(t *testing.T, c *CLI, program string)
		want   string
	}{
		"not there": {func(_ *testing.T, _ *CLI, program string) { _ = os.Remove(program) },
			"it is not installed (no claude on the PATH)"},
		"a folder": {func(_ *testing.T, _ *CLI, program string) { _ = os.Remove(program); _ = os.Mkdir(program, 0o700) },
			"it is not installed (no claude on the PATH)"},
		"not to be run": {func(_ *testing.T, _ *CLI, program string) { _ = os.Chmod(program, 0o600) },
			"it is not installed (no claude on the PATH)"},
		"in the folder where this is run": {func(t *testing.T, c *CLI, program string) {
			t.Chdir(filepath.Dir(program))
			c.Environ = append([]string{"PATH=:."}, c.Environ...)
		}, "it is not installed (no claude on the PATH)"},
		"open to others": {func(_ *testing.T, _ *CLI, program string) { _ = os.Chmod(program, 0o777) },
			"claude is not run: accounts besides this one and root could change it"},
		"in a folder that is open to others": {func(_ *testing.T, _ *CLI, program string) { _ = os.Chmod(filepath.Dir(program), 0o777) },
			"claude is not run: accounts besides this one and root could change it"},
		"a link to one that is": {func(t *testing.T, c *CLI, program string) {
			open := filepath.Join(c.env("HOME"), "open")
			put(t, open, "#!/bin/sh\ntouch $HOME/ran\n", 0o700)
			_ = os.Chmod(open, 0o777)
			_ = os.Remove(program)
			_ = os.Symlink(open, program)
		}, "claude is not run: accounts besides this one and root could change it"},
		"run by an interpreter that is open to others": {func(t *testing.T, c *CLI, program string) {
			open := filepath.Join(c.env("HOME"), "sh")
			put(t, open, "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0o700)
			_ = os.Chmod(open, 0o777)
			put(t, program, "#!"+open+"\ntouch $HOME/ran\n", 0o700)
		}, "claude is not run: accounts besides this one and root could change it"},
		"run by what the PATH has, which is open to others": {func(t *testing.T, c *CLI, program string) {
			open := filepath.Join(filepath.Dir(program), "runner")
			put(t, open, "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0o700)
			_ = os.Chmod(open, 0o777)
			put(t, program, "#!/usr/bin/env -S runner -e\ntouch $HOME/ran\n", 0o700)
		}, "claude is not run: accounts besides this one and root could change it"},
		"a link by way of a folder that is open to others": {func(t *testing.T, c *CLI, program string) {
			open := filepath.Join(c.env("HOME"), "open")
			target := filepath.Join(c.env("HOME"), "real")
			put(t, target, "#!/bin/sh\ntouch $HOME/ran\n", 0o700)
			_ = os.Mkdir(open, 0o700)
			_ = os.Chmod(open, 0o777)
			_ = os.Symlink(target, filepath.Join(open, "hop"))
			_ = os.Remove(program)
			_ = os.Symlink(filepath.Join(open, "hop"), program)
		}, "claude is not run: accounts besides this one and root could change it"},
		"links in a circle": {func(_ *testing.T, c *CLI, program string) {
			put(t, program, "#!"+program+"\ntouch $HOME/ran\n", 0o700)
		}, "claude is not run: accounts besides this one and root could change it"},
		"a home that others write": {func(_ *testing.T, c *CLI, _ string) { _ = os.Chmod(c.env("HOME"), 0o777) },
			"which other accounts could change or replace"},
		"a home that others write, each their own": {func(_ *testing.T, c *CLI, _ string) {
			_ = os.Chmod(c.env("HOME"), 0o777|fs.ModeSticky)
		}, "which other accounts could change or replace"},
		"settings in a folder that others write": {func(_ *testing.T, c *CLI, _ string) {
			open := filepath.Join(c.env("HOME"), "open")
			_ = os.MkdirAll(filepath.Join(open, "settings"), 0o700)
			_ = os.Chmod(open, 0o777)
			c.Environ = append(c.Environ, "CLAUDE_CONFIG_DIR="+filepath.Join(open, "settings"))
		}, "which other accounts could change or replace"},
		"another account's home": {func(_ *testing.T, c *CLI, _ string) { c.UID++ }, "which is another account's; run this as that account"},
		"settings of another account": {func(_ *testing.T, c *CLI, _ string) {
			c.Environ = append(c.Environ, "CLAUDE_CONFIG_DIR=/proc/1/root") // which is nobody's that is not root
			if c.UID == 0 {
				c.Environ[len(c.Environ)-1] = "CLAUDE_CONFIG_DIR=" + foreign(c)
			}
		}, "CLAUDE_CONFIG_DIR is "},
	} {
		t.Run(name, func(t *testing.T) {
			c, a := somebody(t, "claude-code", "touch $HOME/ran\n")
			try.change(t, c, filepath.Join(c.env("HOME"), "bin", "claude"))
			h := c.runsHook(t.Context(), a, false)
			if ran(c) || h.asked || !strings.Contains(h.unasked, try.want) {
				t.Errorf("ran %t, %+v, want %s", ran(c), h, try.want)
			}
		})
	}
	c, a := somebody(t, "claude-code", "touch $HOME/ran\n")
	if c.runsHook(t.Context(), a, false); !ran(c) {
		t.Error("nor is one that is its own")
	}
}

// TestWhatAGroupMayWriteIsNotKept, for root and for others, unless the group has the account's own number.
func TestWhatAGroupMayWriteIsNotKept(t *testing.T) {
	defer func(was int) { rootUID = was }(rootUID)
	rootUID = os.Getuid() // whose file it is
	path := filepath.Join(t.TempDir(), "program")
	put(t, path, "", 0o700)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		mode fs.FileMode
		uid  int
		kept bool
	}{
		{0o700, groupOf(info) + 1, true}, {0o755, groupOf(info) + 1, true}, {0o720, groupOf(info) + 1, false},
		{0o702, groupOf(info) + 1, false}, {0o720, rootUID, false}, {0o700, rootUID, true},
	} {
		if err := os.Chmod(path, try.mode); err != nil {
			t.Fatal(err)
		}
		if got := (&CLI{}).keptBy(path, try.uid); got != try.kept {
			t.Errorf("%o, by %d: %t", try.mode, try.uid, got)
		}
	}
}

// TestNoSettingsAreWrittenWhereALinkLeadsToAnotherAccounts: that account could have root write there.
func TestNoSettingsAreWrittenWhereALinkLeadsToAnotherAccounts(t *testing.T) {
	home := t.TempDir()
	target, link := filepath.Join(home, "target.json"), filepath.Join(home, ".claude", "settings.json")
	put(t, target, "{}", 0o600)
	put(t, filepath.Join(home, ".claude", "x"), "", 0o600)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	a, _ := connect.Target{Home: home, GOOS: "linux", Command: []string{"/bin/daycared", "--socket", "/run/agent"}}.Find("claude-code")
	c := &CLI{UID: os.Getuid() + 1, Out: io.Discard, Err: io.Discard} // whose file it is not
	err := c.connectTo(t.Context(), a, &connection{})
	if err == nil || !strings.Contains(err.Error(), "is another account's; nothing was written") {
		t.Error(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
	for path, others := range map[string]bool{link: true, target: false} {
		_, mine := lookOwn(connect.File{Path: path}, os.Getuid())
		_, theirs := lookOwn(connect.File{Path: path}, c.UID)
		if mine != nil || (theirs != nil) != others {
			t.Errorf("%s: %v, %v", path, mine, theirs)
		}
	}
}

// TestConnectKeepsWhoseTheSettingsAre: of what is there, otherwise of the folder around it. Run by root it made them root's.
func TestConnectKeepsWhoseTheSettingsAre(t *testing.T) {
	home := t.TempDir()
	_ = os.Chown(home, 12345, 12345) // only root can
	put(t, filepath.Join(home, ".claude.json"), "{}", 0o640)
	_ = os.Chown(filepath.Join(home, ".claude.json"), 12346, 12347)
	ids := func(name string) string {
		t.Helper()
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ownerOf(info), groupOf(info), info.Mode().Perm())
	}
	file, folder := ids(".claude.json"), strings.Fields(ids("."))
	a, _ := connect.Target{Home: home, GOOS: "linux", Command: []string{"/bin/daycared", "--socket", "/run/agent"}}.Find("claude-code")
	c := &CLI{UID: os.Getuid(), Out: io.Discard, Err: io.Discard, Environ: []string{"HOME=" + home, "PATH=" + home}}
	c.socketFlag = filepath.Join(home, "socket")
	if err := c.connectTo(t.Context(), a, &connection{}); err != nil {
		t.Fatal(err)
	}
	if is := ids(".claude.json"); is != file || ids(".claude.json.before-daycared") != file {
		t.Errorf("the file was %s and is %s", file, is)
	}
	for _, name := range []string{".claude", ".claude/settings.json"} {
		if is := strings.Fields(ids(name)); !slices.Equal(is[:2], folder[:2]) {
			t.Errorf("%s is of %s; its folder is of %s", name, is, folder)
		}
	}
	link := filepath.Join(home, ".claude.json")
	if err := errors.Join(os.Remove(link), os.Symlink("nowhere", link)); err != nil {
		t.Fatal(err)
	}
	err := c.connectTo(t.Context(), a, &connection{})
	if err == nil || !strings.Contains(err.Error(), "is a symlink that leads nowhere; nothing was written") {
		t.Error(err)
	}
}

// TestRemoveRestoresWhatWasThere byte for byte, also what was connected in another way than it is removed.
func TestRemoveRestoresWhatWasThere(t *testing.T) {
	for _, name := range connect.Names() {
		for _, was := range []string{"", "{}", "{\r\n\t\"a\": [1,\r\n 2]  }", "{\"hooks\":{},\"mcpServers\":{ }}\n\n", "# mine\n[a]\nb=1"} {
			home := t.TempDir()
			c := &CLI{UID: os.Getuid(), Out: io.Discard, Err: io.Discard, Environ: []string{"HOME=" + home, "PATH=" + home}}
			c.socketFlag = filepath.Join(home, "socket")
			place := connect.Target{Home: home, GOOS: "linux", Command: []string{"/bin/daycared", "--socket", "/run/agent"}}
			plain, _ := place.Find(name)
			if isTOML := strings.HasSuffix(plain.Files[0].Path, ".toml"); was != "" && isTOML != strings.HasPrefix(was, "#") {
				continue
			}
			place.Gate, place.Keyboard, place.Refused = connect.GateRisky, true, true
			other, _ := place.Find(name)
			file := plain.Files[0].Path
			put(t, file, was, 0o640)
			for _, a := range []connect.Agent{other, plain, other} {
				if err := c.connectTo(t.Context(), a, &connection{}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if err := c.disconnect(t.Context(), plain, &connection{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := os.ReadFile(file)
			if err != nil || string(text) != was || exists(file+".before-daycared") {
				t.Errorf("%s: %q became %q, %v; backup is left: %t", name, was, text, err, exists(file+".before-daycared"))
			}
			for _, f := range plain.Files[1:] {
				if exists(f.Path) {
					t.Errorf("%s: %s is left", name, f.Path)
				}
			}
		}
	}
}

// TestRootFollowsNoLinkOfAnotherAccount to a file that is not that account's.
func TestRootFollowsNoLinkOfAnotherAccount(t *testing.T) {
	home, roots := t.TempDir(), t.TempDir()
	put(t, filepath.Join(roots, "settings.json"), "{}", 0o600)
	theirs := filepath.Join(home, "theirs")
	put(t, filepath.Join(theirs, "settings.json"), "{}", 0o600)
	if os.Chown(home, 12345, 12345) != nil {
		return // only root can, and only root is asked to
	}
	for target, refused := range map[string]bool{roots: true, theirs: false} {
		link := filepath.Join(home, filepath.Base(target)+".link")
		err := errors.Join(os.Symlink(target, link), os.Lchown(link, 12345, 12345),
			os.Chown(theirs, 12345, 12345), os.Chown(filepath.Join(theirs, "settings.json"), 12345, 12345))
		if err != nil {
			t.Fatal(err)
		}
		s, err := lookOwn(connect.File{Path: filepath.Join(link, "settings.json")}, rootUID)
		if (err != nil) != refused || !refused && s.uid != 12345 {
			t.Errorf("to %s: of %d, %v", target, s.uid, err)
		}
	}
}

// foreign makes a folder of another account, which only root can.
func foreign(c *CLI) string {
	folder := filepath.Join(c.env("HOME"), "foreign")
	_ = os.Mkdir(folder, 0o700)
	_ = os.Chown(folder, 12345, 12345)
	return folder
}

// TestAFolderThatIsNotTrustedIsNotWhereAnAgentIsStarted: what it has in its settings would run there.
func TestAFolderThatIsNotTrustedIsNotWhereAnAgentIsStarted(t *testing.T) {
	for _, agent := range []string{"claude-code", "codex"} {
		c, a := somebody(t, agent, "pwd >$HOME/where\n")
		folder := filepath.Join(c.env("HOME"), "cloned", "deep")
		put(t, filepath.Join(folder, "x"), "", 0o600)
		t.Chdir(folder)
		where := func() string {
			c.runsHook(t.Context(), a, false)
			at, _ := os.ReadFile(filepath.Join(c.env("HOME"), "where"))
			return strings.TrimSpace(string(at))
		}
		if at := where(); at != c.env("HOME") {
			t.Errorf("%s is started in %s", agent, at)
		}
		text := fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", filepath.Dir(folder))
		if agent == "claude-code" {
			text = fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":true}}}`, filepath.Dir(folder))
		}
		put(t, a.Listing.Trusted.Path, text, 0o600)
		if at := where(); at != folder {
			t.Errorf("trusted, %s is started in %s", agent, at)
		}
		put(t, a.Listing.Trusted.Path, strings.NewReplacer("true", "false", `"trusted"`, `"untrusted"`).Replace(text), 0o600)
		if at := where(); at != c.env("HOME") {
			t.Errorf("not trusted, %s is started in %s", agent, at)
		}
	}
}

// TestSettingsThatSwitchHooksOffAreRead: where no agent can be asked, by its files.
func TestSettingsThatSwitchHooksOffAreRead(t *testing.T) {
	for _, try := range []struct{ agent, file, text, want string }{
		{"claude-code", ".claude/settings.json", `{"disableAllHooks":true}`, "disableAllHooks = true in "},
		{"claude-code", ".claude/settings.json", `{"disableAllHooks":false}`, ""},
		{"codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false in "},
		{"codex", ".codex/config.toml", "[features]\nhooks = true\n", ""},
		{"gemini", ".gemini/settings.json", "{\n// mine\n\"hooksConfig\":{\"enabled\":false},}", "hooksConfig.enabled = false in "},
		{"gemini", ".gemini/settings.json", `{"hooksConfig":{"disabled":["x","daycared"]}}`, "hooksConfig.disabled = daycared in "},
		{"gemini", ".gemini/settings.json", `{"hooksConfig":{"enabled":true,"disabled":["x"]}}`, ""},
		{"gemini", ".gemini/settings.json", `{"hooksConfig":{"enabled":{}}}`, ""},
		{"copilot", ".copilot/settings.json", `{"disableAllHooks":true}`, "disableAllHooks = true in "},
		{"copilot", ".copilot/config.json", `{"disableAllHooks":true}`, "disableAllHooks = true in "},
		{"copilot", ".copilot/hooks/daycared.json", `{"disableAllHooks":true}`, "disableAllHooks = true in "},
		{"vscode", ".config/Code/User/settings.json", `{"chat.useHooks":false,}`, "chat.useHooks = false in "},
	} {
		c, a := somebody(t, try.agent, "exit 1")
		put(t, filepath.Join(c.env("HOME"), try.file), try.text, 0o600)
		h := c.runsHook(t.Context(), a, false)
		said := h.why + h.note
		if try.want == "" && said != "" || !strings.Contains(said, try.want) || h.asked {
			t.Errorf("%s, %s: %+v", try.agent, try.text, h)
		}
		for _, row := range rowsOf(a, h, managed{}) {
			nothing := try.want != "" && try.agent != "vscode" || try.agent == "codex" // which has to trust it first
			if (row.Verdict == connect.Nothing) != nothing || row.Note == "" && nothing {
				t.Errorf("%s, %s: %+v", try.agent, try.text, row)
			}
		}
	}
	c, a := somebody(t, "claude-code", "exit 1")
	c.Environ = append(c.Environ, "CLAUDE_CODE_SIMPLE=1")
	if h := c.runsHook(t.Context(), a, false); h.runs || !strings.Contains(h.why, "CLAUDE_CODE_SIMPLE") {
		t.Errorf("%+v", h)
	}
}

// TestSettingsOfAFolderThatSwitchHooksOffAreRead where it is the current one.
func TestSettingsOfAFolderThatSwitchHooksOffAreRead(t *testing.T) {
	for _, try := range []struct{ agent, file, text string }{
		{"gemini", ".gemini/settings.json", `{"hooksConfig":{"enabled":false}}`},
		{"gemini", ".gemini/settings.json", `{"hooksConfig":{"disabled":["daycared"]}}`},
		{"claude-code", ".claude/settings.json", `{"disableAllHooks":true}`},
		{"claude-code", ".claude/settings.local.json", `{"disableAllHooks":true}`},
		{"codex", ".codex/config.toml", "[features]\nhooks = false\n"},
	} {
		c, a := somebody(t, try.agent, "exit 1")
		folder := t.TempDir()
		put(t, filepath.Join(folder, try.file), try.text, 0o600)
		t.Chdir(folder)
		if h := c.runsHook(t.Context(), a, false); h.runs || !strings.Contains(h.why, " in "+try.file) {
			t.Errorf("%s, %s: %+v", try.agent, try.text, h)
		}
	}
}

// TestSettingsOfAFolderThatGiveCodexATerminalAreTold where it is the current one.
func TestSettingsOfAFolderThatGiveCodexATerminalAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"features.unified_exec_tty = true": "no rule holds for it: .codex/config.toml has features.unified_exec_tty = true", "a = 1": "",
		"features.unified_exec_tty = false": "",
	} {
		c, a := somebody(t, "codex", "exit 1")
		folder := t.TempDir()
		put(t, filepath.Join(folder, ".codex", "config.toml"), text, 0o600)
		t.Chdir(folder)
		if h := c.runsHook(t.Context(), a, false); !strings.HasSuffix(h.open, want) || (h.open == "") != (want == "") {
			t.Errorf("%s: %+v", text, h)
		}
	}
}

// TestWhatRootHasSetBindsOnlyWhereTheAccountCannotGetPastIt.
func TestWhatRootHasSetBindsOnlyWhereTheAccountCannotGetPastIt(t *testing.T) {
	defer func(was int) { rootUID = was }(rootUID)
	rootUID = os.Getuid() // whose files these are
	etc := t.TempDir()
	socket := filepath.Join("/proc", "self", "agent") // in a folder that is there, and not of the account that asks
	binary := filepath.Join(etc, "daycared")
	put(t, binary, "", 0o700)
	hook := func(dialect, more string) string {
		return binary + " --socket " + socket + " hook " + dialect + " --within 59m" + more
	}
	claude := func(command, env string) string {
		return `{"env":{` + env + `},"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"` + command + `"}]}]}}`
	}
	open := filepath.Join(etc, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, os.ModeSticky|0o777)); err != nil {
		t.Fatal(err)
	}
	asks := func(place string) string {
		return strings.Replace(hook("claude-code", ""), "--socket "+socket, place, 1)
	}
	pins := `"CLAUDE_CODE_SHELL_PREFIX":"","LD_PRELOAD":"","LD_AUDIT":"","LD_LIBRARY_PATH":"","BASH_ENV":""`
	for _, try := range []struct {
		agent, file, text string
		want              connect.Verdict
		note              string
		change            func(c *CLI, file string)
	}{
		{"claude-code", "claude-code/managed-settings.json", claude(hook("claude-code", ""), pins), connect.Binds, "", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(hook("claude-code", ""), `"LD_PRELOAD":""`), connect.BindsUnless,
			"does not set CLAUDE_CODE_SHELL_PREFIX, LD_AUDIT", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(hook("claude-code", " || true"), pins), connect.BindsUnless,
			"not as daycared connect writes it", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(binary+" hook claude-code --within 59m", pins), connect.BindsUnless,
			"does not say which daemon", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(asks("--socket "+open+"/s"), pins), connect.BindsUnless,
			"may write in " + open, nil},
		{"claude-code", "claude-code/managed-settings.json", claude(asks("--url http://127.0.0.1:1"), pins), connect.BindsUnless,
			"can listen at http://127.0.0.1:1", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(asks("--url https://daycared.example"), pins), connect.Binds, "", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(hook("codex", ""), pins), "", "", nil},
		{"claude-code", "claude-code/managed-settings.json", strings.Replace(claude(hook("claude-code", ""), pins), `"*"`, `"Bash"`, 1),
			"", "", nil},
		{"claude-code", "claude-code/managed-settings.json", "{", "", "", nil},
		{"claude-code", "claude-code/managed-settings.json", claude(hook("claude-code", ""), pins), connect.BindsUnless, "is not root's alone",
			func(_ *CLI, file string) { _ = os.Chmod(file, 0o666) }},
		{"claude-code", "claude-code/managed-settings.json", claude(hook("claude-code", ""), pins), connect.BindsUnless, "this account is root",
			func(c *CLI, _ string) { c.UID = rootUID }},
		{"claude-code", "claude-code/managed-settings.json", claude(hook("claude-code", ""), pins), connect.BindsUnless, "is not root's alone",
			func(_ *CLI, _ string) { _ = os.Chmod(binary, 0o702) }},
		{"codex", "codex/requirements.toml", "[[hooks.PreToolUse]]\nmatcher = \".*\"\n[[hooks.PreToolUse.hooks]]\ncommand = \"" +
			hook("codex", "") + "\"\n", connect.BindsUnless, ".env in ", nil},
		{"gemini", "gemini-cli/settings.json", `{"hooks":{"BeforeTool":[{"matcher":".*","hooks":[{"command":"` + hook("gemini", "") + `"}]}]}}`,
			connect.BindsUnless, "GEMINI_CLI_SYSTEM_SETTINGS_PATH", nil},
		{"copilot", "github-copilot/policy.d/50-us.json", `{"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"` +
			hook("copilot", " --gate risky") + `"}]}}`, connect.Binds, "times out", nil},
	} {
		c := &CLI{UID: rootUID + 1}
		a, _ := connect.Target{Home: "/home/fay", GOOS: "linux", Command: []string{"daycared"}, Etc: etc}.Find(try.agent)
		file := filepath.Join(etc, try.file)
		put(t, file, try.text, 0o600)
		_, _ = os.Chmod(binary, 0o700), os.Chmod(file, 0o600)
		if try.change != nil {
			try.change(c, file)
		}
		got := c.managed(a)
		if got.verdict != try.want || !strings.Contains(got.note, try.note) {
			t.Errorf("%s, %s: %+v, want %s, %s", try.agent, try.text, got, try.want, try.note)
		}
		if got.verdict != "" {
			row := rowsOf(a, hookStatus{runs: true, asked: true}, got)[0]
			if row.Verdict != try.want || strings.Contains(row.Note, "--gate risky") != strings.Contains(try.text, "risky") {
				t.Errorf("%+v", row)
			}
		}
		_ = os.Remove(file)
	}
}

// TestWhatRootHasSetRunsThoughTheAccountSwitchedHooksOff, and not where root did.
func TestWhatRootHasSetRunsThoughTheAccountSwitchedHooksOff(t *testing.T) {
	a, _ := connect.Target{Home: "/home/fay", GOOS: "linux", Command: []string{"daycared"}}.Find("claude-code")
	for _, try := range []struct {
		h    connect.Hooks
		runs bool
	}{
		{connect.Hooks{ManagedOnly: true}, true},
		{connect.Hooks{Off: "switched off"}, true},
		{connect.Hooks{Off: "switched off", AllOff: true}, false},
		{connect.Hooks{}, false}, // it has to say something of it
	} {
		why, _, runs := a.Skipped(try.h, true)
		if runs != try.runs || (why == "") != runs {
			t.Errorf("%+v: %t, %s", try.h, runs, why)
		}
		if why, _, runs := a.Skipped(try.h, false); runs || why == "" {
			t.Errorf("%+v, and root has set nothing: %t, %s", try.h, runs, why)
		}
	}
}

// TestAgentsOfTheConfigurationAreInTheTable: those that are another program bind in the modes that are known to ask.
func TestAgentsOfTheConfigurationAreInTheTable(t *testing.T) {
	for mode, want := range map[string]connect.Verdict{
		"": connect.BindsUnless, "default": connect.BindsUnless, "read-only": connect.BindsUnless, "plan": connect.BindsUnless,
		"auto": connect.Nothing, "bypassPermissions": connect.Nothing, "agent-full-access": connect.Nothing,
	} {
		cfg := &config.Config{Agents: []config.Agent{{Name: "coder", ACP: []string{"x"}, Mode: mode}, {Name: "ours"}}}
		_, table := (&CLI{}).examineConnections(t.Context(), cfg, true)
		if len(table) != 1 || table[0].Agent != "coder" || table[0].Verdict != want || table[0].Mode == "" {
			t.Errorf("%q: %+v", mode, table)
		}
	}
}

// TestEveryAgentHasAVerdictForItsModes: the default and the most permissive one, in words that programs can tell apart.
func TestEveryAgentHasAVerdictForItsModes(t *testing.T) {
	known := []connect.Verdict{connect.Nothing, connect.Advises, connect.BindsUnless, connect.Binds}
	for _, name := range connect.Names() {
		a, _ := connect.Target{Home: "/home/fay", GOOS: "linux", Command: []string{"daycared"}}.Find(name)
		if len(a.Modes) == 0 {
			t.Errorf("%s has no mode", name)
		}
		for _, m := range a.Modes {
			if m.Name == "" || m.Verdict == connect.Binds || !strings.Contains(fmt.Sprint(known), string(m.Verdict)) {
				t.Errorf("%s: %+v", name, m) // nothing binds by what the account itself may edit
			}
		}
	}
	text, err := json.Marshal(agentRow{Agent: "x"})
	if err != nil || string(text) != `{"agent":"x","mode":"","verdict":"","asked":false,"note":""}` {
		t.Errorf("%s, %v", text, err)
	}
}
