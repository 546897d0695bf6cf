package whatsapp

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// maxText limits a card in characters. The apps accept 65,536 and fold long texts.
	maxText = 20_000
	// maxDetails and maxChanges limit a card's rows of details and of edits; the document has the rest.
	maxDetails, maxChanges = 200, 30
	// maxDocument limits a document, in bytes, to what a person can be expected to read.
	maxDocument = 2 << 20
	// maxLead limits the row above a card in characters, maxWords a text without a card.
	maxLead  = 500
	maxWords = 20_000
)

// fence delimits monospaced text without formatting.
const fence = "```"

// outgoing is a message to send: first its document, if any, then the text.
type outgoing struct {
	Document *card.Document
	Text     string
	TooBig   bool
	Unseen   bool // nothing of the action is in the text
}

// show renders the card for p's person: who wants what, its state, the action, the agent's words, and how to answer; once
// settled, the outcome and what was asked.
func show(p connectors.Prompt, now time.Time) outgoing {
	m := fit(p)
	out := outgoing{Document: m.Document, TooBig: m.TooBig, Unseen: m.Unseen}
	if p.Request.State != permissions.Pending {
		state := card.Outcome(p.Request, card.Options{Now: now, Location: p.To.Location, Language: p.To.Language, Self: p.To.Name})
		done, more, found := strings.Cut(state.Text, " · ")
		state.Text = more
		if out.Text = ours(card.Part{Text: done}, true); found {
			out.Text += " · " + ours(state, false)
		}
		out.Text += "\n" + asked(m.Parts) + "\n" + p.Code
		return out
	}
	rows := written(card.Marked(m.Parts, p.Request))
	if state := head(p, now); state != "" {
		rows = slices.Insert(rows, 1, state)
	}
	if !p.Locked {
		rows = append(rows[:len(rows)-1], howTo(p, m), rows[len(rows)-1])
	}
	out.Text = strings.Join(rows, "\n")
	return out
}

func written(parts []card.Part) []string {
	return wire.Map(parts, func(part card.Part) string {
		switch part.Role {
		case card.Action:
			return block(part.Text)
		case card.Words:
			return "> " + strings.ReplaceAll(escapeLists(escapeText(part.Text)), "\n", "\n> ") // each row is quoted
		}
		return ours(part, part.Role == card.Title)
	})
}

// maxItem limits what one request takes of a list, in characters.
const maxItem = 500

// ShowsWhole is [connectors.BurstSender].
func (c *Connector) ShowsWhole(p connectors.Prompt) bool {
	all := written(card.Listed(p, connectors.MaxBurst-1, true, card.Options{Location: p.To.Location, Language: p.To.Language}))
	return utf8.RuneCountInString(strings.Join(all, "\n")) <= maxItem
}

// HidesAction is [connectors.BurstSender].
func (c *Connector) HidesAction(p connectors.Prompt) bool {
	m := fit(p)
	return m.Unseen || m.TooBig
}

// listed renders a list: each request whole if it is short, otherwise in a row, and how to answer.
func (c *Connector) listed(b connectors.Burst) string {
	o := card.Options{Now: c.now(), Location: b.To.Location, Language: b.To.Language, Self: b.To.Name}
	rows := written([]card.Part{card.ListTitle(b, o)})
	for i, it := range b.Items {
		rows = append(rows, "")
		rows = append(rows, written(card.Listed(it.Prompt, i, c.ShowsWhole(it.Prompt), o))...)
	}
	pending := func(it connectors.Item) bool { return it.Request.State == permissions.Pending && !it.Locked }
	if !slices.ContainsFunc(b.Items, pending) {
		return strings.Join(rows, "\n")
	}
	once, how := permissions.Allow(permissions.Once), []string{o.Text("a number opens its request")}
	if len(b.ForAll(permissions.Deny)) > 0 {
		how = append(how, o.Sprintf("*deny all %d*", len(b.Items)))
	}
	if unseen := b.Unseen(); len(unseen) > 0 {
		how = append(how, o.Sprintf("once %s is open *allow all %d*", permissions.Positions(unseen), len(b.Items)))
	} else if len(b.ForAll(once)) > 0 {
		how = append(how, o.Sprintf("*allow all %d*", len(b.Items)))
	}
	alone := func(it connectors.Item) bool {
		return (it.Request.HighRisk || it.Hidden) && it.Request.State == permissions.Pending
	}
	rows = append(rows, "", o.Sprintf("Reply to this message: %s", strings.Join(how, " · ")))
	if slices.ContainsFunc(b.Items, alone) {
		rows = append(rows, o.Text("What is of high risk, or in a file alone, is never among what is allowed so."))
	}
	return strings.Join(rows, "\n")
}

// maxAsked limits what a settled card repeats of what was asked, in characters.
const maxAsked = 80

// asked is who wanted what, in one line.
func asked(parts []card.Part) string {
	text := ours(parts[0], false)
	if len(parts) > 1 && (parts[1].Role == card.Action && parts[1].Lang != "json" && parts[1].Lang != "diff" || parts[1].Role == card.Words) {
		first, _, more := strings.Cut(parts[1].Text, "\n")
		if short := permissions.Brief(first, maxAsked); more && short == first {
			first += " …"
		} else {
			first = short
		}
		text += ": `" + fenced(first) + "`"
	}
	return text
}

// fit renders the card, which never changes during its request's life, and neither does its document.
func fit(p connectors.Prompt) card.Message {
	p.Request.Votes, p.Request.Quorum, p.Request.LeftAt = nil, 1, time.Time{}
	return card.Fit(p, card.Options{Location: p.To.Location, Language: p.To.Language}, card.Limits{
		Text: maxText, Unit: card.Characters, Rows: maxDetails, Changes: maxChanges, Document: maxDocument,
	})
}

// hidden reports whether nothing of what is to be allowed is on the card: it is in the file alone.
func (m outgoing) hidden() bool { return m.Unseen && !m.TooBig }

// head is a pending request's state in a few words; empty if there is nothing to say.
func head(p connectors.Prompt, now time.Time) string {
	r := p.Request
	told := ours(card.Outcome(r, card.Options{Now: now, Location: p.To.Location, Language: p.To.Language, Self: p.To.Name}), false)
	var rows []string
	switch {
	case p.Locked && p.To.Name == "":
		rows = append(rows, p.To.Language.Text("This can no longer be answered."))
	case p.Locked:
		rows = append(rows, p.To.Language.Text("You are locked, and nothing from this account counts."))
	case r.Quorum > 1 && len(r.Votes) == 0:
		rows = append(rows, p.To.Language.Sprintf("%s · it takes %d people", told, r.Quorum))
	case r.Quorum > 1, len(r.Votes) > 0, !r.LeftAt.IsZero():
		rows = append(rows, told)
	}
	if others := card.Others(p, p.To.Language); others != "" {
		rows = append(rows, escapeText(permissions.Brief(others, maxLead)))
	}
	return strings.Join(rows, "\n")
}

// ours is a part of our own, with names as code, and the rest in bold if it is the title.
func ours(part card.Part, title bool) string {
	var b strings.Builder
	for text, name := range part.Spans {
		switch words := strings.TrimSpace(text); {
		case name:
			b.WriteString("`" + fenced(text) + "`")
		case title && words != "":
			before, after, _ := strings.Cut(text, words)
			if sign, rest, found := strings.Cut(words, " "); found && utf8.RuneCountInString(sign) == 1 && sign > "\x7f" {
				before, words = before+sign+" ", rest
			}
			b.WriteString(before + "*" + escapeLists(escapeText(words)) + "*" + after)
		default:
			b.WriteString(escapeText(text))
		}
	}
	return escapeLists(b.String())
}

// spelled is a text of ours, with names marked.
func spelled(text string) string {
	return ours(card.Part{Text: permissions.Brief(text, maxWords)}, false)
}

// renderNotice renders a notice; empty if there is nothing to say.
func renderNotice(n connectors.Notice, now time.Time) string {
	o := card.Options{Now: now, Location: n.To.Location, Language: n.To.Language, Self: n.To.Name}
	return strings.Join(wire.Map(card.NoticeParts(n, o), func(p card.Part) string {
		if p.Role == card.Words {
			return block(p.Text)
		}
		return ours(p, false)
	}), "\n")
}

// block is an action as a block. The apps take no fence that begins with a space.
func block(text string) string {
	if strings.HasPrefix(text, " ") {
		text = `\u{20}` + text[1:]
	}
	return fence + fenced(text) + fence
}

// fenced escapes a text for use inside a fence.
func fenced(text string) string { return card.Isolate(strings.ReplaceAll(text, "`", `\u{60}`)) }

// lists matches what begins a list, a quote or a heading at the start of a row.
var lists = regexp.MustCompile(`(?m)^( *)(>|(?:[#•-]+|\d+[.)])(?: |$))`)

// escapeLists has no row that begins one of these.
func escapeLists(text string) string { return lists.ReplaceAllString(text, "${1}"+joiner+"${2}") }

// joiner is the invisible word joiner, which counts as a letter.
const joiner = "\u2060"

// formats disables WhatsApp's formatting characters by a word joiner after each.
var formats = strings.NewReplacer("*", "*"+joiner, "_", "_"+joiner, "~", "~"+joiner, "`", "`"+joiner)

// asWritten removes what a person may have copied from our own texts.
func asWritten(text string) string {
	return strings.NewReplacer(joiner, "", card.FSI, "", card.PDI, "").Replace(text)
}

// escapeText escapes and clips a text for use outside of fences.
func escapeText(text string) string {
	return formats.Replace(card.Isolate(permissions.Brief(text, maxWords)))
}

// howTo says how p can be answered here: in a reply to its card, or in words that name it.
func howTo(p connectors.Prompt, m card.Message) string {
	var how i18n.Phrase
	switch r := p.Request; {
	case r.OnlyTitle && r.Offers(permissions.Deny):
		how = "Reply to this message: *no*"
	case r.OnlyTitle && r.Offers(permissions.Interrupt):
		how = "Reply to this message: *interrupt*"
	case r.OnlyTitle:
		return ""
	case m.TooBig:
		how = "Reply to this message: *no*. What cannot be shown whole cannot be allowed here."
	case r.Kind == permissions.KindClarification:
		how = "Reply to this message with a number"
	case r.Offers(permissions.Continue):
		how = "Reply to this message: *continue* or *interrupt*"
	case r.HighRisk && m.Unseen:
		return p.To.Language.Sprintf("To allow it read the file above and reply to the file: *YES %s RUN* · to deny it: *NO %s*", p.Code, p.Code)
	case r.HighRisk:
		return p.To.Language.Sprintf("To allow it write: *YES %s RUN* · to deny it: *NO %s*", p.Code, p.Code)
	case m.Unseen:
		how = "Read the file above, then reply to the file: *yes* or *no*"
	default:
		how = "Reply to this message: *yes* or *no*"
	}
	return p.To.Language.Text(how)
}
