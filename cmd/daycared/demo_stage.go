package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// quiet is a log that discards everything, for commands that print to the screen.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// child is a daemon in a separate process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  *os.File
}

// startChild starts the demo's daemon, without variables that would move it out of its scratch folder, and waits until its sockets answer.
func startChild(ctx context.Context, d *demo) (*child, error) {
	environ := slices.DeleteFunc(slices.Clone(d.cli.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "DAYCARED_") || name == "RUNTIME_DIRECTORY" || name == "STATE_DIRECTORY"
	})
	return startDaemon(ctx, d.path("config.yaml"), environ, d.path("daemon.log"), nil, d.people.Ready)
}

// startDaemon starts the daemon of a configuration, logging to a file, and waits until it is ready.
func startDaemon(
	ctx context.Context, file string, environ []string, logFile string, how *syscall.SysProcAttr,
	ready func(context.Context) error,
) (*child, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the daemon's binary: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	cmd := exec.Command(binary, "serve", "--config", file) //nolint:gosec,noctx // our own binary; stop ends it
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.SysProcAttr = log, log, environ, how
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the daemon: %w", err), log.Close())
	}
	c := &child{cmd: cmd, done: make(chan struct{}), log: log}
	go func() {
		_ = cmd.Wait() // whoever ends it reports how it ended
		close(c.done)
	}()
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		select {
		case <-c.done:
			return struct{}{}, backoff.Permanent(errors.New("the daemon ended at once"))
		default:
			return struct{}{}, ready(ctx)
		}
	}, backoff.WithBackOff(backoff.NewConstantBackOff(5*time.Millisecond)), backoff.WithMaxElapsedTime(20*time.Second))
	if err != nil {
		said, _ := os.ReadFile(logFile)
		c.stop()
		return nil, fmt.Errorf("wait for the daemon: %w\n%s", err, said)
	}
	return c, nil
}

// kill sends SIGKILL and waits for the process's end.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// stop asks the daemon to end and waits for it.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-c.done:
	case <-time.After(5 * time.Second):
		c.kill()
	}
	c.log.Close()
}

// asking is called when a question is on the screen. It kills and restarts the daemon during the third question, and lets a
// scripted person answer. It is called by the terminal's goroutine, which is blocked meanwhile.
func (d *demo) asking(p connectors.Prompt) {
	err := error(nil)
	if d.scene.tally().asked == killAfter && d.kills == 0 {
		err = d.killAndRestart()
	}
	if err == nil && d.script != nil {
		err = d.script.answer(p, d.cli.Out)
	}
	if err != nil {
		d.scene.fail(err)
	}
}

// killAfter is how many questions are answered before the daemon is killed.
const killAfter = 2

func (d *demo) killAndRestart() (err error) {
	d.kills++
	pid, began := d.child.cmd.Process.Pid, time.Now()
	d.child.kill()
	d.child.log.Close()
	if d.child, err = startChild(context.Background(), d); err != nil {
		return err
	}
	d.print("\n   …while you think, I kill the daemon: kill -9 %d …and start it again: %d ms. The question stands. Answer it.",
		pid, time.Since(began).Milliseconds())
	_, err = fmt.Fprint(d.cli.Out, "> ")
	return err
}

// demoTurns is the script of scribe's model; $SITE is replaced by the site's path.
//
//go:embed demo_turns.yaml
var demoTurns string

const (
	demoPublish = "#!/bin/sh\nset -e\nmkdir -p published\ncp -r site/. published/\necho published >> ledger\n"
	// demoConfig is the daemon's configuration. The site is outside the workspace, so that writing to it needs approval, which
	// is asked for once, not per file. The person's timeout is long enough for the restart after kill -9.
	demoConfig = `connectors: {terminal: {enabled: false}}
api: {agent_socket: %q, admin_socket: %q, admin_reachable: true}
high_risk: off
tools:
  auto: [read_file, list_files, search_files, write_file]
  gated: [edit_file, run_command, fetch_url]
  forbidden: []
agents:
  - {name: scribe, connector: admin, workspace: %q, model: {provider: script, file: %q}}
sandbox: %s
data_dir: %q
`
)

// writeFiles creates the site, the old pages, the workspace with the publishing script, the model's script, and the daemon's
// configuration, with or without a sandbox.
func (d *demo) writeFiles(walls bool) (err error) {
	if d.folder, err = filepath.EvalSymlinks(d.folder); err != nil {
		return err
	}
	box := "on"
	if !walls {
		box = "off"
	}
	site, err := json.Marshal(d.path("site")) // as written between quotes
	if err != nil {
		return err
	}
	turns := strings.ReplaceAll(demoTurns, "$SITE", string(site[1:len(site)-1]))
	for _, folder := range []string{d.path("site", "old"), d.path("work")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(d.path("site", "old", "2024.md"), []byte("# Older notes\n"), 0o600),
		os.WriteFile(d.path("work", "publish.sh"), []byte(demoPublish), 0o700), //nolint:gosec // a script has to be executable
		os.Symlink("../site", d.path("work", "site")),
		os.WriteFile(d.path("turns.yaml"), []byte(turns), 0o600),
		os.WriteFile(d.path("config.yaml"), fmt.Appendf(nil, demoConfig, d.path("agent.sock"), d.path("admin.sock"),
			d.path("work"), d.path("turns.yaml"), box, d.path("data")), 0o600),
	)
}

// missingPromises lists the sandbox promises that do not hold; empty if all do.
func missingPromises(all []sandbox.Promise) string {
	var broken []string
	for _, p := range all {
		if !p.Holds {
			broken = append(broken, p.Name+": "+p.Why)
		}
	}
	return strings.Join(broken, "; ")
}

// script is a person whose answers are given in advance. Each is typed, through a pipe, when its question is on the screen.
type script struct {
	reader, writer *os.File
	lines          []string
	next           int
}

func newScript(lines []string) (*script, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the scripted person's keyboard: %w", err)
	}
	return &script{reader: reader, writer: writer, lines: lines}, nil
}

// Close closes the pipe.
func (s *script) Close() {
	s.writer.Close()
	s.reader.Close()
}

// answer types the next answer and echoes it on the screen, if it answers the question: the demo would otherwise wait forever.
func (s *script) answer(p connectors.Prompt, screen io.Writer) error {
	if s.next == len(s.lines) {
		return usage("--answer has %d answers, and there is one more question: %s", len(s.lines), p.Request.Kind)
	}
	line := s.lines[s.next]
	s.next++
	if line == "a" && !p.Request.Offers(permissions.Allow(permissions.Session)) {
		line = "t" // the narrower scope
	}
	if reply.Parse(line, p.Request, p.Code, p.To.Language).Meaning != reply.Decides {
		return usage("--answer: number %d does not answer a question of the kind %s", s.next, p.Request.Kind)
	}
	if _, err := fmt.Fprint(screen, line); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.writer, line)
	return err
}

// unused rejects answers to questions that were never asked.
func (s *script) unused() error {
	if left := len(s.lines) - s.next; left > 0 {
		return usage("--answer has %d answers more than there were questions", left)
	}
	return nil
}

// parseScript converts option words to the lines that a person would type.
func parseScript(text string) ([]string, error) {
	var lines []string
	for word := range strings.SplitSeq(text, ",") {
		line, err := typed(word)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// typed is the line for an option word; other words are checked as the screen offers them.
func typed(word string) (string, error) {
	if reason, reasoned := strings.CutPrefix(word, "deny:"); reasoned {
		return "r " + reason, nil
	}
	for _, begins := range []string{"r ", "o ", "other:"} { // a reason, and free text
		if rest, found := strings.CutPrefix(word, begins); found && strings.TrimSpace(rest) != "" {
			return word, nil
		}
	}
	if line, known := map[string]string{
		"deny": "n", "allow": "y", "session": "a", "continue": "", "interrupt": "esc", "n": "n", "y": "y", "a": "a", "esc": "esc",
	}[word]; known {
		return line, nil
	}
	if len(word) == 1 && word[0] >= '1' && word[0] <= '9' {
		return word, nil
	}
	if s, err := permissions.ParseScope(word); err == nil {
		return "yes " + s.String(), nil
	}
	return "", usage("--answer %q is none of %s", word, answerWords)
}

// answerWords lists the words of --answer.
const answerWords = "allow (y), session (a), 15m, deny (n), deny:why, a number, other:words, continue, interrupt"

// scene is the demo's screen. The agent's messages and its questions arrive separately, so scene orders them: a message precedes
// the question that it leads to, and follows the answer that caused it.
type scene struct {
	screen
	ran    func(permissions.Request) (string, error) // what to print about an allowed command that has run
	failed func()                                    // called on an error
	over   func()                                    // called at the end of the job

	mu       sync.Mutex
	counted  tally
	asks     permissions.ID // the question on the screen; empty if none
	spoke    bool           // a message was shown since the last answer
	words    []string       // messages not yet shown
	heard    map[string]bool
	card     *connectors.Prompt   // the next question
	allowed  *permissions.Request // an allowed command whose effect was not checked yet
	finished bool                 // the job has ended
	done     bool                 // and everything was shown
	wrong    error
}

// tally counts for the summary.
type tally struct {
	asked                                           int // and answered
	allowed, denied, chosen, continued, interrupted int
	waited                                          time.Duration
}

func (s *scene) tally() tally {
	counted, _, _ := s.state()
	return counted
}

// state returns what was counted, whether the job has ended and everything was shown, and the first error.
func (s *scene) state() (counted tally, done bool, wrong error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted, s.done, s.wrong
}

func (s *scene) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broke(err)
}

// broke records the first error. The caller holds the lock.
func (s *scene) broke(err error) {
	if s.wrong == nil {
		s.wrong = err
	}
	s.failed()
}

// Send implements [connectors.Connector]: it queues the card.
func (s *scene) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.card = &p
	s.showNext()
	return string(p.Request.ID), nil
}

// queueMessage queues an agent's message. One that is repeated after a kill -9 is shown once.
func (s *scene) queueMessage(m admin.Said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard[m.Text] {
		return
	}
	if s.heard == nil {
		s.heard = map[string]bool{}
	}
	s.heard[m.Text], s.spoke = true, true
	s.words = append(s.words, formatSaid(m))
	s.showNext()
}

// formatSaid formats a message: "scribe: Done." or "scribe is done".
func formatSaid(m admin.Said) string {
	text := strings.TrimPrefix(m.Text, m.Agent+": ")
	if first, _ := utf8.DecodeRuneInString(text); unicode.IsLower(first) {
		text = m.Agent + " " + text
	} else {
		text = m.Agent + ": " + text
	}
	return "   " + strings.ReplaceAll(text, "\n", "\n   ")
}

// noteEnd is called when a request's end was shown.
func (s *scene) noteEnd(r permissions.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks != r.ID {
		return
	}
	s.asks, s.spoke = "", len(s.words) > 0 // messages that already arrived follow from the answer
	s.counted.count(r)
	if r.Kind == permissions.KindTool && r.State == permissions.Approved {
		s.allowed = &r
	}
	s.showNext()
}

func (t *tally) count(r permissions.Request) {
	t.asked++
	t.waited += r.DecidedAt.Sub(r.CreatedAt)
	switch {
	case r.State == permissions.Approved:
		t.allowed++
	case r.State == permissions.Denied:
		t.denied++
	case r.Answer == permissions.Continue:
		t.continued++
	case r.Answer == permissions.Interrupt:
		t.interrupted++
	case r.Choice() != "", r.Answer == permissions.Other:
		t.chosen++
	}
}

// handleEvent watches for the end of the job.
func (s *scene) handleEvent(e wire.Event) error {
	if e.Type != permissions.RunFinished {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	if e.Payload["outcome"] == "failed" {
		s.broke(fmt.Errorf("the job has failed: %v", e.Payload["reason"]))
	}
	s.showNext()
	return nil
}

// showNext shows what is next, unless a question is open. The caller holds the lock. Errors of a closed screen are ignored.
func (s *scene) showNext() {
	if s.asks != "" {
		return
	}
	next := s.card != nil && (s.spoke || s.card.Request.Kind == permissions.KindPermission ||
		s.card.Request.Reason == "") // else its reason is a message, too
	if s.allowed != nil && (next || len(s.words) > 0 || s.finished) {
		s.printEffect()
	}
	for _, text := range s.words {
		_ = s.Say(text)
	}
	s.words = nil
	switch {
	case next:
		s.asks = s.card.Request.ID
		_, _ = s.screen.Send(context.Background(), *s.card)
		s.card = nil
	case s.finished && s.spoke && s.card == nil: // its last message was shown
		s.done = true
		s.over()
	}
}

// printEffect prints the effect of the last allowed command. The caller holds the lock.
func (s *scene) printEffect() {
	words, err := s.ran(*s.allowed)
	s.allowed = nil
	if err != nil {
		s.broke(err)
		return
	}
	_ = s.Say("   " + words)
}
