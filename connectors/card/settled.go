package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Settled is one line about r's state: its outcome, by whom and when; for a pending request, the progress so far.
func Settled(r permissions.Request, o Options) string {
	text := Plain(Outcome(r, o).Text)
	if o.Width > 0 {
		return Spell(text)
	}
	return text
}

// Outcome is [Settled] with somebody's reason or the agent's option marked, see [Part.Spans].
func Outcome(r permissions.Request, o Options) Part {
	words := slices.DeleteFunc(outcome(r, o), func(word string) bool { return word == "" })
	switch {
	case !r.VoidAt.IsZero():
		back := o.Sprintf("taken back %s", r.VoidAt.In(zone(o)).Format("15:04"))
		if r.VoidedBy != "" {
			back = o.Sprintf("%s by %s", back, person(r.VoidedBy, o))
		}
		words = append(words, back)
	case !r.LapsedAt.IsZero():
		words = append(words, o.Text("was not collected"))
	}
	for _, note := range o.Notes {
		words = append(words, Visible(note))
	}
	return Part{Role: Title, Text: strings.Join(words, " · ")}
}

func outcome(r permissions.Request, o Options) []string {
	if r.State != permissions.Approved && (!r.VoidAt.IsZero() || !r.LapsedAt.IsZero()) { // see [permissions.Request.Outcome]
		return []string{o.Sprintf("✖ Allowed by %s", allowedBy(r, o)), at(r, o)}
	}
	switch r.State {
	case permissions.Approved:
		if r.DecidedVia == permissions.ViaGrant {
			return []string{o.Text("✅ Allowed already: it was held")}
		}
		return append([]string{allowed(r, o), at(r, o)}, each(r, o)...)
	case permissions.Denied:
		words := []string{whoDid("⛔ Denied by %s", "⛔ You denied this", r, o), at(r, o)}
		if len(r.Calls) > 0 {
			return append(words, each(r, o)...)
		}
		return append(words, comment(r.Comment)...)
	case permissions.Answered:
		return append(answered(r, o), comment(r.Comment)...)
	case permissions.Expired:
		if r.Mode == permissions.ModeContinue {
			return []string{o.Sprintf("⌛ Nobody resumed within %s; it continues", span(r.Timeout()))}
		}
		if some := each(r, o); len(some) > 0 {
			return append([]string{o.Sprintf("⌛ Expired: not every call was answered within %s", span(r.Timeout()))}, some...)
		}
		return []string{o.Sprintf("⌛ Expired: nobody answered within %s", span(r.Timeout()))}
	case permissions.Cancelled:
		if by := r.DecidedBy; by != "" && by != r.Caller.Name {
			return []string{whoDid("✖ Cancelled by %s", "✖ You cancelled this", r, o), at(r, o)}
		}
		if why := withdrawnWhy[r.DecidedVia]; why != "" {
			return []string{o.Sprintf("✖ Cancelled: %s", why)}
		}
		if r.Hook != "" && !r.Caller.IsOurs() {
			return []string{o.Text("✖ Cancelled by the agent: it was answered at its keyboard, or the agent was stopped")}
		}
		return []string{o.Text("✖ Cancelled by the agent")}
	case permissions.Undeliverable:
		return []string{o.Sprintf("⚠ Could not be delivered: %s", Visible(failure(r.Failure, o)))}
	}
	return pending(r, o)
}

// failures are the reasons, stored in English, why nobody could be asked. %s is a name.
var failures = []i18n.Phrase{
	"%s has blocked the bot", "%s never pressed Start", "%s has no Telegram account any more", "%s is a bot",
	"the bot was removed from the group", "the bot is not in the group", "the group was deleted", "the bot may not write in the group",
	"the bot may not write in the channel", "the topic in the group was deleted", "the topic in the group was closed",
	"the bot is not in the group, or may not write there", "Telegram does not let the bot write to %s", "Telegram does not take it",
	"%s has no Telegram account here", "%s has no WhatsApp number here", "%s's number is not on WhatsApp",
	"no WhatsApp account is linked; run: daycared link whatsapp", "%s has no inbox open", "%s's console is closed",
	"%s is not the one at the daemon's console", "%s has no console here: standard input is neither a terminal nor a pipe",
	"such a rule is not given any more", "%s is not configured", "%s's %s is not switched on", "no channel is switched on",
	"too few of the people who were asked are left in the configuration",
	"too few of the people who were asked may still answer; locked: %s", "%s is locked until: daycared unlock %s",
	"%s is stopped until: daycared resume %s", "everything is stopped by %s until: daycared resume",
	"%s has blocked the bot since %s; %s has to press Start",
	"%s never pressed Start; %s has to open the bot and press Start",
	"%s's WhatsApp account has changed its keys; enrol it again: daycared pair %s --via whatsapp",
	"%s's %s account has changed its keys: enrol it again with daycared pair %s --via %s",
	"%s's %s account is suspended since the store was restored: confirm it with daycared reinstate %s",
	"WhatsApp removed this device (%s); link it again: daycared link whatsapp",
	"WhatsApp bans the account for a time (%s), until %s; write less, and only to people who wrote first",
	"WhatsApp bans the account for a time (%s); write less, and only to people who wrote first",
	"somebody else connected with this account's keys, so this daemon was thrown out: stop the " +
		"other program that uses a copy of them, then restart daycared",
	"WhatsApp does not take this version of the client any more: update daycared, or leave " +
		"connectors.whatsapp.auto_version on, so that it goes with the time",
	"the linked account is not the one that connectors.whatsapp.phone names: remove daycared " +
		"on its phone (Linked devices) and link the right one, or name this one there",
	"WhatsApp refuses the connection: %s",
}

// failure is why nobody could be asked, with what is ours in the language of the card. Several reasons are in one text.
func failure(text string, o Options) string {
	if o.Language == "" || o.Language == i18n.English {
		return text
	}
	for _, phrase := range failures {
		if args, is := like(text, strings.Split(string(phrase), "%s")); is {
			return o.Sprintf(phrase, args...)
		}
	}
	for at := range text {
		if first, rest := text[:at], text[at:]; strings.HasPrefix(rest, "; ") && failure(first, o) != first {
			return failure(first, o) + "; " + failure(rest[2:], o)
		}
	}
	return text
}

// like returns what stands in a text between pieces, which it has in their order: names of one word.
func like(text string, pieces []string) (args []any, is bool) {
	text, is = strings.CutPrefix(text, pieces[0])
	for i, piece := range pieces[1:] {
		if !is {
			return nil, false
		}
		arg, rest, found := strings.Cut(text, piece)
		if last := i == len(pieces)-2; last {
			arg, found = strings.CutSuffix(text, piece)
			rest = ""
		}
		args, text, is = append(args, arg), rest, found && arg != "" && !strings.Contains(arg, "; ")
	}
	return args, is && text == ""
}

// whoDid says who did something, to whoever did it as "You".
func whoDid(by, you i18n.Phrase, r permissions.Request, o Options) string {
	switch {
	case isByReader(r, o):
		return o.Text(you)
	case r.DecidedVia == permissions.ViaEditor: // only that is known
		return o.Sprintf(inEditor[by])
	case r.DecidedVia == permissions.ViaRule:
		return o.Sprintf(by, Visible(r.Failure))
	}
	return o.Sprintf(by, person(r.DecidedBy, o))
}

// inEditor are what was done, where only the place is known.
var inEditor = map[i18n.Phrase]i18n.Phrase{
	"⛔ Denied by %s":      "⛔ Denied in the editor",
	"✖ Cancelled by %s":   "✖ Cancelled in the editor",
	"✅ Continued by %s":   "✅ Continued in the editor",
	"⛔ Interrupted by %s": "⛔ Interrupted in the editor",
	"✅ Answered by %s":    "✅ Answered in the editor",
	"✅ Chosen by %s":      "✅ Chosen in the editor",
}

// withdrawnWhy says why an asker withdrew a request, if it gave a reason.
var withdrawnWhy = map[string]i18n.Phrase{
	permissions.ViaKeyboard:   "it was answered at the agent's keyboard",
	permissions.ViaInterrupt:  "the agent was interrupted",
	permissions.ViaSessionEnd: "the agent's session ended",
	permissions.ViaExpiry:     "the agent's token has expired",
}

// allowed says what was allowed by whom, in our words alone, because a tool's name could say anything.
func allowed(r permissions.Request, o Options) string {
	what, object := "", false // object: what says of what
	by, mineTo := i18n.Phrase("✅ Allowed by %s"), i18n.Phrase("✅ You allowed this")
	switch s := r.Scope; {
	case mixed(r):
	case r.Answer.SuggestionNumber() > 0:
		what = o.Sprintf("once, with suggestion %d", r.Answer.SuggestionNumber())
	case len(r.Calls) > 1 && s != permissions.Session || slices.ContainsFunc(r.Calls, denied):
		what, object = strings.TrimSpace(allowedCalls(r)+" "+s.Lasts(o.Language)), true
	case r.Kind == permissions.KindPause:
		by, mineTo = "✅ Approved by %s", "✅ You approved this"
	default:
		what = r.Covers(s, o.Language)
		object = what != s.Lasts(o.Language)
	}
	you := isByReader(r, o) && len(Approvers(r)) < 2
	switch {
	case you && what == "":
		return o.Text(mineTo)
	case you && object:
		return o.Sprintf("✅ You allowed %s", what)
	case you:
		return o.Sprintf("✅ You allowed this %s", what)
	case what == "":
		return o.Sprintf(by, allowedBy(r, o))
	}
	return o.Sprintf("✅ Allowed %s by %s", what, allowedBy(r, o))
}

func denied(c permissions.Call) bool { return c.Answer == permissions.Deny }

// mixed reports whether calls of a step were approved for different scopes.
func mixed(r permissions.Request) bool {
	return slices.ContainsFunc(r.Calls, func(c permissions.Call) bool {
		s, allows := c.Answer.Scope()
		return allows && s != r.Scope
	})
}

// each lists the calls of a step whose outcome differs from that of the request: the answer, by whom, when and why.
func each(r permissions.Request, o Options) (words []string) {
	spared := false
	for _, c := range r.Calls {
		s, allows := c.Answer.Scope()
		told, end := o.Sprintf("#%d denied", c.N), ""
		switch {
		case allows && r.State != permissions.Approved:
			told, end, spared = o.Sprintf("#%d allowed", c.N), o.Text(", but not run"), true
		case allows && mixed(r):
			told = o.Sprintf("#%d allowed %s", c.N, s.Lasts(o.Language))
		case allows && (c.At.IsZero() || c.At.Equal(r.DecidedAt)), c.Answer == "":
			continue
		case allows:
			told = o.Sprintf("#%d allowed", c.N)
		}
		if c.By != "" && c.By != r.DecidedBy {
			told = o.Sprintf("%s by %s", told, person(c.By, o))
		}
		if !c.At.IsZero() && !c.At.Equal(r.DecidedAt) {
			told += " " + c.At.In(zone(o)).Format("15:04")
		}
		words = append(append(words, told+end), comment(c.Comment)...)
	}
	if spared && r.State == permissions.Denied {
		words = append(words, o.Text("the denial ends the run"))
	}
	return words
}

// allowedCalls lists the numbers of the calls that were not denied.
func allowedCalls(r permissions.Request) (words string) {
	for _, c := range r.Calls {
		if c.Answer != permissions.Deny {
			words += fmt.Sprintf(" #%d", c.N)
		}
	}
	return words
}

func answered(r permissions.Request, o Options) []string {
	choice := ""
	if k := slices.Index(r.Choices, r.Choice()); k >= 0 && r.Choice() != "" {
		choice = fmt.Sprintf("%d %s", k+1, codeSpan(quote(Prose(r.Choice()))))
	}
	switch {
	case r.TimedOut && r.DeniedIfUnanswered():
		return []string{o.Sprintf("⌛ Nobody answered within %s", span(r.Timeout()))}
	case r.Defaulted && r.DeniedIfUnanswered():
		return []string{o.Text("⚠ No valid answer in three tries")}
	case r.TimedOut:
		return []string{o.Sprintf("⌛ Nobody answered within %s; first option taken", span(r.Timeout())), choice}
	case r.Defaulted:
		return []string{o.Text("⚠ No valid answer in three tries; first option taken"), choice}
	case r.Answer == permissions.Continue:
		return []string{whoDid("✅ Continued by %s", "✅ You continued this", r, o), at(r, o)}
	case r.Answer == permissions.Interrupt:
		return []string{whoDid("⛔ Interrupted by %s", "⛔ You interrupted this", r, o), at(r, o)}
	case r.DecidedVia == permissions.ViaEditor, r.Answer == permissions.Other: // the words follow
		return []string{whoDid("✅ Answered by %s", "✅ You answered", r, o), at(r, o), choice}
	}
	return []string{whoDid("✅ Chosen by %s", "✅ You chose", r, o), at(r, o), choice}
}

// pending is the progress of a request that is not settled.
func pending(r permissions.Request, o Options) []string {
	words := []string{o.Text("⏳ Waiting for an answer")}
	if len(r.Votes) > 0 && (len(r.Calls) == 0 || r.Quorum > 1) {
		words = []string{"⏳ " + votes(r, o)}
	}
	for _, c := range r.Calls {
		switch _, allowed := c.Answer.Scope(); {
		case allowed:
			words = append(words, o.Sprintf("#%d allowed", c.N))
		case c.Answer != "":
			words = append(words, o.Sprintf("#%d denied", c.N))
		default:
			words = append(words, o.Sprintf("#%d open", c.N))
		}
	}
	if !r.LeftAt.IsZero() {
		words = append(words, o.Text("nobody is waiting for it just now; an answer is kept for the agent"))
	}
	return words
}

// votes says how many of the people needed have approved, and who.
func votes(r permissions.Request, o Options) string {
	text := o.Sprintf("%d of %d", len(Approvers(r)), r.Quorum)
	if names := Approvers(r); len(names) > 0 {
		text = o.Sprintf("%s, allowed by %s", text, people(names, o))
	}
	return text
}

// Approvers returns the people who approved anything of r, each once.
func Approvers(r permissions.Request) (names []string) {
	for _, v := range r.Votes {
		if _, ok := v.Answer.Scope(); ok && !slices.Contains(names, v.By) {
			names = append(names, v.By)
		}
	}
	return names
}

func allowedBy(r permissions.Request, o Options) string {
	if names := Approvers(r); len(names) > 1 {
		return people(names, o)
	}
	return person(r.DecidedBy, o)
}

func people(names []string, o Options) string {
	return strings.Join(wire.Map(names, func(name string) string { return person(name, o) }), o.Text(" and "))
}

func person(name string, o Options) string {
	switch name {
	case "":
		return o.Text("nobody")
	case o.Self:
		return o.Text("you")
	}
	return Visible(name)
}

// at is when r was decided, as a time of day; empty for whoever just decided it, if their zone is not known.
func at(r permissions.Request, o Options) string {
	if isByReader(r, o) && o.Location == nil {
		return ""
	}
	return r.DecidedAt.In(zone(o)).Format("15:04")
}

func isByReader(r permissions.Request, o Options) bool { return o.Self != "" && r.DecidedBy == o.Self }

func via(name string, o Options) string {
	if k, known := connectors.KindOf(name); known {
		return k.Label
	}
	switch name {
	case "cli":
		return o.Text("command line")
	case "web":
		return "HTTP"
	}
	return Visible(name)
}

func comment(text string) []string {
	if text == "" {
		return nil
	}
	return []string{codeSpan(quote(Prose(text)))}
}
