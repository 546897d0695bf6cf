package telegram

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

const (
	// mostText is how many UTF-16 units a text may have (Bot API, sendMessage).
	mostText = 4096
	// mostLead is how many of them the row above a card may have, and mostLater the one below it.
	mostLead  = 500
	mostLater = 64
	// mostCard is what is left for the card itself, always, so that it is the same whatever is above it.
	mostCard = mostText - mostLead - mostLater
	// reserve is how many of these are kept for what the layout adds.
	reserve = 50
	// mostDetails is how many rows of details a card has; more are in the document.
	mostDetails = 30
	// mostDocument is how many bytes a document has that a person can be expected to read.
	mostDocument = 2 << 20
	// mostQuoted is how many rows on a phone an agent's words fill before they are folded.
	mostQuoted = 6
	// phone is about how many letters are in a row on one.
	phone = 40
)

// outgoing is a message before it is sent: first the document if there is one, then the text with its buttons.
type outgoing struct {
	Document *card.Document
	Text     string
	Entities []entity
	Keyboard keyboard
	Silent   bool
	TooBig   bool // it can be denied here and not allowed: not by its buttons, and not by text either
}

// show is what p's person is sent: the card, and above it a row about how the request stands where that is worth one.
// The card itself is the same for the whole life of the request, and so are the document and its digest.
func show(p connectors.Prompt, now time.Time) outgoing {
	if p.Locked && p.Request.State == permissions.Pending {
		return locked(p)
	}
	out := face(p, stands(p, now))
	out.Keyboard = keys(p)
	if out.TooBig {
		out.Keyboard = keysTooBig(p)
	}
	return out
}

// edit is the same card brought up to date. A document that was sent with it stays where it is.
func edit(p connectors.Prompt, now time.Time) outgoing {
	out := show(p, now)
	out.Document = nil
	return out
}

// away is the card while the daemon does not run: it cannot be answered.
func away(p connectors.Prompt, _ time.Time) outgoing {
	out := face(p, notRunning)
	if p.Locked {
		out = locked(p)
	}
	out.Document = nil
	return out
}

// locked is a card whose person cannot answer it any more.
func locked(p connectors.Prompt) outgoing {
	if p.To.Name == "" {
		return face(p, notAnswered)
	}
	return face(p, lockedOut)
}

// stands is the row above a card: how the request ended, or what has become of it so far and, in a group, who is asked;
// empty where there is nothing to tell.
func stands(p connectors.Prompt, now time.Time) string {
	lead := standsAlone(p, now)
	if others := card.Others(p); others != "" && p.Request.State == permissions.Pending {
		lead = strings.TrimPrefix(lead+" · "+others, " · ")
	}
	if p.Place == "" || p.Request.State != permissions.Pending {
		return lead
	}
	asked := "👥 asks " + namesOf(p.Request.Asked)
	if lead != "" {
		asked += " · " + lead
	}
	return asked
}

// standsAlone is stands of a card that asks its only reader.
func standsAlone(p connectors.Prompt, now time.Time) string {
	r := p.Request
	lead := card.Settled(r, card.Options{Now: now, Location: p.To.Location})
	switch {
	case r.State != permissions.Pending:
		return lead
	case r.Quorum > 1 && len(r.Votes) == 0:
		return lead + fmt.Sprintf(" · it takes %d people", r.Quorum)
	case r.Quorum > 1, len(r.Votes) > 0, !r.LeftAt.IsZero():
		return lead
	}
	return ""
}

// face is a card under a lead, without buttons.
func face(p connectors.Prompt, lead string) outgoing {
	m, g := fit(p), &page{}
	if lead != "" {
		g.format(asBold, clipTo(card.Isolate(lead), mostLead-1))
		g.write("\n")
	}
	g.card(m, p.Request.State != permissions.Pending)
	g.write(laterCalls(p.Request))
	text := strings.TrimRight(string(g.text), " \n")
	return outgoing{
		Document: m.Document, Text: text, Entities: entitiesOf(text, g.spans), Keyboard: noKeys(), Silent: p.Silent, TooBig: m.TooBig,
	}
}

// fit is the card without anything that changes in the life of the request: that is for the lead. Else the file that
// was sent would not be the one that a later card names, or there would be none.
func fit(p connectors.Prompt) card.Message {
	p.Request.Votes, p.Request.Quorum, p.Request.LeftAt = nil, 1, time.Time{}
	for limit := mostCard - reserve; ; limit = max(limit/2, 1) { // smaller only where much of it has to be escaped
		m := card.Fit(p, card.Options{Location: p.To.Location}, card.Limits{
			Text: limit, Unit: card.UTF16, Rows: mostDetails, Document: mostDocument,
		})
		g := &page{}
		if g.card(m, false); card.UTF16.Of(string(g.text)) <= mostCard {
			return m
		}
	}
}

// page is a text that is being written, and what of it is formatted.
type page struct {
	text  []byte
	spans []span
}

func (g *page) write(text string) { g.text = append(g.text, text...) }

func (g *page) format(format, text string) {
	g.spans = append(g.spans, span{format: format, start: len(g.text), end: len(g.text) + len(text)})
	g.write(text)
}

// card writes a card for a phone, whose letters have different widths and whose rows are wrapped: the exact action, and
// words that fill several rows, stand below their label, every row with its sign; the rule is short. Of a settled
// request it leaves out until when it waited.
func (g *page) card(m card.Message, settled bool) {
	text := m.Text
	if i := strings.LastIndexByte(text, '\n'); settled && i >= 0 && strings.HasPrefix(text[i+1:], "until ") {
		text = text[:i]
	}
	for _, mark := range m.Marks {
		if mark.Start >= len(text) {
			break
		}
		part := card.Isolate(text[mark.Start:min(mark.End, len(text))])
		switch long := rowsOnPhone(part) > mostQuoted; {
		case mark.Start == 0:
			g.top(part)
		case mark.Role == card.Action:
			g.block(asPre, "┃ ", part)
		case mark.Role == card.Words && long:
			g.block(asQuote, "│ ", part)
		case mark.Role == card.Words && strings.Contains(part, "\n"):
			g.block("", "│ ", part)
		default:
			g.write(part)
		}
	}
}

// top writes our words that a card begins with: the rule, of which the code can be copied by a tap, and what follows.
func (g *page) top(part string) {
	const line = "──"
	rule, rest, more := strings.Cut(part, "\n")
	code, isRule := strings.CutSuffix(strings.TrimLeft(rule, "─"), " "+line)
	if !isRule {
		g.write(part)
		return
	}
	g.write(line + " ")
	if code = strings.TrimSpace(code); code != "" {
		g.format(asCode, code)
		g.write(" ")
	}
	g.write(line)
	if more {
		g.write("\n" + rest)
	}
}

// signedAfter are the labels after which a card has a sign; nothing but one of them is on the row before it.
var signedAfter = []string{"", "it needs", "it says", "message", "details"}

// block writes rows that are not ours below what was written of their row, every one with its sign.
func (g *page) block(format, sign, part string) {
	label := string(g.text[strings.LastIndexByte(string(g.text), '\n')+1:])
	g.text = g.text[:len(g.text)-len(label)]
	label = strings.TrimRight(label, " ")
	if label != "" {
		g.write(label + "\n")
	}
	rows := strings.Split(part, "\n")
	for i, row := range rows {
		if i > 0 {
			row = strings.TrimLeft(row, " ")
		}
		signed := strings.HasPrefix(row, strings.TrimSpace(sign))
		if !signed || i == 0 && !slices.Contains(signedAfter, label) {
			row = sign + row
		}
		rows[i] = row
	}
	if part = strings.Join(rows, "\n"); format == "" {
		g.write(part)
		return
	}
	g.format(format, part)
}

// rowsOnPhone is about how many rows a text fills there.
func rowsOnPhone(text string) (n int) {
	for row := range strings.SplitSeq(text, "\n") {
		n += 1 + card.UTF16.Of(strings.TrimLeft(row, " "))/phone
	}
	return n
}

// noPreview keeps Telegram from fetching what an agent's words link to.
var noPreview = map[string]any{"is_disabled": true}

// replyTo has a message stand under another, or alone when that is gone.
func replyTo(message int64) map[string]any {
	return map[string]any{"message_id": message, "allow_sending_without_reply": true}
}

// params are what sends a message or puts it in place of another; without a keyboard the buttons of the other go.
func (o outgoing) params() map[string]any {
	params := map[string]any{"text": o.Text, "link_preview_options": noPreview}
	if len(o.Entities) > 0 {
		params["entities"] = o.Entities
	}
	if len(o.Keyboard.Rows) > 0 {
		params["reply_markup"] = o.Keyboard
	}
	return params
}

// inPlace are what puts something in place of a message.
func inPlace(at ref, o outgoing) map[string]any {
	params := o.params()
	params["chat_id"], params["message_id"] = at.chat, at.message
	return params
}

// The formats that are used.
const (
	asBold  = "bold"
	asCode  = "code"
	asPre   = "pre"
	asQuote = "expandable_blockquote"
)

// span is a part of a text that is to be formatted: from the byte start up to, not including, the byte end.
type span struct {
	format     string
	start, end int
	language   string // of code in rows of its own
}

// entitiesOf are spans of text as Telegram counts them. Telegram drops or moves entities that begin or end in white
// space, splits those that overlap, and refuses a message in which one cuts a character; so those are narrowed, and
// what is empty, cuts a character or does not come in order is left out.
func entitiesOf(text string, spans []span) []entity {
	var all []entity
	at, offset := 0, 0 // the same place in bytes and in units
	for _, s := range spans {
		s.end = min(s.end, len(text)) // white space at the end of a text was taken away
		if s.start < at || s.start >= s.end || cuts(text, s.start) || cuts(text, s.end) {
			continue
		}
		part := strings.TrimLeft(text[s.start:s.end], " \n")
		start := s.end - len(part)
		if part = strings.TrimRight(part, " \n"); part == "" {
			continue
		}
		offset += card.UTF16.Of(text[at:start])
		length := card.UTF16.Of(part)
		all = append(all, entity{Type: s.format, Offset: offset, Length: length, Language: s.language})
		at, offset = start+len(part), offset+length
	}
	return all
}

// cuts tells whether the byte at is within a character.
func cuts(text string, at int) bool { return at < len(text) && !utf8.RuneStart(text[at]) }

// visible is [card.Visible] for Telegram.
func visible(text string) string { return card.Isolate(card.Visible(text)) }

// prose is [card.Prose] for Telegram.
func prose(text string) string { return card.Isolate(card.Prose(text)) }

// clipTo is text, or so much of its start, and "…", that it has at most so many UTF-16 units.
func clipTo(text string, most int) string {
	if card.UTF16.Of(text) <= most {
		return text
	}
	used, end := 0, 0
	for i, c := range text {
		if used += card.UTF16.Of(string(c)); used > most-1 {
			break
		}
		end = i + utf8.RuneLen(c)
	}
	text = strings.TrimRight(text[:end], " \u200D") + "…"
	if strings.Count(text, card.FSI) > strings.Count(text, card.PDI) { // it was cut within one
		text += card.PDI
	}
	return text
}
