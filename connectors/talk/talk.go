// Package talk is the way from what an agent of ours says to the messages that its person reads. It is pure: values in,
// text out.
//
// [Parts] splits a text where it reads best: between paragraphs, else lines, else words, else characters. Fenced blocks
// and `words` between backticks become code, and are code in every message that they reach into.
//
// Whatever the agent wrote goes through [card.Prose], so nothing in it is hidden or reordered. Every message begins
// with the agent's name, so it is never taken for one of daycared's own; where some of it looks like a row of ours, all
// its rows begin with the sign that agents' words have on cards. Codes of what is pending are masked: they are for
// people, and an agent that shows one wants it to be answered.
package talk

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// Limits are those of a channel for one message.
type Limits struct {
	Text int // units of text, at least 200
	Unit card.Unit
	Code int // pieces of code; 0: any number
}

// Part is one message.
type Part struct {
	Text string
	Code []Span // in order, apart from each other
}

// Plain is the message for where code looks like any text: code within a row stands between backticks again.
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

// Span is the code from the byte Start up to, not including, the byte End of a text.
type Span struct {
	Start, End int
	Block      bool   // rows of their own
	Language   string // of a block; may be empty
}

const (
	// mostName is how many characters of the agent's name are shown.
	mostName = 64
	// goesOn begins the code of a message whose first row would lose its indentation at the very start.
	goesOn = "…\n"
)

// Parts are the messages that s is, at least one. Each is within the limits.
func Parts(s connectors.Saying, l Limits) []Part {
	name := nameOf(s.Agent)
	b := write(masked(s.Text, s.Codes))
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

// nameOf is an agent's name as a message begins with it.
func nameOf(agent string) string {
	return permissions.Brief(card.Visible(agent), mostName)
}

// part is a cut of the text under its head.
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

// cut is a part of the text of a body, in bytes.
type cut struct{ from, to int }

// split cuts the text so that each part has at most room units.
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

// reach is how far a part may go that begins at from.
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

// choose finds the best place, not far before end, and where the next part begins.
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
		return at - trailing(b.text[from:at], '\n'), at + 1 + leading(b.text[at+1:], '\n')
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

func leading(text []byte, c byte) int { return len(text) - len(bytes.TrimLeft(text, string(c))) }

// open is what we wrote in place of something that is not seen, and have not written to its end.
var open = regexp.MustCompile(`(\\[ux]\{[0-9A-Fa-f]{0,6}|\\[ux]|\\|⟨[0-9]+ ?[a-z]*)$`)

// within is how many bytes at the end of a text are the beginning of such.
func within(text []byte) int {
	tail := text[max(len(text)-40, 0):]
	at := open.FindIndex(tail)
	if at == nil {
		return 0
	}
	return len(tail) - at[0]
}

// joined tells whether what is seen as one character would be cut between two texts.
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
