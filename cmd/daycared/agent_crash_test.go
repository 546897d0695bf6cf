package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const usualWithAgents = 100

// TestAgentCrashLoop runs jobs of five gated tools each, across kills of the real binary at every stored step. Each tool writes
// a line of its own to a ledger. In the end every job is done and no line is there twice; an interrupted tool is reported as
// such, and the agent checks its effect before it continues. CRASH_POINTS sets the number of kills.
func TestAgentCrashLoop(t *testing.T) {
	t.Run("D1/kills with an agent", func(t *testing.T) {
		crashes := kills(t, usualWithAgents)
		l := newJobs(newLoop(t))
		l.begin()
		stop := l.person()
		for killed := range crashes {
			l.life(jobDeath(killed), func(died <-chan struct{}) {
				for range 2 { // one may be done before the daemon dies
					l.goOn(died)
				}
				l.sum(l.worker.last())
			})
		}
		l.goOn(nil)
		stop()
		l.sum(l.worker.last())
		l.finish(crashes)
		if crashes >= usualWithAgents && l.worker.unknown == 0 {
			t.Error("no tool was interrupted")
		}
		t.Logf("%d jobs, %d tools told as interrupted", l.job, l.worker.unknown)
	})
}

// jobDeath is the daemon's next failpoint: usually a commit of a session, each time a later one.
func jobDeath(killed int) string {
	when := []string{".before:", ".after:"}[killed%2]
	at := killed / 2
	switch at % 10 {
	case 3:
		return "open" + when + "1"
	case 6:
		return "apply" + when + strconv.Itoa(1+at/10%3)
	case 9:
		return "post" + when + "1"
	}
	return "commit" + when + strconv.Itoa(1+at*7%9)
}

// jobLoop is a loop with an agent that does jobs.
type jobLoop struct {
	*loop
	server *modeltest.Server
	worker *worker
	file   string // the ledger
	job    int    // the number of the latest job
}

func newJobs(in *loop) *jobLoop {
	l := &jobLoop{loop: in, server: modeltest.New(in.t), worker: &worker{done: map[int]bool{}, came: make(chan struct{}, 1)}}
	l.server.Answer(l.worker.answer)
	ws := filepath.Join(l.dir, "ws")
	l.file = filepath.Join(ws, "ledger")
	if err := errors.Join(os.Mkdir(ws, 0o700), os.WriteFile(l.file, []byte("begin\n"), 0o600)); err != nil {
		l.t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		l.t.Fatal(err)
	}
	l.parts.people = append(l.parts.people, fmt.Sprintf("{name: fay, user: %q}", me.Username))
	l.parts.connectors = append(l.parts.connectors, "terminal: {enabled: true}")
	l.parts.agents = append(l.parts.agents, fmt.Sprintf("{name: helper, person: fay, connector: terminal, workspace: %s, "+
		"model: {provider: openai, base_url: %q, name: m, window: 10000000}}", ws, l.server.URL(modeltest.OpenAI)))
	if l.hand, err = os.Open(os.DevNull); err != nil { // each daemon gets a pipe of its own instead
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { l.hand.Close() })
	return l
}

// person allows everything that the agent asks, until stopped.
func (l *jobLoop) person() (stop func()) {
	ctx, cancel := context.WithCancel(l.ctx)
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			list, _ := l.people.List(ctx, "", 0) // the daemon may be dead
			for _, s := range list {
				r := s.Request
				if r.Kind != permissions.KindTool {
					continue
				}
				_, err := l.people.OnPermission(ctx, connectors.Decision{Request: r.ID, Answer: permissions.Allow(permissions.Once)})
				if err == nil {
					l.claimed(r.ID, claim{name: r.Tool, whom: "its person", state: permissions.Approved})
				}
			}
		}
	})
	return func() { cancel(); group.Wait() }
}

// types types a line at the console of the current daemon.
func (l *loop) types(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.hand, line) // it may have died
}

// goOn lets the agent continue its job, or gives it the next one, until the job is done or the daemon is dead.
func (l *jobLoop) goOn(died <-chan struct{}) {
	if l.worker.last() >= l.job {
		l.job++
	}
	late := time.After(patient)
	for l.worker.last() < l.job {
		again := time.After(3 * time.Second)
		if !l.worker.knows(l.job) { // a line at the console is lost if the daemon dies before it is read
			l.types(fmt.Sprintf("job %d", l.job))
			again = time.After(300 * time.Millisecond)
		}
		select {
		case <-died:
			return
		case <-l.ctx.Done():
			return
		case <-late:
			log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
			l.violated("job %d is not done\n%s", l.job, log[max(0, len(log)-4000):])
		case <-l.worker.came:
		case <-again:
		}
	}
}

// sum checks what the tools did: nothing twice, and everything of the finished jobs.
func (l *jobLoop) sum(done int) {
	text, err := os.ReadFile(l.file)
	if err != nil {
		l.violated("read the ledger: %v", err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSpace(line)]++
	}
	for job := 1; job <= l.job; job++ {
		for tool := 1; tool <= toolsOfJob; tool++ {
			if n := times[lineOf(job, tool)]; n > 1 || n == 0 && job <= done {
				l.violated("tool %d of job %d ran %d times", tool, job, n)
			}
		}
	}
	if most := 1 + l.job*toolsOfJob; len(times) > most {
		l.violated("the ledger has %d lines, %d at most are the tools'", len(times), most)
	}
}

const toolsOfJob = 5

func lineOf(job, tool int) string { return fmt.Sprintf("%d-%d", job, tool) }

// worker is the agent's model: its replies follow from the transcript alone.
type worker struct {
	mu      sync.Mutex
	known   int          // the latest job that it was told of
	done    map[int]bool // the jobs that it reported as done
	unknown int          // tools reported to it as interrupted
	came    chan struct{}
}

func (w *worker) last() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.done)
}

func (w *worker) knows(job int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known >= job
}

var jobWords = regexp.MustCompile(`job (\d+)`)

func (w *worker) answer(r modeltest.Request) modeltest.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := journal{}
	for i, m := range r.Prompt.Messages {
		j.read(m, i == len(r.Prompt.Messages)-1)
	}
	w.known = max(w.known, j.job)
	w.unknown += j.unknown
	select {
	case w.came <- struct{}{}:
	default:
	}
	id := fmt.Sprintf("%d-%d", j.job, len(r.Prompt.Messages))
	switch {
	case j.job == 0:
		return modeltest.Say("What is the job?")
	case j.look:
		return called(id, "read_file", map[string]any{"path": "ledger"})
	case j.tool > toolsOfJob:
		w.done[j.job] = true
		return modeltest.Say(fmt.Sprintf("Done with %d.", j.job))
	case j.tool%2 == 0:
		return called(id, "edit_file", map[string]any{
			"path": "ledger", "old_text": "begin\n", "new_text": "begin\n" + lineOf(j.job, j.tool) + "\n",
		})
	}
	return called(id, "run_command", map[string]any{
		"command": "echo " + lineOf(j.job, j.tool) + " >> ledger", "write": []string{"."},
	})
}

func called(id, tool string, input map[string]any) modeltest.Answer {
	a := modeltest.Call(tool, input)
	a.Calls[0].ID = id
	return a
}

// journal is the state of a job according to the transcript.
type journal struct {
	job, tool int  // the next tool, from 1
	look      bool // it is unknown whether it ran
	called    string
	unknown   int // how many of the latest results are unknown
}

func (j *journal) read(m models.Message, newest bool) {
	switch m.Role {
	case models.User:
		for _, words := range jobWords.FindAllStringSubmatch(m.Text, -1) {
			if n, _ := strconv.Atoi(words[1]); n > j.job {
				*j = journal{job: n, tool: 1}
			}
		}
	case models.Assistant:
		j.called = ""
		if len(m.Calls) > 0 {
			j.called = m.Calls[0].Tool
		}
	case models.Results:
		result := m.Results[0]
		unknown := strings.Contains(result.Text, "Its outcome is unknown")
		if unknown && newest {
			j.unknown++
		}
		switch {
		case j.called == "read_file" && !result.Error:
			j.look = false
			if slices.Contains(strings.Split(result.Text, "\n"), lineOf(j.job, j.tool)) {
				j.tool++
			}
		case result.Error:
			j.look = true
		default:
			j.tool++
		}
	}
}
