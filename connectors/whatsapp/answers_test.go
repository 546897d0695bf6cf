package whatsapp

import (
	"testing"

	"github.com/daycared/daycared/permissions"
)

func TestEachWayOfAnswering(t *testing.T) {
	s := play(t)
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
