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
	Width    int            // cells that a row may have, at least 40; 0: rows are not wrapped
	Notes    []string       // more words on a settled line
}

// Card is the whole of what p's person decides about, in rows separated by newlines. Nothing is shortened.
func Card(p connectors.Prompt, o Options) string {
	r, s := p.Request, newSheet(o.Width)
	s.rule(Visible(o.Heading), Visible(p.Code))
	s.ask(r, who(r, o))
	for _, f := range []struct{ label, text string }{{"on host", r.Host}, {"in folder", r.Cwd}} {
		if f.text != "" {
			s.fact(f.label, Visible(f.text))
		}
	}
	if r.Kind != permissions.KindPermission && len(r.Missing()) > 0 {
		s.marked("it needs", markAction, tags(r.Missing()))
	}
	if len(r.EnvNames) > 0 {
		names := make([]string, len(r.EnvNames))
		for i, name := range r.EnvNames {
			names[i] = named(name)
		}
		s.fact("environment", strings.Join(names, " ")+" · values "+named(r.EnvHash))
	}
	s.marked("it says", markWords, Lines(r.Reason))
	if r.Kind == permissions.KindPermission || r.Kind == permissions.KindTool {
		s.marked("message", markWords, Lines(r.Message))
	}
	s.marked("details", markWords, Lines(r.Details))
	s.terms(r, o)
	return s.String()
}

// ask adds who wants what.
func (s *sheet) ask(r permissions.Request, who string) {
	all, verb := acts(r), " wants"
	first := all[0]
	switch {
	case r.Kind == permissions.KindClarification:
		s.rows = append(s.rows, "⚠ AGENT CLARIFICATION NEEDED")
		verb = " asks:"
	case r.Kind == permissions.KindPause && r.Mode == permissions.ModeContinue:
		verb = " paused:"
	case r.Kind == permissions.KindPause:
		verb = " asks:"
	case len(r.Calls) > 0:
		s.row(fmt.Sprintf("%s wants %d calls", who, len(r.Calls)))
		for _, a := range all {
			s.lead("  "+a.lead, "   ", a.mark, a.body)
		}
		return
	case first.lead != "":
		verb += " " + first.lead
	}
	between := " "
	if first.mark == markAction {
		between = strings.Repeat(" ", max(column-cells(who+verb), 3))
	}
	s.lead(who+verb, between, first.mark, first.body)
	for _, a := range all[1:] {
		s.row(a.body[0])
	}
}

// terms adds how the request is decided and until when.
func (s *sheet) terms(r permissions.Request, o Options) {
	if r.HighRisk {
		s.fact("high risk", "it takes a second yes")
	}
	if r.Quorum > 1 {
		s.fact("it takes", fmt.Sprintf("%d people: %s", r.Quorum, votes(r, o)))
	}
	if !r.LeftAt.IsZero() {
		s.fact("nobody waits", "for it just now; an answer is kept for the agent")
	}
	when := r.Deadline.In(zone(o)).Format("15:04 MST")
	left := r.Deadline.Sub(o.Now)
	if o.Now.IsZero() || left > 12*time.Hour {
		when = r.Deadline.In(zone(o)).Format("2 Jan 15:04 MST")
	}
	if !o.Now.IsZero() && left > 0 {
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
	s.rows = append(s.rows, heading+strings.Repeat("─", max(most-utf8.RuneCountInString(heading+end), 2))+end)
}

// who is the asking agent; a name that was only claimed is shown as a claim.
func who(r permissions.Request, o Options) string {
	if o.Who != "" {
		return Visible(o.Who)
	}
	if r.Agent != "" {
		r.Agent = named(r.Agent)
	}
	r.Caller.Name = Visible(r.Caller.Name)
	return r.Who()
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
