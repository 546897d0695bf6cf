package reply

import (
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// judge returns what a sentence decides about the requests that it names: about all of them, or about none.
func (c chat) judge(s sentence) Result {
	var said Result
	var named []Open
	for _, code := range s.codes {
		o, waits := find(c.open, code)
		if !waits {
			said.Unknown = append(said.Unknown, code)
		}
		named = append(named, o)
	}
	if len(said.Unknown) > 0 {
		return s.unknown(said, c.Language)
	}
	var why []string
	for i, o := range named {
		d, not := c.decide(s, o)
		switch {
		case slices.Contains(s.codes[:i], s.codes[i]):
			not = c.Language.Sprintf("%s is named twice", o.Code)
		case o.ShownAt.IsZero() && d.Answer != permissions.Deny: // a no grants nothing, and they may have been asked elsewhere
			not = c.Language.Sprintf("%s has not been shown to you yet; look at it first", o.Code)
			said.Unseen = append(said.Unseen, o.Code)
		}
		if not != "" {
			why = append(why, not)
		}
		said.Decisions = append(said.Decisions, d)
	}
	if len(why) > 0 {
		said.Decisions, said.Reply = nil, c.Language.Sprintf("Nothing was decided: %s.", strings.Join(why, "; "))
	}
	return said
}

// unknown is the reply to a sentence that names what is not pending.
func (s sentence) unknown(said Result, in i18n.Language) Result {
	if !s.quoted {
		said.Guesses = len(said.Unknown)
	}
	said.Reply = in.Sprintf("Nothing was decided: nothing that waits for you has the code %s.", strings.Join(said.Unknown, in.Text(" or ")))
	return said
}

// decide returns what a sentence decides about one of its requests, or why it does not, without a period.
func (c chat) decide(s sentence, o Open) (d connectors.Decision, not string) {
	r := o.Request
	d = connectors.Decision{Request: r.ID, Code: o.Code, Call: s.call, Comment: s.reason, Shown: r.ShownDigest(), Rule: s.rule}
	if d.Answer, not = c.answer(s, o); d.Answer == permissions.Other {
		d.Comment = s.own
	}
	_, allowing := d.Answer.Scope()
	switch several := len(s.codes) > 1; {
	case not != "":
	case c.At.Before(o.ShownAt):
		not = c.Language.Sprintf("your answer is older than the card of %s; answer again", o.Code)
	case several && (!allowing || s.scope != "" || s.call != 0 || s.run):
		not = c.Language.Sprintf("several requests at once can only be allowed, and only once: %s", c.yes(strings.Join(s.codes, " ")))
	case s.call != 0 && !slices.ContainsFunc(r.Calls, func(c permissions.Call) bool { return c.N == s.call }):
		not = c.Language.Sprintf("%s has no call #%d", o.Code, s.call)
	case s.run && !r.HighRisk:
		not = c.Language.Sprintf("%s is not high risk; leave RUN out", o.Code)
	case r.HighRisk && (several || s.quoted && s.reason == ""):
		not = c.Language.Sprintf("%s is high risk and takes a message of its own: %s or %s", o.Code, c.approvalHint(s, o), c.no(o.Code))
	case r.HighRisk && allowing && !s.run && !c.Console:
		not = c.Language.Sprintf("%s is high risk; to allow it: %s", o.Code, c.approvalHint(s, o))
	default:
		d.Really = r.HighRisk && allowing
	}
	return d, not
}

// answer is a sentence's answer to o, or why it has none.
func (c chat) answer(s sentence, o Open) (a permissions.Answer, not string) {
	r := o.Request
	switch {
	case r.Kind == permissions.KindClarification:
		switch meant := ChosenOptions(s.pick, r); {
		case len(meant) == 1:
			a = permissions.Choose(meant[0])
		case len(meant) > 1:
			return "", c.Language.Sprintf("that names two options of %s; write %s", o.Code, optionForms(o.Code+" ", meant, c.Language))
		case s.own != "" && (s.pick == "" || !hasColonOption(r)):
			return permissions.Other, ""
		}
	case s.act == allows:
		a = permissions.Allow(s.scopeFor(r))
	case s.act == denies:
		a = permissions.Deny
	case s.act == resumes:
		a = permissions.Continue
	case s.act == interrupts:
		a = permissions.Interrupt
	}
	switch {
	case r.Offers(a):
		return a, ""
	case r.OnlyTitle:
		return "", c.Language.Sprintf("this chat shows no more than the title of %s, so it is answered in daycared inbox on the machine. %s",
			o.Code, c.hint(o))
	case s.scope != "" && r.Offers(permissions.Allow(permissions.Once)):
		return "", c.Language.Sprintf("%s can be allowed for: %s", o.Code, strings.Join(scopes(r, c.Language), ", "))
	}
	return "", c.Language.Sprintf("%s takes another answer. %s", o.Code, c.help(o))
}

// scopeFor is the scope that a sentence allows r for. "session" means the narrower scope of that name if only that is offered, and "always"
// in a reply to a card what can be always allowed, if no rule can be given.
func (s sentence) scopeFor(r permissions.Request) permissions.Scope {
	if s.scope == "" {
		return permissions.Once
	}
	scope, err := permissions.ParseScope(s.scope)
	if err == nil && scope == permissions.Session && !r.Offers(permissions.Allow(scope)) {
		return permissions.SessionTool
	}
	if s.quoted && s.rule == "" && scope == permissions.Rule && !r.Offers(permissions.Allow(scope)) {
		return permissions.Always
	}
	return scope
}

func scopes(r permissions.Request, in i18n.Language) (ids []string) {
	for _, o := range r.Options {
		if s, ok := o.ID.Scope(); ok && o.ID.SuggestionNumber() == 0 {
			ids = append(ids, scopeName(s, in))
		}
	}
	return ids
}

// ChosenOptions returns the options of a clarification that a text names. The number of an option (2, option 2 or its id) names
// that one, and any other whose words it is; anything else has to be an option's words, exactly or, if none matches, in any case, or
// without a full stop, a comma or exclamation marks at its end.
func ChosenOptions(text string, r permissions.Request) (named []int) {
	text = oneLine(text)
	word, numbered := fold(plain(text)), false
	for i, choice := range r.Choices {
		isNumber := slices.Contains([]string{strconv.Itoa(i + 1), optionForm(i + 1), string(permissions.Choose(i + 1))}, word)
		if isNumber || fold(plain(oneLine(choice))) == word {
			named = append(named, i+1)
		}
		numbered = numbered || isNumber
	}
	if numbered {
		return named
	}
	if named := matchingOptions(text, r); len(named) > 0 || plain(text) == text {
		return named
	}
	return matchingOptions(plain(text), r)
}

func matchingOptions(text string, r permissions.Request) (exact []int) {
	var inAnyCase []int
	for i, c := range r.Choices {
		words := oneLine(c)
		switch {
		case text == "":
		case words == text:
			exact = append(exact, i+1)
		case fold(words) == fold(text):
			inAnyCase = append(inAnyCase, i+1)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return inAnyCase
}

// optionForm is how an option is written that a number alone does not name.
func optionForm(n int) string { return "option " + strconv.Itoa(n) }

func optionForms(before string, options []int, in i18n.Language) string {
	return strings.Join(wire.Map(options, func(n int) string { return before + optionForm(n) }), in.Text(" or "))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
