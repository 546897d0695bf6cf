package whatsapp

import (
	"regexp"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

func TestEachWayOfAnswering(t *testing.T) {
	s := newEnv(t)
	for _, c := range []struct {
		name   string
		answer func(id, code string)
		want   permissions.State
		says   string
	}{
		{"yes", func(_, code string) { s.phones["fay"].Says("YES " + code) }, permissions.Approved, "✅ Allowed once by fay"},
		{"no", func(_, code string) { s.phones["fay"].Says("no " + code + " because not today") }, permissions.Denied, "⛔ Denied by fay"},
		{"quoted", func(id, _ string) { s.phones["fay"].Quotes(id, "yes") }, permissions.Approved, "✅ Allowed once by fay"},
		{"thumb", func(id, _ string) { s.phones["fay"].Reacts(id, "👍🏽") }, permissions.Approved, "✅ Allowed once by fay"},
		{"thumb down", func(id, _ string) { s.phones["fay"].Reacts(id, "👎") }, permissions.Denied, "⛔ Denied by fay"},
	} {
		call := s.ask(network("it is " + c.name + "."))
		m, code := s.card("fay", "it is "+c.name+".")
		c.answer(m.ID, code)
		s.get(call, c.want)
		s.becomes("fay", m.ID, c.says)
	}
}

// What the card says to write can be copied from there, with the signs in it that nobody sees.
func TestAnAnswerCopiedFromTheCard(t *testing.T) {
	s := newEnv(t)
	call := s.ask(toolCall("write_file", `{"path":"/x"}`))
	m, code := s.card("fay", "write_file")
	words := regexp.MustCompile("YES " + code + ` session_\S+`).FindString(m.Text)
	if !strings.Contains(words, "\u2060") {
		t.Fatalf("nothing is hidden in %q", m.Text)
	}
	s.phones["fay"].Says(words)
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "Allowed")
}
