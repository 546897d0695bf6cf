package telegramtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The limits of the Bot API, in UTF-16 code units after the text was tidied.
const (
	maxText    = 4096
	maxCaption = 1024
	maxToast   = 200

	// maxEntities is how many entities a text keeps.
	maxEntities = 100
)

// Entity marks a part of a text. Offset and Length count UTF-16 code units.
type Entity struct {
	Type          string `json:"type"`
	Offset        int    `json:"offset"`
	Length        int    `json:"length"`
	URL           string `json:"url,omitempty"`
	User          *User  `json:"user,omitempty"`
	Language      string `json:"language,omitempty"`
	CustomEmojiID string `json:"custom_emoji_id,omitempty"`
}

// given are the types that a bot may give; Telegram ignores others, or finds them by itself.
var given = []string{
	"bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre",
	"text_link", "text_mention", "custom_emoji", "date_time",
}

// Of is the part of text that the entity marks; empty where it marks none.
func (e Entity) Of(text string) string {
	units := utf16.Encode([]rune(text))
	if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(units) {
		return ""
	}
	return string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
}

// units is the length of a text in UTF-16 code units.
func units(text string) int { return len(utf16.Encode([]rune(text))) }

// tidy makes of a text and its entities what Telegram makes of them: control characters become spaces, some characters
// vanish, both ends are trimmed (the start not into an entity), and the entities move along.
func tidy(text string, entities []Entity) (string, []Entity, *failure) {
	if !utf8.ValidString(text) {
		return "", nil, badRequest("strings must be encoded in UTF-8")
	}
	for _, e := range entities {
		if e.Offset < 0 {
			return "", nil, badRequest("receive an entity with incorrect offset %d", e.Offset)
		}
		if e.Length < 0 {
			return "", nil, badRequest("receive an entity with incorrect length %d", e.Length)
		}
	}
	entities = slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return e.Length == 0 })
	slices.SortStableFunc(entities, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	text, entities, refused := clean(text, entities)
	if refused != nil {
		return "", nil, refused
	}
	text = strings.TrimRight(text, " \n")
	end := units(text)
	first := end
	if len(entities) > 0 {
		first = min(first, entities[0].Offset)
	}
	start := 0
	for start < first && start < len(text) && (text[start] == ' ' || text[start] == '\n') {
		start++
	}
	kept := entities[:0]
	for _, e := range entities {
		if e.Length = min(e.Length, end-e.Offset); e.Length > 0 {
			e.Offset -= start
			kept = append(kept, e)
		}
	}
	return text[start:], kept, nil
}

// clean replaces and removes characters, and refuses entities that do not fit the text.
func clean(text string, entities []Entity) (string, []Entity, *failure) {
	var kept strings.Builder
	at, after, bytes := 0, 0, 0 // UTF-16 code units of text and of kept, bytes of text
	place := map[int]int{}      // of the beginnings of symbols: from the one to the other
	next := map[int]int{}       // of the middles of symbols: the byte at which the next symbol begins
	for _, r := range text {
		place[at] = after
		size := utf16.RuneLen(r)
		bytes += utf8.RuneLen(r)
		if size == 2 {
			next[at+1] = bytes
		}
		at += size
		switch {
		case gone(r):
			continue
		case r < ' ' && r != '\n':
			r = ' '
		}
		kept.WriteRune(r)
		after += size
	}
	place[at] = after
	for i, e := range entities {
		end := e.Offset + e.Length
		from, begins := place[e.Offset]
		to, ends := place[end]
		switch {
		case e.Offset > at:
			return "", nil, badRequest("entity begins after the end of the text at UTF-16 offset %d", e.Offset)
		case !begins:
			return "", nil, badRequest("entity begins in a middle of a UTF-16 symbol at byte offset %d", next[e.Offset])
		case end > at:
			return "", nil, badRequest("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 "+
				"offset %d", e.Offset, end)
		case !ends:
			return "", nil, badRequest("entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol at byte "+
				"offset %d", e.Offset, next[end])
		}
		entities[i].Offset, entities[i].Length = from, to-from
	}
	return kept.String(), entities, nil
}

// gone reports whether Telegram removes a character from whatever bots send.
func gone(r rune) bool {
	return r == '\r' || r >= '\u2028' && r <= '\u202e' || r == '\u0333' || r == '\u033f' || r == '\u030a'
}

// blank reports whether a text shows nothing.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		switch {
		case r >= '\u2000' && r <= '\u200f', r >= '\U000e0000' && r <= '\U000e007f':
			return true
		}
		return strings.ContainsRune(" \n\u00a0\u1680\u180e\u202e\u202f\u205f\u2800\u3000\ufeff\ufffc", r)
	}) == ""
}

// tangled says in words what Telegram would not keep of entities, sorted as tidy sorts them: two that overlap, and
// anything within code or code within anything but a quote. It splits or drops those without a word.
func tangled(entities []Entity) string {
	for i, outer := range entities {
		for _, inner := range entities[i+1:] {
			switch {
			case inner.Offset >= outer.Offset+outer.Length:
			case inner.Offset+inner.Length > outer.Offset+outer.Length:
				return "a " + inner.Type + " overlaps a " + outer.Type
			case isCode(outer), isCode(inner) && !strings.HasSuffix(outer.Type, "blockquote"):
				return "a " + inner.Type + " lies within a " + outer.Type
			}
		}
	}
	return ""
}

func isCode(e Entity) bool { return e.Type == "code" || e.Type == "pre" }

// formatted reads a text and its entities from a call. The lock is held.
func (s *Server) formatted(q *query, text, entities string) (string, []Entity, *failure) {
	if q.values["parse_mode"] != "" {
		s.violate("parse_mode", "this server does not model parse modes; send entities")
		return "", nil, badRequest("unsupported parse_mode")
	}
	var marks []Entity
	if _, err := q.decode(entities, &marks); err != nil {
		return "", nil, badRequest("can't parse entities JSON object")
	}
	marks = slices.DeleteFunc(marks, func(e Entity) bool { return !slices.Contains(given, e.Type) })
	tidied, marks, refused := tidy(q.values[text], marks)
	if refused != nil {
		return "", nil, refused
	}
	if len(marks) > maxEntities {
		s.violate("entities", fmt.Sprintf("%d of them, of which the server drops some", len(marks)))
	}
	if fault := tangled(marks); fault != "" {
		s.violate("entities", fault+", and would be changed")
	}
	return tidied, marks, nil
}
