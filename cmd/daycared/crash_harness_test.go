package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/permissions"
)

// A crash loop repeatedly kills the real program at its failpoints, on one store, while agents ask and people answer. Every
// reported outcome is compared with the row at once, with the audit after each death, and again at the end. A violation ends the
// loop and names the request.

// kills is the number of kills.
func kills(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("CRASH_POINTS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("CRASH_POINTS: %v", err)
	}
	return n
}

// death is the daemon's next failpoint: before and after each point in turn, and then at later hits, up to a last one.
func death(points []string, killed, last int) string {
	return deathAt(points, killed, 1+killed/(2*len(points))%last)
}

func deathAt(points []string, killed, hit int) string {
	return points[killed/2%len(points)] + []string{".before:", ".after:"}[killed%2] + strconv.Itoa(hit)
}

// crashFault makes a loop's daemons misbehave instead of dying.
const crashFault = "CRASH_FAULT"

// parts is the additional configuration of a loop's parts.
type parts struct{ people, routes, connectors, agents []string }

func (s parts) config(dir string) string {
	list := func(of []string) string { return "[" + strings.Join(of, ",\n  ") + "]\n" }
	return "people: " + list(s.people) + "routes: " + list(s.routes) + "agents: " + list(s.agents) +
		"connectors: {" + strings.Join(s.connectors, ", ") + "}\n" + strings.ReplaceAll(
		"api: {agent_socket: DIR/agent, admin_socket: DIR/admin, allow_same_user: true, admin_reachable: true}\n"+
			"approvals: {max_timeout: 1h, redeem_window: 1h, remind: []}\n"+
			"limits: {pending_per_caller: 1000, prompts_per_minute: 1000000}\n"+
			"high_risk: {tools: []}\ndata_dir: DIR/data\n", "DIR", dir)
}

// loop is one store and the daemons that run on it in turn. Asking and answering may be concurrent; starting and living is
// sequential.
type loop struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // of all that is done in it; it ends with the first violation
	stop   context.CancelFunc
	dir    string
	binary string
	env    []string // further environment of the daemons
	parts  parts
	agents *client.Client
	people *admin.Client

	restored bool // a backup replaced the store

	daemon *exec.Cmd // the daemon started last; read it only while it lives
	done   chan struct{}

	mu      sync.Mutex
	hand    *os.File // input of the daemon's console; nil without one
	asked   int
	stored  map[permissions.ID]claim
	deaths  map[string]int // per failpoint; others were killed from outside
	seq     int64
	settled map[permissions.ID][]string // the ends of requests in the audit
}

func newLoop(t *testing.T) *loop {
	dir, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := exec.LookPath("daycared") // this binary, put there by TestMain
	if err != nil {
		t.Fatal(err)
	}
	agents, err := client.New(client.Options{Socket: filepath.Join(dir, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{
		t: t, dir: dir, binary: binary, stored: map[permissions.ID]claim{}, settled: map[permissions.ID][]string{},
		deaths: map[string]int{},
		agents: agents,
		people: admin.NewClient(filepath.Join(dir, "admin"), filepath.Join(dir, "data", "admin.key")),
	}
	l.ctx, l.stop = context.WithCancel(t.Context())
	t.Cleanup(l.people.Close)
	t.Cleanup(l.agents.Close)
	t.Cleanup(l.stop)
	return l
}

// begin starts the first daemon, with the configuration of all parts.
func (l *loop) begin() {
	l.t.Helper()
	if len(l.parts.agents) == 0 {
		l.parts.connectors = append(l.parts.connectors, "terminal: {enabled: false}")
	}
	if err := os.WriteFile(filepath.Join(l.dir, "c.yaml"), []byte(l.parts.config(l.dir)), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(l.kill)
	l.rise("")
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// rise starts a daemon with a failpoint, if any, and returns when it is ready or dead.
func (l *loop) rise(failpoint string) {
	cmd := exec.Command(l.binary, "serve", "--config", filepath.Join(l.dir, "c.yaml"))
	cmd.Env = append(append(os.Environ(), l.env...), "DAYCARED_FAILPOINT="+failpoint)
	log, err := os.OpenFile(filepath.Join(l.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.violated("open the log: %v", err)
		return
	}
	defer log.Close()
	cmd.Stderr = log
	if l.hand != nil {
		in, hand, err := os.Pipe()
		if err != nil {
			l.violated("make a console: %v", err)
			return
		}
		defer in.Close()
		cmd.Stdin = in
		l.mu.Lock()
		l.hand.Close()
		l.hand = hand
		l.mu.Unlock()
	}
	if err := cmd.Start(); err != nil {
		l.violated("start the daemon: %v", err)
		return
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	l.daemon, l.done = cmd, done
	l.await("the daemon to be ready", func(ctx context.Context) error {
		select {
		case <-done:
			return nil // it is dead: life handles it
		default:
			return l.people.Ready(ctx)
		}
	})
}

func (l *loop) kill() {
	if l.daemon != nil {
		_ = l.daemon.Process.Kill() // it may be dead
		<-l.done
	}
}

func (l *loop) restart(failpoint string) {
	l.kill()
	l.rise(failpoint)
}

// life restarts the daemon with a failpoint, and starts another when it is dead. work continues across that death until
// everything is answered; died is closed at the death. A daemon that outlives all work, or has no failpoint, is killed from
// outside.
func (l *loop) life(failpoint string, work func(died <-chan struct{})) {
	l.t.Helper()
	fault := os.Getenv(crashFault)
	if fault != "" {
		failpoint = fault
	}
	l.restart(failpoint)
	armed, died, revived := l.daemon.Process, l.done, make(chan struct{})
	go func() {
		defer close(revived)
		<-died
		if l.rise(""); over(l.done) {
			log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
			l.violated("the daemon does not start after %q:\n%s", failpoint, log[max(0, len(log)-1000):])
		}
	}()
	if failpoint == "" {
		at := time.AfterFunc(rand.N(300*time.Millisecond), func() { _ = armed.Kill() })
		defer at.Stop()
	}
	work(died)
	if failpoint != "" && over(died) {
		at, _, _ := strings.Cut(failpoint, ":")
		l.deaths[at]++
	}
	_ = armed.Kill() // it may be dead
	<-revived
	l.audit()
	if l.t.Failed() {
		l.t.FailNow()
	}
}

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// violated fails the test and ends everything that runs in it.
func (l *loop) violated(format string, args ...any) {
	l.t.Helper()
	if l.ctx.Err() == nil {
		l.t.Errorf(format, args...)
		l.stop()
	}
}

// patient bounds every wait in a loop; it is short in a loop that is expected to fail.
var patient = func() time.Duration {
	if os.Getenv(crashFault) != "" {
		return 20 * time.Second
	}
	return time.Minute
}()

func (l *loop) await(what string, f func(ctx context.Context) error) {
	l.t.Helper()
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, f(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(2*time.Millisecond)), backoff.WithMaxElapsedTime(patient))
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
		l.violated("wait for %s: %v\n%s", what, err, log[max(0, len(log)-4000):])
	}
}
