// Package schema describes a tool's input once: a struct with tags defines the schema for models ([Of]), the decoding
// and the validation ([Decode]). asking.go has the tools with which agents ask people.
//
// An input is a struct of strings, numbers, booleans, string lists and objects. Tags: json is a member's name, say its
// description for the model, need:"yes" makes it required. size:"1..200" bounds the characters of a string (with
// unit:"bytes" its bytes), the items of a list, or a number, and each:"1..200" the characters of each item; either end
// may be left out. one:"a,b" lists the values of a string, form is a regular expression for it, and default is the
// value if it is left out. A pointer then stays nil: its default is only documented.
package schema

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// kind is a JSON type with its name in words and its schema keywords for bounds.
type kind struct{ name, words, least, most string }

var (
	text   = kind{"string", "text", "minLength", "maxLength"}
	object = kind{"object", "an object", "", ""}
	kinds  = map[reflect.Kind]kind{
		reflect.String: text, reflect.Bool: {"boolean", "true or false", "", ""}, reflect.Slice: {"array", "a list", "minItems", "maxItems"},
		reflect.Int: {"integer", "a whole number", "minimum", "maximum"}, reflect.Float64: {"number", "a number", "minimum", "maximum"},
	}
	starts = map[jsontext.Kind]string{'"': "string", '0': "number", 't': "boolean", 'f': "boolean", '[': "array", '{': "object"}
)

type member struct {
	reflect.StructField
	name string
	kind kind
}

// members are those of an input in order, without some.
func members[T any](without []string) (all []member) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || slices.Contains(without, name) {
			continue
		}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		m := member{StructField: f, name: name, kind: kinds[of.Kind()]}
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
			m.kind = object
		}
		all = append(all, m)
	}
	return all
}

// usual is a member's default as JSON; empty: none.
func (m member) usual() string {
	d := m.Tag.Get("default")
	if d != "" && m.kind == text {
		return strconv.Quote(d)
	}
	return d
}

// Of is the JSON Schema of an input, without some of its members.
func Of[T any](without ...string) []byte {
	properties, required := map[string]any{}, []string{}
	for _, m := range members[T](without) {
		p := map[string]any{"type": m.kind.name, "description": m.Tag.Get("say")}
		if m.kind.name == "array" {
			items := map[string]any{"type": text.name}
			bound(items, text, m.Tag.Get("each"))
			p["items"] = items
		}
		bound(p, m.kind, m.Tag.Get("size"))
		if one := m.Tag.Get("one"); one != "" {
			p["enum"] = strings.Split(one, ",")
		}
		if form := m.Tag.Get("form"); form != "" {
			p["pattern"] = form
		}
		if d := m.usual(); d != "" {
			p["default"] = jsontext.Value(d)
		}
		if m.Tag.Get("need") != "" {
			required = append(required, m.name)
		}
		properties[m.name] = p
	}
	written, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}, json.Deterministic(true))
	if err != nil {
		panic(err) // constants of ours
	}
	return written
}

func bound(p map[string]any, k kind, size string) {
	least, most, _ := strings.Cut(size, "..")
	for word, n := range map[string]string{k.least: least, k.most: most} {
		if n != "" {
			p[word] = jsontext.Value(n)
		}
	}
}

// Decode decodes a tool's input strictly: one object with exact, unique and known names, all required members, and
// every value within its bounds. A null member counts as left out. The error is for the model.
func Decode[T any](tool string, input []byte, without ...string) (in T, err error) {
	given := map[string]jsontext.Value{}
	if len(input) == 0 {
		input = []byte("{}")
	}
	if input[0] != '{' {
		return in, fmt.Errorf("the input of %s must be a JSON object", tool)
	}
	if err := wire.Decode(input, &given); err != nil {
		return in, fmt.Errorf("the input of %s is no JSON object that can be read: %w", tool, err)
	}
	all, names := members[T](without), []string{}
	for _, m := range all {
		names = append(names, m.name)
	}
	for name := range given {
		near := permissions.Nearest(name, names)
		switch {
		case slices.Contains(names, name):
		case near != "":
			return in, fmt.Errorf("%s has no %q; did you mean %q?", tool, name, near)
		default:
			return in, fmt.Errorf("%s has no %q; it takes %s", tool, name, strings.Join(names, ", "))
		}
	}
	for _, m := range all {
		if err := m.take(given[m.name], reflect.ValueOf(&in).Elem().FieldByIndex(m.Index)); err != nil {
			return in, fmt.Errorf("%s: %w", tool, err)
		}
	}
	return in, nil
}

func (m member) take(value jsontext.Value, to reflect.Value) error {
	if len(value) == 0 || value.Kind() == 'n' {
		if m.Tag.Get("need") != "" {
			return fmt.Errorf("%q is missing", m.name)
		}
		if value = jsontext.Value(m.usual()); len(value) == 0 || m.Type.Kind() == reflect.Pointer {
			return nil
		}
	}
	is := starts[value.Kind()]
	if is == "number" && m.kind.name == "integer" {
		is = "integer"
	}
	if err := json.Unmarshal(value, to.Addr().Interface()); err != nil || is != m.kind.name {
		words := m.kind.words
		if m.kind.name == "array" && is == m.kind.name {
			words = "a list of texts"
		}
		return fmt.Errorf("%s must be %s", m.name, words)
	}
	return m.check(reflect.Indirect(to))
}

// check validates a value against its member's bounds.
func (m member) check(v reflect.Value) error {
	size, number, of := m.Tag.Get("size"), 0.0, " items"
	switch v.Kind() {
	case reflect.String:
		if number, of = float64(utf8.RuneCountInString(v.String())), " characters"; m.Tag.Get("unit") != "" {
			number, of = float64(v.Len()), " bytes"
		}
		if one := m.Tag.Get("one"); one != "" && !slices.Contains(strings.Split(one, ","), v.String()) {
			return fmt.Errorf("%s must be one of %s", m.name, strings.ReplaceAll(one, ",", ", "))
		}
		if form := m.Tag.Get("form"); form != "" && !regexp.MustCompile(form).MatchString(v.String()) {
			return fmt.Errorf("%s must match %s", m.name, form)
		}
	case reflect.Int:
		number, of = float64(v.Int()), ""
	case reflect.Float64:
		number, of = v.Float(), ""
	case reflect.Slice:
		number = float64(v.Len())
		for i := 0; i < v.Len() && m.kind != object; i++ {
			each := member{name: fmt.Sprintf("item %d of %s", i+1, m.name), kind: text}
			each.Tag = reflect.StructTag(`size:"` + m.Tag.Get("each") + `"`)
			if err := each.check(v.Index(i)); err != nil {
				return err
			}
		}
	}
	least, most, _ := strings.Cut(size, "..")
	from, _ := strconv.ParseFloat(least, 64)
	to := math.Inf(1)
	if n, err := strconv.ParseFloat(most, 64); err == nil {
		to = n
	}
	switch {
	case size == "" || (number >= from || least == "") && number <= to:
		return nil
	case number == 0 && of != "":
		return fmt.Errorf("%s is empty", m.name)
	case of == "" && most == "":
		return fmt.Errorf("%s must be %s or more", m.name, least)
	case of == "":
		return fmt.Errorf("%s must be a number from %s to %s", m.name, least, most)
	case least == "":
		return fmt.Errorf("%s must have at most %s%s, and has %.0f", m.name, most, of, number)
	}
	return fmt.Errorf("%s must have %s to %s%s, and has %.0f", m.name, least, most, of, number)
}
