package tools

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The inputs of tools are structs of strings, whole numbers, truth values and lists of strings. Their tags are the one
// place where they are described: json has the name, say is for the model, and need:"yes" is on what must be there.

// schema is what an input looks like, as JSON Schema.
func schema[T any]() []byte {
	type property struct {
		Type        string            `json:"type"`
		Items       map[string]string `json:"items,omitempty"`
		Description string            `json:"description"`
	}
	properties, required := map[string]property{}, []string{}
	for f := range fields[T]() {
		p := property{Type: kinds[f.Type.Kind()], Description: f.Tag.Get("say")}
		if f.Type.Kind() == reflect.Slice {
			p.Items = map[string]string{"type": "string"}
		}
		properties[name(f)] = p
		if f.Tag.Get("need") != "" {
			required = append(required, name(f))
		}
	}
	text, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}, json.Deterministic(true))
	if err != nil {
		panic(err) // values of our own, the same in every run
	}
	return text
}

var kinds = map[reflect.Kind]string{
	reflect.String: "string", reflect.Int: "integer", reflect.Bool: "boolean", reflect.Slice: "array",
}

func fields[T any]() func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		of := reflect.TypeFor[T]()
		for i := range of.NumField() {
			if !yield(of.Field(i)) {
				return
			}
		}
	}
}

func name(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return n
}

// decode reads an input strictly: one object, every name once and exactly as it is told, nothing unknown, and what must
// be there is; and as its own check makes it, where it has one. The error is for the model.
func decode[T any](input []byte) (in T, err error) {
	given := map[string]jsontext.Value{}
	if err := json.Unmarshal(input, &given); err != nil {
		return in, fmt.Errorf("the input is not one JSON object: %w", err)
	}
	var known, missing []string
	for f := range fields[T]() {
		known = append(known, name(f))
		if _, ok := given[name(f)]; !ok && f.Tag.Get("need") != "" {
			missing = append(missing, name(f))
		}
	}
	for n := range given {
		if !slices.Contains(known, n) {
			return in, fmt.Errorf("%q is unknown; did you mean %q?", n, nearest(n, known))
		}
	}
	if len(missing) > 0 {
		return in, fmt.Errorf(`"%s" is missing`, strings.Join(missing, `", "`))
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return in, fmt.Errorf("the input is not as it should be: %w", err)
	}
	if c, checks := any(in).(interface{ check() (T, error) }); checks {
		return c.check()
	}
	return in, nil
}

func nearest(word string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(strings.ToLower(word), a) - levenshtein.ComputeDistance(strings.ToLower(word), b)
	})
}
