package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/tools"
)

// outcome is what a call gave, as models are told it. The whole of what is too long for them is an artifact.
func outcome(r *mcp.CallToolResult, most int) tools.Outcome {
	var all []string
	for _, c := range r.Content {
		all = append(all, content(c))
	}
	if len(all) == 0 && r.StructuredContent != nil {
		raw, err := json.Marshal(r.StructuredContent)
		if err == nil { // it was JSON a moment ago
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
		whole, _ := json.Marshal(map[string]any{"text": text, "bytes": len(text), "missing": 0}) // of text and numbers
		o.Artifacts = []agents.Artifact{{Type: agents.ArtifactStdout, Content: whole}}
		o.Text = bounded(text, most)
	}
	return o
}

// bounded takes the middle out of a text.
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

// content is one part of an output, in words where it is none.
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
