package wire

import (
	"strings"
	"testing"
)

// lenient are bodies that a lenient reader takes, and how two of them could differ about it.
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
		var a Ask
		if err := Decode([]byte(body), &a); err == nil {
			t.Errorf("%s was taken: %.80s", name, body)
		}
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
