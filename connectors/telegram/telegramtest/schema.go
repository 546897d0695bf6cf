package telegramtest

import (
	"bytes"
	_ "embed" // the schema
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed testdata/botapi.json
var botAPI []byte

// schema is the Bot API: what each method takes and returns, and what an update is.
type schema struct {
	params, results map[string]*jsonschema.Schema
	kinds           map[string]map[string]string // the JSON type of each parameter of a method, where it has one
	update          *jsonschema.Schema
	reactions       []string // emoji that can be reacted with
}

// loadSchema reads the schema once for all servers of a process.
var loadSchema = sync.OnceValues(readSchema)

func readSchema() (*schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(botAPI))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	const at = "mem:///botapi.json"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(at, document); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	definitions, _ := field(document, "definitions").(map[string]any)
	s := &schema{
		params: map[string]*jsonschema.Schema{}, results: map[string]*jsonschema.Schema{},
		kinds: map[string]map[string]string{},
	}
	compile := func(to map[string]*jsonschema.Schema, group string) {
		for _, name := range members(field(definitions[group], "properties")) {
			var failed error
			to[name], failed = compiler.Compile(at + "#/definitions/" + group + "/properties/" + name)
			err = cmpErr(err, failed)
		}
	}
	compile(s.params, "Params")
	compile(s.results, "Results")
	var failed error
	s.update, failed = compiler.Compile(at + "#/definitions/TelegramUpdate")
	if err = cmpErr(err, failed); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	for name, of := range s.params {
		s.kinds[name] = map[string]string{}
		if of.Ref != nil {
			of = of.Ref
		}
		for property, is := range of.Properties {
			if is.Types != nil && len(is.Types.ToStrings()) == 1 {
				s.kinds[name][property] = is.Types.ToStrings()[0]
			}
		}
	}
	emoji, _ := field(definitions["TelegramReactionTypeEmojiEmoji"], "enum").([]any)
	for _, e := range emoji {
		s.reactions = append(s.reactions, fmt.Sprint(e))
	}
	return s, nil
}

// request validates the parameters of a call.
func (s *schema) request(method string, q *query) error {
	kinds, given := s.kinds[method], map[string]any{}
	for name, text := range q.values {
		given[name] = typed(kinds[name], text)
	}
	for name := range q.files {
		if _, named := given[name]; !named && s.takes(method, name) {
			given[name] = "attach://" + name
		}
	}
	return brief(s.params[method].Validate(given))
}

// takes reports whether a method has a parameter; a file may also be a part that a parameter refers to.
func (s *schema) takes(method, name string) bool {
	of := s.params[method]
	if of.Ref != nil {
		of = of.Ref
	}
	_, ok := of.Properties[name]
	return ok
}

// typed is a parameter's text as the JSON value that it stands for.
func typed(kind, text string) any {
	if kind == "string" {
		return text
	}
	if yes, ok := isFlag(text); ok && kind == "boolean" {
		return yes
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return text
	}
	return value
}

// result validates what a call returns, as JSON.
func (s *schema) result(method string, text []byte) error { return check(s.results[method], text) }

// event validates an update, as JSON.
func (s *schema) event(text []byte) error { return check(s.update, text) }

func check(is *jsonschema.Schema, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return brief(is.Validate(value))
}

// brief is an error of the validator without the alternatives that say the same again.
func brief(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.SplitN(err.Error(), "\n", 12)
	if len(lines) == 12 {
		lines[11] = "…"
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

func field(of any, name string) any {
	fields, _ := of.(map[string]any)
	return fields[name]
}

func members(of any) []string {
	fields, _ := of.(map[string]any)
	return slices.Sorted(maps.Keys(fields))
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
