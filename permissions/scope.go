package permissions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scope is how far an approval reaches. The zero Scope is none. Scopes are comparable values; make them with
// [ParseScope] or [For].
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

// For is the scope that lasts for d from the decision on.
func For(d time.Duration) Scope { return Scope{name: "for", span: d} }

// ParseScope reads once, session_tool, session, always, or a duration of whole seconds from 1s to [MaxSpan].
func ParseScope(text string) (Scope, error) {
	if s := (Scope{name: text}); slices.Contains([]Scope{Once, SessionTool, Session, Always}, s) {
		return s, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return Scope{}, fmt.Errorf("unknown scope %q; use once, session_tool, session, always or a duration such as 15m", text)
	}
	if d < time.Second || d > MaxSpan || d%time.Second != 0 {
		return Scope{}, fmt.Errorf("scope %q: a duration is whole seconds, from 1s to 720h", text)
	}
	return For(d), nil
}

// String formats a scope so that [ParseScope] gives it back.
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

// Narrowest is the scope that both a and b allow: once < session_tool < session, shorter < longer < always; what
// cannot be compared gives once.
func Narrowest(a, b Scope) Scope {
	session := []Scope{Once, SessionTool, Session}
	ia, ib := slices.Index(session, a), slices.Index(session, b)
	switch {
	case a == Once || b == Once:
		return Once
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

// Answer is the id of an option, as in allow_once, deny, continue or option_2.
type Answer string

// The answers that are neither an allowance nor an option of a clarification.
const (
	Deny      Answer = "deny"
	Continue  Answer = "continue"
	Interrupt Answer = "interrupt"
)

const (
	allowPrefix  = "allow_"
	optionPrefix = "option_"
)

// Allow is the answer that approves within s.
func Allow(s Scope) Answer { return Answer(allowPrefix + s.String()) }

// Choose is the answer that takes the k-th option of a clarification, counted from 1.
func Choose(k int) Answer { return Answer(optionPrefix + strconv.Itoa(k)) }

// Scope is what an approving answer allows; ok is false for every other answer.
func (a Answer) Scope() (s Scope, ok bool) {
	text, found := strings.CutPrefix(string(a), allowPrefix)
	if !found {
		return Scope{}, false
	}
	s, err := ParseScope(text)
	return s, err == nil
}

// Option is one answer that a request offers, and the words on its button.
type Option struct {
	ID    Answer `json:"id"`
	Label string `json:"label"`
}

// Offer is the list of options for r: every scope of configured that means something for this request and is not wider
// than widest (zero: no bound), once first, then deny.
func Offer(r Request, configured []Scope, widest Scope) []Option {
	switch r.Kind {
	case KindClarification:
		options := make([]Option, len(r.Choices))
		for i, c := range r.Choices {
			options[i] = Option{Choose(i + 1), c}
		}
		return options
	case KindPause:
		if r.Mode == ModeContinue {
			return []Option{{Continue, "Continue"}, {Interrupt, "Interrupt"}}
		}
		return []Option{{Allow(Once), "Approve"}, {Deny, "Deny"}, {Interrupt, "Interrupt"}}
	}
	options := []Option{{Allow(Once), "Allow once"}}
	for _, s := range configured {
		allowed := widest == (Scope{}) || Narrowest(s, widest) == s
		if s != Once && allowed && offers(r, s) {
			options = append(options, Option{Allow(s), label(r, s)})
		}
	}
	return append(options, Option{Deny, "Deny"})
}

// offers tells whether scope s can be given to r at all.
func offers(r Request, s Scope) bool {
	tool := r.Kind == KindTool
	switch s {
	case SessionTool:
		return tool && r.Session != ""
	case Session:
		return r.Session != "" && (!tool || (r.Caller.Ours() && !r.HighRisk))
	case Always:
		return !tool || !slices.ContainsFunc(r.ToolCalls(), func(c Call) bool { return runsCode(c.Tool) })
	}
	return true
}

func label(r Request, s Scope) string {
	what := ""
	if r.Kind == KindTool {
		what = strings.Join(r.ToolNames(), " and ") + " "
	}
	switch {
	case s == Session && r.Kind == KindTool:
		return "Allow all gated tools for this session"
	case s == Session, s == SessionTool:
		return "Allow " + what + "for this session"
	case s == Always && r.Kind == KindTool:
		return "Always allow this exact call"
	case s == Always:
		return "Allow until revoked"
	}
	return "Allow " + what + "for " + SayDuration(s.span)
}

// runsCode tells whether a tool is a shell or an interpreter, whose calls are never allowed for always.
func runsCode(tool string) bool {
	words := []string{"run_command", "bash", "sh", "zsh", "fish", "shell", "exec", "terminal", "python", "node", "ruby", "perl", "powershell"}
	lower := strings.ToLower(tool)
	return slices.ContainsFunc(words, func(w string) bool {
		return lower == w || strings.Contains(lower, w+"_") || strings.HasSuffix(lower, "_"+w)
	})
}

// SayDuration is a duration in words: "15 minutes", "1 minute", "90 seconds".
func SayDuration(d time.Duration) string {
	n, unit := int64((d+time.Second-1)/time.Second), "second"
	if d >= time.Minute && d%time.Minute == 0 {
		n, unit = int64(d/time.Minute), "minute"
	}
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}
