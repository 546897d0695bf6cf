package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/internal/wire"
)

const start = "start"

type turn struct {
	name                string
	after               []string // none: any
	said, asked, result *regexp.Regexp
	failed              *bool // of the newest results
	say                 string
	calls               []call
}

type call struct {
	tool  string
	input any
}

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
	if len(t.after) > 0 && !slices.Contains(t.after, before) {
		return nil, false
	}
	if t.asked != nil {
		if groups = t.asked.FindStringSubmatch(now.said); groups == nil {
			return nil, false
		}
	}
	if t.said != nil {
		if groups = t.said.FindStringSubmatch(now.said); groups == nil || !now.fresh {
			return nil, false
		}
	}
	if t.result != nil {
		groups = nil
		for _, r := range now.results {
			if groups == nil {
				groups = t.result.FindStringSubmatch(r.Text)
			}
		}
		if groups == nil {
			return nil, false
		}
	}
	failed := slices.ContainsFunc(now.results, func(r models.Result) bool { return r.Error })
	if t.failed != nil && (len(now.results) == 0 || failed != *t.failed) {
		return nil, false
	}
	return groups, true
}

// reply is the turn's reply. before is the number of earlier calls.
func (t *turn) reply(now situation, groups []string, before int) models.Reply {
	reply := models.Reply{Text: fill(t.say, now, groups)}
	for i, c := range t.calls {
		reply.Calls = append(reply.Calls, models.Call{
			ID: fmt.Sprintf("%s-%d", t.name, before+i+1), Tool: c.tool, Input: write(fillAll(c.input, now, groups)),
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
		return wire.Each(v, func(item any) any { return fillAll(item, now, groups) })
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
