package permissions

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/permissions/i18n"
)

func anyScope() *rapid.Generator[Scope] {
	return rapid.Custom(func(t *rapid.T) Scope {
		named := []Scope{Once, SessionTool, Session, Always}
		if i := rapid.IntRange(0, len(named)).Draw(t, "name"); i < len(named) {
			return named[i]
		}
		return For(time.Duration(rapid.IntRange(1, int(MaxSpan/time.Second)).Draw(t, "seconds")) * time.Second)
	})
}

func TestScopeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScope().Draw(t, "scope")
		if again, err := ParseScope(s.String()); err != nil || again != s {
			t.Fatalf("%v came back as %v, %v", s, again, err)
		}
		if got, ok := Allow(s).Scope(); !ok || got != s {
			t.Fatalf("%s allows %v, %v", Allow(s), got, ok)
		}
	})
}

func TestParseScope(t *testing.T) {
	for _, c := range []struct {
		text, says string
		want       Scope
		format     string
	}{
		{text: "once", want: Once, format: "once"},
		{text: "session_tool", want: SessionTool, format: "session_tool"},
		{text: "session", want: Session, format: "session"},
		{text: "always", want: Always, format: "always"},
		{text: "15m", want: For(15 * time.Minute), format: "15m"},
		{text: "900s", want: For(15 * time.Minute), format: "15m"},
		{text: "90s", want: For(90 * time.Second), format: "90s"},
		{text: "1h30m", want: For(90 * time.Minute), format: "90m"},
		{text: "1s", want: For(time.Second), format: "1s"},
		{text: "720h", want: For(MaxSpan), format: "720h"},
		{text: "", says: "unknown scope"},
		{text: "Once", says: "unknown scope"},
		{text: " once", says: "unknown scope"},
		{text: "forever", says: "use once, session_tool, session, always, rule or a duration such as 15m"},
		{text: "for", says: "unknown scope"},
		{text: "sesion", says: "did you mean session?"},
		{text: "15", says: "unknown scope"},
		{text: "0s", says: "from 1s to 720h"},
		{text: "-15m", says: "from 1s to 720h"},
		{text: "500ms", says: "from 1s to 720h"},
		{text: "1500ms", says: "whole seconds"},
		{text: "720h1s", says: "from 1s to 720h"},
	} {
		got, err := ParseScope(c.text)
		switch {
		case c.says == "" && (err != nil || got != c.want || got.String() != c.format):
			t.Errorf("%q: %v, %v; want %s", c.text, got, err, c.format)
		case c.says != "" && (err == nil || got != Scope{} || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %v, %v; want the error to say %q", c.text, got, err, c.says)
		}
	}
}

func TestScopeSpan(t *testing.T) {
	if For(time.Hour).Span() != time.Hour || Always.Span() != 0 || Once.Span() != 0 || (Scope{}).String() != "" {
		t.Error("only a duration has a span, and the zero scope has no name")
	}
}

func TestNarrowestTable(t *testing.T) {
	short, long := For(time.Minute), For(time.Hour)
	order := []Scope{Once, SessionTool, Session, short, long, Always, {}}
	want := [][]Scope{
		{Once, Once, Once, Once, Once, Once, Once},
		{Once, SessionTool, SessionTool, Once, Once, Once, SessionTool},
		{Once, SessionTool, Session, Once, Once, Once, Session},
		{Once, Once, Once, short, short, short, short},
		{Once, Once, Once, short, long, long, long},
		{Once, Once, Once, short, long, Always, Always},
		{Once, SessionTool, Session, short, long, Always, {}},
	}
	for i, a := range order {
		for j, b := range order {
			if got := Narrowest(a, b); got != want[i][j] {
				t.Errorf("narrowest of %q and %q is %q, want %q", a, b, got, want[i][j])
			}
		}
	}
}

func TestNarrowestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyScope().Draw(t, "a"), anyScope().Draw(t, "b"), anyScope().Draw(t, "c")
		if Narrowest(a, b) != Narrowest(b, a) {
			t.Errorf("not commutative: %v %v", a, b)
		}
		if Narrowest(a, a) != a {
			t.Errorf("not idempotent: %v", a)
		}
		if Narrowest(a, Narrowest(b, c)) != Narrowest(Narrowest(a, b), c) {
			t.Errorf("not associative: %v %v %v", a, b, c)
		}
		if n := Narrowest(a, b); Narrowest(n, a) != n {
			t.Errorf("%v is wider than %v", n, a)
		}
	})
}

func TestSayDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		15 * time.Minute:                      "15 minutes",
		time.Minute:                           "1 minute",
		90 * time.Second:                      "90 seconds",
		time.Second:                           "1 second",
		59 * time.Second:                      "59 seconds",
		2 * time.Second:                       "2 seconds",
		time.Hour:                             "60 minutes",
		time.Millisecond:                      "1 second",
		time.Minute + 100*time.Millisecond:    "61 seconds",
		0:                                     "0 seconds",
		24 * time.Hour:                        "1440 minutes",
		61*time.Minute + 500*time.Millisecond: "3661 seconds",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// TestEveryKindOfScopeIsWhole: a row of ScopeKinds says all that is read from it.
func TestEveryKindOfScopeIsWhole(t *testing.T) {
	keys := map[string]bool{}
	ours := Request{Session: "s", Caller: Caller{Name: "agent:helper", UID: NoUID}}
	permission, tool := ours, ours
	permission.Kind, permission.Tags = KindPermission, []Tag{Network}
	tool.Kind, tool.Tool = KindTool, "write_file"
	for i, name := range ScopeNames() {
		s, err := ParseScope(name)
		if err != nil || s.String() != name || ScopeKinds[i].Help == "" {
			t.Errorf("%s is read as %s: %v", name, s, err)
		}
		if key := s.Key(); key != "" {
			back, ok := KeyScope(key)
			if !ok || back != s || keys[key] {
				t.Errorf("the key %s types %s, not only %s", key, back, s)
			}
			keys[key] = true
		}
		if again := Narrowest(s, s); again != s || Narrowest(s, Once) != Once {
			t.Errorf("%s bounds itself to %s", s, again)
		}
		for _, r := range []Request{permission, tool} {
			labels := map[Answer]string{}
			for _, o := range Offer(r, []Scope{s}, Scope{}) {
				labels[o.ID] = o.Label
			}
			narrow := r.Kind == KindPermission && (s == SessionTool || s == Rule) // are about tools alone
			if label := labels[Allow(s)]; (label == "") != narrow || strings.HasSuffix(label, " ") {
				t.Errorf("the button of %s for a %s is %q", s, r.Kind, label)
			}
			for _, words := range []string{
				s.Lasts(i18n.English), s.Brief(i18n.English), r.Covers(s, i18n.English), r.CoversBriefly(s, i18n.English),
			} {
				if words == "" || strings.TrimSpace(words) != words {
					t.Errorf("%s of a %s is put as %q", s, r.Kind, words)
				}
			}
		}
	}
	if _, ok := KeyScope(""); ok || len(keys) == 0 {
		t.Errorf("the keys are %v, and none types something: %v", keys, ok)
	}
}

// TestWhatAScopeCoversIsSaid: what an approval covers is said as wide as it is, and no wider.
func TestWhatAScopeCoversIsSaid(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      Request
		s      Scope
		covers string
		brief  string
	}{
		{"a permission", permissionRequest(), Session, "for this session", "this session"},
		{"a permission", permissionRequest(), Always, "until revoked", "until revoked"},
		{"a tool", toolRequest(), SessionTool, "this tool for this session", "this tool, this session"},
		{"a tool", toolRequest(), Session, "all gated tools for this session, except high risk, shells and interpreters",
			"all gated tools, this session"},
		{"a tool", toolRequest(), Once, "once", "allow once"},
		{"a tool", toolRequest(), Always, "this exact call always", "this exact call, always"},
		{"a step of two tools", stepRequest(), SessionTool, "these tools for this session", "these tools, this session"},
		{"a step of two tools", stepRequest(), Session, "all gated tools for this session, except high risk, shells and interpreters",
			"all gated tools, this session"},
		{"a rule", toolRequest(), Rule, "what is like this until revoked or unused for 30 days", "what is like this, always"},
		{"a shell", suggesting(), For(15 * time.Minute), "this exact call for 15 minutes", "this exact call, for 15 minutes"},
	} {
		if got := c.r.Covers(c.s, i18n.English); got != c.covers {
			t.Errorf("%s, %s: %q, want %q", c.name, c.s, got, c.covers)
		}
		if got := c.r.CoversBriefly(c.s, i18n.English); got != c.brief {
			t.Errorf("%s, %s, briefly: %q, want %q", c.name, c.s, got, c.brief)
		}
		if got := c.r.CoversBriefly(c.s, "de"); strings.Count(got, ",") != strings.Count(c.brief, ",") {
			t.Errorf("%s, %s, briefly in German: %q", c.name, c.s, got)
		}
	}
	for s, want := range map[Scope]bool{Once: false, SessionTool: true, Session: false, For(time.Minute): true, Always: false} {
		if s.NamesTools() != want {
			t.Errorf("a button for %s names tools: %t", s, !want)
		}
	}
}
