package reply

import (
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// A clarification may be answered in words of one's own. They take a word that says so, since an option with a typo is
// no answer; and an option that begins with that word is meant before.
const (
	otherColon = "other:"
	otherShort = "o"
)

// ownWords are those behind the word that says that they are one's own, as typed.
func ownWords(text string) (own string, ok bool) {
	if len(text) < len(otherColon) || fold(text[:len(otherColon)]) != otherColon {
		return "", false
	}
	return strings.TrimSpace(text[len(otherColon):]), true
}

// behind is what follows the first word, as typed.
func behind(text string) string {
	at := strings.IndexFunc(text, isSpace)
	if at < 0 {
		return ""
	}
	return strings.TrimLeftFunc(text[at:], isSpace)
}

// otherShape reads other, a code and words of one's own; or other with a colon and those words alone, which a reply to
// the card may say.
func otherShape(text string) (sentence, bool) {
	s := sentence{act: answers}
	if own, ok := ownWords(text); ok {
		s.own, s.pick = own, oneLine(text) // which an option may be
		return s, true
	}
	rest := behind(text)
	words := behind(rest)
	code := strings.TrimSuffix(strings.TrimRightFunc(strings.TrimSuffix(rest, words), isSpace), ":")
	if !isCode(code) {
		return sentence{}, false
	}
	s.codes, s.first, s.own = []string{capitals(code)}, code, strings.TrimSpace(words)
	return s, true
}

// begins tells whether an option of r begins with a word of ours, so that this word is no sign of one's own words.
func begins(r permissions.Request, word string) bool {
	return slices.ContainsFunc(r.Choices, func(choice string) bool {
		rest, found := strings.CutPrefix(fold(strings.TrimSpace(choice)), word)
		return found && (rest == "" || word == otherColon || strings.IndexFunc(rest, isSpace) == 0)
	})
}

// typedOwn are the words of one's own that a line typed at the prompt of r is; empty for the word without any, which
// asks for them on the next line.
func typedOwn(text string, r permissions.Request) (own string, ok bool) {
	if own, ok = ownWords(text); ok {
		return own, !begins(r, otherColon)
	}
	word, rest, _ := strings.Cut(text, " ")
	return strings.TrimSpace(rest), fold(word) == otherShort && !begins(r, otherShort)
}

// ownTyped is how words of one's own are typed at the prompt of r.
func ownTyped(r permissions.Request, code string) string {
	switch {
	case !begins(r, otherShort):
		return otherShort
	case !begins(r, otherColon):
		return otherColon
	}
	return "other " + code
}

// ownSent is how words of one's own are sent about o.
func ownSent(o Open) string {
	if begins(o.Request, otherColon) {
		return "other " + o.Code
	}
	return o.Code + " " + otherColon
}
