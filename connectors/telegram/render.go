package telegram

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	// maxText limits a message's text in UTF-16 code units (Bot API, sendMessage).
	maxText = 4096
	// maxLead and maxLater are the shares of the row about a card's state and of the one about later calls.
	maxLead  = 500
	maxLater = 64
	// maxCard is the card's own share. It is constant, so that the card does not depend on that row.
	maxCard = maxText - maxLead - maxLater
	// reserve is the part of maxCard that is kept for what the layout adds.
	reserve = 50
	// maxDetails limits a card's rows of details; the document has the rest.
	maxDetails = 30
	// maxCaption limits the caption of a document in UTF-16 code units (Bot API, sendDocument).
	maxCaption = 1024
	// maxDocument limits a document, in bytes, to what a person can be expected to read.
	maxDocument = 2 << 20
	// maxQuoted is how many rows of an agent's words a phone shows before they are folded.
	maxQuoted = 6
	// phone is the approximate width of a phone's row in characters.
	phone = 40
)

// outgoing is a message to send: first its document, if any, then the text with its buttons.
type outgoing struct {
	Document *card.Document
	Text     string
	Entities []entity
	Keyboard keyboard
	Silent   bool
	TooBig   bool // it can be denied here but not allowed, by button or text
	Unseen   bool // nothing of the action is in the text
}

// show renders the card for p's person, under a row about the request's state if that is worth one. The card itself never
// changes during the request's life, and neither do the document and its digest.
func show(p connectors.Prompt, now time.Time) outgoing {
	if p.Locked && p.Request.State == permissions.Pending {
		return locked(p)
	}
	out := renderWithLead(p, leadRow(p, now))
	out.Keyboard = keys(p)
	switch {
	case out.TooBig:
		out.Keyboard = keysTooBig(p)
	case out.Unseen:
		out.Keyboard = keysUnread(p)
	}
	return out
}

// edit renders the card for an edit. A document that was sent with it stays.
func edit(p connectors.Prompt, now time.Time) outgoing {
	out := show(p, now)
	out.Document = nil
	return out
}

// away renders the card while the daemon is stopped: it cannot be answered.
func away(p connectors.Prompt, _ time.Time) outgoing {
	out := renderWithLead(p, p.To.Language.Text(notRunning))
	if p.Locked {
		out = locked(p)
	}
	out.Document = nil
	return out
}

// locked renders a card whose person can no longer answer it.
func locked(p connectors.Prompt) outgoing {
	if p.To.Name == "" {
		return renderWithLead(p, p.To.Language.Text(notAnswered))
	}
	return renderWithLead(p, p.To.Language.Text(lockedOut))
}

// leadRow is the row about the outcome or the state so far and, in a group, who is asked; empty if there is nothing to say.
func leadRow(p connectors.Prompt, now time.Time) string {
	lead := standsAlone(p, now)
	if others := card.Others(p, p.To.Language); others != "" && p.Request.State == permissions.Pending {
		lead = strings.TrimPrefix(lead+" · "+others, " · ")
	}
	if p.Group == "" || p.Request.State != permissions.Pending {
		return lead
	}
	asked := p.To.Language.Sprintf("👥 asks %s", namesOf(p.Request.Asked))
	if lead != "" {
		asked += " · " + lead
	}
	return asked
}

// standsAlone is stands for a card with a single reader.
func standsAlone(p connectors.Prompt, now time.Time) string {
	r := p.Request
	o := card.Options{Now: now, Location: p.To.Location, Language: p.To.Language}
	if p.Group == "" {
		o.Self = p.To.Name
	}
	lead := card.Outcome(r, o).Text
	switch {
	case r.State != permissions.Pending:
		return lead
	case r.Quorum > 1 && len(r.Votes) == 0:
		return o.Sprintf("%s · it takes %d people", lead, r.Quorum)
	case r.Quorum > 1, len(r.Votes) > 0, !r.LeftAt.IsZero():
		return lead
	}
	return ""
}

// renderWithLead renders a card without buttons: line 1 and the rest, with a lead between them; once settled, the lead is
// line 1, and all but what was asked is folded.
func renderWithLead(p connectors.Prompt, lead string) outgoing {
	m, g := fit(p), &page{}
	for most := maxLead; card.UTF16.Of(card.Isolate(lead)) > maxLead; most /= 2 {
		lead = clipTo(lead, most)
	}
	if later := laterCalls(p.Request, p.To.Language); later != "" {
		lead = strings.TrimPrefix(lead+"\n"+later, "\n")
	}
	if p.Request.State != permissions.Pending {
		g.settled(m, p.Code, lead)
	} else {
		g.card(card.Marked(m.Parts, p.Request), lead)
	}
	text := strings.TrimRight(string(g.text), " \n")
	return outgoing{
		Document: m.Document, Text: text, Entities: entitiesOf(text, g.spans), Keyboard: noKeys(), Silent: p.Silent,
		TooBig: m.TooBig, Unseen: m.Unseen,
	}
}

// fit renders the card without anything that changes during the request's life; that belongs in the lead. Otherwise a later
// card would name another document than the one that was sent, or none.
func fit(p connectors.Prompt) card.Message {
	p.Request.Votes, p.Request.Quorum, p.Request.LeftAt = nil, 1, time.Time{}
	for limit := maxCard - reserve; ; limit = max(limit/2, 1) { // smaller only if much of it is escaped
		m := card.Fit(p, card.Options{Location: p.To.Location, Language: p.To.Language, Zone: p.Group != ""}, card.Limits{
			Text: limit, Unit: card.UTF16, Rows: maxDetails, Document: maxDocument,
		})
		pending, settled := &page{}, &page{}
		pending.card(card.Marked(m.Parts, decided(p.Request)), "")
		settled.settled(m, p.Code, "")
		if card.UTF16.Of(string(pending.text)) <= maxCard && card.UTF16.Of(string(settled.text)) <= maxCard {
			return m
		}
	}
}

// decided is r with every call denied, whose card is the longest one.
func decided(r permissions.Request) permissions.Request {
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		r.Calls[i].Answer = permissions.Deny
	}
	return r
}

// page is a text being written, with its formatted spans.
type page struct {
	text  []byte
	spans []span
}

func (g *page) write(text string) { g.text = append(g.text, text...) }

func (g *page) format(format, text string) {
	g.spans = append(g.spans, span{format: format, start: len(g.text), end: len(g.text) + len(text)})
	g.write(text)
}

// card writes a card, with a lead below line 1: the exact action as a block, and an agent's words as a quote.
func (g *page) card(parts []card.Part, lead string) {
	for i, part := range parts {
		text := strings.ReplaceAll(card.Isolate(part.Text), "\t", "  ") // Telegram makes a tab one space
		switch {
		case part.Role == card.Action:
			g.spans = append(g.spans, span{asPre, len(g.text), len(g.text) + len(text), part.Lang})
			g.write(text)
		case part.Role == card.Words && rowsOnPhone(part.Text) > maxQuoted:
			g.format(asFolded, text)
		case part.Role == card.Words:
			g.format(asQuote, text)
		default:
			g.ours(part)
		}
		g.write("\n")
		if i == 0 && lead != "" {
			g.ours(card.Part{Text: lead})
			g.write("\n")
		}
	}
}

// settled writes a settled card: the outcome, what was asked, and the rest folded.
func (g *page) settled(m card.Message, code, lead string) {
	g.ours(card.Part{Role: card.Title, Text: lead})
	g.write("\n")
	asked := m.Parts[0]
	asked.Role = card.Ours
	g.ours(asked)
	if _, rest, more := strings.Cut(m.Text, "\n"); more {
		g.write("\n")
		rest = rest[:max(strings.LastIndexByte(rest, '\n'), 0)] // without the code and the deadline
		g.format(asFolded, card.Isolate(strings.TrimLeft(strings.ReplaceAll(rest, "\n  ", "\n"), " ")))
	}
	g.write("\n")
	g.format(asCode, code)
}

// ours writes a part of our own, with names as code.
func (g *page) ours(part card.Part) {
	for text, name := range part.Spans {
		switch text = card.Isolate(text); {
		case name:
			g.format(asCode, text)
		case part.Role == card.Title:
			g.format(asBold, text)
		default:
			g.write(text)
		}
	}
}

// renderNotice renders a notice; its text is empty if there is nothing to say.
func renderNotice(n connectors.Notice, now time.Time) outgoing {
	o, g := card.Options{Now: now, Location: n.To.Location, Language: n.To.Language, Self: n.To.Name}, &page{}
	if n.Group != "" {
		o.Self = ""
	}
	parts := card.NoticeParts(n, o)
	if n.Group != "" && len(parts) > 0 {
		g.write(toAnswer(n.Waiting) + "\n")
	}
	for i := range parts {
		if parts[i].Role == card.Words { // within a block it has no link, no name and no command to tap on
			parts[i].Role = card.Action
		}
	}
	g.card(parts, "")
	k := noKeys()
	switch {
	case len(n.UnknownSenders.List) > 0:
		k = keysPair(n)
	case n.About == permissions.AboutMuted:
		k = listed(slices.Concat(listKey(o.Text("▶️ Resume"), "/resume "+n.By), listKey(o.Text("⛔ Stop"), "/stop "+n.By),
			listKey(o.Text("❓ Why"), asksWhy+n.By)), 3)
	case n.Group == "":
		k = keysOpen(wire.Map(n.Waiting, func(p connectors.Prompt) string { return p.Code }))
	}
	return g.message(k)
}

// What one request may take of a list, so that all fit: UTF-16 code units, and formatted spans.
const (
	maxItem      = (maxText - 300) / connectors.MaxBurst
	maxItemSpans = maxEntities/connectors.MaxBurst - 1
)

// listed renders a list, with a lead unless that is empty: each request whole if it is short, otherwise in a row.
func (c *Connector) listed(b connectors.Burst, lead string) outgoing {
	g := &page{}
	o := card.Options{Now: c.now(), Location: b.To.Location, Language: b.To.Language, Self: b.To.Name}
	g.card([]card.Part{card.ListTitle(b, o)}, lead)
	silent := true
	for i, it := range b.Items {
		g.write("\n")
		g.card(card.Listed(it.Prompt, i, c.ShowsWhole(it.Prompt), o), "")
		silent = silent && it.Silent
	}
	g.write("\n" + o.Text("A number opens its request, with all that can be answered."))
	out := g.message(keysListed(b))
	out.Silent = silent
	return out
}

// ShowsWhole is [connectors.BurstSender].
func (c *Connector) ShowsWhole(p connectors.Prompt) bool {
	g := &page{}
	g.card(card.Listed(p, connectors.MaxBurst-1, true, card.Options{Location: p.To.Location, Language: p.To.Language}), "")
	return card.UTF16.Of(string(g.text)) <= maxItem && len(g.spans) <= maxItemSpans
}

// HidesAction is [connectors.BurstSender].
func (c *Connector) HidesAction(p connectors.Prompt) bool {
	m := fit(p)
	return m.Unseen || m.TooBig
}

// message is the page as a message, cut to the longest one.
func (g *page) message(k keyboard) outgoing {
	text := clip(strings.TrimRight(string(g.text), " \n"))
	return outgoing{Text: text, Entities: entitiesOf(text, g.spans), Keyboard: k}
}

// ourText is a text of ours, with names marked, as a message.
func ourText(text string, k keyboard) outgoing {
	g := &page{}
	g.ours(card.Part{Text: text})
	return g.message(k)
}

// rowsOnPhone is the approximate number of rows that a text fills on a phone.
func rowsOnPhone(text string) (n int) {
	for row := range strings.SplitSeq(text, "\n") {
		n += 1 + card.UTF16.Of(strings.TrimLeft(row, " "))/phone
	}
	return n
}

// noPreview keeps Telegram from fetching links in an agent's words.
var noPreview = map[string]any{"is_disabled": true}

// replyTo makes a message a reply to another, or a plain one if that is gone.
func replyTo(message int64) map[string]any {
	return map[string]any{"message_id": message, "allow_sending_without_reply": true}
}

// params are the parameters that send or edit a message; an edit without a keyboard removes the buttons.
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

func inPlace(at ref, o outgoing) map[string]any {
	params := o.params()
	params["chat_id"], params["message_id"] = at.chat, at.message
	return params
}

// The formats in use.
const (
	asBold  = "bold"
	asCode  = "code"
	asPre   = "pre"
	asQuote = "blockquote"
	// asFolded is a quote that is folded after some rows.
	asFolded = "expandable_blockquote"
)

// span is a formatted part of a text: bytes start to end, exclusive.
type span struct {
	format     string
	start, end int
	language   string // of a code block
}

// entitiesOf converts spans to Telegram's entities. Telegram drops or moves entities that begin or end with white space,
// splits overlapping ones, and refuses a message in which one cuts a character. So entities are narrowed, and those that
// are empty, cut a character or are out of order are left out.
func entitiesOf(text string, spans []span) []entity {
	var all []entity
	at, offset := 0, 0 // the same position in bytes and in code units
	for _, s := range spans {
		s.end = min(s.end, len(text)) // trailing white space was removed
		if s.start < at || s.start >= s.end || splitsCharacter(text, s.start) || splitsCharacter(text, s.end) {
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

// splitsCharacter reports whether the byte at is inside a character.
func splitsCharacter(text string, at int) bool { return at < len(text) && !utf8.RuneStart(text[at]) }

// visible is [card.Visible] for Telegram.
func visible(text string) string { return card.Isolate(card.Visible(text)) }

// clipTo shortens text to at most that many UTF-16 code units, with "…" at the end if it was cut.
func clipTo(text string, most int) string {
	if card.UTF16.Of(text) <= most {
		return text
	}
	used, end, open := 0, 0, 0 // open: how many isolates are not closed, before end at most one
	for i, c := range text {
		if used += card.UTF16.Of(string(c)); used > most-1 {
			break
		}
		switch string(c) {
		case card.FSI:
			open++
		case card.PDI:
			open--
		}
		if used+1+min(max(open, 0), 1) <= most { // "…", and what closes the isolate
			end = i + utf8.RuneLen(c)
		}
	}
	text = strings.TrimRight(text[:end], " \u200D") + "…"
	if strings.Count(text, card.FSI) > strings.Count(text, card.PDI) { // cut inside an isolate
		text += card.PDI
	}
	return text
}
