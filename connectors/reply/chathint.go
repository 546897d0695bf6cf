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
	return chat{}.hint(Open{Request: r, Code: code})
}

// ChatHelp is [ChatHint], and the wider scopes and the reason that can be given.
func ChatHelp(r permissions.Request, code string) string {
	return chat{}.help(Open{Request: r, Code: code})
}

// hint is [ChatHint] for what waits; a console has no reactions.
func (c chat) hint(o Open) string {
	if c.Console || o.Request.HighRisk || !offers(o.Request, permissions.Deny) {
		return c.textHint(o)
	}
	return c.textHint(o) + ", or react 👍 / 👎"
}

func (c chat) help(o Open) string { return c.hint(o) + c.more(o) }

// textHint is how to answer by text alone.
func (c chat) textHint(o Open) string {
	r, code := o.Request, o.Code
	reply, yes, no := "Reply", c.typed(sentence{}, o), c.no(code)
	if c.Console {
		reply = "Type"
	}
	switch {
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("%s %s and a number from 1 to %d or the words of an option, or %s and words of your own",
			reply, code, len(r.Choices), ownSent(o))
	case offers(r, permissions.Continue):
		return reply + " CONTINUE " + code + " or INTERRUPT " + code
	case r.HighRisk && len(r.Calls) > 0:
		one := c.typed(sentence{call: 2}, o)
		return "High risk: " + strings.ToLower(reply) + " " + yes + " or " + no + ", or for one call " + one + " or " + no + " #2"
	case r.HighRisk:
		return "High risk: " + strings.ToLower(reply) + " " + yes + " or " + no
	case offers(r, permissions.Interrupt):
		return reply + " " + yes + ", " + no + " or INTERRUPT " + code
	case len(r.Calls) > 0:
		return reply + " " + yes + " or " + no + ", or for one call " + yes + " #2 or " + no + " #2"
	}
	return reply + " " + yes + " or " + no
}

// more is what else can be answered.
func (c chat) more(o Open) string {
	words := ""
	for _, option := range o.Request.Options {
		if s, ok := option.ID.Scope(); ok && s != permissions.Once {
			words += ", " + c.typed(sentence{scope: s.String()}, o) + " (" + scopeWords(o.Request, s) + ")"
		}
	}
	if offers(o.Request, permissions.Deny) {
		words += ", " + c.no(o.Code) + " because and your reason"
	}
	return words
}

// typed is how what a sentence allows is typed in full: at a console in small letters, as its prompt has it, and without
// RUN, since the code is the second yes there.
func (c chat) typed(s sentence, o Open) string {
	text := c.yes(o.Code)
	if s.scope != "" {
		text += " " + s.scope
	}
	if s.call != 0 {
		text += fmt.Sprintf(" #%d", s.call)
	}
	if o.Request.HighRisk && !c.Console {
		text += " RUN"
	}
	return text
}

func (c chat) yes(codes string) string {
	if c.Console {
		return "yes " + codes
	}
	return "YES " + codes
}

func (c chat) no(code string) string {
	if c.Console {
		return "no " + code
	}
	return "NO " + code
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
