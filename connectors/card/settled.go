package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
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
		back := "taken back " + r.VoidAt.In(zone(o)).Format("15:04")
		if r.VoidedBy != "" {
			back += " by " + person(r.VoidedBy, o)
		}
		words = append(words, back)
	case !r.LapsedAt.IsZero():
		words = append(words, "was not collected")
	}
	for _, note := range o.Notes {
		words = append(words, Visible(note))
	}
	return Part{Role: Title, Text: strings.Join(words, " · ")}
}

func outcome(r permissions.Request, o Options) []string {
	if r.State != permissions.Approved && (!r.VoidAt.IsZero() || !r.LapsedAt.IsZero()) { // see [permissions.Request.Outcome]
		return []string{"✖ Allowed by " + allowedBy(r, o), at(r, o)}
	}
	switch r.State {
	case permissions.Approved:
		if r.DecidedVia == permissions.ViaGrant {
			return []string{"✅ Allowed already: it was held"}
		}
		by := "✅ " + allowed(r) + " by " + allowedBy(r, o)
		if mine(r, o) && len(Allowing(r)) < 2 {
			by = "✅ You " + this(allowed(r))
		}
		return append([]string{by, at(r, o)}, each(r, o)...)
	case permissions.Denied:
		words := []string{did("⛔", "Denied", "denied this", r, o), at(r, o)}
		if len(r.Calls) > 0 {
			return append(words, each(r, o)...)
		}
		return append(words, comment(r.Comment)...)
	case permissions.Answered:
		return append(answered(r, o), comment(r.Comment)...)
	case permissions.Expired:
		if r.Mode == permissions.ModeContinue {
			return []string{"⌛ Nobody resumed within " + span(r.Timeout()) + "; it continues"}
		}
		if some := each(r, o); len(some) > 0 {
			return append([]string{"⌛ Expired: not every call was answered within " + span(r.Timeout())}, some...)
		}
		return []string{"⌛ Expired: nobody answered within " + span(r.Timeout())}
	case permissions.Cancelled:
		if by := r.DecidedBy; by != "" && by != r.Caller.Name {
			return []string{did("✖", "Cancelled", "cancelled this", r, o), at(r, o)}
		}
		if why := withdrawnWhy[r.DecidedVia]; why != "" {
			return []string{"✖ Cancelled: " + why}
		}
		if r.Hook != "" && !r.Caller.Ours() {
			return []string{"✖ Cancelled by the agent: it was answered at its keyboard, or the agent was stopped"}
		}
		return []string{"✖ Cancelled by the agent"}
	case permissions.Undeliverable:
		return []string{"⚠ Could not be delivered: " + Visible(r.Failure)}
	}
	return pending(r, o)
}

// did says who did something, to whoever did it as "You".
func did(sign, done, you string, r permissions.Request, o Options) string {
	if mine(r, o) {
		return sign + " You " + you
	}
	return sign + " " + done + " " + decider(r, o)
}

// this is what a person did, after "You": allowed this once.
func this(done string) string {
	verb, rest, _ := strings.Cut(strings.ToLower(done[:1])+done[1:], " ")
	for _, object := range []string{"this ", "these ", "all ", "#"} {
		if strings.HasPrefix(rest, object) {
			return verb + " " + rest
		}
	}
	return strings.TrimSpace(verb + " this " + rest)
}

// withdrawnWhy says why an asker withdrew a request, if it gave a reason.
var withdrawnWhy = map[string]string{
	permissions.ViaKeyboard:   "it was answered at the agent's keyboard",
	permissions.ViaInterrupt:  "the agent was interrupted",
	permissions.ViaSessionEnd: "the agent's session ended",
	permissions.ViaExpiry:     "the agent's token has expired",
}

// allowed says what an approval allows, in our words alone, because a tool's name could say anything.
func allowed(r permissions.Request) string {
	switch s := r.Scope; {
	case mixed(r):
		return "Allowed"
	case r.Answer.With() > 0:
		return fmt.Sprintf("Allowed once, with suggestion %d", r.Answer.With())
	case len(r.Calls) > 1 && s != permissions.Session || slices.ContainsFunc(r.Calls, denied):
		return "Allowed" + allowedCalls(r) + " " + s.Lasts()
	case r.Kind == permissions.KindPause:
		return "Approved"
	default:
		return "Allowed " + r.Covers(s)
	}
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
		told, end := fmt.Sprintf("#%d denied", c.N), ""
		switch {
		case allows && r.State != permissions.Approved:
			told, end, spared = fmt.Sprintf("#%d allowed", c.N), ", but not run", true
		case allows && mixed(r):
			told = fmt.Sprintf("#%d allowed %s", c.N, s.Lasts())
		case allows && (c.At.IsZero() || c.At.Equal(r.DecidedAt)), c.Answer == "":
			continue
		case allows:
			told = fmt.Sprintf("#%d allowed", c.N)
		}
		if c.By != "" && c.By != r.DecidedBy {
			told += " by " + person(c.By, o)
		}
		if !c.At.IsZero() && !c.At.Equal(r.DecidedAt) {
			told += " " + c.At.In(zone(o)).Format("15:04")
		}
		words = append(append(words, told+end), comment(c.Comment)...)
	}
	if spared && r.State == permissions.Denied {
		words = append(words, "the denial ends the run")
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
		choice = fmt.Sprintf("%d %s", k+1, coded(quote(Prose(r.Choice()))))
	}
	switch {
	case r.TimedOut && r.DeniesSilence():
		return []string{"⌛ Nobody answered within " + span(r.Timeout())}
	case r.Defaulted && r.DeniesSilence():
		return []string{"⚠ No valid answer in three tries"}
	case r.TimedOut:
		return []string{"⌛ Nobody answered within " + span(r.Timeout()) + "; first option taken", choice}
	case r.Defaulted:
		return []string{"⚠ No valid answer in three tries; first option taken", choice}
	case r.Answer == permissions.Continue:
		return []string{did("✅", "Continued", "continued this", r, o), at(r, o)}
	case r.Answer == permissions.Interrupt:
		return []string{did("⛔", "Interrupted", "interrupted this", r, o), at(r, o)}
	case r.DecidedVia == permissions.ViaEditor, r.Answer == permissions.Other: // the words follow
		return []string{did("✅", "Answered", "answered", r, o), at(r, o), choice}
	}
	return []string{did("✅", "Chosen", "chose", r, o), at(r, o), choice}
}

// pending is the progress of a request that is not settled.
func pending(r permissions.Request, o Options) []string {
	words := []string{"⏳ Waiting for an answer"}
	if len(r.Votes) > 0 && (len(r.Calls) == 0 || r.Quorum > 1) {
		words = []string{"⏳ " + votes(r, o)}
	}
	for _, c := range r.Calls {
		switch _, allowed := c.Answer.Scope(); {
		case allowed:
			words = append(words, fmt.Sprintf("#%d allowed", c.N))
		case c.Answer != "":
			words = append(words, fmt.Sprintf("#%d denied", c.N))
		default:
			words = append(words, fmt.Sprintf("#%d open", c.N))
		}
	}
	if !r.LeftAt.IsZero() {
		words = append(words, "nobody is waiting for it just now; an answer is kept for the agent")
	}
	return words
}

// votes says how many of the people needed have approved, and who.
func votes(r permissions.Request, o Options) string {
	text := fmt.Sprintf("%d of %d", len(Allowing(r)), r.Quorum)
	if names := Allowing(r); len(names) > 0 {
		text += ", allowed by " + people(names, o)
	}
	return text
}

// Allowing returns the people who approved anything of r, each once.
func Allowing(r permissions.Request) (names []string) {
	for _, v := range r.Votes {
		if _, ok := v.Answer.Scope(); ok && !slices.Contains(names, v.By) {
			names = append(names, v.By)
		}
	}
	return names
}

func allowedBy(r permissions.Request, o Options) string {
	if names := Allowing(r); len(names) > 1 {
		return people(names, o)
	}
	return person(r.DecidedBy, o)
}

// decider is who answered, or where, if only that is known.
func decider(r permissions.Request, o Options) string {
	if r.DecidedVia == permissions.ViaEditor {
		return "in the editor"
	}
	return "by " + person(r.DecidedBy, o)
}

func people(names []string, o Options) string {
	return strings.Join(wire.Each(names, func(name string) string { return person(name, o) }), " and ")
}

func person(name string, o Options) string {
	switch name {
	case "":
		return "nobody"
	case o.Self:
		return "you"
	}
	return Visible(name)
}

// at is when r was decided, as a time of day; empty for whoever just decided it, if their zone is not known.
func at(r permissions.Request, o Options) string {
	if mine(r, o) && o.Location == nil {
		return ""
	}
	return r.DecidedAt.In(zone(o)).Format("15:04")
}

func mine(r permissions.Request, o Options) bool { return o.Self != "" && r.DecidedBy == o.Self }

func via(name string) string {
	if k, known := connectors.KindOf(name); known {
		return k.Label
	}
	switch name {
	case "cli":
		return "command line"
	case "web":
		return "HTTP"
	}
	return Visible(name)
}

func comment(text string) []string {
	if text == "" {
		return nil
	}
	return []string{coded(quote(Prose(text)))}
}
