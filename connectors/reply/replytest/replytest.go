// Package replytest holds messages that people may send, with what each of them means: package reply is measured by them
// as they are, and channels by sending them.
package replytest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
)

// Message is what a person sends, and its [Outcome].
type Message struct{ Text, Want string }

// Table is messages that are sent in the same way.
type Table struct {
	Name     string
	How      reply.Message // all but the text and the time
	Messages []Message
}

// Tables are all messages.
func Tables() []Table {
	return []Table{
		{"plain", reply.Message{}, plainMessages},
		{"neither yes nor no", reply.Message{}, doubtfulMessages},
		{"other scripts", reply.Message{}, foreignMessages},
		{"in German", reply.Message{}, germanMessages},
		{"replies in German to the card of K7F3Q", reply.Message{Quotes: "K7F3Q"}, quotingGerman},
		{"replies to the card of K7F3Q", reply.Message{Quotes: "k7f3q"}, quotingMessages},
		{"replies to the card of R5SKY", reply.Message{Quotes: "R5SKY"}, quotingRisky},
		{"replies to the card of CH5SE", reply.Message{Quotes: "CH5SE"}, quotingChoices},
		{"replies to a card of the past", reply.Message{Quotes: "ZZZZ9"}, quotingOld},
		{"reactions to K7F3Q", reply.Message{Quotes: "K7F3Q", Reaction: true}, reactions},
		{"reactions to R5SKY", reply.Message{Quotes: "R5SKY", Reaction: true}, reactionsRisky},
		{"reactions to something else", reply.Message{Reaction: true}, reactionsElsewhere},
		{"typed at a console", reply.Message{Console: true}, consoleMessages},
	}
}

// What came of a message that decided nothing.
const (
	Told     = "told"      // the person is told what is wrong with it
	Asked    = "asked"     // it is an answer without a request: the person is told what waits
	Passed   = "passed on" // it goes to the agent, and the person is told that it refuses nothing
	Command  = "command"
	Unseen   = "unseen NEW22" // the person is to look first
	Nothing  = "nothing"
	Unknown  = "unknown "  // and the codes that were typed
	NotThere = "not there" // and the code of a card that was quoted
)

// Offered is a request of a kind with all the options that it can have. High risk has those from before it was offered once
// alone: what is pending since then still has them.
func Offered(kind permissions.Kind, change func(*permissions.Request)) permissions.Request {
	r := permissions.Request{Kind: kind, Caller: permissions.Caller{Name: "agent:scribe"}, Session: "notes", Tool: "fetch_url"}
	if kind == permissions.KindPermission {
		r.Tags = []permissions.Tag{permissions.Network}
	}
	if change != nil {
		change(&r)
	}
	plain := r
	plain.HighRisk = false
	r.Options = slices.DeleteFunc(permissions.Offer(plain, []permissions.Scope{
		permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute), permissions.Always,
	}, r.Widest), func(o permissions.Option) bool {
		return r.HighRisk && kind == permissions.KindTool && o.ID == permissions.Allow(permissions.Session)
	})
	return r
}

// Waiting is one request of every kind, each shown at that time but the last, which was not shown yet.
func Waiting(at time.Time) []reply.Open {
	permission := Offered(permissions.KindPermission, nil)
	calls := []permissions.Call{{N: 1, Tool: "a"}, {N: 2, Tool: "b"}}
	tool := func(change func(*permissions.Request)) permissions.Request {
		return Offered(permissions.KindTool, change)
	}
	pause := func(m permissions.Mode) permissions.Request {
		return Offered(permissions.KindPause, func(r *permissions.Request) { r.Mode = m })
	}
	all := []reply.Open{
		{Code: "K7F3Q", Request: permission}, {Code: "M2P4R", Request: tool(nil)},
		{Code: "STRNG", Request: tool(func(r *permissions.Request) { r.Session, r.Widest = "", permissions.Once })},
		{Code: "R5SKY", Request: tool(func(r *permissions.Request) { r.HighRisk = true })},
		{Code: "STEP2", Request: tool(func(r *permissions.Request) { r.Tool, r.Calls = "", calls })},
		{Code: "RSTEP", Request: tool(func(r *permissions.Request) { r.HighRisk, r.Tool, r.Calls = true, "", calls })},
		{Code: "PAUSE", Request: pause(permissions.ModeContinue)}, {Code: "CNFRM", Request: pause(permissions.ModeConfirm)},
		{Code: "CH5SE", Request: Offered(permissions.KindClarification, func(r *permissions.Request) {
			r.Choices = []string{"blog", "mail to all", "Nowhere", "nowhere", "yes"}
		})},
		{Code: "NEW22", Request: permission},
	}
	for i := range all {
		all[i].Request.ID = permissions.ID("id of " + all[i].Code)
		all[i].Request.Digest = permissions.Digest{byte(i + 1)}
		if all[i].Code != "NEW22" {
			all[i].ShownAt = at
		}
	}
	return all
}

// Outcome is what a message says, as the tables write it.
func Outcome(said reply.Result) string {
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
		return Command
	case said.PassOn:
		return Passed
	case said.Bare:
		return Asked
	case len(said.Unseen) > 0:
		return "unseen " + strings.Join(said.Unseen, " ")
	case said.Guesses > 0:
		return Unknown + strings.Join(said.Unknown, " ")
	case len(said.Unknown) > 0:
		return NotThere
	case said.Reply != "":
		return Told
	}
	return Nothing
}
