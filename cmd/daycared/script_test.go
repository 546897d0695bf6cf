package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/acp/acptest"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/pgtest"
	"github.com/daycared/daycared/permissions"
)

// The command line is tested as people use it: the scripts below testdata/script run the real commands, in separate processes,
// each against its own daemon.

func TestMain(m *testing.M) {
	sandbox.Main(tools.Operations()) // the daemon's agents execute this binary again
	acptest.Main()
	testscript.Main(leakChecked{m}, map[string]func(){"daycared": main})
}

// abandoned ignores a goroutine that the WhatsApp library sometimes leaves behind with a frame for a closed socket.
var abandoned = goleak.IgnoreAnyFunction("go.mau.fi/whatsmeow/socket.(*FrameSocket).readPump")

// leakChecked fails a run of all tests that leaks a goroutine.
type leakChecked struct{ m *testing.M }

// Run is called by testscript for the tests, but not in the commands that they run. Scripts run with a parallelism of twice the
// number of processors, unless -parallel is set: they mostly wait, for example for Telegram, which accepts one message a second.
func (l leakChecked) Run() int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set(f.Name, strconv.Itoa(2*runtime.GOMAXPROCS(0))) // a number is valid
	}
	for name, value := range unwary {
		_ = os.Setenv(name, value) // they are valid
	}
	code := l.m.Run()
	if err := goleak.Find(abandoned); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// unwary has the daemons of tests not mind how much is denied or how fast it is approved. Tests of that set it otherwise.
var unwary = map[string]string{"DAYCARED_LIMITS_MUTED_AFTER": "1000000", "DAYCARED_APPROVALS_READ_FIRST": "false"}

// unwaryScripts are those in which people deny more, or approve faster in chats, than the defaults let pass.
var unwaryScripts = []string{
	"gallery_telegram", "gallery_terminal", "gallery_whatsapp", "hook_events", "hook_risk", "only_title", "telegram", "telegram_team",
	"whatsapp",
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setup,
		Cmds:                commands(),
	})
}

func commands() scriptCommands {
	all := scriptCommands{
		"code": exitsWith, "expand": expand, "ready": ready, "pending": pending, "pruned": pruned, "putback": putback, "change": change,
		"session": session, "acpagent": acpAgentHere, "postgresql": postgresql,
	}
	maps.Copy(all, peopleCommands())
	maps.Copy(all, socketCommands())
	maps.Copy(all, chatCommands())
	maps.Copy(all, groupCommands())
	maps.Copy(all, enrolCommands())
	maps.Copy(all, echoCommands())
	maps.Copy(all, modelCommands())
	maps.Copy(all, whatsappCommands())
	maps.Copy(all, remoteCommands())
	maps.Copy(all, mcpCommands())
	maps.Copy(all, npmCommands())
	maps.Copy(all, galleryCommands())
	return all
}

// setup gives each script its own sockets, data directory and home.
func setup(env *testscript.Env) error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	// Socket paths must be short: at most 107 bytes.
	sockets, err := os.MkdirTemp("", "dc")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(sockets) })
	env.Setenv("ME", me.Username)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("GORACE", "atexit_sleep_ms=10") // otherwise every command takes a second to end
	env.Setenv("DAYCARED_DATA_DIR", filepath.Join(env.WorkDir, "data"))
	env.Setenv("DAYCARED_API_AGENT_SOCKET", filepath.Join(sockets, "agent"))
	env.Setenv("DAYCARED_API_ADMIN_SOCKET", filepath.Join(sockets, "admin"))
	name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	if strings.HasPrefix(name, "postgres") {
		url, release, err := wiretest.OpenDatabase()
		if err != nil {
			return err
		}
		env.Defer(func() { _ = release() }) // it ends with the tests
		env.Setenv("DAYCARED_DATABASE", url)
	}
	if _, other := os.Stat("testdata/script/" + name + ".txtar"); other != nil || slices.Contains(unwaryScripts, name) {
		for name, value := range unwary {
			env.Setenv(name, value)
		}
	}
	names := map[string]bool{
		"DAYCARED_CONFIG": true, "DAYCARED_LOG_FORMAT": true, "DAYCARED_AUDIT_KEY_FILE": true, "ECHO_AGENTS": true,
		whatsappAddr: true, whatsappRoot: true,
		"DAYCARED_SOCKET": true, "DAYCARED_URL": true, "DAYCARED_TOKEN_FILE": true,
		"HTTPS_PROXY": true, "SSL_CERT_FILE": true, "SSL_CERT_DIR": true,
	}
	for _, pair := range env.Vars {
		name, _, _ := strings.Cut(pair, "=")
		names[name] = true
	}
	env.Values[namesKey{}], env.Values[castKey{}], env.Values[chatsKey{}] = names, map[string]*actor{}, &chats{}
	env.Values[mobilesKey{}], env.Values[thoughtsKey{}], env.Values[detouredKey{}] = &mobiles{}, newThoughts(), &detoured{}
	env.Values[clusterKey{}] = new([]*pgtest.Cluster)
	env.Values[galleryKey{}] = &galleryKept{names: map[string]bool{}, read: map[string]int{}}
	return nil
}

// acpAgentHere creates $WORK/agent/agent, a program that speaks ACP: this binary under another name.
func acpAgentHere(ts *testscript.TestScript, _ bool, _ []string) {
	self, err := os.Executable()
	ts.Check(err)
	ts.Check(os.Mkdir(ts.MkAbs("agent"), 0o700))
	if os.Link(self, ts.MkAbs("agent/agent")) == nil {
		return
	}
	binary, err := os.ReadFile(self)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("agent/agent"), binary, 0o700))
}

// exitsWith runs a command and checks its exit code: code 3 daycared ask …
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// expand replaces $NAME in files by the script's environment.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// patience bounds a script's wait for an event.
var patience = 30 * time.Second

func until(ts *testscript.TestScript, what string, f func(ctx context.Context) error) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, f(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(10*time.Millisecond)), backoff.WithMaxElapsedTime(patience))
	if err != nil {
		ts.Fatalf("wait until %s: %v", what, err)
	}
}

func deciders(ts *testscript.TestScript) *admin.Client {
	return admin.NewClient(ts.Getenv("DAYCARED_API_ADMIN_SOCKET"), filepath.Join(ts.Getenv("DAYCARED_DATA_DIR"), "admin.key"))
}

// ready waits until the daemon answers.
func ready(ts *testscript.TestScript, _ bool, _ []string) {
	people := deciders(ts)
	defer people.Close()
	until(ts, "the daemon is ready", people.Ready)
}

// pending waits until N requests are pending and W calls wait for them, and the newest offers an answer, and sets $CODE and $ID to the
// newest: pending N [W [ANSWER]].
func pending(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	waiting := -1
	if len(args) > 1 {
		waiting, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	people := deciders(ts)
	defer people.Close()
	var list []permissions.RequestView
	until(ts, strings.Join(args, " ")+" are pending", func(ctx context.Context) (err error) {
		if list, err = people.List(ctx, "", 0); err != nil {
			return err
		}
		calls := 0
		for _, s := range list {
			calls += s.Waiting
		}
		if len(list) != want || (waiting >= 0 && calls != waiting) {
			return errors.New("pending " + strconv.Itoa(len(list)) + ", waiting " + strconv.Itoa(calls))
		}
		if len(args) > 2 && !list[want-1].Request.Offers(permissions.Answer(args[2])) {
			return errors.New("the newest does not offer " + args[2])
		}
		return nil
	})
	if want > 0 {
		ts.Setenv("CODE", list[want-1].Code)
		ts.Setenv("ID", string(list[want-1].Request.ID))
	}
}
