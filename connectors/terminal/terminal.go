// Package terminal asks the person at the daemon's own console. It shows one card at a time, reads one answer, and
// says how it ended; the next card waits its turn.
//
// A console is a terminal or a pipe on standard input; an empty device, a file or a closed descriptor is none. On a
// terminal the keys are read one by one, so that Esc interrupts at once; on a pipe a line at a time. What was typed
// before a prompt was there is thrown away: an answer is newer than its prompt.
//
// [Terminal.Run] is the only goroutine that reads, writes and changes the modes of the terminal. It does so only while
// the process is in the foreground; in the background it waits, and is not stopped. Send and Edit leave their news with
// it and return at once. The end of the input, a hang-up included, decides nothing: the console is closed, for good,
// and whoever would ask there is told so.
//
// A line that names requests by their codes, as in a chat, is taken for whatever was on this screen; a card that was not
// is shown first. s shows the card again, with the secrets in it that cards mask.
//
// While nothing is asked, a command, as in every chat, is done, and anything else is told that it means nothing, unless
// [Options.Leave] is empty. Where its person has agents of ours, what else is typed then is for them; it reads the keys for
// that as well. At a card the answers are what they are without agents. What would be none is a command where it begins
// with /, unless an option begins so, too, and for the agent where it begins with >. A command may also stand where a reason
// is asked for. What an agent says is put among the cards. A card does not come between the keys of a line that is being
// typed: it waits for its end, or for a few seconds, and the line is gone on with after it.
//
// console.go knows what a console is, line.go turns keys into lines, queue.go keeps what is to be shown, screen.go
// writes, chat.go hears what is no answer.
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
	console console
	began   kind // of the console

	mu     sync.Mutex
	news   []news
	bell   *os.File // wakes Run; nil while it does not run
	rung   bool
	closed bool // the input is over
	ended  bool // Run is over
}

var (
	_ connectors.Connector = (*Terminal)(nil)
	_ connectors.Editor    = (*Terminal)(nil)
	_ connectors.Reacher   = (*Terminal)(nil)
	_ connectors.Teller    = (*Terminal)(nil)
	_ connectors.Screen    = (*Terminal)(nil)
	_ connectors.Forgetful = (*Terminal)(nil)
)

// Name is the connector of the daemon's own console.
const Name = "terminal"

// Options are what a terminal needs and may have.
type Options struct {
	In  *os.File  // the console; nil is none. Nobody else reads it
	Out io.Writer // what the person sees
	Now func() time.Time
	Log *slog.Logger

	Via      string                             // decided_via and the name of the connector; empty: [Name]
	UID      int                                // the account whose person sits here: nobody else is reached
	Self     string                             // whose decisions read "you"; empty: whoever is asked
	Account  string                             // what the person is known by here, as a sentence; empty: that it is the console
	Location *time.Location                     // of times of day; nil: the person's, else the machine's
	Who      func(permissions.Request) string   // the asking agent in other words; may be nil
	Heading  func(permissions.Request) string   // over the card; may be nil
	Notes    func(permissions.Request) []string // more words on a settled line; may be nil
	Quit     func()                             // called when the person types q; may be nil
	Leave    string                             // how to leave, as a sentence. Empty: what is typed while nothing is asked is not answered
	Asking   func(connectors.Prompt)            // called when an answer is due; may be nil
	Told     func(permissions.Request)          // called when the end of a request has been told; may be nil
	Closed   func()                             // called when the console has closed; may be nil
}

// New makes a terminal. It neither reads nor changes the console: that is for [Terminal.Run].
func New(o Options) *Terminal {
	o.Via = cmp.Or(o.Via, Name)
	c := newConsole(o.In)
	return &Terminal{o: o, console: c, began: c.kind()}
}

// Name is how decisions made here are told.
func (t *Terminal) Name() string { return t.o.Via }

// Shows says that it is a screen.
func (t *Terminal) Shows() {}

// Forgets says that what is on a screen ends with its process.
func (t *Terminal) Forgets() {}

// Reach tells whether the person sits at this console and it can be used just now.
func (t *Terminal) Reach(p connectors.Person) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p.UID != t.o.UID || p.UID == permissions.NoUID:
		return &connectors.Gone{Why: p.Name + " is not the one at the daemon's console"}
	case t.began == noConsole:
		return &connectors.Gone{Why: p.Name + " has no console here: standard input is neither a terminal nor a pipe"}
	case t.over():
		return closedFor(p)
	case t.ended:
		return errEnded
	case !t.console.foreground():
		return fmt.Errorf("%s cannot be asked here: the terminal is in the background", p.Name)
	}
	return nil
}

// Send queues a card. The reference is good for as long as the process lives.
func (t *Terminal) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	ref = string(p.Request.ID)
	return ref, t.tell(news{ref: ref, prompt: p})
}

// Edit brings a card that was sent up to date: what has become of the request is said below it.
func (t *Terminal) Edit(_ context.Context, ref string, p connectors.Prompt) error {
	return t.tell(news{ref: ref, prompt: p, edit: true})
}

// Tell says a notice on the screen, among the cards.
func (t *Terminal) Tell(_ context.Context, n connectors.Notice) error {
	rows := card.Notice(n, card.Options{
		Self: cmp.Or(t.o.Self, n.To.Name), Now: t.o.Now(), Location: cmp.Or(t.o.Location, n.To.Location, time.Local),
	})
	return t.tell(news{says: true, text: card.Spell(strings.Join(rows, "\n")), prompt: connectors.Prompt{To: n.To}})
}

// Say writes a text of the process's own on the screen, among the cards: one line, or several that stay together.
func (t *Terminal) Say(text string) error { return t.tell(news{says: true, text: text}) }

var errEnded = errors.New("the terminal has stopped")

func closedFor(p connectors.Person) error {
	return &connectors.Gone{Why: p.Name + "'s console is closed"}
}

// Run shows what is sent, one card at a time, and hands what the person answers to h, until ctx ends. A console that
// closes is not an error: nobody can be reached there any more.
func (t *Terminal) Run(ctx context.Context, h connectors.Handler) error {
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
	s := &screen{t: t, handler: h, seen: map[string]*item{}}
	s.talk(ctx)
	defer s.release()
	s.greet(ctx)
	for {
		news := t.take(heard)
		if ctx.Err() != nil { // looked at after the bell was silenced, which rings once for the end as well
			s.lastWords(news)
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
	t.bell, t.rung = bell, false
}

func (t *Terminal) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.bell.Close()
	t.bell, t.ended = nil, true
}

// tell leaves news for Run.
func (t *Terminal) tell(n news) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return errEnded
	case t.over():
		return closedFor(n.prompt.To)
	}
	t.news = append(t.news, n)
	t.ring()
	return nil
}

// take is what was left since.
func (t *Terminal) take(heard *os.File) []news {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rung {
		_, _ = heard.Read(make([]byte, 1)) // it is there: ring wrote it before it let go of the lock
		t.rung = false
	}
	all := t.news
	t.news = nil
	return all
}

func (t *Terminal) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring()
}

// ring wakes Run, which finds at most one byte. The lock is held.
func (t *Terminal) ring() {
	if t.bell != nil && !t.rung {
		_, err := t.bell.Write([]byte{0})
		t.rung = err == nil
	}
}

// over tells whether the console is closed. The lock is held.
func (t *Terminal) over() bool { return t.closed || t.console.over() }

// The words of [Terminal.Console].
const (
	ConsoleOpen   = "open"
	ConsoleClosed = "closed" // for good
	ConsoleNone   = "none"   // there never was one
)

// Console is in a word how the console stands.
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

// HungUp reports whether the console is a terminal that was taken away: its window was closed, or its connection was lost.
func (t *Terminal) HungUp() bool { return t.began == aTerminal && t.console.over() }

// isOver tells whether the console is closed, or, with known, whether that is known already.
func (t *Terminal) isOver(known bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed || (!known && t.over())
}

// shut notes that the console is closed, and tells whether that is news.
func (t *Terminal) shut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.closed
	t.closed = true
	return first
}
