package card

import (
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Unit is how a channel measures texts.
type Unit int

// The units.
const (
	Characters Unit = iota // code points
	UTF16                  // UTF-16 code units, as at Telegram
	Bytes
)

// Of is the length of text.
func (u Unit) Of(text string) (n int) {
	switch u {
	case Bytes:
		return len(text)
	case UTF16:
		for _, c := range text {
			n += utf16.RuneLen(c)
		}
		return n
	}
	return utf8.RuneCountInString(text)
}

// Limits are what a channel can show. The zero Limits are unlimited.
type Limits struct {
	Text     int // the longest text, in Unit; 0: unlimited
	Unit     Unit
	Rows     int // of details in a text, the rest is in the document; 0: unlimited
	Document int // the largest document in bytes; 0: unlimited; negative: the channel has none
}

// holds reports whether text is short enough.
func (l Limits) holds(text string) bool { return l.Text <= 0 || l.Unit.Of(text) <= l.Text }

// cut shortens text to the limit.
func (l Limits) cut(text string) string {
	for !l.holds(text) {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// cost is the length of rows with their newlines.
func (l Limits) cost(rows []row) (n int) {
	for _, r := range rows {
		n += l.Unit.Of(r.text) + 1
	}
	return n
}

// byImportance are the sections that may be left out, the last ones first.
var byImportance = []section{
	inAction, inNeeds, inSummary, inPlace, inEnvironment, inReason, inMessage, inDetails,
}

// labels begin the rows that say that a section is left out completely.
var labels = map[section]string{
	inAction: "it wants", inNeeds: "it needs", inSummary: "summary", inPlace: "where", inEnvironment: "environment",
	inReason: "it says", inMessage: "message", inDetails: "details",
}

// choose returns the rows of a short card that fit, in order. Some rows always stay; ok is false if they do not fit.
func (l Limits) choose(s *sheet) (rows []row, ok bool) {
	left := math.MaxInt
	if l.Text > 0 {
		left = l.Text + 1 // the last row has no newline
	}
	exact := l.cost(s.of(inAction)) + l.cost(s.of(inNeeds))
	for _, in := range []section{inRule, inWho, inNotes, inTerms} {
		left -= l.cost(s.of(in))
	}
	var warning []row
	if whole := exact <= left && !s.cut; !whole {
		w := &sheet{width: s.width, in: inNotes}
		w.fact("not here", "the whole of what it wants; read that before you answer")
		warning = w.rows
		left -= l.cost(warning)
	}
	kept := map[section][]row{}
	for _, in := range byImportance {
		most, spend := math.MaxInt, left
		if in == inDetails && l.Rows > 0 {
			most = l.Rows
		}
		if in == inAction && exact > left {
			spend /= 2
		}
		kept[in] = l.first(s.of(in), most, spend, labels[in])
		left -= l.cost(kept[in])
	}
	for in := inRule; in <= inTerms; in++ {
		if slices.Contains(byImportance, in) {
			rows = append(rows, kept[in]...)
			continue
		}
		rows = append(rows, s.of(in)...)
		if in == inNotes {
			rows = append(rows, warning...)
		}
	}
	return rows, left >= 0
}

// first returns as many rows as there is room for, and a row about the rest.
func (l Limits) first(rows []row, most, room int, label string) []row {
	if len(rows) <= most && l.cost(rows) <= room {
		return rows
	}
	more := func(n int) []row {
		if n > 0 {
			return []row{{text: pad("", column) + "… " + plural(len(rows)-n, "more row")}}
		}
		return []row{{text: pad(label, column) + "… " + plural(len(rows), "row")}}
	}
	room -= max(l.cost(more(0)), l.cost(more(1)))
	if room < 0 {
		return nil
	}
	n := 0
	for n < min(len(rows), most) {
		if room -= l.cost(rows[n : n+1]); room < 0 {
			break
		}
		n++
	}
	return append(slices.Clone(rows[:n]), more(n)...)
}
