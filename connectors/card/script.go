package card

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/daycared/daycared/permissions"
)

const (
	// mostWords is how many words of mixed scripts are named.
	mostWords = 3
	// widestWord is how many characters of such a word are shown: it only points at what the card shows whole.
	widestWord = 40
)

// mixable are scripts that are written together in one word; none of their letters looks like one of the others.
var mixable = [][]string{
	{"Latin", "Han", "Hiragana", "Katakana"},
	{"Latin", "Han", "Bopomofo"},
	{"Latin", "Han", "Hangul"},
}

// careful are warnings about words in what would be done and where, and in names, whose letters are of different
// scripts, since such words are made to be taken for others.
func careful(r permissions.Request) (rows []string) {
	known := map[rune]string{}
	var seen []string
	more := 0
	for _, text := range lookalike(r) {
		if ascii(text) {
			continue
		}
		for word := range strings.FieldsFuncSeq(text, notInWord) {
			mixed := scripts(word, known)
			if mixed == nil || slices.Contains(seen, word) {
				continue
			}
			if len(seen) == mostWords {
				more++
				continue
			}
			seen = append(seen, word)
			rows = append(rows, fmt.Sprintf("%s mixes %s letters", quoted(brief(word, widestWord)), list(mixed)))
		}
	}
	if more > 0 {
		rows = append(rows, fmt.Sprintf("%d more words mix letters of different scripts", more))
	}
	return rows
}

// lookalike are the texts in which a word that looks like another one would mislead.
func lookalike(r permissions.Request) []string {
	texts := append([]string{r.Agent, r.Host, r.Cwd}, r.EnvNames...)
	for _, t := range r.Tags {
		texts = append(texts, t.Path())
	}
	for _, c := range r.ToolCalls() {
		texts = append(texts, c.Tool, c.AffectedPath, string(c.Input))
	}
	if r.Kind == permissions.KindPause || r.Kind == permissions.KindClarification {
		texts = append(append(texts, r.Message), r.Choices...)
	}
	return texts
}

func notInWord(c rune) bool {
	if c < 0x80 {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}
	return !unicode.In(c, unicode.L, unicode.M, unicode.N)
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// scripts are the scripts of a word's letters if they should not be in one word, in the order in which they come.
func scripts(word string, known map[rune]string) (found []string) {
	if ascii(word) {
		return nil
	}
	for _, c := range word {
		name, ok := known[c]
		if !ok {
			name = script(c)
			known[c] = name
		}
		if name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	if len(found) < 2 {
		return nil
	}
	for _, together := range mixable {
		if !slices.ContainsFunc(found, func(name string) bool { return !slices.Contains(together, name) }) {
			return nil
		}
	}
	return found
}

// common are the scripts that most letters are of; they are looked at first.
var common = []string{"Latin", "Common", "Inherited", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew"}

// script is the name of the one that c belongs to, empty for what belongs to many.
func script(c rune) string {
	for _, name := range common {
		if unicode.Is(unicode.Scripts[name], c) {
			return belongs(name)
		}
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, c) {
			return belongs(name)
		}
	}
	return ""
}

func belongs(name string) string {
	if name == "Common" || name == "Inherited" {
		return ""
	}
	return strings.ReplaceAll(name, "_", " ")
}

// list joins words as in a, b and c.
func list(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}
