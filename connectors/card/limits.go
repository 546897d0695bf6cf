package card

import (
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Unit is what a channel counts texts in.
type Unit int

// The units.
const (
	Characters Unit = iota // code points
	UTF16                  // UTF-16 code units, as Telegram counts
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

// Limits are what a channel can show. The zero Limits bound nothing.
type Limits struct {
	Text     int // the longest text, in Unit; 0: no bound
	Unit     Unit
	Rows     int // of details that a text may have; more are left to the document; 0: no bound
	Document int // the largest document, in bytes; 0: no bound; below 0: the channel has none
}

// holds tells whether text is short enough.
func (l Limits) holds(text string) bool { return l.Text <= 0 || l.Unit.Of(text) <= l.Text }

// cut is as much of text as is short enough.
func (l Limits) cut(text string) string {
	for !l.holds(text) {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// cost is what rows and the newlines after them add to a text.
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

// labels begin the rows that say that a section is left out whole.
var labels = map[section]string{
	inAction: "it wants", inNeeds: "it needs", inSummary: "summary", inPlace: "where", inEnvironment: "environment",
	inReason: "it says", inMessage: "message", inDetails: "details",
}

// choose are the rows of a short card that fit, in their order. Some always stay; not ok says that they do not fit.
func (l Limits) choose(s *sheet) (rows []row, ok bool) {
	left := math.MaxInt
	if l.Text > 0 {
		left = l.Text + 1 // no newline is after the last row
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

// first are as many of the rows as there is room for, and how many more there are.
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
