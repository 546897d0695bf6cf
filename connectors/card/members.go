package card

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/daycared/daycared/internal/wire"
)

// deepest is the maximum nesting of an input that is laid out; a deeper one stays on one line, as it was sent.
const deepest = 12

// maxCompact limits a list or an object that stays on the row of its name, in bytes.
const maxCompact = 60

// input lays out a call's input: of an object, what matters most first, as name: value. Nothing is left out, and different inputs are
// laid out differently. A text of several rows is below its name and a bar, or a bar and a minus if no newline ends it.
func input(raw json.RawMessage, src source) (lines []string, lang string) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, ""
	}
	if all, ok := membersOf(raw); ok && len(all) > 0 && depth(raw) <= deepest {
		return members(all, src), ""
	}
	var out bytes.Buffer
	if depth(raw) > deepest || json.Indent(&out, raw, "", "  ") != nil {
		return words(string(raw), src), "json"
	}
	lines = strings.Split(out.String(), "\n")
	for i, row := range lines {
		text := strings.TrimLeft(row, " ")
		lines[i] = row[:len(row)-len(text)] + line(text, src.of(text))
	}
	return lines, "json"
}

// field is a member of an object, or an element of a list.
type field struct {
	name string // quoted as in JSON, with a colon; empty for an element
	raw  jsontext.Value
}

// membersOf returns the members of an object in their order.
func membersOf(raw json.RawMessage) (all []field, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	for d.PeekKind() == '"' {
		name, _ := d.ReadValue()
		m := field{name: string(name) + ": "}
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		m.raw = value.Clone()
		all = append(all, m)
	}
	_, err := d.ReadToken()
	return all, err == nil
}

func elementsOf(raw jsontext.Value) (all []field) {
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements) // it was parsed already
	return wire.Map(elements, func(e json.RawMessage) field { return field{raw: jsontext.Value(e)} })
}

// first are the members that say most, in this order.
var first = wire.Map(slices.Concat(pathMembers, strings.Fields("url uri command cmd query sql name title subject id owner repo "+
	"repository channel to from")), func(name string) string { return name + ": " })

// members lays out an object: the members that say most, short ones, and then those with several rows.
func members(all []field, src source) (lines []string) {
	rank := func(m field) int {
		if at := slices.Index(first, m.head(src)); at >= 0 {
			return at
		}
		if len(m.rows(src)) == 1 {
			return len(first)
		}
		return len(first) + 1
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b field) int { return rank(a) - rank(b) })
	for _, m := range all {
		lines = append(lines, m.rows(src)...)
	}
	return lines
}

// head is what stands before a member's value.
func (m field) head(src source) string {
	switch plain := plainName().FindStringSubmatch(m.name); {
	case m.name == "":
		return "- "
	case plain != nil:
		return plain[1] + ": "
	}
	return m.quoted(src)
}

// quoted is the name as JSON has it, in our escapes.
func (m field) quoted(src source) string {
	if m.name == "" {
		return ""
	}
	return line(strings.TrimSuffix(m.name, " "), src) + " " // a space at the end would be counted
}

// plainName matches a name that needs no quotes.
var plainName = lazily(`^"([A-Za-z_][\w.-]{0,59})": $`)

// rows lays out a member: in one row, or below its name.
func (m field) rows(src source) (lines []string) {
	row := m.name + string(m.raw)
	as := src.of(row)
	switch kind := m.raw.Kind(); {
	case kind == '"':
		lines = m.text(row, as)
	case kind == '{' && len(m.raw) > maxCompact:
		inner, _ := membersOf(json.RawMessage(m.raw))
		lines = append([]string{""}, indented(members(inner, src))...)
	case kind == '[' && len(m.raw) > maxCompact:
		lines = []string{""}
		for _, e := range elementsOf(m.raw) {
			lines = append(lines, indented(e.rows(src))...)
		}
	}
	if lines == nil {
		lines = []string{strings.TrimPrefix(line(row, as), m.quoted(as))}
	}
	lines[0] = strings.TrimRight(m.head(src)+lines[0], " ")
	return lines
}

// text lays out a text as it is, or returns nil if it has to be shown as in JSON: because it has secrets, whose context is what stands
// before them there, or because it would look like something else.
func (m field) text(row string, as source) []string {
	value, err := jsontext.AppendUnquote(nil, m.raw)
	text := string(value)
	again, _ := jsontext.AppendQuote(nil, text)
	if err != nil || string(again) != string(m.raw) || len(secrets(row, as))+len(secrets(text, as&^jsonText)) > 0 {
		return nil
	}
	lines := strings.Split(text, "\n")
	last := len(lines) - 1
	head := "|-"
	if last > 0 && lines[last] == "" {
		head, lines = "|", lines[:last]
		last--
	}
	switch {
	case last == 0 && head == "|-":
		if strings.ContainsAny(text[:min(len(text), 1)], ` "|{[-`) || text == "" || strings.HasSuffix(text, " ") || json.Valid(value) {
			return nil
		}
		return []string{rendered(text, as)}
	case lines[0] == "" || lines[last] == "":
		return nil
	}
	return append([]string{head}, indented(wire.Map(lines, func(l string) string { return rendered(l, as) }))...)
}

func indented(rows []string) []string {
	return wire.Map(rows, func(row string) string { return strings.TrimRight("  "+row, " ") })
}

// of is the kind of a text in JSON, by the name of its member.
func (src source) of(text string) source {
	switch {
	case place().MatchString(text):
		return src | located
	case readMember().MatchString(text):
		return src | prose
	}
	return src
}

// readMember matches a member of an input that, by its name, is a text for people or for a file.
var readMember = lazily(`(?i)^"(contents?|(file_?|old_?|new_?)?(text|str|string|source)|message|body|title|subject|` +
	`description|comment|prompt)": "`)

// depth is the nesting depth of arrays and objects.
func depth(raw json.RawMessage) (most int) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return most
		}
		most = max(most, d.StackDepth())
	}
}
