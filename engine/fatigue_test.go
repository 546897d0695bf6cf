package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// wary are the usual settings with an agent muted after six.
func wary() engine.Settings {
	s := usual()
	s.People = slices.Clone(s.People)
	s.Limits.MutedAfter = 6
	return s
}

// denies asks for something else each time in a session and denies it once it is shown. high: the card is silent and takes a second yes.
func (s *env) denies(m *connectortest.Memory, session string, high bool) {
	s.t.Helper()
	n := len(m.Copies()) + 1
	call := s.ask(s.t.Context(), tagged(session, fmt.Sprintf("@read:/srv/%d%s", n, session)))
	p := s.shown(m, n)
	if p.Silent != high || p.Request.HighRisk != high || p.Request.Offers(allowFor(quarter)) == high {
		s.t.Errorf("card %d: silent %v, high risk %v, %v", n, p.Silent, p.Request.HighRisk, p.Request.Options)
	}
	if high {
		if got := p.Request.PromptsRefused(); got != n-1 {
			s.t.Errorf("card %d says that %d were denied", n, got)
		}
		_, err := m.Do(s.t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow()})
		refused(s.t, err, permissions.CodeReally)
	}
	if _, err := m.Do(s.t.Context(), connectors.Decision{Request: p.Request.ID, Answer: permissions.Deny}); err != nil {
		s.t.Fatal(err)
	}
	s.get(call)
}

// muted checks that a session is asked nothing.
func (s *env) muted(session string) {
	s.t.Helper()
	_, err := s.Ask(s.t.Context(), self, tagged(session, "@write:/srv/"+session))
	refused(s.t, err, permissions.CodeMuted)
}

// TestAnAgentThatIsDeniedAgainAndAgainIsMuted: after three its cards are silent and take a second yes, after six nothing is asked in that
// session, whatever it asks, also after a restart. Its person is told once, and whoever was asked resumes it.
func TestAnAgentThatIsDeniedAgainAndAgainIsMuted(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, wary(), f)
	ctx := t.Context()
	for i := range 6 {
		st.denies(f.Memory, "s1", i >= 3)
	}
	st.muted("s1")
	st.muted("s1")
	n := f.notice(t)
	if n.About != permissions.AboutMuted || n.By != self.Name || len(n.Ran) != 6 {
		t.Errorf("fay is told of %s of %s with %d", n.About, n.By, len(n.Ran))
	}
	st.eventually("the notice stays", func() bool { left, err := st.rows.Notices(ctx, "", 10); return err == nil && len(left) == 0 })
	if len(f.news) > 0 {
		t.Error("fay is told again")
	}
	if why, err := st.Unheeded(ctx, fayAt(f.Name()), self.Name); err != nil || len(why) != 6 || why[5].State != permissions.Denied {
		t.Errorf("fay is told of %d requests, %v", len(why), err)
	}
	if why, err := st.Unheeded(ctx, samAt, self.Name); len(why) > 0 {
		t.Errorf("sam is told of %d requests, %v", len(why), err)
	}
	if r, err := st.Ask(ctx, self, tool("read_file", `{}`)); err != nil || r.State != permissions.Approved {
		t.Errorf("what runs unasked is %s, %v", r.State, err)
	}
	g := newPhone(fay, "fays-phone")
	st.restart(g)
	st.muted("s1")
	if _, err := st.Begin(ctx, permissions.CallerUID(1001), network("of another agent")); err != nil {
		t.Error(err)
	}
	st.shown(g.Memory, 1)
	st.advance(time.Hour)
	st.muted("s1")
	_, err := st.ResumeAgent(ctx, samAt, self.Name)
	refused(t, err, permissions.CodeNotYours)
	if _, err := st.ResumeAgent(ctx, fayAt("cli"), self.Name); err != nil {
		t.Fatal(err)
	}
	st.denies(g.Memory, "s1", false) // it is counted anew
	var said []permissions.Type
	entries, err := st.rows.Audit(ctx, "", 0, 1000)
	for _, e := range entries {
		if e.Detail["person"] == permissions.MuteOf(self.Name, "s1") {
			said = append(said, e.Type)
		}
	}
	if err != nil || !slices.Equal(said, []permissions.Type{permissions.AgentMuted, permissions.AgentResumed}) {
		t.Errorf("the audit has %v, %v", said, err)
	}
	if _, err := st.Verify(ctx, boss); err != nil {
		t.Error(err)
	}
}

// TestAnotherSessionIsNoWayAround: an agent names its sessions itself, so twice as many of all of them mute it.
func TestAnotherSessionIsNoWayAround(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, wary(), f)
	for n := range 12 {
		st.denies(f.Memory, fmt.Sprintf("s%d", n), n >= 6)
	}
	st.muted("s12")
	st.muted("another")
	if n := f.notice(t); n.About != permissions.AboutMuted || len(n.Ran) != 12 {
		t.Errorf("fay is told of %s with %d", n.About, len(n.Ran))
	}
}

// TestOldDenialsDoNotCount, but those that only a clock that was set back has in the future do.
func TestOldDenialsDoNotCount(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, wary(), f)
	for range 3 {
		st.denies(f.Memory, "s1", false)
	}
	st.setWallClock(-5 * time.Minute)
	st.denies(f.Memory, "s1", true)
	st.setWallClock(20 * time.Minute)
	st.denies(f.Memory, "s1", false)
}

// TestIgnoredPromptsCount if they were shown outside quiet hours.
func TestIgnoredPromptsCount(t *testing.T) {
	now := time.Now().UTC()
	minute := now.Hour()*60 + now.Minute()
	for name, quiet := range map[string]connectors.Hours{
		"at day": {}, "at night": {From: minute, To: (minute + 60) % (24 * 60)},
	} {
		t.Run(name, func(t *testing.T) {
			s := wary()
			s.People[0].Quiet = quiet
			f := newPhone(s.People[0], "fays-phone")
			st := newEnv(t, s, f)
			for n := range 6 {
				if _, err := st.Begin(t.Context(), self, tagged("s1", fmt.Sprintf("@read:/srv/%d", n))); err != nil {
					t.Fatal(err)
				}
				st.shown(f.Memory, n+1)
			}
			st.advance(16 * time.Minute)
			st.pending(0)
			if name == "at day" {
				st.muted("s1")
				return
			}
			st.ask(t.Context(), tagged("s1", "@events"))
			if p := st.shown(f.Memory, 7); p.Request.HighRisk {
				t.Error("what nobody answered at night counts")
			}
		})
	}
}
