package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// Scripts may have a provider of models in them, a server of our own that speaks both real protocols. What agents think is
// said before they do:
//
//	model                           start it; $MODEL is its address in OpenAI's dialect, $CLAUDE in Anthropic's
//	thinks AGENT TOOL INPUT…        its next reply calls these tools, with inputs as they stand here, but for ${NAME}; ${BIG}
//	                                is text of 85 kB, and ${HUGE} of 1.2 MB
//	thinks AGENT TEXT               its next reply is this text; \n and the like are as in Go
//	flood AGENT N                   its next reply calls write_file so many times
//	hangs AGENT                     its next reply never comes
//	told AGENT REGEXP…              wait until its model was asked with this among what is new, after what was awaited before
//	untold AGENT REGEXP             its model was never asked with anything like that
//	idle AGENT                      nothing is left that it is to think
//	pid NAME                        $PID is that of a command
//	page                            start a page at $PAGE, on loopback; its /away leads to another address of this machine
//	fetched N                       it was fetched N times
//	query SELECT…                   ask the daemon's database what people ask it; stdout is a row a line
//	contract                        all that happened is told with the members that the contract of events has
//	file NAME REGEXP                wait for a file that the bot sent somebody, with that in it
//	watch                           look at the clock
//	within DURATION                 no more has passed since then

// thoughts are the agents' next replies, and the requests to their models.
type thoughts struct {
	mu    sync.Mutex
	next  map[string][]modeltest.Answer
	asked map[string][]modeltest.Request
	read  map[string]int // how many of them were awaited
	came  chan struct{}  // closed and replaced with each request
	watch time.Time

	fetches atomic.Int64
}

type thoughtsKey struct{}

func modelCommands() scriptCommands {
	with := func(least int, do func(*testscript.TestScript, *thoughts, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			th, ok := ts.Value(thoughtsKey{}).(*thoughts)
			if neg || !ok || len(args) < least {
				ts.Fatalf("it takes %d arguments", least)
			}
			do(ts, th, args)
		}
	}
	return scriptCommands{
		"file": with(2, func(ts *testscript.TestScript, _ *thoughts, args []string) {
			ctx, done := context.WithTimeout(context.Background(), patience)
			defer done()
			want := regexp.MustCompile("(?s)" + args[1])
			_, err := chatsOf(ts).person(ts, args[0]).Sees(ctx, func(m telegramtest.Message) bool {
				return m.FromBot && m.Document != nil && want.Match(m.Document.Bytes)
			})
			ts.Check(err)
		}),
		"flood": with(2, func(ts *testscript.TestScript, th *thoughts, args []string) {
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			all := args[:1]
			for i := range n {
				all = append(all, "write_file", fmt.Sprintf(`{"path":"f%d","content":"x"}`, i))
			}
			thinks(ts, th, all)
		}),
		"model": with(0, startModel), "thinks": with(2, thinks), "told": with(2, isTold), "untold": with(2, isUntold),
		"hangs": with(1, func(_ *testscript.TestScript, th *thoughts, args []string) {
			th.mu.Lock()
			defer th.mu.Unlock()
			th.next[args[0]] = append(th.next[args[0]], modeltest.Answer{Text: "never", Wait: make(chan struct{})})
		}),
		"idle": with(1, isIdle), "page": with(0, startPage),
		"pid": with(1, func(ts *testscript.TestScript, _ *thoughts, args []string) {
			ts.Setenv("PID", strconv.Itoa(cast(ts)[args[0]].cmd.Process.Pid))
		}),
		"query": with(1, func(ts *testscript.TestScript, _ *thoughts, args []string) {
			text, err := storetest.Table(context.Background(), filepath.Join(ts.Getenv("DAYCARED_DATA_DIR"), storeName), args[0])
			ts.Check(err)
			_, err = fmt.Fprint(ts.Stdout(), text)
			ts.Check(err)
		}),
		"contract": with(0, checkContract),
		"fetched": with(1, func(ts *testscript.TestScript, th *thoughts, args []string) {
			if got := strconv.FormatInt(th.fetches.Load(), 10); got != args[0] {
				ts.Fatalf("it was fetched %s times", got)
			}
		}),
		"watch": with(0, func(_ *testscript.TestScript, th *thoughts, _ []string) { th.watch = time.Now() }),
		"within": with(1, func(ts *testscript.TestScript, th *thoughts, args []string) {
			most, err := time.ParseDuration(args[0])
			ts.Check(err)
			if took := time.Since(th.watch); took > most {
				ts.Fatalf("it took %s, more than %s", took, most)
			}
		}),
	}
}

func newThoughts() *thoughts {
	return &thoughts{
		next: map[string][]modeltest.Answer{}, asked: map[string][]modeltest.Request{}, read: map[string]int{},
		came: make(chan struct{}),
	}
}

func startModel(ts *testscript.TestScript, th *thoughts, _ []string) {
	server := modeltest.Serve()
	server.Answer(th.answer)
	ts.Defer(func() {
		server.Close()
		th.mu.Lock()
		defer th.mu.Unlock()
		for agent, requests := range th.asked {
			for i, r := range requests {
				ts.Logf("[%s was asked, %d]\n%s", agent, i+1, news(r))
			}
		}
	})
	ts.Setenv("MODEL", server.URL(modeltest.OpenAI))
	ts.Setenv("CLAUDE", server.URL(modeltest.Anthropic))
}

func startPage(ts *testscript.TestScript, th *thoughts, _ []string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
			return
		}
		th.fetches.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintln(w, "hello from the page")
	}))
	ts.Defer(server.Close)
	ts.Setenv("PAGE", server.URL)
}

func checkContract(ts *testscript.TestScript, _ *thoughts, _ []string) {
	text, err := storetest.Table(context.Background(), filepath.Join(ts.Getenv("DAYCARED_DATA_DIR"), storeName),
		`SELECT json_object('Type', type, 'Actor', actor, 'Via', via, 'Request', request, 'Detail', json(detail)) FROM audit`)
	ts.Check(err)
	for line := range strings.Lines(text) {
		var r permissions.Record
		ts.Check(json.Unmarshal([]byte(line), &r))
		e, told := server.Events().Events[r.Type]
		for member := range server.EventOf(permissions.Event{Entry: permissions.Entry{Record: r}}).Payload {
			if told && e.Payload[member] == nil {
				ts.Fatalf("the contract has no %s of %s", member, r.Type)
			}
		}
	}
}

var whoThinks = regexp.MustCompile(`^You are ([^,]+),`)

// answer is an agent's next reply.
func (th *thoughts) answer(r modeltest.Request) modeltest.Answer {
	th.mu.Lock()
	defer th.mu.Unlock()
	m := whoThinks.FindStringSubmatch(r.Prompt.System)
	if m == nil {
		return modeltest.Answer{Fault: &modeltest.Fault{Status: http.StatusBadRequest, Text: "nobody is told who they are"}}
	}
	agent := m[1]
	th.asked[agent] = append(th.asked[agent], r)
	close(th.came)
	th.came = make(chan struct{})
	if len(th.next[agent]) == 0 {
		return modeltest.Answer{Fault: &modeltest.Fault{Status: http.StatusBadRequest, Text: agent + " thinks no further"}}
	}
	a := th.next[agent][0]
	th.next[agent] = th.next[agent][1:]
	for i := range a.Calls {
		a.Calls[i].ID = "c" + strconv.Itoa(len(th.asked[agent])) + "-" + strconv.Itoa(i+1)
	}
	return a
}

var named = regexp.MustCompile(`\$\{[A-Z_]+\}`)

// filled replaces the names in an input by their values.
func filled(ts *testscript.TestScript, input string) string {
	return named.ReplaceAllStringFunc(input, func(name string) string {
		switch name {
		case "${BIG}":
			return strings.Repeat("a very long line ", 5000)
		case "${HUGE}":
			return strings.Repeat("a very long line ", 70_000)
		}
		return ts.Getenv(name[2 : len(name)-1])
	})
}

func thinks(ts *testscript.TestScript, th *thoughts, args []string) {
	a := modeltest.Answer{}
	if len(args) == 2 {
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
		ts.Check(err)
		a.Text = text
	}
	for i := 1; i+1 < len(args); i += 2 {
		a.Calls = append(a.Calls, models.Call{Tool: args[i], Input: json.RawMessage(filled(ts, args[i+1]))})
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	th.next[args[0]] = append(th.next[args[0]], a)
}

// news is what is new to a model since its last reply.
func news(r modeltest.Request) string {
	last := 0
	for i, m := range r.Prompt.Messages {
		if m.Role == models.Assistant {
			last = i
		}
	}
	return tidings(r.Prompt.Messages[last:])
}

// tidings are messages to a model from other senders.
func tidings(messages []models.Message) string {
	var lines []string
	for _, m := range messages {
		switch m.Role {
		case models.User:
			lines = append(lines, m.Text)
		case models.Results:
			for _, result := range m.Results {
				mark := "result: "
				if result.Error {
					mark = "error: "
				}
				lines = append(lines, mark+result.Text)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// isTold waits for one request that matches all patterns.
func isTold(ts *testscript.TestScript, th *thoughts, args []string) {
	var want []*regexp.Regexp
	for _, pattern := range args[1:] {
		re, err := regexp.Compile("(?s)" + pattern)
		ts.Check(err)
		want = append(want, re)
	}
	for late := time.After(patience); ; {
		found, came := th.look(args[0], want)
		if found {
			return
		}
		select {
		case <-came:
		case <-late:
			ts.Fatalf("%s is not told %q", args[0], args[1:])
		}
	}
}

func (th *thoughts) look(agent string, want []*regexp.Regexp) (found bool, came <-chan struct{}) {
	th.mu.Lock()
	defer th.mu.Unlock()
	for i, r := range th.asked[agent][th.read[agent]:] {
		found = true
		for _, re := range want {
			found = found && re.MatchString(news(r))
		}
		if found {
			th.read[agent] += i + 1
			break
		}
	}
	return found, th.came
}

func isUntold(ts *testscript.TestScript, th *thoughts, args []string) {
	unwanted, err := regexp.Compile("(?s)" + args[1])
	ts.Check(err)
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, r := range th.asked[args[0]] {
		if unwanted.MatchString(tidings(r.Prompt.Messages)) {
			ts.Fatalf("%s was told %s", args[0], unwanted)
		}
	}
}

func isIdle(ts *testscript.TestScript, th *thoughts, args []string) {
	until(ts, args[0]+" has nothing left to think", func(context.Context) error {
		th.mu.Lock()
		defer th.mu.Unlock()
		if n := len(th.next[args[0]]); n > 0 {
			return fmt.Errorf("%d replies are left", n)
		}
		return nil
	})
}
