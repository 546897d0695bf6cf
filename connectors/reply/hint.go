package reply

import (
	"fmt"
	"strings"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Hint is the prompt of r: its shortest answers, and where to type.
func Hint(r permissions.Request, code string, in i18n.Language) string {
	switch {
	case r.Kind == permissions.KindClarification:
		return in.Sprintf("1 to %d · %s in your own words > ", len(r.Choices), ownWordsHint(r, code, in))
	case r.HighRisk && len(r.Calls) > 0:
		return in.Sprintf("high risk: type  yes %s  or  n, with #2 for one call > ", code)
	case r.HighRisk:
		return in.Sprintf("high risk: type  yes %s  or  n > ", code)
	case r.Offers(permissions.Continue):
		return in.Text("Enter continues · Esc interrupts ")
	}
	words := []string{in.Text("y allow once")}
	if r.Kind == permissions.KindPause {
		words = []string{in.Text("y yes")}
	}
	for _, o := range r.Options {
		if s, ok := o.ID.Scope(); ok && s.Key() != "" {
			words = append(words, s.Key()+" "+scopeWords(r, s, in))
		}
	}
	words = append(words, in.Text("n deny"), in.Text("r deny with a reason"))
	if len(r.Calls) > 0 {
		words = append(words, in.Text("y #2 or n #2 one call"))
	}
	if r.Offers(permissions.Interrupt) {
		words = append(words, in.Text("Esc interrupts"))
	}
	return strings.Join(words, " · ") + " > "
}

// Help lists every answer to r in one sentence.
func Help(r permissions.Request, code string, in i18n.Language) string {
	switch {
	case r.Kind == permissions.KindClarification:
		return in.Sprintf("Type a number from 1 to %d, the words of an option, or %s and words of your own.",
			len(r.Choices), ownWordsHint(r, code, in))
	case r.Offers(permissions.Continue):
		return in.Text("Press Enter to continue, or Esc to interrupt.")
	}
	var forms []string
	for _, o := range r.Options {
		if s, ok := o.ID.Scope(); ok && o.ID.SuggestionNumber() == 0 {
			form := yes(s, r, code, in)
			if s.Key() != "" && !r.HighRisk {
				form = in.Sprintf("%s or %s", s.Key(), form)
			}
			forms = append(forms, form+" ("+scopeWords(r, s, in)+")")
		}
	}
	if len(r.Calls) > 0 {
		forms = append(forms, in.Text("with #2 for one call"))
	}
	if r.Offers(permissions.AllowWithSuggestion(1)) {
		forms = append(forms, in.Sprintf("in a shell daycared answer %s allow_with_1 (take a suggestion)", code))
	}
	forms = append(forms, in.Text("n (deny)"), in.Text("r and a reason (deny and say why)"))
	if r.Offers(permissions.Interrupt) {
		forms = append(forms, in.Text("Esc (interrupt)"))
	}
	if card.HasSecret(r) {
		forms = append(forms, in.Text("s (show unmasked)"))
	}
	return in.Sprintf("Type %s.", strings.Join(forms, ", "))
}

// scopeWords says what a scope of r covers, in our own words because a tool's name is the agent's.
func scopeWords(r permissions.Request, s permissions.Scope, in i18n.Language) string {
	if r.Kind == permissions.KindPause {
		return in.Text("yes")
	}
	return r.CoversBriefly(s, in)
}

func scopeName(s permissions.Scope, in i18n.Language) string {
	if s == permissions.SessionTool || s.Span() > 0 {
		return s.String()
	}
	return in.Text(i18n.Phrase(s.String()))
}

const (
	// maxListed limits the codes listed at once.
	maxListed = 10
	// maxHelped limits the requests that get help at once.
	maxHelped = 3
)

// ChatHelp says how to answer r in a chat with texts and replies, and with thumbs by reactions, as one sentence without its
// period: the shortest answers, the wider scopes and the reason.
func ChatHelp(r permissions.Request, code string, thumbs bool, in i18n.Language) string {
	return chat{Message: Message{Thumbs: thumbs, Language: in}}.help(Open{Request: r, Code: code})
}

// hint has the shortest answers to o that the channel receives.
func (c chat) hint(o Open) string {
	if !c.Thumbs || o.Request.HighRisk || o.Request.OnlyTitle || !o.Request.Offers(permissions.Deny) {
		return c.textHint(o)
	}
	return c.Language.Sprintf("%s, or react 👍 / 👎", c.textHint(o))
}

func (c chat) help(o Open) string { return c.hint(o) + c.more(o) }

// textHint says how to answer by text alone.
func (c chat) textHint(o Open) string {
	r, code, in := o.Request, o.Code, c.Language
	reply, risky, yes, no := i18n.Phrase("Reply"), i18n.Phrase("High risk: reply"), c.approvalHint(sentence{}, o), c.no(code)
	if c.Console {
		reply, risky = "Type", "High risk: type"
	}
	switch {
	case r.OnlyTitle && r.Offers(permissions.Deny):
		return in.Sprintf("%s %s, or allow it in daycared inbox on the machine", reply, no)
	case r.OnlyTitle && r.Offers(permissions.Interrupt):
		return in.Sprintf("%s INTERRUPT %s, or see daycared inbox on the machine", reply, code)
	case r.OnlyTitle:
		return in.Text("Answer it in daycared inbox on the machine")
	case r.Kind == permissions.KindClarification:
		return in.Sprintf("%s %s and a number from 1 to %d or the words of an option, or %s and words of your own",
			reply, code, len(r.Choices), ownWordsChatHint(o, in))
	case r.Offers(permissions.Continue):
		return in.Sprintf("%s CONTINUE %s or INTERRUPT %s", reply, code, code)
	case r.HighRisk && len(r.Calls) > 0:
		return in.Sprintf("%[1]s %[2]s or %[3]s, or for one call %[4]s or %[3]s #2", risky, yes, no, c.approvalHint(sentence{call: 2}, o))
	case r.HighRisk:
		return in.Sprintf("%s %s or %s", risky, yes, no)
	case r.Offers(permissions.Interrupt):
		return in.Sprintf("%s %s, %s or INTERRUPT %s", reply, yes, no, code)
	case len(r.Calls) > 0:
		return in.Sprintf("%[1]s %[2]s or %[3]s, or for one call %[2]s #2 or %[3]s #2", reply, yes, no)
	}
	return in.Sprintf("%s %s or %s", reply, yes, no)
}

func (c chat) more(o Open) string {
	words, in := "", c.Language
	for _, option := range o.Request.Options {
		if s, ok := option.ID.Scope(); ok && s != permissions.Once {
			words += ", " + c.approvalHint(sentence{scope: scopeName(s, in)}, o) + " (" + scopeWords(o.Request, s, in) + ")"
		}
	}
	if o.Request.Offers(permissions.AllowWithSuggestion(1)) {
		words += in.Sprintf(", or take a suggestion by its button or in a shell with daycared answer %s allow_with_1", o.Code)
	}
	if o.Request.Offers(permissions.Deny) {
		words += in.Sprintf(", %s because and your reason", c.no(o.Code))
	}
	return words
}

// RuleHint says how the rule that was shown for a request is given, at the console of its card or in a chat.
func RuleHint(rule permissions.GrantedRule, code string, console bool, in i18n.Language) string {
	if console {
		return in.Sprintf("To give it, type  %s", permissions.Rule.Key()+" "+rule.Fingerprint())
	}
	return in.Sprintf("To give it, reply %s", chat{Message: Message{Language: in}}.word("always")+" "+code+" "+rule.Fingerprint())
}

// approvalHint is a sentence's approval in full. A console has small letters, and no RUN, because the code confirms there.
func (c chat) approvalHint(s sentence, o Open) string {
	text := c.yes(o.Code)
	if s.scope == scopeName(permissions.Rule, c.Language) {
		return c.word("always") + " " + o.Code
	}
	if s.scope != "" {
		text += " " + s.scope
	}
	if s.call != 0 {
		text += fmt.Sprintf(" #%d", s.call)
	}
	if o.Request.HighRisk && !c.Console {
		text += " " + strings.ToUpper(c.Language.Text("run"))
	}
	return text
}

func (c chat) yes(codes string) string { return c.word("yes") + " " + codes }

func (c chat) no(code string) string { return c.word("no") + " " + code }

func (c chat) word(small i18n.Phrase) string {
	if c.Console {
		return c.Language.Text(small)
	}
	return strings.ToUpper(c.Language.Text(small))
}

// waiting says how many requests are pending, and their codes up to a limit.
func (c chat) waiting(forms i18n.Phrase) string {
	codes := wire.Map(c.open[:min(len(c.open), maxListed)], func(o Open) string { return o.Code })
	if more := len(c.open) - maxListed; more > 0 {
		codes = append(codes, c.Language.Sprintf("and %d more", more))
	}
	return c.Language.Plural(len(c.open), forms, len(c.open), strings.Join(codes, ", "))
}
