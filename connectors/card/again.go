package card

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
)

// mostAgain is how many characters an action may have to be told again; a longer one is on the card and in its file.
const mostAgain = 1500

// Again is the question after the first yes to a request of high risk, for channels with buttons and text: what exactly
// it allows, that it is high risk, and how to say yes once more.
func Again(r permissions.Request, code string) string {
	s := newSheet(0)
	s.row("⚠ HIGH RISK: yes is not enough, it takes a second yes ── " + Visible(code))
	s.ask(r, Options{})
	if r.Kind != permissions.KindPermission && len(r.Missing()) > 0 {
		s.marked("it needs", Action, tags(r.Missing()))
	}
	if n := len(s.rows); utf8.RuneCountInString(s.String()) > mostAgain {
		s = &sheet{short: true}
		s.row("⚠ HIGH RISK: yes is not enough, it takes a second yes ── " + Visible(brief(code, mostName)))
		s.row(s.who(r, Options{}) + fmt.Sprintf(" wants what the card shows, whole, in %d rows", n-1))
	}
	s.fact("yes", "the second button, or  YES "+Visible(brief(code, mostName))+" RUN")
	s.fact("no", "anything else; it goes on waiting · sha256 "+strings.TrimPrefix(r.Digest.Short(), "sha256:"))
	return s.String()
}
