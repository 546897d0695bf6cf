package card

import (
	"fmt"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const (
	// mostListed limits the requests in a notice.
	mostListed = 20
	// mostStrangers limits the unknown senders in a notice.
	mostStrangers = 5
	// mostWhat limits the action in a row of a notice, in characters.
	mostWhat = 80
	// mostTold limits the rows of a caller's text.
	mostTold = 20
	// mostTags limits the tags in a grant's description.
	mostTags = 5
)

// Reminder lists everything that waits for one person, in rows: each request's code, who asks, what and until when. The
// action is shortened, because nothing is decided by a reminder.
func Reminder(waiting []connectors.Prompt, o Options) []string {
	rows := []string{plural(len(waiting), "request") + " wait for your answer:"}
	if len(waiting) == 1 {
		rows[0] = "1 request waits for your answer:"
	}
	for _, p := range waiting[:min(len(waiting), mostListed)] {
		row := Visible(brief(p.Code, mostName)) + "  " + glance(p.Request, o) + " · until " + deadline(p.Request, o)
		if p.Request.HighRisk {
			row += " · high risk"
		}
		rows = append(rows, row)
	}
	return append(rows, more(len(waiting)-mostListed)...)
}

// Ended describes a grant that expired or whose session ended.
func Ended(g permissions.Grant, o Options) []string { return []string{"⌛ Ended: " + InForce(g, o)} }

// Revoked describes a revoked grant and what ran under it.
func Revoked(g permissions.Grant, ran []permissions.Request, o Options) []string {
	rows := []string{"✖ Taken back: " + InForce(g, o)}
	if len(ran) == 0 {
		return append(rows, "Nothing ran under it.")
	}
	rows = append(rows, "What ran under it:")
	for _, r := range ran[:min(len(ran), mostListed)] {
		rows = append(rows, moment(r.CreatedAt, o)+"  "+glance(r, o))
	}
	return append(rows, more(len(ran)-mostListed)...)
}

// Strangers lists unknown senders, the first few by name. Their names are only claims.
func Strangers(s permissions.UnknownSenders, o Options) []string {
	if len(s.List) == 0 {
		return nil
	}
	rows := []string{"👤 " + plural(s.Count(), "unknown account") + " wrote since " + moment(s.List[0].At, o) + ":"}
	for _, one := range s.List[:min(len(s.List), mostStrangers)] {
		name := "without a name"
		if one.Name != "" {
			name = "calls itself " + quoted(brief(one.Name, mostName))
		}
		rows = append(rows, "   "+Visible(brief(one.Account, mostName))+" · "+via(one.Via)+" · "+name)
	}
	rows = append(rows, more(s.Count()-min(len(s.List), mostStrangers))...)
	return append(rows, "None was told more than their own id. Whoever should be asked: daycared pair NAME")
}

func more(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("… and %d more", n)}
}

// glance is who asks for what, shortened to one row.
func glance(r permissions.Request, o Options) string {
	s := &sheet{short: true, in: inWho}
	if len(r.Calls) > 0 {
		return s.who(r, o) + " wants " + countCalls(r.Calls)
	}
	s.ask(r, o)
	lead := s.of(inWho)
	row := lead[len(lead)-1].text
	if body := s.of(inAction); len(body) > 0 {
		row += " " + brief(strings.TrimPrefix(body[0].text[body[0].from:], body[0].role.sign()+" "), mostWhat)
		if len(body) > 1 && !strings.HasSuffix(row, "…") {
			row += " …"
		}
	}
	return row
}

// InForce says what a grant allows whom, by whom, since when, how long, and how often it was used.
func InForce(g permissions.Grant, o Options) string {
	caller := strings.Replace(g.Caller, ":", " ", 1)
	if _, name, found := strings.Cut(g.Caller, ":"); found && !strings.HasPrefix(g.Caller, "uid:") {
		caller = name
	}
	used := fmt.Sprintf("used %d times", g.Used)
	switch g.Used {
	case 0:
		used = "never used"
	case 1:
		used = "used once"
	}
	if !g.SuspendedAt.IsZero() {
		used += ", suspended since the store was restored"
	}
	return fmt.Sprintf("%s for %s, allowed by %s at %s %s, %s",
		covers(g), Visible(brief(caller, mostName)), person(brief(g.By, mostName), o), moment(g.CreatedAt, o), lasts(g), used)
}

// covers says what a grant allows.
func covers(g permissions.Grant) string {
	switch {
	case g.Tool == permissions.AllTools:
		return "all gated tools, except high risk, shells and interpreters,"
	case g.Call != permissions.Digest{}:
		return "one exact call of " + named(brief(g.Tool, mostName))
	case g.Tool != "":
		return "the tool " + named(brief(g.Tool, mostName))
	}
	words := make([]string, 0, mostTags)
	for _, t := range g.Tags[:min(len(g.Tags), mostTags)] {
		words = append(words, Visible(brief(t.Describe(), mostWhat)))
	}
	if n := len(g.Tags) - mostTags; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	return strings.Join(words, ", ")
}

// lasts says how long a grant is valid.
func lasts(g permissions.Grant) string {
	switch {
	case !g.Until.IsZero():
		return "for " + permissions.SayDuration(g.Until.Sub(g.CreatedAt))
	case g.Session != "":
		return "for a session"
	}
	return "until revoked"
}

// moment is a past time of day, with the day if that was another.
func moment(at time.Time, o Options) string {
	at = at.In(zone(o))
	if now := o.Now.In(zone(o)); o.Now.IsZero() || at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		return at.Format("2 Jan 15:04")
	}
	return at.Format("15:04")
}

// Notice renders a notice in rows; none if there is nothing to say.
func Notice(n connectors.Notice, o Options) []string {
	switch n.About {
	case permissions.AboutWaiting:
		if len(n.Waiting) == 0 {
			return nil
		}
		return Reminder(n.Waiting, o)
	case permissions.AboutEnded:
		return Ended(n.Grant, o)
	case permissions.AboutRevoked:
		return Revoked(n.Grant, n.Ran, o)
	case permissions.AboutStopped:
		return []string{"⛔ Everything was stopped by " + person(n.By, o) + "; nothing is asked until resume."}
	case permissions.AboutUnknownSenders:
		return Strangers(n.Strangers, o)
	case permissions.AboutFinished, permissions.AboutWaits, permissions.AboutFailed, permissions.AboutSays:
		return told(n, o)
	}
	return nil
}

// ends are what the first row of a notice of a caller's says of whom it is about.
var ends = map[permissions.About]string{
	permissions.AboutFinished: "has finished", permissions.AboutWaits: "waits for you", permissions.AboutFailed: "has failed",
	permissions.AboutSays: "says",
}

// told is what a caller has a person told. The first row is ours; every other one is the caller's, behind a sign.
func told(n connectors.Notice, o Options) []string {
	s := newSheet(o.Width)
	s.short = true // names are
	who := s.who(permissions.Request{Caller: permissions.Caller{Name: n.By}, Agent: n.Told.Agent, Claimed: true}, o)
	s.row("💬 " + who + " " + ends[n.About] + " · " + moment(n.At, o))
	quote := func(label, text string) {
		lines := words(Uncoded(text, n.Codes), prose)
		if more := len(lines) - mostTold; more > 0 {
			lines = append(lines[:mostTold:mostTold], fmt.Sprintf("… and %s", plural(more, "more row")))
		}
		s.marked(label, Words, lines)
	}
	quote("it calls it", n.Told.Title)
	quote("it says", strings.TrimSpace(n.Told.Text))
	return texts(s.rows)
}
