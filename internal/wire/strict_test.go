package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// lenient are bodies that lenient parsers accept, and could read differently.
var lenient = map[string]string{
	"duplicate member":       `{"kind":"pause","kind":"tool"}`,
	"duplicate inside":       `{"kind":"tool","tool":"x","input":{"a":1,"a":2}}`,
	"escaped duplicate":      `{"kind":"pause","k\u0069nd":"tool"}`,
	"member in another case": `{"Kind":"pause"}`,
	"both cases":             `{"kind":"pause","KIND":"tool"}`,
	"unknown member":         `{"kind":"pause","approve":true}`,
	"unknown inside":         `{"kind":"tool","calls":[{"tool":"x","n":1}]}`,
	"invalid UTF-8":          "{\"kind\":\"pause\xff\"}",
	"lone surrogate":         `{"kind":"\ud800"}`,
	"byte order mark":        "\xef\xbb\xbf" + `{"kind":"pause"}`,
	"trailing value":         `{"kind":"pause"} {}`,
	"trailing comma":         `{"kind":"pause",}`,
	"comment":                `{"kind":"pause"} // really`,
	"single quotes":          `{'kind':'pause'}`,
	"not a number":           `{"kind":"tool","tool":"x","input":NaN}`,
	"leading zero":           `{"kind":"tool","tool":"x","input":01}`,
	"too deep":               `{"kind":"tool","input":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`,
	"very deep":              strings.Repeat("[", 1<<16),
	"wrong type":             `{"kind":7}`,
	"array":                  `[{"kind":"pause"}]`,
	"text":                   `"pause"`,
	"control character":      "{\"kind\":\"pa\x01use\"}",
	"empty":                  ``,
	"half":                   `{"kind":"pau`,
}

func TestLenientJSONIsRefused(t *testing.T) {
	for name, body := range lenient {
		t.Run("C4/"+name, func(t *testing.T) {
			var a Ask
			if err := Decode([]byte(body), &a); err == nil {
				t.Errorf("%s was taken: %.80s", name, body)
			}
		})
	}
	deep := `{"kind":"tool","tool":"x","input":` + strings.Repeat("[", 15) + strings.Repeat("]", 15) + `}`
	var a Ask
	if err := Decode([]byte(deep), &a); err != nil {
		t.Errorf("16 levels: %v", err)
	}
}

func TestTextThatIsNoUTF8IsStillTold(t *testing.T) {
	text, err := Encode(map[string]string{"comment": "a\xffb"})
	if want := "{\"comment\":\"a\uFFFDb\"}"; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// An ambiguous JSON-RPC message is refused.
func TestAmbiguousMessagesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"two methods":            `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{}}`,
		"two ids":                `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
		"escaped twice":          `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call"}`,
		"another case beside":    `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`,
		"another case alone":     `{"jsonrpc":"2.0","ID":1,"method":"ping"}`,
		"a letter that folds":    `{"jsonrpc":"2.0","id":1,"method":"ping","param` + "\u017f" + `":{}}`,
		"twice in params":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`,
		"twice in arguments":     `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[{"y":1,"y":2}]}}}`,
		"twice in a result":      `{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`,
		"two values":             `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		"a value and more":       `{"jsonrpc":"2.0","id":1,"method":"ping"} x`,
		"a list with an odd one": `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"Method":"ping"}]`,
		"a long list":            "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, maxBatch) + `{"jsonrpc":"2.0","method":"x"}]`,
		"no object":              `"ping"`, "null inside": `[7]`, "nothing": "", "half": `{"jsonrpc":"2.0"`,
	} {
		t.Run("C4/"+name, func(t *testing.T) {
			if err := CheckMessage([]byte(text)); err == nil {
				t.Errorf("%s was taken", text)
			}
			lines := NewLines(strings.NewReader(text+"\n"), 1<<20, func(line []byte) (bool, error) { return false, CheckMessage(line) })
			if _, err := lines.Read(make([]byte, 10)); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s was read: %v", text, err)
			}
		})
	}
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Method":1,"method":2,"arguments":{"a":{"a":1},"b":{"a":1}}}}` + "\r\n",
		`[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":"y","result":null}]`, `{"jsonrpc":"2.0","id":1,"error":{"code":1},"more":1}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}",
		"[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, maxBatch-1) + `{"jsonrpc":"2.0","method":"x"}]`,
	} {
		if err := CheckMessage([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestRefusedJSONIsToldInPlainWords: the author does not know our types.
func TestRefusedJSONIsToldInPlainWords(t *testing.T) {
	for name, body := range lenient {
		var a Ask
		if err := Decode([]byte(body), &a); err == nil || strings.Contains(err.Error(), "json") || strings.Contains(err.Error(), "Go ") ||
			strings.Contains(err.Error(), "EOF") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
