package engine_test

import (
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// TestAQuietAgentIsToldOfInTheEnd: its cards make no sound for that person, but for high risk, also after a restart, and one notice says at
// the end what it asked.
func TestAQuietAgentIsToldOfInTheEnd(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	ctx, who := t.Context(), fayAt("fays-phone")
	for name, c := range map[string]struct {
		from connectors.Identity
		name string
		span time.Duration
		code permissions.Code
	}{
		"too long":        {who, self.Name, 25 * time.Hour, permissions.CodeInvalid},
		"too short":       {who, self.Name, time.Second, permissions.CodeInvalid},
		"it is not quiet": {who, self.Name, 0, permissions.CodeInvalid}, "another person": {samAt, self.Name, time.Hour, permissions.CodeUnknown},
	} {
		if _, err := st.QuietAgent(ctx, c.from, c.name, c.span); permissions.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := st.QuietAgent(ctx, who, self.Name, time.Hour); err != nil {
		t.Fatal(err)
	}
	first := st.ask(ctx, tagged("s1", "@read:/srv/1"))
	if p := st.shown(f.Memory, 1); !p.Silent {
		t.Error("its card makes a sound")
	}
	f.must(t, f.Copies()[0].First.Request.ID, permissions.Deny)
	st.get(first)
	st.ask(ctx, tool("run_command", `{"command":"true"}`))
	if p := st.shown(f.Memory, 2); p.Silent {
		t.Error("high risk makes no sound")
	}
	if _, err := st.Begin(ctx, permissions.CallerUID(1001), network("of another agent")); err != nil {
		t.Fatal(err)
	}
	if p := st.shown(f.Memory, 3); p.Silent {
		t.Error("another agent's card makes no sound")
	}
	f = newPhone(fay, "fays-phone")
	st.restart(f)
	st.ask(ctx, tagged("s1", "@read:/srv/2"))
	if p := st.shown(f.Memory, 1); !p.Silent {
		t.Error("its card makes a sound after a restart")
	}
	if _, err := st.QuietAgent(ctx, who, self.Name, 0); err != nil {
		t.Fatal(err)
	}
	if n := f.notice(t); n.About != permissions.AboutQuiet || n.By != self.Name || len(n.Ran) != 1 || len(n.Waiting) == 0 {
		t.Errorf("fay is told of %s of %s, %d and %d", n.About, n.By, len(n.Ran), len(n.Waiting))
	}
	st.ask(ctx, tagged("s1", "@read:/srv/3"))
	if p := st.shown(f.Memory, 2); p.Silent {
		t.Error("its card makes no sound afterwards")
	}
}

// TestTheDigestComesAtItsTime, once.
func TestTheDigestComesAtItsTime(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	for _, span := range []time.Duration{time.Hour, 30 * time.Minute} { // the second replaces the first
		if _, err := st.QuietAgent(t.Context(), fayAt("fays-phone"), self.Name, span); err != nil {
			t.Fatal(err)
		}
	}
	st.advance(31 * time.Minute)
	if _, err := st.QuietAgent(t.Context(), fayAt("fays-phone"), "uid:1001", time.Minute); err != nil { // it wakes the notifier
		t.Fatal(err)
	}
	if n := f.notice(t); n.About != permissions.AboutQuiet || n.By != self.Name || len(n.Ran) != 0 {
		t.Errorf("fay is told of %s of %s", n.About, n.By)
	}
	st.setWallClock(-20 * time.Minute)
	st.ask(t.Context(), tagged("s1", "@read:/srv/4"))
	if p := st.shown(f.Memory, 1); p.Silent {
		t.Error("its card makes no sound after the clock was set back")
	}
}
