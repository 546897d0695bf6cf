package card

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// ruled is how wide the rule over a card is, in characters.
const ruled = 55

// Options are what a card depends on besides its request. The zero Options are valid.
type Options struct {
	Heading  string         // at the left of the rule, as in 1/5
	Who      string         // the asking agent, instead of the request's own words
	Self     string         // the person whose decisions read "you"
	Now      time.Time      // zero: nothing is said relative to it
	Location *time.Location // of times of day; nil: UTC
	Width    int            // cells that a row may have, at least 24; 0: rows are not wrapped
	Notes    []string       // more words on a settled line
	Reveal   bool           // secrets are shown whole
}

// Card is the whole of what p's person decides about, in rows separated by newlines. Nothing is shortened.
func Card(p connectors.Prompt, o Options) string {
	s := newSheet(o.Width)
	s.fill(p, o)
	return s.String()
}

// fill adds the rows of a card.
func (s *sheet) fill(p connectors.Prompt, o Options) {
	s.head(p, o)
	s.context(p.Request, o)
	s.terms(p.Request, o)
}

// head adds the code, and who wants what.
func (s *sheet) head(p connectors.Prompt, o Options) {
	s.in = inRule
	s.rule(Visible(s.name(o.Heading)), Visible(s.name(p.Code)))
	s.in = inWho
	s.ask(p.Request, o)
}

// context adds where, with what, and what the agent says about it.
func (s *sheet) context(r permissions.Request, o Options) {
	s.in = inPlace
	for _, f := range []struct{ label, text string }{{"on host", r.Host}, {"in folder", r.Cwd}} {
		if f.text != "" {
			s.fact(f.label, Visible(f.text))
		}
	}
	s.in = inNeeds
	if r.Kind != permissions.KindPermission && len(r.Missing()) > 0 {
		s.marked("it needs", Action, tags(r.Missing()))
	}
	s.in = inEnvironment
	s.environment(r)
	s.in = inReason
	s.marked("it says", Words, words(r.Reason, o.source(prose)))
	s.in = inMessage
	if r.Kind == permissions.KindPermission || r.Kind == permissions.KindTool {
		s.marked("message", Words, words(r.Message, o.source(prose)))
	}
	s.in = inDetails
	s.marked("details", Words, words(r.Details, o.source(prose)))
}

// ask adds who wants what.
func (s *sheet) ask(r permissions.Request, o Options) {
	all, verb, who := acts(r, o), " wants", s.who(r, o)
	first := all[0]
	switch {
	case r.Kind == permissions.KindClarification:
		s.row("⚠ AGENT CLARIFICATION NEEDED")
		verb = " asks:"
	case r.Kind == permissions.KindPause && r.Mode == permissions.ModeContinue:
		verb = " paused:"
	case r.Kind == permissions.KindPause:
		verb = " asks:"
	case len(r.Calls) > 0:
		s.row(fmt.Sprintf("%s wants %d calls", who, len(r.Calls)))
		s.in = inAction
		for _, a := range all {
			s.lead("  "+a.lead, a.gap, a.role, a.body)
		}
		return
	case s.short && first.brief != first.lead:
		s.cut = true
		verb += " " + first.brief
	case first.lead != "":
		verb += " " + first.lead
	}
	between := " "
	if first.role == Action {
		between = strings.Repeat(" ", max(s.column()-cells(who+verb), 3))
	}
	s.lead(who+verb, between, first.role, first.body)
	for _, a := range all[1:] {
		s.after(a.lead+a.gap, a.body[0], a.role)
	}
}

// environment adds the names of the variables that a call is made with, and the hash of their values.
func (s *sheet) environment(r permissions.Request) {
	if len(r.EnvNames) == 0 && r.EnvHash == "" {
		return
	}
	names := ""
	for _, name := range r.EnvNames {
		names += named(name) + " "
	}
	if names != "" {
		names += "· "
	}
	s.fact("environment", names+"values "+named(r.EnvHash))
}

// terms adds how the request is decided and until when.
func (s *sheet) terms(r permissions.Request, o Options) {
	s.in = inTerms
	s.facts("careful", careful(r))
	if r.HighRisk {
		s.fact("high risk", "it takes a second yes")
	}
	if r.Quorum > 1 {
		s.fact("it takes", fmt.Sprintf("%d people: %s", r.Quorum, s.votes(r, o)))
	}
	if !r.LeftAt.IsZero() {
		s.fact("nobody waits", "for it just now; an answer is kept for the agent")
	}
	when := deadline(r, o)
	if left := r.Deadline.Sub(o.Now); !o.Now.IsZero() && left > 0 {
		when += ", in " + about(left)
	}
	switch {
	case r.Kind == permissions.KindClarification:
		when += ", then the first is taken"
	case r.Mode == permissions.ModeContinue:
		when += ", then it continues"
	}
	s.fact("until", when+" · sha256 "+strings.TrimPrefix(r.Digest.Short(), "sha256:"))
}

// votes is who has allowed so far.
func (s *sheet) votes(r permissions.Request, o Options) string {
	if s.short {
		return brief(votes(r, o), 3*mostName)
	}
	return votes(r, o)
}

// deadline is until when r waits: a time of day, and the day where that might be another.
func deadline(r permissions.Request, o Options) string {
	at := r.Deadline.In(zone(o))
	if o.Now.IsZero() || r.Deadline.Sub(o.Now) > 12*time.Hour {
		return at.Format("2 Jan 15:04 MST")
	}
	return at.Format("15:04 MST")
}

func (s *sheet) rule(heading, code string) {
	if heading != "" {
		heading += " "
	}
	end := " ──"
	if code != "" {
		end = " " + code + end
	}
	most := ruled
	if s.width > 0 {
		most = min(most, s.width)
	}
	if utf8.RuneCountInString(heading+end) > most-2 { // the code stands whole
		s.row(strings.TrimSuffix(heading, " "))
		heading = ""
	}
	s.add(heading+strings.Repeat("─", max(most-utf8.RuneCountInString(heading+end), 2))+end, Ours, 0)
}

// who is the asking agent; a name that was only claimed is shown as a claim.
func (s *sheet) who(r permissions.Request, o Options) string {
	if o.Who != "" {
		return Visible(s.name(o.Who))
	}
	if r.Agent != "" {
		r.Agent = named(s.name(r.Agent))
	}
	r.Caller.Name = Visible(s.name(r.Caller.Name))
	return r.Who()
}

// name is somebody's name, shortened on a short card.
func (s *sheet) name(text string) string {
	if s.short {
		return brief(text, mostName)
	}
	return text
}

// source is what a text is, for [words].
func (o Options) source(src source) source {
	if o.Reveal {
		return opened
	}
	return src
}

func zone(o Options) *time.Location { return cmp.Or(o.Location, time.UTC) }

// span is a time that has passed, exact to the second below an hour: 4 s, 2 min 5 s, 1 h 3 min.
func span(d time.Duration) string {
	d = max(d.Round(time.Second), 0)
	switch h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60; {
	case h > 0 && m > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case h > 0:
		return fmt.Sprintf("%d h", h)
	case m > 0 && s > 0:
		return fmt.Sprintf("%d min %d s", m, s)
	case m > 0:
		return fmt.Sprintf("%d min", m)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

// about is a time to come, in whole minutes from two minutes on.
func about(d time.Duration) string {
	if d >= 2*time.Minute {
		d = d.Round(time.Minute)
	}
	return span(d)
}
