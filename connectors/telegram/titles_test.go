package telegram

import (
	"testing"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// TestARestartThatShowsMoreAllowsNothingBeforeItIsShown: what the process of before has sent as a title is one until all of it is shown,
// also after a second restart.
func TestARestartThatShowsMoreAllowsNothingBeforeItIsShown(t *testing.T) {
	s := newEnv(t)
	whole := s.settings
	s.settings.OnlyTitles = map[string]bool{Name: true}
	s.Configure(s.settings)
	s.ask(network("kept out."))
	m := s.card("fay", "no more than the title")
	s.until("the card is noted", s.upToDate)
	s.server.FailNext("editMessageText", 1000, telegramtest.Refuse(500, "Internal Server Error"))
	s.settings = whole
	for range 2 {
		s.stop()
		s.open()
		s.says("fay", "yes "+codeIn(m), "no more than the title, so it cannot be allowed here")
	}
	s.server.FailNext("editMessageText", 0, telegramtest.BadGateway())
	s.sees("fay", "kept out.", func(now telegramtest.Message) bool { return now.ID == m.ID })
	s.until("no card is a title any more", func() bool {
		n, err := s.rows.Cursor(t.Context(), "titles")
		return n == 0 && err == nil
	})
	s.says("fay", "yes "+codeIn(m), "✅")
}
