// Package talk is the way from what an agent of ours says to the messages that its person reads. It is pure: values in,
// text out.
//
// [Parts] splits a text where it reads best: between paragraphs, else lines, else words, else characters. Fenced blocks
// and `words` between backticks become code, and are code in every message that they reach into.
//
// Whatever the agent wrote goes through [card.Visible], so nothing in it is hidden or reordered. Every message begins
// with the agent's name, so it is never taken for one of daycared's own; where some of it looks like a row of ours, all
// its rows begin with the sign that agents' words have on cards. Codes of what is pending are masked: they are for
// people, and an agent that shows one wants it to be answered.
package talk

import (
	"fmt"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
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
	name := []rune(card.Visible(agent))
	if len(name) > mostName {
		name = append(name[:mostName-1], '…')
	}
	return string(name)
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
