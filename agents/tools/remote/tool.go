package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Tool is a listed tool of a server.
type Tool struct {
	server     *Server
	definition definition
}

var _ tools.Tool = (*Tool)(nil)

// Spec implements [tools.Tool].
func (t *Tool) Spec() models.Tool { return t.definition.spec }

// Plan implements [tools.Tool] without asking the server. Nobody knows what its tools need, so there are no tags, only the gate.
func (t *Tool) Plan(_ context.Context, _ tools.Workspace, input json.RawMessage) (tools.Plan, error) {
	canonical, err := permissions.CanonicalJSON(input)
	if err != nil {
		return tools.Plan{}, err
	}
	if len(canonical) == 0 || canonical[0] != '{' {
		return tools.Plan{}, errors.New("the input is an object, as the schema of the tool says")
	}
	if err := t.check(canonical); err != nil {
		return tools.Plan{}, fmt.Errorf("the input is not as the schema of the tool says: %s", words(err.Error(), 1000))
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, canonical, "", "  "); err != nil {
		return tools.Plan{}, err
	}
	details := fmt.Sprintf("%s of the MCP server %s, with:\n%s", words(t.definition.name, 200), t.server.o.Name, pretty.Bytes())
	return tools.Plan{Details: details, Basis: t.definition.digest}, nil
}

// check validates an input. A schema that we cannot read is left to the server, and one that refers to a part of itself: the
// library follows references without end.
func (t *Tool) check(input json.RawMessage) error {
	var schema jsonschema.Schema
	raw := t.definition.spec.Schema
	if !ends(raw) || json.Unmarshal(raw, &schema) != nil || !slices.Contains(drafts, schema.Schema) {
		return nil //nolint:nilerr // the server checks it
	}
	compiled, err := schema.Resolve(nil)
	if err != nil {
		return nil //nolint:nilerr // the server checks it
	}
	var value any
	if err := json.Unmarshal(input, &value); err != nil {
		return err
	}
	return compiled.Validate(value)
}

// maxParts is how many parts a schema may have once what it refers to stands in the place of each reference.
const maxParts = 10_000

// ends reports whether a schema refers to its own definitions only, and comes to an end.
func ends(raw []byte) bool {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil {
		return false
	}
	definitions := map[string]any{} // by reference
	for _, key := range []string{"$defs", "definitions"} {
		all, _ := root[key].(map[string]any)
		for name, one := range all {
			definitions["#/"+key+"/"+name] = one
		}
	}
	left := maxParts
	var follow func(part any) bool
	follow = func(part any) bool {
		if left--; left < 0 {
			return false
		}
		switch part := part.(type) {
		case []any:
			return !slices.ContainsFunc(part, func(one any) bool { return !follow(one) })
		case map[string]any:
			for key, one := range part {
				switch key {
				case "$ref":
					to, _ := one.(string)
					if one = definitions[to]; one == nil {
						return false
					}
				case "$id", "$anchor", "$dynamicRef", "$dynamicAnchor": // by which a reference may mean something else
					return false
				}
				if !follow(one) {
					return false
				}
			}
		}
		return true
	}
	return follow(root)
}

// drafts are the values of $schema that the library validates.
var drafts = []string{
	"", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
}

// Run implements [tools.Tool].
func (t *Tool) Run(ctx context.Context, _ tools.Workspace, input json.RawMessage, plan tools.Plan) tools.Outcome {
	s := t.server
	limited, cancel := context.WithTimeout(ctx, s.o.Limit)
	defer cancel()
	l, err := t.same(limited, plan.Basis)
	if err != nil {
		return failed("Nothing was run: %v.", err)
	}
	result, err := l.session.CallTool(limited, &mcp.CallToolParams{Name: t.definition.name, Arguments: input})
	var told *jsonrpc.Error
	if limited.Err() != nil || err != nil && !errors.As(err, &told) { // it may continue unnoticed
		l.stop(0)
	}
	const unknown = "what the call had done by then is not known"
	switch {
	case ctx.Err() != nil:
		return failed("The call was stopped, and the MCP server %s was ended; %s.", s.o.Name, unknown)
	case limited.Err() != nil:
		return failed("The MCP server %s did not answer within %v and was ended; %s.", s.o.Name, s.o.Limit, unknown)
	case err != nil && told == nil:
		return failed("The MCP server %s ended before it answered; %s. It is started again for the next call.", s.o.Name, unknown)
	case err != nil:
		return failed("%s failed: the server says: %s", t.definition.spec.Name, words(told.Message, 500))
	}
	return outcome(t.definition.name, result, s.o.Most)
}

// same returns the connection if the tool is still the one that was shown.
func (t *Tool) same(ctx context.Context, basis string) (*conn, error) {
	l, now, err := t.server.ready(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range now {
		if d.spec.Name != t.definition.spec.Name {
			continue
		}
		if d.digest != t.definition.digest || d.digest != basis {
			return nil, fmt.Errorf("the MCP server %s has changed what %s is since it was shown", t.server.o.Name, d.spec.Name)
		}
		return l, nil
	}
	return nil, fmt.Errorf("the MCP server %s has no %s any more", t.server.o.Name, t.definition.spec.Name)
}

func failed(format string, args ...any) tools.Outcome {
	return tools.Outcome{Error: true, Text: fmt.Sprintf(format, args...)}
}

// outcome converts a result for models. A text that is too long becomes an artifact, and so do diagnostics, as of gopls.
func outcome(name string, r *mcp.CallToolResult, most int) tools.Outcome {
	all := wire.Map(r.Content, content)
	if len(all) == 0 && r.StructuredContent != nil {
		raw, err := json.Marshal(r.StructuredContent)
		if err == nil { // it was valid JSON
			all = append(all, string(raw))
		}
	}
	text := strings.ToValidUTF8(strings.Join(all, "\n"), "�")
	o := tools.Outcome{Text: text, Error: r.IsError}
	switch {
	case text == "" && r.IsError:
		o.Text = "The tool failed and does not say why."
	case text == "":
		o.Text = "The tool ran and says nothing."
	case len(text) > most:
		o.Artifacts = []agents.Artifact{whole(agents.ArtifactStdout, text)}
		o.Text = bounded(text, most)
	}
	if text != "" && strings.Contains(name, "diagnostics") {
		o.Artifacts = []agents.Artifact{whole(agents.ArtifactDiagnostics, text)}
	}
	return o
}

func whole(of agents.ArtifactType, text string) agents.Artifact {
	content, _ := json.Marshal(map[string]any{"text": text, "bytes": len(text), "missing": 0}) // strings and numbers are encodable
	return agents.Artifact{Type: of, Content: content}
}

// bounded removes the middle of a text.
func bounded(text string, most int) string {
	head, tail := most*3/4, len(text)-most/4
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", text[:head], tail-head, text[tail:])
}

func content(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[an image, %s, %d bytes]", words(c.MIMEType, 100), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[a sound, %s, %d bytes]", words(c.MIMEType, 100), len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[a resource: %s]", words(c.URI, 1000))
	case *mcp.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return "[a resource]"
		case c.Resource.Blob != nil:
			return fmt.Sprintf("[a resource: %s, %d bytes]", words(c.Resource.URI, 1000), len(c.Resource.Blob))
		}
		return c.Resource.Text
	}
	return "[something of an unknown kind]"
}

const (
	maxTools       = 100
	maxPages       = 50
	maxDescription = 1500     // characters
	maxSchema      = 32 << 10 // bytes
	maxName        = 64       // limit of model providers
)

type definition struct {
	name   string // the server's name for it
	spec   models.Tool
	digest string // of all that models and people are shown of it
}

// list asks the server for its tools. Unusable ones are left out and logged.
func (l *conn) list(ctx context.Context) ([]definition, error) {
	var all []definition
	seen := map[string]bool{}
	params := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := l.session.ListTools(ctx, params)
		if err != nil {
			return nil, answer(ctx, err)
		}
		for _, t := range page.Tools {
			d, err := define(l.o.Name, t)
			switch {
			case err == nil && seen[d.spec.Name]:
				err = errors.New("the name is there twice")
			case err == nil && len(all) == maxTools:
				err = fmt.Errorf("the server has more than %d tools", maxTools)
			}
			if err != nil {
				l.o.Log.Warn("tool of an mcp server skipped", "tool", words(t.Name, maxName), "err", err)
				continue
			}
			seen[d.spec.Name] = true
			all = append(all, d)
		}
		if page.NextCursor == "" {
			return all, nil
		}
		params.Cursor = page.NextCursor
	}
	return nil, errors.New("the list has no end")
}

// define converts the server's description.
func define(server string, t *mcp.Tool) (definition, error) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return definition{}, fmt.Errorf("its schema: %w", err)
	}
	schema, err := permissions.CanonicalJSON(raw)
	var object map[string]any
	switch {
	case t.Name == "":
		return definition{}, errors.New("it has no name")
	case err != nil:
		return definition{}, err
	case len(schema) > maxSchema:
		return definition{}, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	case json.Unmarshal(schema, &object) != nil || object == nil:
		return definition{}, errors.New("its schema is no object")
	}
	said := cmp.Or(t.Description, t.Title)
	d := definition{name: t.Name, spec: models.Tool{
		Name:        toolName(server, t.Name),
		Description: fmt.Sprintf("A tool of the MCP server %s, which says of it: %s", server, words(said, maxDescription)),
		Schema:      schema,
	}}
	whole, err := json.Marshal([]string{t.Name, t.Title, t.Description, string(schema)})
	sum := sha256.Sum256(whole)
	d.digest = hex.EncodeToString(sum[:])
	return d, err
}

var odd = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// toolName is the tool's name for models. The server's part ends with the first two underscores.
func toolName(server, name string) string {
	if !wire.IsServerName(server) {
		runs := strings.FieldsFunc(odd.ReplaceAllLiteralString(server, "_"), func(c rune) bool { return c == '_' })
		server = marked(strings.Join(runs, "_"), server, wire.MaxServerName)
	}
	whole := server + "__" + odd.ReplaceAllLiteralString(name, "_")
	if len(whole) > maxName || odd.MatchString(name) {
		whole = marked(whole, name, maxName)
	}
	return whole
}

// marked appends a digest of the original to a changed name, so that two stay distinct.
func marked(name, was string, most int) string {
	const digits = 8
	sum := sha256.Sum256([]byte(was))
	return name[:min(len(name), most-digits-1)] + "-" + hex.EncodeToString(sum[:])[:digits]
}

// words is a server's text in one line, without invisible characters, of at most so many characters.
func words(text string, most int) string {
	text = strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "�"))), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}
