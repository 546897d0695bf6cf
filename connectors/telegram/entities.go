package telegram

import (
	"strings"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors/card"
)

// The formats that are used.
const (
	asBold  = "bold"
	asCode  = "code"
	asPre   = "pre"
	asQuote = "expandable_blockquote"
)

// span is a part of a text that is to be formatted: from the byte start up to, not including, the byte end.
type span struct {
	format     string
	start, end int
	language   string // of code in rows of its own
}

// entitiesOf are spans of text as Telegram counts them. Telegram drops or moves entities that begin or end in white
// space, splits those that overlap, and refuses a message in which one cuts a character; so those are narrowed, and
// what is empty, cuts a character or does not come in order is left out.
func entitiesOf(text string, spans []span) []entity {
	var all []entity
	at, offset := 0, 0 // the same place in bytes and in units
	for _, s := range spans {
		s.end = min(s.end, len(text)) // white space at the end of a text was taken away
		if s.start < at || s.start >= s.end || cuts(text, s.start) || cuts(text, s.end) {
			continue
		}
		part := strings.TrimLeft(text[s.start:s.end], " \n")
		start := s.end - len(part)
		if part = strings.TrimRight(part, " \n"); part == "" {
			continue
		}
		offset += card.UTF16.Of(text[at:start])
		length := card.UTF16.Of(part)
		all = append(all, entity{Type: s.format, Offset: offset, Length: length, Language: s.language})
		at, offset = start+len(part), offset+length
	}
	return all
}

// cuts tells whether the byte at is within a character.
func cuts(text string, at int) bool { return at < len(text) && !utf8.RuneStart(text[at]) }

// visible is [card.Visible] for Telegram.
func visible(text string) string { return card.Isolate(card.Visible(text)) }

// prose is [card.Prose] for Telegram.
func prose(text string) string { return card.Isolate(card.Prose(text)) }

// clipTo is text, or so much of its start, and "…", that it has at most so many UTF-16 units.
func clipTo(text string, most int) string {
	if card.UTF16.Of(text) <= most {
		return text
	}
	used, end := 0, 0
	for i, c := range text {
		if used += card.UTF16.Of(string(c)); used > most-1 {
			break
		}
		end = i + utf8.RuneLen(c)
	}
	text = strings.TrimRight(text[:end], " \u200D") + "…"
	if strings.Count(text, card.FSI) > strings.Count(text, card.PDI) { // it was cut within one
		text += card.PDI
	}
	return text
}
