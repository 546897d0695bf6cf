package telegram

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// where asks fay a question and waits for the card.
func (s *env) where(message string) (call <-chan ended, m telegramtest.Message, code string) {
	s.t.Helper()
	call = s.ask(permissions.Request{
		Kind: permissions.KindClarification, Message: message, Choices: []string{"blog", "mail"}, Session: "s",
	})
	m = s.card("fay", message)
	s.until("the card is noted", s.upToDate)
	code, ok := codeOf(m)
	if !ok {
		s.t.Fatalf("the card has no code: %q", m.Text)
	}
	return call, m, code
}

// other is where an answer in words is to be written, after a tap on its button.
func (s *env) other(who string, m telegramtest.Message, code string) telegramtest.Message {
	s.t.Helper()
	s.taps(who, m, "✏️ Other", "Nothing is answered yet")
	return s.wants(who, m, inOwnWords.text(code, i18n.English))
}

// answered checks that a question was answered in those words.
func (s *env) answered(call <-chan ended, words string) {
	s.t.Helper()
	r := s.get(call, permissions.Answered)
	if r.Answer != permissions.Other || r.Comment != words || r.DecidedBy != "fay" || permissions.Result(r).Text != words {
		s.t.Errorf("it is answered %s %q by %s, told as %q; want %q", r.Answer, r.Comment, r.DecidedBy,
			permissions.Result(r).Text, words)
	}
}

// Two questions and a reason are open at once, and each reply reaches its own caller.
func TestWordsAreKeptApart(t *testing.T) {
	s := newEnv(t)
	first, one, code1 := s.where("first where?")
	second, two, code2 := s.where("second where?")
	third, three, code3 := s.asked("third")
	q1, q2, q3 := s.other("fay", one, code1), s.other("fay", two, code2), s.question("fay", three, code3)
	fay := s.phones["fay"]
	fay.Replies(q2.ID, " look at\nstaging first ")
	s.answered(second, "look at\nstaging first")
	s.waits(first)
	s.waits(third)
	fay.Replies(q3.ID, "2")
	if r := s.get(third, permissions.Denied); r.Comment != "2" {
		t.Errorf("the reason is %q", r.Comment)
	}
	s.waits(first)
	fay.Replies(q1.ID, "1")
	s.answered(first, "1")
	s.becomes("fay", one.ID, `✅ You answered`)
	s.becomes("fay", two.ID, `"look at\u{A}staging first"`)
}

// An answer counts as the reply of who was asked for it, to our own question, in words of their own.
func TestWhatIsNoAnswerInWords(t *testing.T) {
	t.Run("A7/forwarded, and to other messages", func(t *testing.T) {
		s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
		call, m, code := s.where("where?")
		q := s.other("fay", m, code)
		fay, sam, eve := s.phones["fay"], s.phones["sam"], s.phones["eve"]
		sam.Replies(q.ID, "sam's, to a question that is not in that chat")
		eve.Replies(q.ID, "a stranger's")
		fay.Replies(fay.Writes(inOwnWords.text(code, i18n.English)), "to my own words")
		fay.Replies(m.ID, "to the card")
		fay.Replies(eve.Forwards(eve.Writes(inOwnWords.text(code, i18n.English)), fay), "to a forwarded question")
		fay.Writes("look at staging first")
		s.drained()
		s.waits(call)
		fay.Writes(code + " look at staging first")
		s.told("fay", "takes another answer. Reply "+code+" and a number from 1 to 2 or the words of an option, or "+
			code+" other: and words of your own.")
		fay.Replies(q.ID, "\u200b \u2003")
		s.told("fay", "An answer in words of one's own has 1 to 2000 characters")
		fay.Replies(q.ID, strings.Repeat("because ", permissions.MaxReason/8+1))
		s.drained()
		s.waits(call)
		fay.Replies(q.ID, "now it is one")
		s.answered(call, "now it is one")
		fay.Replies(q.ID, "and another")
		s.told("fay", "Too late: already answered by fay")
		s.toast(fay.TapsData(m.ID, data(t, m, "✏️ Other")), "Too late: already answered by fay")
	})
}

// By text the word that says so is needed, in whatever of its forms.
func TestAnswersInWordsByText(t *testing.T) {
	s := newEnv(t)
	for i, text := range []string{"CODE other: look at staging first", "other CODE look at staging first", "other: look at staging first"} {
		call, m, code := s.where("where " + string(rune('a'+i)) + "?")
		if text = strings.ReplaceAll(text, "CODE", code); strings.Contains(text, code) {
			s.phones["fay"].Writes(text)
		} else {
			s.phones["fay"].Replies(m.ID, text)
		}
		s.answered(call, "look at staging first")
	}
}

// Nothing but a question can be answered in words, whatever a client sends.
func TestWordsAnswerQuestionsOnly(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("x")
	button, _, _ := strings.Cut(data(t, m, "Allow once"), ".")
	fay := s.phones["fay"]
	toast, err := fay.TapsData(m.ID, button+"."+stepOther).Toast(t.Context())
	if err != nil || toast.Text != toastUnknown {
		t.Errorf("the toast says %q, %v", toast.Text, err)
	}
	fay.Writes(code + " other: yes")
	s.told("fay", code+" takes another answer.")
	s.waits(call)
}
