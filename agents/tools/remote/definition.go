package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/permissions"
)

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

var (
	odd   = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	plain = regexp.MustCompile(`^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$`) // without two consecutive underscores
)

// toolName is the tool's name for models. The server's part ends with the first two underscores.
func toolName(server, name string) string {
	const most = 24
	if !plain.MatchString(server) || len(server) > most {
		runs := strings.FieldsFunc(odd.ReplaceAllLiteralString(server, "_"), func(c rune) bool { return c == '_' })
		server = marked(strings.Join(runs, "_"), server, most)
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
