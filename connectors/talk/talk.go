// Package talk renders what our agents say as messages for people. It is pure.
//
// [Parts] splits a text between paragraphs if possible, otherwise between lines, words or characters. Fenced blocks and
// `words` between backticks become code in every message that they reach into.
//
// The agent's text goes through [card.Prose], so nothing in it is hidden or reordered. Every message begins with the
// agent's name, so that it cannot be mistaken for daycared's own. If a row looks like one of ours, all rows begin with the
// sign that marks agents' words on cards. Codes of pending requests are masked: they are for people, and an agent that
// shows one wants it to be answered.
package talk

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// Limits are a channel's limits for one message.
type Limits struct {
	Text int // units of text, at least 200
	Unit card.Unit
	Code int // pieces of code; 0: unlimited
}

// Part is one message.
type Part struct {
	Text string
	Code []Span // in order, without overlaps
}

// Plain is the message for channels without formatting: inline code is between backticks again.
func (p Part) Plain() string {
	text, at := "", 0
	for _, code := range p.Code {
		if !code.Block {
			text += p.Text[at:code.Start] + "`" + p.Text[code.Start:code.End] + "`"
			at = code.End
		}
	}
	return text + p.Text[at:]
}

// Span is code in a text: bytes Start to End, exclusive.
type Span struct {
	Start, End int
	Block      bool   // in rows of its own
	Language   string // of a block; may be empty
}

const (
	// maxName limits the agent's name in characters.
	maxName = 64
	// goesOn precedes code at the start of a message, whose first row would otherwise lose its indentation.
	goesOn = "…\n"
)

// Parts splits s into one or more messages within the limits.
func Parts(s connectors.AgentMessage, l Limits) []Part {
	name := permissions.Brief(card.Visible(s.Agent), maxName)
	b := write(card.HideCodes(s.Text, s.Codes))
	room := l.Text - l.Unit.Of(name+" (999/999):\n"+goesOn)
	cuts := b.split(room, l)
	parts := make([]Part, len(cuts))
	for i, c := range cuts {
		head := name
		if len(cuts) > 1 {
			head += fmt.Sprintf(" (%d/%d)", i+1, len(cuts))
		}
		parts[i] = b.part(head+":", c)
	}
	return parts
}

func (b *body) part(head string, c cut) Part {
	var p Part
	text := string(b.text[c.from:c.to])
	lead := " "
	for _, s := range b.code {
		start, end := max(s.Start, c.from), min(s.End, c.to)
		if start >= end {
			continue
		}
		if s.Block && start == c.from {
			lead = "\n"
			if s.Start < c.from && strings.HasPrefix(text, " ") {
				lead += goesOn
			}
		}
		s.Start, s.End = start-c.from, end-c.from
		p.Code = append(p.Code, s)
	}
	if text == "" {
		lead = ""
	}
	p.Text = head + lead + text
	shift := len(head) + len(lead)
	for i := range p.Code {
		p.Code[i].Start += shift
		p.Code[i].End += shift
	}
	if strings.HasSuffix(lead, goesOn) {
		p.Code[0].Start -= len(goesOn)
	}
	return p
}

// cut is a range of a body's text, in bytes.
type cut struct{ from, to int }

// split cuts the text into parts of at most room units.
func (b *body) split(room int, l Limits) (cuts []cut) {
	for from := 0; ; {
		end := b.reach(from, room, l)
		if end == len(b.text) {
			return append(cuts, cut{from, end})
		}
		to, next := b.choose(from, end)
		cuts = append(cuts, cut{from, to})
		from = next
	}
}

// reach is how far a part that begins at from may go.
func (b *body) reach(from, room int, l Limits) int {
	end := from
	for end < len(b.text) {
		c, size := utf8.DecodeRune(b.text[end:])
		if room -= l.Unit.Of(string(c)); room < 0 {
			break
		}
		end += size
	}
	pieces := 0
	for _, s := range b.code {
		if l.Code > 0 && s.Start > from && s.Start < end && pieces == l.Code {
			return s.Start
		}
		if s.End > from && s.Start < end {
			pieces++
		}
	}
	return end
}

// choose finds the best place to cut, not far before end, and where the next part begins.
func (b *body) choose(from, end int) (to, next int) {
	least := from + (end-from)/4 + 1
	for _, p := range slices.Backward(b.paragraphs) {
		if to := p - 1; to >= least && to <= end {
			return to - trailing(b.text[from:to], '\n'), p
		}
	}
	last := func(c byte) int {
		at := bytes.LastIndexByte(b.text[from:end+1], c) + from
		if at < least || within(b.text[from:at]) > 0 {
			return -1
		}
		return at
	}
	if at := last('\n'); at > 0 {
		return at - trailing(b.text[from:at], '\n'), len(b.text) - len(bytes.TrimLeft(b.text[at+1:], "\n"))
	}
	if at := last(' '); at > 0 {
		return at, at + 1
	}
	at := end
	if back := at - within(b.text[from:at]); back >= least {
		at = back
	}
	for at > least && joined(b.text[from:at], b.text[at:]) {
		_, size := utf8.DecodeLastRune(b.text[from:at])
		at -= size
	}
	return at, at
}

func trailing(text []byte, c byte) int { return len(text) - len(bytes.TrimRight(text, string(c))) }

// open matches an incomplete escape at the end of a text.
var open = regexp.MustCompile(`(\\[ux]\{[0-9A-Fa-f]{0,6}|\\[ux]|\\|⟨[0-9]+ ?[a-z]*)$`)

// within is the length of such an escape in bytes.
func within(text []byte) int {
	tail := text[max(len(text)-40, 0):]
	at := open.FindIndex(tail)
	if at == nil {
		return 0
	}
	return len(tail) - at[0]
}

// joined reports whether a cut would split a character as people see it.
func joined(before, after []byte) bool {
	last, _ := utf8.DecodeLastRune(before)
	next, _ := utf8.DecodeRune(after)
	flag := func(c rune) bool { return c >= 0x1F1E6 && c <= 0x1F1FF }
	if flag(last) && flag(next) {
		flags := 0
		for len(before) > 0 {
			c, size := utf8.DecodeLastRune(before)
			if !flag(c) {
				break
			}
			flags++
			before = before[:len(before)-size]
		}
		return flags%2 == 1
	}
	tone := next >= 0x1F3FB && next <= 0x1F3FF
	tag := next >= 0xE0020 && next <= 0xE007F
	return last == '\u200D' || next == '\u200D' || tone || tag || unicode.In(next, unicode.M, unicode.Variation_Selector)
}

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
		case len(m) > 2 && (strings.HasPrefix(m[1], "~") || !strings.Contains(m[2], "`")): // backticks on the same row make it inline code
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
