package script

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a script. name is the model's; errors start with it and contain the line.
func Parse(name string, data []byte) (*Model, error) {
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: line 1: there are no turns", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is more than one document", name)
	}
	m := &Model{name: name}
	top, err := fields(doc.Content[0], "turns")
	if err == nil {
		err = m.parse(top["turns"])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func (m *Model) parse(list *yaml.Node) error {
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return errors.New("line 1: there are no turns")
	}
	names := []string{start}
	for _, n := range list.Content {
		t, err := parseTurn(n)
		if err != nil {
			return err
		}
		if slices.Contains(names, t.name) {
			return at(n, "the name %s is taken", t.name)
		}
		names, m.turns = append(names, t.name), append(m.turns, t)
	}
	for i, t := range m.turns {
		for _, before := range t.after {
			if !slices.Contains(names, before) {
				return at(list.Content[i], "there is no turn %s", before)
			}
		}
	}
	return nil
}

var turnName = regexp.MustCompile(`^[a-zA-Z0-9_]{1,40}$`)

func parseTurn(n *yaml.Node) (t turn, err error) {
	f, err := fields(n, "name", "after", "said", "asked", "result", "error", "say", "calls")
	if err != nil {
		return t, err
	}
	for key, into := range map[string]*string{"name": &t.name, "say": &t.say} {
		if err := text(f[key], into); err != nil {
			return t, err
		}
	}
	for key, into := range map[string]**regexp.Regexp{"said": &t.said, "asked": &t.asked, "result": &t.result} {
		if err := expression(f[key], into); err != nil {
			return t, err
		}
	}
	if f["error"] != nil {
		if err := f["error"].Decode(&t.failed); err != nil || t.failed == nil {
			return t, at(f["error"], "error is true or false")
		}
	}
	if t.after, err = names(f["after"]); err != nil {
		return t, err
	}
	if t.calls, err = parseCalls(f["calls"]); err != nil {
		return t, err
	}
	switch {
	case !turnName.MatchString(t.name):
		return t, at(n, "a turn has a name of letters, digits and underscores, not %q", t.name)
	case t.say == "" && len(t.calls) == 0:
		return t, at(n, "the turn %s says nothing and calls nothing", t.name)
	case t.said != nil && (t.result != nil || t.failed != nil):
		return t, at(n, "the newest message of %s cannot be a person's and results; asked looks further back", t.name)
	}
	return t, checkPlaces(n, t.say)
}

func parseCalls(list *yaml.Node) ([]call, error) {
	if list == nil {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, at(list, "calls is a list")
	}
	var calls []call
	for _, n := range list.Content {
		f, err := fields(n, "tool", "input")
		if err != nil {
			return nil, err
		}
		c := call{input: map[string]any{}}
		if err := text(f["tool"], &c.tool); err != nil {
			return nil, err
		}
		if c.tool == "" {
			return nil, at(n, "a call names its tool")
		}
		if f["input"] != nil {
			if f["input"].Kind != yaml.MappingNode {
				return nil, at(f["input"], "an input has keys and values")
			}
			if c.input, err = value(f["input"]); err != nil {
				return nil, err
			}
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// fields returns those of a mapping and refuses unknown ones.
func fields(n *yaml.Node, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, at(n, "here are keys and values: %s", strings.Join(known, ", "))
	}
	all := map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(known, key.Value):
			return nil, at(key, "there is no key %s here, only %s", key.Value, strings.Join(known, ", "))
		case all[key.Value] != nil:
			return nil, at(key, "%s is there twice", key.Value)
		}
		all[key.Value] = n.Content[i+1]
	}
	return all, nil
}

func text(n *yaml.Node, into *string) error {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return at(n, "here is a text")
	}
	*into = n.Value
	return nil
}

func expression(n *yaml.Node, into **regexp.Regexp) (err error) {
	var source string
	if err := text(n, &source); err != nil || n == nil {
		return err
	}
	if *into, err = regexp.Compile(source); err != nil {
		return at(n, "%v", err)
	}
	return nil
}

// names reads a string or a list.
func names(n *yaml.Node) ([]string, error) {
	if n == nil {
		return nil, nil
	}
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var all []string
	for _, item := range list {
		var name string
		if err := text(item, &name); err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	return all, nil
}

func value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := all[key.Value]; twice || key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return nil, at(key, "this key is none, or there twice")
			}
			v, err := value(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			all[key.Value] = v
		}
		return all, nil
	case yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			v, err := value(item)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, at(n, "anchors and aliases have no place here")
}

func scalar(n *yaml.Node) (any, error) {
	var v any
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		if err := n.Decode(&v); err != nil {
			return nil, at(n, "%v", err)
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil, at(n, "JSON has no %s", n.Value)
		}
		return v, nil
	}
	return n.Value, checkPlaces(n, n.Value)
}

// checkPlaces finds malformed placeholders.
func checkPlaces(n *yaml.Node, text string) error {
	if left := places.ReplaceAllLiteralString(text, ""); strings.Contains(left, "{{") {
		return at(n, "what can be filled in is {{said}}, {{result}}, {{result.1}} and {{match.1}}")
	}
	return nil
}

func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}
