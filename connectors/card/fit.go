package card

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Message is a card as a channel of limits shows it. The Document, if there is one, is sent first and holds the whole
// card; nothing may be allowed before it was delivered.
type Message struct {
	Document *Document
	Text     string
	Marks    []Mark // of Text
	TooBig   bool   // the channel cannot show the whole: there it may be denied, never allowed
}

// Document is a card as a file of plain text.
type Document struct {
	Name   string
	Body   []byte
	Digest permissions.Digest // of Body
}

// Fit is p's card for a channel of limits: whole if it fits. Otherwise the whole is a document, and the text is the card
// without what did not fit, with our summary, the document's name, size and digest, and always with who asks for what
// kind of thing and the terms. The exact action is left out last, and the text says so. Whatever the request holds, the
// text is within the limits; limits below about a thousand characters may hold nothing but that it is too big.
func Fit(p connectors.Prompt, o Options, l Limits) Message {
	whole := newSheet(o.Width)
	whole.fill(p, o)
	m := Message{Text: whole.String(), Marks: marks(whole.rows)}
	if l.holds(m.Text) && (l.Rows == 0 || len(whole.of(inDetails)) <= l.Rows) {
		return m
	}
	d := document(p.Code, m.Text)
	m = Message{Document: &d}
	if l.Document != 0 && len(d.Body) > l.Document {
		m = Message{TooBig: true}
	}
	short := &sheet{width: whole.width, short: true}
	short.head(p, o)
	for in := inPlace; in <= inDetails; in++ {
		short.rows = append(short.rows, whole.of(in)...)
	}
	short.terms(p.Request, o)
	short.note(d, m.TooBig, Summary(p.Request))
	rows, ok := l.choose(short)
	if !ok {
		m.TooBig = true
		rows = []row{{text: l.cut("A request is too big to be shown here; it cannot be allowed here. Its code: " + Visible(short.name(p.Code)))}}
	}
	m.Text, m.Marks = text(rows), marks(rows)
	return m
}

func document(code, text string) Document {
	name := "daycared"
	if code != "" && !strings.ContainsFunc(code, func(c rune) bool { return c >= 0x80 || !unicode.In(c, unicode.L, unicode.N) }) {
		name += "-" + code
	}
	body := []byte(text + "\n")
	return Document{Name: name + ".txt", Body: body, Digest: sha256.Sum256(body)}
}

// note adds our summary and where the whole is.
func (s *sheet) note(d Document, big bool, summary []string) {
	s.in = inSummary
	s.facts("summary", summary)
	s.in = inNotes
	if big {
		s.fact("too big", fmt.Sprintf("to be shown here whole (%d bytes): it cannot be allowed here", len(d.Body)))
		return
	}
	s.fact("all of it", fmt.Sprintf("is in the file above: %s, %d bytes, sha256 %s",
		d.Name, len(d.Body), strings.TrimPrefix(d.Digest.Short(), "sha256:")))
}
