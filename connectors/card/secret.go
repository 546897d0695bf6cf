package card

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// maskedAs replaces a secret. It is written in English everywhere, and translated where a row is added to a sheet.
const maskedAs i18n.Phrase = "‹secret, %d characters, sha256 %s›"

// maskedEnglish matches the replacements of secrets, which no other text looks like.
var maskedEnglish = lazily(`‹secret, (\d+) characters, sha256 ([0-9a-f]{6})›`)

// lazily returns a pattern that is compiled when it is first used: commands that show no card start faster.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// maskedWords are those with which a replacement begins in every language, after ‹.
var maskedWords = wire.Map(i18n.Languages(), func(l i18n.Language) string {
	word, _, _ := strings.Cut(l.Text(maskedAs), ",")
	return strings.TrimPrefix(word, "‹")
})

// translated is a row with its replacements of secrets in a language.
func translated(text string, in i18n.Language) string {
	if in == "" || in == i18n.English || !strings.Contains(text, "‹") {
		return text
	}
	return maskedEnglish().ReplaceAllStringFunc(text, func(mask string) string {
		m := maskedEnglish().FindStringSubmatch(mask)
		size, _ := strconv.Atoi(m[1]) // it is digits
		return in.Sprintf(maskedAs, size, m[2])
	})
}

// piece is a range of a text in bytes.
type piece struct{ from, to int }

// source is a bit set of the kinds of a text, which determine where words end and whether emoji stay complete.
type source int

const (
	prose    source = 1 << iota // only read, never run
	shell                       // a command: each line may be a command of its own, so no line is masked completely
	jsonText                    // JSON, with \n for newlines
	located                     // a host or a path, in which secrets are only masked where a URL has them
	opened                      // secrets are shown
	tabbed                      // rows of a file: indentation stays as it is
)

// words returns the lines of an agent's text, rendered by [Lines] with secrets masked.
//
// A secret is a token of a known shape without space or shell character, so nothing that a shell would act on is ever
// masked, and one that cannot be a host or a path; or what follows the scheme in an authorization header; or a line of the
// body of a private key. In what is run, and beside shell characters, a token is only a secret if the text before it says
// so, as in --token=…, because any argument may be a path. Everything around it stays.
func words(text string, src source) []string {
	if text == "" {
		return nil
	}
	hide, lines, at := secrets(text, src), strings.Split(text, "\n"), 0
	for i, line := range lines {
		end := at + len(line)
		n := 0
		for n < len(hide) && hide[n].from < end {
			n++
		}
		lines[i] = mask(text, at, end, hide[:n], src)
		at, hide = end+1, hide[n:]
	}
	return lines
}

// line renders an agent's text as one line.
func line(text string, src source) string {
	return mask(text, 0, len(text), secrets(text, src), src)
}

// mask renders text[from:to] as its source, with the pieces in hide masked.
func mask(text string, from, to int, hide []piece, src source) string {
	if len(hide) == 0 && plain(text[from:to]) {
		return text[from:to]
	}
	var b strings.Builder
	for _, h := range hide {
		render(&b, text[from:h.from], false, src)
		b.WriteString(masked(text[h.from:h.to]))
		from = h.to
	}
	render(&b, text[from:to], true, src)
	return b.String()
}

// masked is the replacement of a secret.
func masked(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return i18n.English.Sprintf(maskedAs, utf8.RuneCountInString(secret), hex.EncodeToString(sum[:3]))
}

// secrets returns the pieces of text to mask, in order; none contains a newline.
func secrets(text string, src source) []piece {
	if src&opened != 0 || len(text) < shortestSecret {
		return nil
	}
	var keys, found []piece
	if src&shell == 0 {
		keys = keyLines(text, src)
	}
	var headers [][]int
	if strings.Contains(strings.ToLower(text), "authorization") { // the search is slow
		headers = authorizes().FindAllStringSubmatchIndex(text, -1)
	}
	for _, m := range headers {
		if word := text[m[2]:m[3]]; !domain().MatchString(word) && !looksLikeWords(word) && entrusted(text[:m[2]], src) {
			keys = append(keys, piece{m[2], m[3]})
		}
	}
	slices.SortFunc(keys, func(a, b piece) int { return a.from - b.from })
	for at := 0; at < len(text); {
		if len(keys) > 0 && at >= keys[0].from {
			found, at, keys = append(found, keys[0]), keys[0].to, keys[1:]
			continue
		}
		size, delimits := delimiter(text[at:], src)
		if delimits {
			at += size
			continue
		}
		end, simple := at, true
		for end < len(text) {
			if size, delimits = delimiter(text[end:], src); delimits {
				break
			}
			simple = simple && simpleWord(text[end:end+size])
			end += size
		}
		found = append(found, slices.DeleteFunc(tokens(text[at:end], at), func(token piece) bool {
			return !isSecretToken(text, piece{at, end}, token, src, simple)
		})...)
		at = end
	}
	return found
}

// delimiter reports whether a word ends at the start of rest: at a space, a quote or, in JSON, an escaped one. size is the
// number of bytes examined.
func delimiter(rest string, src source) (size int, delimits bool) {
	switch rest[0] {
	case ' ', '\t', '\r', '\n', '"', '\'':
		return 1, true
	case '\\':
		if src&jsonText != 0 && len(rest) > 1 {
			return 2, strings.IndexByte(`ntr"`, rest[1]) >= 0
		}
	}
	return 1, false
}

// simpleWord reports whether text only has letters, digits and characters that may be beside a secret in a word. Nothing
// that a shell acts on is among them.
func simpleWord(text string) bool {
	for i := range len(text) {
		if !nameByte(text[i]) && strings.IndexByte(".:/=+,@", text[i]) < 0 {
			return false
		}
	}
	return true
}

// nameByte reports whether c may not be directly before or after a secret.
func nameByte(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '_' || c == '-'
}

// tokens returns what has the shape of a secret in a word that begins at a position.
func tokens(word string, at int) (found []piece) {
	for i := 0; i < len(word); {
		n := 0
		if i == 0 || !nameByte(word[i-1]) {
			n = known(word[i:])
		}
		if n > 0 {
			found = append(found, piece{at + i, at + i + n})
		}
		i += max(n, 1)
	}
	return found
}

// isSecretToken reports whether a token in a word is a secret, by its context.
func isSecretToken(text string, word, token piece, src source, simple bool) bool {
	before, after := text[word.from:token.from], text[token.to:word.to]
	open := src&located == 0 && !isLocation(before, text[token.from:token.to], after)
	if open && simple && src&prose != 0 || logsIn(text, word, token, src) {
		return true
	}
	return open && (simple || after == "" || strings.IndexByte(";|&)", after[0]) >= 0) && entrusted(text[:token.from], src)
}

var (
	// domain matches a host's name with a possible top-level domain.
	domain = lazily(`(?i)^([a-z0-9_-]{1,63}\.)+([a-z]{2,63}|xn--[a-z0-9-]{1,59})$`)
	// place matches a member of an input that, by its name, has a host or a path as its value, which is one word.
	place = lazily(`(?i)^"[^"]*(path|file|folder|dir|cwd|host|server|address|ur[il]|source|target|dest)[^"]*": "[^\s"\\]*",?$`)
)

// isLocation reports whether a token could be a host, a path or a part of one, by its context in the word.
func isLocation(before, token, after string) bool {
	switch {
	case before != "" && strings.IndexByte("/@.:", before[len(before)-1]) >= 0:
		return true
	case after != "" && strings.IndexByte("/@:", after[0]) >= 0, len(after) > 1 && after[0] == '.':
		return true
	}
	return domain().MatchString(token) || looksLikeWords(token)
}

// The contexts that say that a secret follows, in what is run: after the name of a flag, in an assignment where a command
// begins, in a header, after a name at the start of a row, or as a member of JSON. In all texts: as the password or the
// only word before a URL's host, as a parameter of a URL, and after curl's flag for the user.
var (
	secretName = `[\w.-]*(?:token|secret|passw(?:or)?d|passphrase|authorization|[_-]pat|` +
		`(?:api|access|auth|account|secret)[_-]?key(?:[_-]?id)?)`
	begins   = `(?:^|[;&|(])\s*(?:(?:sudo|env|export|set)\s+)*(?:\w+=[^\s"']*\s+)*`
	assigns  = lazily(`(?i)` + begins + secretName + `=\\?["']?$`)
	entrusts = lazily(`(?i)(?:(?:^|\s)--?` + secretName + `[ =]\\?["']?` +
		`|\s(?:-e|--env)[ =]` + secretName + `=\\?["']?` +
		`|\s(?:-H|--header)[ =]?\\?["']` + secretName + `:\s*` +
		`|^\s*` + secretName + `:\s+["']?` +
		`|["']` + secretName + `\\?["']\s*:\s*\\?["'])(?:(?:bearer|basic|token)\s+)?$`)
	userinfo  = lazily(`://([^\s/@"']*:)?$`)
	parameter = lazily(`(?i)://[^\s"'?#]+\?(?:[^\s"'#]*&)?` + secretName + `=$`)
	curlUser  = lazily(`(?i)` + begins + `curl\b(?:[^;&|()<>"'\x60\\]|\\.|"[^"]*"|'[^']*')*` +
		`\s(?:-[a-z]*u|--user)[ =]?["']?(?:[^\s:"'/@]*:)?$`)
	authorizes = lazily(`(?i)authorization\\?["']?\s*:\s*\\?["']?(?:bearer|basic|token)\s+` +
		`([0-9a-z+][0-9a-z._+/-]{7,}=*)(?:[\s\\"']|$)`) // token68 of RFC 9110
	unquoted = lazily(`^(?:[^"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')*$`)
	// opening matches a member of JSON up to its text.
	opening = lazily(`^\s*"[^"\\]*": ?"`)
	written = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
)

// maxBefore limits the bytes of context before a token, and an eighth of it those in texts that are only read, which may
// be longer. With more context on its row, a token is not masked.
const maxBefore = 4096

// rowOf returns the context before a position on its row, with JSON decoded; empty if that is too long, or if the flags of
// a command have ended.
func rowOf(before string, src source) string {
	most := maxBefore >> (3 * (src & prose))
	before = strings.ReplaceAll(before[max(len(before)-most-1, 0):], "\\\n", "  ") // an escaped newline ends no row
	before = before[strings.LastIndexByte(before, '\n')+1:]
	if len(before) > most || src&prose == 0 && strings.Contains(before, " -- ") {
		return ""
	}
	if src&jsonText != 0 {
		return written.Replace(opening().ReplaceAllString(before, ""))
	}
	return before
}

// entrusted reports whether the text before a token says that it is a secret.
func entrusted(before string, src source) bool {
	row := rowOf(before, src)
	return entrusts().MatchString(row) || endsWithMatch(row, assigns) || src&jsonText != 0 && entrusts().MatchString(rowOf(before, 0))
}

// logsIn reports whether a token is a credential of a URL or of curl.
func logsIn(text string, word, token piece, src source) bool {
	url, after := text[max(word.from, token.from-maxBefore/16):token.from], text[token.to:]
	if strings.HasPrefix(after, "@") {
		return userinfo().MatchString(url)
	}
	return (after == "" || strings.IndexByte("/.", after[0]) < 0) &&
		(parameter().MatchString(url) || endsWithMatch(rowOf(text[:token.from], src), curlUser))
}

// endsWithMatch reports whether a row ends with a match that begins outside of quotes.
func endsWithMatch(row string, such func() *regexp.Regexp) bool {
	at := such().FindStringIndex(row)
	return len(at) > 0 && unquoted().MatchString(row[:at[0]])
}

// looksLikeWords reports whether a token may be words between hyphens or dots, like names of hosts and folders: random tokens
// have capital letters, small ones and digits.
func looksLikeWords(token string) bool {
	return strings.ContainsAny(token, "-./") && (token == strings.ToLower(token) || !strings.ContainsAny(token, "0123456789"))
}

// shortestSecret is the length of the shortest known secret, in bytes.
const shortestSecret = 20

// shape is the syntax of a kind of secret: a unique prefix and what follows it.
type shape struct {
	prefix string
	rest   func() *regexp.Regexp
}

// shapeText has the known secrets: in each row what follows a prefix, and the prefixes. A shape is only here if its maker publishes it
// and its prefix is unique.
//
//go:embed shapes.txt
var shapeText string

var shapes = func() (all []shape) {
	for row := range strings.Lines(shapeText) {
		if f := strings.Fields(row); f[0] != "#" {
			whole := lazily(`^` + f[0])
			for _, prefix := range f[1:] {
				all = append(all, shape{prefix, whole})
			}
		}
	}
	return all
}()

// telegram matches a bot's token: its id and 35 characters.
var telegram = lazily(`^[0-9]{8,10}:AA[0-9A-Za-z_-]{33}`)

// known is the length in bytes of the known secret that text begins with, or 0. What follows cannot be part of it.
func known(text string) int {
	n := 0
	switch {
	case len(text) < shortestSecret:
		return 0
	case '0' <= text[0] && text[0] <= '9':
		n = len(telegram().FindString(text))
	default:
		for _, s := range shapes {
			if rest, ok := strings.CutPrefix(text, s.prefix); ok {
				if m := len(s.rest().FindString(rest)); m > 0 {
					n = max(n, len(s.prefix)+m)
				}
			}
		}
	}
	if n < len(text) && nameByte(text[n]) {
		return 0
	}
	return n
}

// The body lines of a private key in PEM are masked if the block is complete: a begin line, lines of equal length with a
// last one that is not longer, an end line, and a decoded key of the length that it states.
var (
	keyProse = lazily(keyBlock(`\r?\n`))
	keyCoded = lazily(keyBlock(`(?:\\r)?\\n`))
)

// keyEnd ends the begin and end lines.
const keyEnd = "PRIVATE KEY-----"

func keyBlock(newline string) string {
	return `-----BEGIN ([A-Z]+ )?` + keyEnd + newline +
		`((?:[0-9A-Za-z+/]{16,76}` + newline + `)*[0-9A-Za-z+/]{1,76}={0,2})` + newline + `-----END ([A-Z]+ )?` + keyEnd
}

// keyLines returns the lines of the bodies of private keys in text.
func keyLines(text string, src source) (found []piece) {
	if !strings.Contains(text, keyEnd) {
		return nil
	}
	block := keyProse
	if src&jsonText != 0 {
		block = keyCoded
	}
	for _, m := range block().FindAllStringSubmatchIndex(text, -1) {
		label := func(i int) string { return text[max(m[i], 0):max(m[i+1], 0)] }
		body := text[m[4]:m[5]]
		lines := bodyLines(body, src)
		if label(2) != label(6) || !isKey(body, lines) {
			continue
		}
		for _, l := range lines {
			found = append(found, piece{m[4] + l.from, m[4] + l.to})
		}
	}
	return found
}

// bodyLines returns the lines of a body without their separators.
func bodyLines(body string, src source) (lines []piece) {
	newline := "\n"
	if src&jsonText != 0 {
		newline = `\n`
	}
	at := 0
	for line := range strings.SplitSeq(body, newline) {
		text := strings.TrimSuffix(strings.TrimSuffix(line, "\r"), `\r`)
		lines = append(lines, piece{at, at + len(text)})
		at += len(line) + len(newline)
	}
	return lines
}

// isKey reports whether the lines encode a key: DER of the length that it states, or OpenSSH's format.
func isKey(body string, lines []piece) bool {
	var all strings.Builder
	for i, l := range lines {
		n, full := l.to-l.from, lines[0].to
		if n > full || i < len(lines)-1 && n != full {
			return false
		}
		all.WriteString(body[l.from:l.to])
	}
	der, err := base64.StdEncoding.DecodeString(all.String())
	if err != nil || len(der) < shortestSecret {
		return false
	}
	if strings.HasPrefix(string(der), "openssh-key-v1\x00") {
		return true
	}
	head, size := 2, int(der[1])
	if size > 0x80 && size <= 0x82 {
		head, size = 2+size-0x80, 0
		for _, b := range der[2:head] {
			size = size<<8 | int(b)
		}
	}
	return der[0] == 0x30 && len(der) == head+size
}

// HideCodes hides codes in a text: in any case and width of letters, and with a few characters between them.
func HideCodes(text string, codes map[string]bool) string {
	if len(codes) == 0 {
		return text
	}
	var letters []letter
	for at, c := range text {
		if plain := fold(c); plain != 0 {
			letters = append(letters, letter{plain, at, at + len(string(c))})
		}
	}
	hide := map[int]bool{} // indexes of letters
	for i := range len(letters) - permissions.CodeLength + 1 {
		word := letters[i : i+permissions.CodeLength]
		if codes[joinCode(word)] {
			for j := range word {
				hide[i+j] = true
			}
		}
	}
	var all strings.Builder
	from := 0
	for i, l := range letters {
		if hide[i] {
			all.WriteString(text[from:l.start])
			all.WriteString("•")
			from = l.end
		}
	}
	return all.String() + text[from:]
}

// letter is a letter that a code may contain, and its position.
type letter struct {
	plain      byte
	start, end int
}

// maxBetween is how many bytes may be between two letters of a code.
const maxBetween = 12

// joinCode joins letters to a word; empty if they are too far apart.
func joinCode(letters []letter) string {
	word := make([]byte, len(letters))
	for i, l := range letters {
		if i > 0 && l.start-letters[i-1].end > maxBetween {
			return ""
		}
		word[i] = l.plain
	}
	return string(word)
}

// fold is the capital letter or digit that a character is read as, or 0.
func fold(c rune) byte {
	if c > unicode.MaxASCII {
		plain := norm.NFKD.String(string(c))
		c = []rune(plain)[0]
	}
	switch {
	case c >= 'a' && c <= 'z':
		return byte(c - 'a' + 'A')
	case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return byte(c)
	}
	return 0
}
