package config

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
)

// walk reads the values of a document, and checks it strictly against the keys.
type walk struct{ *report }

// section returns the values of a mapping, by name. An empty value counts as an empty mapping.
func (w walk) section(n *yaml.Node, s *section, path string) map[string]any {
	values := map[string]any{}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return values
	}
	if k, has := s.find("enabled"); has && n.Kind == yaml.ScalarNode && k.leaf.is == leaves["switch"].is { // as in high_risk: off
		if v, ok := w.plain(n, k, path); ok {
			w.lines[join(path, k.name)] = n.Line
			values[k.name] = v
		}
		return values
	}
	if n.Kind != yaml.MappingNode {
		w.line(n.Line, path, "%s is %s, where keys belong; write them as in %s: …",
			cmp.Or(s.path, "the file"), shape(n), s.keys[0].name)
		return values
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		k, ok := w.name(name, s, path)
		if !ok {
			continue
		}
		at := join(path, k.name)
		if first, again := w.lines[at]; again {
			w.line(name.Line, at, "%s is here a second time, after line %d; write it once", k.path, first)
			continue
		}
		w.lines[at] = name.Line
		if v, ok := w.value(value, k, at); ok {
			values[k.name] = v
		}
	}
	return values
}

// name returns the key that a node names.
func (w walk) name(n *yaml.Node, s *section, path string) (key, bool) {
	if n.Kind != yaml.ScalarNode {
		w.rejectAnchors(n, path)
		w.line(n.Line, path, "%s stands where the name of a key belongs; there are %s",
			shape(n), strings.Join(s.names(), ", "))
		return key{}, false
	}
	if !w.rejectAnchors(n, path) {
		return key{}, false
	}
	if k, ok := s.find(n.Value); ok {
		return k, true
	}
	if k, ok := s.find(strings.ToLower(n.Value)); ok {
		w.line(n.Line, join(path, k.name), "keys are written in lower case, not as %s; write %s", quote(n.Value), k.name)
		return key{}, false
	}
	w.line(n.Line, path, "unknown key %s; %s", quote(join(s.path, n.Value)), s.suggest(n.Value))
	return key{}, false
}

// value returns a key's value: a map for a section, a []any for a list, or the parsed value.
func (w walk) value(n *yaml.Node, k key, path string) (any, bool) {
	switch {
	case !w.rejectAnchors(n, path):
		return nil, false
	case k.table:
		return w.table(n, k, path)
	case k.list:
		return w.list(n, k, path)
	case k.inner != nil:
		return w.section(n, k.inner, path), true
	}
	return w.plain(n, k, path)
}

// list returns the items of a list. Wrong sections are kept, so that item numbers stay the same.
func (w walk) list(n *yaml.Node, k key, path string) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		w.line(n.Line, path, "%s is a list, not %s; write %s", k.path, shape(n), k.asList(n))
		return nil, false
	}
	items := []any{}
	for i, item := range n.Content {
		at := join(path, strconv.Itoa(i))
		w.lines[at] = item.Line
		ok := w.rejectAnchors(item, at)
		if k.inner != nil {
			values := map[string]any{}
			if ok {
				values = w.section(item, k.inner, at)
			}
			items = append(items, values)
		} else if v, right := w.plain(item, k, at); ok && right {
			items = append(items, v)
		}
	}
	return items, true
}

// table returns the numbers of a mapping, by their patterns.
func (w walk) table(n *yaml.Node, k key, path string) (any, bool) {
	if n.Kind != yaml.MappingNode {
		example := ownTools[0] + ": 10"
		if _, err := parseCount(n.Value); err == nil {
			example = `"*": ` + n.Value
		}
		w.line(n.Line, path, "%s has a number for each tool, and is not %s; write %s: {%s}, or {} for none", k.path, shape(n), k.name, example)
		return nil, false
	}
	values := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if !w.rejectAnchors(name, path) {
			continue
		}
		if _, ok := w.plain(name, key{path: k.path, list: true, leaf: leaves["glob"]}, path); !ok {
			continue
		}
		at := join(path, name.Value)
		if first, again := w.lines[at]; again {
			w.line(name.Line, at, "%s: %s is here a second time, after line %d; write it once", k.path, quote(name.Value), first)
			continue
		}
		w.lines[at] = name.Line
		if !w.rejectAnchors(value, at) {
			continue
		}
		v, _ := w.plain(value, key{name: scalar(name.Value), path: join(k.path, name.Value), leaf: k.leaf}, at)
		if number, ok := v.(int); ok {
			values[name.Value] = number
		}
	}
	return values, true
}

// plain parses a scalar.
func (w walk) plain(n *yaml.Node, k key, path string) (any, bool) {
	if n.Kind == yaml.AliasNode {
		return nil, false // reported already
	}
	tag := n.ShortTag()
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch {
	case n.Kind != yaml.ScalarNode:
		w.line(n.Line, path, "%s is %s, not %s; write one value", k.path, k.leaf.is, shape(n))
		return nil, false
	case tag == "!!null":
		w.line(n.Line, path, "%s has no value; write %s, or leave the line out", k.path, k.leaf.is)
		return nil, false
	}
	v, err := k.leaf.parse(n.Value)
	switch {
	case k.leaf.written == asText && tag != "!!str" && k.leaf.means(n.Value, err) != "":
		meant := k.leaf.means(n.Value, err)
		w.line(n.Line, path, "%s: YAML reads %s as %s; write it in quotes: %s",
			k.path, n.Value, shape(n), k.example(strconv.Quote(meant)))
		return nil, false
	case err != nil:
		w.line(n.Line, path, "%s: %v", k.path, err)
		return nil, false
	case k.leaf.written == asLiteral && quoted:
		w.line(n.Line, path, "%s is %s, not text; write it without quotes: %s", k.path, k.leaf.is, k.example(n.Value))
		return nil, false
	}
	return v, true
}

// means returns what an unquoted value was meant to be, given the parser's error; empty if that is unclear.
func (l leaf) means(text string, err error) string {
	if err == nil {
		return text
	}
	if l.correct != nil {
		if meant, ok := l.correct(text); ok {
			return meant
		}
	}
	return ""
}

// example shows how to write a value of k.
func (k key) example(value string) string {
	if k.list {
		return value
	}
	return k.name + ": " + value
}

// rejectAnchors rejects anchors, aliases, merged keys and explicit types.
func (w walk) rejectAnchors(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		w.line(n.Line, path, "*%s repeats what &%[1]s marked, which is not done here; write it out, or in quotes", n.Value)
	case n.Anchor != "":
		w.line(n.Line, path, "&%s marks this for repetition, which is not done here; write it without", n.Anchor)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge":
		w.line(n.Line, path, "<< merges keys from elsewhere, which is not done here; write them out")
	case n.Style&yaml.TaggedStyle != 0:
		w.line(n.Line, path, "%s gives a type, which is not done here; write the value without", n.Tag)
	default:
		return true
	}
	return false
}

// asList shows how to write a list of k, given what was written instead.
func (k key) asList(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return k.name + ": [] for none, or leave the line out"
	case k.inner != nil:
		return "a dash before each item, as in - " + k.item(n)
	case n.Kind == yaml.ScalarNode:
		return k.name + ": [" + scalar(n.Value) + "]"
	}
	return k.name + ": [one, another]"
}

// item shows how to write the first key of an item of k, given what was written without a dash.
func (k key) item(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode && len(n.Content) > 1 {
		if first, ok := k.inner.find(n.Content[0].Value); ok {
			return first.name + ": " + inline(n.Content[1])
		}
	}
	first, ok := k.inner.find("name")
	if !ok {
		first, _ = k.inner.find("ask")
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		return first.name + ": …"
	case first.list:
		return first.name + ": [" + scalar(n.Value) + "]"
	}
	return first.name + ": " + scalar(n.Value)
}

func inline(n *yaml.Node) string {
	switch n.Kind {
	case yaml.ScalarNode:
		return scalar(n.Value)
	case yaml.SequenceNode:
		items := wire.Map(n.Content, inline)
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "…"
}

// shape describes a node for people.
func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section of keys"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "nothing"
	}
	return "text"
}

// section is a mapping of keys: the whole file, a part of it, or an item of a list of sections.
type section struct {
	path string // without the numbers of items
	keys []key
}

// key describes one key, as declared by its struct field.
type key struct {
	name  string
	path  string // with the names of its sections
	field int    // in its struct
	list  bool
	table bool     // numbers by patterns
	entry bool     // an entry of a map
	inner *section // of a section or a list of sections; nil for plain values
	leaf  leaf     // of a plain value, or of the items of a list or table
}

// root is the whole file.
var root = sectionOf(reflect.TypeFor[Config](), "")

// sectionOf derives the keys of a struct type from its yaml tags. Fields without one are no keys.
func sectionOf(t reflect.Type, path string) *section {
	s := &section{path: path}
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		if name == ",kinds" {
			for _, kind := range connectors.Kinds {
				s.keys = append(s.keys, key{name: kind.Name, path: join(path, kind.Name), field: i, entry: true, leaf: addressOf(kind)})
			}
			continue
		}
		k := key{name: name, path: join(path, name), field: i}
		item := f.Type
		switch f.Type.Kind() {
		case reflect.Slice:
			k.list, item = true, f.Type.Elem()
		case reflect.Map:
			k.table, item = true, f.Type.Elem()
		}
		if l, plain := leafOf(item, f.Tag.Get("is")); plain {
			k.leaf = l
		} else {
			k.inner = sectionOf(item, k.path)
		}
		s.keys = append(s.keys, k)
	}
	return s
}

// in returns the key's value in its struct.
func (k key) in(v reflect.Value) reflect.Value {
	field := v.Field(k.field)
	if !k.entry {
		return field
	}
	if entry := field.MapIndex(reflect.ValueOf(k.name)); entry.IsValid() {
		return entry
	}
	return reflect.Zero(field.Type().Elem())
}

func (s *section) find(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

// otherwise maps names that people write to the keys they mean.
var otherwise = map[string]string{
	"people.phone": "whatsapp", "people.mobile": "whatsapp", "people.number": "whatsapp", "people.account": "user",
	"people.tz": "timezone", "people.zone": "timezone",
}

// suggest says which key was probably meant by an unknown name.
func (s *section) suggest(name string) string {
	if meant := otherwise[join(s.path, strings.ToLower(name))]; meant != "" {
		return "did you mean " + meant + "?"
	}
	near, homes := suggest(name, s.names()), root.sectionsWith(name, false)
	if s == root && len(homes) == 0 {
		homes = root.sectionsWith(name, true)
	}
	switch {
	case len(homes) != 1, levenshtein.ComputeDistance(near, "did you mean "+name+"?") == 1:
		return near
	case homes[0] == root:
		return "it belongs at the top of the file"
	}
	return "it belongs under " + homes[0].path
}

// sectionsWith returns the sections that have a key of that name; with items, also those in lists.
func (s *section) sectionsWith(name string, items bool) (all []*section) {
	if _, has := s.find(name); has {
		all = append(all, s)
	}
	for _, k := range s.keys {
		if k.inner != nil && (items || !k.list) {
			all = append(all, k.inner.sectionsWith(name, items)...)
		}
	}
	return all
}

func (s *section) names() []string {
	return wire.Map(s.keys, func(k key) string { return k.name })
}

// settings returns the keys below s that have a value, a default and an origin; a list is one.
func (s *section) settings() []key {
	var all []key
	for _, k := range s.keys {
		if k.inner != nil && !k.list {
			all = append(all, k.inner.settings()...)
		} else {
			all = append(all, k)
		}
	}
	return all
}
