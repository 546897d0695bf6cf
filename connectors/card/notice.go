package card

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// maxListed limits the requests in a notice.
	maxListed = 20
	// MaxStrangers limits the unknown senders that a notice names.
	MaxStrangers = 5
	// maxWhat limits the action in a row of a notice, in characters.
	maxWhat = 80
	// maxSays limits what is said of a pattern: it is cut only where a name in it is very long.
	maxSays = 500
	// maxTold limits the rows of a caller's text.
	maxTold = 20
	// maxTags limits the tags in a grant's description.
	maxTags = 5
)

// reminder lists everything that waits for one person, in rows: each request's code, who asks, what and until when. The
// action is shortened, because nothing is decided by a reminder.
func reminder(waiting []connectors.Prompt, o Options) []string {
	rows := []string{o.Plural(len(waiting), "%d request waits for your answer:|%d requests wait for your answer:")}
	for _, p := range waiting[:min(len(waiting), maxListed)] {
		rows = append(rows,
			o.Sprintf("%s  %s · until %s", codeSpan(Visible(brief(p.Code, maxName))), summaryRow(p.Request, o), Until(p.Request, o)))
	}
	return append(rows, more(len(waiting)-maxListed, o)...)
}

// addRan adds what ran under a grant.
func addRan(rows []string, all []permissions.Request, o Options) []string {
	if len(all) == 0 {
		return append(rows, o.Text("Nothing ran under it."))
	}
	rows = addAsked(append(rows, o.Text("What ran under it:")), all, o)
	return append(rows, more(len(all)-maxListed, o)...)
}

// addAsked adds the first of some requests: when each was made, and what it is.
func addAsked(rows []string, all []permissions.Request, o Options) []string {
	for _, r := range all[:min(len(all), maxListed)] {
		rows = append(rows, moment(r.CreatedAt, o)+"  "+summaryRow(r, o))
	}
	return rows
}

// digest says what an agent asked while its cards were silent.
func digest(n connectors.Notice, o Options) []string {
	count := map[permissions.State]int{}
	for _, r := range n.Ran {
		count[r.State]++
	}
	allowed, denied := count[permissions.Approved], count[permissions.Denied]
	rows := []string{o.Sprintf("🔔 %s is quiet no longer. Since %s: %d allowed, %d denied, %d otherwise.",
		Visible(permissions.Caller{Name: n.By}.ProvenName()), moment(n.At, o), allowed, denied, len(n.Ran)-allowed-denied)}
	if rows = append(addAsked(rows, n.Ran, o), more(len(n.Ran)-maxListed, o)...); len(n.Waiting) > 0 {
		rows = append(rows, reminder(n.Waiting, o)...)
	}
	return rows
}

// muted says that an agent asks nothing any more, why, and what to do.
func muted(n connectors.Notice, o Options) []string {
	name := Visible(permissions.Caller{Name: n.By}.ProvenName())
	rows := []string{
		o.Sprintf("🔇 %s asked for too much: nothing that it asks reaches you until /resume %[1]s", name),
		o.Text("Why: this was denied, or nobody answered it, within ten minutes:"),
	}
	return append(addAsked(rows, n.Ran, o), o.Sprintf("/stop %s refuses besides what runs unasked, and what it was allowed.", name))
}

// Unheeded says what became of each request that people denied or ignored, with names marked, see [Part.Spans].
func Unheeded(all []permissions.Request, o Options) string {
	rows := []string{o.Text("This was denied, or nobody answered it, within ten minutes:")}
	for _, r := range all {
		rows = append(rows, moment(r.CreatedAt, o)+"  "+summaryRow(r, o)+" · "+Outcome(r, o).Text)
	}
	if len(all) == 0 {
		rows[0] = o.Text("Nothing that it asked you was denied or ignored.")
	}
	return strings.Join(rows, "\n")
}

// strangers lists unknown senders, the first few by name. Their names are only claims.
func strangers(n connectors.Notice, o Options) []string {
	s := n.UnknownSenders
	if len(s.List) == 0 {
		return nil
	}
	rows := []string{o.Plural(s.Count(), "👤 %d unknown account wrote since %s:|👤 %d unknown accounts wrote since %s:",
		s.Count(), moment(s.List[0].At, o))}
	for _, one := range s.List[:min(len(s.List), MaxStrangers)] {
		rows = append(rows, "   "+sender(one, o))
	}
	rows = append(rows, more(s.Count()-min(len(s.List), MaxStrangers), o)...)
	rows = append(rows, o.Text("None was told more than their own id. Whoever should be asked: daycared pair NAME"))
	for _, one := range s.List[:min(len(s.List), MaxStrangers)] {
		if names := n.Unpaired[one.Via]; len(names) > 0 {
			return append(rows, o.Sprintf("Or, if you know whose one is, say so as in /pair %s %s; somebody else has to say the same.",
				Visible(names[0]), Visible(one.Account)))
		}
	}
	return rows
}

// sender is an unknown sender in a row.
func sender(s permissions.UnknownSender, o Options) string {
	name := o.Text("without a name")
	if s.Name != "" {
		name = o.Sprintf("calls itself %s", codeSpan(quoted(brief(s.Name, maxName))))
	}
	return Visible(brief(s.Account, maxName)) + " · " + via(s.Via, o) + " · " + name
}

// proposed says whose an unknown account is said to be.
func proposed(n connectors.Notice, o Options) (rows []string) {
	for _, s := range n.UnknownSenders.List {
		name, account := Visible(s.Proposed.Person), Visible(s.Account)
		rows = append(rows, o.Sprintf("🔗 %s says that an unknown account is %s's:", person(s.Proposed.By, o), name), "   "+sender(s, o),
			o.Sprintf("Whoever has it will answer as %[1]s. Only if you know that it is %[1]s's: /pair %[1]s %[2]s. If not: /unpair %[1]s %[2]s",
				name, account))
	}
	return rows
}

func more(n int, o Options) []string {
	if n <= 0 {
		return nil
	}
	return []string{o.Sprintf("… and %d more", n)}
}

// ListTitle is how many requests a list has, from whom, if that is one agent, and how fast they came.
func ListTitle(b connectors.Burst, o Options) Part {
	first, last := b.Items[0].Request, b.Items[len(b.Items)-1].Request
	s := &sheet{Language: o.Language, short: true}
	title, who := o.Plural(len(b.Items), "%d request|%d requests"), s.who(first, Options{Language: o.Language})
	other := func(it connectors.Item) bool { return s.who(it.Request, Options{Language: o.Language}) != who }
	if !slices.ContainsFunc(b.Items, other) {
		title = o.Sprintf("%s from %s", title, who)
	}
	if took := last.CreatedAt.Sub(first.CreatedAt).Round(time.Second); took > 0 {
		title = o.Sprintf("%s in %s", title, span(took))
	}
	return Part{Role: Title, Text: title}
}

// ToAll says how many requests took an answer to everything on a list.
func ToAll(a permissions.Answer, n int, in i18n.Language) string {
	switch {
	case n == 0:
		return in.Text("Nothing was left to decide.")
	case a == permissions.Deny:
		return in.Sprintf("⛔ You denied %d.", n)
	}
	return in.Sprintf("✅ You allowed %d.", n)
}

// Listed is the part of the request at position n in a list. Whole, it is everything to decide about; otherwise, and once it is
// settled, who wants what in a row.
func Listed(p connectors.Prompt, n int, whole bool, o Options) []Part {
	number := strconv.Itoa(n + 1)
	if whole && p.Request.State == permissions.Pending {
		s := newSheet(o)
		o.Heading = number
		s.fill(p, o)
		return parts(s.rows)
	}
	row := number + " · " + summaryRow(p.Request, o)
	if p.Request.State != permissions.Pending {
		return []Part{{Text: number + " · " + Outcome(p.Request, o).Text}, {Text: strings.TrimPrefix(row, number+" · ")}}
	}
	how := o.Sprintf("Not all of it is here: open it. %s · until %s", codeSpan(Visible(p.Code)), Until(p.Request, o))
	return []Part{{Role: Title, Text: row}, {Text: how}}
}

// summaryRow is who asks for what, shortened to one row.
func summaryRow(r permissions.Request, o Options) string {
	s := &sheet{Language: o.Language, short: true}
	if len(r.Calls) > 0 {
		return o.Sprintf("%s wants %s", s.who(r, o), countCalls(r.Calls, o.Language))
	}
	o.flat, o.few = true, true
	all := acts(r, o)
	row := s.title(r, all[:1], Options{AgentLabel: o.AgentLabel, Language: o.Language})
	if body := all[0].body; len(body) > 0 && all[0].lang != langDiff {
		first := brief(body[0], maxWhat)
		row += ": " + codeSpan(first)
		if len(body) > 1 && !strings.HasSuffix(first, "…") {
			row += " …"
		}
	}
	return row
}

// InForce says what a grant allows whom, by whom, since when, how long, and how often it was used, with names marked, see
// [Part.Spans].
func InForce(g permissions.Grant, o Options) string {
	caller := heldBy(g.Caller, o)
	if kind, name, _ := strings.Cut(g.Caller, ":"); g.Session != "" && kind != "agent" { // it holds for the agent of its session alone
		caller = Visible(kind) + " " + Name(name)
	}
	used := o.Sprintf("used %d times", g.Used)
	switch g.Used {
	case 0:
		used = o.Text("never used")
	case 1:
		used = o.Text("used once")
	}
	if !g.SuspendedAt.IsZero() {
		used = o.Sprintf("%s, suspended since the store was restored", used)
	}
	if g.Suspended != "" {
		used = o.Sprintf("%s, suspended: %s", used, Visible(failure(g.Suspended, o)))
	}
	return o.Sprintf("%s for %s, allowed by %s at %s %s, %s",
		covers(g, o), caller, person(brief(g.By, maxName), o), moment(g.CreatedAt, o), lasts(g, o), used)
}

// Proposed says what "Always like this" proposes, in rows with marks, see [Part.Spans].
func Proposed(p permissions.Proposal, o Options) (rows []string) {
	allow, in := p.Rule.Patterns()
	rows = append(rows, o.Text("Always like this? Nothing is allowed yet."))
	for i, pattern := range allow {
		says := ""
		if i < len(p.Descriptions) {
			says = ": " + Visible(brief(p.Descriptions[i], maxSays))
		}
		rows = append(rows, "• "+codeSpan(line(pattern, 0))+says)
	}
	if in != "" {
		rows = append(rows, o.Sprintf("In the folder %s and below.", codeSpan(Visible(in))))
	}
	if p.PastCount > 0 {
		rows = append(rows, o.Sprintf("It would have covered %d prompts of the last 30 days, %d of them allowed.", p.PastCount, p.Allowed))
	} else {
		rows = append(rows, o.Text("Nothing like this was asked in the last 30 days."))
	}
	for _, text := range p.NotCovered {
		rows = append(rows, o.Sprintf("Not covered: %s", codeSpan(line(brief(text, maxWhat), 0))))
	}
	holder := heldBy(p.Caller, o)
	if (permissions.Caller{Name: p.Caller}).IsOurs() {
		holder = o.Text("this agent")
	}
	return append(rows, o.Sprintf("It holds for %s until it is revoked, or was not used for 30 days.", holder))
}

// heldBy says for whom a grant of a caller holds. An account and a token have any number of agents, whatever these call themselves.
func heldBy(caller string, o Options) string {
	switch kind, name, found := strings.Cut(caller, ":"); {
	case !found:
		return Name(caller)
	case kind == "uid":
		return o.Sprintf("whatever uid %s runs", inTitleName(name))
	case kind == "token":
		return o.Sprintf("whatever uses the token %s", Name(name))
	default:
		return Name(name)
	}
}

// covers says what a grant allows.
func covers(g permissions.Grant, o Options) string {
	switch {
	case g.IsTrust():
		_, in := g.Rule.Patterns()
		return o.Sprintf("what is read completely and stays in %s, without network and high risk,", codeSpan(Visible(brief(in, maxWhat))))
	case g.Rule != "":
		allow, in := g.Rule.Patterns()
		words := wire.Map(allow, func(pattern string) string { return codeSpan(line(brief(pattern, maxWhat), 0)) })
		if in == "" {
			return o.Sprintf("what is like %s", strings.Join(words, ", "))
		}
		return o.Sprintf("what is like %s in %s", strings.Join(words, ", "), codeSpan(Visible(brief(in, maxWhat))))
	case g.Tool == permissions.AllTools:
		return o.Text("all gated tools, except high risk, shells and interpreters,")
	case g.Call != permissions.Digest{}:
		return o.Sprintf("one exact call of %s", Name(g.Tool))
	case g.Tool != "":
		return o.Sprintf("the tool %s", Name(g.Tool))
	}
	words := wire.Map(g.Tags[:min(len(g.Tags), maxTags)], func(t permissions.Tag) string {
		return tagged(Visible(brief(t.Describe(o.Language), maxWhat)), o)
	})
	if n := len(g.Tags) - maxTags; n > 0 {
		words = append(words, o.Sprintf("%d more", n))
	}
	return strings.Join(words, ", ")
}

// lasts says how long a grant is valid.
func lasts(g permissions.Grant, o Options) string {
	switch {
	case g.Scope() == permissions.Rule:
		return permissions.Rule.Lasts(o.Language)
	case g.Session != "":
		return o.Text("for a session")
	case !g.Until.IsZero():
		return o.Sprintf("for %s", o.Duration(g.Until.Sub(g.CreatedAt)))
	}
	return o.Text("until revoked")
}

// moment is a past time of day, with the day if that was another.
func moment(at time.Time, o Options) string {
	at = at.In(zone(o))
	if now := o.Now.In(zone(o)); o.Now.IsZero() || at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		return o.Time(at, "2 Jan 15:04")
	}
	return o.Time(at, "15:04")
}

// Notice renders a notice in rows of plain text; none if there is nothing to say.
func Notice(n connectors.Notice, o Options) []string { return texts(notice(n, o)) }

// NoticeParts is [Notice] for channels that have blocks and quotes. What a caller says has the role [Words].
func NoticeParts(n connectors.Notice, o Options) []Part { return parts(notice(n, o)) }

func notice(n connectors.Notice, o Options) []row {
	var rows []string
	switch n.About {
	case permissions.AboutWaiting:
		if len(n.Waiting) > 0 {
			rows = reminder(n.Waiting, o)
		}
	case permissions.AboutEnded:
		if rows = []string{o.Sprintf("⌛ Ended: %s", InForce(n.Grant, o))}; n.Grant.IsTrust() {
			rows = addRan(rows, n.Ran, o)
		}
	case permissions.AboutRevoked:
		rows = addRan([]string{o.Sprintf("✖ Taken back: %s", InForce(n.Grant, o))}, n.Ran, o)
	case permissions.AboutStopped:
		rows = []string{o.Sprintf("⛔ Everything was stopped by %s; nothing is asked until resume.", person(n.By, o))}
	case permissions.AboutQuiet:
		rows = digest(n, o)
	case permissions.AboutMuted:
		rows = muted(n, o)
	case permissions.AboutUnknownSenders:
		rows = strangers(n, o)
	case permissions.AboutPairing:
		rows = proposed(n, o)
	case permissions.AboutFinished, permissions.AboutWaits, permissions.AboutFailed, permissions.AboutText:
		return callerNotice(n, o)
	}
	s := newSheet(o)
	for _, text := range rows {
		s.row(text)
	}
	return s.rows
}

// ends are what the first row of a notice of a caller's says of whom it is about.
var ends = map[permissions.About]i18n.Phrase{
	permissions.AboutFinished: "has finished", permissions.AboutWaits: "waits for you", permissions.AboutFailed: "has failed",
	permissions.AboutText: "says",
}

// callerNotice is what a caller has a person told. The first row is ours; every other one is the caller's.
func callerNotice(n connectors.Notice, o Options) []row {
	s := newSheet(o)
	s.short = true // names are
	r := permissions.Request{Caller: permissions.Caller{Name: n.By}, Agent: n.CallerMessage.Agent, Claimed: true}
	from := ""
	if n.CallerMessage.Agent != "" {
		from = " · " + o.Sprintf("unproven name, from %s", s.caller(r))
	}
	s.row("💬 " + s.who(r, o) + " " + o.Text(ends[n.About]) + " · " + moment(n.At, o) + from)
	for _, text := range []string{n.CallerMessage.Title, n.CallerMessage.Text} {
		lines := words(HideCodes(strings.TrimSpace(text), n.Codes), prose)
		if more := len(lines) - maxTold; more > 0 {
			lines = append(lines[:maxTold:maxTold], o.Plural(more, "… and %d more row|… and %d more rows"))
		}
		s.block(Words, "", lines)
	}
	return s.rows
}
