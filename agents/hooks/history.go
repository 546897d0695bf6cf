package hooks

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// entry is a row of a history, as Claude Code, Codex and VS Code write it.
type entry struct {
	Type                                      string
	CustomTitle, AITitle, Summary, LastPrompt string
	IsMeta, IsSidechain                       bool
	Message                                   struct{ Content json.RawMessage }
	Payload                                   struct{ Type, Message string }
	Data                                      struct{ Content string }
}

// prompt is what a person wrote; empty: the row is of something else.
func (e entry) prompt() (text string) {
	switch {
	case e.Type == "last-prompt":
		text = e.LastPrompt
	case e.Type == "user" && !e.IsMeta && !e.IsSidechain:
		if json.Unmarshal(e.Message.Content, &text) != nil {
			var parts []struct{ Text string } // those of a tool's result have none
			_ = json.Unmarshal(e.Message.Content, &parts)
			for _, part := range parts {
				text = cmp.Or(text, part.Text)
			}
		}
	case e.Type == "event_msg" && e.Payload.Type == "user_message":
		text = e.Payload.Message
	case e.Type == "user.message":
		text = e.Data.Content
	}
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "<") || strings.HasPrefix(text, "[Request interrupted") {
		return "" // the agent's own words about a command, or about what was ended
	}
	return permissions.Brief(text, permissions.MaxPrompt)
}

// titleAndPrompt returns the title of a session and what a person told it last, from the rows of its history, the newest first.
func titleAndPrompt(history [][]byte) (title, prompt string) {
	var custom, own, summary string
	for _, line := range history {
		var e entry
		_ = json.Unmarshal(line, &e) // what is of another type is left out
		custom, own, summary = cmp.Or(custom, e.CustomTitle), cmp.Or(own, e.AITitle), cmp.Or(summary, e.Summary)
		prompt = cmp.Or(prompt, e.prompt())
	}
	return permissions.Brief(cmp.Or(custom, own, summary), permissions.MaxTitle), prompt
}
