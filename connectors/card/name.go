package card

import (
	"strings"
	"unicode/utf8"
)

// mostName is how many characters of a name a shortened row has.
const mostName = 40

// named is a name that somebody else chose: as it is if it is one plain word, and else in quotes, so that it cannot run
// on into our words.
func named(name string) string {
	word := name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("._-:/@+#", c)
	})
	if word {
		return name
	}
	return quoted(name)
}

// quoted is somebody's text between quotes that it cannot close itself.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(Visible(text), `"`, `\u{22}`) + `"`
}

// brief is text, or so much of its start, and "…", that it is shown in at most so many characters. It is for rows that
// only remind, or that say where the whole is.
func brief(text string, most int) string {
	used, cut := 0, 0
	for i, c := range text {
		if used < most {
			cut = i
		}
		if used += shown(c); used > most {
			return text[:cut] + "…"
		}
	}
	return text
}

// shown is the most characters that stand for c on a card.
func shown(c rune) int {
	switch {
	case c == utf8.RuneError, c == '"', c == '\\', c == '⟨', c == '‹':
		return len(`\u{FFFD}`)
	case ' ' <= c && c <= '~':
		return 1
	}
	return utf8.RuneCountInString(Visible(string(c)))
}
