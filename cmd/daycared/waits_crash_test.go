package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// clockFile names a file with the offset of a daemon's clock.
const clockFile = "CLOCK_FILE"

func init() {
	if file := os.Getenv(clockFile); file != "" {
		hookNow = func() time.Time {
			text, _ := os.ReadFile(file) // no file means no offset
			ahead, _ := time.ParseDuration(strings.TrimSpace(string(text)))
			return time.Now().Add(ahead)
		}
	}
}

// hooking starts a Claude Code hook that asks about a command.
func (l *loop) hooking(command string) *exec.Cmd {
	l.t.Helper()
	cmd := exec.Command(l.binary, "--socket", filepath.Join(l.dir, "agent"), "hook", "claude-code", "--within", "10m")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/srv","tool_name":"Bash",`+
		`"tool_input":{"command":%q}}`, command))
	cmd.Stdout, cmd.Stderr = new(strings.Builder), new(strings.Builder)
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// waited returns the pending request with this text, once so many calls wait for it.
func (l *loop) waited(says string, calls int) (id permissions.ID) {
	l.t.Helper()
	l.await(says, func(ctx context.Context) error {
		list, err := l.people.List(ctx, "", 0)
		if err != nil {
			return err
		}
		for _, s := range list {
			if strings.Contains(string(s.Request.Input)+s.Request.Message, says) && s.Waiting == calls {
				id = s.Request.ID
				return nil
			}
		}
		return fmt.Errorf("%d wait", len(list))
	})
	if l.t.Failed() {
		l.t.FailNow()
	}
	return id
}

// kept waits until the store's log has so many processes waiting for a request. Nothing else shows them.
func (l *loop) kept(id permissions.ID, processes int) {
	l.t.Helper()
	row := regexp.MustCompile(string(id) + "process([A-Z2-7]{26})")
	l.await("the processes of "+string(id), func(context.Context) error {
		log, err := os.ReadFile(filepath.Join(l.dir, "data", storeName+"-wal"))
		calls := map[string]bool{}
		for _, found := range row.FindAllSubmatch(log, -1) {
			calls[string(found[1])] = true
		}
		if err == nil && len(calls) != processes {
			err = fmt.Errorf("%d are kept", len(calls))
		}
		return err
	})
}

// ends waits until a request is settled, and returns it.
func (l *loop) ends(id permissions.ID) (r permissions.Request) {
	l.t.Helper()
	l.await("the end of "+string(id), func(ctx context.Context) error {
		s, err := l.people.Show(ctx, string(id))
		if err == nil && s.Request.State == permissions.Pending {
			err = fmt.Errorf("it is pending")
		}
		r = s.Request
		return err
	})
	return r
}

// TestAHookThatDiesWhileTheDaemonIsDown: its question is withdrawn, unless another hook waits with the same call.
func TestAHookThatDiesWhileTheDaemonIsDown(t *testing.T) {
	l := newLoop(t)
	l.begin()
	alone, one, other := l.hooking("alone"), l.hooking("both"), l.hooking("both")
	first, second := l.waited("alone", 1), l.waited("both", 2)
	l.kept(first, 1)
	l.kept(second, 2)
	l.kill()
	for _, cmd := range []*exec.Cmd{alone, one} {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	signal := func(s syscall.Signal) {
		if err := other.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP) // it lives, and has not asked again yet
	l.rise("")
	if r := l.ends(first); r.State != permissions.Cancelled || r.DecidedVia != permissions.ViaInterrupt {
		t.Errorf("that of the hook that was killed is %s, via %s", r.State, r.DecidedVia)
	}
	signal(syscall.SIGCONT)
	if l.waited("both", 1) != second {
		t.Error("that of two of which one was killed is another")
	}
}

// TestACallThatWasCancelledBeforeAKill: an HTTP client cancels its call and does not return; the daemon is killed within the
// minute, and its successor withdraws the question.
func TestACallThatWasCancelledBeforeAKill(t *testing.T) {
	l := newLoop(t)
	clock := filepath.Join(l.dir, "clock")
	l.env = append(l.env, clockFile+"="+clock)
	l.begin()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(l.dir, "agent"))
	}
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	post := func(ctx context.Context, message string) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daycared/mcp", strings.NewReader(message))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := socket.Do(r)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body) // until it is answered or dropped
		return answer.StatusCode, err
	}
	ids := map[string]permissions.ID{}
	for i, name := range []string{"given up", "lost"} {
		ctx, drop := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pause",`+
				`"arguments":{"message":%q,"mode":"confirm"},"_meta":{"progressToken":"p"}}}`, i, name))
		}()
		l.waited(name, 1)
		drop()
		<-gone
		ids[name] = l.waited(name, 0)
	}
	status, err := post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("%d, %v", status, err)
	}
	l.restart("")
	if r, err := l.people.Show(t.Context(), string(ids["given up"])); err != nil || r.Request.State != permissions.Pending {
		t.Fatalf("it is %s at once, %v", r.Request.State, err)
	}
	if err := os.WriteFile(clock, []byte("2m1s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := l.ends(ids["given up"]); r.State != permissions.Cancelled {
		t.Errorf("it is %s", r.State)
	}
	if r, err := l.people.Show(t.Context(), string(ids["lost"])); err != nil || r.Request.State != permissions.Pending {
		t.Errorf("one whose connection was lost is %s, %v", r.Request.State, err)
	}
}
