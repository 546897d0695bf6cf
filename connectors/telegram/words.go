package telegram

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// maxToast limits the answer to a tap in characters (Bot API, answerCallbackQuery).
	maxToast = 200
	// maxTools limits the tools' names on a button in UTF-16 code units, to leave room for what it allows.
	maxTools = 36
	// maxFirst limits the first name if it stands for several.
	maxFirst = maxTools - len(" and 49 more tools")
)

// notRunning is above a card while the daemon is stopped.
const notRunning = "⏸ daycared is not running just now: the buttons come back with it, and the question stands." +
	" If it starts from a backup instead, this card counts no more."

// lockedOut is above a card whose person is locked, notAnswered above that of a person who is no longer configured.
const (
	lockedOut   = "🔒 You are locked: nothing from this account counts until somebody unlocks you."
	notAnswered = "🔒 This card can no longer be answered."
)

func clip(text string) string { return clipTo(text, maxText) }

// labelOf is a button's label. A tool's name, which is foreign, is quoted unless it is plain, and shortened first.
func labelOf(r permissions.Request, o permissions.Option, in i18n.Language) string {
	s, allows := o.ID.Scope()
	answered := slices.ContainsFunc(r.Calls, func(c permissions.Call) bool { return c.Answer != "" })
	switch k := o.ID.SuggestionNumber(); {
	case len(r.Calls) > 0 && o.ID == permissions.Deny && answered:
		return in.Text("Deny the rest")
	case len(r.Calls) > 0 && s == permissions.Once && answered:
		return in.Text("Allow the rest")
	case len(r.Calls) > 0 && o.ID == permissions.Deny:
		return in.Text("Deny all")
	case len(r.Calls) > 0 && s == permissions.Once:
		return in.Text("Allow all")
	case k > 0 && k <= len(r.Choices):
		return in.Sprintf("Allow once, and %s", visible(r.Choices[k-1]))
	case allows && r.Kind == permissions.KindTool && s.NamesTools() &&
		strings.HasPrefix(o.Label, "Allow "+strings.Join(r.ToolNames(), " and ")):
		return r.Label(s, in, toolsOf(r.ToolNames(), in))
	case allows && s != permissions.Once && in != i18n.English:
		return r.Label(s, in, toolsOf(r.ToolNames(), in))
	}
	return in.Text(i18n.Phrase(visible(o.Label)))
}

// toolsOf lists the tools' names within a button's room.
func toolsOf(names []string, in i18n.Language) string {
	words := wire.Map(names, func(name string) string { return toolOf(name, maxTools) })
	switch all := strings.Join(words, in.Text(" and ")); {
	case len(words) == 1 || card.UTF16.Of(all) <= maxTools:
		return all
	default:
		return in.Plural(len(words)-1, "%s and %d more tool|%s and %d more tools", toolOf(names[0], maxFirst), len(words)-1)
	}
}

func toolOf(name string, most int) string {
	plain := !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("._-:/@+#", c)
	})
	if plain {
		return clipTo(name, most)
	}
	return `"` + clipTo(strings.ReplaceAll(visible(name), `"`, `\u{22}`), most-2) + `"`
}

// reallyOf is what the second confirmation allows, short enough for half a row of a phone.
func reallyOf(r permissions.Request, first press, in i18n.Language) string {
	s, _ := first.Answer.Scope()
	answered := slices.ContainsFunc(r.Calls, func(c permissions.Call) bool { return c.Answer != "" })
	switch {
	case first.Call != 0:
		return in.Sprintf("allow #%d", first.Call)
	case s != permissions.Once:
		return s.Brief(in)
	case answered:
		return in.Text("allow the rest")
	case len(r.Calls) > 0:
		return in.Text("allow all")
	case r.Kind == permissions.KindPause:
		return in.Text("approve")
	}
	return in.Text("allow once")
}

// toastDone says what an accepted tap did: the outcome, or the state so far.
func toastDone(r permissions.Request, in i18n.Language) string {
	return clipTo(card.Isolate(card.Settled(r, card.Options{Self: r.DecidedBy, Language: in})), maxToast)
}

// toastRefused says why a tap was not accepted.
func toastRefused(refusal *permissions.Refusal, in i18n.Language) string {
	switch refusal.Code {
	case permissions.CodeUnknown:
		return in.Text(toastUnknown)
	case permissions.CodeReally:
		return in.Text(toastReally)
	}
	return clipTo(visible(refusal.TextIn(in)), maxToast)
}

// toastGiven answers a button whose answer the person has already given.
func toastGiven(a permissions.Answer) i18n.Phrase {
	if _, allows := a.Scope(); allows {
		return "✅ You allowed this."
	}
	if a == permissions.Deny {
		return "⛔ You denied this."
	}
	return "✅ You answered this."
}

const (
	// toastUnknown answers an unknown button.
	toastUnknown = "This button belongs to nothing that daycared knows. Nothing was changed."
	// toastBroken answers a tap that could not be stored.
	toastBroken = "This could not be stored just now. Nothing was changed; it is tried again by itself."
	// toastReally answers the first confirmation of high risk.
	toastReally = "High risk: nothing is allowed yet. It takes a second yes, at the right below the card."
	// toastUnread answers what would allow an action of which nothing is on the card, from a person who has not read its file.
	toastUnread = "Nothing is allowed yet: first read the file above the card, then press “I have read the file” yourself."
	// toastRule answers the first confirmation of a rule.
	toastRule = "Nothing is allowed yet. The rule is shown below the card; it takes a second yes, at the right below the card."
	// toastResume answers the first of two steps that end a stop, toastStay the way back.
	toastResume = "Nothing is resumed yet. It takes a second yes, at the right below the message."
	toastStay   = "Everything stays stopped."
	// stopAgain answers a button of an earlier stop.
	stopAgain = "▶️ That stop is over, but everything was stopped again since. /resume ends that."
	// toastReason and toastOther answer the buttons that ask for a reason and for an answer in the person's own words.
	toastReason = "Nothing is denied yet: write your reason as a reply to the question below."
	toastOther  = "Nothing is answered yet: write your answer as a reply to the question below."
)

// question asks for the words that an answer needs. Its reply is matched by the request's code at the question's end.
type question struct {
	answer      permissions.Answer
	before      i18n.Phrase // the text before the code
	placeholder i18n.Phrase
}

var (
	whyNot     = question{permissions.Deny, "Reply to this message with your reason · ", "why not"}
	inOwnWords = question{permissions.Other, "Reply to this message with your answer · ", "your answer"}
)

func (q question) text(code string, in i18n.Language) string { return in.Text(q.before) + code }

// asked is the code in a question for words, and the answer that they are for. The caller checks that the question is ours.
func asked(text string) (code string, answer permissions.Answer, ok bool) {
	for _, q := range []question{whyNot, inOwnWords} {
		for _, l := range i18n.Languages() {
			code, found := strings.CutPrefix(text, l.Text(q.before))
			if _, known := (permissions.Coder{}).Decode(code); found && known {
				return code, q.answer, true
			}
		}
	}
	return "", "", false
}

// of is the question in a group, which names and mentions its recipient.
func (q question) of(name, code string, u user, in i18n.Language) (text string, calls []mention) {
	name = visible(name)
	called := mention{entity: entity{Type: "text_mention", Length: card.UTF16.Of(name)}}
	called.User.ID, called.User.FirstName = u.ID, cmp.Or(u.FirstName, name)
	return name + ": " + q.text(code, in), []mention{called}
}

// askedOf reads our question in a group: whom it is for, its request's code, and the answer that the words are for.
func askedOf(text string) (name, code string, answer permissions.Answer, ok bool) {
	name, rest, found := strings.Cut(text, ": ")
	code, answer, ok = asked(rest)
	return name, code, answer, ok && found && !strings.Contains(name, "\n") // cards have line breaks before any ": "
}

// commandsElsewhere answers a command in a group.
const commandsElsewhere = "Commands are for your own chat with me; here you answer cards, by their buttons or in a reply."

// codeOfCard is the code at the start of a card's last row or, on a card of earlier versions, between dashes; or empty.
func codeOfCard(text string) string {
	rows := strings.Split(strings.TrimSpace(text), "\n")
	for _, l := range i18n.Languages() {
		code, _, _ := strings.Cut(rows[len(rows)-1], l.Sprintf(card.LastRow, "", ""))
		if _, known := (permissions.Coder{}).Decode(code); known && code == strings.ToUpper(code) {
			return code
		}
	}
	for _, row := range rows {
		code, begins := strings.CutPrefix(strings.TrimSpace(row), "── ")
		code, ends := strings.CutSuffix(code, " ──")
		if _, known := (permissions.Coder{}).Decode(code); begins && ends && known {
			return code
		}
	}
	return ""
}

// toAnswer begins a reminder in a group: who has not answered.
func toAnswer(waiting []connectors.Prompt) string {
	var names []string
	for _, p := range waiting {
		for _, name := range p.Request.Asked {
			voted := slices.ContainsFunc(p.Request.Votes, func(v permissions.Vote) bool { return v.By == name && v.Call == 0 })
			if !voted && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return "⏰ " + namesOf(names)
}

// maxNames limits a list of names in UTF-16 code units.
const maxNames = 300

func namesOf(names []string) string { return clipTo(visible(strings.Join(names, ", ")), maxNames) }

// shownAgain replaces a card that was sent again.
func shownAgain(code string, in i18n.Language) string {
	return in.Sprintf("⬇️ %s is shown again below; please answer there.", visible(code))
}

// askedElsewhere replaces a card in an account that is no longer the person's.
func askedElsewhere(name string, in i18n.Language) string {
	return in.Sprintf("%s is asked at another account now.", visible(name))
}

// afterGap tells a person with pending requests that Telegram may have dropped their taps.
func afterGap(gone time.Duration, in i18n.Language) string {
	return in.Sprintf("daycared had no contact with Telegram for %s. What still waits for you is shown again below. If you pressed "+
		"something and the card has not changed, press again.", in.Duration(gone.Round(time.Minute)))
}

// unknownSenderReply answers an unknown account.
func unknownSenderReply(id int64, in i18n.Language) string {
	return in.Sprintf("Hello! This bot asks people for permission. It does not know you, so it has nothing to ask you.\n"+
		"Your numeric Telegram id is %d. If you should be asked, give it to whoever runs daycared here.", id)
}

func account(id connectors.Identity, in i18n.Language) string {
	return in.Sprintf("Your numeric Telegram id is %s.", id.Address)
}

// forwarded answers foreign words.
const forwarded = "Nothing was decided: a message that was forwarded, or that another bot wrote, holds somebody else's words. " +
	"Please write your own."

// help explains how to answer, and the commands.
const help = `daycared asks you here when an agent needs a permission. Press a button below the card, or write:

yes K7F3Q · allow once
yes K7F3Q session · or 15m: allow for longer
no K7F3Q because … · deny, with a reason
K7F3Q 2 · choose an option
K7F3Q other: … · answer in your own words
YES K7F3Q RUN · allow what is high risk

In a reply to the card the code is left out; a yes or no by itself never counts.

/pending · what waits for your answer
/grants · what you have allowed for longer than once
/revoke ID · take that back, or an approval that was not used
/stop all · cancel everything, and refuse all that is new
/resume · go on after that
/quiet AGENT 1h · make its cards silent, and tell then what it asked; /quiet AGENT off ends that
/trust AGENT 30m · have it do unasked what stays in its folder, after a second step; a denial ends that
/stop CODE · deny that, and refuse what its agent asks until /resume AGENT
/lock NAME · have nothing count from their accounts, as when a phone is stolen; without a name, from yours
/unlock NAME · end that; it takes two people, or the operator
/away until Monday to NAME · others are asked instead, as far as a route names any; /away off ends that
/whoami · who you are here
/help · this

What else you write goes to your agent, a reply to the one that wrote the message.

/agents · your agents, and which one reads you
/use NAME · write to another one
/status · what it does, and what waits
/new · begin a new session with it
/stop · stop what it works on
/quit · end its session`
