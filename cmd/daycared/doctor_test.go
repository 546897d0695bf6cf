package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/permissions"
)

// Access to one socket is normal for an account. Only an account without access is told how to get it.
func TestWhatSocketAccessMeansForAnAccount(t *testing.T) {
	shut, away := access{err: fs.ErrPermission, shut: true}, access{err: errors.New("no such file")}
	fay := access{me: admin.Me{Name: "fay"}, open: 2}
	stopped := fay
	by := "sam"
	stopped.me.StoppedBy = &by
	fast := fay
	fast.ahead = 15 * time.Minute
	nobody := access{err: permissions.NotConfigured(7), shut: true}
	for _, c := range []struct {
		name          string
		asks, decides access
		want          []string
	}{
		{"an approver", shut, fay, []string{
			"note this account answers as fay; it cannot ask here, which is as it should be", "ok this account answers as fay; 2 waiting",
		}},
		{"an agent", access{}, shut, []string{
			"ok the daemon takes questions", "note this account asks; it cannot answer here, which is as it should be for agents",
		}},
		{"an agent that people's access knows", access{}, nobody, []string{
			"ok the daemon takes questions", "note this account asks; it cannot answer here, which is as it should be for agents",
		}},
		{"a stranger", shut, shut, []string{"wrong this account, uid 7, neither asks nor answers here: permission denied"}},
		{"nobody", shut, nobody, []string{"wrong this account, uid 7, neither asks nor answers here: permission denied"}},
		{"both", access{}, stopped, []string{
			"ok the daemon takes questions", "note everything is stopped by sam, and nothing is asked",
			"ok this account answers as fay; 2 waiting",
		}},
		{"somebody whose clock is wrong", shut, fast, []string{
			"note this account answers as fay; it cannot ask here, which is as it should be", "ok this account answers as fay; 2 waiting",
			"wrong the clock of this machine is 15m0s ahead of the database's, which counts",
		}},
		{"no daemon", away, away, []string{"wrong the daemon cannot take questions: no such file"}},
		{"half a daemon", access{}, away, []string{"ok the daemon takes questions", "wrong people cannot answer here: no such file"}},
	} {
		var got []string
		for _, f := range describeAccess(c.asks, c.decides, 7) {
			got = append(got, f.Level+" "+f.What)
			if c.decides.err == nil && strings.Contains(f.Remedy, "group") {
				t.Errorf("%s is told to %s", c.name, f.Remedy)
			}
			if shut := errors.Is(c.decides.err, fs.ErrPermission); shut && f.Level != "ok" && !strings.Contains(f.Remedy, "api.admin_group") {
				t.Errorf("%s, whom the socket itself shuts out, is told to %q", c.name, f.Remedy)
			}
			if c.asks.shut && c.decides.shut && !strings.Contains(f.Remedy, "people") {
				t.Errorf("%s is told to %q", c.name, f.Remedy)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s is told\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Promises of the sandbox that hold are reported, and a remedy for those that do not; if agents need one, that is an error.
func TestWhatTheSandboxHolds(t *testing.T) {
	some := []sandbox.Promise{{Name: "no file outside", Holds: true}, {Name: "no signal to others", Why: "too old"}}
	got := promised(some, "wrong")
	if len(got) != 2 || got[0].Level != "ok" || !strings.HasSuffix(got[0].What, "no file outside") || got[1].Level != "wrong" ||
		!strings.Contains(got[1].What, "no signal to others: too old") || !strings.Contains(got[1].Remedy, "sandbox: off") {
		t.Errorf("told is %+v", got)
	}
	if got := promised(some[1:], "note"); len(got) != 1 || got[0].Level != "note" {
		t.Errorf("told is %+v", got)
	}
	cfg := config.Default()
	if got := examineSandbox(cfg, nil); len(got) == 0 {
		t.Error("nothing is told")
	}
	cfg.Agents = []config.Agent{{Name: "helper"}}
	if got := examineSandbox(cfg, []string{"/usr/local/etc/daycared.yaml"}); sandboxHolds() &&
		(len(got) != 2 || got[1].Level != "wrong" || !strings.Contains(got[1].What, "/usr")) {
		t.Errorf("told is %+v", got)
	}
	cfg.Sandbox = false
	if got := examineSandbox(cfg, nil); len(got) > 0 {
		t.Errorf("without walls, told is %+v", got)
	}
}

func sandboxHolds() bool { return sandbox.New(sandbox.Options{}).Ready() == nil }

// If agents cannot be looked for, that is reported: no connected agent is silently skipped.
func TestTheDoctorSaysWhyItLooksForNoAgents(t *testing.T) {
	for _, try := range []struct {
		environ []string
		want    string
	}{
		{[]string{"HOME=" + t.TempDir(), "CODEX_HOME=moved"}, "wrong connected agents are not looked for: CODEX_HOME is \"moved\""},
		{[]string{"HOME=" + t.TempDir()}, ""},
		{nil, ""},
	} {
		got := ""
		found, _ := (&CLI{Environ: try.environ}).examineConnections(t.Context(), &config.Config{}, true)
		for _, f := range found {
			got += f.Level + " " + f.What
		}
		if !strings.HasPrefix(got, try.want) || (try.want == "") != (got == "") {
			t.Errorf("%q: %q, want %q", try.environ, got, try.want)
		}
	}
}
