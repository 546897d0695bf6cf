package whatsapp

import (
	"fmt"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

const (
	// mostText is how many characters a card has. The apps take 65,536 and fold what is long.
	mostText = 20_000
	// mostDetails is how many rows of details a card has; more are in the document.
	mostDetails = 200
	// mostDocument is how many bytes a document has that a person can be expected to read.
	mostDocument = 2 << 20
	// mostLead bounds what is above a card, in characters, and mostWords what is said without one.
	mostLead  = 500
	mostWords = 20_000
)

// fence is what WhatsApp shows as it is, in letters of one width: nothing within is formatted.
const fence = "```"

// outgoing is a message before it is sent: first the document if there is one, then the text.
type outgoing struct {
	Document *card.Document
	Text     string
	TooBig   bool
}

// show is p's person's card as text: its code and how it stands in the first line, then the card as it is, then how to
// answer.
func show(p connectors.Prompt, now time.Time) outgoing {
	m := fit(p)
	var b strings.Builder
	fmt.Fprintf(&b, "*%s* · %s\n", p.Code, head(p, now))
	if others := card.Others(p); others != "" && p.Request.State == permissions.Pending {
		b.WriteString(loose(permissions.Brief(others, mostLead)) + "\n")
	}
	b.WriteString(fence + fenced(m.Text) + fence)
	if p.Request.State == permissions.Pending && !p.Locked {
		b.WriteString("\n" + howTo(p, m.TooBig))
	}
	return outgoing{Document: m.Document, Text: b.String(), TooBig: m.TooBig}
}

// fit is the card, which is the same for the whole life of its request, and so is its document.
func fit(p connectors.Prompt) card.Message {
	p.Request.Votes, p.Request.Quorum, p.Request.LeftAt = nil, 1, time.Time{}
	return card.Fit(p, card.Options{Location: p.To.Location}, card.Limits{
		Text: mostText, Unit: card.Characters, Rows: mostDetails, Document: mostDocument,
	})
}

// head says in a few words how a request stands.
func head(p connectors.Prompt, now time.Time) string {
	r := p.Request
	told := card.Settled(r, card.Options{Now: now, Location: p.To.Location})
	switch {
	case r.State != permissions.Pending:
		return loose(permissions.Brief(told, mostLead))
	case p.Locked && p.To.Name == "":
		return "this can no longer be answered"
	case p.Locked:
		return "you are locked, and nothing from this account counts"
	case r.Quorum > 1 && len(r.Votes) == 0:
		return loose(permissions.Brief(told, mostLead)) + fmt.Sprintf(" · it takes %d people", r.Quorum)
	case r.Quorum > 1, len(r.Votes) > 0, !r.LeftAt.IsZero():
		return loose(permissions.Brief(told, mostLead))
	case r.HighRisk:
		return "HIGH RISK · " + asks(r)
	}
	return asks(r)
}

// asks says what sort of thing is asked, for the line that a phone shows of a message.
func asks(r permissions.Request) string {
	switch r.Kind {
	case permissions.KindPermission:
		return "a permission is asked"
	case permissions.KindTool:
		return "an action is asked"
	case permissions.KindClarification:
		return "a question"
	}
	if r.Mode == permissions.ModeContinue {
		return "a pause"
	}
	return "a confirmation is asked"
}

// fenced is a text for within a fence: what would end it is spelled out.
func fenced(text string) string { return card.Isolate(strings.ReplaceAll(text, "`", `\u{60}`)) }

// joiner is what nobody sees, and which is as good as a letter.
const joiner = "\u2060"

// formats are the signs that WhatsApp formats with; a word joiner behind each keeps it from doing so.
var formats = strings.NewReplacer("*", "*"+joiner, "_", "_"+joiner, "~", "~"+joiner, "`", "`"+joiner)

// asWritten is what somebody wrote, who may have copied it from here.
func asWritten(text string) string {
	return strings.NewReplacer(joiner, "", card.FSI, "", card.PDI, "").Replace(text)
}

// loose is a text for outside of fences, clipped.
func loose(text string) string {
	return formats.Replace(card.Isolate(permissions.Brief(text, mostWords)))
}

// howTo says how p can be answered here.
func howTo(p connectors.Prompt, tooBig bool) string {
	if tooBig {
		return "Reply NO " + p.Code + ": what cannot be shown whole cannot be allowed here."
	}
	return loose(reply.ChatHelp(p.Request, p.Code)) + "."
}
