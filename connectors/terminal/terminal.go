// Package terminal asks the person at the daemon's own console. It shows one card at a time, reads one answer and shows the
// outcome; then comes the next card.
//
// A console is a terminal or a pipe on standard input; a device such as /dev/null, a file or a closed descriptor is not. A
// terminal is read key by key, so that Esc interrupts at once; a pipe is read line by line. Input from before a prompt is
// discarded: an answer is newer than its prompt.
//
// [Terminal.Run] is the only goroutine that reads, writes and changes the terminal's modes, and only while the process is
// in the foreground; in the background it waits and is not stopped. Send and Edit queue messages for it and return at once.
// The end of the input, including a hang-up, decides nothing: the console is closed permanently, and later prompts fail.
//
// A line that names requests by their codes, as in a chat, answers what was on this screen; other cards are shown first. s
// shows the card again, with the secrets that cards mask.
//
// While nothing is asked, commands run, and anything else gets a reply that it means nothing, unless [Options.Leave] is
// empty. If the person has agents of ours, other input is for them. At a card, answers are the same with and without
// agents. A line that is not an answer is a command if it begins with /, unless an option begins so, too, and a message to
// the agent if it begins with >. Commands also work where a reason is asked for. Agent messages appear among the cards. A
// card does not interrupt a line: it waits for the line's end, or for a few seconds and then returns the draft afterwards.
//
// console.go defines consoles, line.go turns keys into lines, queue.go holds what is to be shown, screen.go writes, and
// chat.go handles what is not an answer.
package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// Terminal is the connector to the person at the console. It is safe for concurrent use.
type Terminal struct {
	o       Options
	in      connectors.Inbound
	console console
	began   kind // the console's kind at the start

	mu       sync.Mutex
	news     []update
	wakePipe *os.File // wakes Run; nil while it does not run
	woken    bool
	closed   bool // the input has ended
	ended    bool // Run has returned
}

var (
	_ connectors.Connector           = (*Terminal)(nil)
	_ connectors.Editor              = (*Terminal)(nil)
	_ connectors.ReachabilityChecker = (*Terminal)(nil)
	_ connectors.Notifier            = (*Terminal)(nil)
	_ connectors.Screen              = (*Terminal)(nil)
	_ connectors.EphemeralChannel    = (*Terminal)(nil)
)

// Name identifies the connector of the daemon's own console.
const Name = "terminal"

// Options configure a [Terminal].
type Options struct {
	In  *os.File  // the console, which nobody else reads; nil: none
	Out io.Writer // the screen
	Now func() time.Time
	Log *slog.Logger

	UID     int                              // the account of the person at the console: nobody else is reached
	Self    string                           // whose decisions read "you"; empty: the recipient
	Account string                           // a sentence about how the person is identified; empty: as the console
	Heading func(permissions.Request) string // above the card; may be nil
	Quit    func()                           // called when the person types q; may be nil
	Leave   string                           // a sentence about how to leave; empty: input while nothing is asked is not answered
	Asking  func(connectors.Prompt)          // called when an answer is due; may be nil
	Told    func(permissions.Request)        // called when an outcome was shown; may be nil
	Closed  func()                           // called when the console has closed; may be nil
}

// New makes a terminal that hands answers to in. It neither reads nor changes the console before [Terminal.Run].
func New(o Options, in connectors.Inbound) *Terminal {
	c := newConsole(o.In)
	return &Terminal{o: o, in: in, console: c, began: c.kind()}
}

// Name is the connector's name in decisions.
func (t *Terminal) Name() string { return Name }

// Screen is [connectors.Screen].
func (t *Terminal) Screen() {}

// Ephemeral is [connectors.EphemeralChannel].
func (t *Terminal) Ephemeral() {}

// Reach reports whether the person is at this console and it can be used now.
func (t *Terminal) Reach(p connectors.Person) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p.UID != t.o.UID || p.UID == permissions.NoUID:
		return &connectors.UnreachableError{Reason: p.Name + " is not the one at the daemon's console"}
	case t.began == noConsole:
		return &connectors.UnreachableError{Reason: p.Name + " has no console here: standard input is neither a terminal nor a pipe"}
	case t.over():
		return closedFor(p)
	case t.ended:
		return errEnded
	case !t.console.foreground():
		return fmt.Errorf("%s cannot be asked here: the terminal is in the background", p.Name)
	}
	return nil
}

// Send queues a card. The reference is valid for the life of the process.
func (t *Terminal) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	ref = string(p.Request.ID)
	return ref, t.queueUpdate(update{ref: ref, prompt: p})
}

// Edit updates a card: the request's state is shown below it.
func (t *Terminal) Edit(_ context.Context, ref string, p connectors.Prompt) error {
	return t.queueUpdate(update{ref: ref, prompt: p, edit: true})
}

// Notify shows a notice among the cards.
func (t *Terminal) Notify(_ context.Context, n connectors.Notice) error {
	rows := card.Notice(n, card.Options{
		Self: cmp.Or(t.o.Self, n.To.Name), Now: t.o.Now(), Location: cmp.Or(n.To.Location, time.Local),
		Language: n.To.Language, Width: t.console.width(),
	})
	return t.queueUpdate(update{says: true, text: card.Spell(strings.Join(rows, "\n")), prompt: connectors.Prompt{To: n.To}})
}

// Say shows a text of the process itself among the cards: one line, or several that stay together.
func (t *Terminal) Say(text string) error { return t.queueUpdate(update{says: true, text: text}) }

var errEnded = errors.New("the terminal has stopped")

func closedFor(p connectors.Person) error {
	return &connectors.UnreachableError{Reason: p.Name + "'s console is closed"}
}

// Run shows what is sent, one card at a time, and hands on answers, until ctx ends. A console that closes is not an error;
// nobody can be reached there any more.
func (t *Terminal) Run(ctx context.Context) error {
	heard, bell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("run the terminal: %w", err)
	}
	defer heard.Close()
	t.begin(bell)
	defer t.finish()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		t.wake()
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken
		}
	}()
	s := &screen{t: t, seen: map[string]*item{}}
	s.talk(ctx)
	defer s.release()
	s.greet(ctx)
	for {
		news := t.take(heard)
		if ctx.Err() != nil { // checked after take, because the end of ctx wakes Run, too
			for _, n := range news {
				if n.text != "" {
					s.put(n.text)
				}
			}
			s.leave()
			return nil
		}
		s.look()
		for _, n := range news {
			s.apply(n)
		}
		s.turn(ctx)
		s.wait(ctx, int(heard.Fd()))
	}
}

func (t *Terminal) begin(bell *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakePipe, t.woken = bell, false
}

func (t *Terminal) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.wakePipe.Close()
	t.wakePipe, t.ended = nil, true
}

// queueUpdate queues a message for Run.
func (t *Terminal) queueUpdate(n update) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return errEnded
	case t.over():
		return closedFor(n.prompt.To)
	}
	t.news = append(t.news, n)
	t.wakeLocked()
	return nil
}

func (t *Terminal) take(heard *os.File) []update {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.woken {
		_, _ = heard.Read(make([]byte, 1)) // present: ring wrote it while it held the lock
		t.woken = false
	}
	all := t.news
	t.news = nil
	return all
}

func (t *Terminal) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked()
}

// wakeLocked wakes Run, with at most one byte in the pipe. The caller holds the lock.
func (t *Terminal) wakeLocked() {
	if t.wakePipe != nil && !t.woken {
		_, err := t.wakePipe.Write([]byte{0})
		t.woken = err == nil
	}
}

// over reports whether the console is closed. The caller holds the lock.
func (t *Terminal) over() bool { return t.closed || t.console.hasEnded() }

// The values of [Terminal.Console].
const (
	ConsoleOpen   = "open"
	ConsoleClosed = "closed" // permanently
	ConsoleNone   = "none"   // there never was one
)

// Console is the console's state in one word.
func (t *Terminal) Console() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.began == noConsole:
		return ConsoleNone
	case t.over() || t.ended:
		return ConsoleClosed
	}
	return ConsoleOpen
}

// HungUp reports whether the console is a terminal that hung up: its window was closed or its connection was lost.
func (t *Terminal) HungUp() bool { return t.began == aTerminal && t.console.hasEnded() }

// isOver reports whether the console is closed; with known, only if that was noticed already.
func (t *Terminal) isOver(known bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed || (!known && t.over())
}

// noteClosed records that the console is closed and reports whether that is news.
func (t *Terminal) noteClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.closed
	t.closed = true
	return first
}
