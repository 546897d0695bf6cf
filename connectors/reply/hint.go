package reply

import (
	"fmt"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// Hint is the prompt of r: the shortest answers that it takes, and where to type.
func Hint(r permissions.Request, code string) string {
	switch {
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("1 to %d · %s in your own words > ", len(r.Choices), ownTyped(r, code))
	case r.HighRisk && len(r.Calls) > 0:
		return "high risk: type  yes " + code + "  or  n, with #2 for one call > "
	case r.HighRisk:
		return "high risk: type  yes " + code + "  or  n > "
	case offers(r, permissions.Continue):
		return "Enter continues · Esc interrupts "
	}
	words := []string{"y allow once"}
	if r.Kind == permissions.KindPause {
		words = []string{"y yes"}
	}
	if offers(r, permissions.Allow(sessionScope(r))) {
		words = append(words, "a this session")
	}
	words = append(words, "n deny", "r deny with a reason")
	if len(r.Calls) > 0 {
		words = append(words, "y #2 or n #2 one call")
	}
	if offers(r, permissions.Interrupt) {
		words = append(words, "Esc interrupts")
	}
	return strings.Join(words, " · ") + " > "
}

// Help says every answer that r takes, in one sentence.
func Help(r permissions.Request, code string) string {
	switch {
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("Type a number from 1 to %d, the words of an option, or %s and words of your own.",
			len(r.Choices), ownTyped(r, code))
	case offers(r, permissions.Continue):
		return "Press Enter to continue, or Esc to interrupt."
	}
	var forms []string
	for _, o := range r.Options {
		if s, ok := o.ID.Scope(); ok {
			forms = append(forms, yes(s, r, code)+" ("+scopeWords(r, s)+")")
		}
	}
	if offers(r, permissions.Allow(sessionScope(r))) && !r.HighRisk {
		forms = append(forms, "a (this session)")
	}
	if len(r.Calls) > 0 {
		forms = append(forms, "with #2 for one call")
	}
	forms = append(forms, "n (deny)", "r and a reason (deny and say why)")
	if offers(r, permissions.Interrupt) {
		forms = append(forms, "Esc (interrupt)")
	}
	forms = append(forms, "s (the card again, with its secrets)")
	return "Type " + strings.Join(forms, ", ") + "."
}

// scopeWords is what a scope of r covers, in our own words: a tool's name is the agent's.
func scopeWords(r permissions.Request, s permissions.Scope) string {
	switch {
	case r.Kind == permissions.KindPause:
		return "yes"
	case s == permissions.SessionTool:
		return "this tool, this session"
	case s == permissions.Session && r.Kind == permissions.KindTool:
		return "all gated tools, this session"
	case s == permissions.Session:
		return "this session"
	case s == permissions.Always && r.Kind == permissions.KindTool:
		return "this exact call, always"
	case s == permissions.Always:
		return "until revoked"
	case s.Span() > 0:
		return "for " + permissions.SayDuration(s.Span())
	}
	return "allow once"
}
