package terminal_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runRole(role))
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

var fay = connectors.Person{Name: "fay", UID: 1000, Location: time.UTC}

// screen is what the person sees, and a signal for every change of it.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
	failure error
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	if s.failure != nil {
		return 0, s.failure
	}
	return s.text.Write(p)
}

// fail makes every later write fail.
func (s *screen) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// until waits until what is seen is as wanted.
func (s *screen) until(t testing.TB, what string, ok func(text string) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		text, changed := s.text.String(), s.changed
		s.mu.Unlock()
		if ok(text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("not seen: %s. On the screen is:\n%s", what, text)
		}
	}
}

func (s *screen) sees(t testing.TB, text string) {
	t.Helper()
	s.until(t, text, func(all string) bool { return strings.Contains(all, text) })
}

// asked waits until the last card is the one with this code, and its hint awaits an answer.
func (s *screen) asked(t testing.TB, code string) {
	t.Helper()
	s.until(t, "the hint of "+code, func(all string) bool {
		return strings.Contains(all, "\n"+code+" · until ") && awaits(all)
	})
}

// askedWhy waits until the reason of a denial is asked for.
func (s *screen) askedWhy(t testing.TB) {
	t.Helper()
	s.until(t, "the reason is asked for", func(all string) bool { return strings.HasSuffix(all, "\nreason > ") })
}

func awaits(all string) bool {
	return strings.HasSuffix(all, " > ") || strings.HasSuffix(all, "Esc interrupts ")
}

// person sits at a console: a pipe, or a terminal.
type person struct {
	*terminal.Terminal
	to     *connectortest.Late
	screen *screen
	log    *screen
	ending <-chan struct{} // closed when Run is to end
	hand   *os.File        // what is written here is typed
	in     *os.File
	tty    *os.File // the terminal's side; nil for a pipe
}

// consoles are the two kinds of console.
var consoles = map[string]func(testing.TB, func(*terminal.Options)) *person{"pipe": atPipe, "terminal": atTerminal}

func atPipe(t testing.TB, change func(*terminal.Options)) *person {
	in, hand, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return newPerson(t, in, hand, nil, change)
}

func atTerminal(t testing.TB, change func(*terminal.Options)) *person {
	hand, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	return newPerson(t, tty, hand, tty, change)
}

func newPerson(t testing.TB, in, hand, tty *os.File, change func(*terminal.Options)) *person {
	t.Cleanup(func() {
		_ = hand.Close()
		_ = in.Close()
	})
	s, log := &screen{changed: make(chan struct{})}, &screen{changed: make(chan struct{})}
	o := terminal.Options{In: in, Out: s, UID: fay.UID, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}
	if change != nil {
		change(&o)
	}
	late := &connectortest.Late{}
	return &person{Terminal: terminal.New(o, late), to: late, screen: s, log: log, in: in, hand: hand, tty: tty}
}

func (p *person) types(t testing.TB, keys string) {
	t.Helper()
	if _, err := io.WriteString(p.hand, keys); err != nil {
		t.Fatalf("type: %v", err)
	}
}

// runs runs the terminal until the test is over.
func (p *person) runs(t testing.TB, h connectors.Services) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p.ending = ctx.Done()
	done := make(chan error, 1)
	p.to.Services = h
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// logged waits until a message is in the log.
func (p *person) logged(t testing.TB, message string) {
	t.Helper()
	p.log.sees(t, message)
}

// isAsked sends a new request.
func (p *person) isAsked(t testing.TB, r permissions.Request, code string) connectors.Prompt {
	t.Helper()
	prompt := connectors.Prompt{Request: r, Code: code, To: fay, Waiting: 1}
	if _, err := p.Send(t.Context(), prompt); err != nil {
		t.Fatalf("Send = %v", err)
	}
	return prompt
}

// known waits until everything that was sent is known at the console.
func (p *person) known(t testing.TB) {
	t.Helper()
	if err := p.Say("all is here"); err != nil {
		t.Fatal(err)
	}
	p.screen.sees(t, "all is here")
}

// taker is a handler with rows of its own, which it settles as permissions.Step has it.
type taker struct {
	connectortest.Nobody
	answer func(connectors.Decision) (permissions.Request, error)
	got    chan connectors.Decision

	mu   sync.Mutex
	rows map[permissions.ID]permissions.Request
}

func takes(rows ...*permissions.Request) *taker {
	t := &taker{got: make(chan connectors.Decision, 20), rows: map[permissions.ID]permissions.Request{}}
	for _, r := range rows {
		t.rows[r.ID] = *r
	}
	t.answer = t.settle
	return t
}

func (t *taker) settle(d connectors.Decision) (permissions.Request, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.rows[d.Request]
	if !ok {
		return permissions.Request{}, permissions.Unknown(string(d.Request))
	}
	var e permissions.Transition = permissions.Cast{Really: d.Really, Vote: permissions.Vote{
		By: fay.Name, Via: d.From.Via, Answer: d.Answer, Call: d.Call, Comment: d.Comment,
		At: r.CreatedAt.Add(4 * time.Second),
	}}
	if d.Default {
		e = permissions.Default{By: fay.Name, Via: d.From.Via, At: r.CreatedAt}
	}
	c, err := permissions.Step(r, e)
	if err != nil {
		return r, permissions.ToRefusal(err)
	}
	t.rows[r.ID] = c.After
	return c.After, nil
}

// row is a request's current row.
func (t *taker) row(id permissions.ID) permissions.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[id]
}

// put changes a row from elsewhere.
func (t *taker) put(r permissions.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[r.ID] = r
}

func (t *taker) OnPermission(_ context.Context, d connectors.Decision) (permissions.Request, error) {
	after, err := t.answer(d)
	t.got <- d
	return after, err
}

func (t *taker) next(tb testing.TB) connectors.Decision {
	tb.Helper()
	select {
	case d := <-t.got:
		return d
	case <-time.After(patience):
		tb.Fatal("nothing was decided")
		return connectors.Decision{}
	}
}

func (t *taker) none(tb testing.TB) {
	tb.Helper()
	select {
	case d := <-t.got:
		tb.Fatalf("decided: %+v", d)
	default:
	}
}

func ask(kind permissions.Kind, change func(*permissions.Request)) *permissions.Request {
	r := connectortest.Request(kind, fay, 1, change)
	return &r
}
