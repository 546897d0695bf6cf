package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
)

// suggestion is one change of Claude Code's own permissions that an answer of PermissionRequest could make.
type suggestion struct {
	Type        string   `json:"type"`
	Behavior    string   `json:"behavior,omitempty"`
	Destination string   `json:"destination,omitempty"`
	Mode        string   `json:"mode,omitempty"`
	Rules       []rule   `json:"rules,omitempty"`
	Directories []string `json:"directories,omitempty"`
}

type rule struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// maxSuggestions is how many suggestions are read.
const maxSuggestions = 20

// suggest reads Claude Code's suggestions for a call. People can choose those that add to the session's permissions. The others would
// write settings or change how Claude Code asks, and are only shown. If one cannot be read, none is shown or offered.
func (c *Call) suggest(m members) {
	var all []json.RawMessage
	if json.Unmarshal(m["permission_suggestions"], &all) != nil || len(all) > maxSuggestions {
		return
	}
	var choices, more, others []string
	var chosen []json.RawMessage
	for _, one := range all {
		s, ok := readSuggestion(one)
		if !ok {
			return
		}
		switch words := s.choiceText(); {
		case words == "":
			others = append(others, s.String())
		case slices.Contains(choices, words): // it is offered already
		case utf8.RuneCountInString(words) > permissions.MaxOption, len(choices) == permissions.MaxSuggestions:
			more = append(more, s.String())
		default:
			choices, chosen = append(choices, words), append(chosen, one)
		}
	}
	var told []string
	if len(others) > 0 {
		told = append(told, "Claude Code also suggests the following. It would write its settings or change how it asks, "+
			"so it is not offered here: "+strings.Join(others, "; "))
	}
	if len(more) > 0 {
		told = append(told, "Claude Code also suggests the following, which is too long to be offered here, or one too many: "+
			strings.Join(more, "; "))
	}
	c.Request.Message = permissions.Brief(strings.Join(told, "\n"), permissions.MaxMessage)
	c.Request.Choices, c.suggested = choices, chosen
}

// readSuggestion reads one suggestion in canonical form. It accepts no unknown, differently cased or empty members.
func readSuggestion(raw json.RawMessage) (s suggestion, ok bool) {
	if json.Unmarshal(raw, &s) != nil {
		return s, false
	}
	text, err := json.Marshal(s)
	if err != nil {
		return s, false
	}
	same, err := permissions.CanonicalJSON(text)
	invisible := func(c rune) bool { return !unicode.IsPrint(c) }
	return s, err == nil && s.Type != "" && s.Destination != "" && bytes.Equal(same, raw) && !strings.ContainsFunc(s.String(), invisible)
}

// plainTool matches the name of one tool, not a pattern or a rule.
var plainTool = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// runsAnything matches a rule that begins with a program that runs whatever follows it.
var runsAnything = regexp.MustCompile(`^[:*?./~ ]*(\S*/)?(command|doas|env|eval|exec|nice|node|nohup|npx|osascript|perl|php|pwsh|ssh|` +
	`sudo|time|timeout|uvx?|watch|xargs|(ba|c|da|fi|k|tc|z)?sh|(python|ruby)[0-9.]*)(\.exe)?([: *]|$)`)

// choiceText is the choice's text after "Allow once, and"; empty if it is not offered.
func (s suggestion) choiceText() string {
	if s.Destination != "session" || s.Mode != "" {
		return ""
	}
	switch {
	case s.Type == "addRules" && s.Behavior == "allow" && len(s.Rules) > 0 && len(s.Directories) == 0:
		for _, r := range s.Rules {
			every := strings.Trim(r.RuleContent, ":*?./~ ") == ""
			if !plainTool.MatchString(r.ToolName) || every && (r.RuleContent != "" || permissions.RunsCode(r.ToolName)) ||
				strings.Contains(r.RuleContent, "*") && runsAnything.MatchString(r.RuleContent) {
				return ""
			}
		}
		return "have Claude Code allow " + s.ruleList() + " by itself in this session"
	case s.Type == "addDirectories" && s.Behavior == "" && len(s.Rules) == 0 && len(s.Directories) > 0:
		for _, d := range s.Directories {
			if !filepath.IsAbs(d) || filepath.Clean(d) == "/" {
				return ""
			}
		}
		return "add " + s.ruleList() + " to the folders that Claude Code works in, in this session"
	}
	return ""
}

// ruleList lists the rules and folders of a suggestion in the syntax of Claude Code's settings.
func (s suggestion) ruleList() string {
	var all []string
	for _, r := range s.Rules {
		if r.RuleContent != "" {
			r.ToolName += "(" + r.RuleContent + ")"
		}
		all = append(all, r.ToolName)
	}
	return strings.Join(append(all, s.Directories...), ", ")
}

// String returns the complete suggestion as text.
func (s suggestion) String() string {
	words := strings.Join(strings.Fields(strings.Join([]string{s.Type, s.Behavior, s.Mode}, " ")), " ")
	if what := s.ruleList(); what != "" {
		words += " " + what
	}
	return fmt.Sprintf("%s (%s)", words, s.Destination)
}
