package talk

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/connectors/card"
)

// body is a rendered text before it is split.
type body struct {
	text       []byte
	code       []Span
	paragraphs []int // starts of paragraphs, of code blocks and of what follows them
}

// row is a line outside of code blocks, or a whole block.
type row struct {
	text     string
	pieces   []Span // of text
	block    bool
	language string
}

// write renders a text: code blocks, and rows with inline code.
func write(text string) *body {
	rows := trimmed(rowsOf(strings.ReplaceAll(text, "\r\n", "\n")))
	sign := ""
	for _, r := range rows {
		if !r.block && forged(r.text) {
			sign = "│ "
		}
	}
	b := &body{}
	for i, r := range rows {
		if i > 0 {
			b.text = append(b.text, '\n')
			if before := rows[i-1]; r.block || before.block || before.text == "" && r.text != "" {
				b.paragraphs = append(b.paragraphs, len(b.text))
			}
		}
		if !r.block && r.text != "" {
			b.text = append(b.text, sign...)
		}
		for _, p := range r.pieces {
			p.Start, p.End = p.Start+len(b.text), p.End+len(b.text)
			b.code = append(b.code, p)
		}
		if r.block && r.text != "" {
			b.code = append(b.code, Span{
				Start: len(b.text), End: len(b.text) + len(r.text), Block: true, Language: r.language,
			})
		}
		b.text = append(b.text, r.text...)
	}
	return b
}

// fence matches the fence of a code block, as in CommonMark.
var fence = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$")

var plainLanguage = regexp.MustCompile(`^[A-Za-z0-9+#._-]{1,30}$`)

// rowsOf renders a text as rows. An unclosed block extends to the end of the text.
func rowsOf(text string) (rows []row) {
	var block []string
	language, ends := "", "" // of the block; ends is empty outside of blocks
	end := func() {
		if ends != "" {
			rows = append(rows, row{text: strings.Join(block, "\n"), block: true, language: language})
		}
		block, ends = nil, ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case ends != "" && m != nil && m[2] == "" && strings.HasPrefix(m[1], ends):
			end()
		case ends != "":
			block = append(block, show(line))
		case begins(m):
			ends, language = m[1], m[2]
			if !plainLanguage.MatchString(language) {
				if language != "" {
					rows = append(rows, row{text: show(language)})
				}
				language = ""
			}
		default:
			rows = append(rows, inline(line))
		}
	}
	end()
	return rows
}

// begins reports whether a fence begins a block. Backticks on the same row make it inline code.
func begins(m []string) bool {
	return len(m) > 2 && (strings.HasPrefix(m[1], "~") || !strings.Contains(m[2], "`"))
}

// inline renders a line, in which text between equal runs of backticks is code.
func inline(line string) (r row) {
	var text strings.Builder
	line = strings.TrimRight(line, " \t")
	from := 0 // start of what is not written yet
	for at := 0; at < len(line); {
		if line[at] != '`' {
			at++
			continue
		}
		run := runOf(line[at:])
		inside, rest := closed(line[at+run:], run)
		if inside == "" {
			at += run
			continue
		}
		text.WriteString(visible(line[from:at]))
		start := text.Len()
		text.WriteString(visible(inside))
		r.pieces = append(r.pieces, Span{Start: start, End: text.Len()})
		at = len(line) - len(rest)
		from = at
	}
	text.WriteString(visible(line[from:]))
	r.text = text.String()
	return r
}

// closed returns what precedes the next run of exactly ticks backticks, and what follows it; empty without a run or without
// text. The text may be padded with spaces, so that it can begin or end with a backtick.
func closed(text string, ticks int) (inside, rest string) {
	for at := 0; at < len(text); {
		if text[at] != '`' {
			at++
			continue
		}
		run := runOf(text[at:])
		if run == ticks {
			return strings.Trim(text[:at], " \t"), text[at+run:]
		}
		at += run
	}
	return "", ""
}

func runOf(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }

// trimmed removes empty rows at both ends.
func trimmed(rows []row) []row {
	for len(rows) > 0 && rows[0].text == "" {
		rows = rows[1:]
	}
	for len(rows) > 0 && rows[len(rows)-1].text == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

const (
	tab = "    "
	// maxSpaces is how many spaces in a row are kept, because code is indented.
	maxSpaces = 64
)

// show renders a line without trailing white space.
func show(line string) string { return visible(strings.TrimRight(line, " \t\r")) }

var gaps = regexp.MustCompile(` {9,}`)

// visible is [card.Prose] for a part of a line, with tabs as spaces.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\t", tab)
	var all strings.Builder
	from := 0
	for _, m := range gaps.FindAllStringIndex(text, -1) {
		if m[1]-m[0] <= maxSpaces {
			all.WriteString(between(text[from:m[0]]))
			all.WriteString(text[m[0]:m[1]])
			from = m[1]
		}
	}
	all.WriteString(between(text[from:]))
	return all.String()
}

// between is [card.Prose] for a text that is not at the end of its line.
func between(text string) string {
	bare := strings.TrimRight(text, " ")
	if gap := len(text) - len(bare); gap <= maxSpaces {
		return card.Prose(bare) + text[len(bare):]
	}
	return card.Prose(text)
}

// signs begin our own rows.
const signs = "✅⛔⌛⏳✖⚠⏸✏⬇✓👍👎💬👤👥🔒"

// ours matches the beginnings of rows of cards and of daycared's other texts.
var ours = regexp.MustCompile(`(?i)^(` +
	`\S+ +(wants|paused:?$|asks:?$|·)|\S+ +\S+ +wants|it (says|needs|takes|also needs)\b|high risk|asked (since|because)|` +
	`until +[0-9]|(details|message|the answers|environment):|runs with|affects|not all of what|all of it is in|` +
	`if nobody answers|nobody waits|(un)?proven name|` +
	`allowed|denied|approved|expired|cancelled|stopped|granted|taken back|ended:|nothing (was|is) |` +
	`[0-9]+ requests? |you (are|allowed|denied|approved|chose|answered|continued|interrupted) |to allow it|reply to this message|` +
	`an agent of daycared|daycared|sha256\b)`)

// forged reports whether a row looks like one of ours.
func forged(line string) bool {
	line = strings.TrimLeft(line, " ")
	first := []rune(line + "\x00")[0]
	box := func(c rune) bool { return c >= 0x2500 && c <= 0x259F }
	return strings.ContainsRune(signs, first) || strings.ContainsFunc(line, box) ||
		ours.MatchString(norm.NFKC.String(line))
}
