package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"
)

// Show writes the effective configuration as YAML that [Load] accepts. Each line ends with its origin: a line of the file, an
// environment variable, or default.
func (c *Config) Show(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	s := shower{c, tw}
	s.printf("# %s\n", onOneLine(cmp.Or(c.File, "no configuration file")))
	s.keys(reflect.ValueOf(c).Elem(), root, "", "", false)
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// Value returns the effective value of a key, such as approvals.timeout: text without quotes, anything else as YAML on one line.
// The error lists the available keys.
func (c *Config) Value(path string) (string, error) {
	v, sec := reflect.ValueOf(c).Elem(), root
	for rest := path; ; {
		name, below, deeper := strings.Cut(rest, ".")
		k, found := sec.find(name)
		switch {
		case !found:
			return "", fmt.Errorf("there is no key %s; %s has %s", path, cmp.Or(sec.path, "the configuration"), strings.Join(sec.names(), ", "))
		case k.inner == nil && deeper:
			return "", fmt.Errorf("there is no key %s; %s is a value of its own", path, k.path)
		case k.list && k.inner == nil, k.table:
			return k.show(v.Field(k.field)), nil
		case k.inner == nil:
			return k.leaf.text(v.Field(k.field).Interface()), nil
		case k.list:
			return "", fmt.Errorf("%s is a list; see: daycared config show", k.path)
		case !deeper:
			return "", fmt.Errorf("%s has keys of its own: %s", path, strings.Join(k.inner.names(), ", "))
		}
		v, sec, rest = v.Field(k.field), k.inner, below
	}
}

// Setting is one key with its effective value.
type Setting struct {
	Key   string `json:"key"`   // as in people.0.user
	Value any    `json:"value"` // a text, a number or a boolean, a list of them, or numbers by patterns
	From  string `json:"from"`  // the line of the file, the environment variable, or default
}

// Settings returns what [Config.Show] writes, in its order.
func (c *Config) Settings() []Setting { return c.settings(reflect.ValueOf(c).Elem(), root, "", false) }

// settings returns those of a section; for an item of a list only the keys that were set.
func (c *Config) settings(v reflect.Value, sec *section, path string, item bool) (all []Setting) {
	for _, k := range sec.keys {
		field, at := k.in(v), join(path, k.name)
		_, given := c.origins[at]
		switch {
		case item && !given:
		case k.table:
			all = append(all, Setting{at, field.Interface(), c.origin(at)})
		case k.inner == nil && !k.list:
			all = append(all, Setting{at, k.leaf.json(field), c.origin(at)})
		case k.inner == nil || k.list && field.Len() == 0:
			list := make([]any, field.Len())
			for i := range list {
				list[i] = k.leaf.json(field.Index(i))
			}
			all = append(all, Setting{at, list, c.origin(at)})
		case k.list:
			for i := range field.Len() {
				all = append(all, c.settings(field.Index(i), k.inner, at+"."+strconv.Itoa(i), true)...)
			}
		default:
			all = append(all, c.settings(field, k.inner, at, item)...)
		}
	}
	return all
}

func (l leaf) json(v reflect.Value) any {
	text := l.text(v.Interface())
	if l.written == asLiteral && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// onOneLine formats a file name for a comment.
func onOneLine(name string) string {
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

// shower writes the lines; the tabwriter keeps the first error until it is flushed.
type shower struct {
	*Config
	w *tabwriter.Writer
}

func (s shower) printf(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// keys writes those of a struct; for an item of a list only the keys that were set, since the others have no value to write.
// lead begins the first line; the others are indented equally.
func (s shower) keys(v reflect.Value, sec *section, path, lead string, item bool) {
	for _, k := range sec.keys {
		field, at := k.in(v), join(path, k.name)
		if _, given := s.origins[at]; item && !given {
			continue
		}
		indent := strings.Repeat(" ", len(lead))
		switch {
		case k.inner == nil:
			s.printf("%s%s: %s\t# %s\n", lead, k.name, k.show(field), s.origin(at))
		case k.list && field.Len() == 0:
			s.printf("%s%s: []\t# %s\n", lead, k.name, s.origin(at))
		case k.list:
			s.printf("%s%s:\t# %s\n", lead, k.name, s.origin(at))
			for i := range field.Len() {
				s.keys(field.Index(i), k.inner, at+"."+strconv.Itoa(i), indent+"  - ", true)
			}
		case item:
			s.printf("%s%s:\t# %s\n", lead, k.name, s.origin(at))
			s.keys(field, k.inner, at, indent+"  ", true)
		default:
			s.printf("%s%s:\n", lead, k.name)
			s.keys(field, k.inner, at, indent+"  ", false)
		}
		lead = indent
	}
}

func (c *Config) origin(path string) string {
	if o, ok := c.origins[path]; ok {
		return o
	}
	return "default"
}

// show formats a field's value as YAML on one line.
func (k key) show(v reflect.Value) string {
	if k.table {
		var lines []string
		for _, name := range v.MapKeys() {
			lines = append(lines, scalar(name.String())+": "+k.leaf.yaml(v.MapIndex(name).Interface()))
		}
		return "{" + strings.Join(slices.Sorted(slices.Values(lines)), ", ") + "}"
	}
	if !k.list {
		return k.leaf.yaml(v.Interface())
	}
	items := make([]string, v.Len())
	for i := range items {
		items[i] = k.leaf.yaml(v.Index(i).Interface())
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (l leaf) yaml(value any) string {
	if l.written == asLiteral {
		return l.text(value)
	}
	return scalar(l.text(value))
}

// bare matches text that needs no quotes in YAML, unless it is one of YAML's words.
var bare = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./%-]*$`)

// scalar formats text as YAML on one line. Go's escapes are valid in YAML.
func scalar(text string) string {
	var n yaml.Node
	if bare.MatchString(text) && yaml.Unmarshal([]byte(text), &n) == nil && n.Content[0].Tag == "!!str" {
		return text
	}
	return strconv.Quote(text)
}
