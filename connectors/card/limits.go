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
		n += l.Unit.Of(r.sign+r.text) + 1
	}
	return n
}

// byImportance are the sections that may be left out, the last ones first.
var byImportance = []section{
	inAction, inNeeds, inSummary, inPlace, inEnvironment, inReason, inMessage, inDetails,
}

// labels name the sections in the rows that say that one is left out completely.
var labels = map[section]string{
	inAction: "The action", inNeeds: "What else it needs", inSummary: "The summary", inPlace: "Where it runs",
	inEnvironment: "The environment", inReason: "What it says", inMessage: "The message", inDetails: "The details",
}

// choose returns the rows of a short card that fit, in order. Some rows always stay; ok is false if they do not fit.
func (l Limits) choose(s *sheet) (rows []row, ok bool) {
	left := math.MaxInt
	if l.Text > 0 {
		left = l.Text + 1 // the last row has no newline
	}
	exact := l.cost(s.of(inAction)) + l.cost(s.of(inNeeds))
	for _, in := range []section{inTitle, inWarnings, inTerms, inNotes, inCode} {
		left -= l.cost(s.of(in))
	}
	var warning []row
	if whole := exact <= left && !s.cut; !whole {
		w := &sheet{width: s.width, in: inNotes}
		w.row("Not all of what it wants is shown here: read the whole before you answer.")
		warning = w.rows
		left -= l.cost(warning)
	}
	kept := map[section][]row{}
	for _, in := range byImportance {
		most, spend := math.MaxInt, left
		if in == inDetails && l.Rows > 0 {
			most = l.Rows + 1 // the label
		}
		if in == inAction && exact > left {
			spend /= 2
		}
		kept[in] = l.first(s.of(in), most, spend, labels[in])
		left -= l.cost(kept[in])
	}
	for in := inTitle; in <= inCode; in++ {
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

// first returns as many rows as there is room for, and a row about the rest. Of an action they are the first and the last.
func (l Limits) first(rows []row, most, room int, label string) []row {
	if len(rows) == 0 || len(rows) <= most && l.cost(rows) <= room {
		return rows
	}
	more := func(n int) []row {
		r := row{text: "… " + plural(len(rows)-n, "more row"), in: rows[0].in}
		if n == 0 {
			r.text = label + ": " + plural(len(rows), "row")
		}
		return []row{r}
	}
	room -= max(l.cost(more(0)), l.cost(more(1)))
	if room < 0 {
		return nil
	}
	n, end := 0, len(rows) // rows[n:end] are left out
	for n+len(rows)-end < min(len(rows), most) {
		next := n
		if rows[0].in == inAction && n > len(rows)-end {
			next = end - 1
		}
		if room -= l.cost(rows[next : next+1]); room < 0 {
			break
		}
		if next == n {
			n++
		} else {
			end--
		}
	}
	return slices.Concat(rows[:n], more(n+len(rows)-end), rows[end:])
}
