package reply

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Message is something that a person sent to a chat.
type Message struct {
	Text     string
	Quotes   string    // the code of the request whose card this replies to or reacts on; empty: none
	Reaction bool      // Text is a reaction's emoji, empty when it was taken back
	Console  bool      // typed at a prompt, where a code is by itself the second yes of high risk
	Thumbs   bool      // the channel hears reactions, so hints may name them
	At       time.Time // when it was sent
}

// Open is a request that waits for the person who wrote.
type Open struct {
	Request permissions.Request
	Code    string
	// ShownAt is when its card was shown, by the clock that stamps messages (in whole seconds where that counts so);
	// zero: not yet. A message from before decides nothing about it.
	ShownAt time.Time
}

// Said is what a message says. Without decisions, nothing was decided.
type Said struct {
	// Decisions are to be handed on as they are, each with From, and with a key of its own where there are keys. Their
	// requests and codes are set, and their answers are what the requests take.
	Decisions []connectors.Decision
	// Say is for the person: why nothing was decided, and what would be right; with PassOn, that the message goes to the
	// agent, which is not to be said where there is none.
	Say string
	// Unknown are codes, in capitals, of nothing that waits for the person. Whoever knows more says what became of them.
	Unknown []string
	// Guesses is how many of Unknown were typed, and are counted by a [Guard]; the code of a quoted card is no guess.
	Guesses int
	// Unseen are codes of requests that were to be decided and have not been shown yet.
	Unseen []string
	// Bare says that the message is an answer that names no request.
	Bare bool
	// PassOn says that the message is no answer: it is for an agent, or with Command for whoever knows commands.
	PassOn  bool
	Command bool // the message begins with a slash
}

// Read says what a message means to a person for whom open waits, each request once. It is pure and total. It never
// allows anything by a message that is not wholly an allowance, and decides about all the requests that a message names
// or about none.
func Read(m Message, open []Open) Said {
	c, text := chat{m, open}, strings.TrimSpace(m.Text)
	switch {
	case m.Reaction:
		return c.reaction(text)
	case strings.HasPrefix(text, "/"):
		return Said{PassOn: true, Command: true}
	}
	s, ok := shape(text)
	switch quoted := capitals(m.Quotes); {
	case !ok || c.isTalk(s):
		return c.other(text)
	case len(s.codes) > 0 && quoted != "" && !slices.Equal(s.codes, []string{quoted}):
		return Said{Say: "Nothing was decided: you replied to the card of " + quoted + " and named another code."}
	case len(s.codes) > 0:
		return c.judge(s)
	case quoted != "" && s.single():
		s.codes, s.quoted = []string{quoted}, true
		return c.judge(s)
	}
	return c.bare()
}

// chat is a message and what waits for its author.
type chat struct {
	Message
	open []Open
}

// reaction reads an emoji put on a message. A thumb on a card is a single word; anything else is nobody's business.
func (c chat) reaction(text string) Said {
	a, ok := thumb(text)
	quoted := capitals(c.Quotes)
	o, waits := find(c.open, quoted)
	switch {
	case ok && quoted != "":
		return c.judge(sentence{act: a, codes: []string{quoted}, quoted: true})
	case ok && len(c.open) > 0:
		return c.bare()
	case waits && text == "":
		return Said{Say: "Nothing was changed: taking a reaction back undoes nothing. " + c.hint(o) + "."}
	case waits:
		return Said{Say: "Nothing was decided. " + c.hint(o) + "."}
	}
	return Said{}
}

// isTalk tells of what only begins like an answer, as in "Great idea", and of a pause's words while no pause waits.
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
	number := s.pick != "" && !strings.ContainsFunc(s.pick, func(c rune) bool { return c < '0' || c > '9' })
	return !waits && !number && !stands(s.first)
}

// offered tells whether something that waits offers an answer.
func (c chat) offered(a permissions.Answer) bool {
	return slices.ContainsFunc(c.open, func(o Open) bool { return o.Request.Offers(a) })
}

// other is what to do with a message that is no answer. One that names what waits is not passed on: its code is for
// people only. Nor is one that may have been meant as an answer.
func (c chat) other(text string) Said {
	if len(c.open) == 0 {
		return Said{PassOn: true}
	}
	if named := c.mentioned(text); len(named) > 0 {
		say := "Nothing was decided: an answer is a whole message and nothing else."
		for _, o := range named[:min(len(named), mostHelped)] {
			say += " " + c.help(o) + "."
		}
		return Said{Say: say}
	}
	if c.isAlmost(text) {
		return c.bare()
	}
	return Said{
		PassOn: true,
		Say: "This goes to the agent. It decides nothing and refuses nothing: " + waiting(c.open, "still ") + ". " +
			c.hint(c.open[0]) + ".",
	}
}

// bare answers an answer that names no request.
func (c chat) bare() Said {
	if len(c.open) == 0 {
		return Said{PassOn: true}
	}
	say := "Nothing was decided: an answer names its request; " + waiting(c.open, "") + ". "
	if o, waits := find(c.open, capitals(c.Quotes)); waits {
		return Said{Bare: true, Say: say + c.help(o) + "."}
	}
	return Said{Bare: true, Say: say + c.hint(c.open[0]) + "."}
}

// mentioned are the requests whose codes are in a text, wherever.
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

// isAlmost tells of nothing but yes and no, however often and with whatever marks, and of an option without its code.
func (c chat) isAlmost(text string) bool {
	words := strings.FieldsFunc(fold(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) })
	answer := len(words) > 0 || strings.Contains(text, thumbUp) || strings.Contains(text, thumbDown)
	for _, word := range words {
		answer = answer && (isYes(word) || isNo(word) || word == "y" || word == "n")
	}
	return answer || slices.ContainsFunc(c.open, func(o Open) bool { return len(Chosen(text, o.Request)) > 0 })
}

// find is the request that has a code, given in capitals. A code that two of them have names neither.
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
	// mostWrong is how many wrong codes within wrongTime mute a person's text answers for muteTime.
	mostWrong = 10
	wrongTime = 10 * time.Minute
	muteTime  = time.Minute
)

// Guard keeps codes from being guessed: it counts one person's wrong codes, and says when their text answers are not to
// be read. The zero Guard has counted none. It has no clock; it is not safe for concurrent use, so whoever shares it
// between goroutines holds a lock around each call.
type Guard struct {
	wrong []time.Time
	until time.Time
}

// Wrong counts n wrong codes at a time.
func (g *Guard) Wrong(n int, at time.Time) {
	g.wrong = slices.DeleteFunc(g.wrong, func(t time.Time) bool { return at.Sub(t) >= wrongTime })
	for range min(n, mostWrong) {
		g.wrong = append(g.wrong, at)
	}
	if len(g.wrong) >= mostWrong {
		g.wrong, g.until = nil, at.Add(muteTime)
	}
}

// Muted is for how long from at the person's text answers are not read, 0 if they are. A clock that was set back by
// more than a minute ends it.
func (g *Guard) Muted(at time.Time) time.Duration {
	left := g.until.Sub(at)
	if left <= 0 || left > 2*muteTime {
		return 0
	}
	return min(left, muteTime)
}

// SayMuted tells a person for how long their text answers are not read.
func SayMuted(left time.Duration) string {
	again := permissions.SayDuration(left)
	return "Nothing was decided: too many wrong codes. Text answers are read again in " + again + "."
}
