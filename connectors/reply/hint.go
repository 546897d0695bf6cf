package reply

import (
	"fmt"
	"strings"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// Hint is the prompt of r: its shortest answers, and where to type.
func Hint(r permissions.Request, code string) string {
	switch {
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("1 to %d · %s in your own words > ", len(r.Choices), ownTyped(r, code))
	case r.HighRisk && len(r.Calls) > 0:
		return "high risk: type  yes " + code + "  or  n, with #2 for one call > "
	case r.HighRisk:
		return "high risk: type  yes " + code + "  or  n > "
	case r.Offers(permissions.Continue):
		return "Enter continues · Esc interrupts "
	}
	words := []string{"y allow once"}
	if r.Kind == permissions.KindPause {
		words = []string{"y yes"}
	}
	for _, o := range r.Options {
		if s, ok := o.ID.Scope(); ok && s.Key() != "" {
			words = append(words, s.Key()+" "+scopeWords(r, s))
		}
	}
	words = append(words, "n deny", "r deny with a reason")
	if len(r.Calls) > 0 {
		words = append(words, "y #2 or n #2 one call")
	}
	if r.Offers(permissions.Interrupt) {
		words = append(words, "Esc interrupts")
	}
	return strings.Join(words, " · ") + " > "
}

// Help lists every answer to r in one sentence.
func Help(r permissions.Request, code string) string {
	switch {
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("Type a number from 1 to %d, the words of an option, or %s and words of your own.",
			len(r.Choices), ownTyped(r, code))
	case r.Offers(permissions.Continue):
		return "Press Enter to continue, or Esc to interrupt."
	}
	var forms []string
	for _, o := range r.Options {
		if s, ok := o.ID.Scope(); ok && o.ID.With() == 0 {
			form := yes(s, r, code)
			if s.Key() != "" && !r.HighRisk {
				form = s.Key() + " or " + form
			}
			forms = append(forms, form+" ("+scopeWords(r, s)+")")
		}
	}
	if len(r.Calls) > 0 {
		forms = append(forms, "with #2 for one call")
	}
	if r.Offers(permissions.AllowWith(1)) {
		forms = append(forms, "in a shell daycared answer "+code+" allow_with_1 (take a suggestion)")
	}
	forms = append(forms, "n (deny)", "r and a reason (deny and say why)")
	if r.Offers(permissions.Interrupt) {
		forms = append(forms, "Esc (interrupt)")
	}
	if card.Masks(r) {
		forms = append(forms, "s (show unmasked)")
	}
	return "Type " + strings.Join(forms, ", ") + "."
}

// scopeWords says what a scope of r covers, in our own words because a tool's name is the agent's.
func scopeWords(r permissions.Request, s permissions.Scope) string {
	if r.Kind == permissions.KindPause {
		return "yes"
	}
	return r.CoversBriefly(s)
}

const (
	// maxListed limits the codes listed at once.
	maxListed = 10
	// maxHelped limits the requests that get help at once.
	maxHelped = 3
)

// ChatHelp says how to answer r in a chat with texts and replies, and with thumbs by reactions, as one sentence without its
// period: the shortest answers, the wider scopes and the reason.
func ChatHelp(r permissions.Request, code string, thumbs bool) string {
	return chat{Message: Message{Thumbs: thumbs}}.help(Open{Request: r, Code: code})
}

// hint has the shortest answers to o that the channel receives.
func (c chat) hint(o Open) string {
	if !c.Thumbs || o.Request.HighRisk || !o.Request.Offers(permissions.Deny) {
		return c.textHint(o)
	}
	return c.textHint(o) + ", or react 👍 / 👎"
}

func (c chat) help(o Open) string { return c.hint(o) + c.more(o) }

// textHint says how to answer by text alone.
func (c chat) textHint(o Open) string {
	r, code := o.Request, o.Code
	reply, yes, no := "Reply", c.typed(sentence{}, o), c.no(code)
	if c.Console {
		reply = "Type"
	}
	switch {
	case r.OnlyTitle && r.Offers(permissions.Deny):
		return reply + " " + no + ", or allow it in daycared inbox on the machine"
	case r.OnlyTitle && r.Offers(permissions.Interrupt):
		return reply + " INTERRUPT " + code + ", or see daycared inbox on the machine"
	case r.OnlyTitle:
		return "Answer it in daycared inbox on the machine"
	case r.Kind == permissions.KindClarification:
		return fmt.Sprintf("%s %s and a number from 1 to %d or the words of an option, or %s and words of your own",
			reply, code, len(r.Choices), ownSent(o))
	case r.Offers(permissions.Continue):
		return reply + " CONTINUE " + code + " or INTERRUPT " + code
	case r.HighRisk && len(r.Calls) > 0:
		one := c.typed(sentence{call: 2}, o)
		return "High risk: " + strings.ToLower(reply) + " " + yes + " or " + no + ", or for one call " + one + " or " + no + " #2"
	case r.HighRisk:
		return "High risk: " + strings.ToLower(reply) + " " + yes + " or " + no
	case r.Offers(permissions.Interrupt):
		return reply + " " + yes + ", " + no + " or INTERRUPT " + code
	case len(r.Calls) > 0:
		return reply + " " + yes + " or " + no + ", or for one call " + yes + " #2 or " + no + " #2"
	}
	return reply + " " + yes + " or " + no
}

func (c chat) more(o Open) string {
	words := ""
	for _, option := range o.Request.Options {
		if s, ok := option.ID.Scope(); ok && s != permissions.Once {
			words += ", " + c.typed(sentence{scope: s.String()}, o) + " (" + scopeWords(o.Request, s) + ")"
		}
	}
	if o.Request.Offers(permissions.AllowWith(1)) {
		words += ", or take a suggestion by its button or in a shell with daycared answer " + o.Code + " allow_with_1"
	}
	if o.Request.Offers(permissions.Deny) {
		words += ", " + c.no(o.Code) + " because and your reason"
	}
	return words
}

// typed is a sentence's approval in full. A console has small letters, and no RUN, because the code confirms there.
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

func (c chat) yes(codes string) string { return c.word("yes") + " " + codes }

func (c chat) no(code string) string { return c.word("no") + " " + code }

func (c chat) word(small string) string {
	if c.Console {
		return small
	}
	return strings.ToUpper(small)
}

// waiting says how many requests are pending, and their codes up to a limit.
func waiting(open []Open, still string) string {
	var codes []string
	for _, o := range open[:min(len(open), maxListed)] {
		codes = append(codes, o.Code)
	}
	if more := len(open) - maxListed; more > 0 {
		codes = append(codes, fmt.Sprintf("and %d more", more))
	}
	say := fmt.Sprintf("%d requests %swait: ", len(open), still)
	if len(open) == 1 {
		say = "1 request " + still + "waits: "
	}
	return say + strings.Join(codes, ", ")
}
