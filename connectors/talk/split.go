package talk

import (
	"bytes"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

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
	return last == '\u200D' || next == '\u200D' || tone || unicode.In(next, unicode.M, unicode.Variation_Selector)
}
