package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/permissions"
)

const (
	member = "answer" // the one thing that a dialog asks for, and the name of the dialog itself
	// mostShown is how many characters a dialog has at most. What has more is not shown there at all, rather than in part.
	mostShown = 6000
	titled    = "2025-11-25" // the first revision in which options have titles
)

// formOf is a request as a client's dialog; whole is false where it does not fit one. An agent's words are marked line by
// line, and what cannot be seen in them is spelled out.
func formOf(r permissions.Request, revision string) (form *mcp.ElicitParams, whole bool) {
	lines := []string{"daycared: " + spelled(r.Who()) + " asks you"}
	lines = append(lines, quoted(r.Message)...)
	if r.Details != "" {
		lines = append(lines, "details:")
		lines = append(lines, quoted(r.Details)...)
	}
	silence := "the first option is taken"
	if r.Kind != permissions.KindClarification {
		silence = "it goes on"
	}
	lines = append(lines, fmt.Sprintf("It was put to %s as well; the first answer counts. Without one %s after %s.",
		strings.Join(r.Asked, ", "), silence, permissions.SayDuration(r.Timeout())))
	form = &mcp.ElicitParams{Mode: "form", Message: strings.Join(lines, "\n"), RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{member: options(r, revision)}, "required": []string{member},
	}}
	return form, utf8.RuneCountInString(form.Message) <= mostShown
}

// options is the schema of the choice between those of r, by their ids, with their words as the revision has them.
func options(r permissions.Request, revision string) map[string]any {
	var ids, words []string
	var both []map[string]any
	for _, o := range r.Options {
		ids, words = append(ids, string(o.ID)), append(words, spelled(o.Label))
		both = append(both, map[string]any{"const": string(o.ID), "title": spelled(o.Label)})
	}
	property := map[string]any{"type": "string", "title": "Answer"}
	if revision >= titled {
		property["oneOf"] = both
	} else {
		property["enum"], property["enumNames"] = ids, words
	}
	return property
}

// chosenOf is the option that a dialog brought; ok is false where its person declined or closed it, or it brought anything
// else than one of the options of r.
func chosenOf(r permissions.Request, said *mcp.ElicitResult) (a permissions.Answer, ok bool) {
	text, _ := said.Content[member].(string)
	if said.Action != "accept" || len(said.Content) != 1 {
		return "", false
	}
	for _, o := range r.Options {
		if string(o.ID) == text {
			return o.ID, true
		}
	}
	return "", false
}

// quoted are the lines of an agent's words.
func quoted(words string) []string {
	lines := strings.Split(words, "\n")
	for i, line := range lines {
		lines[i] = "│ " + spelled(line)
	}
	return lines
}

// spelled is a line of text in which everything is seen: letters, marks, numbers, punctuation, symbols and plain spaces
// stay, and whatever else is there becomes its number, as in \u{202E}.
func spelled(line string) string {
	var b strings.Builder
	for _, c := range line {
		seen := c == ' ' || unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
		if !seen || unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			fmt.Fprintf(&b, `\u{%04X}`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}
