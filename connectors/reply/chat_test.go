package reply_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var waiting = replytest.Waiting(noon)

var outcome = replytest.Outcome

// Every message of the tables, and what it decides. Whatever is not clearly an answer decides nothing.
func TestMessages(t *testing.T) {
	count := 0
	for _, table := range replytest.Tables() {
		for _, c := range table.Messages {
			count++
			t.Run(fmt.Sprintf("A5/%s: %.60q", table.Name, c.Text), func(t *testing.T) {
				m := table.How
				m.Text, m.At = c.Text, noon.Add(time.Second)
				said := reply.Read(m, waiting)
				if got := outcome(said); got != c.Want {
					t.Errorf("%s: %q: %s; want %s (%q)", table.Name, c.Text, got, c.Want, said.Reply)
				}
				if got := outcome(said); len(said.Decisions) == 0 && said.Reply == "" && got != replytest.Nothing && got != replytest.Command {
					t.Errorf("%s: %q decides nothing, and the person is not told", table.Name, c.Text)
				}
			})
		}
	}
	if t.Logf("%d messages", count); count < 200 {
		t.Errorf("the tables hold %d messages; want at least 200", count)
	}
}

// Words that could be the beginning of an answer are one only where something waits that takes it, or where they name a
// request as an answer does.
func TestWhatOnlyBeginsLikeAnAnswer(t *testing.T) {
	for text, passed := range map[string]bool{
		"continue": true, "Interrupt": true, "continue ZZZZ9": false, "interrupt ZZZZ9": false,
		"after": true, "after lunch": true, "after 1a": true, "after /": true, "after :": true, "after 10": false, "after 0": false,
		"after 9": false, "AFTER lunch": false, "aft3r lunch": false,
	} {
		t.Run("A5/"+text, func(t *testing.T) {
			said := reply.Read(reply.Message{Text: text, At: noon}, waiting[:2]) // without a pause
			if said.PassOn != passed || (said.Guesses == 1) == passed || len(said.Decisions) > 0 {
				t.Errorf("%q: %+v; want it passed on: %v", text, said, passed)
			}
		})
	}
}
