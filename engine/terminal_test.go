package engine_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// console is fay at a console: a pipe to type into, and the screen's content.
type console struct {
	*terminal.Terminal
	in      connectortest.Late
	keys    *os.File
	asks    chan connectors.Prompt
	mu      sync.Mutex
	shown   bytes.Buffer
	changed chan struct{} // closed when more is shown
}

func (d *console) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
	return d.shown.Write(p)
}

func (d *console) screen() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown.String()
}

func newConsole(t *testing.T) *console {
	t.Helper()
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), keys.Close() })
	d := &console{keys: keys, asks: make(chan connectors.Prompt, 100), changed: make(chan struct{})}
	d.Terminal = terminal.New(terminal.Options{
		In: in, Out: d, Now: time.Now, Log: quiet(), UID: fay.UID, Asking: func(p connectors.Prompt) { d.asks <- p },
	}, &d.in)
	return d
}

func (d *console) Bind(in connectors.Services) { d.in.Bind(in) }

// shows waits until the screen shows text.
func (d *console) shows(t *testing.T, text string) {
	t.Helper()
	over := time.After(20 * time.Second)
	for {
		d.mu.Lock()
		met, changed := strings.Contains(d.shown.String(), text), d.changed
		d.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-over:
			t.Fatalf("the screen does not say %q:\n%s", text, d.screen())
		}
	}
}

// asked waits for the next question and returns its request.
func (d *console) asked(t *testing.T) permissions.Request {
	t.Helper()
	select {
	case p := <-d.asks:
		return p.Request
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing is asked:\n%s", d.screen())
		return permissions.Request{}
	}
}

func (d *console) types(t *testing.T, line string) {
	t.Helper()
	if _, err := d.keys.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// Fay uses the console, sam a phone, and kim joins by escalation: two are needed, and every copy shows the outcome.
func TestAQuorumAcrossATerminalAndAPhone(t *testing.T) {
	d, s, k := newConsole(t), newPhone(sam, "sams-phone"), newPhone(kim, "kims-phone")
	settings := team()
	settings.UID = fay.UID
	st := newEnv(t, settings, d, s, k)
	call := st.ask(t.Context(), network("deploy"))
	id := d.asked(t).ID
	st.shown(s.Memory, 1)
	d.types(t, "y")
	st.edited(s.Memory, 1, func(p connectors.Prompt) bool { return len(p.Request.Votes) == 1 })
	st.advance(8 * time.Minute)
	st.shown(k.Memory, 1)
	k.must(t, id, allow())
	if r := st.get(call); r.State != permissions.Approved || len(r.Votes) != 2 {
		t.Fatalf("%s with %v", r.State, r.Votes)
	}
	other := st.ask(t.Context(), network("and then"))
	d.asked(t) // so the first is told by now
	for _, words := range []string{"0 of 2", "1 of 2, allowed by you", "Allowed once by you and kim"} {
		d.shows(t, words)
	}
	d.types(t, "n because not today")
	if r := st.get(other); r.State != permissions.Denied || r.Comment != "not today" {
		t.Errorf("%s: %q", r.State, r.Comment)
	}
}

// A short question has one reminder at most, and one of a few seconds none.
func TestShortQuestionsAreRemindedOfOnceAtMost(t *testing.T) {
	settings := usual()
	settings.Approvals.Remind = []engine.Moment{{Percent: 50}, {Percent: 80}}
	st := newEnv(t, settings, newPhone(fay, "fays-phone"))
	for i, c := range []struct {
		patience time.Duration
		times    int
	}{{2 * time.Second, 0}, {4 * time.Second, 1}, {30 * time.Second, 1}, {time.Minute, 2}, {15 * time.Minute, 2}} {
		q := network(c.patience.String())
		q.WantedTimeout = c.patience
		st.ask(t.Context(), q)
		for _, r := range st.pending(i + 1) {
			if r.Reason == q.Reason && len(r.Reminders) != c.times {
				t.Errorf("a question of %s is reminded of %d times, want %d", q.Reason, len(r.Reminders), c.times)
			}
		}
	}
}

// A reminder and a grant's end appear on the screen, and quiet hours delay them.
func TestNoticesAtATerminal(t *testing.T) {
	d := newConsole(t)
	settings := usual()
	settings.UID = fay.UID
	settings.Approvals.Remind = night(t).Approvals.Remind[:1]
	st := newEnv(t, settings, d)
	st.ask(t.Context(), network("deploy"))
	r := d.asked(t)
	st.advance(8 * time.Minute)
	d.shows(t, "1 request waits for your answer")
	if n := strings.Count(d.screen(), st.code(r)); n < 2 {
		t.Errorf("the reminder does not name it:\n%s", d.screen())
	}
}
