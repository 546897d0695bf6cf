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
	// mostText limits a card in characters. The apps accept 65,536 and fold long texts.
	mostText = 20_000
	// mostDetails limits a card's rows of details; the document has the rest.
	mostDetails = 200
	// mostDocument limits a document, in bytes, to what a person can be expected to read.
	mostDocument = 2 << 20
	// mostLead limits the row above a card in characters, mostWords a text without a card.
	mostLead  = 500
	mostWords = 20_000
)

// fence delimits monospaced text without formatting.
const fence = "```"

// outgoing is a message to send: first its document, if any, then the text.
type outgoing struct {
	Document *card.Document
	Text     string
	TooBig   bool
}

// show renders the card for p's person: a first row with its code and state, the card, and how to answer.
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

// fit renders the card, which never changes during its request's life, and neither does its document.
func fit(p connectors.Prompt) card.Message {
	p.Request.Votes, p.Request.Quorum, p.Request.LeftAt = nil, 1, time.Time{}
	return card.Fit(p, card.Options{Location: p.To.Location}, card.Limits{
		Text: mostText, Unit: card.Characters, Rows: mostDetails, Document: mostDocument,
	})
}

// head is a request's state in a few words.
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

// asks names the kind of request, for the phone's preview row.
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

// fenced escapes a text for use inside a fence.
func fenced(text string) string { return card.Isolate(strings.ReplaceAll(text, "`", `\u{60}`)) }

// joiner is the invisible word joiner, which counts as a letter.
const joiner = "\u2060"

// formats disables WhatsApp's formatting characters by a word joiner after each.
var formats = strings.NewReplacer("*", "*"+joiner, "_", "_"+joiner, "~", "~"+joiner, "`", "`"+joiner)

// asWritten removes what a person may have copied from our own texts.
func asWritten(text string) string {
	return strings.NewReplacer(joiner, "", card.FSI, "", card.PDI, "").Replace(text)
}

// loose escapes and clips a text for use outside of fences.
func loose(text string) string {
	return formats.Replace(card.Isolate(permissions.Brief(text, mostWords)))
}

// howTo says how p can be answered here.
func howTo(p connectors.Prompt, tooBig bool) string {
	if tooBig {
		return "Reply NO " + p.Code + ": what cannot be shown whole cannot be allowed here."
	}
	return loose(reply.ChatHelp(p.Request, p.Code, true)) + "."
}
