package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/agents/schema/schematest"
	"github.com/daycared/daycared/permissions"
)

// TestNoAskingToolSpeaksOfGo gives every tool that asks every wrong input.
func TestNoAskingToolSpeaksOfGo(t *testing.T) {
	for _, tool := range schema.AskingTools {
		refused := 0
		for _, input := range schematest.Wrong(tool.Schema()) {
			_, err := tool.Question([]byte(input))
			if err == nil {
				continue
			}
			refused++
			if leak := schematest.Leak(err.Error()); leak != "" {
				t.Errorf("%s %.80s: %q speaks of %q", tool.Name, input, err, leak)
			}
		}
		if refused < 100 {
			t.Errorf("%s refuses only %d wrong inputs", tool.Name, refused)
		}
	}
	_, err := schema.AskingTools[0].Question([]byte(`{"permission":"@network","reason":"r","bogus":1}`))
	const want = `request_permission has no "bogus"; it takes permission, permissions, reason, agentId, timeout_minutes, details, key`
	if err == nil || err.Error() != want {
		t.Errorf("an unknown member: %v", err)
	}
}

// bounds of a member, as its schema tells them.
type bounds struct {
	Type                 string
	Default              any
	MinLength, MaxLength *int
	Minimum, Maximum     *float64
	MinItems, MaxItems   *int
	Enum                 []string
	Items                *bounds
}

// values are some that keep the bounds, at their ends, and some that do not.
func (b bounds) values(name string) (right, wrong []string) {
	texts := func(n int) string { return fmt.Sprintf("%q", strings.Repeat("é", n)) }
	list := func(n int) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`"@read:/%s%d"`, name, i)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	if b.MaxLength != nil && *b.MaxLength < 1<<20 { // of details, bytes are counted
		right, wrong = append(right, texts(*b.MaxLength)), append(wrong, texts(*b.MaxLength+1))
	}
	if b.MinLength != nil && *b.MinLength > 0 {
		wrong = append(wrong, texts(*b.MinLength-1))
	}
	if b.Minimum != nil {
		right, wrong = append(right, fmt.Sprint(*b.Minimum)), append(wrong, fmt.Sprint(*b.Minimum-0.5))
	}
	if b.Maximum != nil {
		right, wrong = append(right, fmt.Sprint(*b.Maximum)), append(wrong, fmt.Sprint(*b.Maximum+0.5))
	}
	if b.MinItems != nil {
		right, wrong = append(right, list(*b.MinItems)), append(wrong, list(*b.MinItems-1))
	}
	if b.MaxItems != nil {
		right, wrong = append(right, list(*b.MaxItems)), append(wrong, list(*b.MaxItems+1))
	}
	for _, value := range b.Enum {
		right = append(right, fmt.Sprintf("%q", value))
	}
	return right, wrong
}

// TestSchemasTellWhatIsChecked: what the schema allows at its bounds is taken, what it does not is refused, and no bound of
// what people are asked is missing.
func TestSchemasTellWhatIsChecked(t *testing.T) {
	whole := map[string]string{
		schema.RequestPermission: `{"permission":"@network","reason":"r"}`, schema.Pause: `{"message":"m"}`,
		schema.AskUser: `{"question":"q","options":["a","b"]}`,
	}
	for _, tool := range schema.AskingTools {
		var s struct{ Properties map[string]bounds }
		if err := json.Unmarshal(tool.Schema(), &s); err != nil {
			t.Fatal(err)
		}
		for name, b := range s.Properties {
			if b.Type == "string" && b.MaxLength == nil && len(b.Enum) == 0 && name != "permission" {
				t.Errorf("%s tells no bound of %s", tool.Name, name)
			}
			right, wrong := b.values(name)
			for i, value := range append(right, wrong...) {
				var in map[string]json.RawMessage
				_ = json.Unmarshal([]byte(whole[tool.Name]), &in)
				if name == "permissions" {
					delete(in, "permission")
				}
				in[name] = json.RawMessage(value)
				text, _ := json.Marshal(in)
				if _, err := tool.Question(text); (err == nil) != (i < len(right)) {
					t.Errorf("%s of %.60s: %v", tool.Name, text, err)
				}
			}
		}
		want := map[string]float64{schema.RequestPermission: 15, schema.AskUser: 5, schema.Pause: 15}[tool.Name]
		if s.Properties["timeout_minutes"].Default != want {
			t.Errorf("%s: people have %v minutes, not %v", tool.Name, s.Properties["timeout_minutes"].Default, want)
		}
	}
	q, err := schema.AskingTools[2].Question([]byte(`{"message":"m"}`))
	if err != nil || q.Mode != permissions.ModeContinue {
		t.Errorf("a pause without a mode: %+v, %v", q, err)
	}
}

// TestDetailsAreCountedInBytes, as they are bounded everywhere else.
func TestDetailsAreCountedInBytes(t *testing.T) {
	for n, taken := range map[int]bool{permissions.MaxDetails / 2: true, permissions.MaxDetails/2 + 1: false} {
		in := fmt.Sprintf(`{"message":"m","details":%q}`, strings.Repeat("é", n))
		if _, err := schema.AskingTools[2].Question([]byte(in)); (err == nil) != taken {
			t.Errorf("%d bytes: %v", 2*n, err)
		}
	}
}
