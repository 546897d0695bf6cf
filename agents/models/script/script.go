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
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/internal/wire"
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
	earlier := 0 // calls, so that new ones get other ids
	for _, m := range p.Messages {
		earlier += len(m.Calls)
	}
	reply := t.reply(now, groups, earlier)
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
			before = t.Name
		}
	}
	return before
}

// played is the turn of a call, by its id.
func (m *Model) played(id string) (name string, ok bool) {
	name, _, _ = strings.Cut(id, "-")
	return name, slices.ContainsFunc(m.turns, func(t turn) bool { return t.Name == name })
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

func clip(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}

const start = "start"

// situation is what the conditions are checked against.
type situation struct {
	said    string          // the person's last text
	results []models.Result // the newest message, if it is results
	fresh   bool            // the newest message is a person's
}

func situationOf(messages []models.Message) situation {
	var s situation
	if len(messages) > 0 {
		newest := messages[len(messages)-1]
		s.fresh, s.results = newest.Role == models.User, newest.Results
	}
	var lines []string
	for _, m := range slices.Backward(messages) {
		if m.Role == models.User {
			lines = append(lines, m.Text)
		} else if len(lines) > 0 {
			break
		}
	}
	slices.Reverse(lines)
	s.said = strings.Join(lines, "\n")
	return s
}

func (s situation) newest() string {
	if s.fresh {
		return s.said
	}
	return s.text(0)
}

// text is the nth result; 0: all results.
func (s situation) text(n int) string {
	var lines []string
	for i, r := range s.results {
		if n == 0 || n == i+1 {
			lines = append(lines, r.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// fits reports whether the turn's conditions hold, and returns the matches of its groups.
func (t *turn) fits(before string, now situation) (groups []string, ok bool) {
	if len(t.After) > 0 && !slices.Contains(t.After, before) {
		return nil, false
	}
	if t.Asked.Regexp != nil {
		if groups = t.Asked.FindStringSubmatch(now.said); groups == nil {
			return nil, false
		}
	}
	if t.Said.Regexp != nil {
		if groups = t.Said.FindStringSubmatch(now.said); groups == nil || !now.fresh {
			return nil, false
		}
	}
	if t.Result.Regexp != nil {
		groups = nil
		for _, r := range now.results {
			if groups == nil {
				groups = t.Result.FindStringSubmatch(r.Text)
			}
		}
		if groups == nil {
			return nil, false
		}
	}
	failed := slices.ContainsFunc(now.results, func(r models.Result) bool { return r.Error })
	if t.Error != nil && (len(now.results) == 0 || failed != *t.Error) {
		return nil, false
	}
	return groups, true
}

// reply is the turn's reply. before is the number of earlier calls.
func (t *turn) reply(now situation, groups []string, before int) models.Reply {
	reply := models.Reply{Text: fill(t.Say, now, groups)}
	for i, c := range t.Calls {
		reply.Calls = append(reply.Calls, models.Call{
			ID: fmt.Sprintf("%s-%d", t.Name, before+i+1), Tool: c.Tool, Input: write(fillAll(map[string]any(c.Input), now, groups)),
		})
	}
	return reply
}

var places = regexp.MustCompile(`\{\{\s*(said|result|match)(?:\.(\d{1,3}))?\s*\}\}`)

// fill fills in placeholders, once: the inserted text is not searched.
func fill(text string, now situation, groups []string) string {
	return places.ReplaceAllStringFunc(text, func(place string) string {
		parts := places.FindStringSubmatch(place)
		n, _ := strconv.Atoi(parts[2]) // missing: 0, which means all
		switch {
		case parts[1] == "said":
			return now.said
		case parts[1] == "result":
			return now.text(n)
		case n < len(groups):
			return groups[n]
		}
		return ""
	})
}

func fillAll(value any, now situation, groups []string) any {
	switch v := value.(type) {
	case string:
		return fill(v, now, groups)
	case []any:
		return wire.Map(v, func(item any) any { return fillAll(item, now, groups) })
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			all[key] = fillAll(item, now, groups)
		}
		return all
	}
	return value
}

func write(value any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // Parse accepts only encodable values
	return bytes.TrimSpace(b.Bytes())
}
