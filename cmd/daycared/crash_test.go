package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/permissions"
)

// crashPoints are the places before and after every store and send call at which the daemon kills itself.
var crashPoints = []string{"open", "apply", "shown", "send", "record", "forget", "endgrants"}

const (
	usualCrashes = 200
	// lastHit is the highest hit of a failpoint at which the daemon dies; each round reaches at least that many.
	lastHit = 4
)

// TestCrashLoop asks and decides across kills of the real binary at every failpoint in turn, over one store. Nothing
// acknowledged may be lost, nothing decided twice, nothing expire after it was approved, and the audit must verify.
// CRASH_POINTS sets how many kills there are.
func TestCrashLoop(t *testing.T) {
	crashes := kills(t, usualCrashes)
	l := newLoop(t)
	l.rise("")
	for killed := range crashes {
		l.restart(death(crashPoints, killed, lastHit))
		l.round(killed)
	}
	l.restart("")
	l.finish(crashes)
	if l.directed < crashes/2 {
		t.Errorf("only %d of %d deaths were at a failpoint", l.directed, crashes)
	}
}

// death is where the daemon kills itself the next time: before and after each point in turn, and then at a later hit, up
// to a last one.
func death(points []string, killed, last int) string {
	point := points[killed/2%len(points)]
	when := []string{".before:", ".after:"}[killed%2]
	return point + when + strconv.Itoa(1+killed/(2*len(points))%last)
}

// kills is how many times the daemon is killed.
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

// loop is one store and the daemons that live and die over it.
type loop struct {
	t      *testing.T
	binary string
	dir    string
	env    []string // of the daemons, besides our own
	hand   *os.File // what is typed at the console of the daemon goes in here; nil without one
	agents *api.Client
	people *admin.Client

	daemon *exec.Cmd // changed only while no question is being asked, or by whoever revives it
	done   chan struct{}

	asked    int
	directed int                                   // deaths at a failpoint, the others came from outside
	acked    map[permissions.ID]permissions.Answer // decisions that a person was told are stored
	outcomes map[permissions.ID]permissions.State  // answers that an agent was told
}

func newLoop(t *testing.T) *loop {
	dir, err := os.MkdirTemp("", "dc") // sockets need short names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &loop{
		t: t, dir: dir, binary: filepath.Join(dir, "daycared"),
		acked: map[permissions.ID]permissions.Answer{}, outcomes: map[permissions.ID]permissions.State{},
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "failpoints", "-o", l.binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with failpoints: %v\n%s", err, out)
	}
	config := "connectors: {terminal: {enabled: false}}\n" +
		"api: {agent_socket: %s/agent, admin_socket: %s/admin, allow_same_user: true, admin_reachable: true}\n" +
		"approvals: {max_timeout: 1h, redeem_window: 1h}\nlimits: {pending_per_caller: 1000, prompts_per_minute: 1000000}\n" +
		"high_risk: {tools: []}\ndata_dir: %s/data\n"
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), fmt.Appendf(nil, config, dir, dir, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	l.agents = api.NewClient(filepath.Join(dir, "agent"))
	t.Cleanup(l.agents.Close)
	t.Cleanup(func() { l.kill() })
	return l
}

// rise starts a daemon that will die at the failpoint, if any. One that dies while it starts is started again without.
func (l *loop) rise(failpoint string) {
	l.t.Helper()
	cmd := exec.Command(l.binary, "serve", "--config", filepath.Join(l.dir, "c.yaml"))
	cmd.Env = append(append(os.Environ(), l.env...), "DAYCARED_FAILPOINT="+failpoint)
	log, err := os.OpenFile(filepath.Join(l.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	cmd.Stderr = log
	if l.hand != nil {
		in, hand, err := os.Pipe()
		if err != nil {
			l.t.Fatal(err)
		}
		l.hand.Close()
		defer in.Close()
		cmd.Stdin, l.hand = in, hand
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	log.Close()
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	l.daemon, l.done = cmd, done
	if l.people == nil {
		l.await(func(context.Context) error { _, err := os.Stat(filepath.Join(l.dir, "data", "admin.key")); return err })
		l.people = admin.NewClient(filepath.Join(l.dir, "admin"), filepath.Join(l.dir, "data", "admin.key"))
		l.t.Cleanup(l.people.Close)
	}
	l.await(func(ctx context.Context) error {
		select {
		case <-done:
			return nil // dead already: the round sees to it
		default:
			return l.people.Ready(ctx)
		}
	})
}

func (l *loop) kill() {
	_ = l.daemon.Process.Kill() // it may be dead already
	<-l.done
}

func (l *loop) restart(failpoint string) {
	l.kill()
	l.rise(failpoint)
}

func (l *loop) await(f func(ctx context.Context) error) {
	l.t.Helper()
	ctx, done := context.WithTimeout(l.t.Context(), time.Minute)
	defer done()
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, f(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(2*time.Millisecond)), backoff.WithMaxElapsedTime(time.Minute))
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
		l.t.Fatalf("wait: %v\n%s", err, log)
	}
}

// questionsARound is how many questions a daemon is given to die at its failpoint; one that lives on is killed from
// outside.
const questionsARound = 4

// round puts questions to an armed daemon until it has died, and sees every one of them to its end with the next.
func (l *loop) round(number int) {
	l.t.Helper()
	revived, daemon, died := make(chan struct{}), l.daemon, l.done
	go func() {
		defer close(revived)
		<-died
		l.rise("")
	}()
	for i := 0; i < questionsARound; i++ {
		l.question(fmt.Sprintf("%d-%d", number, i))
		select {
		case <-revived:
			l.directed++
			return
		default:
		}
	}
	_ = daemon.Process.Kill() // it may be dying already
	<-revived
}

// question is one request from its asking to its answer, whatever dies meanwhile.
func (l *loop) question(name string) {
	ctx, done := context.WithTimeout(l.t.Context(), time.Minute)
	defer done()
	q := permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: name, Key: "crash-" + name,
	}
	answer := permissions.Allow(permissions.Once)
	if rand.IntN(3) == 0 {
		answer = permissions.Deny
	}
	told := l.put(ctx, q)
	l.decide(ctx, name, answer)
	want := permissions.Approved
	if answer == permissions.Deny {
		want = permissions.Denied
	}
	l.ended(name, <-told, want)
}

// put asks, whatever dies meanwhile.
func (l *loop) put(ctx context.Context, q permissions.Request) <-chan permissions.Request {
	told := make(chan permissions.Request, 1)
	go func() {
		for {
			r, err := l.agents.Ask(ctx, permissions.Caller{}, q)
			if errors.Is(err, api.ErrUnreachable) && ctx.Err() == nil {
				continue // never connected: the daemon was just dead
			}
			if err != nil {
				l.t.Errorf("ask %s: %v", q.Reason, err)
			}
			told <- r
			return
		}
	}()
	return told
}

// ended notes how a question ended for its asker.
func (l *loop) ended(name string, r permissions.Request, want permissions.State) {
	l.asked++
	l.outcomes[r.ID] = r.State
	if r.State != want {
		l.t.Errorf("%s was to end %s and ended %s", name, want, r.State)
	}
}

// decide answers the question of that name as a person would: again and again, until they are told that it is stored,
// or that it was before the death that swallowed the first reply. Each time an answer that is not offered is refused
// and audited before.
func (l *loop) decide(ctx context.Context, name string, answer permissions.Answer) {
	var id permissions.ID
	l.await(func(context.Context) error {
		if id == "" {
			list, err := l.people.List(ctx, "", 0)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(list, func(s permissions.Standing) bool { return s.Request.Reason == name })
			if i < 0 {
				return errors.New("not pending: " + name)
			}
			id = list[i].Request.ID
		}
		_, _ = l.people.OnPermission(ctx, connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Always)})
		_, err := l.people.OnPermission(ctx, connectors.Decision{Request: id, Answer: answer})
		var refusal *permissions.Refusal
		if errors.As(err, &refusal) && refusal.Code == permissions.CodeSettled {
			return nil
		}
		if err == nil {
			l.acked[id] = answer
		}
		return err
	})
}

// finish reads everything back.
func (l *loop) finish(crashes int) {
	ctx := l.t.Context()
	heads, err := l.people.Verify(ctx)
	if err != nil {
		l.t.Fatalf("the audit: %v", err)
	}
	entries, err := wholeAudit(ctx, l.people)
	if err != nil {
		l.t.Fatal(err)
	}
	settled := map[permissions.ID][]string{}
	for _, e := range entries {
		if e.Type == permissions.RequestSettled {
			settled[e.Request] = append(settled[e.Request], e.Detail["state"])
		}
	}
	lost, doubled, expired := 0, 0, 0
	for id, states := range settled {
		if len(states) > 1 {
			doubled++
			l.t.Errorf("%s was settled %s", id, strings.Join(states, ", then "))
		}
	}
	for id, answer := range l.acked {
		s, err := l.people.Show(ctx, string(id))
		if err != nil {
			l.t.Fatal(err)
		}
		if s.Request.Answer != answer {
			lost++
			l.t.Errorf("%s was acknowledged as %s and is %s", id, answer, s.Request.Answer)
		}
		if s.Request.State == permissions.Expired {
			expired++
		}
	}
	for id, state := range l.outcomes {
		if s, err := l.people.Show(ctx, string(id)); err != nil || s.Request.State != state {
			lost++
			l.t.Errorf("%s ended %s for its agent and is %s, %v", id, state, s.Request.State, err)
		}
	}
	l.t.Logf("%d kills, %d at a failpoint, %d questions, %d decisions acknowledged, %d audit entries: "+
		"%d lost, %d doubled, %d expired after approved",
		crashes, l.directed, l.asked, len(l.acked), heads[0].Seq, lost, doubled, expired)
}
