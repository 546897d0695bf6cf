package card

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"
)

// secretWord begins what stands for a secret, after ‹.
const secretWord = "secret"

// piece is a part of a text, in bytes.
type piece struct{ from, to int }

// source is what a text is, which tells where in it a word ends.
type source int

const (
	prose  source = iota
	shell         // a command: each of its lines may be one of its own, so no line is masked as a whole
	coded         // JSON, in which a newline is written \n
	opened        // whatever it is, its secrets are shown
)

// words are the lines of what an agent wrote, as [Lines] renders them, with its secrets masked.
//
// A secret is a token of a known shape in a word without space or shell character, so nothing that a shell would act on
// is ever masked; or a whole line of the body of a private key. Everything around it stays.
func words(text string, src source) []string {
	hide := secrets(text, src)
	if len(hide) == 0 {
		return Lines(text)
	}
	lines, at := strings.Split(text, "\n"), 0
	for i, line := range lines {
		end := at + len(line)
		n := 0
		for n < len(hide) && hide[n].from < end {
			n++
		}
		lines[i] = mask(text, at, end, hide[:n])
		at, hide = end+1, hide[n:]
	}
	return lines
}

// line is what an agent wrote as one line, whatever it holds.
func line(text string, src source) string { return mask(text, 0, len(text), secrets(text, src)) }

// mask is text[from:to] as [Visible] renders it, with what is hidden masked.
func mask(text string, from, to int, hide []piece) string {
	if len(hide) == 0 {
		return Visible(text[from:to])
	}
	var b strings.Builder
	for _, h := range hide {
		render(&b, text[from:h.from], false)
		b.WriteString(masked(text[h.from:h.to]))
		from = h.to
	}
	render(&b, text[from:to], true)
	return b.String()
}

// masked is what is shown of a secret.
func masked(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return fmt.Sprintf("‹%s, %d characters, sha256 %x›", secretWord, utf8.RuneCountInString(secret), sum[:3])
}

// secrets are the pieces of text to be masked, in order; none reaches over a newline.
func secrets(text string, src source) []piece {
	if src == opened || len(text) < shortestSecret {
		return nil
	}
	var keys, found []piece
	if src != shell {
		keys = keyLines(text, src)
	}
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
		if simple && end-at >= shortestSecret {
			found = append(found, tokens(text[at:end], at)...)
		}
		at = end
	}
	return found
}

// delimiter tells whether a word ends where rest begins: at a space, a quote or, in JSON, an escape that is one. size is
// what was looked at, in bytes.
func delimiter(rest string, src source) (size int, delimits bool) {
	switch rest[0] {
	case ' ', '\t', '\r', '\n', '"', '\'':
		return 1, true
	case '\\':
		if src == coded && len(rest) > 1 {
			return 2, strings.IndexByte(`ntr"`, rest[1]) >= 0
		}
	}
	return 1, false
}

// simpleWord tells whether text has none but letters, digits and what may stand beside a secret in a word. Everything
// that a shell acts on is missing here.
func simpleWord(text string) bool {
	for i := range len(text) {
		if !nameByte(text[i]) && strings.IndexByte(".:/=+,@", text[i]) < 0 {
			return false
		}
	}
	return true
}

// nameByte tells of what may not stand directly before or after a secret.
func nameByte(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '_' || c == '-'
}

// tokens are the secrets in a word that begins at the given place.
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
