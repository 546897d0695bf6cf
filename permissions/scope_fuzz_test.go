package permissions

import (
	"testing"
	"time"
)

// FuzzParseScope: a parsed scope formats to an equal one, and lasts no longer than allowed.
func FuzzParseScope(f *testing.F) {
	for _, text := range []string{
		"once", "session", "session_tool", "always", "Once", "once ", "15m", "1h30m", "720h", "720h0m1s", "721h", "0s", "-15m", "+15m",
		"1.5s", "0.5h", "1000ms", "90s", "9999999999999h", "15", "15 m", "１５m", "15m\x00", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScope(text)
		if err != nil {
			if s != (Scope{}) {
				t.Fatalf("%q is refused, and yet %v", text, s)
			}
			return
		}
		again, err := ParseScope(s.String())
		if err != nil || again != s {
			t.Fatalf("%q is %s, which is %s, %v", text, s, again, err)
		}
		named := s == Once || s == Session || s == SessionTool || s == Always
		span := s.Span() >= time.Second && s.Span() <= MaxSpan && s.Span()%time.Second == 0
		if named == span || named && s.String() != text {
			t.Fatalf("%q is %s, for %s", text, s, s.Span())
		}
		for _, other := range []Scope{Once, SessionTool, Session, Always, For(time.Minute)} {
			narrow := Narrowest(s, other)
			if narrow != Narrowest(other, s) || narrow.Span() > max(s.Span(), other.Span()) || narrow == Always && s != other {
				t.Fatalf("of %s and %s the narrower is %s", s, other, narrow)
			}
		}
	})
}
