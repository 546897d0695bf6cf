package telegramtest

import (
	"strings"
	"testing"
)

func TestTextIsTrimmedAsTelegramDoes(t *testing.T) {
	mark := func(offset, length int) []Entity { return []Entity{{Type: "bold", Offset: offset, Length: length}} }
	tests := []struct {
		name     string
		text     string
		entities []Entity
		want     string // the text
		marked   string
		refused  string
	}{
		{"plain", "a b", nil, "a b", "", ""},
		{"trimmed", " \n a \n", nil, "a", "", ""},
		{"not into an entity", "  ab  ", mark(1, 4), " ab", " ab", ""},
		{"an entity of what was trimmed", "ab  ", mark(3, 1), "ab", "", ""},
		{"control characters", "a\tb\x00c\rd", mark(2, 3), "a b cd", "b c", ""},
		{"directions and lines", "a\u202eb\u2028c\u2067", mark(1, 3), "abc\u2067", "b", ""},
		{"emoji", "👍👎", mark(2, 2), "👍👎", "👎", ""},
		{"empty entity", "ab", mark(1, 0), "ab", "", ""},
		{"begins within a symbol", "👍 x", mark(1, 1), "", "",
			"entity begins in a middle of a UTF-16 symbol at byte offset 4"},
		{"ends within a symbol", "👍 x", mark(0, 1), "", "",
			"entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 4"},
		{"ends after the text", "abc", mark(1, 3), "", "",
			"entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 4"},
		{"begins after the text", "abc", mark(4, 1), "", "", "entity begins after the end of the text at UTF-16 offset 4"},
		{"before the text", "abc", mark(-1, 1), "", "", "receive an entity with incorrect offset -1"},
		{"backwards", "abc", mark(1, -1), "", "", "receive an entity with incorrect length -1"},
		{"no UTF-8", "a\xff", nil, "", "", "strings must be encoded in UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text, entities, refused := tidy(test.text, test.entities)
			if refused != nil {
				if refused.description != "Bad Request: "+test.refused {
					t.Errorf("refused: %s", refused.description)
				}
				return
			}
			marked := ""
			for _, e := range entities {
				marked += e.Of(text)
			}
			if test.refused != "" || text != test.want || marked != test.marked {
				t.Errorf("%q, marked %q", text, marked)
			}
		})
	}
}

func TestOverlappingEntities(t *testing.T) {
	entity := func(kind string, offset, length int) Entity {
		return Entity{Type: kind, Offset: offset, Length: length}
	}
	tests := []struct {
		name     string
		entities []Entity
		ok       bool
	}{
		{"side by side", []Entity{entity("bold", 0, 2), entity("code", 2, 2)}, true},
		{"code in a quote", []Entity{entity("expandable_blockquote", 0, 9), entity("pre", 2, 2)}, true},
		{"italic in bold", []Entity{entity("bold", 0, 9), entity("italic", 2, 2)}, true},
		{"overlap", []Entity{entity("bold", 0, 3), entity("italic", 2, 2)}, false},
		{"bold in code", []Entity{entity("pre", 0, 9), entity("bold", 2, 2)}, false},
		{"code in bold", []Entity{entity("bold", 0, 9), entity("code", 2, 2)}, false},
	}
	for _, test := range tests {
		if got := tangled(test.entities); (got == "") != test.ok {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

func TestEntitiesAreChecked(t *testing.T) {
	s := lenient(t)
	started(t, s)
	r := call(t, s, "sendMessage", "chat_id", "42", "text", "👍", "entities", `[{"type":"bold","offset":1,"length":1}]`)
	if r.Description != "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 4" {
		t.Errorf("half a symbol: %+v", r)
	}
	must(t, s, nil, "sendMessage", "chat_id", "42", "text", "abc", "entities",
		`[{"type":"bold","offset":0,"length":2},{"type":"code","offset":1,"length":2}]`)
	if v := s.Violations(); len(v) != 1 || v[0].What != "entities" || !strings.Contains(v[0].Detail, "overlaps") {
		t.Errorf("violations: %+v", v)
	}
	many := strings.Repeat(`{"type":"code","offset":0,"length":1},`, maxEntities)
	must(t, s, nil, "sendMessage", "chat_id", "42", "text", "abc", "entities", "["+many+`{"type":"code","offset":1,"length":1}]`)
	if v := s.Violations(); len(v) < 2 || !strings.Contains(v[1].Detail, "101 of them") {
		t.Errorf("violations: %+v", v)
	}
}
