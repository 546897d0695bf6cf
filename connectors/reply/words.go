package reply

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/daycared/daycared/permissions"
)

// fold makes capitals small, so that case does not matter. No character outside ASCII becomes one within, as Unicode
// would have it of the Kelvin sign and of a dotted capital I: letters of other scripts never make one of our words.
func fold(text string) string {
	return strings.Map(func(c rune) rune {
		if small := unicode.ToLower(c); c <= unicode.MaxASCII || small > unicode.MaxASCII {
			return small
		}
		return c
	}, text)
}

func isYes(word string) bool { return word == "yes" || word == "allow" || word == "approve" }

func isNo(word string) bool { return word == "no" || word == "deny" }

// isCode tells whether a word can be a request's code: five letters and digits of ASCII, in any case, none of which can
// be taken for another.
func isCode(word string) bool {
	return len(word) == permissions.CodeLength && !strings.ContainsFunc(word, func(c rune) bool {
		return !isPlain(c) || strings.ContainsRune("01ILOilo", c)
	})
}

// isPlain tells of letters and digits of ASCII.
func isPlain(c rune) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// capitals is a code as it is told to people.
func capitals(code string) string { return strings.ToUpper(code) }

// stands tells whether a word was hardly meant as one of a language: a code, then, and not the beginning of a chat.
func stands(word string) bool {
	return strings.ContainsAny(word, "23456789") || !strings.ContainsFunc(word, unicode.IsLower)
}

// isScope tells whether a small word is the id of a scope: a name, or a duration that begins with a digit.
func isScope(word string) bool {
	s, err := permissions.ParseScope(word)
	return err == nil && (s.Span() == 0 || unicode.IsDigit(rune(word[0])))
}

// callNumber reads #2.
func callNumber(word string) (n int, ok bool) {
	digits, found := strings.CutPrefix(word, "#")
	n, err := strconv.Atoi(digits)
	return n, found && err == nil && n > 0 && strconv.Itoa(n) == digits
}

const (
	thumbUp, thumbDown = "👍", "👎"
	emojiStyle         = "\uFE0F" // asks for the coloured form of the character before
)

// thumb reads 👍 or 👎, of whatever skin.
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
