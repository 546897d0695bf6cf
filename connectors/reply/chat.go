package reply

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Message is what a person sent to a chat.
type Message struct {
	Text     string
	Language i18n.Language // of the reply; what is read does not depend on it
	Quotes   string        // code of the request whose card this replies or reacts to; empty: none
	Reaction bool          // Text is an emoji, empty if it was removed
	Console  bool          // typed at a prompt, where a code alone confirms high risk
	Thumbs   bool          // the channel receives reactions, so hints may mention them
	At       time.Time     // when it was sent
}

// Open is a request that is pending for the author.
type Open struct {
	Request permissions.Request
	Code    string
	// ShownAt is when its card was shown, by the clock that dates messages (in whole seconds if that does); zero: not yet.
	// An earlier message decides nothing about it.
	ShownAt time.Time
	Voted   bool // by the author
}

// Result is the meaning of a message. Without decisions, nothing was decided.
type Result struct {
	// Decisions are to be submitted as they are, with From and, where there are keys, a key each. Their requests and codes
	// are set, and their requests accept their answers.
	Decisions []connectors.Decision
	// Reply is the reply: why nothing was decided, and what would be right. With PassOn it says that the message goes to the
	// agent, and is only for people who have one.
	Reply string
	// Unknown are codes, in capitals, that are not pending for the person. The caller may know more about them.
	Unknown []string
	// Guesses is how many of Unknown were typed, for a [Guard]; the code of a quoted card is not a guess.
	Guesses int
	// Unseen are codes of requests that were named but not shown yet.
	Unseen []string
	// Bare is set if the message is an answer without a request.
	Bare bool
	// PassOn is set if the message is not an answer: it is for an agent or, with Command, a command.
	PassOn  bool
	Command bool // the message begins with a slash
}

// Read parses a message of a person with pending requests, each of which is in open once. It is pure and total. It allows
// nothing unless the whole message is an approval, and decides about all requests that it names or about none.
func Read(m Message, open []Open) Result {
	c, text := chat{m, open}, strings.TrimSpace(m.Text)
	switch {
	case m.Reaction:
		return c.reaction(text)
	case strings.HasPrefix(text, "/"):
		return Result{PassOn: true, Command: true}
	}
	if s, ok := c.replied(text); ok {
		return c.judge(s)
	}
	s, ok := shape(text)
	switch quoted := capitals(m.Quotes); {
	case !ok || c.isTalk(s):
		return c.notAnAnswer(text)
	case quoted != "" && !slices.Equal(s.codes, []string{quoted}):
		return Result{Reply: c.Language.Sprintf("Nothing was decided: you replied to the card of %s and named another code.", quoted)}
	case len(s.codes) > 0:
		return c.judge(s)
	}
	return c.bareReply()
}

// replied parses a reply to a card that leaves its code out: everything that may follow the code counts.
func (c chat) replied(text string) (s sentence, ok bool) {
	quoted := capitals(c.Quotes)
	if quoted == "" {
		return sentence{}, false
	}
	o, waits := find(c.open, quoted)
	if waits && o.Request.Kind == permissions.KindClarification {
		if s, ok = shape(quoted + " " + text); ok && (len(ChosenOptions(s.pick, o.Request)) > 0 || s.own != "") {
			s.quoted = true
			return s, true
		}
	}
	s, ok = shape(text)
	words := split(text)
	if scope, used := readScope(words); !ok && used > 0 && used == len(words) {
		s, ok = sentence{act: allows, scope: scope}, true
	} else if word := plain(text); !ok && !waits && isNumber(word) { // too late
		s, ok = sentence{act: picks}, true
	}
	if !ok || len(s.codes) > 0 {
		return sentence{}, false
	}
	s.codes, s.quoted = []string{quoted}, true
	return s, true
}

// ReadListReply reads a reply to a list of requests: "allow all 4", "deny all 4" in any language and with the words in any order (n is 0
// without the number), or the number of a request, for which all is empty. Everything else is for [Read].
func ReadListReply(text string) (all permissions.Answer, n int, ok bool) {
	words := strings.Fields(fold(plain(text)))
	if at := slices.IndexFunc(words, func(word string) bool { return isNumber(word) && len(word) < 4 }); at >= 0 {
		n, _ = strconv.Atoi(words[at])
		if words = slices.Delete(words, at, at+1); len(words) == 0 {
			return "", n, true
		}
	}
	switch {
	case len(words) == 1 && n == 0 && (isYes(words[0]) || isNo(words[0])):
		return "", 0, true
	case len(words) != 2:
		return "", 0, false
	case isOneOf(allWords, words[0]):
		slices.Reverse(words)
	}
	switch {
	case !isOneOf(allWords, words[1]):
		return "", 0, false
	case isYes(words[0]):
		return permissions.Allow(permissions.Once), n, true
	}
	return permissions.Deny, n, isNo(words[0])
}

func isNumber(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}

// chat is a message and what is pending for its author.
type chat struct {
	Message
	open []Open
}

// reaction reads an emoji on a message. A thumb on a card is a single word; other emojis are ignored.
func (c chat) reaction(text string) Result {
	a, ok := thumb(text)
	quoted := capitals(c.Quotes)
	o, waits := find(c.open, quoted)
	switch {
	case ok && quoted != "":
		return c.judge(sentence{act: a, codes: []string{quoted}, quoted: true})
	case ok && len(c.open) > 0:
		return c.bareReply()
	case waits && o.Voted:
		return Result{Reply: StillCounts(o.Request, o.Code, c.Language)}
	case waits && text == "":
		return Result{Reply: c.Language.Sprintf("Nothing was changed: taking a reaction back undoes nothing. %s.", c.hint(o))}
	case waits:
		return Result{Reply: c.Language.Sprintf("Nothing was decided. %s.", c.hint(o))}
	}
	return Result{}
}

// StillCounts tells a person who takes a vote back or changes it that it counts, and how to stop the request.
func StillCounts(r permissions.Request, code string, in i18n.Language) string {
	say := in.Sprintf("Your answer to %s still counts: taking it back or changing it undoes nothing.", code)
	if r.Offers(permissions.Deny) {
		say += " " + in.Sprintf("To stop the request, you or anybody else who is asked writes %s.", chat{Message: Message{Language: in}}.no(code))
	}
	return say
}

// isTalk reports whether a message only begins like an answer ("Great idea"), or has a pause's words without a pause.
func (c chat) isTalk(s sentence) bool {
	switch {
	case s.act == resumes && len(s.codes) == 0:
		return !c.offered(permissions.Continue)
	case s.act == interrupts && len(s.codes) == 0:
		return !c.offered(permissions.Interrupt)
	case s.act == answers && len(s.codes) == 0:
		return !slices.ContainsFunc(c.open, func(o Open) bool { return o.Request.TakesWords() })
	case s.act != picks && s.act != answers:
		return false
	}
	_, waits := find(c.open, s.codes[0])
	return !waits && !isNumber(plain(s.pick)) && !looksLikeCode(s.first)
}

func (c chat) offered(a permissions.Answer) bool {
	return slices.ContainsFunc(c.open, func(o Open) bool { return o.Request.Offers(a) })
}

// notAnAnswer handles a message that is not an answer. It is not passed on if it names a pending request, because codes are for
// people only, or if it may have been meant as an answer.
func (c chat) notAnAnswer(text string) Result {
	if len(c.open) == 0 {
		return Result{PassOn: true}
	}
	if named := c.mentioned(text); len(named) > 0 {
		say := c.Language.Text(notWhole)
		for _, o := range named[:min(len(named), maxHelped)] {
			say += " " + c.help(o) + "."
		}
		return Result{Reply: say}
	}
	if c.isAlmost(text) {
		return c.bareReply()
	}
	return Result{
		PassOn: true,
		Reply: c.Language.Sprintf("This goes to the agent. It decides nothing and refuses nothing: %s. %s.", c.waiting(
			"%d request still waits: %s|%d requests still wait: %s"), c.hint(c.open[0])),
	}
}

const notWhole i18n.Phrase = "Nothing was decided: an answer is a whole message and nothing else."

// bareReply is the reply to an answer that names no request, or to what is nearly an answer to the quoted card.
func (c chat) bareReply() Result {
	if len(c.open) == 0 {
		return Result{PassOn: true}
	}
	if o, waits := find(c.open, capitals(c.Quotes)); waits {
		return Result{Bare: true, Reply: c.Language.Text(notWhole) + " " + c.help(o) + "."}
	}
	waiting := c.waiting("%d request waits: %s|%d requests wait: %s")
	say := c.Language.Sprintf("Nothing was decided: an answer names its request; %s.", waiting)
	return Result{Bare: true, Reply: say + " " + c.hint(c.open[0]) + "."}
}

// mentioned returns the requests whose codes occur anywhere in a text.
func (c chat) mentioned(text string) (named []Open) {
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return !isPlain(c) }) {
		words[capitals(word)] = true
	}
	for _, o := range c.open {
		if words[capitals(o.Code)] {
			named = append(named, o)
		}
	}
	return named
}

// isAlmost reports whether a text is only yes and no, repeated or punctuated, or an option without its code.
func (c chat) isAlmost(text string) bool {
	words := strings.FieldsFunc(fold(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) })
	answer := len(words) > 0 || strings.Contains(text, thumbUp) || strings.Contains(text, thumbDown)
	for _, word := range words {
		answer = answer && (isYes(word) || isNo(word) || word == "y" || word == "j" || word == "n")
	}
	return answer || slices.ContainsFunc(c.open, func(o Open) bool { return len(ChosenOptions(text, o.Request)) > 0 })
}

// find returns the request with a code, given in capitals. A code of two requests finds neither.
func find(open []Open, code string) (o Open, ok bool) {
	n := 0
	for _, each := range open {
		if code != "" && capitals(each.Code) == code {
			o, n = each, n+1
		}
	}
	return o, n == 1
}

const (
	// maxWrong wrong codes within wrongTime mute a person's text answers for muteTime.
	maxWrong  = 10
	wrongTime = 10 * time.Minute
	muteTime  = time.Minute
)

// Guard prevents the guessing of codes: it counts one person's wrong codes and mutes their text answers. The zero Guard is
// ready. It has no clock and is not safe for concurrent use.
type Guard struct {
	wrong []time.Time
	until time.Time
}

// Wrong counts n wrong codes.
func (g *Guard) Wrong(n int, at time.Time) {
	g.wrong = slices.DeleteFunc(g.wrong, func(t time.Time) bool { return at.Sub(t) >= wrongTime })
	for range min(n, maxWrong) {
		g.wrong = append(g.wrong, at)
	}
	if len(g.wrong) >= maxWrong {
		g.wrong, g.until = nil, at.Add(muteTime)
	}
}

// Muted is how long from at the person's text answers are ignored, or 0. A clock set back by over a minute ends it.
func (g *Guard) Muted(at time.Time) time.Duration {
	left := g.until.Sub(at)
	if left <= 0 || left > 2*muteTime {
		return 0
	}
	return min(left, muteTime)
}

// SayMuted tells a person how long their text answers are ignored.
func SayMuted(left time.Duration, in i18n.Language) string {
	return in.Sprintf("Nothing was decided: too many wrong codes. Text answers are read again in %s.", in.Duration(left))
}
