package whatsapp

import (
	"testing"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// A vote that waits for another one counts after its author deleted it, edited it or took the reaction back. They are told so each
// time, and what stops the request.
func TestAVoteTakenBackStillCounts(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}} })
	fay, sam := s.phones["fay"], s.phones["sam"]
	for _, c := range []struct {
		name     string
		takeBack func(id, code string) // a vote
	}{
		{"deleted", func(_, code string) {
			yes := fay.Says("yes " + code)
			s.marked("fay", yes, "✅")
			sam.Revokes(yes) // not theirs
			fay.Revokes(yes)
		}},
		{"edited", func(_, code string) {
			yes := fay.Says("yes " + code)
			s.marked("fay", yes, "✅")
			fay.Edits(yes, "no")
		}},
		{"reaction", func(id, _ string) {
			fay.Reacts(id, "👍")
			s.becomes("fay", id, "1 of 2")
			fay.Reacts(id, "")
		}},
	} {
		call := s.ask(network("it is " + c.name + "."))
		m, code := s.card("fay", "it is "+c.name+".")
		s.card("sam", "it is "+c.name+".")
		c.takeBack(m.ID, code)
		s.sees("fay", "Your answer to "+code+" still counts")
		s.waits(call)
		sam.Says("yes " + code)
		s.get(call, permissions.Approved)
	}
	if n := s.count("sam", "still counts"); n != 0 {
		t.Errorf("sam, who took nothing back, is told so %d times", n)
	}
}
