package card

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Of a private key in PEM the lines of the body are masked, if the block is whole: a line that says what it is, lines of
// one length, a last one that is no longer, and the line that ends it; and what they encode is a key that is as long as
// it says it is.
var (
	keyProse = regexp.MustCompile(keyBlock(`\r?\n`))
	keyCoded = regexp.MustCompile(keyBlock(`(?:\\r)?\\n`))
)

// keyEnd ends the lines around a body.
const keyEnd = "PRIVATE KEY-----"

func keyBlock(newline string) string {
	return `-----BEGIN ([A-Z]+ )?` + keyEnd + newline +
		`((?:[0-9A-Za-z+/]{16,76}` + newline + `)*[0-9A-Za-z+/]{1,76}={0,2})` + newline + `-----END ([A-Z]+ )?` + keyEnd
}

// keyLines are the lines of the bodies of the private keys in text.
func keyLines(text string, src source) (found []piece) {
	if !strings.Contains(text, keyEnd) {
		return nil
	}
	block := keyProse
	if src == coded {
		block = keyCoded
	}
	for _, m := range block.FindAllStringSubmatchIndex(text, -1) {
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

// bodyLines are the lines of a body without what separates them.
func bodyLines(body string, src source) (lines []piece) {
	newline := "\n"
	if src == coded {
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

// isKey tells whether the lines encode a key: in DER, of the length that it gives itself, or as OpenSSH writes them.
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
