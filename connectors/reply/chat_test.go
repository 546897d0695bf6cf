package reply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// waiting is one request of every kind, each shown at noon but the last, which was not shown yet.
var waiting = func() []reply.Open {
	plain := choices
	plain.Choices = []string{"blog", "mail to all", "Nowhere", "nowhere", "yes"}
	plain.Options = permissions.Offer(plain, nil, plain.Widest)
	riskyStep := offered(permissions.KindTool, func(r *permissions.Request) {
		r.HighRisk, r.Tool, r.Calls = true, "", step.Calls
	})
	all := []reply.Open{
		{Code: "K7F3Q", Request: permission}, {Code: "M2P4R", Request: tool}, {Code: "STRNG", Request: stranger},
		{Code: "R5SKY", Request: risky}, {Code: "STEP2", Request: step}, {Code: "RSTEP", Request: riskyStep},
		{Code: "PAUSE", Request: resume}, {Code: "CNFRM", Request: confirm}, {Code: "CH5SE", Request: plain},
		{Code: "NEW22", Request: permission},
	}
	for i := range all {
		all[i].Request.ID = permissions.ID("id of " + all[i].Code)
		all[i].Request.Digest = permissions.Digest{byte(i + 1)}
		if all[i].Code != "NEW22" {
			all[i].ShownAt = noon
		}
	}
	return all
}()

// What came of a message that decided nothing.
const (
	told     = "told"      // the person is told what is wrong with it
	asked    = "asked"     // it is an answer without a request: the person is told what waits
	passed   = "passed on" // it goes to the agent, and the person is told that it refuses nothing
	command  = "command"
	unseen   = "unseen NEW22" // the person is to look first
	nothing  = "nothing"
	unknown  = "unknown "  // and the codes that were typed
	notThere = "not there" // and the code of a card that was quoted
)

// outcome is what a message says, as the tables below write it.
func outcome(said reply.Said) string {
	var words []string
	for _, d := range said.Decisions {
		text := d.Code + " " + string(d.Answer)
		if d.Call != 0 {
			text += fmt.Sprintf(" #%d", d.Call)
		}
		if d.Really {
			text += " really"
		}
		if d.Comment != "" {
			text += fmt.Sprintf(" %q", d.Comment)
		}
		words = append(words, text)
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case said.Command:
		return command
	case said.PassOn:
		return passed
	case said.Bare:
		return asked
	case len(said.Unseen) > 0:
		return "unseen " + strings.Join(said.Unseen, " ")
	case said.Guesses > 0:
		return unknown + strings.Join(said.Unknown, " ")
	case len(said.Unknown) > 0:
		return notThere
	case said.Say != "":
		return told
	}
	return nothing
}

// message is one line of the tables.
type message struct{ text, want string }

// Every message of the tables below, and what it decides. Whatever is not clearly an answer decides nothing.
func TestMessages(t *testing.T) {
	count := 0
	for _, table := range []struct {
		name     string
		messages []message
		how      reply.Message // all but the text
	}{
		{"plain", plainMessages, reply.Message{}},
		{"neither yes nor no", doubtfulMessages, reply.Message{}},
		{"other scripts", foreignMessages, reply.Message{}},
		{"replies to the card of K7F3Q", quotingMessages, reply.Message{Quotes: "k7f3q"}},
		{"replies to the card of R5SKY", quotingRisky, reply.Message{Quotes: "R5SKY"}},
		{"replies to the card of CH5SE", quotingChoices, reply.Message{Quotes: "CH5SE"}},
		{"replies to a card of the past", quotingOld, reply.Message{Quotes: "ZZZZ9"}},
		{"reactions to K7F3Q", reactions, reply.Message{Quotes: "K7F3Q", Reaction: true}},
		{"reactions to R5SKY", reactionsRisky, reply.Message{Quotes: "R5SKY", Reaction: true}},
		{"reactions to something else", reactionsElsewhere, reply.Message{Reaction: true}},
		{"typed at a console", consoleMessages, reply.Message{Console: true}},
	} {
		for _, c := range table.messages {
			count++
			m := table.how
			m.Text, m.At = c.text, noon.Add(time.Second)
			said := reply.Read(m, waiting)
			if got := outcome(said); got != c.want {
				t.Errorf("%s: %q: %s; want %s (%q)", table.name, c.text, got, c.want, said.Say)
			}
			if got := outcome(said); len(said.Decisions) == 0 && said.Say == "" && got != nothing && got != command {
				t.Errorf("%s: %q decides nothing, and the person is not told", table.name, c.text)
			}
		}
	}
	if t.Logf("%d messages", count); count < 200 {
		t.Errorf("the tables hold %d messages; want at least 200", count)
	}
}
