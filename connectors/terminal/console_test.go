package terminal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

func TestWhatIsAConsole(t *testing.T) {
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := open(os.DevNull)
	_ = closed.Close()
	hand, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close()
	defer tty.Close()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	left, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	_ = gone.Close()
	const none = "fay has no console here"
	for _, c := range []struct {
		name string
		in   *os.File
		why  string // empty: a console
	}{
		{"nothing", nil, none},
		{"the empty device", open(os.DevNull), none},
		{"a file", open(filepath.Join(t.TempDir(), "file")), none},
		{"closed", closed, none},
		{"a pipe that nobody writes any more", left, "fay's console is closed"},
		{"a pipe", in, ""},
		{"a fifo", open(fifo), ""},
		{"a terminal", tty, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := terminal.New(terminal.Options{In: c.in, UID: fay.UID}, nil)
			err := term.Reach(fay)
			_, sent := term.Send(t.Context(), connectors.Prompt{To: fay, Request: *ask(permissions.KindPause, nil)})
			if c.why == "" {
				if err != nil || sent != nil {
					t.Errorf("Reach = %v, Send = %v; want a console", err, sent)
				}
				return
			}
			if !errors.Is(err, connectors.ErrUnreachable) || !strings.HasPrefix(err.Error(), c.why) {
				t.Errorf("Reach = %v; want %q, for good", err, c.why)
			}
			if !errors.Is(sent, connectors.ErrUnreachable) {
				t.Errorf("Send = %v; want that nobody can be reached", sent)
			}
		})
	}
	_ = out.Close()
}

func TestTheTerminalReachesOnlyItsUser(t *testing.T) {
	p := atPipe(t, nil)
	sam := connectors.Person{Name: "sam", UID: fay.UID + 1}
	if err := p.Reach(sam); !errors.Is(err, connectors.ErrUnreachable) || !strings.Contains(err.Error(), "sam is not the one") {
		t.Errorf("Reach(sam) = %v; want that somebody else sits there", err)
	}
	nobody := atPipe(t, func(o *terminal.Options) { o.UID = permissions.NoUID })
	if err := nobody.Reach(connectors.Person{Name: "kim", UID: permissions.NoUID}); err == nil {
		t.Error("a person without an account is reached at a console without one")
	}
	if p.Name() != "terminal" {
		t.Errorf("Name = %q; want terminal", p.Name())
	}
}

func TestTheEndOfTheInputDecidesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		sit func(testing.TB, func(*terminal.Options)) *person
		end func(t *testing.T, p *person)
	}{
		"the pipe is closed":            {atPipe, func(_ *testing.T, p *person) { _ = p.hand.Close() }},
		"closed within a line":          {atPipe, func(t *testing.T, p *person) { p.types(t, "y"); _ = p.hand.Close() }},
		"the terminal hangs up":         {atTerminal, func(_ *testing.T, p *person) { _ = p.hand.Close() }},
		"hangs up within a line":        {atTerminal, func(t *testing.T, p *person) { p.types(t, "y"); _ = p.hand.Close() }},
		"Ctrl-D":                        {atTerminal, func(t *testing.T, p *person) { p.types(t, "\x04") }},
		"Ctrl-D after a line was begun": {atTerminal, func(t *testing.T, p *person) { p.types(t, "y\x04\x15\x04") }},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.sit(t, nil)
			r := ask(permissions.KindPermission, nil)
			h := takes(r)
			stop := p.runs(t, h)
			prompt := p.isAsked(t, *r, "K7F3Q")
			p.screen.asked(t, "K7F3Q")
			c.end(t, p)
			p.logged(t, "console closed")
			if err := p.Reach(fay); !errors.Is(err, connectors.ErrUnreachable) {
				t.Errorf("Reach = %v; want that the console is closed", err)
			}
			if err := p.Edit(t.Context(), string(r.ID), prompt); !errors.Is(err, connectors.ErrUnreachable) {
				t.Errorf("Edit = %v; want that the console is closed", err)
			}
			stop() // it has not ended by itself
			h.none(t)
		})
	}
}

func TestTheLastLineOfAPipeCounts(t *testing.T) {
	p := atPipe(t, nil)
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	p.types(t, "y\n")
	_ = p.hand.Close()
	if d := h.next(t); d.Answer != permissions.Allow(permissions.Once) {
		t.Errorf("decided %s; want allow_once", d.Answer)
	}
}

func TestAClosedConsoleIsNoticedWithoutAQuestion(t *testing.T) {
	for name, sit := range consoles {
		t.Run(name, func(t *testing.T) {
			p := sit(t, nil)
			p.runs(t, takes())
			_ = p.hand.Close()
			p.logged(t, "console closed")
		})
	}
}

func TestAScreenThatFailsClosesTheConsole(t *testing.T) {
	closed := make(chan struct{})
	p := atPipe(t, func(o *terminal.Options) { o.Closed = func() { close(closed) } })
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	p.screen.fail(errors.New("no space left"))
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.logged(t, "write to console")
	within(t, closed)
	p.types(t, "y\n")
	if err := p.Reach(fay); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Reach = %v; want that the console is closed", err)
	}
	h.none(t)
}

func TestTheModesAreRestored(t *testing.T) {
	modes := func(tty *os.File) unix.Termios {
		m, err := unix.IoctlGetTermios(int(tty.Fd()), getModes)
		if err != nil {
			t.Fatal(err)
		}
		return *m
	}
	for name, end := range map[string]func(t *testing.T, p *person, stop func()){
		"when it ends": func(_ *testing.T, _ *person, stop func()) { stop() },
		"when nothing is asked any more": func(t *testing.T, p *person, stop func()) {
			p.types(t, "n\n")
			p.screen.sees(t, "⛔ You denied this")
			stop()
		},
		"when the console is closed": func(t *testing.T, p *person, _ func()) {
			p.types(t, "\x04")
			p.logged(t, "console closed")
			p.screen.sees(t, "This console is closed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := atTerminal(t, nil)
			before := modes(p.tty)
			r := ask(permissions.KindPermission, nil)
			stop := p.runs(t, takes(r))
			p.isAsked(t, *r, "K7F3Q")
			p.screen.asked(t, "K7F3Q")
			if now := modes(p.tty); now.Lflag&(unix.ICANON|unix.ECHO) != 0 || now.Lflag&unix.ISIG == 0 {
				t.Errorf("local modes are %b while asking; want keys one by one, unseen, and Ctrl-C as ever", now.Lflag)
			}
			end(t, p, stop)
			if after := modes(p.tty); after != before {
				t.Errorf("the modes are %+v; want %+v as before", after, before)
			}
		})
	}
	t.Run("when the handler panics", func(t *testing.T) {
		p := atTerminal(t, nil)
		before := modes(p.tty)
		r := ask(permissions.KindPermission, nil)
		h := takes(r)
		h.answer = func(connectors.Decision) (permissions.Request, error) { panic("of the handler") }
		p.to.Services = h
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			_ = p.Run(t.Context())
		}()
		p.isAsked(t, *r, "K7F3Q")
		p.screen.asked(t, "K7F3Q")
		p.types(t, "y\n")
		if got := <-done; got != "of the handler" {
			t.Fatalf("recovered %v", got)
		}
		if after := modes(p.tty); after != before {
			t.Errorf("the modes are %+v; want %+v as before", after, before)
		}
	})
}

// A program that was given the terminal meanwhile, or a shell after Ctrl-Z, leaves its own modes behind.
func TestModesThatOthersChangedAreSetAgain(t *testing.T) {
	p := atTerminal(t, nil)
	r := ask(permissions.KindPause, nil)
	h := takes(r)
	p.runs(t, h)
	p.isAsked(t, *r, "K7F3Q")
	p.screen.asked(t, "K7F3Q")
	m, err := unix.IoctlGetTermios(int(p.tty.Fd()), getModes)
	if err != nil {
		t.Fatal(err)
	}
	m.Lflag |= unix.ICANON | unix.ECHO
	if err := unix.IoctlSetTermios(int(p.tty.Fd()), setModes, m); err != nil {
		t.Fatal(err)
	}
	p.screen.until(t, "the card again", func(all string) bool {
		return strings.Count(all, "K7F3Q · until ") == 2 && awaits(all)
	})
	p.types(t, "\x1b")
	if d := h.next(t); d.Answer != permissions.Interrupt {
		t.Errorf("decided %s; want interrupt", d.Answer)
	}
}
