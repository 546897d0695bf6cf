package sandbox

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the entry of the test binary when it is executed again: as the sandbox, or, by the name of a probe,
// as the program that tests it from inside.
func TestMain(m *testing.M) {
	Main(operations)
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		if err := probe(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stdout, "refused:", err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, "done")
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=10") // otherwise each of our processes takes a second to end
	flag.Parse()
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		os.Setenv(counting, f.Value.String())
	}
	goleak.VerifyTestMain(m)
}

// operations are the tests' sandboxed operations without a command.
var operations = map[string]Operation{
	"read": func(input json.RawMessage) (any, error) {
		var name string
		if err := json.Unmarshal(input, &name); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(name)
		return string(text), err
	},
	"probe": func(input json.RawMessage) (any, error) {
		var args []string
		if err := json.Unmarshal(input, &args); err != nil {
			return nil, err
		}
		return nil, probe(args[0], args[1:])
	},
	"noisy": func(json.RawMessage) (any, error) {
		fmt.Fprint(os.Stdout, "noise")
		return nil, nil
	},
	"unwritable": func(json.RawMessage) (any, error) { return make(chan int), nil },
}

// tempFiles is a folder for one test, with files, and without symbolic links in its path.
func tempFiles(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(dir, f), "of "+f)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a sandboxed command to its end, and returns its output and exit code.
func run(t *testing.T, s *Sandbox, w Policy, argv ...string) (said string, code int) {
	t.Helper()
	cmd, release, err := s.Command(t.Context(), w, argv...)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// probing is a policy under which the test binary can be executed.
func probing(w Policy) Policy {
	w.Read, w.Env = append(w.Read, self()), append(w.Env, "GORACE=atexit_sleep_ms=10")
	return w
}

// try runs a probe in a sandbox, and reports whether it succeeded.
func try(t *testing.T, s *Sandbox, w Policy, args ...string) bool {
	t.Helper()
	said, code := run(t, s, probing(w), append([]string{self(), "probe"}, args...)...)
	switch {
	case code == 0 && strings.HasPrefix(said, "done"):
		return true
	case code == 1 && strings.HasPrefix(said, "refused:"):
		return false
	}
	t.Fatalf("probe %q ended with %d, saying %q", args, code, said)
	return false
}
