//go:build real

package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
)

// What people really run asks the daemon. Its model is ours, and does what the script says:
//
//	dictation               start it; $OTHERS is its address in OpenAI's dialect, $OTHERS_CLAUDE in Anthropic's
//	dictates TOOL INPUT     it calls this tool next; told what became of that, it says: It went as follows: RESULT
//	lasts N DURATION        for so long N requests are pending, and a call waits for each
//	languages NAME ROOT     $NAME is gopls, which go installs, and $ROOT the folder of Go
//	installed NAME FOLDER   $NAME is the folder where npm installed the programs of a lock file
//	trusts PROGRAM          Codex, which is that, trusts the hooks that it lists

func TestReal(t *testing.T) {
	patience = 2 * time.Minute // the programs are large and start slowly
	cmds := commands()
	cmds["dictation"], cmds["dictates"], cmds["installed"], cmds["lasts"] = dictation, dictates, where, stayPending
	cmds["languages"], cmds["trusts"] = languages, trusts
	testscript.Run(t, testscript.Params{Dir: "testdata/real", RequireExplicitExec: true, Setup: setupReal, Cmds: cmds})
}

type dictationKey struct{}

// calls are the model's next calls.
type calls struct {
	mu   sync.Mutex
	next []modeltest.Answer
}

func setupReal(env *testscript.Env) error {
	env.Values[dictationKey{}] = &calls{}
	if err := setup(env); err != nil {
		return err
	}
	names, _ := env.Values[namesKey{}].(map[string]bool)
	for _, name := range []string{
		"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CODEX_HOME", "CODEX_API_KEY", "GEMINI_API_KEY", "GEMINI_CLI_HOME",
		"GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_TRUST_WORKSPACE",
		"OPENCODE_DISABLE_MODELS_FETCH", "XDG_CACHE_HOME", "GOCACHE", "GOPROXY",
	} {
		names[name] = true
	}
	env.Setenv("REAL_WAIT", cmp.Or(os.Getenv("REAL_WAIT"), "10m"))
	return nil
}

func dictation(ts *testscript.TestScript, _ bool, _ []string) {
	c, _ := ts.Value(dictationKey{}).(*calls)
	server := modeltest.ServeOthers()
	server.Answer(c.answer)
	ts.Defer(func() {
		server.Close()
		for i, r := range server.Requests() {
			ts.Logf("[the model was asked, %d] %s: %.300s", i+1, r.Last().Role, r.Last().Text)
		}
	})
	ts.Setenv("OTHERS", server.URL(modeltest.OpenAI))
	ts.Setenv("OTHERS_CLAUDE", server.URL(modeltest.Anthropic))
}

// answer is the next tool call, if the request has tools; a request for a title, or with a result, gets text.
func (c *calls) answer(r modeltest.Request) modeltest.Answer {
	last := r.Last()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case last.Role == models.Results:
		return modeltest.Say("It went as follows: " + strings.TrimSpace(last.Text) + ".")
	case len(r.Prompt.Tools) == 0 || len(c.next) == 0:
		return modeltest.Say("An errand")
	}
	a := c.next[0]
	c.next = c.next[1:]
	return a
}

func dictates(ts *testscript.TestScript, _ bool, args []string) {
	c, _ := ts.Value(dictationKey{}).(*calls)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = append(c.next, modeltest.Call(args[0], json.RawMessage(filled(ts, args[1]))))
}

func where(ts *testscript.TestScript, _ bool, args []string) {
	bin, err := installed(args[1])
	ts.Check(err)
	ts.Setenv(args[0], strings.TrimSuffix(bin, "/node_modules/.bin"))
}

// goplsVersion is the newest version that this project's Go can build.
const goplsVersion = "v0.23.0"

func languages(ts *testscript.TestScript, _ bool, args []string) {
	cache, err := os.UserCacheDir()
	ts.Check(err)
	bin := filepath.Join(cache, "daycared-tests", "gopls-"+goplsVersion)
	install := exec.Command("go", "install", "golang.org/x/tools/gopls@"+goplsVersion)
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		ts.Fatalf("go install gopls: %v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	ts.Check(err)
	ts.Setenv(args[0], filepath.Join(bin, "gopls"))
	ts.Setenv(args[1], strings.TrimSpace(string(root)))
}

func stayPending(ts *testscript.TestScript, _ bool, args []string) {
	most, err := time.ParseDuration(args[1])
	ts.Check(err)
	over, again := time.After(most), time.NewTicker(time.Second)
	defer again.Stop()
	for {
		pending(ts, false, []string{args[0], args[0]})
		select {
		case <-again.C:
		case <-over:
			return
		}
	}
}
