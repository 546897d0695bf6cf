package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// written is a script as it is written.
type written struct{ Turns []turn }

type turn struct {
	Name                string
	After               words // none: any
	Said, Asked, Result expression
	Error               *bool // of the newest results
	Say                 string
	Calls               []call
}

type call struct {
	Tool  string
	Input input
}

// words are a text, or a list of texts.
type words []string

// UnmarshalYAML implements [yaml.Unmarshaler].
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]string)(w))
	}
	*w = words{""}
	return n.Decode(&(*w)[0])
}

type expression struct{ *regexp.Regexp }

// UnmarshalYAML implements [yaml.Unmarshaler].
func (e *expression) UnmarshalYAML(n *yaml.Node) error {
	var source string
	err := n.Decode(&source)
	if err != nil {
		return err
	}
	if e.Regexp, err = regexp.Compile(source); err != nil {
		return at(n, "%v", err)
	}
	return nil
}

// input is a call's: what YAML has, as JSON has it.
type input map[string]any

// UnmarshalYAML implements [yaml.Unmarshaler].
func (i *input) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return at(n, "an input has keys and values")
	}
	v, err := value(n)
	*i, _ = v.(map[string]any)
	return err
}

// Parse reads a script. name is the model's; errors start with it and contain the line.
func Parse(name string, data []byte) (*Model, error) {
	m := &Model{name: name}
	if err := m.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func (m *Model) parse(data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var all written
	if err := d.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one document")
	}
	if len(all.Turns) == 0 {
		return errors.New("line 1: there are no turns")
	}
	var nodes struct{ Turns []yaml.Node }
	if err := yaml.Unmarshal(data, &nodes); err != nil { // for their lines
		return err
	}
	names := []string{start}
	for i, w := range all.Turns {
		n := &nodes.Turns[i]
		switch {
		case !turnName.MatchString(w.Name):
			return at(n, "a turn has a name of letters, digits and underscores, not %q", w.Name)
		case slices.Contains(names, w.Name):
			return at(n, "the name %s is taken", w.Name)
		case w.Say == "" && len(w.Calls) == 0:
			return at(n, "the turn %s says nothing and calls nothing", w.Name)
		case w.Said.Regexp != nil && (w.Result.Regexp != nil || w.Error != nil):
			return at(n, "the newest message of %s cannot be a person's and results; asked looks further back", w.Name)
		case slices.ContainsFunc(w.Calls, func(c call) bool { return c.Tool == "" }):
			return at(n, "each call of %s names its tool", w.Name)
		}
		if err := checkPlaces(n, w.Say); err != nil {
			return err
		}
		names = append(names, w.Name)
	}
	for i, t := range all.Turns {
		for _, before := range t.After {
			if !slices.Contains(names, before) {
				return at(&nodes.Turns[i], "there is no turn %s", before)
			}
		}
	}
	m.turns = all.Turns
	return nil
}

var turnName = regexp.MustCompile(`^[a-zA-Z0-9_]{1,40}$`)

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
	return nil, at(n, "anchors and aliases have no place here")
}

func checkPlaces(n *yaml.Node, text string) error {
	if left := places.ReplaceAllLiteralString(text, ""); strings.Contains(left, "{{") {
		return at(n, "what can be filled in is {{said}}, {{result}}, {{result.1}} and {{match.1}}")
	}
	return nil
}

func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}
