// Package card renders a request as the text that a person reads. It is pure.
//
// [Card] is everything that somebody approves: who asks, where, the exact action, what the agent says about it, the
// deadline, the code and the digest. [Fit] is the card for a channel with limits: complete if it fits, otherwise as a file
// that is sent first and a text with our [Summary]. [Wants] is the action alone and [Settled] one line about a request's
// state. [Notice] has the rows of a notice.
//
// Line 1 says who wants what. Below it are the exact action, what it means in our words, what the agent says, and last where
// it runs, the code and the deadline.
//
// Two rules hold everywhere here. Whatever an agent, a caller or a person wrote goes through [Visible] (or [Lines], which
// is Visible line by line, or [Prose] if it is only read), so nothing on a card can be hidden, reordered or erased, and
// different words never look the same. And every row that an agent wrote is in a [Part] of the role [Action] or [Words],
// which a channel shows as a block of code or a quote, or starts with a sign in plain text, even where a long line is
// wrapped. So it cannot pass for a card, a button or a person's decision. The card warns of words that mix letters of
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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	risk "github.com/daycared/daycared/permissions/acts"
	"github.com/daycared/daycared/permissions/i18n"
)

// Options are what a card depends on besides its request. The zero Options are valid.
type Options struct {
	Heading       string         // before the title, as in 1/5
	AgentLabel    string         // replaces the request's words for the asking agent
	Self          string         // the person whose decisions read "you"
	Now           time.Time      // zero: nothing is said relative to it
	Location      *time.Location // for times of day; nil: UTC
	Zone          bool           // name the deadline's zone, for readers in several
	Width         int            // cells per row, at least 24; 0: rows are not wrapped
	Notes         []string       // added to the line about the outcome
	Reveal        bool           // show secrets
	i18n.Language                // of our own words
	flat          bool           // a command stays in its own rows
	few           bool           // of edits only a few rows around each change

	glance bool // of an edit only the first rows are needed

	drawn *drawn // of the request; nil: it is laid out once
}

// drawn is what the layouts of one request share. Those of a card that is cut are two, and its document.
type drawn struct {
	warnings func() []string
	edits    map[sight]edit
}

// sight is a call by number, as a card shows it: with only a few rows around each change or whole.
type sight struct {
	call int
	few  bool
}

// Card is everything that p's person decides about, in rows separated by newlines. Nothing is shortened.
func Card(p connectors.Prompt, o Options) string {
	s := newSheet(o)
	s.fill(p, o)
	return s.String()
}

// fill adds the rows of a card.
func (s *sheet) fill(p connectors.Prompt, o Options) {
	r := p.Request
	s.addContext(r, s.addAsk(r, o), o)
	if p.Hasty {
		s.row(o.Text("You approved five within 20 s: read this one. It can be allowed 2 s after it was shown."))
	}
	if s.addTerms(r, o); r.OnlyTitle && r.State == permissions.Pending {
		s.row(o.Text("This chat shows no more than the title. All of it is in daycared inbox on the machine, where it can be allowed, too."))
	}
	if r.Kind != permissions.KindClarification { // its answers permit nothing
		s.addRecent(p.Request.Kind, p.Recent, o)
	}
	s.addPlace(r)
	s.in = inCode
	s.row(o.Sprintf(LastRow, codeSpan(Visible(s.brief(p.Code))), Until(r, o)))
}

// LastRow is the last row of a card: the request's code and its deadline.
const LastRow i18n.Phrase = "%s · until %s"

// Until is r's deadline as a time of day in the person's zone, with the day and the year if they differ from those of its
// creation.
func Until(r permissions.Request, o Options) string {
	at, created := r.Deadline.In(zone(o)), r.CreatedAt.In(zone(o))
	layout := i18n.Phrase("15:04")
	switch {
	case !r.CreatedAt.IsZero() && at.Year() != created.Year():
		layout = "2 Jan 2006 15:04"
	case r.CreatedAt.IsZero() || at.YearDay() != created.YearDay():
		layout = "2 Jan 15:04"
	}
	text := o.Time(at, layout)
	if o.Location == nil || o.Zone {
		text += at.Format(" MST")
	}
	return text
}

// addAsk adds who wants what, and returns it.
func (s *sheet) addAsk(r permissions.Request, o Options) (all []act) {
	o.few = s.short
	all = acts(r, o)
	s.few = s.few || slices.ContainsFunc(all, func(a act) bool { return a.cut })
	s.in = inTitle
	s.add(s.title(r, all, o), Title, "")
	s.in = inAction
	for _, a := range all {
		if len(r.Calls) > 0 {
			s.row(a.number + capital(strings.TrimPrefix(s.verb(a), "to ")))
		} else if a.label != "" {
			s.row(a.label)
		}
		s.block(a.role, a.lang, a.body)
		if len(a.rest) > 0 {
			s.row(o.Text("The call says besides:"))
			s.block(a.role, "", a.rest)
		}
		for _, row := range a.notes {
			s.row(row)
		}
	}
	return all
}

// title is who wants what, on one line.
func (s *sheet) title(r permissions.Request, all []act, o Options) string {
	title := s.who(r, o)
	switch {
	case r.Kind == permissions.KindPause && r.Mode == permissions.ModeContinue:
		title = o.Sprintf("%s paused", title)
	case r.Kind == permissions.KindPause, r.Kind == permissions.KindClarification:
		title = o.Sprintf("%s asks", title)
	case r.Plans():
		title = o.Sprintf("%s has a plan", title)
	case len(r.Calls) > 0:
		title = o.Sprintf("%s wants %s", title, o.Plural(len(r.Calls), "%d thing|%d things"))
	default:
		title = o.Sprintf("%s wants %s", title, s.verb(all[0]))
	}
	if r.HighRisk {
		title = o.Sprintf("⚠ High risk: %s", title)
	}
	if o.Heading != "" {
		title = Visible(s.brief(o.Heading)) + " · " + title
	}
	return title
}

// verb is what an act wants, in our words.
func (s *sheet) verb(a act) string {
	if s.short && a.brief != "" {
		s.cut = s.cut || a.brief != a.verb
		return a.brief
	}
	return a.verb
}

// addContext adds with what a call runs, and what the agent says about it.
func (s *sheet) addContext(r permissions.Request, all []act, o Options) {
	s.in = inNeeds
	if r.Kind != permissions.KindPermission && len(r.Missing()) > 0 {
		s.row(o.Text("It also needs:"))
		s.block(Action, "", tags(r.Missing(), o))
	}
	s.addFiles(r, o)
	s.in = inEnvironment
	s.addEnvironment(r)
	s.in = inWarnings
	risks := risk.RisksOf(r)
	for _, a := range all {
		for _, row := range a.does {
			s.row(a.number + row)
		}
		risks = slices.DeleteFunc(risks, func(one risk.Risk) bool { return slices.Contains(a.risks, one) })
	}
	if r.HighRisk && len(risks) > 0 {
		var commands []string
		for _, a := range all {
			if a.runs {
				commands = append(commands, a.body...)
			}
		}
		s.row(capital(strings.Join(whyHighRisk(risks, strings.Join(commands, "\n"), false, o), "; ")) + ".")
	}
	warns := func() []string { return warnings(r, o.Language) }
	if o.drawn != nil {
		warns = o.drawn.warnings
	}
	for _, warning := range warns() {
		s.row("⚠ " + warning)
	}
	s.in = inReason
	if len(r.Calls) == 0 && all[0].described {
		s.row(o.Text("The agent describes it as:"))
	}
	s.addWords("It says:", r.Reason, o)
	s.in = inMessage
	if r.Kind == permissions.KindPermission || r.Kind == permissions.KindTool {
		s.addWords("Message:", r.Message, o)
	}
	s.in = inDetails
	label, plan := i18n.Phrase("Details:"), i18n.Phrase("The plan:")
	if text, _ := r.Plan(); text != "" {
		s.addWords(plan, text, o)
	} else if r.Plans() {
		label = plan
	}
	s.addWords(label, r.Details, o)
}

// addFiles adds what is known of the files of a call beside what it says.
func (s *sheet) addFiles(r permissions.Request, o Options) {
	leads := r.Symlinks()
	for _, name := range slices.Sorted(maps.Keys(leads)) {
		says := name
		if r.Cwd != "" {
			says = strings.TrimPrefix(name, r.Cwd+"/")
		}
		s.row(o.Sprintf("As the hook says, %s leads to %s.", codeSpan(quoteName(says)), codeSpan(quoteName(leads[name]))))
	}
	if r.LeadsUnknown() {
		s.row(o.Text("The hook could not look at every file that it names: one may lead elsewhere."))
	}
	if slices.ContainsFunc(r.ToolNames(), permissions.FollowsFiles) {
		s.row(o.Text("It does what its agent's files say: of commands in them nobody is asked."))
	}
	if slices.ContainsFunc(r.ToolCalls(), followsUnknown) {
		s.row(o.Text("The hook found no file of that name: what it does is not known."))
	}
}

// followsUnknown reports whether a hook did not find the file that a call follows.
func followsUnknown(c permissions.Call) bool {
	all, _ := membersOf(c.Input)
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(m field) bool { return m.name == `"`+name+`": ` })
	}
	return has(risk.FileCommands) && !has(risk.FollowedFiles)
}

// addWords adds an agent's words. The reason needs no label, except below other words.
func (s *sheet) addWords(label i18n.Phrase, text string, o Options) {
	if text == "" {
		return
	}
	if strings.Trim(text, "\n") == "" {
		s.row(o.Plural(len(text)+1, "%s %d empty row.|%s %d empty rows.", o.Text(label), len(text)+1))
		return
	}
	if s.in != inReason || slices.ContainsFunc(s.rows, func(r row) bool { return r.role == Words }) {
		s.row(o.Text(label))
	}
	s.block(Words, "", words(text, o.source(prose)))
}

// addEnvironment adds the names of a call's variables and the hash of their values.
func (s *sheet) addEnvironment(r permissions.Request) {
	if len(r.EnvNames) == 0 && r.EnvHash == "" {
		return
	}
	names := ""
	for _, name := range r.EnvNames {
		names += codeSpan(quoteName(name)) + " "
	}
	if names != "" {
		names += "· "
	}
	s.row(s.Sprintf("Environment: %svalues %s", names, codeSpan(quoteName(r.EnvHash))))
}

// addTerms adds how the request is decided.
func (s *sheet) addTerms(r permissions.Request, o Options) {
	s.in = inTerms
	if r.ExceededRate > 0 {
		s.row(o.Plural(r.ExceededRate, "Asked because it is beyond the %d call a minute that may run unasked.|"+
			"Asked because it is beyond the %d calls a minute that may run unasked."))
	}
	if n := r.PromptsRefused(); n > 0 {
		s.row(o.Plural(n, "%d request of this agent was denied or ignored within ten minutes, so this card is silent and takes a second yes.|"+
			"%d requests of this agent were denied or ignored within ten minutes, so this card is silent and takes a second yes."))
	}
	for _, by := range r.Ruled {
		if by.PromptsRefused == 0 && by.Effect == permissions.RuleAsks {
			why := ""
			if by.Why != "" {
				why = ", " + quoted(by.Why)
			}
			s.row(o.Sprintf("Always asked: rule %d%s.", by.Rule, why))
		}
	}
	if r.DenialEndsRun() {
		s.row(o.Text("Denying one call ends the run; then none of them is run."))
	}
	if r.Quorum > 1 {
		s.row(o.Sprintf("It takes %d people: %s.", r.Quorum, s.votes(r, o)))
	}
	if !r.LeftAt.IsZero() {
		s.row(o.Text("Nobody waits for it just now; an answer is kept for the agent."))
	}
	switch {
	case r.DeniedIfUnanswered():
		s.row(o.Sprintf("If nobody answers by %s, it is not answered.", Until(r, o)))
	case r.Kind == permissions.KindClarification && len(r.Choices) > 0:
		s.row(o.Sprintf("If nobody answers by %s: %s", Until(r, o), codeSpan(quote(line(brief(r.Choices[0], maxName), o.source(prose))))))
	case r.Mode == permissions.ModeContinue:
		s.row(o.Sprintf("If nobody answers by %s, it continues.", Until(r, o)))
	}
}

// maxDone limits what an agent did before on a card, in characters.
const maxDone = 28

// addRecent adds what the agent did before, in one row.
func (s *sheet) addRecent(kind permissions.Kind, did permissions.RecentActivity, o Options) {
	s.in = inRecent
	var facts []string
	if did.Allowed+did.Denied > 0 {
		minutes := int(permissions.RecentSpan.Minutes())
		facts = append(facts, o.Sprintf("last %d min: %d allowed, %d denied", minutes, did.Allowed, did.Denied))
		var last []string
		for _, r := range did.Last {
			last = append(last, outcomeSign(r)+codeSpan(brief(doing(r, o), maxDone)))
		}
		if len(last) > 0 {
			facts[0] += ": " + strings.Join(last, ", ")
		}
	}
	if did.AllowedBefore > 0 {
		days := int(permissions.AllowedSpan.Hours() / 24)
		same := i18n.Phrase("the same was allowed %d time in %d days, last by %s|the same was allowed %d times in %d days, last by %s")
		if kind == permissions.KindTool { // in another folder, or where a name has become a link, they may do something else
			same = "the same words were allowed %d time in %d days, last by %s|the same words were allowed %d times in %d days, last by %s"
		}
		facts = append(facts, o.Plural(did.AllowedBefore, same, did.AllowedBefore, days, person(did.AllowedBy, o)))
	}
	if len(facts) > 0 {
		s.row(capital(strings.Join(facts, " · ")))
	}
	facts = nil
	for _, told := range []struct {
		form i18n.Phrase
		text string
	}{{"its session is %s", did.Title}, {"it was last told %s", did.Prompt}} {
		if text := strings.Join(strings.Fields(told.text), " "); text != "" {
			facts = append(facts, o.Sprintf(told.form, codeSpan(quote(line(brief(text, permissions.MaxPrompt), o.source(prose))))))
		}
	}
	if len(facts) > 0 {
		s.row(o.Sprintf("By the agent's own word, %s.", strings.Join(facts, " · ")))
	}
}

// doing is in a few words what r asked for, or its first call: a command as it is.
func doing(r permissions.Request, o Options) string {
	r.Calls = r.Calls[:min(len(r.Calls), 1)]
	a := acts(r, Options{flat: true, glance: true, Language: o.Language})[0]
	what, body := strings.TrimPrefix(strings.TrimSpace(Plain(a.verb)), "to "), slices.Concat(a.body, a.rest)
	switch {
	case len(body) > 0 && (a.runs || what == ""):
		return body[0]
	case len(body) == 1 && a.lang == "":
		return what + ": " + body[0]
	}
	return what
}

func outcomeSign(r permissions.Request) string {
	if r.State == permissions.Denied {
		return "⛔ "
	}
	return ""
}

// addPlace adds where the call runs (a claim unless the agent is ours), by which tool, and who vouches for the name.
func (s *sheet) addPlace(r permissions.Request) {
	s.in = inPlace
	var facts []string
	for _, text := range []string{r.Host, r.Cwd} {
		if text != "" {
			facts = append(facts, codeSpan(quoteName(text)))
		}
	}
	if len(facts) > 0 && r.Host == "" {
		facts[0] = s.Sprintf("in %s", facts[0])
	}
	switch {
	case r.Claimed && r.Agent != "":
		facts = append(facts, s.Sprintf("unproven name, from %s", s.caller(r)))
	case r.Caller.IsOurs():
		facts = append(facts, s.Text("an agent of daycared"))
	case r.Agent != "":
		facts = append(facts, s.Text("proven name"))
	}
	if len(facts) > 0 {
		s.row(strings.Join(facts, " · "))
	}
}

func (s *sheet) votes(r permissions.Request, o Options) string {
	if s.short {
		return brief(votes(r, o), 3*maxName)
	}
	return votes(r, o)
}

// Others says why To is asked as well, or that others are, for a pending request; empty if there is nothing to say.
func Others(p connectors.Prompt, in i18n.Language) string {
	var told []string
	say := func(form i18n.Phrase, a connectors.Asked) {
		told = append(told, in.Sprintf(form, Visible(a.Name), a.At.In(zone(Options{Location: p.To.Location})).Format("15:04")))
	}
	for _, a := range p.Before {
		say("%s was asked at %s and has not answered.", a)
	}
	for _, a := range p.Besides {
		say("%s is asked, too, since %s.", a)
	}
	told = append(told, Away(p)...)
	return strings.Join(told, " ")
}

// Away says which recipients of a pending request are away.
func Away(p connectors.Prompt) (told []string) {
	for _, a := range p.Away {
		in := p.To.Language
		until := AwayUntil(a.Until, p.To.Location, in)
		asked := p.Request.CreatedAt.In(zone(Options{Location: p.To.Location}))
		if back := a.Until.In(asked.Location()); back.Year() == asked.Year() && back.YearDay() == asked.YearDay() {
			until = in.Time(back, "15:04") // of the day of the card
		}
		text := in.Sprintf("%s is away until %s", Visible(a.Person), until)
		if a.Person == p.To.Name && p.Group == "" {
			text = in.Sprintf("You are away until %s", until)
		}
		if p.Needed {
			text = in.Sprintf("%s, but too few others may decide this", text)
		}
		told = append(told, text+".")
	}
	return told
}

// AwayUntil formats the time when somebody is back: the day, and the time unless the day begins then. A nil location is UTC.
func AwayUntil(t time.Time, location *time.Location, in i18n.Language) string {
	t = t.In(zone(Options{Location: location}))
	if t.Hour() == 0 && t.Minute() == 0 {
		return in.Time(t, "Mon 2 Jan")
	}
	return in.Time(t, "Mon 2 Jan 15:04")
}

// capital is text with a capital at its start.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// who is the asking agent. Whether its name is proven is said in [sheet.addPlace].
func (s *sheet) who(r permissions.Request, o Options) string {
	switch {
	case o.AgentLabel != "":
		return Visible(s.brief(o.AgentLabel))
	case r.Agent != "":
		return inTitleName(s.brief(r.Agent))
	}
	return s.caller(r)
}

// caller is who calls, as it is proven.
func (s *sheet) caller(r permissions.Request) string {
	kind, name, _ := strings.Cut(s.brief(r.Caller.Name), ":")
	return strings.TrimSpace(Visible(kind) + " " + Visible(name))
}

// brief is a person's or agent's name, shortened on a short card.
func (s *sheet) brief(text string) string {
	if s.short {
		return brief(text, maxName)
	}
	return text
}

// HasSecret reports whether a card of r masks a secret, which [Options.Reveal] shows.
func HasSecret(r permissions.Request) bool {
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

// Message is a card for a channel with limits. The Document, if any, is sent first and has the complete card; nothing may
// be approved before it was delivered.
type Message struct {
	Document *Document
	Text     string // in plain text, with a sign before each row of somebody else's
	Parts    []Part // the same, for channels that have blocks and quotes
	TooBig   bool   // the channel cannot show everything: it may be denied there, never approved
	Unseen   bool   // nothing of the action is in the text
}

// Document is a card as a plain text file, or the diff of an edit where the text has the rest of the card.
type Document struct {
	Name    string
	Type    string // a media type
	Body    []byte
	Digest  permissions.Digest // of Body
	Caption string             // says what it is, with the digest of what the request shows
}

// Fit renders p's card for a channel with limits. If the card does not fit, the complete card becomes a document. The text
// then leaves out what did not fit and has our summary, the document's name, size and digest, and always the kind of the
// request, who asks and the terms. The exact action is left out last, and the text says so. The text is always within the
// limits; below about a thousand characters it may only say that the request is too big. Of an edit only the diff becomes a document if
// everything else fits.
func Fit(p connectors.Prompt, o Options, l Limits) Message {
	o.drawn = &drawn{sync.OnceValue(func() []string { return warnings(p.Request, o.Language) }), map[sight]edit{}}
	whole := newSheet(o)
	whole.fill(p, o)
	m, fits := l.whole(whole)
	if !fits && len(whole.of(inRecent)) > 0 { // not worth a file
		p.Recent = permissions.RecentActivity{}
		whole.rows = slices.DeleteFunc(whole.rows, func(r row) bool { return r.in == inRecent })
		m, fits = l.whole(whole)
	}
	if fits {
		return m
	}
	short := &sheet{Language: o.Language, width: whole.width, short: true}
	short.fill(p, o)
	if d, ok := diffOf(p, o); ok && (l.Document == 0 || len(d.Body) <= l.Document) {
		if c := l.choose(short.withNote(d, false, nil)); c.ok && c.rest {
			return Message{Document: &d, Text: text(c.rows), Parts: parts(c.rows), Unseen: !c.seen}
		}
	}
	d := document(p, "", "text/plain", m.Text+"\n", o.Text("the whole request"))
	m = Message{Document: &d}
	if l.Document != 0 && len(d.Body) > l.Document {
		m = Message{TooBig: true}
	}
	c := l.choose(short.withNote(d, m.TooBig, summary(p.Request, o.Language)))
	if !c.ok {
		m.TooBig = true
		told := o.Sprintf("A request is too big to be shown here; it cannot be allowed here. Its code: %s", Visible(short.brief(p.Code)))
		c.rows = []row{{text: l.cut(told)}}
	}
	m.Text, m.Parts = text(c.rows), parts(c.rows)
	m.Unseen = !c.seen || slices.ContainsFunc(p.Request.ToolCalls(), p.Request.Condensed)
	return m
}

// whole is a message of all rows of s, and whether it is within the limits.
func (l Limits) whole(s *sheet) (m Message, fits bool) {
	m = Message{Text: s.String(), Parts: parts(s.rows)}
	return m, l.holds(m.Text) && (l.Rows == 0 || len(s.of(inDetails)) <= l.Rows+1) &&
		(l.Changes == 0 || changes(s.of(inAction)) <= l.Changes)
}

// diffOf is the diff of an edit, or of all edits of a step, as a document.
func diffOf(p connectors.Prompt, o Options) (d Document, ok bool) {
	r := p.Request
	if r.Kind != permissions.KindTool {
		return d, false
	}
	var name, caption string
	var all []string
	for _, c := range r.ToolCalls() {
		e, is := editOf(r, c, false, o)
		if !is {
			return d, false
		}
		var text string
		if name, text, caption, ok = e.document(); !ok {
			return d, false
		}
		all = append(all, text)
	}
	if len(all) > 1 {
		name, caption = "", o.Sprintf("the %d whole edits", len(all))
	}
	return document(p, name, "text/x-diff", strings.Join(all, "\n"), caption), ok
}

// document is a file with a name, or with one after the request's code.
func document(p connectors.Prompt, name, mediaType, text, caption string) Document {
	if name == "" {
		name = "daycared"
		if p.Code != "" && !strings.ContainsFunc(p.Code, func(c rune) bool { return c >= 0x80 || !unicode.In(c, unicode.L, unicode.N) }) {
			name += "-" + p.Code
		}
		name += map[string]string{"text/plain": ".txt", "text/x-diff": ".diff"}[mediaType]
	}
	body := []byte(text)
	return Document{
		Name: name, Type: mediaType, Body: body, Digest: sha256.Sum256(body),
		Caption: Visible(p.Code) + " · " + caption + " · " + p.Request.ShownDigest().String(),
	}
}

// withNote is s with our summary and where the complete card is.
func (s *sheet) withNote(d Document, big bool, summary []string) *sheet {
	with := *s
	s = &with
	s.rows, s.in = slices.Clip(s.rows), inSummary
	for _, row := range summary {
		s.row(row)
	}
	s.in = inNotes
	if big {
		s.row(s.Sprintf("Too big to be shown here whole (%d bytes): it cannot be allowed here.", len(d.Body)))
		return s
	}
	s.row(s.Sprintf("All of it is in the file above: %s", codeSpan(d.Name)))
	return s
}

// maxWhole is how many requests a [FitCache] remembers.
const maxWhole = 10_000

// FitCache caches whether a channel can show a request completely, because that takes rendering its card. Its zero value is
// ready. It is safe for concurrent use.
type FitCache struct {
	mu   sync.Mutex
	fits map[permissions.ID]bool
}

// Note records whether a request fits.
func (w *FitCache) Note(id permissions.ID, fits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fits == nil || len(w.fits) >= maxWhole {
		w.fits = map[permissions.ID]bool{}
	}
	w.fits[id] = fits
}

// Fits reports whether p fits, from the cache or by calling tooBig.
func (w *FitCache) Fits(p connectors.Prompt, tooBig func(connectors.Prompt) bool) bool {
	w.mu.Lock()
	fits, known := w.fits[p.Request.ID]
	w.mu.Unlock()
	if !known {
		fits = !tooBig(p)
		w.Note(p.Request.ID, fits)
	}
	return fits
}
