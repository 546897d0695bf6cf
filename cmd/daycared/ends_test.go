package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// What a stop and a kill of the binary leave behind: in the log, for waiting callers, and in files.

// TestAStopUnderLoadLogsNoError: callers wait, ask, decide, follow events and hang up while the daemon stops. That is no fault,
// so it logs no error, writes down what has to be, and answers waiting callers.
func TestAStopUnderLoadLogsNoError(t *testing.T) {
	const waiting = 40
	l := newLoop(t)
	l.env = []string{"DAYCARED_API_ALLOW_SAME_USER=false", "DAYCARED_LOG_LEVEL=debug"}
	l.begin()
	for round := range 3 {
		if round > 0 {
			l.rise("")
		}
		agents, people := wiretest.HTTP(t, filepath.Join(l.dir, "agent")), wiretest.HTTP(t, filepath.Join(l.dir, "admin"))
		agents.Transport.(*http.Transport).MaxIdleConnsPerHost = waiting
		post := func(c *http.Client, path, body string) (*http.Response, error) {
			return c.Post("http://localhost"+path, "application/json", strings.NewReader(body))
		}
		var waiters, others sync.WaitGroup
		answers := make(chan string, waiting)
		for n := range waiting {
			waiters.Go(func() {
				answer, err := post(agents, "/v1/requests", fmt.Sprintf(
					`{"kind":"permission","permissions":["@network"],"reason":"wait %d %d","wait":"50s"}`, round, n))
				if err != nil {
					answers <- err.Error()
					return
				}
				defer answer.Body.Close()
				text, err := io.ReadAll(answer.Body)
				answers <- fmt.Sprint(answer.StatusCode, " ", err, " ", regexp.MustCompile(`"state":"\w+"`).FindString(string(text)))
			})
		}
		var all []permissions.RequestView
		l.await("all wait", func(ctx context.Context) (err error) {
			if all, err = l.people.List(ctx, "", 1000); err == nil && len(all) < waiting*(round+1) {
				err = fmt.Errorf("%d do, and %d were answered", len(all), len(answers))
			}
			return err
		})
		if t.Failed() {
			t.FailNow()
		}
		stopped := make(chan struct{})
		var loaded sync.WaitGroup // until the daemon is busy
		busy := func(path, body string, hurried bool, c *http.Client) {
			for n := 0; ; n++ {
				if n == 20 {
					loaded.Done()
				}
				select {
				case <-stopped:
					return
				case <-time.After(time.Millisecond):
				}
				patient := *c
				if hurried { // it hangs up at any stage
					patient.Timeout = time.Duration(1+n%7) * time.Millisecond
				}
				answer, err := post(&patient, path, strings.ReplaceAll(body, "N", fmt.Sprint(round, ".", n)))
				if err != nil {
					continue // the daemon is gone, or the caller hung up
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
		unasked := `{"kind":"tool","tool":"read_file","input":{"path":"/N"},"wait":"0s"}`
		decision := "/v1/requests/" + string(all[0].Request.ID) + "/decision" // by an account that asked, so it is refused
		for _, hurried := range []bool{true, false} {
			loaded.Add(2)
			others.Go(func() { busy("/v1/requests", unasked, hurried, agents) })
			others.Go(func() { busy(decision, `{"answer":"allow_once"}`, hurried, people) })
		}
		follows, leave := context.WithCancel(t.Context()) // the client comes back to a daemon that was there
		others.Go(func() { _ = l.people.Events(follows, admin.FromNow, func(wire.Event) error { return nil }) })
		loaded.Wait()
		if err := l.daemon.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		waiters.Wait()
		<-l.done
		if code := l.daemon.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the daemon ended with code %d", code)
		}
		close(stopped)
		leave()
		others.Wait()
		for range waiting {
			if got := <-answers; got != `200 <nil> "state":"pending"` {
				t.Errorf("somebody who waited got %s", got)
			}
		}
	}
	log, err := os.ReadFile(filepath.Join(l.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	unwritten := regexp.MustCompile(`level=DEBUG msg="(audit|save|store) `) // because whoever it is about has gone
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "level=ERROR") || unwritten.MatchString(line) {
			t.Error(line)
		}
	}
}

// TestAKilledBackupLeavesNothingUnderItsName: a file with the name of a backup is complete.
func TestAKilledBackupLeavesNothingUnderItsName(t *testing.T) {
	l := newLoop(t)
	l.begin()
	agents := wiretest.HTTP(t, filepath.Join(l.dir, "agent"))
	for n := range 24 { // makes the backup take longer
		status, text := wiretest.Do(t, agents, http.MethodPost, "/v1/requests", "application/json", fmt.Sprintf(
			`{"kind":"permission","permissions":["@network"],"reason":"look at %d","details":%q,"wait":"0s"}`, n, strings.Repeat("x", 1<<20)))
		if status != http.StatusOK && status != http.StatusAccepted {
			t.Fatalf("%d %s", status, text)
		}
	}
	to := filepath.Join(l.dir, "copy.db")
	daycared := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), l.binary, args...)
		cmd.Env = append(os.Environ(), "DAYCARED_CONFIG="+filepath.Join(l.dir, "c.yaml"))
		return cmd
	}
	for killed := 0; killed < 3; {
		backup := daycared("backup", to)
		if err := backup.Start(); err != nil {
			t.Fatal(err)
		}
		wiretest.Eventually(t, "a backup is being written", func() bool { return exists(to+".part") || exists(to) })
		_ = backup.Process.Kill() // it may be done
		err := backup.Wait()
		var exit *exec.ExitError
		switch {
		case !exists(to) && errors.As(err, &exit) && !exit.Exited():
			killed++
		case exists(to): // it was complete already, otherwise
			if text, err := daycared("audit", "verify", to).CombinedOutput(); err != nil {
				t.Fatalf("what has the name of a backup is none: %v\n%s", err, text)
			}
			if err := os.Remove(to); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("the backup ended: %v", err)
		}
	}
	if text, err := daycared("backup", to).CombinedOutput(); err != nil || !strings.Contains(string(text), "24 requests") {
		t.Errorf("after kills: %v\n%s", err, text)
	}
	if exists(to + ".part") {
		t.Error("a draft is left")
	}
}

// TestServicesAreStartedForAsLongAsItTakes: the cause of a failed start, such as a full disk, may pass, but systemd gives up
// after five tries unless the unit says otherwise.
func TestServicesAreStartedForAsLongAsItTakes(t *testing.T) {
	shipped, err := os.ReadFile("../../deploy/daycared.service")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"deploy/daycared.service": string(shipped), "daycared setup": unit} {
		t.Run(name, func(t *testing.T) {
			section, set := "", map[string]string{}
			for line := range strings.Lines(text) {
				line = strings.TrimSpace(line)
				key, value, is := strings.Cut(line, "=")
				switch {
				case strings.HasPrefix(line, "["):
					section = line
				case is && !strings.HasPrefix(line, "#"):
					set[section+key] = value
				}
			}
			if got := set["[Unit]StartLimitIntervalSec"]; got != "0" {
				t.Errorf("StartLimitIntervalSec of [Unit] is %q", got)
			}
			if got := set["[Service]Restart"]; got != "always" && got != "on-failure" {
				t.Errorf("Restart of [Service] is %q", got)
			}
		})
	}
}

// TestTheContainerRunsWhatThereIs: deploy/Containerfile builds with the module's version of Go and names commands that exist.
func TestTheContainerRunsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../deploy/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if len(version) == 0 || !strings.Contains(string(text), fmt.Sprintf("FROM golang:%s-", version[1])) {
		t.Errorf("it is not built with Go %s", version[1])
	}
	commands := regexp.MustCompile(`(?m)CMD (\[.*\])$`).FindAllStringSubmatch(string(text), -1)
	for _, c := range commands {
		var words []string
		if err := json.Unmarshal([]byte(c[1]), &words); err != nil {
			t.Fatal(err)
		}
		words = slices.DeleteFunc(words, func(w string) bool { return w == "daycared" })
		if wrong := wrongIn(words); wrong != "" {
			t.Errorf("%s: %s", c[1], wrong)
		}
	}
	if len(commands) != 2 {
		t.Errorf("%d commands", len(commands))
	}
}
