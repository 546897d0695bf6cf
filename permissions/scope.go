package permissions

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Scope is how far an approval reaches. The zero Scope is none, and as a bound it bounds nothing. Scopes are comparable
// values; create them with [ParseScope] or [For].
type Scope struct {
	name string
	span time.Duration
}

// The scopes that are not durations.
var (
	Once        = Scope{name: "once"}
	SessionTool = Scope{name: "session_tool"} // one tool, for this session
	Session     = Scope{name: "session"}
	Always      = Scope{name: "always"}
)

// MaxSpan is the longest duration a scope may have.
const MaxSpan = 30 * 24 * time.Hour

// For returns the scope that lasts for d, in whole seconds, from the decision on.
func For(d time.Duration) Scope { return Scope{name: "for", span: d} }

// ParseScope parses once, session_tool, session, always, or a duration of whole seconds from 1s to [MaxSpan].
func ParseScope(text string) (Scope, error) {
	if s := (Scope{name: text}); slices.Contains([]Scope{Once, SessionTool, Session, Always}, s) {
		return s, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		near := Nearest(text, []string{Once.name, SessionTool.name, Session.name, Always.name})
		if near != "" {
			near = "did you mean " + near + "? "
		}
		return Scope{}, fmt.Errorf(
			"unknown scope %q; %suse once, session_tool, session, always or a duration such as 15m", text, near)
	}
	if d < time.Second || d > MaxSpan || d%time.Second != 0 {
		return Scope{}, fmt.Errorf("scope %q: a duration is whole seconds, from 1s to 720h", text)
	}
	return For(d), nil
}

// String formats a scope for [ParseScope].
func (s Scope) String() string {
	switch {
	case s.span == 0:
		return s.name
	case s.span%time.Hour == 0:
		return strconv.Itoa(int(s.span/time.Hour)) + "h"
	case s.span%time.Minute == 0:
		return strconv.Itoa(int(s.span/time.Minute)) + "m"
	}
	return strconv.Itoa(int(s.span/time.Second)) + "s"
}

// Span is how long a duration scope lasts, 0 for the others.
func (s Scope) Span() time.Duration { return s.span }

// Narrowest returns the widest scope that both a and b allow: once < session_tool < session, shorter < longer < always;
// once if they cannot be compared. With a zero Scope it returns the other.
func Narrowest(a, b Scope) Scope {
	session := []Scope{Once, SessionTool, Session}
	ia, ib := slices.Index(session, a), slices.Index(session, b)
	switch {
	case a == (Scope{}):
		return b
	case b == (Scope{}):
		return a
	case ia >= 0 && ib >= 0:
		return session[min(ia, ib)]
	case ia >= 0 || ib >= 0:
		return Once
	case a == Always:
		return b
	case b == Always:
		return a
	}
	return For(min(a.span, b.span))
}

// SayDuration formats a duration in words, in whole minutes if possible: "15 minutes", "1 minute", "90 seconds". A
// fraction of a second is rounded up.
func SayDuration(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return plural(int64(d/time.Minute), "minute")
	}
	return plural(int64((d+time.Second-1)/time.Second), "second")
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}
