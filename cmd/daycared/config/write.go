package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Draft is a configuration file being changed, key by key. The rest stays as it is, including comments; YAML decides about blank
// lines and the alignment of comments. The file itself is not written.
type Draft struct {
	file  string
	text  []byte     // the file's content; nil: no file
	root  *yaml.Node // the keys
	edits []Edit
}

// Edit is one change of a draft.
type Edit struct {
	Key   string // as in people[fay].telegram
	Value string
	Was   string // empty: not set
	Why   string
}

// ReadDraft reads a file that [Load] accepts. If there is none, the draft is a new one.
func ReadDraft(file string) (*Draft, error) {
	text, err := ReadFile(file, maxSize+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	d := &Draft{file: file, text: text, root: &yaml.Node{Kind: yaml.MappingNode}}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(doc.Content) > 0 && doc.Content[0].Kind == yaml.MappingNode {
		d.root = doc.Content[0]
	}
	return d, nil
}

// Exists reports whether the file exists already.
func (d *Draft) Exists() bool { return d.text != nil }

// Edits returns the changes in order.
func (d *Draft) Edits() []Edit { return slices.Clone(d.edits) }

// Set sets a key such as connectors.telegram.enabled to text, a number or a boolean.
func (d *Draft) Set(key string, value any, why string) {
	at := d.root
	names := strings.Split(key, ".")
	for _, name := range names[:len(names)-1] {
		at = below(at, name, yaml.MappingNode)
	}
	d.set(at, names[len(names)-1], key, value, why)
}

// Person returns a key of a person as text; empty if it is not set.
func (d *Draft) Person(name, key string) string {
	if p := d.person(name); p != nil {
		if v := find(p, key); v != nil {
			return v.Value
		}
	}
	return ""
}

// SetPerson sets a key of a person, adding the person if missing.
func (d *Draft) SetPerson(name, key string, value any, why string) {
	p := d.person(name)
	if p == nil {
		p = &yaml.Node{Kind: yaml.MappingNode}
		list := below(d.root, "people", yaml.SequenceNode)
		list.Content = append(list.Content, p)
		d.set(p, "name", "people["+name+"].name", name, "who answers: shown on cards, typed in commands")
	}
	d.set(p, key, "people["+name+"]."+key, value, why)
}

// Ask adds a route that asks a person about whatever no earlier route matches.
func (d *Draft) Ask(name, why string) {
	list := below(d.root, "routes", yaml.SequenceNode)
	ask := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{plain(name)}}
	list.Content = append(list.Content, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{plain("ask"), ask}})
	d.edits = append(d.edits, Edit{Key: "routes", Value: "ask: [" + scalar(name) + "]", Why: why})
}

// Use adds a rule for each starter set.
func (d *Draft) Use(sets []string, why string) {
	for _, set := range sets {
		list := below(d.root, "rules", yaml.SequenceNode)
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{plain("use"), plain(set)}})
		d.edits = append(d.edits, Edit{Key: "rules", Value: "use: " + set, Why: why})
	}
}

// Text returns the new content of the file; unchanged content if there are no edits.
func (d *Draft) Text() ([]byte, error) {
	if len(d.edits) == 0 {
		return d.text, nil
	}
	var b bytes.Buffer
	if d.root.Line == 0 { // only comments
		b.Write(d.text)
		if n := len(d.text); n > 0 && d.text[n-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(d.root), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return b.Bytes(), nil
}

// Check is [Load] of the new content.
func (d *Draft) Check(environ []string) (*Config, error) {
	text, err := d.Text()
	if err != nil {
		return nil, err
	}
	return parse(d.file, text, environ)
}

// CheckName returns what is wrong with a person's name, or nil.
func CheckName(name string) error {
	_, err := parseName(name)
	return err
}

func (d *Draft) person(name string) *yaml.Node {
	people := find(d.root, "people")
	if people == nil || people.Kind != yaml.SequenceNode {
		return nil
	}
	for _, p := range people.Content {
		if v := find(p, "name"); v != nil && v.Value == name {
			return p
		}
	}
	return nil
}

func (d *Draft) set(at *yaml.Node, name, key string, value any, why string) {
	to := plain(value)
	v := find(at, name)
	switch {
	case v == nil:
		at.Content = append(at.Content, plain(name), to)
		d.edits = append(d.edits, Edit{Key: key, Value: to.Value, Why: why})
	case v.Value != to.Value:
		d.edits = append(d.edits, Edit{Key: key, Value: to.Value, Was: v.Value, Why: why})
		v.Value, v.Tag, v.Style = to.Value, to.Tag, 0
	}
}

// find returns the value of a key in a mapping, or nil.
func find(in *yaml.Node, name string) *yaml.Node {
	if in.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == name {
			return in.Content[i+1]
		}
	}
	return nil
}

// below returns the list or section under a key, creating it if missing.
func below(in *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	v := find(in, name)
	if v == nil {
		v = &yaml.Node{}
		in.Content = append(in.Content, plain(name), v)
	}
	if v.Kind != kind { // new, or null
		v.Kind, v.Tag, v.Value, v.Style = kind, "", "", 0
	}
	if len(v.Content) == 0 {
		v.Style = 0 // [] and {}
	}
	return v
}

func plain(value any) *yaml.Node {
	n := &yaml.Node{}
	_ = n.Encode(value) // a text, a number or a boolean, which never fail
	return n
}
