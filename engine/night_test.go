package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// at sets the clock to a time of day in Berlin.
func at(t *testing.T, st *env, clock string) {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	when, err := time.ParseInLocation("2006-01-02 15:04", clock, berlin)
	if err != nil {
		t.Fatal(err)
	}
	st.setWallClock(when.Sub(st.now()))
}

// night is fay in Berlin, with quiet hours from ten to seven, and requests that wait for half a day.
func night(t *testing.T) engine.Settings {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := usual()
	person := fay
	person.Location, person.Quiet = berlin, connectors.Hours{From: 22 * 60, To: 7 * 60}
	s.People = []connectors.Person{person, sam}
	s.Routes = []engine.Route{{Ask: []string{"fay"}, Timeout: 12 * time.Hour}}
	s.Approvals.Remind = []engine.Moment{{Percent: 50}, {After: 9*time.Hour + 30*time.Minute}}
	return s
}

func (p *phone) toldNothing(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.told) > 0 {
		t.Fatalf("%s was told %v", p.owner.Name, p.told)
	}
}

// A nightly request is shown without a sound, the reminder waits for the morning, and there is one for all pending
// requests.
func TestANightlyRequestIsHeldAndAnsweredInTheMorning(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, night(t), f)
	at(t, st, "2027-03-10 23:00")
	first := st.ask(t.Context(), network("the nightly report"))
	second := st.ask(t.Context(), tagged("", "@read:/srv"))
	card := st.shown(f.Memory, 1)
	if !card.Silent || !st.shown(f.Memory, 2).Silent {
		t.Error("it made a sound")
	}
	at(t, st, "2027-03-11 05:30") // after the reminder of 05:00
	st.remindersAre(t, card.Request.ID, 1)
	f.toldNothing(t)
	at(t, st, "2027-03-11 07:00")
	n := f.notice(t)
	text := said(n)
	if n.Silent || strings.Count(text, st.code(card.Request)) != 1 || strings.Count(text, st.code(st.shown(f.Memory, 2).Request)) != 1 {
		t.Errorf("in the morning fay is told %q", text)
	}
	for i := range 2 {
		f.must(t, st.shown(f.Memory, i+1).Request.ID, allow())
	}
	if r := st.get(first); r.State != permissions.Approved {
		t.Errorf("the asker got %s", r.State)
	}
	st.get(second)
}

// remindersAre waits until that many reminders of a request are left.
func (s *env) remindersAre(t *testing.T, id permissions.ID, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		r, err := s.rows.Read(t.Context(), id)
		if err == nil && len(r.Reminders) == n {
			return
		}
		changed := s.rows.Changed()
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("not %d reminders are left", n)
}

func (s *env) code(r permissions.Request) string { return s.rows.Coder().Encode(r.Number) }

// High risk ignores quiet hours.
func TestHighRiskIsNotHeldForTheMorning(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, night(t), f)
	at(t, st, "2027-03-10 23:00")
	st.ask(t.Context(), tool("run_command", `{"command":"ls"}`))
	if st.shown(f.Memory, 1).Silent {
		t.Error("high risk made no sound")
	}
	at(t, st, "2027-03-11 05:30")
	if n := f.notice(t); n.Silent {
		t.Error("its reminder made no sound")
	}
}

// By day a prompt makes a sound, and nobody is reminded of what they answered.
func TestByDay(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, night(t), f)
	at(t, st, "2027-03-10 08:00")
	call := st.ask(t.Context(), network("x"))
	card := st.shown(f.Memory, 1)
	if card.Silent {
		t.Error("it made no sound")
	}
	f.must(t, card.Request.ID, permissions.Deny)
	st.get(call)
	other := st.ask(t.Context(), network("y"))
	id := st.shown(f.Memory, 2).Request.ID
	at(t, st, "2027-03-10 14:30")
	if text := said(f.notice(t)); strings.Contains(text, st.code(card.Request)) {
		t.Errorf("reminded of what was answered: %s", text)
	}
	f.must(t, id, allow())
	st.get(other)
}

// Reminders that became due during downtime are merged as well.
func TestRemindersAcrossARestart(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, night(t), f)
	at(t, st, "2027-03-10 08:00")
	st.ask(t.Context(), network("x"))
	card := st.shown(f.Memory, 1)
	st.stop()
	at(t, st, "2027-03-10 18:00") // both have passed
	f = newPhone(fay, "fays-phone")
	st.people = []connectors.Connector{f}
	st.open()
	if n := f.notice(t); !strings.Contains(said(n), st.code(card.Request)) {
		t.Errorf("told %q", said(n))
	}
	st.remindersAre(t, card.Request.ID, 0)
}
