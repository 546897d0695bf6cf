// Package script is a model that plays turns from a file, for the demo and for tests. It is stateless: its reply
// follows from the prompt alone, so that it continues correctly after a restart.
//
// A file is a YAML list of turns. The first turn whose conditions hold is played; one without conditions always
// matches. A prompt that matches none is refused.
//
//	turns:
//	  - name: write                 # letters, digits and underscores; required and unique
//	    after: start                # the previous turn, or several: [a, b]; start: none yet
//	    said: (?i)release (\w+)     # the newest message is a person's and matches
//	    say: I write the notes of {{match.1}}.
//	    calls:
//	      - tool: write_file
//	        input: {path: notes.md, content: "for {{match.1}}"}
//	  - name: smaller
//	    after: write
//	    result: denied.*"(.*)"      # the newest message is results, and one of them matches
//	    error: false                # and none of them is an error; true: one is
//	    say: You said {{match.1}}. I ask for less.
//	  - name: chat
//	    say: You wrote "{{said}}".
//
// A condition asked matches the person's last text, however long ago. Conditions are regular expressions (package
// regexp) that match anywhere in the text. Consecutive messages of a person are one text, a line each.
//
// In say, and in every string of an input, {{said}} is the person's last text, {{result}} all the newest results, a
// line each, {{result.2}} the second of them, and {{match.1}} the first group's match, of result, else said, else
// asked.
//
// The ids of its calls contain the last turn; turns without calls are found by replaying the conversation from the last
// call or its beginning.
package script

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/agents/models"
)

// Model plays a script. It is safe for concurrent use.
type Model struct {
	name  string
	turns []turn
}

var _ models.Model = (*Model)(nil)

// window exceeds any script, so that it is never asked to summarise, which it cannot do.
const window = 100_000_000

// Name implements [models.Model].
func (m *Model) Name() string { return m.name }

// Window implements [models.Model].
func (*Model) Window() int64 { return window }

// Cost implements [models.Model]: none.
func (*Model) Cost(models.Usage) int64 { return 0 }

// Reply implements [models.Model].
func (m *Model) Reply(ctx context.Context, p models.Prompt, write func(string)) (models.Reply, error) {
	if err := ctx.Err(); err != nil {
		return models.Reply{}, err
	}
	before := m.last(p.Messages)
	now := situationOf(p.Messages)
	t, groups := m.next(before, now)
	if t == nil {
		return models.Reply{}, &models.Error{Kind: models.ErrRefused, Text: fmt.Sprintf(
			"the script %s has no turn after %s for: %s", m.name, before, clip(now.newest()))}
	}
	reply := t.reply(now, groups, calls(p.Messages))
	if write != nil && reply.Text != "" {
		write(reply.Text)
	}
	reply.Usage = models.Usage{Read: models.Estimate(p),
		Written: models.EstimateMessage(models.Message{Text: reply.Text, Calls: reply.Calls})}
	return reply, nil
}

// last is the name of the last turn played, or start.
func (m *Model) last(messages []models.Message) string {
	before := start
	for i, message := range messages {
		if message.Role != models.Assistant {
			continue
		}
		if len(message.Calls) > 0 {
			if name, ok := m.played(message.Calls[0].ID); ok {
				before = name
				continue
			}
		}
		if t, _ := m.next(before, situationOf(messages[:i])); t != nil {
			before = t.name
		}
	}
	return before
}

// played is the turn of a call, by its id.
func (m *Model) played(id string) (name string, ok bool) {
	name, _, _ = strings.Cut(id, "-")
	return name, slices.ContainsFunc(m.turns, func(t turn) bool { return t.name == name })
}

// next is the first turn whose conditions hold, with the matches of its groups.
func (m *Model) next(before string, now situation) (*turn, []string) {
	for i := range m.turns {
		if groups, ok := m.turns[i].fits(before, now); ok {
			return &m.turns[i], groups
		}
	}
	return nil, nil
}

// calls counts a conversation's calls, so that new ones get other ids.
func calls(messages []models.Message) int {
	n := 0
	for _, m := range messages {
		n += len(m.Calls)
	}
	return n
}

func clip(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}
