// Package card renders a request as the text that a person reads. It is pure.
//
// [Card] is everything that somebody approves: who asks, where, the exact action, what the agent says about it, the
// deadline, the code and the digest. [Fit] is the card for a channel with limits: complete if it fits, otherwise as a file
// that is sent first and a text with our [Summary]. [Wants] is the action alone and [Settled] one line about a request's
// state. [Reminder], [Ended] and [Revoked] are the rows of notices.
//
// Two rules hold everywhere here. Whatever an agent, a caller or a person wrote goes through [Visible] (or [Lines], which
// is Visible line by line, or [Prose] if it is only read), so nothing on a card can be hidden, reordered or erased, and
// different words never look the same. And an agent's words never start a row without a sign, even where a long line is
// wrapped, so they cannot pass for a card, a button or a person's decision. The card warns of words that mix letters of
// different scripts or look like Latin ones.
//
// Only secrets are left out of what an agent wrote: tokens of a known shape, in a word without anything that a shell would
// act on, and in what is run only where the context says that a secret follows. Their length and the start of their hash
// are shown instead. [Options.Reveal] shows the secrets themselves.
package card

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	risk "github.com/daycared/daycared/permissions/acts"
)

// ruled is the width of the rule above a card in characters.
const ruled = 55

// Options are what a card depends on besides its request. The zero Options are valid.
type Options struct {
	Heading  string         // at the left of the rule, as in 1/5
	Who      string         // replaces the request's words for the asking agent
	Self     string         // the person whose decisions read "you"
	Now      time.Time      // zero: nothing is said relative to it
	Location *time.Location // for times of day; nil: UTC
	Width    int            // cells per row, at least 24; 0: rows are not wrapped
	Notes    []string       // added to the line about the outcome
	Reveal   bool           // show secrets
}

// Card is everything that p's person decides about, in rows separated by newlines. Nothing is shortened.
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

// context adds where (a claim unless the agent is ours), with what, and what the agent says about it.
func (s *sheet) context(r permissions.Request, o Options) {
	s.in = inPlace
	host, folder := "claimed host", "claimed folder"
	if r.Caller.Ours() {
		host, folder = "on host", "in folder"
	}
	for _, f := range []struct{ label, text string }{{host, r.Host}, {folder, r.Cwd}} {
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
		between = strings.Repeat(" ", max(s.column()-Cells(who+verb), 3))
	}
	s.lead(who+verb, between, first.role, first.body)
	for _, a := range all[1:] {
		s.after(a.lead+a.gap, a.body[0], a.role)
	}
}

// environment adds the names of a call's variables and the hash of their values.
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

// terms adds how and until when the request is decided.
func (s *sheet) terms(r permissions.Request, o Options) {
	s.in = inTerms
	s.facts("careful", warnings(r))
	if r.HighRisk {
		s.fact("high risk", strings.Join(append(risk.RisksOf(r), "it takes a second yes"), "; "))
	}
	if r.Beyond > 0 {
		s.fact("asked since", "it is beyond the "+plural(r.Beyond, "call")+" a minute that may run unasked")
	}
	if r.Ends() {
		s.fact("a denial", "of one call ends the run; then none of them is run")
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
	case r.DeniesSilence():
		when += ", then it is not answered"
	case r.Kind == permissions.KindClarification:
		when += ", then the first is taken"
	case r.Mode == permissions.ModeContinue:
		when += ", then it continues"
	}
	s.fact("until", when+" · sha256 "+strings.TrimPrefix(r.Digest.Short(), "sha256:"))
}

// votes lists who has approved so far.
func (s *sheet) votes(r permissions.Request, o Options) string {
	if s.short {
		return brief(votes(r, o), 3*mostName)
	}
	return votes(r, o)
}

// Others says why To is asked as well, or that others are, for a pending request; empty if there is nothing to say.
func Others(p connectors.Prompt) string {
	var told []string
	say := func(form string, a connectors.Asked) {
		told = append(told, fmt.Sprintf(form, Visible(a.Name), a.At.In(zone(Options{Location: p.To.Location})).Format("15:04")))
	}
	for _, a := range p.Before {
		say("%s was asked at %s and has not answered.", a)
	}
	for _, a := range p.Besides {
		say("%s is asked, too, since %s.", a)
	}
	return strings.Join(told, " ")
}

// deadline is r's deadline as a time of day, with the day and the year if they could be different ones.
func deadline(r permissions.Request, o Options) string {
	at := r.Deadline.In(zone(o))
	if created := r.CreatedAt.In(zone(o)); !r.CreatedAt.IsZero() && at.Year() != created.Year() {
		return at.Format("2 Jan 2006 15:04 MST")
	}
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
	if utf8.RuneCountInString(heading+end) > most-2 { // the code is never cut
		s.row(strings.TrimSuffix(heading, " "))
		heading = ""
	}
	s.add(heading+strings.Repeat("─", max(most-utf8.RuneCountInString(heading+end), 2))+end, Ours, 0)
}

// who is the asking agent; a claimed name is shown as a claim.
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

// name is a person's or agent's name, shortened on a short card.
func (s *sheet) name(text string) string {
	if s.short {
		return brief(text, mostName)
	}
	return text
}

// Masks reports whether a card of r masks a secret, which [Options.Reveal] shows.
func Masks(r permissions.Request) bool {
	p := connectors.Prompt{Request: r}
	return Card(p, Options{}) != Card(p, Options{Reveal: true})
}

// source is the kind of a text, for [words].
func (o Options) source(src source) source {
	if o.Reveal {
		return src | opened
	}
	return src
}

func zone(o Options) *time.Location { return cmp.Or(o.Location, time.UTC) }

// span is an elapsed time, to the second below an hour: 4 s, 2 min 5 s, 1 h 3 min.
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

// about is a future time span, in whole minutes from two minutes on.
func about(d time.Duration) string {
	if d >= 2*time.Minute {
		d = d.Round(time.Minute)
	}
	return span(d)
}

// Message is a card for a channel with limits. The Document, if any, is sent first and has the complete card; nothing may
// be approved before it was delivered.
type Message struct {
	Document *Document
	Text     string
	Marks    []Mark // of Text
	TooBig   bool   // the channel cannot show everything: it may be denied there, never approved
}

// Document is a card as a plain text file.
type Document struct {
	Name   string
	Body   []byte
	Digest permissions.Digest // of Body
}

// Fit renders p's card for a channel with limits. If the card does not fit, the complete card becomes a document. The text
// then leaves out what did not fit and has our summary, the document's name, size and digest, and always the kind of the
// request, who asks and the terms. The exact action is left out last, and the text says so. The text is always within the
// limits; below about a thousand characters it may only say that the request is too big.
func Fit(p connectors.Prompt, o Options, l Limits) Message {
	whole := newSheet(o.Width)
	whole.fill(p, o)
	m := Message{Text: whole.String(), Marks: marks(whole.rows)}
	if l.holds(m.Text) && (l.Rows == 0 || len(whole.of(inDetails)) <= l.Rows) {
		return m
	}
	d := document(p.Code, m.Text)
	m = Message{Document: &d}
	if l.Document != 0 && len(d.Body) > l.Document {
		m = Message{TooBig: true}
	}
	short := &sheet{width: whole.width, short: true}
	short.head(p, o)
	for in := inPlace; in <= inDetails; in++ {
		short.rows = append(short.rows, whole.of(in)...)
	}
	short.terms(p.Request, o)
	short.note(d, m.TooBig, Summary(p.Request))
	rows, ok := l.choose(short)
	if !ok {
		m.TooBig = true
		rows = []row{{text: l.cut("A request is too big to be shown here; it cannot be allowed here. Its code: " + Visible(short.name(p.Code)))}}
	}
	m.Text, m.Marks = text(rows), marks(rows)
	return m
}

func document(code, text string) Document {
	name := "daycared"
	if code != "" && !strings.ContainsFunc(code, func(c rune) bool { return c >= 0x80 || !unicode.In(c, unicode.L, unicode.N) }) {
		name += "-" + code
	}
	body := []byte(text + "\n")
	return Document{Name: name + ".txt", Body: body, Digest: sha256.Sum256(body)}
}

// note adds our summary and where the complete card is.
func (s *sheet) note(d Document, big bool, summary []string) {
	s.in = inSummary
	s.facts("summary", summary)
	s.in = inNotes
	if big {
		s.fact("too big", fmt.Sprintf("to be shown here whole (%d bytes): it cannot be allowed here", len(d.Body)))
		return
	}
	s.fact("all of it", fmt.Sprintf("is in the file above: %s, %d bytes, sha256 %s",
		d.Name, len(d.Body), strings.TrimPrefix(d.Digest.Short(), "sha256:")))
}

// mostWhole is how many requests a [Whole] remembers.
const mostWhole = 10_000

// Whole caches whether a channel can show a request completely, because that takes rendering its card. Its zero value is
// ready. It is safe for concurrent use.
type Whole struct {
	mu   sync.Mutex
	fits map[permissions.ID]bool
}

// Note records whether a request fits.
func (w *Whole) Note(id permissions.ID, fits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fits == nil || len(w.fits) >= mostWhole {
		w.fits = map[permissions.ID]bool{}
	}
	w.fits[id] = fits
}

// Fits reports whether p fits, from the cache or by calling tooBig.
func (w *Whole) Fits(p connectors.Prompt, tooBig func(connectors.Prompt) bool) bool {
	w.mu.Lock()
	fits, known := w.fits[p.Request.ID]
	w.mu.Unlock()
	if !known {
		fits = !tooBig(p)
		w.Note(p.Request.ID, fits)
	}
	return fits
}
