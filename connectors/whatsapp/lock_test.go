package whatsapp

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestAStolenPhone: another person locks its owner from their own phone, and two people unlock them.
func TestAStolenPhone(t *testing.T) {
	t.Run("A8/lock in WhatsApp", func(t *testing.T) {
		s := newEnv(t, func(s *env) {
			s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
			s.phones["kim"] = s.server.Person("491700000003", "kim")
			kim := connectors.Person{Name: "kim", UID: permissions.NoUID}
			s.settings.People = append(s.settings.People, kim.WithAddress(Name, "+491700000003"))
		})
		call := s.ask(network("x"))
		m, code := s.card("fay", "x")
		s.card("sam", "x")
		s.says("sam", "/lock fay", "fay is locked: nothing from fay's accounts counts")
		s.becomes("fay", m.ID, "You are locked, and nothing from this account counts")
		if now, _ := s.phones["fay"].Message(m.ID); strings.Contains(now.Text, "Reply") {
			t.Errorf("her card says how to answer: %s", now.Text)
		}
		s.phones["fay"].Says("yes " + code)
		s.phones["fay"].Says("/lock sam")
		s.acknowledged()
		s.waits(call)
		s.says("sam", "/unlock FAY", `nobody in the configuration is called "FAY"; did you mean fay?`)
		s.says("sam", "/unlock fay", "stays locked until one more person")
		s.says("kim", "/unlock fay", "fay is unlocked")
		s.becomes("fay", m.ID, "Reply")
		s.phones["fay"].Says("yes " + code)
		s.get(call, permissions.Approved)
	})
	t.Run("A8/lock oneself from the other phone", func(t *testing.T) {
		s := newEnv(t)
		s.says("fay", "/lock", "fay is locked")
		call := s.ask(network("x"))
		s.get(call, permissions.Undeliverable)
	})
}
