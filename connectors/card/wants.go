package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// deepest is the nesting down to which an input is laid out; what is deeper stays on its line, as it was sent.
const deepest = 12

// act is one thing that is asked: a lead in our words and, whole, what the agent wants.
type act struct {
	lead string
	body []string
	mark string
}

// Wants is what r asks for, whole: "write access to /srv/www", "to run   rm -rf x", "to use NAME" with its input line
// by line, the numbered calls of a step, or the message of a pause or a clarification with its numbered options.
func Wants(r permissions.Request) string {
	s := newSheet(0)
	for _, a := range acts(r) {
		s.lead(a.lead, gap(a.lead), a.mark, a.body)
	}
	return s.String()
}

func gap(lead string) string {
	if lead == "" {
		return ""
	}
	return "   "
}

func acts(r permissions.Request) []act {
	switch r.Kind {
	case permissions.KindPermission:
		return []act{{body: tags(r.Missing()), mark: markAction}}
	case permissions.KindTool:
		if len(r.Calls) == 0 {
			return []act{toolCall(r.ToolCalls()[0], "")}
		}
		var all []act
		for _, c := range r.Calls {
			all = append(all, toolCall(c, fmt.Sprintf("#%d ", c.N)))
		}
		return all
	case permissions.KindClarification:
		all := []act{{body: Lines(r.Message), mark: markWords}}
		for i, c := range r.Choices {
			all = append(all, act{body: []string{fmt.Sprintf("  %2d  %s", i+1, Visible(c))}, mark: markWords})
		}
		return all
	}
	return []act{{body: Lines(r.Message), mark: markWords}}
}

func tags(all []permissions.Tag) []string {
	lines := make([]string, len(all))
	for i, t := range all {
		lines[i] = Visible(t.Describe())
	}
	return lines
}

// toolCall is one call: a command as it would be typed, anything else as the tool's name and its canonical input.
func toolCall(c permissions.Call, number string) act {
	a := act{mark: markAction}
	if command, ok := command(c); ok {
		a.lead, a.body = number+"to run", Lines(command)
		if c.Tool != "run_command" {
			a.lead += " with " + named(c.Tool)
		}
	} else {
		a.lead, a.body = number+"to use "+named(c.Tool), input(c.Input)
	}
	if c.AffectedPath != "" {
		a.lead += ", affecting " + named(c.AffectedPath)
	}
	return a
}

// command is the input of a shell's call that holds a command and nothing else.
func command(c permissions.Call) (text string, ok bool) {
	if !slices.Contains([]string{"run_command", "bash", "shell", "sh"}, strings.ToLower(c.Tool)) {
		return "", false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Input, &members) != nil || len(members) != 1 {
		return "", false
	}
	err := json.Unmarshal(members["command"], &text)
	return text, err == nil && text != ""
}

// input is a canonical input, one member or element a line. The indentation is ours.
func input(raw json.RawMessage) []string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var out bytes.Buffer
	if depth(raw) > deepest || json.Indent(&out, raw, "", "  ") != nil {
		return Lines(string(raw))
	}
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, " ")
		lines[i] = line[:len(line)-len(text)] + Visible(text)
	}
	return lines
}

// depth is how deep arrays and objects are nested.
func depth(raw json.RawMessage) (most int) {
	now, quoted, escaped := 0, false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			now++
			most = max(most, now)
		case !quoted && (c == '}' || c == ']'):
			now--
		}
	}
	return most
}

// named is a name that somebody else chose: as it is if it is one plain word, and else in quotes, so that it cannot run
// on into our words.
func named(name string) string {
	plain := name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("._-:/@+#", c)
	})
	if plain {
		return name
	}
	return quoted(name)
}

// quoted is somebody's text between quotes that it cannot close itself.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(Visible(text), `"`, `\u{22}`) + `"`
}
