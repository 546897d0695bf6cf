package whatsapp

import (
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
		{"yes", func(_, code string) { s.phones["fay"].Says("YES " + code) }, permissions.Approved, "✅ *You allowed this once*"},
		{"no", func(_, code string) { s.phones["fay"].Says("no " + code + " because not today") }, permissions.Denied, "⛔ *You denied this*"},
		{"quoted", func(id, _ string) { s.phones["fay"].Quotes(id, "yes") }, permissions.Approved, "✅ *You allowed this once*"},
		{"thumb", func(id, _ string) { s.phones["fay"].Reacts(id, "👍🏽") }, permissions.Approved, "✅ *You allowed this once*"},
		{"thumb down", func(id, _ string) { s.phones["fay"].Reacts(id, "👎") }, permissions.Denied, "⛔ *You denied this*"},
	} {
		call := s.ask(network("it is " + c.name + "."))
		m, code := s.card("fay", "it is "+c.name+".")
		c.answer(m.ID, code)
		s.get(call, c.want)
		s.becomes("fay", m.ID, c.says)
	}
}

// What a text of ours says to write can be copied from there, with the signs in it that nobody sees.
func TestAnAnswerCopiedFromTheCard(t *testing.T) {
	s := newEnv(t)
	call := s.ask(toolCall("write_file", `{"path":"/x"}`))
	m, code := s.card("fay", "write_file")
	words := escapeText("YES " + code + " session_tool")
	if !strings.Contains(words, joiner) {
		t.Fatalf("nothing is hidden in %q", words)
	}
	s.phones["fay"].Says(words)
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "You allowed this exact call")
}
