// Package script is a model that plays turns from a file, for the demo and for tests. It keeps nothing: what it says
// follows from the prompt alone, so that a daemon that is killed and started again goes on rightly.
//
// A file is YAML, a list of turns. Of those whose conditions hold, the first is played; a turn without conditions always
// is. A prompt that none fits is refused.
//
//	turns:
//	  - name: write                 # letters, digits and underscores; required, and there once
//	    after: start                # the turn before it, or several: [a, b]; start: none was played yet
//	    said: (?i)release (\w+)     # the newest message is a person's, and matches
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
// Besides these there is asked, which matches what the person said last, however long ago. Conditions are regular
// expressions (package regexp), found anywhere in the text. Several messages of a person's that stand together are one
// text, a line each.
//
// In say, and in every string of an input, {{said}} is what the person said last, {{result}} all the newest results, a line
// each, {{result.2}} the second of them, and {{match.1}} what the first group matched, of result, else said, else asked.
//
// Which turn was played last shows in the ids of its calls; turns that only said something are found by playing the
// conversation again from the last call, or from its beginning.
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

// window is longer than any script: it is never told to make a conversation shorter, which it could not do.
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
	now := scene(p.Messages)
	t, groups := m.next(before, now)
	if t == nil {
		return models.Reply{}, &models.Error{Kind: models.ErrRefused, Text: fmt.Sprintf(
			"the script %s has no turn after %s for: %s", m.name, before, clip(now.newest()))}
	}
	reply := t.play(now, groups, calls(p.Messages))
	if write != nil && reply.Text != "" {
		write(reply.Text)
	}
	reply.Usage = models.Usage{Read: models.Estimate(p),
		Written: models.EstimateMessage(models.Message{Text: reply.Text, Calls: reply.Calls})}
	return reply, nil
}

// last is the name of the turn that was played last, or start.
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
		if t, _ := m.next(before, scene(messages[:i])); t != nil {
			before = t.name
		}
	}
	return before
}

// played is the turn that a call is of, by its id.
func (m *Model) played(id string) (name string, ok bool) {
	name, _, _ = strings.Cut(id, "-")
	return name, slices.ContainsFunc(m.turns, func(t turn) bool { return t.name == name })
}

// next is the first turn whose conditions hold, and what its groups matched.
func (m *Model) next(before string, now stage) (*turn, []string) {
	for i := range m.turns {
		if groups, ok := m.turns[i].fits(before, now); ok {
			return &m.turns[i], groups
		}
	}
	return nil, nil
}

// calls counts those of a conversation, so that new ones get other ids.
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
