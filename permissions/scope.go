package permissions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions/i18n"
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
	Rule        = Scope{name: "rule"} // what a rule covers that the person was shown, see [GrantedRule]
)

// ScopeKind says what approving within a scope means, and how that is put in words. Whatever offers, grants, shows or reads a
// scope takes it from here, so a new kind is a new row of [ScopeKinds].
type ScopeKind struct {
	Name string // for [ParseScope]; of durations examples
	Key  string // types it at a console; empty: it has none
	Help string // what it covers, for who writes a command line

	ends    scopeEnd
	covers  coverage
	lasts   i18n.Phrase // after "Allowed"; of durations with how long
	short   i18n.Phrase // in a list of answers
	brief   i18n.Phrase // on a button; empty: short
	exactly i18n.Phrase // instead of these, of an exact call
	subject i18n.Phrase // what is allowed of tools; empty: what was asked
	except  i18n.Phrase
	button  i18n.Phrase // of a tool, where it is not "Allow", what, and how long
}

// scopeEnd is when what was approved ends.
type scopeEnd int

const (
	withCall scopeEnd = iota
	withSession
	inTime
	never
	unused // for [RuleIdle]
)

// coverage is what approving a tool's call covers.
type coverage int

const (
	thisCall  coverage = iota
	thisTool           // or the exact call, where each needs its own approval
	allTools           // that are gated, unless each call needs its own approval
	exactCall          // unless it is one of a shell or interpreter
	likeThis           // what a rule covers
)

// ScopeKinds are the kinds of scopes, the narrower first.
var ScopeKinds = []ScopeKind{
	{Name: "once", lasts: "once", short: "allow once",
		Help: "permissions: until the asking agent's run ends, or for this one answer; a tool: this call, used once"},
	{Name: "session_tool", Key: "t", ends: withSession, covers: thisTool, lasts: "for this session", short: "this session",
		subject: "this tool",
		Help:    "a tool: this tool for this session; shells, interpreters and other programs' hooks: this call only"},
	{Name: "session", Key: "a", ends: withSession, covers: allTools, lasts: "for this session", short: "this session",
		subject: "all gated tools", except: ", except high risk, shells and interpreters",
		button: "Allow all gated tools this session but high risk and shells",
		Help:   "permissions: for this session; a tool: all gated tools of it but high risk, shells and interpreters"},
	{Name: "15m, 2h, …", ends: inTime, covers: thisTool, lasts: "for %s", short: "for %s", brief: "%s",
		Help: "permissions: so long from now on; a tool: this tool, or this call only where session_tool says so"},
	{Name: "always", ends: never, covers: exactCall, lasts: "until revoked", short: "until revoked", exactly: "always",
		button: "Always allow %s",
		Help:   "permissions: until revoked; a tool: this call only, and never a shell (only where it is configured)"},
	{Name: "rule", Key: "l", ends: unused, covers: likeThis, lasts: "until revoked or unused for 30 days", short: "always",
		subject: "what is like this", button: "Always like this", brief: "always like this",
		Help: "a tool: what a rule covers, which is shown first, until it is revoked or was not used for 30 days"},
}

// ScopeNames are the names of the scopes, with 15m for all durations.
func ScopeNames() (names []string) {
	for _, k := range ScopeKinds {
		first, _, _ := strings.Cut(k.Name, ",")
		names = append(names, first)
	}
	return names
}

// kind is the row of s and its index; of a zero Scope an empty one and -1.
func (s Scope) kind() (ScopeKind, int) {
	i := slices.IndexFunc(ScopeKinds, func(k ScopeKind) bool { return k.Name == s.name || s.span > 0 && k.ends == inTime })
	if i < 0 {
		return ScopeKind{}, i
	}
	return ScopeKinds[i], i
}

// Key is the key that types s at a console, or empty.
func (s Scope) Key() string {
	k, _ := s.kind()
	return k.Key
}

// KeyScope is the scope that a key types at a console.
func KeyScope(key string) (s Scope, ok bool) {
	for _, k := range ScopeKinds {
		if k.Key != "" && k.Key == key {
			return Scope{name: k.Name}, true
		}
	}
	return s, false
}

// Lasts says how long s lasts, as in "Allowed for this session".
func (s Scope) Lasts(in i18n.Language) string {
	k, _ := s.kind()
	return s.timed(in, k.lasts)
}

// Brief says how long s lasts in the fewest words: "this session", "15 minutes", "always".
func (s Scope) Brief(in i18n.Language) string {
	k, _ := s.kind()
	return s.timed(in, cmp.Or(k.brief, k.exactly, k.short))
}

// NamesTools reports whether a button for s names the tools that it covers.
func (s Scope) NamesTools() bool {
	k, _ := s.kind()
	return k.covers == thisTool
}

// timed is a phrase, with how long a duration lasts.
func (s Scope) timed(in i18n.Language, p i18n.Phrase) string {
	if s.span > 0 {
		return in.Sprintf(p, in.Duration(s.span))
	}
	return in.Text(p)
}

// Covers says what approving r within s allows: "this tool for this session", "until revoked".
func (r Request) Covers(s Scope, in i18n.Language) string {
	k, _ := s.kind()
	subject, lasts, except := in.Text(r.subject(s)), k.lasts, ""
	switch {
	case r.CoversExactCalls(s):
		lasts = cmp.Or(k.exactly, lasts)
	case subject != "":
		except = in.Text(k.except)
	}
	return strings.TrimSpace(subject+" "+s.timed(in, lasts)) + except
}

// CoversBriefly is [Request.Covers] in a list of answers: "this tool, this session", "until revoked", "allow once".
func (r Request) CoversBriefly(s Scope, in i18n.Language) string {
	k, _ := s.kind()
	short := k.short
	if r.CoversExactCalls(s) {
		short = cmp.Or(k.exactly, short)
	}
	return strings.TrimPrefix(in.Text(r.subject(s))+", "+s.timed(in, short), ", ")
}

// subject is what of the tools of r is allowed within s; empty for other requests, and where nothing more is said.
func (r Request) subject(s Scope) i18n.Phrase {
	k, _ := s.kind()
	switch {
	case r.CoversExactCalls(s):
		return "this exact call"
	case r.Kind != KindTool:
		return ""
	case k.subject == "this tool" && len(r.ToolNames()) > 1:
		return "these tools"
	}
	return k.subject
}

// MaxSpan is the longest duration a scope may have.
const MaxSpan = 30 * 24 * time.Hour

// For returns the scope that lasts for d, in whole seconds, from the decision on.
func For(d time.Duration) Scope { return Scope{name: "for", span: d} }

// ParseScope parses a name of [ScopeKinds], or a duration of whole seconds from 1s to [MaxSpan].
func ParseScope(text string) (Scope, error) {
	var names []string
	for _, k := range ScopeKinds {
		if k.ends != inTime {
			names = append(names, k.Name)
		}
	}
	if slices.Contains(names, text) {
		return Scope{name: text}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		near := Nearest(text, names)
		if near != "" {
			near = "did you mean " + near + "? "
		}
		return Scope{}, fmt.Errorf("unknown scope %q; %suse %s or a duration such as 15m", text, near, strings.Join(names, ", "))
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

// Narrowest returns the widest scope that both a and b allow: once < session_tool < session, shorter < longer < always < rule;
// once if they cannot be compared. With a zero Scope it returns the other.
func Narrowest(a, b Scope) Scope {
	ka, ia := a.kind()
	kb, ib := b.kind()
	switch {
	case a == (Scope{}):
		return b
	case b == (Scope{}):
		return a
	case (ka.ends >= inTime) != (kb.ends >= inTime):
		return Once
	case ia > ib, ia == ib && a.span > b.span:
		return b
	}
	return a
}

// FormatDuration is [i18n.Language.Duration] in English.
func FormatDuration(d time.Duration) string { return i18n.English.Duration(d) }

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}
