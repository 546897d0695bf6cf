package card

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"go.mau.fi/util/confusable"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

const (
	// maxWords limits the words of mixed scripts that are named.
	maxWords = 3
	// widestWord limits such a word in characters: it only points at what the card shows completely.
	widestWord = 40
)

// mixable are scripts that are mixed in ordinary words; none of their letters looks like another one's.
var mixable = [][]string{
	{"Latin", "Han", "Hiragana", "Katakana"},
	{"Latin", "Han", "Bopomofo"},
	{"Latin", "Han", "Hangul"},
}

// authority matches what is between // and the path of a URL: login data, if any, and the host. hostName matches a name
// with letters that are not Latin under a Latin domain, after // or @, or alone. Alone it may be a file's name, unless it
// ends like a host.
var (
	authority = lazily(`://(?:([^\s/?#"'<>]*)@)?([^\s/?#"'<>@:\\]+)`)
	hostName  = lazily(`(^|//|@)((?:[\pL\pM\pN_-]+\.)*[\pL\pM\pN_-]*[^\x00-\x7F\p{Latin}\PL][\pL\pM\pN_-]*` +
		`(?:\.[\pL\pM\pN_-]+)*\.[A-Za-z]{2,63})\.?(?:/|$)`)
	encodedHost  = lazily(`(?i)(?:[a-z0-9-]+\.)*xn--[a-z0-9-]+(?:\.[a-z0-9-]+)*`)
	commonDomain = lazily(`(?i)\.(com|net|org|info|edu|gov|io|dev|ru|eu)$`)
	// unmistaken matches the first words of commands, and hosts: places without ordinary words.
	unmistaken = lazily(`(?i)(?:"command":"|[;&|@]|\b(?:sudo|env|exec|xargs) ) *[\pL\pM\pN.-]+|` +
		`[\pL\pM\pN.-]+\.(?:com|net|org|info|edu|gov|io|dev|ru|eu)\b`)
)

// warnings returns warnings about an affected path that differs from the input's, and about words in the action, its place
// and names that can be mistaken for others: with letters of different scripts or letters that look Latin, hosts that are
// not written in Latin, and words that run from right to left.
func warnings(r permissions.Request, in i18n.Language) (rows []string) {
	known := map[rune]string{}
	var seen []string
	more := 0
	name := func(word, why string) {
		switch {
		case why == "" || slices.Contains(seen, word):
		case len(seen) == maxWords:
			more++
		default:
			seen = append(seen, word)
			rows = append(rows, codeSpan(quoted(brief(word, widestWord)))+" "+why)
		}
	}
	for _, c := range r.ToolCalls() {
		if _, other := affects(r, c); other != "" {
			rows = append(rows, in.Sprintf("it says it affects %s; the input names %s",
				codeSpan(quoted(brief(c.AffectedPath, widestWord))), codeSpan(quoted(brief(other, widestWord)))))
		}
	}
	for _, text := range lookalike(r) {
		var encoded []string
		if strings.Contains(strings.ToLower(text), "xn--") { // the search is slow
			encoded = encodedHost().FindAllString(text, maxWords)
		}
		for _, host := range encoded {
			if plain, err := idna.ToUnicode(host); err == nil && !ascii(plain) {
				name(host, in.Sprintf("is the host %s", codeSpan(quoted(brief(plain, widestWord)))))
			}
		}
		if !ascii(text) {
			eachOdd(text, known, in, name)
		}
		for _, m := range authority().FindAllStringSubmatch(text, -1) {
			name(m[2], whyOddHost(m[1], m[2], in))
		}
		for _, host := range hostsIn(text) {
			labels := strings.Split(strings.ToLower(host), ".")
			name(host, whyNearlyKnown(strings.Join(labels[len(labels)-2:], "."), knownHosts, in))
		}
		if !slices.ContainsFunc(installers, func(program string) bool { return strings.Contains(text, program) }) {
			continue // the search is slow
		}
		for _, m := range installs().FindAllStringSubmatch(text, -1) {
			known := npmPackages
			if m[1] == "pip" {
				known = pipPackages
			}
			for _, word := range strings.Fields(m[2]) {
				pkg, _, _ := strings.Cut(word, "@")
				pkg = strings.TrimRight(pkg, "=<>~!.0123456789")
				name(pkg, whyNearlyKnown(pkg, known, in))
			}
		}
	}
	if words := backward(r); len(words) > 0 {
		rows = append(rows, in.Sprintf("runs from right to left: %s", strings.Join(words, ", ")))
	}
	if more > 0 {
		rows = append(rows, in.Sprintf("%d more words are not what they look like", more))
	}
	return rows
}

// Hosts and packages that others are named after with one letter changed.
var (
	asciiHost  = lazily(`(?i)\b(?:[a-z0-9-]+\.)+[a-z]{2,}\b`)
	knownHosts = strings.Fields("github.com githubusercontent.com gitlab.com bitbucket.org npmjs.org npmjs.com pypi.org pythonhosted.org " +
		"crates.io rubygems.org golang.org docker.com docker.io google.com googleapis.com amazonaws.com microsoft.com debian.org " +
		"ubuntu.com cloudflare.com openai.com anthropic.com telegram.org whatsapp.com")
	installers  = []string{"npm", "yarn", "bun", "pip"} // each match of installs has one
	installs    = lazily(`\b(npm|pnpm|yarn|bun|pip)3? (?:i|install|add)((?: +[^\s;&|"'\\]+)+)`)
	npmPackages = strings.Fields("express lodash axios typescript webpack eslint commander prettier mongoose nodemon")
	pipPackages = strings.Fields("requests numpy pandas django flask setuptools cryptography")
)

// whyNearlyKnown is why a word can be mistaken for one of known: it differs by one letter.
func whyNearlyKnown(word string, known []string, in i18n.Language) string {
	if slices.Contains(known, word) {
		return ""
	}
	i := slices.IndexFunc(known, func(one string) bool {
		return len(word)-len(one) < 2 && len(one)-len(word) < 2 && levenshtein.ComputeDistance(word, one) == 1
	})
	if i < 0 {
		return ""
	}
	return in.Sprintf("is not %s", codeSpan(known[i]))
}

// eachOdd calls name for words in a text that can be mistaken for others.
func eachOdd(text string, known map[rune]string, in i18n.Language, name func(word, why string)) {
	sure := sync.OnceValue(func() string { return strings.Join(unmistaken().FindAllString(text, -1), " ") })
	apart := func(c rune) bool { return notInWord(c) && !strings.ContainsRune("/@.-_", c) && !isSign(c) }
	for place := range strings.FieldsFuncSeq(text, apart) {
		if ascii(place) {
			continue
		}
		if part, twin := disguised(place); twin != "" {
			name(part, looksLike(twin, in))
			continue
		}
		for word := range strings.FieldsFuncSeq(place, notInWord) {
			isSure := func() bool { return strings.Contains(sure(), word) }
			name(word, whyOdd(word, strings.ContainsAny(place, "/@."), isSure, known, in))
		}
		m := hostName().FindStringSubmatch(place)
		if len(m) == 3 && (m[1] != "" || commonDomain().MatchString(m[2])) {
			name(m[2], whyOddHost("", m[2], in))
		}
	}
}

// whyOddHost is why a host, or what a URL has before its @, can be mistaken for another host; empty for an ordinary one.
func whyOddHost(user, host string, in i18n.Language) (why string) {
	if !ascii(host) {
		plain, _ := idna.Lookup.ToASCII(host) // the closest approximation
		why = in.Sprintf("is the host %s", codeSpan(quoted(brief(plain, widestWord))))
	}
	login, _, _ := strings.Cut(user, ":")
	if !ascii(user) || strings.ContainsAny(login, ".%") || strings.Contains(user, "@") || login == "localhost" {
		why = in.Sprintf("%s, not what is before its @", cmp.Or(why, in.Text("is the host")))
	}
	return why
}

// disguised returns the part of a word with a sign that can be mistaken for / . @ or \, and what it looks like; empty
// without one. Beside letters that look like no others, as in Chinese texts, only paths count.
func disguised(word string) (part, twin string) {
	at := strings.IndexFunc(word, isSign)
	if at < 0 {
		return "", ""
	}
	whole := asASCII(word, true)
	if !strings.Contains(word, "/") && (!ascii(whole) || !strings.ContainsFunc(whole, unicode.IsLetter)) {
		return "", ""
	}
	part = word[strings.LastIndexByte(word[:at], '/')+1:]
	return part, asASCII(part, true)
}

// asASCII replaces everything in text by the ASCII characters that it looks like.
func asASCII(text string, sure bool) string {
	var b strings.Builder
	for _, c := range text {
		b.WriteString(cmp.Or(likeness(c, sure), string(c)))
	}
	return b.String()
}

// likeness is the ASCII that another letter, digit or sign looks like, or becomes in Unicode's normal form KC; empty for
// any other character, and for letters of ordinary words unless sure, which means that no ordinary word can be here.
func likeness(c rune, sure bool) string {
	if c < 0x80 {
		return ""
	}
	like := norm.NFKC.String(string(c))
	becomes := ascii(like)
	if !becomes {
		like = confusable.GetReplacement(c)
	}
	taken := len(like) == 1 && !notInWord(rune(like[0])) && !unicode.Is(unicode.Nd, c) && (sure || !strings.ContainsRune(unlike, c))
	letter := !notInWord(c) && !unicode.In(c, unicode.Lm, unicode.No) && c != 'ª' && c != 'º'
	if letter && (becomes || taken) || notInWord(c) && slices.Contains([]string{"/", ".", "..", "@", `\`}, like) {
		return like
	}
	return ""
}

// isSign reports whether c can be mistaken for one of the signs of paths and hosts.
func isSign(c rune) bool { return notInWord(c) && likeness(c, true) != "" }

// backward returns the first words that are written from right to left, quoted.
func backward(r permissions.Request) (words []string) {
	for _, text := range lookalike(r) {
		if !isBackward(text) {
			continue
		}
		for word := range strings.FieldsFuncSeq(text, notInWord) {
			if w := codeSpan(quoted(brief(word, widestWord))); len(words) < maxWords && isBackward(word) && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

// lookalike returns the texts in which a word that looks like another one would mislead.
func lookalike(r permissions.Request) []string {
	texts := append([]string{r.Agent, r.Host, r.Cwd}, r.EnvNames...)
	texts = slices.AppendSeq(texts, maps.Values(r.Symlinks()))
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

// whyOdd is why a word, perhaps part of a path or host, can be mistaken for another one; empty for an ordinary word. sure
// reports that no ordinary word can be here.
func whyOdd(word string, part bool, sure func() bool, known map[rune]string, in i18n.Language) string {
	if mixed := scripts(word, known); mixed != nil {
		return in.Sprintf("mixes %s letters", list(mixed, in))
	}
	if ascii(word) || isBackward(word) {
		return ""
	}
	form, few := norm.NFKC.String(word), utf8.RuneCountInString(word) < 3 // а and со are Russian words
	if !part && (few && !ascii(form) || ascii(form) && !strings.ContainsFunc(form, unicode.IsLetter)) {
		return ""
	}
	if twin := asASCII(word, sure()); ascii(twin) {
		return looksLike(twin, in)
	}
	return ""
}

func looksLike(twin string, in i18n.Language) string {
	return in.Sprintf("looks like %s and is another word", codeSpan(quoted(brief(twin, widestWord))))
}

// unlike are letters in Unicode's list of confusables (UTS #39) that are frequent in ordinary words and rarely mistaken for
// Latin ones.
const unlike = "гσυıʋɩ"

// hostsIn are the matches of asciiHost. The search is slow, so it is of words with a full stop only.
func hostsIn(text string) (hosts []string) {
	apart := func(c rune) bool { return c >= 0x80 || c != '.' && c != '-' && c != '_' && notInWord(c) }
	for word := range strings.FieldsFuncSeq(text, apart) {
		if strings.Contains(word, ".") {
			hosts = append(hosts, asciiHost().FindAllString(word, -1)...)
		}
	}
	return hosts
}

func notInWord(c rune) bool {
	if c < 0x80 {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}
	return !unicode.In(c, unicode.L, unicode.M, unicode.N)
}

// unescaped replaces JSON's escapes by spaces, because their letters belong to no word.
var unescaped = strings.NewReplacer(`\\`, `\\`, `\n`, "  ", `\r`, "  ", `\t`, "  ", `\b`, "  ", `\f`, "  ")

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// scripts returns the scripts of a word's letters in order, if they should not be in one word.
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

// common are the most frequent scripts, which are tried first.
var common = []string{"Latin", "Common", "Inherited", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew"}

// script is c's script, or empty if many scripts use c.
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
func list(words []string, in i18n.Language) string {
	if n := len(words) - 1; n > 0 {
		return in.Sprintf("%s and %s", strings.Join(words[:n], ", "), words[n])
	}
	return strings.Join(words, "")
}
