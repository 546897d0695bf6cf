package whatsapp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

// An answer may be there before WhatsApp has confirmed the card: it counts, and the card is one message.
func TestAnAnswerBeforeTheConfirmation(t *testing.T) {
	for name, answer := range map[string]func(p *whatsapptest.Person, id, code string){
		"text":   func(p *whatsapptest.Person, _, code string) { p.Says("yes " + code) },
		"quoted": func(p *whatsapptest.Person, id, _ string) { p.Quotes(id, "yes") },
		"thumb":  func(p *whatsapptest.Person, id, _ string) { p.Reacts(id, "👍") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			s.server.LoseAcks(1)
			call := s.ask(network("unconfirmed."))
			m := s.sees("fay", "unconfirmed.")
			code := codeOn(m)
			if !strings.HasPrefix(m.ID, "3EB0") || codeOf(m.ID) != code {
				t.Errorf("the card of %s is called %s", code, m.ID)
			}
			answer(s.phones["fay"], m.ID, code)
			s.get(call, permissions.Approved)
			s.until("the card says so", func() bool {
				m, _ := s.phones["fay"].Message(m.ID)
				return strings.Contains(m.Text, "You allowed this once")
			})
			if n := s.count("fay", "unconfirmed."); n != 1 {
				t.Errorf("fay has %d cards", n)
			}
		})
	}
}

// A phone that says that it has a card ends the sending of it, and until one does it is sent as the same message.
func TestACardWhoseConfirmationIsLost(t *testing.T) {
	s := newEnv(t)
	s.server.LoseAcks(2)
	call := s.ask(network("lost."))
	m := s.sees("fay", "lost.")
	s.until("it is known that the phone has it", func() bool { return s.wa.arrived(m.ID) })
	s.server.Cut() // which ends the waiting for the confirmation
	_, code := s.card("fay", "lost.")
	if n := s.count("fay", "lost."); n != 1 {
		t.Errorf("fay has %d cards", n)
	}
	sent := 0
	for _, z := range s.server.Stanzas() {
		if z.Is("message", "") && z.ID() == m.ID {
			sent++
		}
	}
	if sent != 1 {
		t.Errorf("the card was sent %d times, though the phone has said that it has it", sent)
	}
	s.phones["fay"].Says("no " + code) // and it can be answered
	s.get(call, permissions.Denied)
}

// Only a thumb on the card, or a reply to it, names it; and no thumb allows what is high risk.
func TestWhatAReactionMeans(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	for i, thumb := range []string{"👍", "👍🏻", "👍🏼", "👍🏽", "👍🏾", "👍🏿", "👍\ufe0f", "👍🏽\ufe0f", "👎🏿", "👎\ufe0e"} {
		want := permissions.Approved
		if strings.HasPrefix(thumb, "👎") {
			want = permissions.Denied
		}
		call, m, _ := s.asked(fmt.Sprintf("thumb %d.", i))
		fay.Reacts(m.ID, thumb)
		s.get(call, want)
	}
	if n := s.desk.decisions(); n != 10 {
		t.Errorf("%d decisions; want those of the thumbs", n)
	}
	s = newEnv(t) // what was denied twice is not asked again
	fay = s.phones["fay"]
	call, m, code := s.asked("other signs.")
	hello := fay.Says("hello")
	s.answers("fay", hello, "")
	notice := s.answers("fay", fay.Says("/pending"), code)
	fay.Reacts(notice.ID, "👍")
	fay.Reacts(hello, "👍")
	fay.Quotes(notice.ID, "yes")
	fay.Quotes(hello, "yes")
	for _, other := range []string{"❤️", "🙏", "✅", "", "👍👍"} {
		fay.Reacts(m.ID, other)
	}
	s.says("fay", "yes", code) // bare: what waits is told
	s.says("fay", "yes ZZZZ9", "There is no request")
	s.says("fay", "don't allow "+code, "Nothing was decided")
	s.acknowledged()
	s.waits(call)
	if n := s.desk.decisions(); n != 0 {
		t.Errorf("%d decisions by what decides nothing", n)
	}
	fay.Reacts(m.ID, "👎")
	s.get(call, permissions.Denied)
	fay.Reacts(m.ID, "") // taken back, and changed: too late
	fay.Reacts(m.ID, "👍")
	s.answers("fay", m.ID, "Too late")
}

// What is high risk takes its code and RUN.
func TestHighRisk(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	call := s.ask(toolCall("run_command", `{"command":"rm -rf build"}`))
	m, code := s.card("fay", "High risk")
	fay.Reacts(m.ID, "👍")
	fay.Reacts(m.ID, "👎")
	s.answers("fay", fay.Quotes(m.ID, "yes"), "RUN")
	s.says("fay", "yes "+code, "RUN")
	s.says("fay", "yes run", code)
	s.waits(call)
	yes := fay.Says("YES " + code + " RUN")
	s.get(call, permissions.Approved)
	s.marked("fay", yes, "✅")
	s.becomes("fay", m.ID, "You allowed this once")
	call = s.ask(toolCall("run_command", `{"command":"rm -rf everything"}`))
	_, code = s.card("fay", "rm -rf everything")
	no := fay.Says("no " + code + " because it is everything")
	if r := s.get(call, permissions.Denied); r.Comment != "it is everything" {
		t.Errorf("denied because %q", r.Comment)
	}
	s.marked("fay", no, "⛔")
}

// A clarification, a pause and a step of several calls are answered in words.
func TestOtherKinds(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	where := permissions.Request{
		Kind: permissions.KindClarification, Session: "s1", Message: "Where to?", Choices: []string{"blog", "mail to all", "nowhere"},
	}
	for text, want := range map[string]permissions.Answer{
		"CODE 2": permissions.Choose(2), "code Nowhere": permissions.Choose(3), "CODE other: staging first": permissions.Other,
	} {
		where.Message = "Where to, " + text + "?"
		call := s.ask(where)
		m, code := s.card("fay", where.Message)
		id := fay.Says(strings.NewReplacer("CODE", code, "code", strings.ToLower(code)).Replace(text))
		if r := s.get(call, permissions.Answered); r.Answer != want {
			t.Errorf("%s: %s", text, r.Answer)
		}
		s.marked("fay", id, "✅")
		s.becomes("fay", m.ID, "You ")
	}
	for text, want := range map[string]permissions.State{"CODE continue": permissions.Answered, "interrupt CODE": permissions.Answered} {
		call := s.ask(permissions.Request{
			Kind: permissions.KindPause, Mode: permissions.ModeContinue, Session: "s1", Message: "Go on, " + text + "?",
		})
		m, code := s.card("fay", "Go on, "+text+"?")
		fay.Says(strings.Replace(text, "CODE", code, 1))
		s.get(call, want)
		s.becomes("fay", m.ID, "You ")
	}
	step := permissions.Request{Kind: permissions.KindTool, Session: "s1", Calls: []permissions.Call{
		{N: 1, Tool: "write_file", Input: []byte(`{"path":"a"}`)}, {N: 2, Tool: "write_file", Input: []byte(`{"path":"b"}`)},
	}}
	call := s.ask(step)
	m, code := s.card("fay", "path: b")
	fay.Says("yes " + code + " #1")
	s.becomes("fay", m.ID, "#1 allowed")
	fay.Says("no " + code + " #2 because not b")
	r := s.get(call, permissions.Approved)
	if a := r.Calls[1].Answer; a != permissions.Deny {
		t.Errorf("call 2: %s", a)
	}
	one, m1, code1 := s.asked("several, 1.")
	two, m2, code2 := s.asked("several, 2.")
	id := fay.Says("yes " + code1 + " " + code2)
	s.get(one, permissions.Approved)
	s.get(two, permissions.Approved)
	s.marked("fay", id, "✅")
	s.becomes("fay", m1.ID, "You allowed this once")
	s.becomes("fay", m2.ID, "You allowed this once")
}

// How a request ended is said on its card for as long as WhatsApp lets it be edited, and then once in a reply to it.
func TestHowItEndedIsSaid(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Approvals.Timeout = time.Hour })
	fay := s.phones["fay"]
	_, m, code := s.asked("edited in time.")
	s.server.Advance(10 * time.Minute)
	yes := fay.Says("yes " + code)
	s.becomes("fay", m.ID, "You allowed this once")
	s.marked("fay", yes, "✅")

	_, m, code = s.asked("too old.")
	text := m.Text
	s.server.Advance(20 * time.Minute)
	no := fay.Says("no " + code)
	s.answers("fay", m.ID, code+" · ⛔ You denied this")
	s.marked("fay", no, "⛔")
	s.until("the end is noted", s.noted)
	s.restart()
	s.says("fay", "/pending", "Nothing waits")
	if now, _ := fay.Message(m.ID); now.Text != text {
		t.Errorf("the card was edited all the same: %s", now.Text)
	}
	if n := s.count("fay", code+" · ⛔ You denied this"); n != 1 {
		t.Errorf("the end is told %d times", n)
	}
	for name, late := range map[string]func() string{
		"code":     func() string { return fay.Says("yes " + code) },
		"quote":    func() string { return fay.Quotes(m.ID, "yes") },
		"reaction": func() string { fay.Reacts(m.ID, "👍"); return m.ID },
	} {
		before := s.count("fay", "Too late: already denied by fay")
		late()
		s.until(name+" is told that it is late", func() bool { return s.count("fay", "Too late: already denied by fay") > before })
	}

	_, m, code = s.asked("nobody answers.")
	s.server.Advance(2 * time.Hour)
	s.answers("fay", m.ID, code+" · ⌛")
	s.says("fay", "yes "+code, "Too late")
}

// TestAFileThatIsRefusedForGoodIsToldToItsCaller: nobody waits for a card that cannot come.
func TestAFileThatIsRefusedForGoodIsToldToItsCaller(t *testing.T) {
	s := newEnv(t)
	s.server.FailMedia(1, 413)
	q := network("too long.")
	q.Details = strings.Repeat("a line of what will be done\n", 3000)
	if r := s.get(s.ask(q), permissions.Undeliverable); !strings.Contains(r.Failure, "the file that the card needs: it is too large") {
		t.Errorf("the caller is told %q", r.Failure)
	}
}

// What is long goes as a document, before its card.
func TestLongDetails(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	s.server.FailMedia(2, 500)
	s.server.LoseAcks(1)
	q := network("long.")
	q.Details = strings.Repeat("a line of what will be done\n", 3000)
	call := s.ask(q)
	s.until("the document is there", func() bool {
		return slices.ContainsFunc(fay.Messages(), func(m whatsapptest.Message) bool { return m.Document != nil })
	})
	s.server.Cut() // the document's confirmation is lost
	m, code := s.card("fay", "long.")
	var order []string
	for _, m := range fay.Messages() {
		switch {
		case m.Document != nil:
			order = append(order, "document")
			if n := strings.Count(string(m.Document.Bytes), "a line of what will be done"); n != 3000 {
				t.Errorf("the document has %d lines", n)
			}
			if !strings.Contains(m.Document.Name, code) {
				t.Errorf("it is called %s", m.Document.Name)
			}
		case strings.Contains(m.Text, "long."):
			order = append(order, "card")
		}
	}
	if !slices.Equal(order, []string{"document", "card"}) {
		t.Errorf("fay gets %q", order)
	}
	fay.Quotes(m.ID, "yes")
	s.get(call, permissions.Approved)
}

// TestTheDiffOfALongEdit: an edit of more rows than a card has goes as a file with the name of the edited one, a type and a caption, and
// the card has both ends of it.
func TestTheDiffOfALongEdit(t *testing.T) {
	s := newEnv(t)
	row, err := json.Marshal(map[string]string{
		"file_path": "/srv/cart.go", "old_string": strings.Repeat("an old row\n", 40), "new_string": strings.Repeat("a new row\n", 40),
	})
	if err != nil {
		t.Fatal(err)
	}
	q := toolCall("Edit", string(row))
	q.Reason = "many rows."
	call := s.ask(q)
	m, code := s.card("fay", "many rows.")
	old, fresh := strings.Count(m.Text, "-an old row"), strings.Count(m.Text, "+a new row")
	if max(old-fresh, fresh-old) > 1 || old+fresh < 20 || old+fresh > 30 {
		t.Errorf("the card has %d removed and %d added rows:\n%s", old, fresh, m.Text)
	}
	for _, m := range s.phones["fay"].Messages() {
		if d := m.Document; d != nil && (d.Name != "cart.go.diff" || d.MIME != "text/x-diff" ||
			strings.Count(string(d.Bytes), "+a new row\n") != 40 ||
			!strings.HasPrefix(m.Text, code+" · the whole edit: +40 −40 in /srv/cart.go · sha256:")) {
			t.Errorf("the file is %s, %s, %q", d.Name, d.MIME, m.Text)
		}
	}
	s.phones["fay"].Quotes(m.ID, "no")
	s.get(call, permissions.Denied)
}

// What nobody can read through cannot be allowed here.
func TestTooBig(t *testing.T) {
	t.Run("B1/too big for WhatsApp", func(t *testing.T) {
		s := newEnv(t)
		call := s.ask(toolCall("write_file", `{"text":"`+strings.Repeat("lorem ipsum ", 300_000)+`"}`))
		m, code := s.card("fay", "cannot be shown whole")
		s.phones["fay"].Reacts(m.ID, "👍")
		s.answers("fay", s.phones["fay"].Says("yes "+code), "cannot")
		s.waits(call)
		s.phones["fay"].Says("no " + code)
		s.get(call, permissions.Denied)
	})
}
