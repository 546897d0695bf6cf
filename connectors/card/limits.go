package card

import (
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions/i18n"
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
	Changes  int // rows of edits in a text, the rest is in the document; 0: unlimited
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
var labels = map[section]i18n.Phrase{
	inAction: "The action", inNeeds: "What else it needs", inSummary: "The summary", inPlace: "Where it runs",
	inEnvironment: "The environment", inReason: "What it says", inMessage: "The message", inDetails: "The details",
}

// choice are the rows of a short card that fit, in order.
type choice struct {
	rows []row
	ok   bool // what always stays fits
	rest bool // of everything but the exact action nothing is left out
	seen bool // something of the exact action is among them
}

// choose returns the rows of a short card that fit.
func (l Limits) choose(s *sheet) (c choice) {
	left := math.MaxInt
	if l.Text > 0 {
		left = l.Text + 1 // the last row has no newline
	}
	exact, changes := l.cost(s.of(inAction))+l.cost(s.of(inNeeds)), l.Changes > 0 && changes(s.of(inAction)) > l.Changes
	for _, in := range []section{inTitle, inWarnings, inTerms, inNotes, inCode} {
		left -= l.cost(s.of(in))
	}
	var warning []row
	if whole := exact <= left && !changes && !s.cut && !s.few; !whole {
		w := &sheet{width: s.width, in: inNotes}
		w.row(s.Text("Not all of what it wants is shown here: read the whole before you answer."))
		warning = w.rows
		left -= l.cost(warning)
	}
	kept := map[section][]row{}
	c.rest = !s.cut
	for _, in := range byImportance {
		most, spend := math.MaxInt, left
		if in == inDetails && l.Rows > 0 {
			most = l.Rows + 1 // the label
		}
		if in == inAction && exact > left {
			spend /= 2
		}
		if in == inAction {
			kept[in] = l.ends(s.of(in), spend, s.Language)
			for _, r := range s.of(in) {
				c.rest = c.rest && (r.role != Ours || slices.Contains(kept[in], r))
			}
			c.seen = len(s.of(in)) == 0 || slices.ContainsFunc(kept[in], func(r row) bool { return r.role != Ours })
		} else {
			kept[in] = l.first(s.of(in), most, spend, s.Text(labels[in]), s.Language)
			c.rest = c.rest && len(kept[in]) == len(s.of(in))
		}
		left -= l.cost(kept[in])
	}
	for in := inTitle; in <= inCode; in++ {
		if slices.Contains(byImportance, in) {
			c.rows = append(c.rows, kept[in]...)
			continue
		}
		c.rows = append(c.rows, s.of(in)...)
		if in == inNotes {
			c.rows = append(c.rows, warning...)
		}
	}
	c.ok = left >= 0
	return c
}

// Counts of rows.
const (
	someRows i18n.Phrase = "%d row|%d rows"
	moreRows i18n.Phrase = "… %d more row|… %d more rows"
)

// first returns as many rows as there is room for, and a row about the rest.
func (l Limits) first(rows []row, most, room int, label string, in i18n.Language) []row {
	if len(rows) == 0 || len(rows) <= most && l.cost(rows) <= room {
		return rows
	}
	more := func(n int) []row {
		r := row{text: in.Plural(len(rows)-n, moreRows), in: rows[0].in}
		if n == 0 {
			r.text = label + ": " + in.Plural(len(rows), someRows)
		}
		return []row{r}
	}
	room -= max(l.cost(more(0)), l.cost(more(1)))
	if room < 0 {
		return nil
	}
	n := 0
	for ; n < min(len(rows), most); n++ {
		if room -= l.cost(rows[n : n+1]); room < 0 {
			break
		}
	}
	return append(slices.Clip(rows[:n]), more(n)...)
}
