package reply

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// act is what a message wants done.
type act int

const (
	allows act = iota + 1
	denies
	resumes
	interrupts
	picks   // an option or the person's own words, unless it is chat that happens to begin like a code
	answers // in the person's own words
)

// maxCodes is how many requests one message may name.
const maxCodes = 20

// sentence is a message of a known shape, before it is compared with what is pending.
type sentence struct {
	act    act
	codes  []string // in capitals
	scope  string   // in small letters; empty: none
	call   int      // 0: none
	run    bool
	rule   string // the name of the rule that is given
	reason string
	pick   string // may name an option: everything after a leading code, or own with its keyword
	own    string // the person's own words, as typed
	first  string // the first word, as typed, or a code in second place
	quoted bool   // a quoted card replaces the code
}

// shape parses a whole message; ok is false for an unknown shape. Only a reason and own words may have several lines.
func shape(text string) (s sentence, ok bool) {
	if a, ok := thumb(text); ok {
		return sentence{act: a}, true
	}
	words, strange := split(text), func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }
	if len(words) == 0 || !utf8.ValidString(text) || strings.ContainsFunc(text, strange) {
		return sentence{}, false
	}
	switch first := fold(plain(words[0])); {
	case isYes(first):
		s, ok = yesShape(words[1:])
	case isNo(first):
		s, ok = noShape(words[1:])
	case isOneOf(alwaysWords, first):
		s, ok = alwaysShape(words[1:])
	case isOneOf(continueWords, first):
		s, ok = pauseShape(resumes, words[1:])
	case isOneOf(interruptWords, first):
		s, ok = pauseShape(interrupts, words[1:])
	case isCode(plain(words[0])):
		s, ok = codeShape(plain(words[0]), words[1:])
		s.own, _ = ownWords(afterFirstWord(text))
	case isOneOf(otherWords, first), isOwn(first):
		s, ok = otherShape(text)
	}
	s.first = cmp.Or(s.first, plain(words[0]))
	return s, ok && (s.reason != "" || s.own != "" || !strings.ContainsAny(text, lineEnds))
}

const lineEnds = "\r\n\v\f\u0085\u2028\u2029"

// split returns the words of a text, without those that are nothing: a full stop, a comma or an exclamation mark.
func split(text string) []string {
	return slices.DeleteFunc(strings.Fields(text), func(word string) bool { return plain(word) == "" })
}

// plain is a word without a full stop, a comma or exclamation marks at its end. Several stops are hesitation, and stay.
func plain(word string) string {
	bare := strings.TrimRight(word, ".,!")
	if strings.Contains(word[len(bare):], "..") {
		return word
	}
	return bare
}

// yesShape parses what follows yes: codes, then a scope and the number of a call, then run.
func yesShape(words []string) (sentence, bool) {
	s := sentence{act: allows}
	s.codes, words = leadingCodes(words)
	for len(words) > 0 {
		word := fold(plain(words[0]))
		n, isCall := callNumber(word)
		scope, used := readScope(words)
		switch {
		case isCall && s.call == 0:
			s.call, used = n, 1
		case used > 0 && s.scope == "":
			s.scope = scope
		case isOneOf(runWords, word) && len(words) == 1:
			s.run, used = true, 1
		default:
			return sentence{}, false
		}
		words = words[used:]
	}
	return s, true
}

// alwaysShape parses what follows always: a code, and the name of the rule that was shown.
func alwaysShape(words []string) (sentence, bool) {
	s := sentence{act: allows, scope: permissions.Rule.String()}
	s.codes, words = leadingCodes(words)
	if len(words) == 1 && isRule(plain(words[0])) {
		s.rule, words = fold(plain(words[0])), nil
	}
	return s, len(words) == 0
}

// isRule reports whether a word can be the name of a rule, see [permissions.GrantedRule.Fingerprint].
func isRule(word string) bool {
	return len(word) == len(permissions.GrantedRule("").Fingerprint()) && strings.Trim(fold(word), "0123456789abcdef") == ""
}

// noShape parses what follows no: codes, the number of a call, and a reason after because.
func noShape(words []string) (sentence, bool) {
	s := sentence{act: denies}
	s.codes, words = leadingCodes(words)
	if len(words) > 0 {
		if n, ok := callNumber(plain(words[0])); ok {
			s.call, words = n, words[1:]
		}
	}
	return s, s.because(words)
}

// because parses nothing, or because and a reason.
func (s *sentence) because(words []string) bool {
	if len(words) > 1 && isOneOf(becauseWords, fold(plain(words[0]))) {
		s.reason, words = strings.Join(words[1:], " "), nil
	}
	return len(words) == 0
}

// pauseShape parses what follows continue or interrupt: a code.
func pauseShape(a act, words []string) (sentence, bool) {
	codes, rest := leadingCodes(words)
	return sentence{act: a, codes: codes}, len(codes) < 2 && len(rest) == 0
}

// codeShape parses what follows a code: one word, no and a reason, or an option's number or words.
func codeShape(code string, words []string) (sentence, bool) {
	s := sentence{act: picks, codes: []string{capitals(code)}, pick: strings.Join(words, " ")}
	if len(words) == 0 {
		return s, true
	}
	alone := len(words) == 1
	switch word := fold(plain(words[0])); {
	case isYes(word) && alone:
		s.act = allows
	case isNo(word) && s.because(words[1:]):
		s.act = denies
	case isOneOf(continueWords, word) && alone:
		s.act = resumes
	case isOneOf(interruptWords, word) && alone:
		s.act = interrupts
	}
	return s, true
}

func leadingCodes(words []string) (codes, rest []string) {
	for len(words) > 0 && isCode(plain(words[0])) && len(codes) < maxCodes {
		codes, words = append(codes, capitals(plain(words[0]))), words[1:]
	}
	return codes, words
}

// fold converts to lower case. It maps no other character to ASCII, as Unicode does for the Kelvin sign and the dotted
// capital I, so letters of other scripts never form one of our words.
func fold(text string) string {
	return umlauts.Replace(strings.Map(func(c rune) rune {
		if small := unicode.ToLower(c); c <= unicode.MaxASCII || small > unicode.MaxASCII {
			return small
		}
		return c
	}, text))
}

// umlauts composes letters of our words that keyboards may send in two characters.
var umlauts = strings.NewReplacer("a\u0308", "ä", "o\u0308", "ö", "u\u0308", "ü")

// The words of answers, in every language whatever the person's, in small letters.
var (
	yesWords       = i18n.All("yes allow approve")
	noWords        = i18n.All("no deny")
	allWords       = i18n.All("all")
	becauseWords   = i18n.All("because")
	continueWords  = i18n.All("continue")
	interruptWords = i18n.All("interrupt")
	runWords       = i18n.All("run")
	otherWords     = i18n.All("other")
	helpWords      = append(i18n.All("help"), "?", "h")
	minuteWords    = i18n.All("minute minutes")
	hourWords      = i18n.All("hour hours")
	onceWords      = i18n.All("once")
	sessionWords   = i18n.All("session")
	alwaysWords    = i18n.All("always")
	ruleWords      = i18n.All("rule")
)

func isOneOf(of []string, word string) bool { return slices.Contains(of, word) }

func isYes(word string) bool { return isOneOf(yesWords, word) }

func isNo(word string) bool { return isOneOf(noWords, word) }

// isCode reports whether a word can be a request's code: five unambiguous ASCII letters and digits, in any case.
func isCode(word string) bool {
	return len(word) == permissions.CodeLength && !strings.ContainsFunc(word, func(c rune) bool {
		return !isPlain(c) || strings.ContainsRune("01ILOilo", c)
	})
}

// isPlain reports whether c is an ASCII letter or digit.
func isPlain(c rune) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func capitals(code string) string { return strings.ToUpper(code) }

// looksLikeCode reports whether a word is hardly a word of a language, so that it is a code and not the beginning of a chat.
func looksLikeCode(word string) bool {
	return strings.ContainsAny(word, "23456789") || !strings.ContainsFunc(word, unicode.IsLower)
}

// readScope reads a scope at the start of words: its id or its name, a duration that begins with a digit, or a number of minutes or hours.
// It returns the scope's id and how many words that took; 0: there is none.
func readScope(words []string) (id string, used int) {
	if len(words) == 0 {
		return "", 0
	}
	word := fold(plain(words[0]))
	switch {
	case isOneOf(onceWords, word):
		word = permissions.Once.String()
	case isOneOf(sessionWords, word):
		word = permissions.Session.String()
	case isOneOf(alwaysWords, word):
		word = permissions.Always.String()
	case isOneOf(ruleWords, word):
		word = permissions.Rule.String()
	case len(words) > 1 && isNumber(words[0]):
		switch unit := fold(plain(words[1])); {
		case isOneOf(minuteWords, unit):
			id, used = word+"m", 2
		case isOneOf(hourWords, unit):
			id, used = word+"h", 2
		}
		if _, err := permissions.ParseScope(id); err != nil {
			return "", 0
		}
		return id, used
	}
	s, err := permissions.ParseScope(word)
	if err != nil || s.Span() != 0 && !unicode.IsDigit(rune(word[0])) {
		return "", 0
	}
	return word, 1
}

func callNumber(word string) (n int, ok bool) {
	digits, found := strings.CutPrefix(word, "#")
	n, err := strconv.Atoi(digits)
	return n, found && err == nil && n > 0 && strconv.Itoa(n) == digits
}

const (
	thumbUp, thumbDown = "👍", "👎"
	emojiStyle         = "\uFE0F" // variation selector for the coloured form
)

func thumb(text string) (a act, ok bool) {
	a = allows
	tone, found := strings.CutPrefix(text, thumbUp)
	if !found {
		a = denies
		tone, found = strings.CutPrefix(text, thumbDown)
	}
	switch tone {
	case "", emojiStyle, "🏻", "🏼", "🏽", "🏾", "🏿":
		return a, found
	}
	return 0, false
}

// A clarification may be answered in the person's own words. They need a keyword, because a mistyped option is not an
// answer, and an option that begins with that keyword comes first.
const otherShort = "o"

// ownWords are the person's own words after the keyword and a colon, as typed.
func ownWords(text string) (own string, ok bool) {
	for _, word := range otherWords {
		if word += ":"; len(text) >= len(word) && fold(text[:len(word)]) == word {
			return strings.TrimSpace(text[len(word):]), true
		}
	}
	return "", false
}

func isOwn(text string) bool {
	_, ok := ownWords(text)
	return ok
}

// hasColonOption reports whether an option of r begins with a keyword and a colon.
func hasColonOption(r permissions.Request) bool {
	return slices.ContainsFunc(otherWords, func(word string) bool { return hasKeywordOption(r, word+":") })
}

// afterFirstWord is what follows the first word, as typed.
func afterFirstWord(text string) string {
	at := strings.IndexFunc(text, unicode.IsSpace)
	if at < 0 {
		return ""
	}
	return strings.TrimLeftFunc(text[at:], unicode.IsSpace)
}

// otherShape parses other, a code and the person's own words; or, in a reply to the card, other with a colon and the words.
func otherShape(text string) (sentence, bool) {
	s := sentence{act: answers}
	if own, ok := ownWords(text); ok {
		s.own, s.pick = own, oneLine(text) // an option may have these words
		return s, true
	}
	rest := afterFirstWord(text)
	words := afterFirstWord(rest)
	code := strings.TrimSuffix(strings.TrimRightFunc(strings.TrimSuffix(rest, words), unicode.IsSpace), ":")
	if !isCode(code) {
		return sentence{}, false
	}
	s.codes, s.first, s.own = []string{capitals(code)}, code, strings.TrimSpace(words)
	return s, true
}

// hasKeywordOption reports whether an option of r begins with a keyword of ours, which then is not available.
func hasKeywordOption(r permissions.Request, word string) bool {
	return slices.ContainsFunc(r.Choices, func(choice string) bool {
		rest, found := strings.CutPrefix(fold(strings.TrimSpace(choice)), word)
		return found && (rest == "" || strings.HasSuffix(word, ":") || strings.IndexFunc(rest, unicode.IsSpace) == 0)
	})
}

// parseOwnWords is the person's own words in a line at the prompt of r; empty if the next line is to have them.
func parseOwnWords(text string, r permissions.Request) (own string, ok bool) {
	if own, ok = ownWords(text); ok {
		return own, !hasColonOption(r)
	}
	word, rest, _ := strings.Cut(text, " ")
	return strings.TrimSpace(rest), fold(word) == otherShort && !hasKeywordOption(r, otherShort)
}

// ownWordsHint is how the person's own words are typed at the prompt of r.
func ownWordsHint(r permissions.Request, code string, in i18n.Language) string {
	switch {
	case !hasKeywordOption(r, otherShort):
		return otherShort
	case !hasColonOption(r):
		return in.Text("other") + ":"
	}
	return in.Text("other") + " " + code
}

// ownWordsChatHint is how the person's own words about o are sent.
func ownWordsChatHint(o Open, in i18n.Language) string {
	if hasColonOption(o.Request) {
		return in.Text("other") + " " + o.Code
	}
	return o.Code + " " + in.Text("other") + ":"
}
