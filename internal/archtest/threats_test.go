package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestThreatsAreCounted: what make threats makes of test output. A threat needs a case that passed.
func TestThreatsAreCounted(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(root, "tools/threats.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`(?m)^[A-H]\d+`).FindAllString(string(list), -1)
	if len(ids) != 42 {
		t.Errorf("%d threats are listed", len(ids))
	}
	line := func(action, test string) string {
		return fmt.Sprintf(`{"Time":"2026-11-23T03:31:42Z","Action":%q,"Package":"p","Test":%q,"Elapsed":0}`, action, test) + "\n"
	}
	cases := func(n int, ids ...string) (all string) {
		for _, id := range ids {
			for i := range n {
				name := fmt.Sprintf(`TestX/deeper/%s/a_"case"/%d`, id, i)
				all += line("run", name) + line("pass", name)
			}
		}
		return line("run", "TestX") + all + line("pass", "TestX") + `{"Action":"pass","Package":"p"}` + "\n"
	}
	enough := cases(25, ids...)
	for name, c := range map[string]struct {
		printed, says string
		held          bool
	}{
		"all held":       {enough, "42 threats, 1050 cases", true},
		"more of one":    {enough + line("run", "TestY/A1/b") + line("pass", "TestY/A1/b"), "A1    26  held ", true},
		"one fails":      {enough + line("run", "TestY/A1/b") + line("fail", "TestY/A1/b"), "A1    26  1 failed", false},
		"one is skipped": {cases(25, ids[1:]...) + line("run", "TestY/A1/b") + line("skip", "TestY/A1/b"), "A1     0  no case", false},
		"no case of one": {cases(25, ids[1:]...), "A1     0  no case", false},
		"names no case":  {cases(25, ids[1:]...) + line("run", "TestY/A1") + line("pass", "TestY/A1"), "A1     0  no case", false},
		"only its parts are": {
			enough + line("run", "TestY/A1/b") + line("run", "TestY/A1/b/c") + line("pass", "TestY/A1/b/c"),
			"A1    26 ", true},
		"a threat unknown":   {enough + line("run", "TestY/A9/b") + line("pass", "TestY/A9/b"), "names no threat: p\tTestY/A9/b", false},
		"too few":            {cases(21, ids...), "42 threats, 882 cases\nwhich is fewer than 900", false},
		"another test fails": {enough + `{"Action":"fail","Package":"q"}` + "\n", "failed: q", false},
		"does not build":     {enough + `{"ImportPath":"q [q.test]","Action":"build-fail"}` + "\n", "failed: q [q.test]", false},
		"nothing":            {"", "42 threats, 0 cases", false},
	} {
		t.Run(name, func(t *testing.T) {
			count := exec.CommandContext(t.Context(), "awk", "-f", "tools/threats.awk", "tools/threats.txt", "-")
			count.Dir, count.Stdin = root, strings.NewReader(c.printed)
			out, err := count.CombinedOutput()
			if (err == nil) != c.held || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, want %q:\n%s", err, c.says, out)
			}
		})
	}
}

// Findings about dependencies are printed as they come, and if the database cannot be queried, nothing is reported as
// safe. The database is remote, so its client is a stub here.
func TestVulnSaysWhetherTheDatabaseWasAsked(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		code int
		want string
		exit int
	}{
		"H3/away":  {"govulncheck: fetching vulnerabilities: no such host", 1, "cannot be reached, so nothing is known", 1},
		"H3/found": {"Your code is affected by 1 vulnerability", 3, "Your code is affected by 1 vulnerability", 3},
		"H3/none":  {"No vulnerabilities found.", 0, "No vulnerabilities found.", 0},
		"H3/fails": {"go: no such tool", 1, "go: no such tool", 1},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			stub := "#!/bin/sh\ntest \"$*\" = 'tool -modfile=tools/vuln.mod govulncheck ./...' || exit 9\necho '" + c.says + "' >&2\nexit " +
				strconv.Itoa(c.code) + "\n"
			if err := os.WriteFile(filepath.Join(bin, "go"), []byte(stub), 0o700); err != nil {
				t.Fatal(err)
			}
			vuln := exec.CommandContext(t.Context(), "sh", "tools/vuln.sh")
			vuln.Dir = "../.."
			vuln.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, _ := vuln.CombinedOutput() // the exit code counts
			if got := vuln.ProcessState.ExitCode(); got != c.exit || !strings.Contains(string(out), c.want) {
				t.Errorf("exit code %d, want %d; it says\n%s", got, c.exit, out)
			}
		})
	}
}
