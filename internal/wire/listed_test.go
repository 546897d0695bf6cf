package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// Lists have nothing that is long, however much was asked, and say so; the rest is as it is.
func TestListsHaveNothingLong(t *testing.T) {
	long := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	short := json.RawMessage(`{"x":"y"}`)
	for name, c := range map[string]struct {
		r     permissions.Request
		brief bool
	}{
		"F3/details": {permissions.Request{Tool: "x", Input: short, Details: string(long)}, true},
		"F3/input":   {permissions.Request{Tool: "x", Input: long}, true},
		"F3/calls":   {permissions.Request{Calls: []permissions.Call{{N: 1, Tool: "x", Input: short}, {N: 2, Tool: "y", Input: long}}}, true},
		"F3/message": {permissions.Request{Message: strings.Repeat("x", permissions.MaxMessage)}, true},
		"short":      {permissions.Request{Tool: "x", Input: short, Message: "look"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(c.r.Calls) > 1 && c.r.Calls[1].Input != nil
			w := Listed(permissions.Standing{Request: c.r, Code: "K7F3Q"})
			text, err := Encode(w)
			if err != nil || len(text) > 2000 {
				t.Errorf("it has %d bytes: %v", len(text), err)
			}
			if w.Brief != c.brief || w.Code != "K7F3Q" || w.Details != nil {
				t.Errorf("brief: %v; want %v", w.Brief, c.brief)
			}
			if !c.brief && (string(w.Input) != string(short) || Value(w.Message) != "look") {
				t.Errorf("what is short is left out: %s", text)
			}
			s, err := w.Standing()
			if err != nil || s.Brief != c.brief || From(s, true).Brief != c.brief {
				t.Errorf("read back: %v, %v", s.Brief, err)
			}
			if before && c.r.Calls[1].Input == nil {
				t.Error("the request itself was changed")
			}
		})
	}
}
