package card

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

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

// authority is what a URL has between // and its path: a name to log in with, if there is one, and the host. hostName is a
// name with letters that are not Latin, under a domain that is: after // or @, or alone. Alone it may be the name of a file,
// unless it ends as hosts do.
var (
	authority = regexp.MustCompile(`://(?:([^\s/?#"'<>]*)@)?([^\s/?#"'<>@:\\]+)`)
	hostName  = regexp.MustCompile(`(^|//|@)((?:[\pL\pM\pN_-]+\.)*[\pL\pM\pN_-]*[^\x00-\x7F\p{Latin}\PL][\pL\pM\pN_-]*` +
		`(?:\.[\pL\pM\pN_-]+)*\.[A-Za-z]{2,63})\.?(?:/|$)`)
	encodedHost  = regexp.MustCompile(`(?i)(?:[a-z0-9-]+\.)*xn--[a-z0-9-]+(?:\.[a-z0-9-]+)*`)
	commonDomain = regexp.MustCompile(`(?i)\.(com|net|org|info|edu|gov|io|dev|ru|eu)$`)
	// unmistaken are the first words of commands, and hosts: no ordinary word stands there.
	unmistaken = regexp.MustCompile(`(?i)(?:"command":"|[;&|@]|\b(?:sudo|env|exec|xargs) ) *[\pL\pM\pN.-]+|` +
		`[\pL\pM\pN.-]+\.(?:com|net|org|info|edu|gov|io|dev|ru|eu)\b`)
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
		if !ascii(text) {
			eachOdd(text, known, name)
		}
		for _, m := range authority.FindAllStringSubmatch(text, -1) {
			name(m[2], oddHost(m[1], m[2]))
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

// eachOdd names what in a text is made to be taken for something else.
func eachOdd(text string, known map[rune]string, name func(word, why string)) {
	sure := strings.Join(unmistaken.FindAllString(text, -1), " ")
	apart := func(c rune) bool { return notInWord(c) && !strings.ContainsRune("/@.-_", c) && !isSign(c) }
	for place := range strings.FieldsFuncSeq(text, apart) {
		if part, twin := disguised(place); twin != "" {
			name(part, looksLike(twin))
			continue
		}
		for word := range strings.FieldsFuncSeq(place, notInWord) {
			name(word, odd(word, strings.ContainsAny(place, "/@."), strings.Contains(sure, word), known))
		}
		m := hostName.FindStringSubmatch(place)
		if len(m) == 3 && (m[1] != "" || commonDomain.MatchString(m[2])) {
			name(m[2], oddHost("", m[2]))
		}
	}
}

// oddHost is why a host may be taken for another one, also for what a URL has before its @; empty for an ordinary one.
func oddHost(user, host string) (why string) {
	if !ascii(host) {
		plain, _ := idna.Lookup.ToASCII(host) // the best that can be made of it
		why = "is the host " + quoted(brief(plain, widestWord))
	}
	login, _, _ := strings.Cut(user, ":")
	if !ascii(user) || strings.ContainsAny(login, ".%") || strings.Contains(user, "@") || login == "localhost" {
		why = cmp.Or(why, "is the host") + ", not what is before its @"
	}
	return why
}

// disguised is the part of a word with a sign that is made to be taken for / . @ or \, and what that part looks like; nothing
// where it has none. Beside letters that look like no others, as in Chinese texts, it counts in a path only.
func disguised(word string) (part, twin string) {
	at, whole := strings.IndexFunc(word, isSign), asASCII(word, true)
	if at < 0 || !strings.Contains(word, "/") && (!ascii(whole) || !strings.ContainsFunc(whole, unicode.IsLetter)) {
		return "", ""
	}
	part = word[strings.LastIndexByte(word[:at], '/')+1:]
	return part, asASCII(part, true)
}

// asASCII is text with everything in it as that of ASCII which it looks like.
func asASCII(text string, sure bool) string {
	var b strings.Builder
	for _, c := range text {
		b.WriteString(cmp.Or(likeness(c, sure), string(c)))
	}
	return b.String()
}

// likeness is what of ASCII another letter, digit or sign between the parts of paths and hosts looks like, or becomes in
// Unicode's normal form KC; empty for any other, and for letters of ordinary words, unless it is sure that none stands here.
func likeness(c rune, sure bool) string {
	like := norm.NFKC.String(string(c))
	becomes := ascii(like)
	if !becomes {
		like = confusable.GetReplacement(c)
	}
	taken := len(like) == 1 && !notInWord(rune(like[0])) && !unicode.Is(unicode.Nd, c) && (sure || !strings.ContainsRune(unlike, c))
	letter := !notInWord(c) && !unicode.In(c, unicode.Lm, unicode.No) && c != 'ª' && c != 'º'
	if c >= 0x80 && (letter && (becomes || taken) || notInWord(c) && slices.Contains([]string{"/", ".", "..", "@", `\`}, like)) {
		return like
	}
	return ""
}

// isSign reports whether c is made to be taken for one of the signs.
func isSign(c rune) bool { return notInWord(c) && likeness(c, true) != "" }

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
// It is sure of one that no ordinary word stands there.
func odd(word string, part, sure bool, known map[rune]string) string {
	if mixed := scripts(word, known); mixed != nil {
		return "mixes " + list(mixed) + " letters"
	}
	if ascii(word) || isBackward(word) {
		return ""
	}
	form, few := norm.NFKC.String(word), utf8.RuneCountInString(word) < 3 // а and со are Russian words
	if !part && (few && !ascii(form) || ascii(form) && !strings.ContainsFunc(form, unicode.IsLetter)) {
		return ""
	}
	if twin := asASCII(word, sure); ascii(twin) {
		return looksLike(twin)
	}
	return ""
}

func looksLike(twin string) string {
	return "looks like " + quoted(brief(twin, widestWord)) + " and is another word"
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
