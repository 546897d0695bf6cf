package runtime

import (
	"testing"

	"github.com/daycared/daycared/agents/schema/schematest"
)

// TestNoToolOfOursSpeaksOfGo gives the built-in tools every kind of wrong input.
func TestNoToolOfOursSpeaksOfGo(t *testing.T) {
	for _, tool := range askingTools {
		for _, input := range schematest.Wrong(tool.spec.Schema) {
			if _, err := tool.question([]byte(input)); err != nil && schematest.Leak(err.Error()) != "" {
				t.Errorf("%s %.80s: %q speaks of %q", tool.spec.Name, input, err, schematest.Leak(err.Error()))
			}
		}
	}
}
