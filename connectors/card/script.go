package card

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/net/idna"

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

// hostName is a name with letters that are not Latin, under a domain that is: after // or @, or alone. Alone it may be the
// name of a file, unless it ends as hosts do.
var (
	hostName = regexp.MustCompile(`(^|//|@)((?:[\pL\pM\pN_-]+\.)*[\pL\pM\pN_-]*[^\x00-\x7F\p{Latin}\PL][\pL\pM\pN_-]*` +
		`(?:\.[\pL\pM\pN_-]+)*\.[A-Za-z]{2,63})\.?(?:/|$)`)
	encodedHost  = regexp.MustCompile(`(?i)(?:[a-z0-9-]+\.)*xn--[a-z0-9-]+(?:\.[a-z0-9-]+)*`)
	commonDomain = regexp.MustCompile(`(?i)\.(com|net|org|info|edu|gov|io|dev|ru|eu)$`)
)

// careful are warnings about a path that is not the one of the input, and about words in what would be done and where, and
// in names, that are made to be taken for others: letters of different scripts, or such as look like Latin ones, or a host
// that is not written in Latin; and that run from right to left.
func careful(r permissions.Request) (rows []string) {
	known := map[rune]string{}
	var seen []string
	more := 0
	name := func(word, why string) {
		switch {
		case why == "" || slices.Contains(seen, word):
		case len(seen) == mostWords:
			more++
		default:
			seen = append(seen, word)
			rows = append(rows, quoted(brief(word, widestWord))+" "+why)
		}
	}
	for _, c := range r.ToolCalls() {
		if _, other := affects(r, c); other != "" {
			rows = append(rows, fmt.Sprintf("it says it affects %s; the input names %s",
				quoted(brief(c.AffectedPath, widestWord)), quoted(brief(other, widestWord))))
		}
	}
	for _, text := range lookalike(r) {
		for _, host := range encodedHost.FindAllString(text, mostWords) {
			if plain, err := idna.ToUnicode(host); err == nil && !ascii(plain) {
				name(host, "is the host "+quoted(brief(plain, widestWord)))
			}
		}
		if ascii(text) {
			continue
		}
		for place := range strings.FieldsFuncSeq(text, func(c rune) bool { return notInWord(c) && !strings.ContainsRune("/@.-_", c) }) {
			if ascii(place) {
				continue
			}
			for word := range strings.FieldsFuncSeq(place, notInWord) {
				name(word, odd(word, strings.ContainsAny(place, "/@."), known))
			}
			if !strings.Contains(place, ".") {
				continue
			}
			m := hostName.FindStringSubmatch(place)
			if len(m) == 3 && (m[1] != "" || commonDomain.MatchString(m[2])) {
				plain, _ := idna.Lookup.ToASCII(m[2]) // the best that can be made of it
				name(m[2], "is the host "+quoted(brief(plain, widestWord)))
			}
		}
	}
	if words := backward(r); len(words) > 0 {
		rows = append(rows, "runs from right to left: "+strings.Join(words, ", "))
	}
	if more > 0 {
		rows = append(rows, fmt.Sprintf("%d more words are not what they look like", more))
	}
	return rows
}

// backward are the first words that are written from right to left, quoted.
func backward(r permissions.Request) (words []string) {
	for _, text := range lookalike(r) {
		if !isBackward(text) {
			continue
		}
		for word := range strings.FieldsFuncSeq(text, notInWord) {
			if w := quoted(brief(word, widestWord)); len(words) < mostWords && isBackward(word) && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

// lookalike are the texts in which a word that looks like another one would mislead.
func lookalike(r permissions.Request) []string {
	texts := append([]string{r.Agent, r.Host, r.Cwd}, r.EnvNames...)
	for _, t := range r.Tags {
		texts = append(texts, t.Path())
	}
	for _, c := range r.ToolCalls() {
		texts = append(texts, c.Tool, c.AffectedPath, unescaped.Replace(string(c.Input)))
	}
	if r.Kind == permissions.KindPause || r.Kind == permissions.KindClarification {
		texts = append(append(texts, r.Message), r.Choices...)
	}
	return texts
}

// odd is why a word, which may be a part of a path or a host, is made to be taken for another one; empty for an ordinary word.
func odd(word string, part bool, known map[rune]string) string {
	if mixed := scripts(word, known); mixed != nil {
		return "mixes " + list(mixed) + " letters"
	}
	if ascii(word) || isBackward(word) || utf8.RuneCountInString(word) < 3 && !part { // а and со are Russian words
		return ""
	}
	var twin strings.Builder
	for _, c := range word {
		like := confusable.GetReplacement(c)
		switch {
		case c < 0x80:
			twin.WriteRune(c)
		case len(like) != 1 || !unicode.In(c, unicode.L, unicode.Nl) || notInWord(rune(like[0])) || strings.ContainsRune(unlike, c):
			return ""
		default:
			twin.WriteString(like)
		}
	}
	return `looks like "` + twin.String() + `" and is another word`
}

// unlike are letters that Unicode's list (UTS #39) has and that ordinary words are full of, which few take for Latin ones.
const unlike = "гσυıʋɩ"

func notInWord(c rune) bool {
	if c < 0x80 {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}
	return !unicode.In(c, unicode.L, unicode.M, unicode.N)
}

// unescaped has spaces for the escapes of JSON, the letters of which are no parts of words.
var unescaped = strings.NewReplacer(`\\`, `\\`, `\n`, "  ", `\r`, "  ", `\t`, "  ", `\b`, "  ", `\f`, "  ")

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
