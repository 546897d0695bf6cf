package reply

import (
	"fmt"
	"strings"

	"github.com/daycared/daycared/permissions"
)

const (
	// mostListed is how many codes are told of at once.
	mostListed = 10
	// mostHelped is for how many requests help is given at once.
	mostHelped = 3
)

// ChatHint is how to answer r in a chat that has texts, replies and reactions: the shortest answers, in one sentence
// without its end.
func ChatHint(r permissions.Request, code string) string {
	if r.HighRisk || !offers(r, permissions.Deny) {
		return textHint(r, code)
	}
	return textHint(r, code) + ", or react 👍 / 👎"
}

// ChatHelp is [ChatHint], and the wider scopes and the reason that can be given.
func ChatHelp(r permissions.Request, code string) string {
	return ChatHint(r, code) + more(Open{Request: r, Code: code})
}

// textHint is how to answer r by text alone.
func textHint(r permissions.Request, code string) string {
	yes, no := "YES "+code, "NO "+code
	switch {
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("Reply %s and a number from 1 to %d, or %s and the words of an option", code, len(r.Choices), code)
	case offers(r, permissions.Continue):
		return "Reply CONTINUE " + code + " or INTERRUPT " + code
	case r.HighRisk && len(r.Calls) > 0:
		return "High risk: reply " + yes + " RUN or " + no + ", or for one call " + yes + " #2 RUN or " + no + " #2"
	case r.HighRisk:
		return "High risk: reply " + yes + " RUN or " + no
	case offers(r, permissions.Interrupt):
		return "Reply " + yes + ", " + no + " or INTERRUPT " + code
	case len(r.Calls) > 0:
		return "Reply " + yes + " or " + no + ", or for one call " + yes + " #2 or " + no + " #2"
	}
	return "Reply " + yes + " or " + no
}

// more is what else can be answered.
func more(o Open) string {
	words := ""
	for _, option := range o.Request.Options {
		if s, ok := option.ID.Scope(); ok && s != permissions.Once {
			words += ", " + typed(sentence{scope: s.String()}, o) + " (" + scopeWords(o.Request, s) + ")"
		}
	}
	if offers(o.Request, permissions.Deny) {
		words += ", NO " + o.Code + " because and your reason"
	}
	return words
}

// hint is [ChatHint] for what waits; a console has no reactions.
func (c chat) hint(o Open) string {
	if c.Console {
		return textHint(o.Request, o.Code)
	}
	return ChatHint(o.Request, o.Code)
}

func (c chat) help(o Open) string { return c.hint(o) + more(o) }

// typed is how what a sentence allows is typed in full.
func typed(s sentence, o Open) string {
	text := "YES " + o.Code
	if s.scope != "" {
		text += " " + s.scope
	}
	if s.call != 0 {
		text += fmt.Sprintf(" #%d", s.call)
	}
	if o.Request.HighRisk {
		text += " RUN"
	}
	return text
}

// waiting says what waits: how many, and the codes, as many of them as can be read.
func waiting(open []Open, still string) string {
	var codes []string
	for _, o := range open[:min(len(open), mostListed)] {
		codes = append(codes, o.Code)
	}
	if more := len(open) - mostListed; more > 0 {
		codes = append(codes, fmt.Sprintf("and %d more", more))
	}
	say := fmt.Sprintf("%d requests %swait: ", len(open), still)
	if len(open) == 1 {
		say = "1 request " + still + "waits: "
	}
	return say + strings.Join(codes, ", ")
}
